//! What a frontend reports over REST: its world state, and the events at its table. If somebody else sends these, the
//! session's own frontend is told.

use actix_web::{HttpRequest, Responder, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;
use world::playing;

use crate::{frontends::world_changes, state::Ai};
use base::error::{Error, Problem, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        Answer, Body,
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
#[utoipa::path(post, path = "/v1/campaigns/{c}/sessions/{x}/events",
    tag = "sessions", operation_id = "report_session_events", request_body = EventsInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = EventsTaken), (status = "default", body = Problem)))]
pub async fn post_events(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    body: Body<EventsInput>,
) -> Result<impl Responder> {
    let key = body.idempotency.as_ref();
    let work = write(&app, &caller, key, async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&path.0)).await?;
        let session = playing::playing(tx, campaign, path.1).await?;
        if caller.is_player() && session.player != caller.player {
            return Err(Error::not_found("session"));
        }
        app.limits.check_rows(tx, &caller, "message").await?;
        let results = events::take_in(tx, &caller, &session, &body.value.events).await?;
        Ok(Answer::ok(EventsTaken { count: results.len(), results }))
    });
    let reply = weighed((&app, &caller), &request, body.value.events.len(), key, work).await?;
    let world = body.value.events.iter().rfind(|e| e.kind == "world_state");
    if let Some(Ok(world)) = world.map(|e| read_world(e.data.clone(), "")) {
        tell(&app, &caller, &path, world).await;
    }
    Ok(reply)
}

/// Replaces the world as the frontend has it. The next delta reports what moved since the previous state.
#[utoipa::path(put, path = "/v1/campaigns/{c}/sessions/{x}/world-state",
    tag = "sessions", operation_id = "replace_world_state", request_body = WorldState,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = WorldState), (status = "default", body = Problem)))]
pub async fn put_world_state(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, Uuid)>,
    body: Body<Value>,
) -> Result<impl Responder> {
    let state = read_world(body.value, "")?;
    let reply = write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&path.0)).await?;
        let session = playing::playing(tx, campaign, path.1).await?;
        take_world(tx, session.id, state.clone()).await?;
        Ok(Answer::ok(state.clone()))
    })
    .await?;
    tell(&app, &caller, &path, state).await;
    Ok(reply)
}

/// Tells the session's frontend that somebody else stored a world state. The state stays stored even if this fails.
async fn tell(app: &Ai, caller: &Caller, (campaign, session): &(String, Uuid), world: WorldState) {
    let told = async {
        let session = {
            let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
            let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await?;
            playing::playing(&tx, campaign, *session).await?
        };
        world_changes::world_changed(&app.frontends, &caller.actor(), &session, world).await
    };
    if let Err(error) = told.await {
        tracing::warn!(%error, "could not tell a frontend about its new world state");
    }
}
