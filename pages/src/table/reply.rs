//! A reply while the model writes it, as pieces of a page.

use actix_web::{HttpResponse, web::BytesMut};
use askama::Template;
use futures_util::{StreamExt, stream};
use serde::Deserialize;

use super::{
    COME_BACK_AFTER,
    notes::{Alert, Aside},
};
use crate::marks::Coming;
use ai::turns::events::{Event, Heard, Listener};
use edge::http::sse;
use entity::TurnId;

/// A reply that is on its way.
#[derive(Template)]
#[template(path = "table/pending.html")]
pub(crate) struct Pending<'a> {
    /// The path of the turn at the table: its pieces come from there.
    path: String,
    turn: TurnId,
    /// Who said what it answers, and what that was, unless the page has it already.
    said: Option<(&'a str, &'a str)>,
    npc: String,
}

impl<'a> Pending<'a> {
    /// The reply of somebody with this name, at the table with this path.
    pub(crate) fn of(table: &str, turn: TurnId, npc: String) -> Self {
        Self { path: format!("{table}/turns/{}", turn.0), turn, said: None, npc }
    }

    /// The same, with the words that it answers and who said them.
    pub(crate) fn to(self, name: &'a str, words: &'a str) -> Self {
        Self { said: Some((name, words)), ..self }
    }
}

/// The events of a turn: `text` in pieces, and `done`. Only the end has an id, so that a reader who comes back gets the reply from its first
/// word: what is emphasised depends on all that was said before.
pub(crate) fn event_stream(listener: Listener) -> HttpResponse {
    let events = stream::unfold(Some((listener, Coming::default())), async |heard| {
        let (mut listener, mut coming) = heard?;
        let events = match listener.next().await {
            Ok(Heard::Silence) => return Some((Ok(sse::heartbeat()), Some((listener, coming)))),
            Ok(Heard::Events(events)) => events,
            Ok(Heard::Over) | Err(_) => return Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None)),
        };
        let mut out = BytesMut::new();
        let is_over = events.iter().any(|event| event.is_last);
        for event in &events {
            piece(&mut out, event, &mut coming);
        }
        // Events without text, such as tool calls, still produce a heartbeat.
        let bytes = if out.is_empty() { sse::heartbeat() } else { out.freeze() };
        Some((Ok(bytes), (!is_over).then_some((listener, coming))))
    });
    sse::answer(events.boxed_local())
}

/// One event as a piece of the page.
fn piece(out: &mut BytesMut, event: &Event, coming: &mut Coming) {
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    let ended = match event.name {
        "text.delta" => {
            let text = serde_json::from_str::<Text>(event.data.get()).map(|text| text.text).unwrap_or_default();
            sse::html(out, "text", None, &coming.then(&text));
            return;
        }
        "turn.completed" => Ok(coming.end()),
        "turn.failed" => Alert { message: "There was no answer. Try again in a moment." }.render(),
        "turn.cancelled" => Aside { message: "This was stopped." }.render(),
        _ => return,
    };
    let ended = ended.unwrap_or_default();
    if !ended.is_empty() {
        sse::html(out, "text", None, &ended);
    }
    sse::html(out, "done", Some(&event.id), "");
}
