//! `GET …/tools` and `POST …/tools/{name}`: the list of tools, and calling a tool as an NPC, owner, character or game master.

use actix_web::{Responder, web};
use edge::auth::player;
use entity::{
    session::Role,
    shapes::{Extensions, ToolRef},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;
use world::playing;

use super::{
    Grant, REGISTRY, Tool, Work, paid,
    shorten::{ANSWER_BYTES_MAX, shorten},
    spec::{ActorKind, Asking, ToolCx},
};
use crate::{
    frontends::{self, question::Heard},
    state::Ai,
    turns::view::{CallError, CallStatus},
};
use base::{
    clock,
    error::{Code, Error, Problem, Result},
    metrics,
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        Answer, Body, StoredAnswer, Written, answered,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id},
    },
    limits::Class,
};
use world::{
    owners::influence::Prices,
    playing::{Playing, Reader},
};

/// The actor who calls a tool.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActorInput {
    #[serde(rename = "type")]
    kind: ActorKind,
    /// The actor's id or slug.
    #[serde(default)]
    id: Option<String>,
}

/// A tool call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolInput {
    /// The tool's arguments.
    #[schema(value_type = Object)]
    arguments: Value,
    actor: Option<ActorInput>,
    /// The session in which the call happens. Messages and rolls appear there, and the call reads what the session's AI may read.
    session_id: Option<Uuid>,
    /// The player character of the turn to which the call belongs, by id or slug. Memories may then only be about this player,
    /// unless the campaign allows more. Without it, and outside of a player's session, the caller may choose.
    #[serde(default)]
    player_id: Option<String>,
    /// Dice rolled by hand, in the order in which they are used. Needs the scope `gm`.
    #[serde(default)]
    dice: Option<Vec<u32>>,
    /// Whether to only show the result: no slot is spent, no hit points change, and the fair dice are not used. Only for tools that
    /// decide or look something up.
    #[serde(default)]
    preview: bool,
    /// Whether to deal the damage. Without it, an attack outside of an encounter only shows what it would do.
    #[serde(default)]
    apply: bool,
}

/// The result of a call.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolResult {
    call_id: Uuid,
    tool: &'static str,
    /// `rejected`: an owner may not make this call now. `failed`: the world does not allow it. Other errors are answered with a problem.
    status: CallStatus,
    /// The result of a call that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    /// Why the call did not succeed. Nothing has changed, and nobody has paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallError>,
}

impl ToolResult {
    fn of(tool: &Tool, status: CallStatus) -> Self {
        Self { call_id: clock::id(), tool: tool.name, status, result: None, error: None }
    }
}

/// Errors that are the outcome of a call, and no fault of the request.
const OUTCOMES: [Code; 4] = [Code::InsufficientInfluence, Code::NotInDomain, Code::Locked, Code::NotEnough];

/// The list of tools.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes an answer that is built from the registry")]
struct ToolCatalogue {
    /// All of the tools.
    items: Vec<ToolDefinition>,
    /// Always null.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// A tool as it is described to models.
#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
struct ToolDefinition {
    /// Always `function`.
    #[serde(rename = "type")]
    kind: String,
    /// The tool itself.
    function: ToolFunction,
}

/// A tool's name, purpose and arguments.
#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
struct ToolFunction {
    /// The tool's name.
    name: String,
    /// What the tool does.
    description: String,
    /// The JSON Schema of the arguments.
    #[schema(value_type = Object)]
    parameters: Value,
}

/// Lists the tools, with the JSON Schemas of their arguments.
#[utoipa::path(get, path = "/v1/campaigns/{c}/tools",
    tag = "tools", operation_id = "list_tools", params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = ToolCatalogue), (status = "default", body = Problem)))]
pub async fn list(app: web::Data<Ai>, caller: Caller, path: web::Path<String>) -> Result<impl Responder> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    let items: Vec<_> = REGISTRY.iter().map(|t| t.definition(None)).collect();
    Ok(Answer::ok(json!({ "items": items, "next_cursor": null })))
}

/// Calls a tool as an actor that has it.
#[utoipa::path(post, path = "/v1/campaigns/{c}/tools/{x}",
    tag = "tools", operation_id = "call_tool", request_body = ToolInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "The tool's name")),
    responses((status = 200, body = ToolResult), (status = "default", body = Problem)))]
pub async fn call(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<ToolInput>,
) -> Result<impl Responder> {
    if let Err(refused) = app.limits.check(&caller.tenant, Class::Tools).allowed("tool calls") {
        let stored = answered(&app, &caller, body.idempotency.as_ref()).await?.ok_or(refused)?;
        return Ok(Written::Before(stored));
    }
    let (c, name) = path.into_inner();
    let tool = super::find(&name).ok_or_else(|| Error::not_found("tool"))?;
    let ToolInput { arguments, actor, session_id, player_id, dice, preview, apply } = &body.value;
    if dice.is_some() {
        caller.needs_game_master("Giving dice")?;
    }
    if *preview && !tool.previews {
        let message = "This tool has nothing to preview. Leave this out to call it.";
        return Err(Error::invalid("/preview", "invalid_value", message));
    }
    let own_dice = dice.is_some() || *preview;
    let heard = match session_id {
        Some(id) => {
            let given = super::called_as(&name, arguments.clone());
            let wish = Wish { tool, actor: actor.as_ref(), given, has_dice: own_dice };
            match ask_first(&app, &caller, (&c, *id), wish, body.idempotency.as_ref()).await? {
                First::Replay(stored) => return Ok(Written::Before(stored)),
                First::Heard(heard) => heard,
            }
        }
        None => None,
    };
    let done = edge::http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&c)).await?;
        let session = match session_id {
            Some(id) => Some(playing::named(tx, campaign, *id).await?),
            None => None,
        };
        let ActorNow { kind, id: entity, grant, prices } = actor_of(tx, campaign, tool, actor.as_ref()).await?;
        let player = match player_id {
            Some(named) => Some((player::id(tx, campaign, named).await?, named.as_str())),
            None => None,
        };
        let work = Work::within(tx, campaign);
        let cx = ToolCx {
            effects: None,
            work: &work,
            corpora: &app.prompts.corpora,
            campaign,
            kind,
            entity,
            player,
            session: session.as_ref(),
            reader: reader_of(&caller, session.as_ref()),
            turn: None,
            is_command: false,
            key: caller.author(),
            heard: heard.as_ref(),
            dice: dice.as_deref(),
            hand: None,
            earlier: None,
            preview: *preview,
            apply: *apply,
            rows_max: caller.tenant.limits.rows_per_kind,
        };
        let given = grant.arguments(super::called_as(&name, arguments.clone())).map_err(in_arguments)?;
        let price = paid::price(&prices, kind, tool);
        let result = paid::run(&cx, tool, given, price).await.map_err(in_arguments)?;
        let result = shorten(result, ANSWER_BYTES_MAX);
        Ok(Answer::ok(ToolResult { result: Some(result), ..ToolResult::of(tool, CallStatus::Succeeded) }))
    });
    answer(&app, &caller, body.idempotency.as_ref(), tool, done.await).await
}

/// The answer to a call that has run. What is the outcome of a call, and no fault of the request, is answered with 200.
async fn answer(
    app: &Ai,
    caller: &Caller,
    key: Option<&IdempotencyKey>,
    tool: &Tool,
    done: Result<Written<ToolResult>>,
) -> Result<Written<ToolResult>> {
    let (status, done) = match done {
        Err(error) if OUTCOMES.contains(&error.code) => {
            let status = CallStatus::of_error(error.code.as_str());
            let told = ToolResult { error: Some(CallError::from(&error)), ..ToolResult::of(tool, status) };
            let answer = Answer::ok(told);
            // What the call wrote is gone. Its key keeps the answer all the same.
            (status, edge::http::write(app, caller, key, async |_| Ok(answer.clone())).await)
        }
        Ok(done) => (CallStatus::Succeeded, Ok(done)),
        failed => (CallStatus::Failed, failed),
    };
    metrics::TOOL_CALLS.with_label_values(&[tool.name, status.as_str()]).inc();
    done
}

/// The result of asking the session's frontend, before the call has a transaction.
enum First {
    /// The same call was made before.
    Replay(StoredAnswer),
    Heard(Option<Heard>),
}

/// A call that may have to ask the session's frontend first.
struct Wish<'a> {
    tool: &'static Tool,
    actor: Option<&'a ActorInput>,
    given: Value,
    has_dice: bool,
}

/// Asks the session's frontend, if the call needs that. A call that is not allowed asks nothing: its error is found when it runs.
async fn ask_first(
    app: &Ai,
    caller: &Caller,
    (campaign, session): (&str, Uuid),
    Wish { tool, actor, given, has_dice }: Wish<'_>,
    key: Option<&IdempotencyKey>,
) -> Result<First> {
    let (session, question) = {
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        if let Some(key) = key
            && let Some(stored) = key.replay(&tx).await?
        {
            return Ok(First::Replay(stored));
        }
        let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await?;
        let session = playing::named(&tx, campaign, session).await?;
        let given = match actor_of(&tx, campaign, tool, actor).await {
            Ok(now) => now.grant.arguments(given).ok(),
            Err(error) if error.cause().is_none() => None,
            Err(error) => return Err(error),
        };
        let question = given.and_then(|given| tool.asks(&Asking { session: &session, has_dice }, &given));
        (session, question)
    };
    if question.is_some() {
        app.admission.wait(caller.tenant_id())?;
    }
    Ok(First::Heard(frontends::ask::before(&app.frontends, &caller.actor(), &session, question).await?))
}

/// A caller who may not see secrets must not read them through a tool either.
fn reader_of(caller: &Caller, session: Option<&Playing>) -> Reader {
    if caller.sees_secrets() {
        return session.map_or(Reader::GM, Playing::reader);
    }
    Reader { role: Role::Player, player: None }
}

/// Makes a tool's errors point into the request. A tool's own pointers are relative to its arguments, which are one
/// level down in the request. No tool takes its caller as an argument, so `/actor` always means the request's own
/// member.
fn in_arguments(error: Error) -> Error {
    error.with_pointers(|own| match own {
        "/actor" | "/session_id" => own.to_owned(),
        own => format!("/arguments{own}"),
    })
}

/// Who calls a tool, as the call runs.
struct ActorNow {
    kind: ActorKind,
    id: Uuid,
    grant: Grant,
    prices: Prices,
}

/// Checks that the actor may call the tool. A tool for everyone needs no actor.
async fn actor_of(tx: &TenantTx, campaign: Uuid, tool: &'static Tool, actor: Option<&ActorInput>) -> Result<ActorNow> {
    let now = |kind, id| ActorNow { kind, id, grant: Grant::from(tool), prices: Prices::default() };
    let Some(actor) = actor else {
        return match tool.callers.contains(&ActorKind::Gm) {
            true => Ok(now(ActorKind::Gm, Uuid::nil())),
            false => Err(Error::invalid("/actor", "required", "Name the actor that calls this tool.")),
        };
    };
    let may_not = || Error::new(Code::Forbidden, format!("This actor may not call `{}`.", tool.name));
    if !tool.callers.contains(&actor.kind) {
        return Err(may_not());
    }
    if actor.kind == ActorKind::Gm {
        return Ok(now(ActorKind::Gm, Uuid::nil()));
    }
    let name = actor.id.as_deref().ok_or_else(|| Error::invalid("/actor/id", "required", "Name the actor."))?;
    let (id, listed, prices) = tools_of(tx, campaign, actor.kind, &Ref::parse(name))
        .await?
        .ok_or_else(|| Error::invalid("/actor/id", "unknown_reference", "There is no such actor in this campaign."))?;
    let entry = listed.iter().find(|entry| super::find(entry.name()).is_some_and(|found| found.name == tool.name));
    match entry {
        Some(entry) => Ok(ActorNow { grant: Grant::of(tool, entry), prices, ..now(actor.kind, id) }),
        None if !tool.listed => Ok(ActorNow { prices, ..now(actor.kind, id) }),
        None => Err(may_not()),
    }
}

/// An actor's id, the tools that it lists, and their prices. One statement.
async fn tools_of(
    tx: &TenantTx,
    campaign: Uuid,
    kind: ActorKind,
    name: &Ref,
) -> Result<Option<(Uuid, Vec<ToolRef>, Prices)>> {
    let (table, listed) = match kind {
        ActorKind::Npc => ("npc", "a.available_tools"),
        ActorKind::Owner => ("owner", "a.available_tools"),
        ActorKind::Character => ("character", "'[]'::jsonb"),
        ActorKind::Gm => return Ok(None),
    };
    let (id, slug) = match name {
        Ref::Id(id) => (Some(*id), None),
        Ref::Slug(slug) => (None, Some(slug.as_str())),
    };
    let sql = format!(
        "SELECT a.id, {listed} AS listed, c.settings FROM {table} a JOIN campaign c ON c.tenant_id = a.tenant_id AND c.id = a.campaign_id \
         WHERE a.tenant_id = $1 AND a.campaign_id = $2 AND (a.id = $3 OR a.slug = $4)"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(id)
        .bind(slug)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    let Some(row) = row else { return Ok(None) };
    // A list that cannot be read counts as empty.
    let listed = serde_json::from_value(row.read("listed")?).unwrap_or_default();
    let settings: sqlx::types::Json<Extensions> = row.read("settings")?;
    Ok(Some((row.read("id")?, listed, Prices::of(&settings.0))))
}
