//! Live updates of a player's table, and replies while a model writes them, as server-sent events.

use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, BytesMut},
};
use askama::Template;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    answer::{alert, page_or_alert},
    table::{Seat, around, sheet_and_vitals},
    visit::{Seating, Visitor},
};
use crate::table::{
    live::{self, COME_BACK_AFTER, From, Onlooker},
    message::ChangedMessages,
    notes::Alert,
};
use ai::{
    reactions::replies,
    state::Ai,
    turns::events::{Event, Heard, Listener, listener},
};
use base::error::{Error, Result};
use db::{feeds::Feed, tenancy::TenantTx};
use edge::{caller::keys, http::sse};
use world::{messages::service::Which, table::Changes};

/// Follows the table: `message`, `sheet`, `vitals`, `fights`, `paused`, `people`, `here`, and `over` when the visit has ended.
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
    /// The people whom the player may write to, as last sent: the recipients and the panel.
    people: String,
    here: String,
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
        self.replies_wait |= !changes.of("reply", Some("insert")).next().is_none();
        let mut changed = ChangedMessages::of(changes);
        let mut said = seat.messages(changed.to_read()).await?;
        // What this player's rolls answer no longer asks for them.
        let answered: Vec<Uuid> = said.iter().filter_map(|message| Some(message.answers?.0)).collect();
        said.extend(seat.messages(Which::These(&answered)).await?);
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
        if changes.any(&["campaign", "character", "npc", "encounter"]) {
            let around = around(&self.app, seat, &self.link, None).await?;
            for (name, now, sent) in [
                ("paused", around.paused, &mut self.paused),
                ("people", around.people, &mut self.people),
                ("here", around.here, &mut self.here),
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
        let lives = keys::lives(&seat.tx, &self.visitor.caller).await?;
        drop(seat);
        Ok(lives && self.app.keys.is_live(&self.visitor.caller).await?)
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
        Ok(Some(listener)) => event_stream(listener),
        Ok(None) => HttpResponse::NoContent().finish(),
        Err(error) => alert(&request, &error),
    }
}

fn event_stream(listener: Listener) -> HttpResponse {
    let events = stream::unfold(Some(listener), async |listener| {
        let mut listener = listener?;
        let events = match listener.next().await {
            Ok(Heard::Silence) => return Some((Ok(sse::heartbeat()), Some(listener))),
            Ok(Heard::Events(events)) => events,
            Ok(Heard::Over) | Err(_) => return Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None)),
        };
        let mut out = BytesMut::new();
        let is_over = events.iter().any(|event| event.is_last);
        for event in &events {
            piece(&mut out, event);
        }
        // Events without text, such as tool calls, still produce a heartbeat.
        let bytes = if out.is_empty() { sse::heartbeat() } else { out.freeze() };
        Some((Ok(bytes), (!is_over).then_some(listener)))
    });
    sse::answer(events.boxed_local())
}

/// One event as a piece of the page.
fn piece(out: &mut BytesMut, event: &Event) {
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    let failure = match event.name {
        "text.delta" => {
            let text = serde_json::from_str::<Text>(event.data.get()).map(|text| text.text).unwrap_or_default();
            sse::html(out, "text", Some(&event.id), &escaped(&text));
            return;
        }
        "turn.completed" => None,
        "turn.failed" => Some("There was no answer. Your message was undone. Try again."),
        "turn.cancelled" => Some("This was cancelled."),
        _ => return,
    };
    if let Some(message) = failure {
        sse::html(out, "text", Some(&event.id), &Alert { message }.render().unwrap_or_default());
    }
    sse::html(out, "done", Some(&event.id), "");
}

fn escaped(text: &str) -> String {
    askama::filters::escape(text, askama::filters::Html).map(|text| text.to_string()).unwrap_or_default()
}
