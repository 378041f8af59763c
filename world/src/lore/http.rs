//! `/campaigns/{c}/lore`, its links, its totals and its duplicates.

use actix_web::{HttpRequest, Responder, web};
use entity::lore;

use super::{
    LoreEntries, LoreFilter, LoreInput,
    bulk::BulkReport,
    links::{self, Links, MendInput},
    overview::{self, CopyInput, Duplicates, Totals},
};
use base::error::{Problem, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        self, Answer, Body,
        paging::{ListParams, Page},
        resource::{self, Place, Ref, Resource, campaign_id},
        validate,
    },
    state::Edge,
    world_routes,
};

world_routes!(
    LoreEntries,
    LoreInput,
    lore::Model,
    LoreFilter,
    "lore",
    "lore",
    "/v1/campaigns/{c}/lore",
    "/v1/campaigns/{c}/lore/{x}"
);

crate::revision_routes!(
    LoreEntries,
    lore::Model,
    "lore",
    "lore",
    "/v1/campaigns/{c}/lore/{x}/revisions",
    "/v1/campaigns/{c}/lore/{x}/revisions/{seq}/restore"
);

/// Lists what a lore entry links to, and which entries link to it.
#[utoipa::path(get, path = "/v1/campaigns/{c}/lore/{x}/links",
    tag = "lore", operation_id = "list_lore_links",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug")),
    responses((status = 200, body = Links), (status = "default", body = Problem)))]
pub async fn list_links(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Result<impl Responder> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    Ok(Answer::ok(links::of_entry(&tx, &caller, &Ref::parse(&path.0), &Ref::parse(&path.1)).await?))
}

/// Updates links that name a lore entry by a former title or slug.
///
/// This is one step that can be undone like a bulk edit.
#[utoipa::path(post, path = "/v1/campaigns/{c}/lore/{x}/mend-links",
    tag = "lore", operation_id = "mend_lore_links", request_body = MendInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug")),
    responses((status = 200, body = BulkReport), (status = "default", body = Problem)))]
pub async fn mend_links(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<MendInput>,
) -> Result<impl Responder> {
    http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&path.0)).await?;
        Ok(Answer::ok(links::mend_in(tx, &caller, campaign, &path.1, &body.value).await?))
    })
    .await
}

/// Counts the lore entries that a list with these filters would show, and their tokens, by scope.
#[utoipa::path(get, path = "/v1/campaigns/{c}/lore-totals",
    tag = "lore", operation_id = "get_lore_totals",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams, LoreFilter),
    responses((status = 200, body = Totals), (status = "default", body = Problem)))]
pub async fn totals(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    page: Page<LoreFilter>,
) -> Result<impl Responder> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    Ok(Answer::ok(overview::sum(&tx, &caller, campaign, page.q.as_deref(), &page.filter).await?))
}

/// Lists lore entries with the same title, ignoring case, or the same content.
#[utoipa::path(get, path = "/v1/campaigns/{c}/lore-duplicates",
    tag = "lore", operation_id = "list_lore_duplicates",
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = Duplicates), (status = "default", body = Problem)))]
pub async fn duplicates(app: web::Data<Edge>, caller: Caller, path: web::Path<String>) -> Result<impl Responder> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    Ok(Answer::ok(Duplicates { items: overview::equals(&tx, &caller, campaign).await? }))
}

/// Copies a lore entry. The copy gets its own slug.
#[utoipa::path(post, path = "/v1/campaigns/{c}/lore/{x}/duplicate",
    tag = "lore", operation_id = "duplicate_lore", request_body = CopyInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug")),
    responses((status = 201, body = lore::Model), (status = "default", body = Problem)))]
pub async fn duplicate(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body<CopyInput>,
) -> Result<impl Responder> {
    validate::check(&body.value)?;
    let list = request.path().trim_end_matches("/duplicate").rsplit_once('/').map_or("", |(list, _)| list);
    http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&path.0)).await?;
        app.limits.check_rows(tx, &caller, LoreEntries::TABLE).await?;
        let place = Place { tx, campaign, caller: &caller };
        let copy = overview::copy(&place, &path.1, body.value.title.clone()).await?;
        Ok(Answer::created(format!("{list}/{}", copy.id), copy.version, resource::shown::<LoreEntries>(copy, &caller)))
    })
    .await
}
