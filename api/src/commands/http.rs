//! `GET …/commands` and `POST …/commands/{name}`: the catalogue, and a command given by itself.

use actix_web::{HttpResponse, get, post, web};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    REGISTRY, Visibility,
    service::{Wanted, give},
};
use crate::{
    app::App,
    auth::Caller,
    error::{Error, Problem, Result},
    http::{
        Body, Reply,
        resource::{Ref, campaign_id},
        validate,
    },
    tenancy::TenantTx,
    turns::start::{Asker, Wish, respond},
};

/// One command.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct CommandInput {
    /// The player character who gives it, by id or slug.
    player_id: String,
    /// What the command takes: the schema `Arguments.{command}`, and `parameters` of the catalogue.
    #[serde(default = "none")]
    #[schema(value_type = Object)]
    arguments: Value,
    /// The scene it happens in, by id or slug.
    #[serde(default)]
    scene_id: Option<String>,
    /// A frontend's channel instead: its scene, which is made if there is none.
    #[garde(custom(validate::opt_line))]
    #[serde(default)]
    channel: Option<String>,
}

fn none() -> Value {
    json!({})
}

/// What came of a command.
#[derive(Debug, Serialize, ToSchema)]
pub struct CommandView {
    pub command: &'static str,
    /// Whether everyone may read it.
    #[schema(inline)]
    pub visibility: Visibility,
    #[schema(value_type = Object)]
    pub result: Value,
    /// A sentence for people.
    pub message: String,
    /// The turn that decided it; only of `check`, `do` and `use_skill`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<Uuid>,
}

/// The commands that the caller may give.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes an answer that the registry writes")]
struct CommandCatalogue {
    /// The commands, all of them.
    items: Vec<CommandDefinition>,
    /// Always null.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// A command.
#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
struct CommandDefinition {
    /// Its name.
    name: String,
    /// What it does.
    description: String,
    /// The JSON Schema of its arguments.
    #[schema(value_type = Object)]
    parameters: Value,
    /// Whether the planner may choose it unless the tenant says otherwise.
    planned: bool,
}

/// The commands that the caller may give, with the JSON Schemas of their arguments.
#[utoipa::path(tag = "commands", operation_id = "list_commands", params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = CommandCatalogue), (status = "default", body = Problem)))]
#[get("/campaigns/{c}/commands")]
pub async fn list(app: web::Data<App>, caller: Caller, path: web::Path<String>) -> Result<Reply> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    let items: Vec<_> =
        REGISTRY.iter().filter(|c| c.allowed(&caller).is_ok()).map(super::Command::definition).collect();
    Reply::ok(&json!({ "items": items, "next_cursor": null }))
}

/// Gives a command as a player character.
#[utoipa::path(tag = "commands", operation_id = "give_command", request_body = CommandInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "The command's name")),
    responses((status = 200, body = CommandView), (status = "default", body = Problem)))]
#[post("/campaigns/{c}/commands/{x}")]
pub async fn command(
    app: web::Data<App>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<CommandInput>,
) -> Result<HttpResponse> {
    let (campaign, name) = path.into_inner();
    let command = super::find(&name).ok_or_else(|| Error::not_found("command"))?;
    validate::check(&body.value)?;
    let CommandInput { player_id, arguments, scene_id, channel } = body.value;
    let wanted = Wanted {
        campaign: campaign.clone(),
        player: player_id,
        arguments,
        scene: scene_id,
        channel,
        key: body.idempotency,
    };
    if !command.is_turn() {
        return Ok(give(&app, &caller, command, &wanted, &Asker::default()).await?.into());
    }
    // Whose arguments are wrong hears it before anything counts as a turn.
    command.allowed(&caller)?;
    let key = wanted.key.clone();
    let run = async move |app: web::Data<App>, caller: Caller, asker: Asker| {
        give(&app, &caller, command, &wanted, &asker).await
    };
    respond(app, caller, &campaign, Wish::Whole, key, run).await
}
