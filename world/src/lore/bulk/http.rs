//! `/campaigns/{c}/lore/bulk`.

use actix_web::{Responder, web};
use db::tenancy;
use uuid::Uuid;

use super::{BulkInput, BulkReport, STEP, run};
use crate::edits::{self, Undone};
use base::error::{Problem, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        self, Answer, Body, NoBody,
        resource::{Ref, campaign_id},
    },
    state::Edge,
};

/// Runs an edit, or previews it.
///
/// # Errors
/// As for [`run`].
pub async fn edit(app: &Edge, caller: &Caller, c: &str, input: &BulkInput) -> Result<BulkReport> {
    let work = async |tx: &TenantTx| {
        let campaign = campaign_id(tx, caller, &Ref::parse(c)).await?;
        run(tx, caller, campaign, input).await
    };
    if input.dry_run {
        return work(&TenantTx::read(&app.pool, caller.tenant_id()).await?).await;
    }
    tenancy::write(&app.pool, caller.actor(), work).await
}

/// Changes or deletes many lore entries at once.
///
/// Either all of them are changed or none. The edit is one step that can be undone.
#[utoipa::path(post, path = "/v1/campaigns/{c}/lore/bulk",
    tag = "lore", operation_id = "bulk_edit_lore", request_body = BulkInput,
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = BulkReport), (status = "default", body = Problem)))]
pub async fn bulk(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    body: Body<BulkInput>,
) -> Result<impl Responder> {
    if body.value.dry_run {
        return Ok(Answer::ok(edit(&app, &caller, &path, &body.value).await?).into());
    }
    http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&path)).await?;
        Ok(Answer::ok(run(tx, &caller, campaign, &body.value).await?))
    })
    .await
}

/// Undoes a bulk edit.
///
/// All entries are restored, or none if one of them was changed since.
#[utoipa::path(post, path = "/v1/campaigns/{c}/lore/bulk/{x}/undo",
    tag = "lore", operation_id = "undo_lore_bulk_edit",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = Uuid, Path, description = "The edit's `step_id`")),
    responses((status = 200, body = Undone), (status = "default", body = Problem)))]
pub async fn undo(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, Uuid)>,
    body: Body<NoBody>,
) -> Result<impl Responder> {
    edits::undo(&app, &caller, &path.0, path.1, STEP, body.idempotency.as_ref()).await
}
