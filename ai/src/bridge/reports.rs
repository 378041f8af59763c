//! What a frontend reports over REST: its world state, and the events at its table. If somebody else sends these, the
//! session's own frontend is told.

use actix_web::HttpRequest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;
use world::playing;

use crate::{frontends::world_changes, state::Ai};
use base::error::{Error, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        Answer, Written,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id},
        weight::weighed,
        write,
    },
};
use world::sessions::{
    events::{self, EventInput, EventResult},
    reported::{read_world, take_world},
    world_state::WorldState,
};

/// A session, as a path names it.
#[derive(Clone, Copy)]
pub(super) struct SessionPath<'a> {
    pub campaign: &'a str,
    pub session: Uuid,
}

/// The events that a frontend reports.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsInput {
    /// In the order in which they happened. Either all of them are stored, or none.
    #[schema(min_items = 1, max_items = 100)]
    events: Vec<EventInput>,
}

/// The results of the events.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventsTaken {
    count: usize,
    /// In the order of the events.
    results: Vec<EventResult>,
}

/// Stores events that happened at the frontend's table. Each counts as a request in the tenant's limits.
///
/// # Errors
/// `not_found`, `validation_failed`, `rate_limited`.
pub(super) async fn take_events(
    app: &Ai,
    caller: &Caller,
    request: &HttpRequest,
    at: SessionPath<'_>,
    EventsInput { events }: &EventsInput,
    key: Option<&IdempotencyKey>,
) -> Result<Written<EventsTaken>> {
    let work = write(app, caller, key, async |tx| {
        let campaign = campaign_id(tx, caller, &Ref::parse(at.campaign)).await?;
        let session = playing::playing(tx, campaign, at.session).await?;
        if caller.is_player() && session.player != caller.player {
            return Err(Error::not_found("session"));
        }
        app.limits.check_rows(tx, caller, "message").await?;
        let results = events::take_in(tx, caller, &session, events).await?;
        Ok(Answer::ok(EventsTaken { count: results.len(), results }))
    });
    let taken = weighed((app, caller), request, events.len(), key, work).await?;
    let world = events.iter().rfind(|e| e.kind == "world_state");
    if let Some(Ok(world)) = world.map(|e| read_world(e.data.clone(), "")) {
        tell(app, caller, at, world).await;
    }
    Ok(taken)
}

/// Replaces the world as the frontend has it.
///
/// # Errors
/// `not_found`, `validation_failed`.
pub(super) async fn replace_world(
    app: &Ai,
    caller: &Caller,
    at: SessionPath<'_>,
    state: Value,
    key: Option<&IdempotencyKey>,
) -> Result<Written<WorldState>> {
    let state = read_world(state, "")?;
    let replaced = write(app, caller, key, async |tx| {
        let campaign = campaign_id(tx, caller, &Ref::parse(at.campaign)).await?;
        let session = playing::playing(tx, campaign, at.session).await?;
        take_world(tx, session.id, state.clone()).await?;
        Ok(Answer::ok(state.clone()))
    })
    .await?;
    tell(app, caller, at, state).await;
    Ok(replaced)
}

/// Tells the session's frontend that somebody else stored a world state. The state stays stored even if this fails.
async fn tell(app: &Ai, caller: &Caller, SessionPath { campaign, session }: SessionPath<'_>, world: WorldState) {
    let told = async {
        let session = {
            let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
            let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await?;
            playing::playing(&tx, campaign, session).await?
        };
        world_changes::world_changed(&app.frontends, &caller.actor(), &session, world).await
    };
    if let Err(error) = told.await {
        tracing::warn!(%error, "could not tell a frontend about its new world state");
    }
}
