//! What a player does in a fight by a button. The buttons are requests to the encounter, as clients of the API make them.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use ai::state::Ai;
use base::error::Result;
use db::tenancy;
use edge::http::{forms::from_our_page, page::html, resource::Ref};
use serde::Deserialize;

use super::{
    answer::{Filled, filled, is_htmx, see, told_alone},
    seat::Seat,
    visit::{Seating, Visitor, seated_at},
};
use crate::fight::{request, why_nothing};
use world::encounters::service;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// The request to the encounter, as JSON.
    action: String,
    /// `advantage` or `disadvantage` for an attack; anything else is neither.
    #[serde(default)]
    advantage: String,
}

/// Acts in a fight. The table learns of it live.
pub async fn act(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    form: Filled<Act>,
) -> HttpResponse {
    let (link, fight) = path.into_inner();
    seated_at(visitor, &request, async |visitor| acted(&app, &visitor, &request, (&link, &fight), form).await).await
}

async fn acted(
    app: &Ai,
    visitor: &Visitor,
    http: &HttpRequest,
    (link, fight): (&str, &str),
    form: Filled<Act>,
) -> Result<HttpResponse> {
    from_our_page(http)?;
    let Act { action, advantage } = filled(form)?;
    let input = request(&action, &advantage)?;
    let (caller, campaign) = Seat::take(app, visitor, link).await?.leave();
    let campaign = Ref::Id(campaign);
    let told = tenancy::write(&app.pool, caller.actor(), async |tx| {
        service::act_for(tx, &caller, (&campaign, fight), &input).await
    })
    .await?;
    match why_nothing(&told) {
        Some(why) => told_alone(http, link, &why),
        None if is_htmx(http) => Ok(html(StatusCode::OK, String::new())),
        None => Ok(see(&format!("/play/{link}?view=fights"))),
    }
}
