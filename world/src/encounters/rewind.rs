//! Reverts actions in encounters, those of a turn or the newest: removes them from the log and folds the state anew.
//!
//! The journal shows how a fight stands but does not contain its state. So this module reverts the rows of encounters, and
//! the journal's own revert handles all other rows.

use rules::encounter::{Encounter, Status, Verbosity};
use serde_json::{Value, json};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    answers::EncounterView,
    service::{Cx, view},
    store,
};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::http::etag::Expected;

/// Reverts a turn's actions and commits. Returns the encounters in which somebody acted since; they stay as they are.
///
/// # Errors
/// Database errors.
pub async fn rewind(tx: &TenantTx, turn: Uuid) -> Result<Vec<Value>> {
    sqlx::query(
        "WITH e AS (UPDATE encounter SET hidden = hidden WHERE tenant_id = $1 AND id IN (\
             SELECT encounter_id FROM encounter_member WHERE tenant_id = $1 AND turn_id = $2) RETURNING id) \
         UPDATE encounter_member m SET committed_at = NULL, since_at = now(), turn_id = NULL FROM e \
         WHERE m.tenant_id = $1 AND m.turn_id = $2 AND m.encounter_id = e.id",
    )
    .bind(tx.tenant())
    .bind(turn)
    .execute(&mut *tx.connection().await)
    .await?;
    let rows = sqlx::query(
        "SELECT encounter_id, min(seq) AS first FROM encounter_log WHERE tenant_id = $1 AND turn_id = $2 \
         GROUP BY encounter_id ORDER BY encounter_id",
    )
    .bind(tx.tenant())
    .bind(turn)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut conflicts = Vec::new();
    for row in &rows {
        let (encounter, first) = row.read_all()?;
        if !rewind_one(tx, &Deeds { turn, encounter, first }).await? {
            conflicts.push(json!({ "table": "encounter", "id": encounter, "column": null, "reason": "changed_since" }));
        }
    }
    Ok(conflicts)
}

/// Takes the newest action of an encounter back, whoever did it, and deletes the messages that told it. Drawn dice stay drawn. Returns the
/// encounter as it stands then. Six statements.
///
/// # Errors
/// `not_found`; `precondition_failed`; `conflict` if the encounter has ended, if nothing has happened yet, or if a turn did the action.
pub async fn undo(cx: &Cx<'_>, id: &str, expected: &Expected) -> Result<EncounterView> {
    let it = store::read(cx.tx, cx.place, id, true).await?;
    if it.hidden {
        return Err(Error::not_found("encounter"));
    }
    expected.check(it.version)?;
    let conflict = |why: &'static str| Err(Error::new(Code::Conflict, why));
    if it.now.status() == Status::Ended {
        return conflict("The encounter has ended. What ended it cannot be taken back.");
    }
    let missing = || Error::not_found("encounter");
    let (beginning, log) = store::history(cx.tx, it.id).await?.ok_or_else(missing)?;
    let Some(newest) = log.last() else { return conflict("Nothing has happened in this encounter yet.") };
    if newest.turn.is_some() {
        return conflict("A turn did this action. Undo the turn instead.");
    }
    store::put_back(cx.tx, it.id, newest.seq, &before(beginning, &log, newest.seq)).await?;
    store::untell(cx.tx, newest).await?;
    let now = store::read(cx.tx, cx.place, id, false).await?;
    Ok(view(&now, Verbosity::Standard, cx.eyes))
}

/// Keeps what a turn did in encounters, and returns those encounters.
///
/// # Errors
/// Database errors.
pub async fn leave(tx: &TenantTx, turn: Uuid) -> Result<Vec<Value>> {
    let rows = sqlx::query("SELECT DISTINCT encounter_id FROM encounter_log WHERE tenant_id = $1 AND turn_id = $2")
        .bind(tx.tenant())
        .bind(turn)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let left = |row: &PgRow| {
        let id: Uuid = row.read("encounter_id")?;
        Ok(json!({ "table": "encounter", "id": id, "column": null, "reason": "failed" }))
    };
    rows.iter().map(left).collect()
}

/// What a turn did in an encounter, from its first action there.
struct Deeds {
    turn: Uuid,
    encounter: Uuid,
    first: i64,
}

/// Reverts a turn's actions in one encounter. False if somebody acted there since.
async fn rewind_one(tx: &TenantTx, deeds: &Deeds) -> Result<bool> {
    let &Deeds { turn, encounter: id, first } = deeds;
    // The encounter was deleted since, so nothing of the turn is left.
    let Some((beginning, log)) = store::history(tx, id).await? else { return Ok(true) };
    if log.iter().any(|action| action.seq > first && action.turn != Some(turn)) {
        return Ok(false);
    }
    store::put_back(tx, id, first, &before(beginning, &log, first)).await?;
    Ok(true)
}

/// A fight as it was before the action `first`: its log until then, folded onto the beginning.
fn before(mut beginning: Encounter, log: &[store::Logged], first: i64) -> Encounter {
    log.iter().filter(|action| action.seq < first).for_each(|action| beginning.apply_all(&action.events));
    beginning
}
