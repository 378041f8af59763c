//! AI turns: load, assemble, model, tools, model …, commit, record.
//!
//! - [`gm`] is the turn of a session's AI, [`rules`] the turn that has an action decided by the rules. A planner's turn is in `planner`.
//! - [`http`] takes the request, [`start`] runs the turn in a task of its own and answers as the client wishes; [`live`] is what a
//!   turn tells while it runs, [`events`] how it is heard; [`elsewhere`] is what turns of other servers do.
//! - [`runner`] is one turn from beginning to end; [`talk`] is its part with the model; [`calls`] executes a batch of tool calls.
//! - [`words`] decides who reads what of a turn.
//! - [`store`] is everything a turn writes of itself; [`undo`] takes a turn back.
//!
//! A turn runs in a task of its own: the handler that waits for it is not its owner. No transaction is open while a model
//! is called. What a turn changes carries its id in the journal, which is how a failed turn is reverted and any turn
//! undone. A turn whose server died is reverted by the sweeper (`ops::maintenance`).

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

use crate::{
    admission, clock,
    llm::Usage,
    pool,
    prompt::{EntityKind, LoreDecision},
    watched::Watched,
};

/// What became of a turn.
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
    /// The name in the database and on the wire.
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

/// What became of one tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    Succeeded,
    /// It was allowed and did not work.
    Failed,
    /// It was not allowed, or there is no such tool.
    Rejected,
}

impl CallStatus {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CallStatus::Succeeded => "succeeded",
            CallStatus::Failed => "failed",
            CallStatus::Rejected => "rejected",
        }
    }
}

/// One tool call of a turn.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// As the model gave them; what was not read is null.
    pub arguments: Value,
    pub status: CallStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
}

/// Why a call did not succeed; the model reads it too.
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
    /// `hit` if the base prompt was ready, `miss` if a section had to be written.
    pub cache: &'static str,
    pub base_hash: String,
    pub base_tokens: u32,
    pub sections: Vec<SectionView>,
}

/// Where a turn's time went, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct Timings {
    pub total: f64,
    /// Waiting for the model.
    pub llm: f64,
    /// Everything else.
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
    /// The NPC or owner that answered, the player of a rules or planner's turn, the session of a game master's.
    pub entity_id: Uuid,
    /// None for a session's turn.
    #[schema(required = true)]
    pub player_id: Option<Uuid>,
    /// The model that answered; `rehearsal` when none is configured, empty while none has.
    pub model: String,
    pub narrative: String,
    pub tool_calls: Vec<ToolCall>,
    /// What the rules decided, told by a model, if it was to be told at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narration: Option<String>,
    /// What a planner's turn made of a player's words: the answer of `POST …/act`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = planned_schema, required = false)]
    pub planned: Option<Box<RawValue>>,
    /// What the rules decided about the action, if they were asked before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanics: Option<Mechanics>,
    /// Why the reply's tools could not be read; the narrative is delivered and nothing was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parse_error: Option<String>,
    /// What the AI of a session's turn was: `gm`, `assistant` or `player`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub role: Option<entity::session::Role>,
    /// What it was told of the game: `overview` before a session's first completed turn, `delta` after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<&'static str>,
    /// Given dice that nothing was rolled with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dice_unused: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptView>,
    pub usage: Usage,
    pub timings_ms: Timings,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// When a turn was asked for: its id says so, also to the database.
#[must_use]
pub fn created_at(turn: Uuid) -> OffsetDateTime {
    let (seconds, nanos) = turn.get_timestamp().map(|time| time.to_unix()).unwrap_or_default();
    let since = time::Duration::new(i64::try_from(seconds).unwrap_or(i64::MAX), 0);
    clock::later(clock::later(OffsetDateTime::UNIX_EPOCH, since), time::Duration::nanoseconds(i64::from(nanos)))
}

/// A turn does not know the planner, whose answer it holds.
fn planned_schema() -> RefOr<Schema> {
    Ref::from_schema_name("ActView").into()
}

/// What a rules turn decided, as a later turn tells it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Mechanics {
    pub turn_id: Uuid,
    /// In seven lines.
    pub raw: String,
    /// The outcome in full.
    #[schema(value_type = Object)]
    pub parsed: Value,
}

/// What a turn's record holds beside what clients see at once.
#[derive(Debug, Serialize)]
pub struct Trace<'a> {
    pub player_id: Option<Uuid>,
    pub action: &'a str,
    /// The turn's own message as the model saw it.
    pub turn_text: &'a str,
    /// Entries that are in, and those that a budget or a secret kept out.
    pub lore: Vec<&'a LoreDecision>,
    /// What budgets cut, by section.
    pub cut: Vec<(&'static str, &'a str)>,
    pub llm_calls: &'a [LlmCall],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revert_conflicts: Option<&'a Value>,
}

/// One model call of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct LlmCall {
    pub model: String,
    pub latency_ms: f64,
    pub attempts: u32,
    pub finish_reason: Option<String>,
    pub usage: Usage,
    /// The reply's text as it came, at most 64 KiB of it.
    pub text: String,
}

/// What one turn at a time may have: an entity for a player, or a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    pub tenant: Uuid,
    /// The session, for its own turn.
    pub entity: Uuid,
    /// Nil for a session's turn.
    pub player: Uuid,
}

/// The turns this process runs, with the means to cancel them, and who waits for what here.
pub struct Running {
    /// This process's number, under which it holds an advisory lock as long as it lives.
    pub instance: i64,
    /// Whether it may take other processes for dead.
    pub steady: Steady,
    turns: Mutex<HashMap<Uuid, Here>>,
    queues: Mutex<HashMap<Spot, Queue>>,
    /// Places that a turn of this process is about to take, or has.
    occupied: Mutex<HashSet<Spot>>,
    /// Places that somebody waits for.
    places: Watched<Spot, ()>,
    /// Turns that somebody hears whom no memory tells, with what is known of how far they are.
    followed: Watched<Followed, String>,
}

/// A turn of this process.
struct Here {
    asker: Asker,
    tenant: Uuid,
    /// None while it waits for it, and for one that needs none.
    spot: Option<Spot>,
}

/// Who waits for an entity to be free for a player, in order.
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

    /// Registers a turn until the guard is dropped, with the place that it has.
    pub fn enter(&self, turn: Uuid, asker: &Asker, tenant: Uuid, spot: Option<Spot>) -> Entered<'_> {
        asker.counts();
        admission::step_out();
        pool::has_begun();
        self.turns().insert(turn, Here { asker: asker.clone(), tenant, spot });
        if let Some(live) = &asker.live {
            live.begin(turn);
        }
        crate::ops::metrics::TURNS_RUNNING.inc();
        Entered { running: self, turn }
    }

    /// Registers a turn that waits for its place until the guard is dropped, or that of its run.
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

    /// Cancels a turn of this process; false if it is not one.
    pub fn cancel(&self, turn: Uuid) -> bool {
        self.turns().get(&turn).map(|here| here.asker.cancel.cancel()).is_some()
    }

    /// What a turn of this process tells, if somebody may be listening.
    pub fn live(&self, turn: Uuid) -> Option<Arc<Live>> {
        self.turns().get(&turn).and_then(|here| here.asker.live.clone())
    }

    /// The turns under way, whose leases are to be renewed. One that could not be closed is not among them, and is swept.
    #[must_use]
    pub fn ids(&self) -> Vec<Uuid> {
        self.turns().keys().copied().collect()
    }

    /// How many turns are under way.
    #[must_use]
    pub fn count(&self) -> usize {
        self.turns().len()
    }

    /// Occupies a place as far as this process knows; none if a turn of its own has it.
    pub fn occupy(&self, spot: Spot) -> Option<Occupied<'_>> {
        if self.turns().values().any(|here| here.spot == Some(spot)) {
            return None;
        }
        let mut occupied = self.occupied.lock().unwrap_or_else(PoisonError::into_inner);
        occupied.insert(spot).then(|| Occupied { running: self, spot })
    }

    /// The queue of those who wait for a place.
    fn queue(&self, spot: Spot) -> Queue {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        queues.entry(spot).or_default().clone()
    }

    /// How many turns stand in line for places or have come through it, those that run among them.
    #[must_use]
    pub fn in_line(&self) -> usize {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.values().map(|queue| Arc::strong_count(queue) - 1).sum()
    }

    /// News of a place: that it may be free.
    fn place(&self, spot: Spot) -> watch::Receiver<()> {
        self.places.watch(spot)
    }

    /// News of a turn that this process does not tell of: that it is further.
    fn follow(&self, tenant: Uuid, turn: Uuid) -> watch::Receiver<String> {
        self.followed.watch((tenant, turn))
    }

    /// The places that are waited for and that no turn of this process has.
    fn waited_for_elsewhere(&self) -> Vec<Spot> {
        let waited = self.places.keys();
        let turns = self.turns();
        let here: HashSet<Spot> = turns.values().filter_map(|here| here.spot).collect();
        waited.into_iter().filter(|spot| !here.contains(spot)).collect()
    }

    /// The turns that are followed and that this process does not run.
    fn followed_elsewhere(&self) -> Vec<Followed> {
        let followed = self.followed.keys();
        let turns = self.turns();
        followed.into_iter().filter(|(_, turn)| !turns.contains_key(turn)).collect()
    }

    /// Waits until somebody begins to wait for a place, or to follow a turn.
    async fn somebody_waits(&self) {
        tokio::select! {
            () = self.places.more() => {}
            () = self.followed.more() => {}
        }
    }

    /// Whoever hears a turn of another server hears no more.
    pub fn close(&self) {
        self.followed.close();
    }
}

/// A turn that is under way.
pub struct Entered<'a> {
    running: &'a Running,
    turn: Uuid,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.running.leave(self.turn);
        crate::ops::metrics::TURNS_RUNNING.dec();
    }
}

/// A place that is a turn's of this process until dropped.
pub struct Occupied<'a> {
    running: &'a Running,
    spot: Spot,
}

impl Drop for Occupied<'_> {
    fn drop(&mut self) {
        self.running.occupied.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.spot);
    }
}

/// A turn that waits for its place.
pub struct Waits<'a> {
    running: &'a Running,
    turn: Uuid,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.running.leave(self.turn);
    }
}

/// What to do when the entity is already answering the player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// 409.
    #[default]
    Reject,
    /// Wait for one's turn.
    Queue,
}

/// What to do with a failed turn's effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Take them back.
    #[default]
    Revert,
    /// Leave them.
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

/// A turn that was asked for.
#[derive(Clone, Debug)]
pub struct Job {
    pub campaign: String,
    pub kind: EntityKind,
    pub entity: String,
    pub player: String,
    pub action: String,
    /// The rules turn whose outcome is to be told.
    pub mechanics: Option<Uuid>,
    pub mode: crate::llm::ReplyMode,
    pub on_busy: OnBusy,
    pub on_failure: OnFailure,
    pub key: Option<crate::http::idempotency::IdempotencyKey>,
}
