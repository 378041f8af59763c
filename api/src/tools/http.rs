//! `GET …/tools` and `POST …/tools/{name}`: the catalogue, and a tool called by a frontend as an entity.

use actix_web::{get, post, web};
use entity::{character, npc, owner, session::Role, shapes::ToolRef};
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    ActorKind, Asking, REGISTRY, Tool, ToolCx, Work,
    shorten::{ANSWER_BYTES_MAX, shorten},
};
use crate::{
    app::App,
    auth::Caller,
    bridge::{self, Heard},
    characters,
    error::{Code, Error, Problem, Result},
    http::{
        Body, Reply, answered,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id, col},
    },
    limits::Class,
    messages::service::Reader,
    ops::metrics,
    sessions::{self, service::Playing},
    tenancy::TenantTx,
};

/// As whom a tool is called.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActorInput {
    #[serde(rename = "type")]
    kind: ActorKind,
    /// Id or slug.
    #[serde(default)]
    id: Option<String>,
}

/// One call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolInput {
    /// What the tool takes.
    #[schema(value_type = Object)]
    arguments: Value,
    actor: Option<ActorInput>,
    /// The session it happens in: what is posted or rolled is then said there, and read as its AI may read it.
    session_id: Option<Uuid>,
    /// The player character of whose turn the call is part, by id or slug: what is remembered is about it alone then, unless the
    /// campaign allows more. Without one, and outside of a player's session, the caller chooses.
    #[serde(default)]
    player_id: Option<String>,
    /// Dice rolled by hand, in the order they are consumed; needs the scope `gm`.
    #[serde(default)]
    dice: Option<Vec<u32>>,
    /// Only show what would come of it: no slot is spent, no hit point lost, no roll of the fair stream used.
    #[serde(default)]
    preview: bool,
    /// Deal the damage; without it an attack outside an encounter only says what it would do.
    #[serde(default)]
    apply: bool,
}

/// What came of a call.
#[derive(Debug, Serialize, ToSchema)]
pub struct ToolResult {
    call_id: Uuid,
    tool: &'static str,
    /// Always `succeeded`; a failed call is a problem.
    status: &'static str,
    #[schema(value_type = Object)]
    result: Value,
}

/// The tools there are.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes an answer that the registry writes")]
struct ToolCatalogue {
    /// The tools, all of them.
    items: Vec<ToolDefinition>,
    /// Always null.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// A tool, as models are told of it.
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
    /// Its name.
    name: String,
    /// What it does.
    description: String,
    /// The JSON Schema of its arguments.
    #[schema(value_type = Object)]
    parameters: Value,
}

/// The catalogue of tools with the JSON Schemas of their arguments.
#[utoipa::path(tag = "tools", operation_id = "list_tools", params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = ToolCatalogue), (status = "default", body = Problem)))]
#[get("/campaigns/{c}/tools")]
pub async fn list(app: web::Data<App>, caller: Caller, path: web::Path<String>) -> Result<Reply> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    let items: Vec<_> = REGISTRY.iter().map(|t| t.definition(None)).collect();
    Reply::ok(&json!({ "items": items, "next_cursor": null }))
}

/// Calls a tool as an entity that has it.
#[utoipa::path(tag = "tools", operation_id = "call_tool", request_body = ToolInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "The tool's name")),
    responses((status = 200, body = ToolResult), (status = "default", body = Problem)))]
#[post("/campaigns/{c}/tools/{x}")]
pub async fn call(
    app: web::Data<App>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<ToolInput>,
) -> Result<Reply> {
    if let Err(refused) = app.limits.check(&caller.tenant, Class::Tools).allowed("tool calls") {
        return answered(&app, &caller, body.idempotency.as_ref()).await?.ok_or(refused);
    }
    let (c, name) = path.into_inner();
    let tool = super::find(&name).ok_or_else(|| Error::not_found("tool"))?;
    let ToolInput { arguments, actor, session_id, player_id, dice, preview, apply } = &body.value;
    if dice.is_some() {
        caller.needs_game_master("Giving dice")?;
    }
    let own_dice = dice.is_some() || *preview;
    let heard = match session_id {
        Some(id) => {
            match ask_first(&app, &caller, (&c, *id), tool, arguments, own_dice, body.idempotency.as_ref()).await? {
                First::Replay(reply) => return Ok(reply),
                First::Heard(heard) => heard,
            }
        }
        None => None,
    };
    let done = crate::http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&c)).await?;
        let session = match session_id {
            Some(id) => Some(sessions::service::named(tx, campaign, *id).await?),
            None => None,
        };
        let (kind, entity) = actor_of(tx, campaign, tool, actor.as_ref()).await?;
        let player = match player_id {
            Some(named) => Some((characters::service::player_id(tx, campaign, named).await?, named.as_str())),
            None => None,
        };
        let work = Work::within(tx, campaign);
        let cx = ToolCx {
            effects: None,
            work: &work,
            campaign,
            kind,
            entity,
            player,
            session: session.as_ref(),
            reader: reader_of(&caller, session.as_ref()),
            turn: None,
            key: caller.author(),
            heard: heard.as_ref(),
            dice: dice.as_deref(),
            hand: None,
            preview: *preview,
            apply: *apply,
            rows_max: caller.tenant.limits.rows_per_kind,
        };
        let result = tool.run(&cx, super::called_as(&name, arguments.clone())).await.map_err(in_arguments)?;
        let result = shorten(result, ANSWER_BYTES_MAX);
        Reply::ok(&ToolResult { call_id: Uuid::now_v7(), tool: tool.name, status: "succeeded", result })
    });
    let done = done.await;
    let status = if done.is_ok() { "succeeded" } else { "failed" };
    metrics::TOOL_CALLS.with_label_values(&[tool.name, status]).inc();
    done
}

/// What comes of asking the session's frontend, before any transaction of the call.
enum First {
    /// The call was made before.
    Replay(Reply),
    Heard(Option<Heard>),
}

async fn ask_first(
    app: &App,
    caller: &Caller,
    (campaign, session): (&str, Uuid),
    tool: &Tool,
    arguments: &Value,
    has_dice: bool,
    key: Option<&IdempotencyKey>,
) -> Result<First> {
    let (session, question) = {
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        if let Some(key) = key
            && let Some(reply) = key.replay(&tx).await?
        {
            return Ok(First::Replay(reply));
        }
        let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await?;
        let session = sessions::service::named(&tx, campaign, session).await?;
        let question = tool.asks(&Asking { session: &session, has_dice }, arguments);
        (session, question)
    };
    Ok(First::Heard(bridge::before(app, &caller.actor(), &session, question).await?))
}

/// Who may not see secrets is told none by a tool either.
fn reader_of(caller: &Caller, session: Option<&Playing>) -> Reader {
    if caller.sees_secrets() {
        return session.map_or(Reader::GM, Playing::reader);
    }
    Reader { role: Role::Player, player: None }
}

/// Pointers of a tool's errors are into its arguments; the request holds those one level down. No tool takes its caller as
/// an argument, so `/actor` is the request's own.
fn in_arguments(error: Error) -> Error {
    error.with_pointers(|own| match own {
        "/actor" | "/session_id" => own.to_owned(),
        own => format!("/arguments{own}"),
    })
}

/// The actor as one that may call the tool. A tool that everyone may call needs none.
async fn actor_of(tx: &TenantTx, campaign: Uuid, tool: &Tool, actor: Option<&ActorInput>) -> Result<(ActorKind, Uuid)> {
    let Some(actor) = actor else {
        return match tool.callers.contains(&ActorKind::Gm) {
            true => Ok((ActorKind::Gm, Uuid::nil())),
            false => Err(Error::invalid("/actor", "required", "Say as whom this tool is called.")),
        };
    };
    let may_not = || Error::new(Code::Forbidden, format!("This actor may not call `{}`.", tool.name));
    if !tool.callers.contains(&actor.kind) {
        return Err(may_not());
    }
    if actor.kind == ActorKind::Gm {
        return Ok((ActorKind::Gm, Uuid::nil()));
    }
    let name = actor.id.as_deref().ok_or_else(|| Error::invalid("/actor/id", "required", "Name the actor."))?;
    let (id, listed) = tools_of(tx, campaign, actor.kind, &Ref::parse(name))
        .await?
        .ok_or_else(|| Error::invalid("/actor/id", "unknown_reference", "There is no such actor in this campaign."))?;
    if !tool.listed || listed.iter().any(|t| t.name() == tool.name) { Ok((actor.kind, id)) } else { Err(may_not()) }
}

/// An actor's id and the tools it lists.
async fn tools_of(tx: &TenantTx, campaign: Uuid, kind: ActorKind, name: &Ref) -> Result<Option<(Uuid, Vec<ToolRef>)>> {
    let named = match name {
        Ref::Id(id) => col("id").eq(*id),
        Ref::Slug(slug) => col("slug").eq(slug.as_str()),
    };
    let place = col("tenant_id").eq(tx.tenant()).and(col("campaign_id").eq(campaign)).and(named);
    Ok(match kind {
        ActorKind::Npc => npc::Entity::find().filter(place).one(tx).await?.map(|n| (n.id.0, n.available_tools.0)),
        ActorKind::Owner => owner::Entity::find().filter(place).one(tx).await?.map(|o| (o.id.0, o.available_tools.0)),
        ActorKind::Character => character::Entity::find().filter(place).one(tx).await?.map(|c| (c.id.0, Vec::new())),
        ActorKind::Gm => None,
    })
}
