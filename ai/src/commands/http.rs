//! `GET …/commands` and `POST …/commands/{name}`: the list of commands, and giving a command directly.

use actix_web::{HttpResponse, Responder, web};
use garde::Validate;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    REGISTRY,
    answer::CommandView,
    service::{CommandRequest, give},
};
use crate::{
    state::Ai,
    turns::{
        running::Asker,
        start::{Wish, respond},
    },
};
use base::error::{Error, Problem, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        Answer, Body,
        resource::{Ref, campaign_id},
        validate,
    },
};

/// A command to give.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct CommandInput {
    /// The player character who gives the command, by id or slug.
    player_id: String,
    /// The command's arguments. See the schema `Arguments.{command}`, or `parameters` in the list of commands.
    #[serde(default = "none")]
    #[schema(value_type = Object)]
    arguments: Value,
    /// The scene in which it happens, by id or slug.
    #[serde(default)]
    scene_id: Option<String>,
    /// A frontend's channel, instead of `scene_id`. The scene of this channel is used, and created if it does not exist.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    channel: Option<String>,
}

fn none() -> Value {
    json!({})
}

/// The commands that the caller may give.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes an answer that is built from the registry")]
struct CommandCatalogue {
    /// All of the commands.
    items: Vec<CommandDefinition>,
    /// Always null.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// A command in the list.
#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
struct CommandDefinition {
    /// The command's name.
    name: String,
    /// What the command does.
    description: String,
    /// The JSON Schema of the command's arguments.
    #[schema(value_type = Object)]
    parameters: Value,
    /// Whether the planner may choose the command unless the tenant's settings say otherwise.
    planned: bool,
}

/// Lists the commands that the caller may give, with the JSON Schemas of their arguments.
#[utoipa::path(get, path = "/v1/campaigns/{c}/commands",
    tag = "commands", operation_id = "list_commands", params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = CommandCatalogue), (status = "default", body = Problem)))]
pub async fn list(app: web::Data<Ai>, caller: Caller, path: web::Path<String>) -> Result<impl Responder> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    let items: Vec<_> =
        REGISTRY.iter().filter(|c| c.allowed(&caller).is_ok()).map(super::Command::definition).collect();
    Ok(Answer::ok(json!({ "items": items, "next_cursor": null })))
}

/// Gives a command as a player character.
#[utoipa::path(post, path = "/v1/campaigns/{c}/commands/{x}",
    tag = "commands", operation_id = "give_command", request_body = CommandInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "The command's name")),
    responses((status = 200, body = CommandView), (status = "default", body = Problem)))]
pub async fn command(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<CommandInput>,
) -> Result<HttpResponse> {
    let (campaign, name) = path.into_inner();
    let command = super::find(&name).ok_or_else(|| Error::not_found("command"))?;
    validate::check(&body.value)?;
    let CommandInput { player_id, arguments, scene_id, channel } = body.value;
    let wanted = CommandRequest {
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
    // Report invalid arguments before anything counts as a turn.
    command.allowed(&caller)?;
    let key = wanted.key.clone();
    let run = async move |app: web::Data<Ai>, caller: Caller, asker: Asker| {
        give(&app, &caller, command, &wanted, &asker).await
    };
    respond(app, caller, &campaign, Wish::Whole, key, run).await
}
