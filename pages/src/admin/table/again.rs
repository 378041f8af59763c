//! What a game master does with the last answer of an NPC to a player: tries it again, lets it go on, chooses another attempt, or stops the
//! one that comes.

use actix_web::HttpResponse;
use entity::TurnId;

use super::answer::done;
use crate::{
    admin::{InCampaign, answer::is_htmx},
    table::again::follow,
};
use ai::turns::{
    again::{Next, Wished, choose_one},
    cancel::cancel,
};
use base::error::{Error, Result};

/// Tries the answer again. The new one comes into its place.
pub async fn again(at: InCampaign) -> Result<HttpResponse> {
    followed(&at, Next::Attempt(Wished::default())).await
}

/// Lets the NPC go on from the answer.
pub async fn go_on(at: InCampaign) -> Result<HttpResponse> {
    followed(&at, Next::Continuation).await
}

async fn followed(at: &InCampaign, next: Next) -> Result<HttpResponse> {
    let place = (at.campaign.id, &*at.url("table"));
    match follow(&at.app, &at.caller, place, turn(at)?, next).await {
        Ok(pending) if is_htmx(&at.request) => at.piece(&pending),
        followed => done(at, followed.map(drop)),
    }
}

/// Chooses an attempt at the answer.
pub async fn choose(at: InCampaign) -> Result<HttpResponse> {
    let campaign = at.campaign.id.0.to_string();
    let chosen = choose_one(&at.app, &at.caller, &at.request, &campaign, turn(&at)?.0, None).await;
    done(&at, chosen.map(drop))
}

/// Stops an answer that comes.
pub async fn stop(at: InCampaign) -> Result<HttpResponse> {
    let campaign = at.campaign.id.0.to_string();
    let stopped = cancel(&at.app, &at.caller, (&campaign, turn(&at)?), None).await;
    done(&at, stopped.map(drop))
}

fn turn(at: &InCampaign) -> Result<TurnId> {
    at.path("x").parse().map(TurnId).map_err(|_| Error::not_found("turn"))
}
