//! A stored turn: the answer as it was given, what is known since, and, for those who may see secrets, the whole trace.

use serde::Serialize;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    clean::Removed,
    job::OnFailure,
    kind::TurnKind,
    view::{CallError, LlmCall, Timings, TurnView},
    words::{About, Words},
};
use crate::prompt::{
    LoreDecision,
    recall_report::{self, RecallReport},
};
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::caller::{Caller, Scope};
use llm::{ReplyMode, Usage};
use world::messages::prompt_text;

/// A stored turn: its answer, and what is known since.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the result of `view_of_row` and `find`")]
pub struct TurnRecord {
    #[serde(flatten)]
    turn: TurnView,
    reply_mode: ReplyMode,
    /// What happens to the effects if the turn fails or is cancelled. If a player cancelled it, they stay.
    on_failure: OnFailure,
    /// Why the turn failed or was cancelled.
    #[schema(required = true)]
    error: Option<CallError>,
    #[schema(required = true)]
    finished_at: Option<OffsetDateTime>,
    #[schema(required = true)]
    undone_at: Option<OffsetDateTime>,
    /// When text in it was erased.
    #[schema(required = false)]
    redacted_at: Option<OffsetDateTime>,
    /// The first attempt at this answer, if this is another one.
    #[schema(required = true)]
    parent_turn_id: Option<Uuid>,
    /// All attempts at this answer, the oldest first. Empty if there is only one.
    alternatives: Vec<Uuid>,
    /// Whether the turn's messages and effects are in the world. Another attempt at the answer is chosen otherwise.
    chosen: bool,
    /// When somebody corrected the narrative.
    #[schema(required = true)]
    edited_at: Option<OffsetDateTime>,
    /// The changes of a failed turn that could not be reverted, because somebody else had changed the rows. Not for players.
    #[schema(value_type = Option<Vec<RevertConflict>>)]
    revert_conflicts: Option<Value>,
    /// The number of all conflicts; `revert_conflicts` has the first hundred. Not for players.
    #[schema(required = false)]
    revert_conflicts_total: Option<i32>,
    /// The progress while the turn is being reverted or undone. Not for players.
    #[schema(required = false)]
    reverting: Option<Reverting>,
    /// Lore decisions, model calls, the prompt's text. Only for a single turn and with the scope `gm`.
    trace: Option<TurnTrace>,
    /// The turn's range in the journal. Only for a single turn and with the scope `gm`.
    journal: Option<Stretch>,
}

/// How a turn came about.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a stored `super::view::Trace` with the turn's action")]
struct TurnTrace {
    /// Null for a session's turn.
    #[schema(required = true)]
    player_id: Option<Uuid>,
    /// What the player did or said, or the instruction of a session's turn.
    action: String,
    /// The turn's own message, as the model read it.
    turn_text: String,
    /// At most 200 lore entries: those in the prompt, and those left out because of a budget or a secret.
    lore: Vec<LoreDecision>,
    /// Why the prompt held which memories. Only for turns of NPCs and owners that a model answered.
    recall: Option<RecallReport>,
    /// What was cut to fit budgets and the model's context: for each section its name and what was cut.
    cut: Vec<Vec<String>>,
    /// The calls to models, in order.
    llm_calls: Vec<LlmCall>,
    /// What was removed from the model's texts; see `settings.clean_answers`.
    #[schema(required = false, max_items = 50)]
    removed: Vec<Removed>,
    /// The changes that could not be reverted when the turn failed.
    #[schema(required = false)]
    revert_conflicts: Option<Vec<RevertConflict>>,
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
#[derive(Debug, Serialize, ToSchema)]
pub struct Reverting {
    /// The turn's status when that is done: `failed`, `cancelled` or `undone`.
    into: String,
    /// How many changes there were when it began.
    changes: Option<i32>,
    /// How many of them have been handled.
    done: i32,
    /// How many attempts have failed since the last progress.
    tries: i32,
    /// When the next attempt begins, if the last one failed.
    next_try_at: Option<String>,
    /// Why the last attempt failed. Only with the scope `gm`.
    last_error: Option<String>,
}

/// A range of the journal.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what `find` has the database write")]
pub struct Stretch {
    /// Null for a turn that changed nothing.
    first_seq: Option<i64>,
    last_seq: Option<i64>,
}

/// A turn, with its trace for a caller who sees secrets. A player's token reads its own turns, without prompts.
///
/// # Errors
/// `not_found`; `forbidden` for a session's turn without the scope `read`.
pub async fn find(tx: &TenantTx, caller: &Caller, campaign: Uuid, turn: Uuid) -> Result<Value> {
    let sql = format!(
        "SELECT {COLUMNS}, CASE WHEN $5 THEN record -> 'trace' END AS trace, action, \
             (SELECT jsonb_build_object('first_seq', min(j.seq), 'last_seq', max(j.seq)) FROM journal j \
              WHERE j.tenant_id = $1 AND j.turn_id = t.id) AS journal \
         FROM turn t WHERE t.tenant_id = $1 AND t.campaign_id = $2 AND t.id = $3 AND ($4::uuid IS NULL OR t.player_id = $4)"
    );
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(turn)
        .bind(caller.player)
        .bind(caller.sees_secrets())
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("turn"))?;
    if row.read::<&str>("kind")? == "gm" {
        caller.needs(Scope::Read, "A session's turn")?;
    }
    let mut view = view_of_row(&row, caller)?;
    if caller.sees_secrets()
        && let Value::Object(members) = &mut view
    {
        if let Some(mut trace) = row.read::<Option<Value>>("trace")? {
            add_what_is_not_kept(&mut trace, row.read("action")?);
            members.insert("trace".to_owned(), trace);
        }
        members.insert("journal".to_owned(), row.read("journal")?);
    }
    Ok(view)
}

/// The record does not repeat what the turn's row says: the action, which is also a part of the turn's own message. And it keeps the
/// report on memories in a short form.
fn add_what_is_not_kept(trace: &mut Value, action: Option<String>) {
    let action = action.unwrap_or_default();
    if let Some(Value::String(text)) = trace.get_mut("turn_text") {
        *text = prompt_text::with_words(std::mem::take(text), &action);
    }
    if let Some(recall) = trace.get_mut("recall") {
        recall_report::unfold(recall, &action);
    }
    if let Value::Object(members) = trace {
        members.insert("action".to_owned(), Value::String(action));
    }
}

/// The names of those who took part.
pub struct Names {
    /// The NPC or owner, by id and name.
    pub entity: Option<(Uuid, String)>,
    /// The character.
    pub player: Option<(Uuid, String)>,
}

/// Those who took part in a turn, if they still exist.
///
/// # Errors
/// `not_found`.
pub async fn names(tx: &TenantTx, turn: Uuid) -> Result<Names> {
    let row = sqlx::query(
        "SELECT t.entity_id, t.player_id, coalesce(n.name, o.name) AS entity, c.name AS player \
         FROM turn t LEFT JOIN npc n ON n.tenant_id = $1 AND n.id = t.entity_id \
         LEFT JOIN owner o ON o.tenant_id = $1 AND o.id = t.entity_id \
         LEFT JOIN character c ON c.tenant_id = $1 AND c.id = t.player_id WHERE t.tenant_id = $1 AND t.id = $2",
    )
    .bind(tx.tenant())
    .bind(turn)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("turn"))?;
    let named = |id: &str, name: &str| -> Result<_> {
        Ok(row.read::<Option<Uuid>>(id)?.zip(row.read::<Option<String>>(name)?))
    };
    Ok(Names { entity: named("entity_id", "entity")?, player: named("player_id", "player")? })
}

/// The columns that [`view_of_row`] and [`words`] read: from the record only the answer and the prompt, not the trace.
pub const COLUMNS: &str = "id, kind, trigger, told_as, status, campaign_id, entity_id, player_id, reply_mode, on_failure, error, undone_at, finished_at, \
    created_at, parent_turn_id, chosen, edited_at, turn_alternatives(tenant_id, id, parent_turn_id) AS alternatives, revert_conflicts, revert_conflicts_total, revert_as, revert_total, revert_done, \
    revert_tries, revert_try_at, revert_error, redacted_at, turn_is_unheard(tenant_id, id) AS is_unheard, record -> 'view' AS view, \
    record -> 'prompt' AS prompt";

/// What the caller may read of a turn's row.
///
/// # Errors
/// `internal` if the row cannot be read.
pub fn words(row: &PgRow, caller: &Caller) -> Result<Words> {
    let about = About {
        kind: TurnKind::named(row.read("kind")?),
        told_as: row.read("told_as")?,
        status: row.read("status")?,
        is_undone: row.read::<Option<OffsetDateTime>>("undone_at")?.is_some(),
        player: row.read("player_id")?,
        is_unheard: row.read("is_unheard")?,
    };
    Ok(Words::of(caller, &about))
}

/// A turn as this caller may read it: the answer as it was given, and what is known since.
///
/// # Errors
/// `internal` if the row cannot be read.
pub fn view_of_row(row: &PgRow, caller: &Caller) -> Result<Value> {
    let time = |name: &str| -> Result<_> {
        Ok(row.read::<Option<OffsetDateTime>>(name)?.and_then(|t| t.format(&Rfc3339).ok()))
    };
    let mut view = row.read::<Option<Value>>("view")?.unwrap_or_else(|| {
        let (usage, timings) = (Usage::default(), Timings::default());
        json!({ "model": "", "narrative": "", "tool_calls": [], "usage": usage, "timings_ms": timings })
    });
    if let Value::Object(members) = &mut view {
        // Records of turns that never answered, and older ones, do not have it.
        members.entry("ending").or_insert(Value::Null);
        let facts = [
            ("id", json!(row.read::<Uuid>("id")?)),
            ("kind", json!(row.read::<String>("kind")?)),
            ("trigger", json!(row.read::<String>("trigger")?)),
            ("status", json!(row.read::<String>("status")?)),
            ("campaign_id", json!(row.read::<Uuid>("campaign_id")?)),
            ("entity_id", json!(row.read::<Option<Uuid>>("entity_id")?)),
            ("player_id", json!(row.read::<Option<Uuid>>("player_id")?)),
            ("reply_mode", json!(row.read::<String>("reply_mode")?)),
            ("on_failure", json!(row.read::<String>("on_failure")?)),
            ("error", row.read::<Option<Value>>("error")?.unwrap_or_default()),
            ("undone_at", json!(time("undone_at")?)),
            ("finished_at", json!(time("finished_at")?)),
            ("created_at", json!(time("created_at")?)),
            ("parent_turn_id", json!(row.read::<Option<Uuid>>("parent_turn_id")?)),
            ("alternatives", json!(row.read::<Vec<Uuid>>("alternatives")?)),
            ("chosen", json!(row.read::<bool>("chosen")?)),
            ("edited_at", json!(time("edited_at")?)),
            ("revert_conflicts", row.read::<Option<Value>>("revert_conflicts")?.unwrap_or_default()),
        ];
        members.extend(facts.map(|(name, value)| (name.to_owned(), value)));
        if let Some(at) = time("redacted_at")? {
            members.insert("redacted_at".to_owned(), json!(at));
        }
        if let Some(into) = row.read("revert_as")? {
            let reverting = Reverting {
                into,
                changes: row.read("revert_total")?,
                done: row.read("revert_done")?,
                tries: row.read("revert_tries")?,
                next_try_at: time("revert_try_at")?,
                last_error: row.read::<Option<String>>("revert_error")?.filter(|_| caller.sees_secrets()),
            };
            members.insert("reverting".to_owned(), json!(reverting));
        }
        let conflicts: i32 = row.read("revert_conflicts_total")?;
        if conflicts > 0 {
            members.insert("revert_conflicts_total".to_owned(), json!(conflicts));
        }
        if let Some(prompt) = row.read::<Option<Value>>("prompt")? {
            members.insert("prompt".to_owned(), prompt);
        }
    }
    words(row, caller)?.narrow(&mut view);
    Ok(view)
}
