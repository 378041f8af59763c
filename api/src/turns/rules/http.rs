//! `POST …/rules/resolve`.

use actix_web::{post, web};
use garde::Validate;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use super::{Resolution, RulesJob, run};
use crate::{
    app::App,
    auth::{Caller, Scope},
    error::{Error, Problem, Result},
    http::{Body, Reply, validate},
    limits::Class,
    llm::ReplyMode,
    turns::http::action_fits,
};

/// What a player does, to be decided by the rules.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ResolveInput {
    /// The player character that acts, by id or slug.
    player_id: String,
    #[garde(custom(action_fits))]
    #[schema(min_length = 1, max_length = 4000)]
    action: String,
    /// Dice rolled by hand, in the order they are consumed; needs the scope `gm`.
    dice: Option<Vec<u32>>,
    /// Only show what would come of it.
    #[serde(default)]
    preview: bool,
    reply_mode: Option<ReplyMode>,
}

/// A model says which check an action needs, and the rules decide it. A model that names none means no check.
#[utoipa::path(tag = "rules", operation_id = "resolve_action", request_body = ResolveInput,
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = Resolution), (status = "default", body = Problem)))]
#[post("/campaigns/{c}/rules/resolve")]
pub async fn resolve(
    app: web::Data<App>,
    caller: Caller,
    path: web::Path<String>,
    body: Body<ResolveInput>,
) -> Result<Reply> {
    validate::check(&body.value)?;
    let ResolveInput { player_id, action, dice, preview, reply_mode } = body.value;
    if dice.is_some() {
        caller.needs(Scope::Gm, "Giving dice")?;
    }
    app.limits.check(&caller.tenant, Class::Turns).allowed("turns")?;
    let permit = app.limits.turns.take(caller.tenant_id(), caller.tenant.limits.concurrent_turns)?;
    let mode = reply_mode.unwrap_or_else(|| app.llm.reply_mode(&caller.tenant));
    let job =
        RulesJob { campaign: path.into_inner(), player: player_id, action, mode, dice, preview, key: body.idempotency };
    let cancel = CancellationToken::new();
    // Without a key nobody could ask for the answer later, so the turn ends with its client.
    let leaving = job.key.is_none().then(|| cancel.clone().drop_guard());
    let task = actix_web::rt::spawn(async move {
        let _permit = permit;
        run(&app, &caller, &job, cancel).await
    });
    let result = task.await.map_err(Error::internal)?;
    if let Some(guard) = leaving {
        guard.disarm();
    }
    result
}
