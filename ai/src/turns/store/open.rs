//! Begins a turn: takes its place and claims its key, or finds the earlier result of the key.

use entity::session::Role;
use sea_orm::ActiveEnum;
use sqlx::types::Json;
use uuid::Uuid;

use super::{NewTurn, NewTurnRow, Opened, Place, SessionRow, Terms, lost};
use crate::turns::view::Status;
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::{
    pool::Pool,
    tenancy::{self, Actor, Origin, TURN_LEASE_SECONDS, TenantTx},
};
use edge::{
    caller::Caller,
    http::{
        StoredAnswer,
        idempotency::{IdempotencyKey, in_flight},
        resource::Ref,
    },
};
use world::sessions::{
    facts::{CachedFacts, Facts},
    service::Position,
};

/// What was read for a turn before it begins: the version heads of it, and the sum of their versions.
#[derive(Clone, Copy)]
pub struct Stamps<'a> {
    pub heads: &'a [String],
    pub sum: i64,
}

/// The same as [`open`] for a turn whose data is cached, if its heads have not changed and the key is new. One round trip for the
/// whole transaction. If not, returns false and writes nothing.
///
/// # Errors
/// `turn_in_progress`.
pub async fn open_cached(pool: &Pool, actor: &Actor, new: &NewTurn<'_>, read: Stamps<'_>) -> Result<bool> {
    let (heads, heads_sum) = (Some(read.heads), Some(read.sum));
    let terms = Terms { is_lazy: new.is_lazy(), heads, heads_sum, ..Terms::default() };
    let begun =
        tenancy::call_optional(pool, actor, "SELECT FROM turn_begin($1, $2, $3)", |q| q.bind(Json(new.row(terms))));
    Ok(begun.await.map_err(|e| at_its_place(e, new))?.is_some())
}

/// Opens a session's turn and reads the data for its prompt, in one round trip. `campaign` is the client's name for it. None, with
/// nothing written, if the key was used before or something is missing.
///
/// # Errors
/// `turn_in_progress`.
pub async fn open_session(
    pool: &Pool,
    caller: &Caller,
    campaign: &Ref,
    new: &NewTurn<'_>,
    role: Option<Role>,
    held: CachedFacts<'_>,
) -> Result<Option<Facts>> {
    let (id, slug) = match campaign {
        Ref::Id(id) => (Some(*id), None),
        Ref::Slug(slug) => (caller.campaign, Some(slug.as_str())),
    };
    if caller.campaign.is_some_and(|only| id != Some(only)) {
        return Ok(None);
    }
    let role = role.as_ref().map(ActiveEnum::to_value);
    let session = Some(SessionRow { role: role.as_deref() });
    let terms = Terms { is_lazy: new.is_lazy(), campaign_slug: slug, session, ..Terms::default() };
    let row = NewTurnRow { campaign_id: id, ..new.row(terms) };
    let actor = caller.actor().in_turn(new.id, Origin::Turn);
    let opened = tenancy::call_optional(
        pool,
        &actor,
        "SELECT b.campaign, b.told_seq, b.told_event, f.* FROM turn_begin($1, $2, $3) b \
         CROSS JOIN LATERAL session_facts($1, b.campaign, $4, $5, $6, $7) f",
        |q| q.bind(Json(row)).bind(new.subject.entity).bind(&role).bind(held.campaign).bind(held.heads),
    );
    let Some(row) = opened.await.map_err(|e| at_its_place(e, new))? else { return Ok(None) };
    let mut facts = Facts::of_row(&row, row.read("campaign")?, new.subject.entity)?;
    // The turn is told what happened only up to the position that is stored for it.
    facts.standing.now = Position { seq: row.read("told_seq")?, event: row.read("told_event")? };
    Ok(Some(facts))
}

/// Stores that a turn runs or waits, and claims its key. One statement for a new key or none.
///
/// # Errors
/// `turn_in_progress`, `idempotency_in_flight`, `idempotency_key_reused`; `conflict` for a waiting turn that was cancelled.
pub async fn open(tx: &TenantTx, new: &NewTurn<'_>) -> Result<Opened> {
    open_in(tx, new).await.map_err(|e| at_its_place(e, new))
}

/// Stores a turn that has ended already, in the transaction that did its work.
///
/// # Errors
/// Database errors.
pub async fn keep(tx: &TenantTx, new: &NewTurn<'_>, status: Status, record: &str) -> Result<()> {
    let terms = Terms { record: Some(record), ..Terms::default() };
    let row = Json(NewTurnRow { status: status.as_str(), lease_seconds: 0, ..new.row(terms) });
    sqlx::query("SELECT turn_claim($1, $2)").bind(tx.tenant()).bind(row).execute(&mut *tx.connection().await).await?;
    Ok(())
}

/// Adds the place to the error of a turn that could not take it.
fn at_its_place(mut error: Error, new: &NewTurn<'_>) -> Error {
    if error.code == Code::TurnInProgress {
        error.place = Some((new.subject.entity, new.subject.player));
    }
    error
}

async fn open_in(tx: &TenantTx, new: &NewTurn<'_>) -> Result<Opened> {
    if let Place::Queued(turn) = new.place {
        return next_in_line(tx, new, turn).await;
    }
    if let Some(opened) = insert(tx, new).await? {
        return Ok(opened);
    }
    // Without a key, only the campaign can be missing: it was deleted just now.
    let key = new.key.ok_or_else(|| Error::not_found("campaign"))?;
    reopen(tx, new, key).await
}

/// Stores the turn and claims its key. None if the key was used before or the campaign is gone. The conversation's version is read afterwards, because the
/// turn may have waited for its place.
async fn insert(tx: &TenantTx, new: &NewTurn<'_>) -> Result<Option<Opened>> {
    let row = sqlx::query("SELECT head_now($1, $3, $4) AS talk FROM turn_begin($1, current_setting('app.who'), $2)")
        .bind(tx.tenant())
        .bind(Json(new.row(Terms::default())))
        .bind(new.subject.campaign)
        .bind(new.subject.talk_head())
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.map(|row| new.placed(new.id, &row)).transpose()
}

/// A waiting turn takes its place. Another attempt at an answer has it already.
async fn next_in_line(tx: &TenantTx, new: &NewTurn<'_>, turn: Uuid) -> Result<Opened> {
    let begun = sqlx::query(
        "UPDATE turn SET status = 'running', lease_until = now() + $4 * interval '1 second' \
         WHERE tenant_id = $1 AND id = $2 AND instance = $3 AND status IN ('queued', 'running') AND NOT cancel_requested AND NOT stop_requested AND revert_as IS NULL \
         RETURNING head_now($1, $5, $6) AS talk",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(new.instance)
    .bind(TURN_LEASE_SECONDS)
    .bind(new.subject.campaign)
    .bind(new.subject.talk_head())
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    new.placed(turn, &begun.ok_or_else(lost)?)
}

/// Handles a key that was used before: replays its answer, or starts a failed turn again under its id.
///
/// # Errors
/// `idempotency_in_flight`, `idempotency_key_reused`.
async fn reopen(tx: &TenantTx, new: &NewTurn<'_>, key: &IdempotencyKey) -> Result<Opened> {
    let row = sqlx::query(
        "SELECT fingerprint, state, headers, body, turn_id, EXISTS (SELECT FROM turn t WHERE t.tenant_id = $1 AND t.id = i.turn_id \
             AND t.revert_as IS NOT NULL) AS is_undone_now FROM idempotency i \
         WHERE tenant_id = $1 AND route = $2 AND key = $3 FOR NO KEY UPDATE OF i",
    )
    .bind(tx.tenant())
    .bind(&key.route)
    .bind(&key.key)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    // It was pruned at this moment, or the campaign was deleted. The next attempt finds out.
    .ok_or_else(in_flight)?;
    key.check_same(&row.read::<Vec<u8>>("fingerprint")?)?;
    match row.read::<&str>("state")? {
        "done" => Ok(Opened::Replay(StoredAnswer::of_row(&row)?)),
        // A failed turn that kept its effects may be being undone now.
        "retry" if !row.read::<bool>("is_undone_now")? => {
            let turn: Uuid =
                row.read::<Option<Uuid>>("turn_id")?.ok_or_else(|| Error::internal("a key without its turn"))?;
            restart(tx, new, key, turn).await
        }
        _ => Err(match row.read("turn_id")? {
            Some(turn) => in_flight().for_turn(turn),
            None => in_flight(),
        }),
    }
}

async fn restart(tx: &TenantTx, new: &NewTurn<'_>, key: &IdempotencyKey, turn: Uuid) -> Result<Opened> {
    let restarted = sqlx::query(
        "WITH claim AS (UPDATE idempotency SET state = 'running' WHERE tenant_id = $1 AND route = $2 AND key = $3 RETURNING 1), \
           untold AS (DELETE FROM turn_event WHERE tenant_id = $1 AND turn_id = $4) \
         UPDATE turn SET status = $9, action = $10, runs_before = runs_before + 1, error = NULL, record = NULL, finished_at = NULL, undone_at = NULL, \
                cancel_requested = false, stop_requested = false, on_failure = $11, revert_conflicts = NULL, revert_conflicts_total = 0, instance = $5, lease_until = now() + $6 * interval '1 second' \
         WHERE tenant_id = $1 AND id = $4 AND revert_as IS NULL AND EXISTS (SELECT 1 FROM claim) RETURNING runs_before, head_now($1, $7, $8) AS talk",
    )
    .bind(tx.tenant())
    .bind(&key.route)
    .bind(&key.key)
    .bind(turn)
    .bind(new.instance)
    .bind(TURN_LEASE_SECONDS)
    .bind(new.subject.campaign)
    .bind(new.subject.talk_head())
    .bind(new.place.status())
    .bind(new.action)
    .bind(new.on_failure.as_str())
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    match restarted {
        Some(row) => {
            if let Some(live) = new.live {
                live.run_before(usize::try_from(row.read::<i32>("runs_before")?).unwrap_or_default());
            }
            new.placed(turn, &row)
        }
        // The turn was pruned.
        None => insert(tx, &NewTurn { id: turn, key: None, said: None, ..*new }).await?.ok_or_else(in_flight),
    }
}

/// Stores the position up to which a session's turn is told what happened, and its role. It counts once the turn completes.
///
/// # Errors
/// Database errors.
pub async fn tell(tx: &TenantTx, turn: Uuid, facts: &Facts) -> Result<()> {
    sqlx::query("UPDATE turn SET seen_seq = $3, seen_event = $4, told_as = $5 WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(turn)
        .bind(facts.standing.now.seq)
        .bind(facts.standing.now.event)
        .bind(facts.playing.conversation_key())
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}
