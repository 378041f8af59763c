//! Live updates of the table: pieces of the page as server-sent events.

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Bytes, BytesMut},
};
use askama::Template;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use uuid::Uuid;

use super::{
    answer::{Alert, alert, page_or_alert},
    table::{MessageView, Seat, around, sheet_and_vitals},
    visit::{Seating, Visitor},
};
use ai::{
    reactions::replies,
    state::Ai,
    turns::events::{Event, Heard, Listener, listener},
};
use base::error::{Code, Error, Result};
use edge::{caller::keys, http::sse};
use world::{
    messages::service::Which,
    table::{self, Changes},
};

/// The longest duration of one stream.
const FOLLOWED_FOR: Duration = Duration::from_secs(600);
const COME_BACK_AFTER: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct From {
    after: i64,
}

/// Follows the table: `message`, `sheet`, `vitals`, `fights`, `people`, `here`, and `over` when the visit has ended.
pub async fn follow(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<String>,
    from: web::Query<From>,
) -> HttpResponse {
    let stream = match visitor {
        Ok(visitor) => followed(app, visitor, &request, &path, from.after).await,
        Err(unseated) => Err(unseated.error),
    };
    match stream {
        // The reader of a stream cannot show an error page.
        Err(error) if is_over(&error) => sse::answer(stream::once(async { Ok(ended()) }).boxed_local()),
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
    let after = sse::last_event_id(request).and_then(|id| id.parse().ok()).unwrap_or(after).max(0);
    let campaign = Seat::take(&app, &visitor, link).await?.campaign;
    let tenant = visitor.caller.tenant_id();
    let end = app.feeds.watch((tenant, campaign))?;
    let link_over = visitor.caller.link.map(|id| app.open_links.watch((tenant, id)));
    let renewal = visitor.renewal(&app, request)?;
    let until = Instant::now() + FOLLOWED_FOR;
    let onlooker = Onlooker {
        app,
        visitor,
        link: link.to_owned(),
        after,
        end,
        link_over,
        until,
        people: String::new(),
        here: String::new(),
        replies_wait: true,
    };
    let events = stream::unfold(Some(onlooker), async |onlooker| {
        let mut onlooker = onlooker?;
        match onlooker.next().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(onlooker))),
            Ok(None) => Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None)),
            Err(error) if is_over(&error) => Some((Ok(ended()), None)),
            Err(error) => {
                tracing::info!(%error, "a live stream of a table ended with an error");
                Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None))
            }
        }
    });
    let mut response = sse::answer(events.boxed_local());
    if let Some(cookie) = renewal {
        response.add_cookie(&cookie).map_err(Error::internal)?;
    }
    Ok(response)
}

/// Whether the player can no longer be at the table: the visit, the campaign or the character is gone.
fn is_over(error: &Error) -> bool {
    matches!(error.code, Code::Unauthenticated | Code::NotFound)
}

/// The visit is over. The reader does not reconnect after this.
fn ended() -> Bytes {
    let message = "Your visit is over. Open your player link again.";
    let mut out = BytesMut::new();
    sse::html(&mut out, "over", None, &Alert { message }.render().unwrap_or_default());
    out.freeze()
}

/// Waits until a link no longer works; forever without a link, or when the server stops.
async fn over(link: &mut Option<watch::Receiver<bool>>) {
    if let Some(link) = link
        && link.wait_for(|is_over| *is_over).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// A reader of the table's live stream.
struct Onlooker {
    app: web::Data<Ai>,
    visitor: Visitor,
    link: String,
    after: i64,
    end: watch::Receiver<i64>,
    /// Whether the player's link no longer works.
    link_over: Option<watch::Receiver<bool>>,
    until: Instant,
    /// The people whom the player may write to, as last sent: the recipients and the panel.
    people: String,
    here: String,
    /// Whether replies may wait for the player.
    replies_wait: bool,
}

impl Onlooker {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if self.app.is_stopping() || Instant::now() >= self.until {
                return Ok(None);
            }
            // Marked as seen before the rows are read, so that a later change wakes this up again.
            self.end.borrow_and_update();
            let seat = Seat::take(&self.app, &self.visitor, &self.link).await?;
            let (bytes, has_more) = self.look(&seat).await?;
            // After the look: a credential that is valid now was valid when what it saw was committed.
            let lives = keys::lives(&seat.tx, &self.visitor.caller).await?;
            let (campaign, player) = (seat.campaign, seat.player);
            drop(seat);
            if !lives || !self.app.keys.is_live(&self.visitor.caller).await? {
                self.until = Instant::now();
                return Ok(Some(ended()));
            }
            if std::mem::take(&mut self.replies_wait) {
                // They become messages, which arrive like all others.
                replies::deliver_all(&self.app, &self.visitor.caller, campaign, player).await?;
            }
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
            if has_more {
                continue;
            }
            tokio::select! {
                () = over(&mut self.link_over) => {
                    self.until = Instant::now();
                    return Ok(Some(ended()));
                }
                changed = timeout(sse::HEARTBEAT, self.end.changed()) => match changed {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Ok(None),
                    Err(_) => return Ok(Some(sse::heartbeat())),
                },
            }
        }
    }

    /// The changes since the last look, and whether there are more.
    async fn look(&mut self, seat: &Seat) -> Result<(Bytes, bool)> {
        let Some(Changes { changes, last, has_more }) = table::changes(&seat.tx, seat.campaign, self.after).await?
        else {
            return Ok((Bytes::new(), false));
        };
        self.after = last;
        let changed = |table: &str, op: Option<&str>| -> Vec<Uuid> {
            let here = changes.iter().filter(|change| change.table == table);
            here.filter(|change| op.is_none_or(|op| change.op == op)).map(|change| change.row).collect()
        };
        let mut pieces: Vec<(&str, String)> = Vec::new();
        self.replies_wait |= !changed("reply", Some("insert")).is_empty();
        let (new, reworded) = (changed("message", Some("insert")), changed("message", Some("update")));
        let said = seat.messages(Which::These(&[new.as_slice(), &reworded].concat())).await?;
        let attempts = seat.attempts(&said).await?;
        for message in &said {
            // A page may have a new message already, from before it was reworded. Then it ignores the first piece, and swaps the second.
            for (is_so, is_changed) in [(new.contains(&message.id), false), (reworded.contains(&message.id), true)] {
                if is_so {
                    let view = MessageView { link: &self.link, message, attempts: attempts.of(message), is_changed };
                    pieces.push(("message", view.render().map_err(Error::internal)?));
                }
            }
        }
        for gone in changed("message", Some("delete")) {
            pieces.push(("message", format!("<p id=\"m-{gone}\" hx-swap-oob=\"delete\"></p>")));
        }
        if changed("character", None).contains(&seat.player) || !changed("encounter", None).is_empty() {
            let (sheet, vitals) = sheet_and_vitals(seat, &seat.character().await?, &self.link).await?;
            pieces.extend([("sheet", sheet), ("vitals", vitals)]);
        }
        if !changed("encounter", None).is_empty() {
            pieces.push(("fights", seat.fights(&self.link).await?.render().map_err(Error::internal)?));
        }
        if ["character", "npc", "encounter"].iter().any(|table| !changed(table, None).is_empty()) {
            let around = around(&self.app, seat, &self.link, None).await?;
            for (name, now, sent) in
                [("people", around.people, &mut self.people), ("here", around.here, &mut self.here)]
            {
                if now != *sent {
                    pieces.push((name, now.clone()));
                    *sent = now;
                }
            }
        }
        // Only the last piece has the id, because only readers of all pieces are up to date.
        let id = self.after.to_string();
        let mut out = BytesMut::new();
        let last = pieces.len().saturating_sub(1);
        for (n, (name, html)) in pieces.iter().enumerate() {
            sse::html(&mut out, name, Some(id.as_str()).filter(|_| n == last), html);
        }
        Ok((out.freeze(), has_more))
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
