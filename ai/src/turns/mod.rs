//! AI turns: load, assemble, model, tools, model …, commit, record.
//!
//! - [`gm`] is the turn of a session's AI; [`rules`] is the turn in which the rules decide an action. A planner's turn is in
//!   `planner`.
//! - [`http`] has the routes. [`start`] runs a turn in a task of its own and answers as the client asked.
//! - [`live`] is the log of a turn's events, [`events`] streams them, [`elsewhere`] watches turns of other servers.
//! - [`running`] knows the turns of this process, and who waits for which place.
//! - [`runner`] runs a turn from beginning to end; [`talk`] is its part with the model; [`calls`] runs a batch of tool calls.
//! - [`again`] tries answers again, chooses among attempts, and corrects narratives.
//! - [`words`] decides who may read what of a turn.
//! - [`store`] writes everything about the turn itself; [`undo`] undoes a turn.
//!
//! A turn runs in a task of its own; the handler that waits for it does not own it. No transaction is open while a model works. A
//! turn's changes carry its id in the journal, by which a failed turn is reverted and any turn can be undone. The sweeper
//! (`ops::maintenance`) reverts orphaned turns.

pub mod again;
pub(crate) mod ask;
mod calls;
pub mod clean;
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
pub mod running;
pub mod start;
pub mod state;
mod steady;
pub mod store;
pub(crate) mod talk;
pub mod trace;
pub mod undo;
pub mod words;

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use time::OffsetDateTime;
use utoipa::{
    ToSchema,
    openapi::{Ref, RefOr, Schema},
};
use uuid::Uuid;

use again::Again;
use clean::Removed;

use crate::prompt::{LoreDecision, turn::Cause};
use base::clock;
use edge::tenants::tasks::Task;
use entity::kind::EntityKind;
pub use llm::Ending;
use llm::{Parameters, Usage};

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
    /// How the model's answer ended, or its last one if it called tools in between. Null if no model has answered.
    #[schema(required = true)]
    pub ending: Option<Ending>,
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
    /// The first attempt at this answer, if this is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_turn_id: Option<Uuid>,
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
    /// What was removed from the model's texts.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub removed: &'a [Removed],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revert_conflicts: Option<&'a Value>,
}

/// A model call of a turn.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LlmCall {
    /// What the model was asked for.
    #[schema(required = false)]
    pub task: Task,
    /// The slug of the model profile that was asked; null for the tenant's or the operator's own settings.
    #[schema(required = true)]
    #[serde(default)]
    pub profile: Option<String>,
    pub model: String,
    /// What was sent beside the conversation.
    #[serde(default)]
    pub parameters: Parameters,
    /// The models that were asked before and could not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// How long it took, in milliseconds.
    pub latency_ms: f64,
    /// How often the model was asked until it answered.
    pub attempts: u32,
    /// Why the model stopped writing, as its provider says it.
    #[schema(required = true)]
    pub finish_reason: Option<String>,
    pub usage: Usage,
    /// What the tokens cost; null if the tenant has no prices.
    #[schema(required = true)]
    #[serde(default)]
    pub cost_micros: Option<u64>,
    /// The text of the reply, at most 64 KiB of it.
    pub text: String,
    /// What the model thought before it answered, if its provider tells: at most 16 KiB. It is no part of the narrative.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
}

/// A model that could not answer, so that a fallback was asked.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Tried {
    /// The slug of its profile; null for the tenant's or the operator's own settings.
    #[schema(required = true)]
    pub profile: Option<String>,
    /// The model's name.
    pub model: String,
    /// Why it did not answer: the label of a failed call in the metrics, `empty` or `refused`.
    pub reason: String,
    /// What an empty or refused answer used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What that cost; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
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
    /// None if the chosen model decides.
    pub mode: Option<llm::ReplyMode>,
    pub on_busy: OnBusy,
    pub on_failure: OnFailure,
    pub key: Option<edge::http::idempotency::IdempotencyKey>,
    /// Set if nobody requested the turn, because the entity reacts by itself.
    pub reaction: Option<Reaction>,
    pub way: Way,
}

/// How a turn comes to its answer.
#[derive(Clone, Debug, Default)]
pub enum Way {
    /// A model answers what a player does.
    #[default]
    Answer,
    /// The entity begins the conversation with a greeting, which is named by its index. No model is asked.
    Greeting(usize),
    /// The entity goes on from its last answer.
    Continuation,
    /// Another attempt at an answer, or at a greeting.
    Again(Box<Again>, Option<usize>),
}

impl Way {
    /// The greeting, by its index.
    #[must_use]
    pub fn greeting(&self) -> Option<usize> {
        match self {
            Way::Greeting(greeting) | Way::Again(_, Some(greeting)) => Some(*greeting),
            _ => None,
        }
    }

    /// The attempt, if the answer is tried again.
    #[must_use]
    pub fn again(&self) -> Option<&Again> {
        if let Way::Again(again, _) = self { Some(again) } else { None }
    }

    /// Whether no player said what the answer is to.
    #[must_use]
    pub fn is_unprompted(&self) -> bool {
        self.greeting().is_some() || self.continues()
    }

    /// Whether the entity goes on from its last answer.
    #[must_use]
    pub fn continues(&self) -> bool {
        matches!(self, Way::Continuation) || self.again().is_some_and(|again| again.continues)
    }
}

/// A turn in which an entity reacts by itself. What it says waits for the player as a reply.
#[derive(Clone, Debug)]
pub struct Reaction {
    pub id: Uuid,
    /// What the entity reacts to.
    pub cause: Cause,
    /// The location, as a key, where the player must be to hear the reply.
    pub location_key: Option<String>,
    /// Whether the turn is undone if the reply cannot be delivered.
    pub reverts: bool,
    /// How many seconds the reply waits.
    pub expires_seconds: u32,
}
