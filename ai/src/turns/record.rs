//! The record of a turn: how it is written, and how it is read again.

use serde::{Deserialize, Serialize};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    clean::Removed,
    job::OnFailure,
    view::{CallError, LlmCall, PromptView, Trace, TurnView, Usage},
};
use crate::{
    prompt::{LoreDecision, recall_report::RecallReport},
    tools::shorten::shorten,
};
use base::{
    error::{Error, Result},
    stored,
};
use edge::http::Made;
use llm::ReplyMode;
use world::messages::prompt_text;

/// The most bytes of a turn's answer, and of its trace. Its record has no more than both.
const VIEW_BYTES_MAX: usize = 1024 * 1024;
const TRACE_BYTES_MAX: usize = 1024 * 1024;
/// About how many bytes the prompt's view has, and the names of the record's members.
const PROMPT_BYTES: usize = 4 * 1024;
const NAMES_BYTES: usize = 64;

/// A turn with its record.
pub struct Recorded {
    /// The turn as clients see it. If it is too large, its calls are shortened.
    pub answer: Made<TurnView>,
    /// Its JSON together with the trace.
    pub record: String,
}

/// Records a turn. `hidden` is the prompt of a turn whose player does not see it.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn recorded(view: TurnView, hidden: Option<PromptView>, trace: &Trace<'_>) -> Result<Recorded> {
    #[derive(Serialize)]
    struct Record<'a> {
        view: &'a RawValue,
        /// The prompt, if the view has none because it is a player's.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt: Option<PromptView>,
        trace: &'a RawValue,
    }
    let (view, json) = whole_or_short(view)?;
    let mut told = to_raw_value(trace).map_err(Error::internal)?;
    if told.get().len() > TRACE_BYTES_MAX {
        let whole = serde_json::to_value(trace).map_err(Error::internal)?;
        told = to_raw_value(&shorten(whole, TRACE_BYTES_MAX)).map_err(Error::internal)?;
    }
    let hidden_bytes = hidden.as_ref().map_or(0, |_| PROMPT_BYTES);
    let mut record = Vec::with_capacity(json.get().len() + told.get().len() + hidden_bytes + NAMES_BYTES);
    serde_json::to_writer(&mut record, &Record { view: &json, prompt: hidden, trace: &told })
        .map_err(Error::internal)?;
    let record = String::from_utf8(record).map_err(Error::internal)?;
    Ok(Recorded { answer: Made::with_json(view, json), record })
}

/// The turn, and its JSON. If that is too large, its calls share the available room.
fn whole_or_short(mut view: TurnView) -> Result<(TurnView, Box<RawValue>)> {
    let json = to_raw_value(&view).map_err(Error::internal)?;
    if json.get().len() <= VIEW_BYTES_MAX || view.tool_calls.is_empty() {
        return Ok((view, json));
    }
    let share = VIEW_BYTES_MAX / 2 / (2 * view.tool_calls.len());
    for call in &mut view.tool_calls {
        call.arguments = shorten(call.arguments.take(), share);
        call.result = call.result.take().map(|result| shorten(result, share));
    }
    let json = to_raw_value(&view).map_err(Error::internal)?;
    Ok((view, json))
}

/// A stored turn: its answer, and what is known since.
#[derive(Debug, Serialize, ToSchema)]
pub struct TurnRecord {
    // Without `parent_turn_id`, which stands below.
    #[serde(flatten)]
    pub turn: TurnView,
    pub reply_mode: ReplyMode,
    /// What happens to the effects if the turn fails or is cancelled. If a player cancelled it, they stay.
    pub on_failure: OnFailure,
    /// Why the turn failed or was cancelled.
    #[schema(required = true)]
    pub error: Option<CallError>,
    #[schema(required = true)]
    #[serde(with = "time::serde::rfc3339::option")]
    pub finished_at: Option<OffsetDateTime>,
    #[schema(required = true)]
    #[serde(with = "time::serde::rfc3339::option")]
    pub undone_at: Option<OffsetDateTime>,
    /// When text in it was erased.
    #[schema(required = false)]
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub redacted_at: Option<OffsetDateTime>,
    /// The first attempt at this answer, if this is another one.
    #[schema(required = true)]
    pub parent_turn_id: Option<Uuid>,
    /// All attempts at this answer, the oldest first. Empty if there is only one.
    pub alternatives: Vec<Uuid>,
    /// Whether the turn's messages and effects are in the world. Another attempt at the answer is chosen otherwise.
    pub chosen: bool,
    /// When somebody corrected the narrative.
    #[schema(required = true)]
    #[serde(with = "time::serde::rfc3339::option")]
    pub edited_at: Option<OffsetDateTime>,
    /// The changes of a failed turn that could not be reverted, because somebody else had changed the rows. Not for players.
    #[schema(value_type = Option<Vec<RevertConflict>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revert_conflicts: Option<Value>,
    /// The number of all conflicts; `revert_conflicts` has the first hundred. Not for players.
    #[schema(required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revert_conflicts_total: Option<i32>,
    /// The progress while the turn is being reverted or undone. Not for players.
    #[schema(required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverting: Option<Reverting>,
    /// Lore decisions, model calls, the prompt's text. Only for a single turn and with the scope `gm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TurnTrace>,
    /// The turn's range in the journal. Only for a single turn and with the scope `gm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<Stretch>,
}

/// How a turn came about.
// What of a record cannot be read, or was not written by an older server, has its default.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TurnTrace {
    /// Null for a session's turn.
    #[serde(default, deserialize_with = "stored::readable_or_default")]
    #[schema(required = true)]
    pub player_id: Option<Uuid>,
    /// What the player did or said, or the instruction of a session's turn.
    #[serde(default, deserialize_with = "stored::readable_or_default")]
    #[schema(required = true)]
    pub action: String,
    /// The turn's own message, as the model read it.
    #[serde(default, deserialize_with = "stored::readable_or_default")]
    #[schema(required = true)]
    pub turn_text: String,
    /// At most 200 lore entries: those in the prompt, and those left out because of a budget or a secret.
    #[serde(default, deserialize_with = "stored::readable_items")]
    #[schema(required = true)]
    pub lore: Vec<LoreDecision>,
    /// Why the prompt held which memories. Only for turns of NPCs and owners that a model answered.
    #[serde(default, deserialize_with = "stored::readable_or_default", skip_serializing_if = "Option::is_none")]
    pub recall: Option<RecallReport>,
    /// What was cut to fit budgets and the model's context: for each section its name and what was cut.
    #[serde(default, deserialize_with = "stored::readable_items")]
    #[schema(required = true)]
    pub cut: Vec<Vec<String>>,
    /// The calls to models, in order.
    #[serde(default, deserialize_with = "stored::readable_items")]
    #[schema(required = true)]
    pub llm_calls: Vec<LlmCall>,
    /// What was removed from the model's texts; see `settings.clean_answers`.
    #[serde(default, deserialize_with = "stored::readable_items", skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, max_items = 50)]
    pub removed: Vec<Removed>,
    /// The changes that could not be reverted when the turn failed.
    #[schema(value_type = Option<Vec<RevertConflict>>, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revert_conflicts: Option<Value>,
    /// Set if the trace was too large to be kept whole.
    #[schema(ignore)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortened: Option<String>,
}

impl TurnTrace {
    /// What the model calls cost together, in micro-units. None unless the trace has all that `used` counts, with prices.
    #[must_use]
    pub fn cost(&self, used: &Usage) -> Option<u64> {
        let calls = self.llm_calls.iter().flat_map(|call| {
            let tried = call.tried.iter().filter_map(|tried| Some((tried.usage?, tried.cost_micros)));
            tried.chain([(call.usage, call.cost_micros)])
        });
        let (told, cost) = calls.fold((0, Some(0)), |(told, sum): (u32, Option<u64>), (usage, cost)| {
            (told.saturating_add(usage.llm_calls), sum.zip(cost).map(|(sum, cost)| sum.saturating_add(cost)))
        });
        cost.filter(|_| told > 0 && told == used.llm_calls)
    }

    /// The trace with what the record does not repeat, because the turn's row has it: the action, which is a part of the turn's own
    /// message and may be what memories were compared with.
    #[must_use]
    pub fn with_action(self, action: String) -> Self {
        let recall = self.recall.map(|report| report.about(&action));
        Self { turn_text: prompt_text::with_words(self.turn_text, &action), recall, action, ..self }
    }
}

/// A change that could not be reverted or undone. The database writes it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what the database writes")]
struct RevertConflict {
    /// The kind of row.
    table: String,
    /// The row's id.
    id: Uuid,
    /// The column that somebody else has changed; null for a whole row.
    #[schema(required = true)]
    column: Option<String>,
    /// Why: what happened to the row or the column.
    reason: String,
}

/// The progress of reverting or undoing a turn.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Reverting {
    /// The turn's status when that is done: `failed`, `cancelled` or `undone`.
    pub into: String,
    /// How many changes there were when it began.
    pub changes: Option<i32>,
    /// How many of them have been handled.
    pub done: i32,
    /// How many attempts have failed since the last progress.
    pub tries: i32,
    /// When the next attempt begins, if the last one failed.
    #[schema(value_type = Option<String>)]
    #[serde(with = "time::serde::rfc3339::option")]
    pub next_try_at: Option<OffsetDateTime>,
    /// Why the last attempt failed. Only with the scope `gm`.
    pub last_error: Option<String>,
}

/// A range of the journal.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Stretch {
    /// Null for a turn that changed nothing.
    pub first_seq: Option<i64>,
    pub last_seq: Option<i64>,
}
