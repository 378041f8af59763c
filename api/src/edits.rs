//! Steps: changes of many rows in one transaction, which are undone as one.
//!
//! A step is a stretch of its campaign's journal: a transaction holds the campaign's feed from its first row to its commit, so
//! that nobody else's rows stand between. Undoing one is a step too, so it can be undone again.

use serde::Serialize;
use serde_json::Value;
use sqlx::{Executor, postgres::PgRow};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    app::App,
    auth::Caller,
    error::{Code, Error, FieldError, Result},
    http::{
        self, Reply,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id},
    },
    journal,
    stored::{self, Columns},
    tenancy::{Origin, TenantTx},
};

/// What an undone step answers.
#[derive(Debug, Serialize, ToSchema)]
pub struct Undone {
    pub step_id: Uuid,
    #[serde(with = "time::serde::rfc3339")]
    pub undone_at: OffsetDateTime,
    pub changes_reverted: i32,
    /// The undoing as a step of its own: undo it to have the changes again.
    pub undo_step_id: Option<Uuid>,
}

/// A step may take longer than a request that touches one row.
///
/// # Errors
/// Those of the database.
pub async fn take_time(tx: &TenantTx) -> Result<()> {
    tx.take_time(60).await
}

/// Keeps what this transaction has changed so far as a step; none if that is nothing. Two statements.
///
/// # Errors
/// Those of the database.
pub async fn record(tx: &TenantTx, caller: &Caller, campaign: Uuid, what: &str) -> Result<Option<Uuid>> {
    // The journal's rows are due at the commit; the step needs their numbers.
    tx.connection().await.execute("SET CONSTRAINTS b_journal IMMEDIATE").await?;
    let id = Uuid::now_v7();
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
/// `undo_conflict` naming each row that was changed since, `gone` if its journal was pruned, `conflict` if it was undone.
pub async fn undo(
    app: &App,
    caller: &Caller,
    c: &str,
    step: Uuid,
    what: &str,
    key: Option<&IdempotencyKey>,
) -> Result<Reply> {
    let mut actor = caller.actor();
    actor.origin = Origin::Revert;
    http::write_in(
        async || TenantTx::write(&app.pool, &actor).await,
        key,
        async |tx| {
            let campaign = campaign_id(tx, caller, &Ref::parse(c)).await?;
            Reply::ok(&undo_in(tx, caller, campaign, (step, what), false).await?)
        },
    )
    .await
    .map_err(Error::of_delete)
}

/// The same in a transaction of the caller's, whose origin is a revert. With `leaves_changed` what was changed since is left as
/// it is now, and the rest undone.
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
         WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3 AND what = $4 FOR UPDATE",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(step)
    .bind(what)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("step"))?;
    if row.read::<Option<OffsetDateTime>>("undone_at")?.is_some() {
        return Err(Error::new(Code::Conflict, "The step was undone already."));
    }
    if row.read("is_redacted")? {
        return Err(Error::new(Code::Gone, "Words in what this step changed were erased: it cannot be undone."));
    }
    if row.read::<i64>("first_seq")? <= journal::head(tx, campaign).await?.1 {
        return Err(Error::new(Code::Gone, "The journal of this step has been pruned."));
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

/// A step that was taken.
#[derive(Clone, Debug)]
pub struct Step {
    pub id: Uuid,
    pub at: OffsetDateTime,
    pub rows: i32,
    pub undone_at: Option<OffsetDateTime>,
    pub first_seq: i64,
    pub last_seq: i64,
    /// Whether it undid another.
    pub is_undo: bool,
    /// What its first rows are called.
    pub labels: Vec<String>,
    /// What it changed in the first of them.
    pub columns: Vec<String>,
    /// What its first row was: `insert`, `update` or `delete`; none once the journal is pruned.
    pub op: Option<String>,
}

/// The last steps of this kind, newest first; with `one` that one alone. One statement.
///
/// # Errors
/// Those of the database.
pub async fn recent(tx: &TenantTx, campaign: Uuid, what: &str, one: Option<Uuid>, rows_max: i64) -> Result<Vec<Step>> {
    let rows = sqlx::query(
        "SELECT s.id, s.created_at, s.rows, s.undone_at, s.first_seq, s.last_seq, coalesce(f.is_undo, false) AS is_undo, f.op, \
                coalesce(f.labels, '{}') AS labels, coalesce(f.columns, '{}') AS columns \
         FROM edit_step s LEFT JOIN LATERAL ( \
             SELECT bool_or(j.origin = 'revert') AS is_undo, (array_agg(j.op ORDER BY j.seq))[1] AS op, \
                    array_agg(left(coalesce(c ->> 'title', c ->> 'name', c ->> 'text', ''), 120) ORDER BY j.seq) AS labels, \
                    (array_agg(CASE j.op WHEN 'update' THEN ARRAY(SELECT k FROM jsonb_object_keys(j.after) AS k \
                         WHERE j.after -> k IS DISTINCT FROM j.before -> k \
                           AND k NOT IN ('version', 'updated_at', 'search', 'tokens', 'associated_key') ORDER BY k)::text \
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

/// Why there was nothing to revert: somebody else took the new row away. It is in nobody's way.
pub const GONE: &str = "gone";

/// What stood in the way of a revert.
#[derive(Debug)]
pub struct Conflict {
    pub table: String,
    pub id: String,
    pub column: Option<String>,
    pub reason: String,
}

impl Conflict {
    /// Reads what `turns::store::revert` reports.
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

/// Conflicts listed in one answer.
pub const CONFLICTS_MAX: usize = 100;

/// Refuses an undo that something stands in the way of. `what` is undone: a turn or a step.
///
/// # Errors
/// `undo_conflict`.
pub fn refuse_conflicts(conflicts: impl Iterator<Item = Conflict>, what: &str) -> Result<()> {
    let conflicts: Vec<Conflict> = conflicts.collect();
    refuse_some(&conflicts, conflicts.len(), what)
}

/// The same where not all of them are at hand, but how many there are.
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
    let mut error = Error::new(Code::UndoConflict, format!("{count} came after the {what}; nothing was undone."));
    error.errors = conflicts
        .iter()
        .take(CONFLICTS_MAX)
        .map(|c| FieldError {
            pointer: format!("/{}/{}", c.table, c.id),
            message: match &c.column {
                Some(column) => format!("`{column}` was changed after the {what}."),
                None if c.reason == "used_since" => {
                    format!("It has memories or words that came after the {what}, which would go with it.")
                }
                None => format!("The row was changed, deleted or made again after the {what}."),
            },
            code: c.reason.clone().into(),
        })
        .collect();
    Err(error)
}
