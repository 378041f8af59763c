//! A session's world state was changed by another than its frontend: the frontend is told.

use entity::session::Role;

use super::{ask::Frontend, frames::Frame, mail};
use crate::{
    app::App,
    error::{Error, Result},
    sessions::{service::Playing, world_state::WorldState},
    tenancy::Actor,
};

/// Tells the session's frontend, wherever it is connected, of the world state that was stored, as far as its AI may know it.
///
/// # Errors
/// Those of the database.
pub async fn world_changed(app: &App, actor: &Actor, session: &Playing, mut world: WorldState) -> Result<()> {
    let frontend = Frontend::of(app, actor.tenant, session).await?;
    if matches!(frontend, Frontend::Nowhere { .. }) {
        return Ok(());
    }
    world.active_scene = world.active_scene.map(|scene| scene.seen_by(session.role));
    if session.role == Role::Player {
        // It tells how many blows foes can take.
        world.active_encounter = None;
    }
    let world = serde_json::to_value(&world).map_err(Error::internal)?;
    match frontend {
        Frontend::Here(connection) => connection.outbox.send(Frame::new("world_state", None, &world)),
        Frontend::There { instance, connection } => {
            mail::tell(app, actor, session, (instance, connection), &world).await?;
        }
        Frontend::Nowhere { .. } => {}
    }
    Ok(())
}
