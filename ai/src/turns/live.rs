//! The log of a turn's events, kept while the turn runs and somebody listens.
//!
//! Each turn has one log in memory. Text is appended at its end, and listeners read on from their own positions at their own pace.
//! A copy goes to the database a few times a second ([`Live::unsaved`]), for listeners on other servers and later ones.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use serde::{Deserialize, Serialize};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    kind::TurnKind,
    view::{CallError, CallStatus, ToolCall, present},
};
use llm::{ReplyMode, Sink, reply::Partial};

/// When a turn runs again under its key, the numbers of its events start higher by this much, so that an id from an earlier run
/// comes before all ids of the new one.
pub const NUMBERS_PER_RUN: usize = 1_000_000;
/// The most bytes of one item of text.
const TEXT_BYTES_MAX: usize = 4096;

/// The name of an event with text.
pub const TEXT: &str = "text.delta";
pub const STARTED: &str = "turn.started";
pub const CALL: &str = "tool.call";
pub const RESULT: &str = "tool.result";

/// An item of the log: text, or the JSON of another event.
#[derive(Clone, Debug)]
pub struct Item {
    pub name: &'static str,
    /// The text, or JSON.
    pub data: String,
}

impl Item {
    /// An event.
    pub fn event(name: &'static str, data: &impl Serialize) -> Self {
        Self { name, data: serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned()) }
    }

    /// The event that the turn has begun.
    #[must_use]
    pub fn started(turn: Uuid) -> Self {
        Self::event(STARTED, &json!({ "turn_id": turn }))
    }

    /// The event that a tool is called.
    #[must_use]
    pub fn call(id: &str, name: &str, arguments: &Value) -> Self {
        Self::event(CALL, &Called { id: id.into(), name: name.into(), arguments: Cow::Borrowed(arguments) })
    }

    /// The event with the result of a call.
    #[must_use]
    pub fn result(call: &ToolCall) -> Self {
        let ToolCall { id, status, result, error, .. } = call;
        let (result, error) = (result.as_ref().map(Cow::Borrowed), error.as_ref().map(Cow::Borrowed));
        Self::event(RESULT, &Resulted { id: id.into(), status: *status, result, error })
    }
}

/// The data of the event that a tool is called.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Called<'a> {
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub arguments: Cow<'a, Value>,
}

/// The data of the event with the result of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Resulted<'a> {
    pub id: Cow<'a, str>,
    pub status: CallStatus,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub result: Option<Cow<'a, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, CallError>>,
}

/// How far a listener has read: item `seq` (from 1 in the turn's first run) and, for a text, only its first `offset` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub seq: usize,
    pub offset: Option<usize>,
}

/// What a listener gets next, and the position after it.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub at: Position,
    pub name: &'static str,
    /// JSON.
    pub data: Box<RawValue>,
}

/// The part of these items, numbered from `first`, that a listener has not received.
pub fn unheard(items: &[Item], first: usize, at: &mut Position) -> Vec<Delivery> {
    let begun = usize::from(at.offset.is_some());
    let skipped = (at.seq + 1).saturating_sub(first + begun);
    let mut told = Vec::new();
    for (item, seq) in items.iter().zip(first..).skip(skipped) {
        let heard = at.offset.filter(|_| seq == at.seq).unwrap_or(0);
        if item.name == TEXT {
            let rest = &item.data[item.data.floor_char_boundary(heard)..];
            *at = Position { seq, offset: Some(item.data.len().max(heard)) };
            if rest.is_empty() {
                continue;
            }
            told.push(Delivery { at: *at, name: TEXT, data: raw(&json!({ "text": rest })) });
        } else {
            *at = Position { seq, offset: None };
            let data = RawValue::from_string(item.data.clone()).unwrap_or_default();
            told.push(Delivery { at: *at, name: item.name, data });
        }
    }
    told
}

/// A value as JSON.
pub fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

/// The log of a turn.
#[derive(Debug)]
pub struct Live {
    /// The kind of the turn. Who may read which of its events depends on it.
    kind: OnceLock<TurnKind>,
    log: Mutex<Log>,
    news: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Log {
    turn: Option<Uuid>,
    /// How often the turn ran before.
    runs_before: usize,
    items: Vec<Item>,
    /// How many items no longer grow.
    sealed: usize,
    saved: usize,
    ended: bool,
}

impl Log {
    /// The number of the first item.
    fn first(&self) -> usize {
        self.runs_before * NUMBERS_PER_RUN + 1
    }
}

impl Live {
    /// The log of a turn that has not begun.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self { kind: OnceLock::new(), log: Mutex::default(), news: watch::channel(()).0 })
    }

    /// Notes the kind of the turn. A turn within another one does not change it.
    pub fn is_of(&self, kind: TurnKind) {
        self.kind.get_or_init(|| kind);
    }

    /// The kind of the turn, once it is known.
    pub fn kind(&self) -> Option<TurnKind> {
        self.kind.get().copied()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives news. Earlier events do not count as news.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// Notes how often the turn ran before without success.
    pub fn run_before(&self, runs: usize) {
        self.log().runs_before = runs;
    }

    /// The turn has this id and waits for its place.
    pub fn wait(&self, turn: Uuid) {
        self.log().turn = Some(turn);
        self.news.send_replace(());
    }

    /// The turn has begun with this id.
    pub fn begin(&self, turn: Uuid) {
        self.log().turn = Some(turn);
        self.tell(Item::started(turn));
    }

    /// Whether the turn has an id but has not begun.
    pub fn waits(&self) -> bool {
        self.log().items.is_empty()
    }

    /// Waits until the turn has an id: it has begun, or waits for its place.
    pub async fn begun(&self) -> Uuid {
        let mut news = self.subscribe();
        loop {
            news.mark_unchanged();
            if let Some(turn) = self.log().turn {
                return turn;
            }
            if news.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The turn's id, if it has one.
    pub fn turn(&self) -> Option<Uuid> {
        self.log().turn
    }

    /// Adds an event.
    pub fn tell(&self, item: Item) {
        let mut log = self.log();
        log.items.push(item);
        log.sealed = log.items.len();
        drop(log);
        self.news.send_replace(());
    }

    /// Adds text.
    pub fn say(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut log = self.log();
        let grows = log.sealed < log.items.len();
        match log.items.last_mut().filter(|last| grows && last.data.len() + text.len() <= TEXT_BYTES_MAX) {
            Some(last) => last.data.push_str(text),
            None => {
                log.sealed = log.items.len();
                log.items.push(Item { name: TEXT, data: text.to_owned() });
            }
        }
        drop(log);
        self.news.send_replace(());
    }

    /// The turn has ended, and its record says how.
    pub fn end(&self) {
        self.log().ended = true;
        self.news.send_replace(());
    }

    /// The items since a position, and whether the turn has ended.
    pub fn since(&self, at: &mut Position) -> (Vec<Delivery>, bool) {
        let log = self.log();
        (unheard(&log.items, log.first(), at), log.ended)
    }

    /// The items that are not saved yet, with the number of the first. They no longer grow.
    pub fn unsaved(&self) -> (usize, Vec<Item>) {
        let mut log = self.log();
        log.sealed = log.items.len();
        (log.first() + log.saved, log.items[log.saved..].to_vec())
    }

    /// Notes that this many more items are saved.
    pub fn saved(&self, more: usize) {
        self.log().saved += more;
    }
}

/// Adds a reply's narrative to the log while the model writes it.
pub struct Speech {
    live: Arc<Live>,
    reply: Arc<Mutex<Saying>>,
}

struct Saying {
    reply: Partial,
    /// The separator between this narrative and the one before it.
    before: &'static str,
}

impl Saying {
    fn say(&mut self, live: &Live, text: &str) {
        if !text.is_empty() {
            live.say(std::mem::take(&mut self.before));
            live.say(text);
        }
    }
}

impl Speech {
    /// A reply that is the first or follows others.
    #[must_use]
    pub fn new(live: &Arc<Live>, mode: ReplyMode, follows: bool) -> Self {
        let before = if follows { "\n\n" } else { "" };
        Self { live: live.clone(), reply: Arc::new(Mutex::new(Saying { reply: Partial::new(mode), before })) }
    }

    /// The sink that receives the model's text.
    #[must_use]
    pub fn sink(&self) -> Sink {
        let (live, reply) = (self.live.clone(), self.reply.clone());
        Sink::new(move |piece| {
            let mut saying = reply.lock().unwrap_or_else(PoisonError::into_inner);
            let text = saying.reply.push(piece);
            saying.say(&live, &text);
        })
    }

    /// Adds the rest of the narrative that was not added while it came.
    pub fn finish(&self, narrative: &str) {
        let mut saying = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = saying.reply.rest(narrative).to_owned();
        saying.say(&self.live, &rest);
    }
}
