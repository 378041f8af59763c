//! `/campaigns/{c}/sessions`: the sessions, the world as the frontend has it, its reports, and what changed.

use actix_web::{HttpRequest, Responder, web};
use entity::session;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    SessionFilter, SessionInput, Sessions, changes,
    delta::DeltaView,
    facts::{CachedFacts, facts},
    open::open,
    reported::{read_world, take_world},
    view::SessionView,
    world_state::WorldState,
};
use base::error::{Error, Problem, Result};
use db::tenancy::{self, TenantTx};
use edge::{
    caller::Caller,
    http::{
        Answer, Body,
        etag::Expected,
        paging::{Items, ListParams, Page},
        resource::{self, Place, Ref, campaign_id},
        validate, write,
    },
    state::Edge,
};

/// The body of a request that opens a session.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a body that is read in two parts")]
pub struct SessionOpen {
    #[schema(inline)]
    #[serde(flatten)]
    session: SessionInput,
    /// The world as the frontend has it.
    world_state: Option<WorldState>,
}

/// Lists the sessions of the campaign.
#[utoipa::path(get, path = "/v1/campaigns/{c}/sessions",
    tag = "sessions", operation_id = "list_sessions",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams, SessionFilter),
    responses((status = 200, body = Items<session::Model>), (status = "default", body = Problem)))]
pub async fn list(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    page: Page<SessionFilter>,
) -> Result<impl Responder> {
    resource::list::<Sessions>(&app, &caller, Some(&path), &page).await
}

/// Opens a session: 201. If the `client_id` already has a session, it takes that over with its conversation and cursor: 200.
#[utoipa::path(post, path = "/v1/campaigns/{c}/sessions",
    tag = "sessions", operation_id = "create_session", request_body = SessionOpen,
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 201, body = SessionView), (status = 200, body = SessionView), (status = "default", body = Problem)))]
pub async fn create(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<Value>,
) -> Result<impl Responder> {
    let mut value = body.value;
    let members =
        value.as_object_mut().ok_or_else(|| Error::invalid("", "invalid_value", "The body must be an object."))?;
    let world = members.remove("world_state").filter(|w| !w.is_null());
    let input: SessionInput = edge::http::bounds::read(value)?;
    validate::check(&input)?;
    let world = world.map(|w| read_world(w, "/world_state")).transpose()?;
    write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&path)).await?;
        let place = Place { tx, campaign, caller: &caller };
        let (model, fresh) = open(&app.limits, &place, input.clone()).await?;
        if let Some(world) = world.clone() {
            take_world(tx, model.id.0, world).await?;
        }
        let view = SessionView::find(&place, model).await?;
        let version = view.session.version;
        let location = format!("{}/{}", request.path(), view.session.id);
        Ok(match fresh {
            true => Answer::created(location, version, view),
            false => Answer::versioned(version, view).at(location),
        })
    })
    .await
}

/// Reads a session and how far it has got.
#[utoipa::path(get, path = "/v1/campaigns/{c}/sessions/{x}",
    tag = "sessions", operation_id = "get_session",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = SessionView), (status = "default", body = Problem)))]
pub async fn get(app: web::Data<Edge>, caller: Caller, path: web::Path<(String, Uuid)>) -> Result<impl Responder> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path.0)).await?;
    let model = resource::find::<Sessions>(&tx, &caller, Some(&Ref::Id(campaign)), &Ref::Id(path.1)).await?;
    let view = SessionView::find(&Place { tx: &tx, campaign, caller: &caller }, model).await?;
    let version = view.session.version;
    // `state` changes without a new version. The ETag only protects writes, so reads never get 304.
    Ok(Answer::versioned(version, view))
}

/// Changes a session by a JSON merge patch.
#[utoipa::path(patch, path = "/v1/campaigns/{c}/sessions/{x}",
    tag = "sessions", operation_id = "update_session",
    request_body(content = SessionInput, content_type = "application/merge-patch+json", description = "JSON merge patch"),
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = SessionView), (status = "default", body = Problem)))]
pub async fn patch(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    mut body: Body<Value>,
) -> Result<impl Responder> {
    if let Some(members) = body.value.as_object_mut().filter(|m| m.contains_key("channel")) {
        // With another channel the scene changes too.
        members.entry("scene_id").or_insert(Value::Null);
    }
    let (c, expected) = (Ref::parse(&path.0), Expected::by(&request));
    let view = tenancy::write(&app.pool, caller.actor(), async |tx| {
        let named = (Some(&c), &Ref::Id(path.1));
        let model = resource::change_in::<Sessions>(&app, &caller, tx, &expected, named, &body.value).await?;
        SessionView::find(&Place { tx, campaign: model.campaign_id.0, caller: &caller }, model).await
    });
    let view = view.await?;
    Ok(Answer::versioned(view.session.version, view))
}

/// Ends a session. Its messages stay in the campaign. The same `client_id` starts a new session next time.
#[utoipa::path(delete, path = "/v1/campaigns/{c}/sessions/{x}",
    tag = "sessions", operation_id = "delete_session",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 204), (status = "default", body = Problem)))]
pub async fn delete(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
) -> Result<impl Responder> {
    resource::delete::<Sessions>(&app, &caller, &request, Some(&path.0), &path.1.to_string()).await
}

/// Shows what changed since the session's last completed turn, as its AI would read it now. This does not move the cursor.
#[utoipa::path(get, path = "/v1/campaigns/{c}/sessions/{x}/delta",
    tag = "sessions", operation_id = "get_session_delta",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "Id")),
    responses((status = 200, body = DeltaView), (status = "default", body = Problem)))]
pub async fn delta(app: web::Data<Edge>, caller: Caller, path: web::Path<(String, Uuid)>) -> Result<impl Responder> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path.0)).await?;
    let facts = facts(&tx, campaign, path.1, None, CachedFacts::default()).await?;
    Ok(Answer::ok(changes::delta(&tx, &facts).await?.to_view()?))
}
