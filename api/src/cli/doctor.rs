//! `doctor`: checks the database and prints what needs a person. The exit status is then not 0.
//!
//! Each check is a function that queries and judges. None changes anything, and a failing check does not stop the others. To add one,
//! write a function that returns a [`Finding`] and add it to [`CHECKS`].

use std::process::ExitCode;

use futures_util::future::LocalBoxFuture;
use migration::{Migrator, MigratorTrait};
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::{PgConnection, postgres::PgRow};

use super::output::say;
use crate::{
    database::{as_owner, in_time},
    life::{CLOCK_OFF_MAX, follow_clock},
};
use base::{error::Result, stored::Columns};

/// The result of a check.
#[derive(Serialize)]
struct Finding {
    check: &'static str,
    needs_a_person: bool,
    /// One or a few sentences.
    says: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<Value>,
}

impl Finding {
    fn of(check: &'static str, needs_a_person: bool, says: impl Into<String>, details: Vec<Value>) -> Self {
        Self { check, needs_a_person, says: says.into(), details }
    }
}

type Check = for<'a> fn(&'a mut PgConnection) -> LocalBoxFuture<'a, Result<Finding>>;

/// All checks, in order.
const CHECKS: &[(&str, Check)] = &[
    ("schema", |db| Box::pin(schema(db))),
    ("role", |db| Box::pin(role(db))),
    ("row_security", |db| Box::pin(row_security(db))),
    ("clock", |db| Box::pin(clock(db))),
    ("turns", |db| Box::pin(turns(db))),
    ("erasures", |db| Box::pin(erasures(db))),
    ("campaigns", |db| Box::pin(campaigns(db))),
];

/// The most rows that one check lists.
const NAMED_MAX: usize = 20;

/// `tavernkeep doctor`.
///
/// # Errors
/// Only if the answer cannot be written. A failed query is a finding.
pub(super) async fn run(owner_url: &str, as_json: bool) -> Result<ExitCode> {
    let mut findings = Vec::new();
    match in_time(as_owner(owner_url)).await {
        Ok(mut db) => {
            findings.push(database(&mut db).await);
            for (name, check) in CHECKS {
                findings.push(match in_time(check(&mut db)).await {
                    Ok(finding) => finding,
                    Err(error) => {
                        let why = error.cause().map_or_else(|| error.to_string(), ToString::to_string);
                        Finding::of(name, true, format!("The check failed: {why}"), Vec::new())
                    }
                });
            }
        }
        Err(error) => {
            let why = error.cause().map_or_else(|| error.to_string(), ToString::to_string);
            findings.push(Finding::of("database", true, format!("The database cannot be reached: {why}"), Vec::new()));
        }
    }
    let is_well = findings.iter().all(|finding| !finding.needs_a_person);
    let lines = findings.iter().map(|finding| {
        let mark = if finding.needs_a_person { "!!" } else { "ok" };
        let details: String = finding.details.iter().map(|detail| format!("\n     {detail}")).collect();
        format!("{mark}  {}: {}{details}", finding.check, finding.says)
    });
    say(as_json, &json!({ "is_well": is_well, "findings": findings }), &lines.collect::<Vec<_>>().join("\n"));
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn database(db: &mut PgConnection) -> Finding {
    match sqlx::query("SELECT current_setting('server_version') AS version").fetch_one(db).await {
        Ok(row) => {
            let version: String = row.read("version").unwrap_or_default();
            Finding::of("database", false, format!("PostgreSQL {version} answers."), Vec::new())
        }
        Err(error) => Finding::of("database", true, format!("The database does not answer: {error}"), Vec::new()),
    }
}

/// Whether the database has exactly this program's migrations.
async fn schema(db: &mut PgConnection) -> Result<Finding> {
    let rows = sqlx::query("SELECT version FROM seaql_migrations").fetch_all(db).await?;
    let made = rows.iter().map(|row| row.read("version")).collect::<Result<Vec<String>>>()?;
    let ours: Vec<String> = Migrator::migrations().iter().map(|migration| migration.name().to_owned()).collect();
    let missing: Vec<Value> = ours.iter().filter(|name| !made.contains(name)).map(|name| json!(name)).collect();
    let unknown: Vec<Value> = made.iter().filter(|name| !ours.contains(name)).map(|name| json!(name)).collect();
    Ok(match (missing.is_empty(), unknown.is_empty()) {
        (true, true) => Finding::of("schema", false, format!("All {} migrations are applied.", ours.len()), Vec::new()),
        (false, _) => Finding::of("schema", true, "Migrations are missing. Run `tavernkeep migrate`.", missing),
        (true, false) => {
            Finding::of("schema", true, "The schema was migrated by a newer program than this one.", unknown)
        }
    })
}

/// Whether row security applies to the server's role.
async fn role(db: &mut PgConnection) -> Result<Finding> {
    let row = sqlx::query("SELECT rolsuper OR rolbypassrls AS is_free FROM pg_roles WHERE rolname = 'tavernkeep_app'")
        .fetch_optional(db)
        .await?;
    let is_free = row.map(|row| row.read::<bool>("is_free")).transpose()?;
    Ok(match is_free {
        Some(false) => Finding::of("role", false, "Row security applies to `tavernkeep_app`.", Vec::new()),
        Some(true) => Finding::of(
            "role",
            true,
            "`tavernkeep_app` is a superuser or bypasses row security. Remove these attributes from the role.",
            Vec::new(),
        ),
        None => Finding::of("role", true, "There is no role `tavernkeep_app`. Run `tavernkeep migrate`.", Vec::new()),
    })
}

/// Whether the clock of this machine shows the database's time.
async fn clock(db: &mut PgConnection) -> Result<Finding> {
    let ahead = follow_clock(db).await?;
    let seconds = ahead.abs().whole_seconds();
    Ok(if ahead.abs() < CLOCK_OFF_MAX {
        Finding::of("clock", false, "The clock of this machine shows the database's time.", Vec::new())
    } else {
        let side = if ahead.is_positive() { "ahead of" } else { "behind" };
        let says = format!(
            "The clock of this machine is {seconds} seconds {side} the database's. Servers go by the database's, but logs do not: set the clock."
        );
        Finding::of("clock", true, says, Vec::new())
    })
}

/// Whether every tenant table forces row security.
async fn row_security(db: &mut PgConnection) -> Result<Finding> {
    let rows = sqlx::query(
        "SELECT c.relname::text AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' \
         WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND NOT (c.relrowsecurity AND c.relforcerowsecurity)",
    )
    .fetch_all(db)
    .await?;
    let open: Vec<Value> = rows.iter().map(|row| Ok(json!(row.read::<String>("name")?))).collect::<Result<_>>()?;
    Ok(if open.is_empty() {
        Finding::of("row_security", false, "Every tenant table forces row security.", open)
    } else {
        Finding::of("row_security", true, "Some tenant tables do not force row security.", open)
    })
}

/// Turns that are being reverted, or that no server works on.
async fn turns(db: &mut PgConnection) -> Result<Finding> {
    let rows = sqlx::query(
        "SELECT t.tenant_id::text AS tenant_id, t.id::text AS id, t.kind, coalesce(t.revert_as, 'failed') AS becomes, t.revert_done, t.revert_total, \
                t.revert_tries, t.revert_try_at::text AS next_try_at, t.revert_error, \
                t.revert_tries > 0 OR t.lease_until < now() - interval '5 minutes' AS is_stuck \
         FROM turn t WHERE (t.status = 'running' OR t.status = 'queued' OR t.revert_as IS NOT NULL) \
           AND (t.revert_as IS NOT NULL OR turn_is_abandoned(t.lease_until, t.instance)) ORDER BY t.revert_tries DESC, t.id",
    )
    .fetch_all(db)
    .await?;
    let detail = |row: &PgRow| {
        Ok(json!({
            "turn_id": row.read::<String>("id")?, "tenant_id": row.read::<String>("tenant_id")?, "kind": row.read::<String>("kind")?,
            "into": row.read::<String>("becomes")?, "done": row.read::<i32>("revert_done")?, "changes": row.read::<Option<i32>>("revert_total")?,
            "tries": row.read::<i32>("revert_tries")?, "next_try_at": row.read::<Option<String>>("next_try_at")?,
            "last_error": row.read::<Option<String>>("revert_error")?,
        }))
    };
    let stuck = rows.iter().filter(|row| row.read("is_stuck").unwrap_or(true)).count();
    let details = rows.iter().take(NAMED_MAX).map(detail).collect::<Result<Vec<_>>>()?;
    Ok(match (rows.len(), stuck) {
        (0, _) => Finding::of("turns", false, "No turn is waiting to be reverted.", details),
        (n, 0) => Finding::of("turns", false, format!("Turns being reverted or waiting for it: {n}."), details),
        (n, stuck) => Finding::of(
            "turns",
            true,
            format!(
                "Turns being reverted or waiting for it: {n}. Not progressing: {stuck}. They are retried; `tavernkeep turn end ID` ends one."
            ),
            details,
        ),
    })
}

/// Erasures that are under way, and those that do not progress.
async fn erasures(db: &mut PgConnection) -> Result<Finding> {
    let rows = sqlx::query(
        "SELECT id::text AS id, tenant_id::text AS tenant_id, kind, moved_at::text AS moved_at, moved_at < now() - interval '1 hour' AS is_stuck \
         FROM erasure WHERE done_at IS NULL ORDER BY moved_at",
    )
    .fetch_all(db)
    .await?;
    let detail = |row: &PgRow| {
        Ok(json!({
            "erasure_id": row.read::<String>("id")?, "tenant_id": row.read::<String>("tenant_id")?, "kind": row.read::<String>("kind")?,
            "moved_at": row.read::<String>("moved_at")?,
        }))
    };
    let stuck = rows.iter().filter(|row| row.read("is_stuck").unwrap_or(true)).count();
    let details = rows.iter().take(NAMED_MAX).map(detail).collect::<Result<Vec<_>>>()?;
    Ok(match (rows.len(), stuck) {
        (0, _) => Finding::of("erasures", false, "No erasure is under way.", details),
        (n, 0) => Finding::of("erasures", false, format!("Erasures under way: {n}."), details),
        (n, stuck) => {
            let says =
                format!("Erasures under way: {n}. Without progress for an hour: {stuck}. The server's log says why.");
            Finding::of("erasures", true, says, details)
        }
    })
}

/// Deleted campaigns that still have rows, and those whose deletion keeps failing.
async fn campaigns(db: &mut PgConnection) -> Result<Finding> {
    let rows = sqlx::query(
        "SELECT campaign_id::text AS id, tenant_id::text AS tenant_id, rows, attempts, failed, next_at::text AS next_at \
         FROM campaign_removal ORDER BY attempts DESC, created_at",
    )
    .fetch_all(db)
    .await?;
    let detail = |row: &PgRow| {
        Ok(json!({
            "campaign_id": row.read::<String>("id")?, "tenant_id": row.read::<String>("tenant_id")?, "rows_deleted": row.read::<i64>("rows")?,
            "tries": row.read::<i32>("attempts")?, "last_sqlstate": row.read::<Option<String>>("failed")?, "next_try_at": row.read::<String>("next_at")?,
        }))
    };
    let stuck = rows.iter().filter(|row| row.read::<i32>("attempts").is_ok_and(|tries| tries > 3)).count();
    let details = rows.iter().take(NAMED_MAX).map(detail).collect::<Result<Vec<_>>>()?;
    Ok(match (rows.len(), stuck) {
        (0, _) => Finding::of("campaigns", false, "No campaign is being deleted.", details),
        (n, 0) => Finding::of("campaigns", false, format!("Campaigns being deleted: {n}."), details),
        (n, stuck) => {
            let says = format!("Campaigns being deleted: {n}. Failing repeatedly: {stuck}. The server's log says why.");
            Finding::of("campaigns", true, says, details)
        }
    })
}
