//! `POST …/pray`, the stream of changes, and the replies of reactions: `GET …/players/{x}/replies`, their stream, and their acknowledgement.

use std::cell::Cell;

use actix_web::{HttpRequest, HttpResponse, Responder, web};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::{
    feed::Heard,
    pray::{Prayer, queue},
    replies::{self, ReplyAnnounced, ReplyFilter, ReplyView},
    stream,
};
use crate::state::Ai;
use base::error::{Code, Error, Problem, Result};
use db::tenancy::TenantTx;
use edge::{
    auth::player,
    caller::Caller,
    http::{
        Answer, Body, NoBody, computed,
        paging::{self, Items, ListParams, Page},
        resource::{Ref, campaign_id},
        sse, validate, write,
    },
    state::Edge,
};
use world::{
    journal,
    significance::{
        report::Triggered,
        standing::{self, ReactionView},
    },
};

/// Prays as a player's character.
///
/// All owners of the character's location, race, profession and faction answer, each in a turn of its own in the background. For everybody else
/// whom it concerns, a prayer counts as the action `pray`.
#[utoipa::path(post, path = "/v1/campaigns/{c}/pray",
    tag = "significance", operation_id = "send_prayer", request_body = Prayer,
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 202, description = "The answers are queued, and the reactions of others who noticed", body = Triggered), (status = "default", body = Problem)))]
pub async fn pray(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<String>,
    body: Body<Prayer>,
) -> Result<impl Responder> {
    validate::check(&body.value)?;
    write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        Ok(Answer::accepted(queue(tx, &caller, &path, &body.value).await?))
    })
    .await
}

/// The campaign and the character of a path.
async fn place(app: &Ai, caller: &Caller, (campaign, name): (&str, &str)) -> Result<(Uuid, Uuid)> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await?;
    let player = player::find(&tx, campaign, name).await?.ok_or_else(|| Error::not_found("character"))?;
    caller.may_act_as(player)?;
    Ok((campaign, player))
}

/// Lists replies: those that a player's character can hear now, or for a game master those with another status.
///
/// The list of waiting replies drops replies that the character can no longer hear, because it has left the location or they have expired.
#[utoipa::path(get, path = "/v1/campaigns/{c}/players/{x}/replies",
    tag = "significance", operation_id = "list_replies",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Character id or slug"), ListParams, ReplyFilter),
    responses((status = 200, body = Items<ReplyView>), (status = "default", body = Problem)))]
pub async fn list_replies(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, String)>,
    page: Page<ReplyFilter>,
) -> Result<impl Responder> {
    let place = place(&app, &caller, (&path.0, &path.1)).await?;
    Ok(Answer::ok(page.serialize_items(
        replies::page(&app, &caller, place, &page).await?,
        |reply| (reply.id, None),
        Ok,
    )?))
}

/// Streams the replies for a player's character as server-sent events (`reply`). Sends each reply as soon as the
/// character can hear it.
#[utoipa::path(get, path = "/v1/campaigns/{c}/players/{x}/replies/events",
    tag = "significance", operation_id = "follow_replies",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Character id or slug")),
    responses((status = 200, description = "Events with the name `reply`", content_type = "text/event-stream", body = ReplyAnnounced), (status = "default", body = Problem)))]
pub async fn follow_replies(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse> {
    let (campaign, player) = place(&app, &caller, (&path.0, &path.1)).await?;
    stream::follow(app, caller, campaign, player)
}

/// Acknowledges that the player has seen a reply. The reply leaves the queue and becomes part of the history.
#[utoipa::path(post, path = "/v1/campaigns/{c}/replies/{x}/ack",
    tag = "significance", operation_id = "acknowledge_reply",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "The reply's id")),
    responses((status = 204, description = "The reply is delivered"), (status = "default", body = Problem)))]
pub async fn acknowledge_reply(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<NoBody>,
) -> Result<impl Responder> {
    let NoBody {} = body.value;
    computed(&app, &caller, body.idempotency.as_ref(), async || {
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        let campaign = campaign_id(&tx, &caller, &Ref::parse(&path.0)).await?;
        drop(tx);
        acknowledged(&app, &caller, (campaign, caller.player), &path.1).await
    })
    .await
}

async fn acknowledged(
    app: &Ai,
    caller: &Caller,
    (campaign, player): (Uuid, Option<Uuid>),
    reply: &str,
) -> Result<Answer<()>> {
    let id = Uuid::try_parse(reply).map_err(|_| Error::not_found("reply"))?;
    replies::acknowledge(app, caller, (campaign, player), id).await?;
    Ok(Answer::no_content())
}

/// Acknowledges a player's reply. Does the same as `acknowledge_reply`, under the player's path.
#[utoipa::path(post, path = "/v1/campaigns/{c}/players/{x}/replies/{reply}/ack",
    tag = "significance", operation_id = "acknowledge_players_reply",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Character id or slug"),
        ("reply" = Uuid, Path, description = "The reply's id")),
    responses((status = 204, description = "The reply is delivered"), (status = "default", body = Problem)))]
pub async fn acknowledge_players_reply(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, String, String)>,
    body: Body<NoBody>,
) -> Result<impl Responder> {
    let NoBody {} = body.value;
    computed(&app, &caller, body.idempotency.as_ref(), async || {
        let (campaign, player) = place(&app, &caller, (&path.0, &path.1)).await?;
        acknowledged(&app, &caller, (campaign, Some(player)), &path.2).await
    })
    .await
}

/// Ends a reaction.
///
/// One that waits gives its score back to its NPC or owner. One that runs is asked to stop, and is cancelled as soon as it has. One that has
/// failed too often is cancelled.
#[utoipa::path(post, path = "/v1/campaigns/{c}/reactions/{x}/end",
    tag = "significance", operation_id = "end_reaction",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = ReactionView), (status = "default", body = Problem)))]
pub async fn end_reaction(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<NoBody>,
) -> Result<impl Responder> {
    let running = Cell::new(None);
    let reply = write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&path.0)).await?;
        let ended = standing::end(tx, campaign, standing::reaction_id(&path.1)?).await?;
        running.set(ended.running());
        Ok(Answer::ok(ended))
    });
    let reply = reply.await?;
    // On another server the turn stops when that server renews its leases.
    if let Some(turn) = running.get() {
        app.running.cancel(turn);
    }
    Ok(reply)
}

/// Where a stream begins.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct FollowParams {
    /// The last change that the client has. By default the stream begins now. The header `Last-Event-ID` takes
    /// precedence.
    #[param(minimum = 0)]
    after: Option<i64>,
}

/// Follows the journal as server-sent events.
///
/// It shows the same changes as `GET …/changes`. Each event has the name `change`, the number of the change as `id`,
/// and the change as `data`. A stream ends after ten minutes; reconnect with `Last-Event-ID`.
///
/// A player's token, and a game master, also get what NPCs and owners say by themselves, as soon as it can be heard: an event with the name
/// `reply` and `{"reply": …}` as `data`, without an `id`. A new stream tells of all replies that wait.
#[utoipa::path(get, path = "/v1/campaigns/{c}/events",
    tag = "campaigns", operation_id = "follow_changes",
    params(("c" = String, Path, description = "Campaign id or slug"), FollowParams,
        ("Last-Event-ID" = Option<String>, Header, description = "The number of the last change that the client received")),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = "default", body = Problem)))]
pub async fn follow_changes(
    app: web::Data<Ai>,
    edge: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<HttpResponse> {
    let asked: FollowParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    let number = |id: &str| {
        let number = id.parse().ok().filter(|after: &i64| *after >= 0);
        number.ok_or_else(|| Error::new(Code::BadRequest, "`Last-Event-ID` must be the number of a change."))
    };
    let after = match sse::last_event_id(&request) {
        Some(id) => Some(number(id)?),
        None => asked.after,
    };
    if after.is_some_and(|after| after < 0) {
        return Err(paging::bad("after", "must be 0 or more"));
    }
    journal::follow(edge, caller.clone(), &path, after, Heard::by(app, caller)).await
}
