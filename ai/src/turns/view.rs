//! A turn as clients see it, and as its record keeps it.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use time::OffsetDateTime;
use utoipa::{
    ToSchema,
    openapi::{Ref, RefOr, Schema},
};
use uuid::Uuid;

use super::{
    clean::Removed,
    kind::{Trigger, TurnKind},
    subject::Subject,
};
use crate::prompt::{Cache, Context, LoreDecision, recall_report::KeptReport};
use base::{
    clock,
    error::{Code, Error, Result},
    stored,
};
use edge::tenants::tasks::Task;
use llm::Parameters;
pub use llm::{Ending, Usage};

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

/// Errors of calls that the caller was not allowed to make.
const REJECTS: [Code; 2] = [Code::InsufficientInfluence, Code::NotInDomain];

impl CallStatus {
    /// The status of a call that ended with an error.
    #[must_use]
    pub fn of_error(code: &str) -> Self {
        if REJECTS.iter().any(|known| known.as_str() == code) { CallStatus::Rejected } else { CallStatus::Failed }
    }

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
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them; null if they could not be parsed, or are only for the game master.
    pub arguments: Value,
    pub status: CallStatus,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, required = false)]
    pub result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
}

/// A member that is there, also if it is null.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    member: D,
) -> std::result::Result<Option<T>, D::Error> {
    T::deserialize(member).map(Some)
}

/// Why a call did not succeed. The model reads it too.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CallError {
    pub code: String,
    pub message: String,
}

impl From<&Error> for CallError {
    fn from(error: &Error) -> Self {
        Self { code: error.code.as_str().to_owned(), message: error.detail.clone() }
    }
}

/// A section of the prompt, without its text.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SectionView {
    pub name: Cow<'static, str>,
    pub tokens: u32,
    pub hash: String,
}

/// The prompt of a turn, without its text.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PromptView {
    /// `hit` if the base prompt came from the cache, `miss` if a section had to be written.
    #[schema(value_type = String)]
    pub cache: Cache,
    pub base_hash: String,
    pub base_tokens: u32,
    pub sections: Vec<SectionView>,
}

/// Where a turn's time went, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Timings {
    pub total: f64,
    /// The time spent waiting for the model.
    pub llm: f64,
    /// All other time.
    pub server: f64,
}

/// Who sees the result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Everyone at the table. The result is in the history.
    Public,
    /// Only the caller.
    Ephemeral,
}

/// The planner's answer, as it was given, and who may see it. This module does not know the planner.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Box<RawValue>")]
pub struct Planned {
    pub visibility: Visibility,
    answer: Box<RawValue>,
}

impl Planned {
    /// An answer of the planner.
    ///
    /// # Errors
    /// `internal` if it cannot be written as JSON.
    pub fn of(answer: &impl Serialize, visibility: Visibility) -> Result<Self> {
        to_raw_value(answer).map(|answer| Self { visibility, answer }).map_err(Error::internal)
    }
}

impl From<Box<RawValue>> for Planned {
    /// A stored answer that does not say who may see it is for its caller alone.
    fn from(answer: Box<RawValue>) -> Self {
        #[derive(Deserialize)]
        struct Seen {
            visibility: Visibility,
        }
        let seen = serde_json::from_str(answer.get());
        Self { visibility: seen.map_or(Visibility::Ephemeral, |Seen { visibility }| visibility), answer }
    }
}

impl Serialize for Planned {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.answer.serialize(serializer)
    }
}

/// A turn as clients see it.
// What of a record cannot be read, or was not written by an older server, has its default.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TurnView {
    pub id: Uuid,
    #[schema(inline)]
    pub kind: TurnKind,
    #[schema(inline, required = true)]
    #[serde(default)]
    pub trigger: Trigger,
    pub status: Status,
    pub campaign_id: Uuid,
    /// The NPC or owner that answered, the player of a rules or planner turn, or the session of a GM turn.
    pub entity_id: Uuid,
    /// Null for a session's turn.
    #[schema(required = true)]
    pub player_id: Option<Uuid>,
    /// The model that answered; `rehearsal` if none is configured, empty while none has answered.
    #[serde(default, deserialize_with = "stored::readable_or_default")]
    #[schema(required = true)]
    pub model: String,
    #[serde(default, deserialize_with = "stored::readable_or_default")]
    #[schema(required = true)]
    pub narrative: String,
    #[serde(default, deserialize_with = "stored::readable_items")]
    #[schema(required = true)]
    pub tool_calls: Vec<ToolCall>,
    /// The narration of the decision of the rules, if the request asked for one.
    #[serde(default, deserialize_with = "stored::readable_or_default", skip_serializing_if = "Option::is_none")]
    pub narration: Option<String>,
    /// What a planner turn made of a player's text: the answer of `POST …/act`.
    #[serde(default, deserialize_with = "stored::readable_or_default", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = planned_schema, required = false)]
    pub planned: Option<Planned>,
    /// The decision of the rules about the action, if they decided before.
    #[serde(default, deserialize_with = "stored::readable_or_default", skip_serializing_if = "Option::is_none")]
    pub mechanics: Option<Mechanics>,
    /// How the model's answer ended, or its last one if it called tools in between. Null if no model has answered.
    #[schema(required = true)]
    #[serde(default, deserialize_with = "stored::readable_or_default")]
    pub ending: Option<Ending>,
    /// Why the reply's tool calls could not be parsed. The narrative was delivered, and nothing was executed.
    #[serde(default, deserialize_with = "stored::readable_or_default", skip_serializing_if = "Option::is_none")]
    pub parse_error: Option<String>,
    /// The AI's role in a session's turn: `gm`, `assistant` or `player`.
    #[serde(default, deserialize_with = "stored::readable_or_default", skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub role: Option<entity::session::Role>,
    /// What the AI got: `overview` before a session's first completed turn, `delta` after it.
    #[serde(default, deserialize_with = "stored::readable_or_default", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, required = false)]
    pub context: Option<Context>,
    /// Given dice that were not used.
    #[serde(default, deserialize_with = "stored::readable_or_default", skip_serializing_if = "Option::is_none")]
    pub dice_unused: Option<Vec<u32>>,
    #[serde(default, deserialize_with = "stored::readable_or_default", skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptView>,
    #[serde(default, deserialize_with = "stored::readable_or_default")]
    #[schema(required = true)]
    pub usage: Usage,
    #[serde(default, deserialize_with = "stored::readable_or_default")]
    #[schema(required = true)]
    pub timings_ms: Timings,
    /// The first attempt at this answer, if this is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_turn_id: Option<Uuid>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

impl TurnView {
    /// A turn of which nothing is known yet but what it is about.
    #[must_use]
    pub fn new(id: Uuid, subject: &Subject, status: Status) -> Self {
        Self {
            id,
            kind: subject.kind,
            trigger: Trigger::Player,
            status,
            campaign_id: subject.campaign,
            entity_id: subject.entity,
            player_id: subject.player,
            model: String::new(),
            narrative: String::new(),
            tool_calls: Vec::new(),
            narration: None,
            planned: None,
            mechanics: None,
            ending: None,
            parse_error: None,
            role: None,
            context: None,
            dice_unused: None,
            prompt: None,
            usage: Usage::default(),
            timings_ms: Timings::default(),
            parent_turn_id: None,
            created_at: created_at(id),
        }
    }
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
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Mechanics {
    pub turn_id: Uuid,
    /// The decision in seven lines.
    pub raw: String,
    /// The whole outcome.
    #[schema(value_type = Object)]
    pub parsed: Value,
}

/// What a turn's record contains besides what clients see at once.
#[derive(Debug, Default, Serialize)]
pub struct Trace<'a> {
    pub player_id: Option<Uuid>,
    /// The turn's own message, as the model read it, but without the action: the turn's row has it.
    pub turn_text: String,
    /// The lore entries in the prompt, and those left out because of a budget, the model's context or a secret.
    pub lore: Vec<&'a LoreDecision>,
    /// Why the prompt holds which memories. Without the query if that is the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<KeptReport<'a>>,
    /// What was cut to fit budgets and the model's context, by section.
    pub cut: Vec<(&'static str, &'a str)>,
    pub llm_calls: &'a [LlmCall],
    /// What was removed from the model's texts.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub removed: &'a [Removed],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revert_conflicts: Option<&'a Value>,
}

/// A model call of a turn.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LlmCall {
    /// What the model was asked for.
    #[schema(value_type = Task, required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// The slug of the model profile that was asked; null for the tenant's or the operator's own settings.
    #[schema(required = true)]
    #[serde(default)]
    pub profile: Option<String>,
    pub model: String,
    /// What was sent beside the conversation.
    #[serde(default, deserialize_with = "stored::readable_or_default")]
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
