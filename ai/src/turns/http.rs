//! `POST …/npcs/{x}/turns`, `POST …/owners/{x}/turns`, and the turns themselves: list, trace, cancel, undo.

use actix_web::{HttpRequest, HttpResponse, Responder, web};
use garde::Validate;
use serde::Deserialize;
use sqlx::postgres::PgRow;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{
    answer,
    cancel::{TurnCancelling, cancel},
    events,
    job::{Job, OnBusy, OnFailure, Way},
    kind::TurnKind,
    record::TurnRecord,
    running::Asker,
    start::{TurnStarted, Wish, respond},
    trace,
    undo::{self, TurnUndoing, TurnUndone},
    view::{Status, TurnView},
};
use crate::state::Ai;
use base::{
    error::{Error, Problem, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        Answer, Body, NoBody, answered, budget,
        paging::{Items, ListParams, Page, contains, pattern},
        resource::{Ref, campaign_id},
        sse, validate,
    },
};
use entity::{MessageId, TurnId, kind::EntityKind};
use llm::ReplyMode;

/// A player's action, to which an NPC or owner answers.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TurnInput {
    /// The acting player character, by id or slug.
    player_id: String,
    /// What the player does or says. Required without `message_id`.
    #[garde(inner(custom(action_fits)))]
    #[schema(min_length = 1, max_length = 4000)]
    action: Option<String>,
    /// Instead of `action`, a message of this player to everybody that nobody has answered: its words are the action, and they are not written again.
    /// Needs the scope `gm`. Undoing the turn leaves the message.
    message_id: Option<Uuid>,
    /// Whether to answer with server-sent events, as `GET …/turns/{id}/events` does.
    #[serde(default)]
    stream: bool,
    reply_mode: Option<ReplyMode>,
    /// A rules turn of this player. Its decision is a fact for the answer.
    mechanics_turn_id: Option<Uuid>,
    #[serde(default)]
    on_busy: OnBusy,
    #[serde(default)]
    on_failure: OnFailure,
}

pub(super) fn action_fits(text: &str, _: &()) -> garde::Result {
    answer::unfit(text).map_or(Ok(()), |why| Err(garde::Error::new(why)))
}

async fn start(
    app: web::Data<Ai>,
    caller: Caller,
    kind: EntityKind,
    request: &HttpRequest,
    path: (String, String),
    body: Body<TurnInput>,
) -> Result<HttpResponse> {
    validate::check(&body.value)?;
    let TurnInput { player_id, action, message_id, stream, reply_mode, mechanics_turn_id, on_busy, on_failure } =
        body.value;
    let (campaign, entity) = path;
    let key = body.idempotency;
    let mechanics = mechanics_turn_id;
    let question = message_id.map(MessageId);
    let action = match (action, question) {
        (Some(action), None) => action,
        // A repeated request finds its answer, although the message has been answered by it.
        (None, Some(question)) => match answered(&app, &caller, key.as_ref()).await? {
            Some(_) => String::new(),
            None => answer::words(&app, &caller, (&campaign, &player_id), question).await?,
        },
        (None, None) => return Err(Error::invalid("/action", "missing", "is required, unless `message_id` is given")),
        (Some(_), Some(_)) => {
            return Err(Error::invalid("/action", "invalid_value", "must be left out with `message_id`"));
        }
    };
    let usual = Job::new(&campaign, (kind, &entity), &player_id, action);
    let job = Job { mechanics, question, mode: reply_mode, on_busy, on_failure, key, ..usual };
    run(app, caller, request, stream, job).await
}

/// How an NPC or owner begins a conversation.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct GreetInput {
    /// The player character, by id or slug.
    player_id: String,
    /// Which of `greetings`, from 0.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 49, default = 0)]
    greeting: u32,
    /// Whether to answer with server-sent events.
    #[serde(default)]
    stream: bool,
}

async fn greet(
    app: web::Data<Ai>,
    caller: Caller,
    kind: EntityKind,
    request: &HttpRequest,
    path: (String, String),
    body: Body<GreetInput>,
) -> Result<HttpResponse> {
    validate::check(&body.value)?;
    let GreetInput { player_id, greeting, stream } = body.value;
    let (campaign, entity) = path;
    let usual = Job::new(&campaign, (kind, &entity), &player_id, String::new());
    let way = Way::Greeting(usize::try_from(greeting).unwrap_or(usize::MAX));
    let job = Job { key: body.idempotency, way, ..usual };
    run(app, caller, request, stream, job).await
}

async fn run(
    app: web::Data<Ai>,
    caller: Caller,
    request: &HttpRequest,
    stream: bool,
    job: Job,
) -> Result<HttpResponse> {
    let wish = Wish::of(request, stream);
    let (campaign, key) = (job.campaign.clone(), job.key.clone());
    let run =
        async move |app: web::Data<Ai>, caller: Caller, asker: Asker| answer::run(&app, &caller, &job, &asker).await;
    respond(app, caller, &campaign, wish, key, run).await
}

/// Lets an NPC begin a conversation with one of its greetings. No model is asked.
///
/// Only the first turn of a conversation can be a greeting: 409 if the NPC has spoken with the player before, or has no greetings.
#[utoipa::path(post, path = "/v1/campaigns/{c}/npcs/{x}/greet",
    tag = "turns", operation_id = "greet_as_npc", request_body = GreetInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "NPC id or slug"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: answer 202 as soon as the turn runs")),
    responses((status = 200, description = "The whole turn, or with `stream` its events as they come", content((TurnView = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The turn runs, because the request asked for `Prefer: respond-async`", body = TurnStarted), (status = "default", body = Problem)))]
pub async fn greet_npc(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body<GreetInput>,
) -> Result<HttpResponse> {
    greet(app, caller, EntityKind::Npc, &request, path.into_inner(), body).await
}

/// Lets an owner begin a conversation with one of its greetings. No model is asked.
#[utoipa::path(post, path = "/v1/campaigns/{c}/owners/{x}/greet",
    tag = "turns", operation_id = "greet_as_owner", request_body = GreetInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Owner id or slug"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: answer 202 as soon as the turn runs")),
    responses((status = 200, description = "The whole turn, or with `stream` its events as they come", content((TurnView = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The turn runs, because the request asked for `Prefer: respond-async`", body = TurnStarted), (status = "default", body = Problem)))]
pub async fn greet_owner(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body<GreetInput>,
) -> Result<HttpResponse> {
    greet(app, caller, EntityKind::Owner, &request, path.into_inner(), body).await
}

/// Lets an NPC answer a player.
#[utoipa::path(post, path = "/v1/campaigns/{c}/npcs/{x}/turns",
    tag = "turns", operation_id = "create_npc_turn", request_body = TurnInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "NPC id or slug"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: answer 202 as soon as the turn runs")),
    responses((status = 200, description = "The whole turn, or with `stream` its events as they come", content((TurnView = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The turn runs, because the request asked for `Prefer: respond-async`", body = TurnStarted), (status = "default", body = Problem)))]
pub async fn npc(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body<TurnInput>,
) -> Result<HttpResponse> {
    start(app, caller, EntityKind::Npc, &request, path.into_inner(), body).await
}

/// Lets an owner answer a player.
#[utoipa::path(post, path = "/v1/campaigns/{c}/owners/{x}/turns",
    tag = "turns", operation_id = "create_owner_turn", request_body = TurnInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Owner id or slug"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: answer 202 as soon as the turn runs")),
    responses((status = 200, description = "The whole turn, or with `stream` its events as they come", content((TurnView = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The turn runs, because the request asked for `Prefer: respond-async`", body = TurnStarted), (status = "default", body = Problem)))]
pub async fn owner(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body<TurnInput>,
) -> Result<HttpResponse> {
    start(app, caller, EntityKind::Owner, &request, path.into_inner(), body).await
}

/// Filters of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct TurnFilter {
    /// The NPC or owner whose turn it is, by id or slug.
    entity_id: Option<String>,
    /// A player character, by id or slug.
    player_id: Option<String>,
    #[param(inline)]
    status: Option<Status>,
    #[param(inline)]
    kind: Option<TurnKind>,
}

/// Lists the campaign's turns. `q` searches the actions, and requires the scope `gm`.
#[utoipa::path(get, path = "/v1/campaigns/{c}/turns",
    tag = "turns", operation_id = "list_turns",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams, TurnFilter),
    responses((status = 200, body = Items<TurnRecord>), (status = "default", body = Problem)))]
pub async fn list(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<String>,
    page: Page<TurnFilter>,
) -> Result<impl Responder> {
    super::list::may_look_for(&caller, page.q.as_deref())?;
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    let (sign, order) = if page.by_creation()? { ("<", "DESC") } else { (">", "ASC") };
    let sql = format!(
        "SELECT {}, seq FROM turn WHERE tenant_id = $1 AND campaign_id = $2 AND ($3::bigint IS NULL OR seq {sign} $3) \
           AND ($4::uuid IS NULL OR entity_id = $4) \
           AND ($12::text IS NULL OR entity_id = (SELECT a.actor_id FROM actor_slug a \
                WHERE a.tenant_id = $1 AND a.campaign_id = $2 AND a.slug = $12)) AND ($5::uuid IS NULL OR player_id = $5) \
           AND ($6::text IS NULL OR status = $6) AND ($7::text IS NULL OR kind = $7) \
           AND ($8::timestamptz IS NULL OR coalesce(finished_at, created_at) >= $8) \
           AND {contains} \
           AND ($11::text IS NULL OR player_id = (SELECT c.id FROM character c \
                WHERE c.tenant_id = $1 AND c.campaign_id = $2 AND c.slug = $11)) ORDER BY seq {order} LIMIT $10",
        trace::COLUMNS,
        contains = contains(9, &["action"]),
    );
    let named = |name: &Option<String>| match name.as_deref().map(Ref::parse) {
        Some(Ref::Id(id)) => (Some(id), None),
        Some(Ref::Slug(slug)) => (None, Some(slug)),
        None => (None, None),
    };
    let (player, slug) = named(&page.filter.player_id);
    let (entity, entity_slug) = named(&page.filter.entity_id);
    let columns = ["view", "prompt", "error", "revert_conflicts"];
    let rows = sqlx::query(sqlx::AssertSqlSafe(budget::within(&sql, columns)))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(page.after_number()?)
        .bind(entity)
        .bind(player)
        .bind(page.filter.status.map(Status::as_str))
        .bind(page.filter.kind.map(TurnKind::as_str))
        .bind(page.updated_since)
        .bind(page.q.as_deref().map(pattern))
        .bind(i64::try_from(page.limit + 1).unwrap_or(201))
        .bind(slug)
        .bind(entity_slug)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let placed = |row: &PgRow| {
        let place = (row.read::<Uuid>("id")?, row.read::<i64>("seq")?);
        Ok((place, trace::record_of_row(row, &caller)?))
    };
    let key = |((id, seq), _): &((Uuid, i64), TurnRecord)| (*id, Some(seq.to_string()));
    let turns = page.finish(stored::each(&rows, placed), page.has_more(&rows), key);
    Ok(Answer::ok(page.serialize_items(turns, key, |(_, view)| Ok(view))?))
}

/// Reads a turn. With the scope `gm`, this includes its full trace: lore decisions, model calls, the prompt's text, its journal
/// range. A player's token reads the turns of its own character.
#[utoipa::path(get, path = "/v1/campaigns/{c}/turns/{x}",
    tag = "turns", operation_id = "get_turn",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = TurnRecord), (status = "default", body = Problem)))]
pub async fn get(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
) -> Result<HttpResponse> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path.0)).await?;
    Answer::ok(trace::find(&tx, &caller, campaign, path.1).await?).tagged().unless_known(&request)
}

/// Asks a running turn to stop. Cancelling a turn that has ended is a conflict.
///
/// With the scope `gm`, the turn's effects are reverted, unless its `on_failure` is `keep`. Without it, only the words stop: what the turn
/// has done by then stays, because its outcome may be known already. A check that is decided ends the turn without a narration. A
/// game master can undo the turn. Another attempt at an answer is reverted in any case, and the former one is chosen again; once it has
/// acted in a fight, only a game master can cancel it.
#[utoipa::path(post, path = "/v1/campaigns/{c}/turns/{x}/cancel",
    tag = "turns", operation_id = "cancel_turn", params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 202, body = TurnCancelling), (status = "default", body = Problem)))]
pub async fn cancel_turn(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, Uuid)>,
    body: Body<NoBody>,
) -> Result<impl Responder> {
    let NoBody {} = body.value;
    cancel(&app, &caller, (&path.0, TurnId(path.1)), body.idempotency.as_ref()).await
}

/// Undoes all changes of a turn, or none: 409 lists what was changed since.
///
/// For a turn with more than 1,000 changes, the answer is 202 once it is certain that there are no conflicts. The changes are then
/// undone in steps. Meanwhile the turn has `reverting`; afterwards it has `undone_at`.
#[utoipa::path(post, path = "/v1/campaigns/{c}/turns/{x}/undo",
    tag = "turns", operation_id = "undo_turn", params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = TurnUndone), (status = 202, description = "There are no conflicts; the turn is being undone", body = TurnUndoing),
        (status = "default", body = Problem)))]
pub async fn undo_turn(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, Uuid)>,
    body: Body<NoBody>,
) -> Result<impl Responder> {
    let NoBody {} = body.value;
    undo::undo(&app, &caller, &path.0, path.1, body.idempotency.as_ref()).await
}

/// Streams a turn's events as server-sent events: `turn.started`, `text.delta`, `tool.call`, `tool.result`, and finally how it
/// ended. A client that lost the connection or the server reconnects with `Last-Event-ID` and gets the rest. If it has received
/// everything, the answer is 204.
#[utoipa::path(get, path = "/v1/campaigns/{c}/turns/{x}/events",
    tag = "turns", operation_id = "follow_turn",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client received")),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = 204, description = "The client has received everything"),
        (status = "default", body = Problem)))]
pub async fn follow(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
) -> Result<HttpResponse> {
    let (c, turn) = path.into_inner();
    match events::listener(app, &caller, &c, turn, sse::last_event_id(&request)).await? {
        Some(listener) => Ok(events::answer(listener)),
        None => Ok(HttpResponse::NoContent().finish()),
    }
}
