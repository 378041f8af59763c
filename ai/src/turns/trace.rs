//! Reads a stored turn: the answer as it was given, what is known since, and, for those who may see secrets, the whole trace.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, postgres::PgRow, types::Json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

use super::{
    kind::TurnKind,
    record::{Stretch, TurnRecord, TurnTrace},
    view::{CallError, TurnView},
    words::{About, Words},
};
use base::{
    error::{Error, Result},
    stored::{Columns, readable},
};
use db::tenancy::TenantTx;
use edge::caller::{Caller, Scope};

/// A turn, with its trace for a caller who sees secrets. A player's token reads its own turns, without prompts.
///
/// # Errors
/// `not_found`; `forbidden` for a session's turn without the scope `read`.
pub async fn find(tx: &TenantTx, caller: &Caller, campaign: Uuid, turn: Uuid) -> Result<TurnRecord> {
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
    let record = record_of_row(&row, caller)?;
    if !caller.sees_secrets() {
        return Ok(record);
    }
    let trace: Option<TurnTrace> = read_part(&row, "trace");
    let action = row.read::<Option<String>>("action")?.unwrap_or_default();
    let journal: Stretch = row.read_json("journal")?;
    Ok(TurnRecord { trace: trace.map(|trace| trace.with_action(action)), journal: Some(journal), ..record })
}

/// A part of a turn's record. A part that cannot be read is missing, which is logged and counted.
pub(super) fn read_part<T: DeserializeOwned>(row: &PgRow, column: &str) -> Option<T> {
    readable(row.read::<Option<Json<T>>>(column)).flatten().map(|Json(part)| part)
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

/// The columns that [`record_of_row`] and [`words`] read: from the record only the answer and the prompt, not the trace.
pub const COLUMNS: &str = "id, kind, trigger, told_as, status, campaign_id, entity_id, player_id, reply_mode, on_failure, error, undone_at, finished_at, \
    created_at, parent_turn_id, chosen, edited_at, turn_alternatives(tenant_id, id, parent_turn_id) AS alternatives, revert_conflicts, revert_conflicts_total, redacted_at, \
    CASE WHEN revert_as IS NOT NULL THEN json_build_object('into', revert_as, 'changes', revert_total, 'done', revert_done, \
        'tries', revert_tries, 'next_try_at', revert_try_at, 'last_error', revert_error) END AS reverting, turn_is_unheard(tenant_id, id) AS is_unheard, record -> 'view' AS view, \
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

/// The turn of a row: the answer as it was given, with what the row says of it.
///
/// # Errors
/// `internal` if the row cannot be read, or says something that this server does not know.
pub(super) fn view_of_row(row: &PgRow) -> Result<TurnView> {
    let mut members: Map<String, Value> = read_part(row, "view").unwrap_or_default();
    let facts = json!({
        "id": row.read::<Uuid>("id")?,
        "kind": row.read::<&str>("kind")?,
        "trigger": row.read::<&str>("trigger")?,
        "status": row.read::<&str>("status")?,
        "campaign_id": row.read::<Uuid>("campaign_id")?,
        "entity_id": row.read::<Uuid>("entity_id")?,
        "player_id": row.read::<Option<Uuid>>("player_id")?,
        "parent_turn_id": row.read::<Option<Uuid>>("parent_turn_id")?,
        "created_at": row.read::<OffsetDateTime>("created_at")?.format(&Rfc3339).map_err(Error::internal)?,
    });
    if let Value::Object(facts) = facts {
        members.extend(facts);
    }
    TurnView::deserialize(Value::Object(members)).map_err(Error::internal)
}

/// A turn as this caller may read it: the answer as it was given, and what is known since.
///
/// # Errors
/// `internal` if the row cannot be read.
pub fn record_of_row(row: &PgRow, caller: &Caller) -> Result<TurnRecord> {
    let mut turn = view_of_row(row)?;
    turn.prompt = read_part(row, "prompt").or(turn.prompt);
    let parent_turn_id = turn.parent_turn_id.take();
    let mut record = TurnRecord {
        turn,
        reply_mode: row.read_name("reply_mode")?,
        on_failure: row.read_name("on_failure")?,
        error: read_part::<CallError>(row, "error"),
        finished_at: row.read("finished_at")?,
        undone_at: row.read("undone_at")?,
        redacted_at: row.read("redacted_at")?,
        parent_turn_id,
        alternatives: row.read("alternatives")?,
        chosen: row.read("chosen")?,
        edited_at: row.read("edited_at")?,
        revert_conflicts: Some(row.read::<Option<Value>>("revert_conflicts")?.unwrap_or_default()),
        revert_conflicts_total: Some(row.read::<i32>("revert_conflicts_total")?).filter(|conflicts| *conflicts > 0),
        reverting: read_part(row, "reverting"),
        trace: None,
        journal: None,
    };
    words(row, caller)?.narrow_record(&mut record);
    Ok(record)
}
