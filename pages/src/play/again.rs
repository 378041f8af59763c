//! What a player does with the last answer of an NPC: tries it again, lets it go on, chooses another attempt, or stops the one that comes.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;

use super::{
    answer::{Filled, empty_or_redirect, filled, is_htmx, rendered},
    seat::Seat,
    visit::{Seating, Visitor, seated_at},
};
use crate::table::again::follow;
use ai::{
    state::Ai,
    turns::{
        again::{Next, Wished, choose_one},
        cancel::cancel,
    },
};
use base::error::Result;
use edge::http::forms::from_our_page;
use entity::{CampaignId, TurnId};

/// A form without fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pressed {}

/// Tries the answer again. The new one comes into its place.
pub async fn again(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<(String, TurnId)>,
    form: Filled<Pressed>,
) -> HttpResponse {
    pressed(visitor, &request, form, async |visitor| {
        followed(&app, &visitor, &request, &path, Next::Attempt(Wished::default())).await
    })
    .await
}

/// Lets the NPC go on from the answer.
pub async fn go_on(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<(String, TurnId)>,
    form: Filled<Pressed>,
) -> HttpResponse {
    pressed(visitor, &request, form, async |visitor| {
        followed(&app, &visitor, &request, &path, Next::Continuation).await
    })
    .await
}

async fn followed(
    app: &web::Data<Ai>,
    visitor: &Visitor,
    request: &HttpRequest,
    (link, turn): &(String, TurnId),
    next: Next,
) -> Result<HttpResponse> {
    let (caller, campaign) = Seat::take(app, visitor, link).await?.leave();
    let pending = follow(app, &caller, (CampaignId(campaign), &format!("/play/{link}")), *turn, next).await?;
    if is_htmx(request) { rendered(&pending) } else { Ok(empty_or_redirect(request, link)) }
}

/// Chooses an attempt at the answer.
pub async fn choose(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<(String, TurnId)>,
    form: Filled<Pressed>,
) -> HttpResponse {
    let (link, turn) = path.into_inner();
    pressed(visitor, &request, form, async |visitor| {
        choose_one(&app, &visitor.caller, &request, &link, turn.0, None).await?;
        Ok(empty_or_redirect(&request, &link))
    })
    .await
}

/// Stops an answer that comes.
pub async fn stop(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<(String, TurnId)>,
    form: Filled<Pressed>,
) -> HttpResponse {
    let (link, turn) = path.into_inner();
    pressed(visitor, &request, form, async |visitor| {
        cancel(&app, &visitor.caller, (&link, turn), None).await?;
        Ok(empty_or_redirect(&request, &link))
    })
    .await
}

/// Does what a button asks for, if it is one of our page.
async fn pressed(
    visitor: Seating,
    request: &HttpRequest,
    form: Filled<Pressed>,
    work: impl AsyncFnOnce(Visitor) -> Result<HttpResponse>,
) -> HttpResponse {
    seated_at(visitor, request, async |visitor| {
        from_our_page(request)?;
        let Pressed {} = filled(form)?;
        work(visitor).await
    })
    .await
}
