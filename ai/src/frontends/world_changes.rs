//! Tells a session's frontend that somebody else changed its world state.

use entity::session::Role;

use super::{connected::Frontends, frames::Frame, mail, whereabouts::Frontend};
use base::error::{Error, Result};
use db::tenancy::Actor;
use world::{playing::Playing, sessions::world_state::WorldState};

/// Sends the stored world state to the session's frontend, wherever it is connected. Leaves out what the session's AI may not know.
///
/// # Errors
/// Database errors.
pub async fn world_changed(app: &Frontends, actor: &Actor, session: &Playing, mut world: WorldState) -> Result<()> {
    let frontend = Frontend::of(app, actor.tenant, session).await?;
    if matches!(frontend, Frontend::Nowhere { .. }) {
        return Ok(());
    }
    world.active_scene = world.active_scene.map(|scene| scene.seen_by(session.role));
    if session.role == Role::Player {
        // It would tell how many hit points the foes have left.
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
