//! Routes for answers that are tried again, go on, are chosen or corrected.

use actix_web::{HttpRequest, HttpResponse, Responder, web};
use garde::Validate;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Following, Next, Wished, choose_one, correct_one};
use crate::{
    state::Ai,
    turns::{
        record::TurnRecord,
        start::{TurnStarted, Wish, respond},
        view::TurnView,
    },
};
use base::error::{Problem, Result};
use edge::{
    caller::Caller,
    http::{Answer, Body, NoBody, etag::Expected, idempotency::IdempotencyKey, validate},
};

/// How an answer is tried again.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct RegenerateInput {
    /// Slug of the model profile that answers this time. Needs the scope `gm`.
    #[garde(custom(validate::opt_slug))]
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9_-]*$")]
    model: Option<String>,
    /// What to do differently. The model reads it; it is not stored with the conversation.
    #[garde(length(chars, max = 1000))]
    #[schema(max_length = 1000)]
    hint: Option<String>,
    /// Whether all dice are rolled anew. Otherwise those of earlier attempts are repeated. Needs the scope `gm`.
    #[serde(default)]
    reroll: bool,
    /// Whether to answer with server-sent events, as `GET …/turns/{id}/events` does.
    #[serde(default)]
    stream: bool,
}

/// How an answer goes on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContinueInput {
    /// Whether to answer with server-sent events, as `GET …/turns/{id}/events` does.
    #[serde(default)]
    stream: bool,
}

/// A corrected answer.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TurnPatch {
    #[garde(custom(narrative_fits))]
    #[schema(min_length = 1, max_length = 20_000)]
    narrative: String,
}

fn narrative_fits(text: &str, _: &()) -> garde::Result {
    match text.chars().count() {
        _ if text.trim().is_empty() => Err(garde::Error::new("must not be blank")),
        n if n > 20_000 => Err(garde::Error::new("must have at most 20000 characters")),
        _ => Ok(()),
    }
}

/// Tries the last answer of a conversation again. The server reverts the changes of the chosen attempt and runs a new one, which is then
/// chosen.
///
/// The other attempts stay as `alternatives`; `…/choose` chooses one of them. Later prompts contain only the chosen one. The dice of earlier
/// attempts are repeated, however a formula is written. If the new attempt fails, the former one is chosen again. Another
/// attempt at a greeting is the next greeting, without a model.
#[utoipa::path(post, path = "/v1/campaigns/{c}/turns/{x}/regenerate",
    tag = "turns", operation_id = "regenerate_turn", request_body = RegenerateInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: answer 202 as soon as the turn runs")),
    responses((status = 200, description = "The whole turn, or with `stream` its events as they come", content((TurnView = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The turn runs, because the request asked for `Prefer: respond-async`", body = TurnStarted), (status = "default", body = Problem)))]
pub async fn regenerate(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    body: Body<RegenerateInput>,
) -> Result<HttpResponse> {
    validate::check(&body.value)?;
    let (campaign, turn) = path.into_inner();
    let RegenerateInput { model, hint, reroll, stream } = body.value;
    let wish = Wish::of(&request, stream);
    let next = Next::Attempt(Wished { model, hint, reroll });
    follow(app, caller, Following { campaign, turn, next }, wish, body.idempotency).await
}

/// Lets the NPC or owner go on from its last answer, as a turn of its own.
#[utoipa::path(post, path = "/v1/campaigns/{c}/turns/{x}/continue",
    tag = "turns", operation_id = "continue_turn", request_body = ContinueInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`: answer 202 as soon as the turn runs")),
    responses((status = 200, description = "The whole turn, or with `stream` its events as they come", content((TurnView = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The turn runs, because the request asked for `Prefer: respond-async`", body = TurnStarted), (status = "default", body = Problem)))]
pub async fn go_on(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    body: Body<ContinueInput>,
) -> Result<HttpResponse> {
    let (campaign, turn) = path.into_inner();
    let wish = Wish::of(&request, body.value.stream);
    follow(app, caller, Following { campaign, turn, next: Next::Continuation }, wish, body.idempotency).await
}

async fn follow(
    app: web::Data<Ai>,
    caller: Caller,
    wanted: Following,
    wish: Wish,
    key: Option<IdempotencyKey>,
) -> Result<HttpResponse> {
    let (campaign, its_key) = (wanted.campaign.clone(), key.clone());
    let run = move |app, caller, asker| super::run(app, caller, asker, wanted, its_key);
    respond(app, caller, &campaign, wish, key, run).await
}

/// Chooses one of an answer's alternatives. The effects of the chosen one are reverted and those of this one applied, both or neither.
///
/// Ten rows that are exchanged count as one request. 409 `undo_conflict` lists rows that were changed since or are locked for AI tools
/// (`ai_lock`), and owners that cannot pay again. After a game master undid the answer, 409 `conflict` for everybody without the scope `gm`.
#[utoipa::path(post, path = "/v1/campaigns/{c}/turns/{x}/choose",
    tag = "turns", operation_id = "choose_turn",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = TurnRecord), (status = "default", body = Problem)))]
pub async fn choose(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    body: Body<NoBody>,
) -> Result<impl Responder> {
    let NoBody {} = body.value;
    choose_one(&app, &caller, &request, &path.0, path.1, body.idempotency.as_ref()).await
}

/// Corrects the narrative of an answer. Later prompts have the corrected text; the trace keeps what the model wrote.
#[utoipa::path(patch, path = "/v1/campaigns/{c}/turns/{x}",
    tag = "turns", operation_id = "update_turn", request_body(content = TurnPatch, content_type = "application/merge-patch+json"),
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = TurnRecord), (status = "default", body = Problem)))]
pub async fn correct(
    app: web::Data<Ai>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    body: Body<TurnPatch>,
) -> Result<impl Responder> {
    validate::check(&body.value)?;
    let expected = Expected::by(&request);
    let record = correct_one(&app, &caller, &path.0, path.1, &body.value.narrative, &expected).await?;
    Ok(Answer::ok(record).tagged())
}
