//! AI turns: load, assemble, model, tools, model …, commit, record.
//!
//! - [`gm`] is the turn of a session's AI; [`rules`] is the turn in which the rules decide an action. A planner's turn is in
//!   `planner`.
//! - [`http`] has the routes. [`start`] runs a turn in a task of its own and answers as the client asked.
//! - [`live`] is the log of a turn's events, [`events`] streams them, [`elsewhere`] watches turns of other servers.
//! - [`runner`] runs a turn from beginning to end; [`talk`] is its part with the model; [`calls`] runs a batch of tool calls.
//! - [`words`] decides who may read what of a turn.
//! - [`store`] writes everything about the turn itself; [`undo`] undoes a turn.
//!
//! A turn runs in a task of its own; the handler that waits for it does not own it. No transaction is open while a model works. A
//! turn's changes carry its id in the journal, by which a failed turn is reverted and any turn can be undone. The sweeper
//! (`ops::maintenance`) reverts orphaned turns.

pub(crate) mod ask;
mod calls;
pub mod elsewhere;
pub mod events;
pub mod gm;
pub mod http;
pub mod lab;
pub mod list;
mod live;
mod place;
pub mod rules;
pub mod runner;
pub mod start;
pub mod state;
mod steady;
pub mod store;
pub(crate) mod talk;
pub mod trace;
pub mod undo;
pub mod words;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use time::OffsetDateTime;
use tokio::sync::watch;
use utoipa::{
    ToSchema,
    openapi::{Ref, RefOr, Schema},
};
use uuid::Uuid;

use elsewhere::Followed;
use live::Live;
use start::Asker;
use steady::Steady;

use crate::prompt::LoreDecision;
use base::{clock, watched::Watched};
use db::pool;
use edge::admission;
use entity::kind::EntityKind;
use llm::Usage;

/// The state of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Queued,
    Running,
    Succeeded,
    Failed,
    LimitReached,
    Cancelled,
}

impl Status {
    /// The name in the database and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::LimitReached => "limit_reached",
            Status::Cancelled => "cancelled",
        }
    }
}

/// The result of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    Succeeded,
    /// The call was allowed but failed.
    Failed,
    /// The call was not allowed, or the tool does not exist.
    Rejected,
}

impl CallStatus {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CallStatus::Succeeded => "succeeded",
            CallStatus::Failed => "failed",
            CallStatus::Rejected => "rejected",
        }
    }
}

/// A tool call of a turn.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them; null if they could not be parsed.
    pub arguments: Value,
    pub status: CallStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
}

/// Why a call did not succeed. The model reads it too.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallError {
    pub code: String,
    pub message: String,
}

/// A section of the prompt, without its text.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SectionView {
    pub name: &'static str,
    pub tokens: u32,
    pub hash: String,
}

/// The prompt of a turn, without its text.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PromptView {
    /// `hit` if the base prompt came from the cache, `miss` if a section had to be written.
    pub cache: &'static str,
    pub base_hash: String,
    pub base_tokens: u32,
    pub sections: Vec<SectionView>,
}

/// Where a turn's time went, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct Timings {
    pub total: f64,
    /// The time spent waiting for the model.
    pub llm: f64,
    /// All other time.
    pub server: f64,
}

/// A turn as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TurnView {
    pub id: Uuid,
    /// `npc`, `owner`, `gm`, `rules` or `planner`.
    pub kind: &'static str,
    pub status: Status,
    pub campaign_id: Uuid,
    /// The NPC or owner that answered, the player of a rules or planner turn, or the session of a GM turn.
    pub entity_id: Uuid,
    /// Null for a session's turn.
    #[schema(required = true)]
    pub player_id: Option<Uuid>,
    /// The model that answered; `rehearsal` if none is configured, empty while none has answered.
    pub model: String,
    pub narrative: String,
    pub tool_calls: Vec<ToolCall>,
    /// The narration of the decision of the rules, if the request asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narration: Option<String>,
    /// What a planner turn made of a player's text: the answer of `POST …/act`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = planned_schema, required = false)]
    pub planned: Option<Box<RawValue>>,
    /// The decision of the rules about the action, if they decided before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanics: Option<Mechanics>,
    /// Why the reply's tool calls could not be parsed. The narrative was delivered, and nothing was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parse_error: Option<String>,
    /// The AI's role in a session's turn: `gm`, `assistant` or `player`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub role: Option<entity::session::Role>,
    /// What the AI got: `overview` before a session's first completed turn, `delta` after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<&'static str>,
    /// Given dice that were not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dice_unused: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptView>,
    pub usage: Usage,
    pub timings_ms: Timings,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// When a turn was requested. Its id contains the time, which the database uses too.
#[must_use]
pub fn created_at(turn: Uuid) -> OffsetDateTime {
    let (seconds, nanos) = turn.get_timestamp().map(|time| time.to_unix()).unwrap_or_default();
    let since = time::Duration::new(i64::try_from(seconds).unwrap_or(i64::MAX), 0);
    clock::later(clock::later(OffsetDateTime::UNIX_EPOCH, since), time::Duration::nanoseconds(i64::from(nanos)))
}

/// The planner's answer, by its name: this module does not know the planner.
fn planned_schema() -> RefOr<Schema> {
    Ref::from_schema_name("ActView").into()
}

/// The decision of a rules turn, for a later turn that tells it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Mechanics {
    pub turn_id: Uuid,
    /// The decision in seven lines.
    pub raw: String,
    /// The whole outcome.
    #[schema(value_type = Object)]
    pub parsed: Value,
}

/// What a turn's record contains besides what clients see at once.
#[derive(Debug, Serialize)]
pub struct Trace<'a> {
    pub player_id: Option<Uuid>,
    pub action: &'a str,
    /// The turn's own message, as the model read it.
    pub turn_text: &'a str,
    /// The lore entries in the prompt, and those left out because of a budget or a secret.
    pub lore: Vec<&'a LoreDecision>,
    /// What was cut to fit budgets, by section.
    pub cut: Vec<(&'static str, &'a str)>,
    pub llm_calls: &'a [LlmCall],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revert_conflicts: Option<&'a Value>,
}

/// A model call of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct LlmCall {
    pub model: String,
    pub latency_ms: f64,
    pub attempts: u32,
    pub finish_reason: Option<String>,
    pub usage: Usage,
    /// The text of the reply, at most 64 KiB of it.
    pub text: String,
}

/// A place that only one turn at a time may have: an entity and a player, or a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    pub tenant: Uuid,
    /// The session, for a session's turn.
    pub entity: Uuid,
    /// The nil id, for a session's turn.
    pub player: Uuid,
}

/// The turns of this process, the means to cancel them, and who waits for what on this server.
pub struct Running {
    /// This process's number. The process holds an advisory lock on it as long as it lives.
    pub instance: i64,
    /// Whether this process may declare other processes dead.
    pub steady: Steady,
    turns: Mutex<HashMap<Uuid, Here>>,
    queues: Mutex<HashMap<Spot, Queue>>,
    /// Places that a turn of this process has, or is about to take.
    occupied: Mutex<HashSet<Spot>>,
    /// Places that somebody waits for.
    places: Watched<Spot, ()>,
    /// Followed turns that run on other servers, with what is known about their progress.
    followed: Watched<Followed, String>,
}

/// A turn of this process.
struct Here {
    asker: Asker,
    tenant: Uuid,
    /// None while the turn waits for its place, and for turns without a place.
    spot: Option<Spot>,
}

/// The queue of those who wait for a place, in order.
type Queue = Arc<tokio::sync::Mutex<()>>;

impl Running {
    #[must_use]
    pub fn new(instance: i64) -> Self {
        Self {
            instance,
            steady: Steady::default(),
            turns: Mutex::default(),
            queues: Mutex::default(),
            occupied: Mutex::default(),
            places: Watched::default(),
            followed: Watched::default(),
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<Uuid, Here>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a running turn with its place, until the guard is dropped.
    pub fn enter(&self, turn: Uuid, asker: &Asker, tenant: Uuid, spot: Option<Spot>) -> Entered<'_> {
        asker.counts();
        admission::step_out();
        pool::has_begun();
        self.turns().insert(turn, Here { asker: asker.clone(), tenant, spot });
        if let Some(live) = &asker.live {
            live.begin(turn);
        }
        base::metrics::TURNS_RUNNING.inc();
        Entered { running: self, turn }
    }

    /// Registers a turn that waits for its place, until the guard is dropped or the turn runs.
    pub fn wait(&self, turn: Uuid, asker: &Asker, tenant: Uuid) -> Waits<'_> {
        asker.counts();
        admission::step_out();
        self.turns().insert(turn, Here { asker: asker.clone(), tenant, spot: None });
        if let Some(live) = &asker.live {
            live.wait(turn);
        }
        Waits { running: self, turn }
    }

    fn leave(&self, turn: Uuid) {
        let Some(Here { asker, tenant, spot }) = self.turns().remove(&turn) else { return };
        if let Some(live) = asker.live {
            live.end();
        }
        if let Some(spot) = spot {
            self.places.wake(&spot);
        }
        self.followed.wake(&(tenant, turn));
    }

    /// Cancels a turn of this process. Returns false if there is none with this id.
    pub fn cancel(&self, turn: Uuid) -> bool {
        self.turns().get(&turn).map(|here| here.asker.cancel.cancel()).is_some()
    }

    /// The log of a turn of this process, if somebody may be listening.
    pub fn live(&self, turn: Uuid) -> Option<Arc<Live>> {
        self.turns().get(&turn).and_then(|here| here.asker.live.clone())
    }

    /// The turns whose leases must be renewed. A turn that could not be closed is not among them, so it will be swept.
    #[must_use]
    pub fn ids(&self) -> Vec<Uuid> {
        self.turns().keys().copied().collect()
    }

    /// How many turns run or wait.
    #[must_use]
    pub fn count(&self) -> usize {
        self.turns().len()
    }

    /// Takes a place within this process. None if another of its turns has it.
    pub fn occupy(&self, spot: Spot) -> Option<Occupied<'_>> {
        if self.turns().values().any(|here| here.spot == Some(spot)) {
            return None;
        }
        let mut occupied = self.occupied.lock().unwrap_or_else(PoisonError::into_inner);
        occupied.insert(spot).then(|| Occupied { running: self, spot })
    }

    /// The queue for a place.
    fn queue(&self, spot: Spot) -> Queue {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        queues.entry(spot).or_default().clone()
    }

    /// How many turns are in queues, including those that have left the queue and run.
    #[must_use]
    pub fn in_line(&self) -> usize {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.values().map(|queue| Arc::strong_count(queue) - 1).sum()
    }

    /// News about a place: it may be free.
    fn place(&self, spot: Spot) -> watch::Receiver<()> {
        self.places.watch(spot)
    }

    /// News about a turn of another server.
    fn follow(&self, tenant: Uuid, turn: Uuid) -> watch::Receiver<String> {
        self.followed.watch((tenant, turn))
    }

    /// The places that somebody waits for and that no turn of this process has.
    fn waited_for_elsewhere(&self) -> Vec<Spot> {
        let waited = self.places.keys();
        let turns = self.turns();
        let here: HashSet<Spot> = turns.values().filter_map(|here| here.spot).collect();
        waited.into_iter().filter(|spot| !here.contains(spot)).collect()
    }

    /// The followed turns that this process does not run.
    fn followed_elsewhere(&self) -> Vec<Followed> {
        let followed = self.followed.keys();
        let turns = self.turns();
        followed.into_iter().filter(|(_, turn)| !turns.contains_key(turn)).collect()
    }

    /// Waits until somebody begins to wait for a place or to follow a turn.
    async fn somebody_waits(&self) {
        tokio::select! {
            () = self.places.more() => {}
            () = self.followed.more() => {}
        }
    }

    /// Ends all following of turns of other servers.
    pub fn close(&self) {
        self.followed.close();
    }
}

/// A registered running turn.
pub struct Entered<'a> {
    running: &'a Running,
    turn: Uuid,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.running.leave(self.turn);
        base::metrics::TURNS_RUNNING.dec();
    }
}

/// A place that a turn of this process has until this is dropped.
pub struct Occupied<'a> {
    running: &'a Running,
    spot: Spot,
}

impl Drop for Occupied<'_> {
    fn drop(&mut self) {
        self.running.occupied.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.spot);
    }
}

/// A registered turn that waits for its place.
pub struct Waits<'a> {
    running: &'a Running,
    turn: Uuid,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.running.leave(self.turn);
    }
}

/// What to do if the entity is already answering the player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// Answer with 409.
    #[default]
    Reject,
    /// Wait until the place is free.
    Queue,
}

/// What to do with a failed turn's effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Revert them.
    #[default]
    Revert,
    /// Keep them.
    Keep,
}

impl OnFailure {
    /// The name in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            OnFailure::Revert => "revert",
            OnFailure::Keep => "keep",
        }
    }
}

/// A requested turn.
#[derive(Clone, Debug)]
pub struct Job {
    pub campaign: String,
    pub kind: EntityKind,
    pub entity: String,
    pub player: String,
    pub action: String,
    /// The rules turn whose outcome the answer should tell.
    pub mechanics: Option<Uuid>,
    pub mode: llm::ReplyMode,
    pub on_busy: OnBusy,
    pub on_failure: OnFailure,
    pub key: Option<edge::http::idempotency::IdempotencyKey>,
}
