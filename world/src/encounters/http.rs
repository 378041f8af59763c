//! The REST routes for encounters. They do the same as the tools `manage_encounter` and `encounter_action`.

use actix_web::{HttpRequest, HttpResponse, Responder, web};
use entity::encounter;
use serde_json::Value;

use super::{
    EncounterFilter, EncounterInput, Encounters,
    answers::{ActionTold, CommitTold, EncounterView, EndTold},
    commit,
    eyes::Eyes,
    input::{ActionInput, CommitInput, CreateInput, EndInput, GetParams, ParticipantInput},
    rewind, roster,
    service::{self, Cx},
};
use base::error::{Problem, Result};
use db::tenancy::{self, TenantTx};
use edge::{
    caller::{Caller, Scope},
    http::{
        Answer, Body, NoBody,
        etag::Expected,
        paging::{self, Items, ListParams, Page},
        resource::{self, Ref, campaign_id},
    },
    state::Edge,
};

/// Begins an encounter: rolls initiative and begins the first turn. Characters change only when the encounter is
/// committed.
#[utoipa::path(post, path = "/v1/campaigns/{c}/encounters",
    tag = "encounters", operation_id = "create_encounter", request_body = CreateInput,
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 201, body = EncounterView), (status = "default", body = Problem)))]
pub async fn create(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<CreateInput>,
) -> Result<impl Responder> {
    if body.value.dice.is_some() {
        caller.needs_game_master("Giving dice")?;
    }
    if body.value.seed.is_some() {
        caller.needs(Scope::Gm, "Giving a seed")?;
    }
    edge::http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&path)).await?;
        app.limits.check_rows(tx, &caller, "encounter").await?;
        let made =
            service::create(tx, campaign, &body.value, caller.tenant.limits.rows_per_kind, Eyes::of(&caller)).await?;
        Ok(Answer::created(format!("{}/{}", request.path(), made.id), made.version, made.view))
    })
    .await
}

/// Lists active encounters. With `include_ended` also those that have ended.
#[utoipa::path(get, path = "/v1/campaigns/{c}/encounters",
    tag = "encounters", operation_id = "list_encounters",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams, EncounterFilter),
    responses((status = 200, body = Items<encounter::Model>), (status = "default", body = Problem)))]
pub async fn list(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    page: Page<EncounterFilter>,
) -> Result<impl Responder> {
    resource::list::<Encounters>(&app, &caller, Some(&path), &page).await
}

/// Reads an encounter's current state. Players see how enemies fare, not their numbers.
#[utoipa::path(get, path = "/v1/campaigns/{c}/encounters/{x}",
    tag = "encounters", operation_id = "get_encounter",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Encounter id"), GetParams),
    responses((status = 200, body = EncounterView), (status = "default", body = Problem)))]
pub async fn get(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse> {
    let params: GetParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let c = Ref::parse(&path.0);
    let cx = Cx::of(&tx, &c, &caller);
    let view = service::get(&cx, &path.1, params.verbosity).await?;
    Answer::versioned(view.version, view).unless_known(&request)
}

/// Changes the name, notes and extensions with a JSON merge patch.
#[utoipa::path(patch, path = "/v1/campaigns/{c}/encounters/{x}",
    tag = "encounters", operation_id = "update_encounter",
    request_body(content = EncounterInput, content_type = "application/merge-patch+json", description = "JSON merge patch"),
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Encounter id")),
    responses((status = 200, body = encounter::Model), (status = "default", body = Problem)))]
pub async fn patch(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body<Value>,
) -> Result<impl Responder> {
    resource::patch::<Encounters>(&app, &caller, &request, Some(&path.0), &path.1, body.value).await
}

/// Deletes an encounter with its log. What was committed stays.
#[utoipa::path(delete, path = "/v1/campaigns/{c}/encounters/{x}",
    tag = "encounters", operation_id = "delete_encounter",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Encounter id")),
    responses((status = 204), (status = "default", body = Problem)))]
pub async fn delete(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
) -> Result<impl Responder> {
    resource::delete::<Encounters>(&app, &caller, &request, Some(&path.0), &path.1).await
}

/// Does one action in an encounter, as the tool `encounter_action` does.
#[utoipa::path(post, path = "/v1/campaigns/{c}/encounters/{x}/actions",
    tag = "encounters", operation_id = "act_in_encounter", request_body = ActionInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Encounter id")),
    responses((status = 200, body = ActionTold), (status = "default", body = Problem)))]
pub async fn act(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<ActionInput>,
) -> Result<impl Responder> {
    let c = Ref::parse(&path.0);
    edge::http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        Ok(Answer::ok(service::act_for(tx, &caller, (&c, &path.1), &body.value).await?))
    })
    .await
}

/// Adds a participant to an active encounter.
#[utoipa::path(post, path = "/v1/campaigns/{c}/encounters/{x}/participants",
    tag = "encounters", operation_id = "add_encounter_participant", request_body = ParticipantInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Encounter id")),
    responses((status = 200, body = EncounterView), (status = "default", body = Problem)))]
pub async fn join(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<ParticipantInput>,
) -> Result<impl Responder> {
    let c = Ref::parse(&path.0);
    edge::http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let cx = Cx::of(tx, &c, &caller);
        Ok(Answer::ok(roster::join(&cx, &path.1, (&body.value, ""), None).await?))
    })
    .await
}

/// Takes a participant out of an active encounter. If it has the turn, the next one begins. The commit writes what the fight did to its record,
/// as of those who stayed; a record that joins again is as it was when it left.
#[utoipa::path(delete, path = "/v1/campaigns/{c}/encounters/{x}/participants/{participant}",
    tag = "encounters", operation_id = "remove_encounter_participant",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Encounter id"),
        ("participant" = String, Path, description = "The participant's id in the encounter")),
    responses((status = 204), (status = "default", body = Problem)))]
pub async fn leave(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String, String)>,
) -> Result<impl Responder> {
    let (c, x, id) = path.into_inner();
    let (c, expected) = (Ref::parse(&c), Expected::by(&request));
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        roster::remove(&Cx::of(tx, &c, &caller), &x, &id, &expected).await
    })
    .await?;
    Ok(Answer::no_content())
}

/// Takes the newest action of an active encounter back, whoever did it, with the messages that told it. Drawn dice stay drawn. With `If-Match`
/// nothing happens if somebody has acted since. What a turn did is taken back by undoing the turn.
#[utoipa::path(post, path = "/v1/campaigns/{c}/encounters/{x}/undo",
    tag = "encounters", operation_id = "undo_in_encounter",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Encounter id")),
    responses((status = 200, body = EncounterView), (status = "default", body = Problem)))]
pub async fn undo(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body<NoBody>,
) -> Result<impl Responder> {
    let NoBody {} = body.value;
    let (c, expected) = (Ref::parse(&path.0), Expected::by(&request));
    edge::http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        Ok(Answer::ok(rewind::undo(&Cx::of(tx, &c, &caller), &path.1, &expected).await?))
    })
    .await
}

/// Ends an encounter and returns what it did to each participant.
#[utoipa::path(post, path = "/v1/campaigns/{c}/encounters/{x}/end",
    tag = "encounters", operation_id = "end_encounter", request_body = EndInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Encounter id")),
    responses((status = 200, body = EndTold), (status = "default", body = Problem)))]
pub async fn end(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<EndInput>,
) -> Result<impl Responder> {
    let c = Ref::parse(&path.0);
    edge::http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let cx = Cx::of(tx, &c, &caller);
        Ok(Answer::ok(service::end(&cx, &path.1, &body.value).await?))
    })
    .await
}

/// Writes an ended encounter into the participants' records, each of them once.
#[utoipa::path(post, path = "/v1/campaigns/{c}/encounters/{x}/commit",
    tag = "encounters", operation_id = "commit_encounter", request_body = CommitInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Encounter id")),
    responses((status = 200, body = CommitTold), (status = "default", body = Problem)))]
pub async fn commit_into_records(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<CommitInput>,
) -> Result<impl Responder> {
    let c = Ref::parse(&path.0);
    edge::http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let cx = Cx::of(tx, &c, &caller);
        Ok(Answer::ok(commit::commit(&cx, &path.1, &body.value).await?))
    })
    .await
}
