//! A session's world state was changed by another than its frontend: the frontend is told.

use serde_json::Value;

use super::{ask::Frontend, frames::Frame, mail};
use crate::{app::App, sessions::service::Playing, tenancy::Actor};

/// Tells the session's frontend, wherever it is connected, of the world state that was stored. That it cannot be told is no error.
pub async fn world_changed(app: &App, actor: &Actor, session: &Playing, world: &Value) {
    let told = async {
        match Frontend::of(app, actor.tenant, session).await? {
            Frontend::Here(connection) => connection.outbox.send(Frame::new("world_state", None, world)),
            Frontend::There { instance, connection } => {
                mail::tell(app, actor, session, (instance, connection), world).await?;
            }
            Frontend::Nowhere { .. } => {}
        }
        Ok::<_, crate::error::Error>(())
    };
    if let Err(error) = told.await {
        tracing::warn!(%error, "a frontend could not be told of its new world state");
    }
}
