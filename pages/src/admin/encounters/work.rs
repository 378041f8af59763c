//! What the forms of an encounter's page do, and what is said of it.

use actix_web::HttpResponse;
use uuid::Uuid;

use crate::admin::InCampaign;
use base::error::{Code, Result};
use db::tenancy;
use edge::http::resource::Ref;
use world::encounters::service::Cx;

/// Works on the page's encounter in a transaction, and shows how it stands.
pub(super) async fn work(
    at: &InCampaign,
    work: impl AsyncFn(&Cx<'_>, &str) -> Result<Option<String>>,
) -> Result<HttpResponse> {
    let campaign = Ref::Id(at.campaign.id.0);
    let id = at.path("x");
    let done =
        tenancy::write(&at.app.pool, at.caller.actor(), async |tx| work(&Cx::of(tx, &campaign, &at.caller), id).await);
    said(at, done.await)
}

/// Shows how the fight stands, with what came of something. Nothing has changed if it was refused, because the fight was no longer as the
/// page showed it; then the message says why.
pub(super) fn said(at: &InCampaign, done: Result<Option<String>>) -> Result<HttpResponse> {
    let message = match done {
        Ok(told) => told.filter(|message| !message.is_empty()).unwrap_or_else(|| "Done.".to_owned()),
        Err(error) if error.code == Code::PreconditionFailed => {
            "Somebody acted meanwhile, so nothing was changed. This is how the fight stands now.".to_owned()
        }
        Err(error) if is_late(error.code) => {
            error.errors.first().map_or_else(|| error.detail.to_string(), |field| field.message.clone())
        }
        Err(error) => return Err(error),
    };
    Ok(at.redirect(&here(at), &message))
}

/// The path of the page's encounter.
pub(super) fn here(at: &InCampaign) -> String {
    let id = Uuid::try_parse(at.path("x")).unwrap_or_default();
    at.url(&format!("encounters/{id}"))
}

/// Whether an action was refused because the fight is no longer as the page showed it.
const fn is_late(code: Code) -> bool {
    matches!(
        code,
        Code::NotYourTurn
            | Code::NoActionLeft
            | Code::NotDying
            | Code::EncounterAlreadyEnded
            | Code::EncounterNotEnded
            | Code::Conflict
            | Code::ValidationFailed
    )
}
