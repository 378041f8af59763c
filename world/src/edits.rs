//! Steps: changes of many rows in one transaction that can be undone as one.
//!
//! A step is a contiguous range of its campaign's journal. A transaction locks the campaign's feed from its first row to its
//! commit, so no other rows come between. Undoing a step is a step too, so it can be undone again.

use serde::Serialize;
use serde_json::Value;
use sqlx::{Executor, postgres::PgRow};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::journal;
use base::{
    clock,
    error::{Code, Error, FieldError, Result},
    stored::{self, Columns},
};
use db::tenancy::{Origin, TenantTx};
use edge::{
    caller::Caller,
    http::{
        self, Answer, Written,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id},
    },
    state::Edge,
};

/// The answer to undoing a step.
#[derive(Debug, Serialize, ToSchema)]
pub struct Undone {
    pub step_id: Uuid,
    #[serde(with = "time::serde::rfc3339")]
    pub undone_at: OffsetDateTime,
    pub changes_reverted: i32,
    /// The step that this undo made. Undo it to bring the changes back.
    pub undo_step_id: Option<Uuid>,
}

/// Allows a longer time limit, because a step changes many rows.
///
/// # Errors
/// Database errors.
pub async fn take_time(tx: &TenantTx) -> Result<()> {
    tx.take_time(60).await
}

/// Records this transaction's changes so far as a step. `None` if nothing changed. Two statements.
///
/// # Errors
/// Database errors.
pub async fn record(tx: &TenantTx, caller: &Caller, campaign: Uuid, what: &str) -> Result<Option<Uuid>> {
    // Triggers write the journal's rows at the commit, but the step needs their numbers now.
    tx.connection().await.execute("SET CONSTRAINTS b_journal IMMEDIATE").await?;
    let id = clock::id();
    let done = sqlx::query(
        "INSERT INTO edit_step (tenant_id, id, campaign_id, author, what, first_seq, last_seq, rows) \
         SELECT $1, $2, $3, $4, $5, f.last - f.rows + 1, f.last, f.rows \
         FROM (SELECT split_part(feed, ':', 2)::bigint AS last, split_part(feed, ':', 3)::bigint AS rows \
               FROM current_setting('app.feed', true) AS feed WHERE split_part(feed, ':', 1) = $3::text) f",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(campaign)
    .bind(caller.author())
    .bind(what)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok((done.rows_affected() == 1).then_some(id))
}

/// Undoes a step of this kind.
///
/// # Errors
/// `undo_conflict` with each row that was changed since, `gone` if its journal was pruned, `conflict` if the step was
/// undone already.
pub async fn undo(
    app: &Edge,
    caller: &Caller,
    c: &str,
    step: Uuid,
    what: &str,
    key: Option<&IdempotencyKey>,
) -> Result<Written<Undone>> {
    let mut actor = caller.actor();
    actor.origin = Origin::Revert;
    http::write_in(
        async || TenantTx::write(&app.pool, &actor).await,
        key,
        async |tx| {
            let campaign = campaign_id(tx, caller, &Ref::parse(c)).await?;
            Ok(Answer::ok(undo_in(tx, caller, campaign, (step, what), false).await?))
        },
    )
    .await
    .map_err(Error::of_delete)
}

/// Undoes a step in the caller's transaction, whose origin must be a revert. With `leaves_changed`, rows that were changed
/// since keep their values and the rest is undone.
///
/// # Errors
/// As for [`undo`].
pub async fn undo_in(
    tx: &TenantTx,
    caller: &Caller,
    campaign: Uuid,
    (step, what): (Uuid, &str),
    leaves_changed: bool,
) -> Result<Undone> {
    take_time(tx).await?;
    let row = sqlx::query(
        "SELECT first_seq, last_seq, rows, undone_at, EXISTS (SELECT FROM journal j WHERE j.tenant_id = $1 AND j.campaign_id = $2 \
             AND j.seq BETWEEN first_seq AND last_seq AND j.redacted_at IS NOT NULL) AS is_redacted FROM edit_step \
         WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3 AND what = $4 FOR NO KEY UPDATE",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(step)
    .bind(what)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("step"))?;
    if row.read::<Option<OffsetDateTime>>("undone_at")?.is_some() {
        return Err(Error::new(Code::Conflict, "The step has already been undone."));
    }
    if row.read("is_redacted")? {
        return Err(Error::new(Code::Gone, "This step cannot be undone: somebody's words in its changes were erased."));
    }
    if row.read::<i64>("first_seq")? <= journal::head(tx, campaign).await?.1 {
        return Err(Error::new(Code::Gone, "This step cannot be undone: its journal entries have been pruned."));
    }
    let conflicts = sqlx::query("SELECT * FROM revert_step($1, $2, $3)")
        .bind(campaign)
        .bind(row.read::<i64>("first_seq")?)
        .bind(row.read::<i64>("last_seq")?)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    if !leaves_changed {
        let conflicts = conflicts.iter().map(conflict).collect::<Result<Vec<_>>>()?;
        refuse_conflicts(conflicts.into_iter().filter(|c| c.reason != GONE), "step")?;
    }
    let undo_step_id = record(tx, caller, campaign, what).await?;
    let undone =
        sqlx::query("UPDATE edit_step SET undone_at = now() WHERE tenant_id = $1 AND id = $2 RETURNING undone_at")
            .bind(tx.tenant())
            .bind(step)
            .fetch_one(&mut *tx.connection().await)
            .await?;
    Ok(Undone {
        step_id: step,
        undone_at: undone.read("undone_at")?,
        changes_reverted: row.read("rows")?,
        undo_step_id,
    })
}

/// A recorded step.
#[derive(Clone, Debug)]
pub struct Step {
    pub id: Uuid,
    pub at: OffsetDateTime,
    pub rows: i32,
    pub undone_at: Option<OffsetDateTime>,
    pub first_seq: i64,
    pub last_seq: i64,
    /// Whether it undid another step.
    pub is_undo: bool,
    /// The names of the first rows that it changed.
    pub labels: Vec<String>,
    /// The columns that it changed in the first of them.
    pub columns: Vec<String>,
    /// The change of its first row: `insert`, `update` or `delete`; `None` once the journal is pruned.
    pub op: Option<String>,
}

/// The last steps of this kind, newest first, or only the step `one`. One statement.
///
/// # Errors
/// Database errors.
pub async fn recent(tx: &TenantTx, campaign: Uuid, what: &str, one: Option<Uuid>, rows_max: i64) -> Result<Vec<Step>> {
    let rows = sqlx::query(
        "SELECT s.id, s.created_at, s.rows, s.undone_at, s.first_seq, s.last_seq, coalesce(f.is_undo, false) AS is_undo, f.op, \
                coalesce(f.labels, '{}') AS labels, coalesce(f.columns, '{}') AS columns \
         FROM edit_step s LEFT JOIN LATERAL ( \
             SELECT bool_or(j.origin = 'revert') AS is_undo, (array_agg(j.op ORDER BY j.seq))[1] AS op, \
                    array_agg(left(coalesce(c ->> 'title', c ->> 'name', c ->> 'text', ''), 120) ORDER BY j.seq) AS labels, \
                    (array_agg(CASE j.op WHEN 'update' THEN ARRAY(SELECT k FROM jsonb_object_keys(j.after) AS k \
                         WHERE j.after -> k IS DISTINCT FROM j.before -> k \
                           AND k NOT IN ('version', 'updated_at', 'search', 'tokens', 'associated_key') \
                           AND NOT starts_with(k, 'folded_') ORDER BY k)::text \
                         END ORDER BY j.seq))[1]::text[] AS columns \
             FROM journal j CROSS JOIN LATERAL (SELECT coalesce(j.after, j.before) AS c) row \
             WHERE j.tenant_id = $1 AND j.campaign_id = $2 AND j.seq BETWEEN s.first_seq AND least(s.last_seq, s.first_seq + 2)) f ON true \
         WHERE s.tenant_id = $1 AND s.campaign_id = $2 AND s.what = $3 \
         AND ($4::uuid IS NULL OR s.id = $4) ORDER BY s.id DESC LIMIT $5",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(what)
    .bind(one)
    .bind(rows_max)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let step = |row: &PgRow| {
        Ok(Step {
            id: row.read("id")?,
            at: row.read("created_at")?,
            rows: row.read("rows")?,
            undone_at: row.read("undone_at")?,
            first_seq: row.read("first_seq")?,
            last_seq: row.read("last_seq")?,
            is_undo: row.read("is_undo")?,
            labels: row.read("labels")?,
            columns: row.read("columns")?,
            op: row.read("op")?,
        })
    };
    Ok(stored::each(&rows, step))
}

/// The reason when there was nothing to revert because somebody deleted the new row. This is not a conflict.
pub const GONE: &str = "gone";

/// A change that prevents a revert.
#[derive(Debug)]
pub struct Conflict {
    pub table: String,
    pub id: String,
    pub column: Option<String>,
    pub reason: String,
}

impl Conflict {
    /// Reads a conflict that `turns::store::revert` reports.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
        Self {
            table: text("table").unwrap_or_default(),
            id: text("id").unwrap_or_default(),
            column: text("column"),
            reason: text("reason").unwrap_or_default(),
        }
    }
}

fn conflict(row: &PgRow) -> Result<Conflict> {
    Ok(Conflict {
        table: row.read("table_name")?,
        id: row.read::<Uuid>("row_id")?.to_string(),
        column: row.read("column_name")?,
        reason: row.read("reason")?,
    })
}

/// The most conflicts that one answer lists.
pub const CONFLICTS_MAX: usize = 100;

/// Fails if there are conflicts. `what` is the thing to undo: a turn or a step.
///
/// # Errors
/// `undo_conflict`.
pub fn refuse_conflicts(conflicts: impl Iterator<Item = Conflict>, what: &str) -> Result<()> {
    let conflicts: Vec<Conflict> = conflicts.collect();
    refuse_some(&conflicts, conflicts.len(), what)
}

/// Fails if there are conflicts, when only some of the `total` are known.
///
/// # Errors
/// `undo_conflict`.
pub fn refuse_some(conflicts: &[Conflict], total: usize, what: &str) -> Result<()> {
    if total == 0 {
        return Ok(());
    }
    let count = match total {
        1 => "1 change".to_owned(),
        n => format!("{n} changes"),
    };
    let detail = match conflicts.first().map(|c| c.reason.as_str()) {
        Some("locked") => format!("Nothing was changed: the {what} changed rows that are locked now."),
        Some("not_enough") => format!("Nothing was changed: the {what} cannot be paid again."),
        _ => format!("Nothing was undone: {count} came after the {what}."),
    };
    let mut error = Error::new(Code::UndoConflict, detail);
    error.errors = conflicts
        .iter()
        .take(CONFLICTS_MAX)
        .map(|c| FieldError {
            pointer: format!("/{}/{}", c.table, c.id),
            message: match (c.reason.as_str(), &c.column) {
                ("locked", _) => "`ai_lock` is true, so this row keeps its values.".to_owned(),
                ("not_enough", Some(column)) => format!("There is too little of `{column}` now to pay for it again."),
                (_, Some(column)) => format!("`{column}` was changed after the {what}."),
                ("used_since", None) => {
                    format!("It has memories or messages newer than the {what}, which would be deleted with it.")
                }
                (_, None) => format!("The row was changed, deleted or created again after the {what}."),
            },
            code: c.reason.clone().into(),
        })
        .collect();
    Err(error)
}
