//! Letting an NPC answer a player now.

use actix_web::{HttpRequest, HttpResponse};
use entity::{MessageId, TurnId, kind::EntityKind};
use uuid::Uuid;

use super::{answer::done, lines};
use crate::{
    admin::{InCampaign, answer::is_htmx},
    table::reply::{Pending, event_stream},
};
use ai::{
    state::Ai,
    turns::{
        answer::{self, words},
        events::listener,
        job::Job,
        running::Asker,
        start::start,
    },
};
use base::error::{Error, Result};
use edge::{
    caller::Caller,
    http::{
        resource::{self, Ref},
        sse,
    },
};
use world::npcs::Npcs;

/// Lets an NPC answer what a player said.
pub async fn answer_now(at: InCampaign) -> Result<HttpResponse> {
    match answered(&at).await {
        Ok((turn, npc)) if is_htmx(&at.request) => at.piece(&Pending::of(&at.url("table"), TurnId(turn), npc)),
        answered => done(&at, answered.map(drop)),
    }
}

/// The turn in which an NPC answers, and the NPC's name.
async fn answered(at: &InCampaign) -> Result<(Uuid, String)> {
    let id = at.form.text("message");
    let line = lines::find(at, id).await.map_err(lines::late)?;
    let nobody = || Error::invalid("/message", "invalid_value", "No character said this, so nobody can answer it.");
    let player = line.player_id.ok_or_else(nobody)?.to_string();
    let campaign = at.campaign.id.0.to_string();
    let npc = {
        let (tx, slug) = (at.read().await?, Ref::parse(at.form.text("npc")));
        resource::find::<Npcs>(&tx, &at.caller, Some(&Ref::Id(at.campaign.id.0)), &slug).await?
    };
    let question = MessageId(line.id.0);
    let action = words(&at.app, &at.caller, (&campaign, &player), question).await?;
    let job = Job::new(&campaign, (EntityKind::Npc, &npc.slug), &player, action);
    let job = Job { question: Some(question), ..job };
    let run = async move |app: actix_web::web::Data<Ai>, caller: Caller, asker: Asker| {
        answer::run(&app, &caller, &job, &asker).await
    };
    let turn = start(&at.app, &at.caller, true, run)?.turn().await?;
    Ok((turn, npc.name))
}

/// An answer while the model writes it.
pub async fn turn(at: InCampaign, request: HttpRequest) -> Result<HttpResponse> {
    let turn = Uuid::try_parse(at.path("x")).map_err(|_| Error::not_found("turn"))?;
    let campaign = at.campaign.id.0.to_string();
    match listener(at.app.clone(), &at.caller, &campaign, turn, sse::last_event_id(&request)).await? {
        Some(listener) => Ok(event_stream(listener)),
        None => Ok(HttpResponse::NoContent().finish()),
    }
}
