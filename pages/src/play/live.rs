//! Live updates of a player's table, and replies while a model writes them, as server-sent events.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    answer::{alert, page_or_alert},
    around::around,
    seat::Seat,
    table::sheet_and_vitals,
    visit::{Seating, Visitor},
};
use crate::table::{
    live::{self, From, Onlooker},
    message::ChangedMessages,
    reply,
};
use ai::{reactions::replies, state::Ai, turns::events::listener};
use base::error::{Error, Result};
use db::{feeds::Feed, tenancy::TenantTx};
use edge::http::sse;
use entity::MessageId;
use world::{messages::visible::Which, table::Changes};

/// Follows the table: `message`, `sheet`, `vitals`, `fights`, `paused`, `people`, `here`, `location`, and `over` when the visit has ended.
pub async fn follow(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<String>,
    from: web::Query<From>,
) -> HttpResponse {
    let after = from.into_inner().or_later(&request);
    let stream = match visitor {
        Ok(visitor) => followed(app, visitor, &request, &path, after).await,
        Err(unseated) => Err(unseated.error),
    };
    match stream {
        Err(error) if live::is_over(&error) => live::over(Player::OVER),
        stream => page_or_alert(&request, stream),
    }
}

async fn followed(
    app: web::Data<Ai>,
    visitor: Visitor,
    request: &HttpRequest,
    link: &str,
    after: i64,
) -> Result<HttpResponse> {
    let campaign = Seat::take(&app, &visitor, link).await?.campaign;
    let tenant = visitor.caller.tenant_id();
    let link_over = visitor.caller.link.map(|id| app.open_links.watch((tenant, id)));
    let renewal = visitor.renewal(&app, request)?;
    let player = Player {
        app: app.clone(),
        visitor,
        campaign,
        link: link.to_owned(),
        link_over,
        people: String::new(),
        here: String::new(),
        location: String::new(),
        paused: String::new(),
        replies_wait: true,
    };
    let mut response = live::follow(app, player, after)?;
    if let Some(cookie) = renewal {
        response.add_cookie(&cookie).map_err(Error::internal)?;
    }
    Ok(response)
}

/// A player whose page is open.
struct Player {
    app: web::Data<Ai>,
    visitor: Visitor,
    campaign: Uuid,
    link: String,
    /// Whether the player's link no longer works.
    link_over: Option<watch::Receiver<bool>>,
    /// The people whom the player may write to, as last sent: the recipients and the panel. Then where the character is.
    people: String,
    here: String,
    location: String,
    /// Whether the AI is paused, as last sent.
    paused: String,
    /// Whether replies may wait for the player.
    replies_wait: bool,
}

impl Onlooker for Player {
    type Seat = Seat;

    const OVER: &'static str = "Your visit is over. Open your player link again.";

    fn place(&self) -> Feed {
        (self.visitor.caller.tenant_id(), self.campaign)
    }

    async fn take_seat(&self) -> Result<Seat> {
        Seat::take(&self.app, &self.visitor, &self.link).await
    }

    fn tx(seat: &Seat) -> &TenantTx {
        &seat.tx
    }

    async fn pieces(&mut self, seat: &Seat, changes: &Changes) -> Result<Vec<(&'static str, String)>> {
        self.replies_wait |= changes.of("reply", Some("insert")).next().is_some();
        let mut changed = ChangedMessages::of(changes);
        let mut said = seat.messages(changed.to_read()).await?;
        // What this player's rolls answer no longer asks for them.
        let answered: Vec<MessageId> = said.iter().filter_map(|message| message.answers).collect();
        let ids: Vec<Uuid> = answered.iter().map(|id| id.0).collect();
        said.extend(seat.messages(Which::These(&ids)).await?);
        changed.also(answered);
        let done = seat.done(&said).await?;
        let table = format!("/play/{}", self.link);
        let mut pieces = changed.pieces(&said, |message| done.foot(&table, message))?;
        if changes.of("character", None).any(|change| change.row == seat.player) || changes.any(&["encounter"]) {
            let (sheet, vitals) = sheet_and_vitals(seat, &seat.character().await?, &self.link).await?;
            pieces.extend([("sheet", sheet), ("vitals", vitals)]);
        }
        if changes.any(&["encounter"]) {
            pieces.push(("fights", seat.fights(&self.link).await?.render().map_err(Error::internal)?));
        }
        // Whoever has answered the player is no longer new to them.
        let is_answered = said.iter().any(|message| message.talk.is_some_and(|(_, player)| player == seat.player));
        if is_answered || changes.any(&["campaign", "character", "npc", "encounter", "lore"]) {
            let around = around(&self.app, seat, &self.link, None).await?;
            for (name, now, sent) in [
                ("paused", around.paused, &mut self.paused),
                ("people", around.people, &mut self.people),
                ("here", around.here, &mut self.here),
                ("location", around.location, &mut self.location),
            ] {
                if now != *sent {
                    pieces.push((name, now.clone()));
                    *sent = now;
                }
            }
        }
        Ok(pieces)
    }

    async fn may_stay(&self, seat: Seat) -> Result<bool> {
        self.visitor.may_stay(&self.app, seat.tx).await
    }

    async fn looked(&mut self) -> Result<()> {
        if std::mem::take(&mut self.replies_wait) {
            // They become messages, which arrive like all others.
            let visitor = &self.visitor;
            replies::deliver_all(&self.app, &visitor.caller, self.campaign, visitor.player).await?;
        }
        Ok(())
    }

    /// Waits until the link no longer works; forever without a link, or when the server stops.
    async fn shown_out(&mut self) {
        if let Some(link) = &mut self.link_over
            && link.wait_for(|is_over| *is_over).await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}

/// A reply while the model writes it: `text` in pieces, and `done`.
pub async fn turn(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
) -> HttpResponse {
    let (link, turn) = path.into_inner();
    let visitor = match visitor {
        Ok(visitor) => visitor,
        Err(unseated) => return unseated.page(""),
    };
    match listener(app.clone(), &visitor.caller, &link, turn, sse::last_event_id(&request)).await {
        Ok(Some(listener)) => reply::event_stream(listener),
        Ok(None) => HttpResponse::NoContent().finish(),
        Err(error) => alert(&request, &error),
    }
}
