//! Which of an answer's alternatives is in the world, and what its text says.

use actix_web::HttpRequest;
use serde_json::Value;
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::OffsetDateTime;
use uuid::Uuid;

use super::stored::{Answer, COLUMNS, EFFECTS_MAX, check_journal, refuse_locked, set_aside};
use crate::{
    state::Ai,
    turns::{record::TurnRecord, trace},
};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
    tokens,
};
use db::tenancy::{self, Origin, TenantTx};
use edge::{
    caller::Caller,
    http::{
        self, Written,
        etag::{self, Expected},
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id},
        weight::weighed,
    },
};
use entity::{CharacterId, TurnId};
use world::edits::{self, Conflict};

/// So many rows that are exchanged count as one request.
const ROWS_PER_PART: usize = 10;

/// Chooses an alternative, for the API and the pages. It counts as more than one request if it exchanges many rows.
///
/// # Errors
/// `conflict`, `undo_conflict` with what stands in the way; `rate_limited`.
pub async fn choose_one(
    app: &Ai,
    caller: &Caller,
    request: &HttpRequest,
    c: &str,
    turn: Uuid,
    key: Option<&IdempotencyKey>,
) -> Result<Written<TurnRecord>> {
    let parts = rows_of(app, caller, turn).await?.div_ceil(ROWS_PER_PART);
    let exchanged = http::write(app, caller, key, async |tx| {
        let campaign = campaign_id(tx, caller, &Ref::parse(c)).await?;
        exchange(tx, caller, campaign, turn).await?;
        Ok(http::Answer::ok(trace::find(tx, caller, campaign, turn).await?).tagged())
    });
    weighed((app, caller), request, parts, key, exchanged).await
}

/// How many rows the chosen alternative and this one changed, as far as they can be exchanged.
async fn rows_of(app: &Ai, caller: &Caller, turn: Uuid) -> Result<usize> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let row = sqlx::query(
        "SELECT count(*) AS rows FROM (SELECT FROM turn n JOIN turn t ON t.tenant_id = $1 \
             AND (t.id = coalesce(n.parent_turn_id, n.id) OR t.parent_turn_id = coalesce(n.parent_turn_id, n.id)) \
             CROSS JOIN LATERAL (SELECT max(o.seq) AS own FROM journal o \
                 WHERE o.tenant_id = $1 AND o.turn_id = t.id AND o.origin <> 'revert') last \
             JOIN journal j ON j.tenant_id = $1 AND j.turn_id = t.id AND CASE WHEN t.chosen \
                 THEN j.origin <> 'revert' AND j.seq > t.reverted_through ELSE j.origin = 'revert' AND j.seq > last.own END \
             WHERE n.tenant_id = $1 AND n.id = $2 AND NOT n.chosen AND (t.chosen OR t.id = n.id) LIMIT $3) r",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(i64::from(2 * EFFECTS_MAX))
    .fetch_one(&mut *tx.connection().await)
    .await?;
    Ok(usize::try_from(row.read::<i64>("rows")?).unwrap_or_default())
}

/// Reverts the chosen alternative of an answer, and applies this one.
async fn exchange(tx: &TenantTx, caller: &Caller, campaign: Uuid, turn: Uuid) -> Result<()> {
    let row = sqlx::query(
        "SELECT coalesce(parent_turn_id, id) AS root FROM turn \
         WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3 AND ($4::uuid IS NULL OR player_id = $4)",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(turn)
    .bind(caller.player)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("turn"))?;
    let root: Uuid = row.read("root")?;
    // An attempt can be read as soon as it has answered, a moment before the turn stops awaiting it.
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT {COLUMNS}, EXISTS (SELECT FROM turn a WHERE a.tenant_id = $1 AND a.id = t.awaits \
           AND a.status NOT IN ('succeeded', 'limit_reached')) AS awaits_answer FROM turn t WHERE t.tenant_id = $1 AND (t.id = $2 OR t.parent_turn_id = $2) ORDER BY t.seq FOR NO KEY UPDATE",
    )))
    .bind(tx.tenant())
    .bind(root)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut chosen = None;
    let mut wanted = None;
    let mut was_undone = false;
    for row in &rows {
        let id: Uuid = row.read("id")?;
        if row.read("awaits_answer")? {
            return Err(Error::new(Code::TurnInProgress, "Another attempt at this answer is running."));
        }
        let is_undone = row.read::<Option<OffsetDateTime>>("undone_at")?.is_some();
        was_undone |= is_undone;
        let stands = matches!(row.read::<&str>("status")?, "succeeded" | "limit_reached") && !is_undone;
        if stands && row.read("chosen")? {
            chosen = Some(Answer::of_row(row)?);
        }
        if id == turn {
            wanted = Some(Answer::of_row(row)?);
        }
    }
    let wanted = wanted.ok_or_else(|| Error::not_found("turn"))?;
    if !rows.iter().any(|row| row.read::<Uuid>("id").is_ok_and(|id| id == root)) {
        return Err(Error::new(Code::Gone, "The first attempt at this answer is no longer stored."));
    }
    match &chosen {
        Some(chosen) if chosen.id == wanted.id => return Ok(()),
        Some(chosen) => {
            chosen.is_last(tx).await?;
            set_aside(tx, &caller.actor(), chosen.id).await?;
        }
        None if was_undone && !caller.sees_secrets() => {
            let detail = "A game master undid this answer, so only a game master can bring an attempt at it back.";
            return Err(Error::new(Code::Conflict, detail));
        }
        None => wanted.is_next(tx).await?,
    }
    apply(tx, caller, wanted.id).await
}

/// Applies the effects of an alternative that was set aside.
async fn apply(tx: &TenantTx, caller: &Caller, turn: Uuid) -> Result<()> {
    check_journal(tx, turn).await?;
    tx.act_as(&caller.actor().in_turn(turn, Origin::Turn)).await?;
    let row = sqlx::query("SELECT turn_apply($1, false) AS conflicts")
        .bind(turn)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    let conflicts: Value = row.read("conflicts")?;
    let conflicts: Vec<Conflict> = conflicts.as_array().into_iter().flatten().map(Conflict::of).collect();
    edits::refuse_some(&conflicts, conflicts.len(), "turn")?;
    refuse_locked(tx, turn).await?;
    tx.act_as(&caller.actor()).await
}

/// Corrects a narrative, for the API and the pages. Returns the turn's record.
///
/// # Errors
/// `conflict` for a turn whose narrative cannot change, `precondition_failed`.
pub async fn correct_one(
    app: &Ai,
    caller: &Caller,
    c: &str,
    turn: Uuid,
    narrative: &str,
    expected: &Expected,
) -> Result<TurnRecord> {
    let tokens = tokens::count_apart(narrative.to_owned()).await?;
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        let campaign = campaign_id(tx, caller, &Ref::parse(c)).await?;
        let row = sqlx::query(AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM turn t WHERE t.tenant_id = $1 AND t.campaign_id = $2 AND t.id = $3 FOR NO KEY UPDATE",
        )))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(turn)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("turn"))?;
        expected.check_tag(&etag::of_value(&trace::find(tx, caller, campaign, turn).await?)?)?;
        Answer::of_row(&row)?;
        if !row.read::<bool>("chosen")? {
            return Err(Error::new(Code::Conflict, "This alternative is not chosen. Choose it first."));
        }
        // As a change of the turn, so that undoing the turn undoes it too.
        tx.act_as(&caller.actor().in_turn(turn, Origin::Turn)).await?;
        let changed = sqlx::query(
            "UPDATE message SET content = $3, tokens = $4 WHERE tenant_id = $1 AND turn_id = $2 AND author = 'ai' AND entity_id IS NOT NULL",
        )
        .bind(tx.tenant())
        .bind(turn)
        .bind(narrative)
        .bind(i32::try_from(tokens).unwrap_or(i32::MAX))
        .execute(&mut *tx.connection().await)
        .await?;
        if changed.rows_affected() == 0 {
            return Err(Error::new(Code::Conflict, "The message of this answer was deleted."));
        }
        sqlx::query(
            "UPDATE turn SET record = jsonb_set(record::jsonb, '{view,narrative}', to_jsonb($3::text))::json, edited_at = now() \
             WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tx.tenant())
        .bind(turn)
        .bind(narrative)
        .execute(&mut *tx.connection().await)
        .await?;
        tx.act_as(&caller.actor()).await?;
        trace::find(tx, caller, campaign, turn).await
    })
    .await
}

/// The attempts at an answer of an NPC or owner.
pub struct Attempts {
    /// The chosen one.
    pub turn: Uuid,
    /// All of them, in order; empty if there is only one.
    pub all: Vec<Uuid>,
    /// Whether it is the last answer of its conversation, so that it can be tried again and go on.
    pub is_last: bool,
}

/// The attempts at those of these turns that are answers of NPCs and owners, and not reactions; of one player, or of all. One statement.
///
/// # Errors
/// Database errors.
pub async fn attempts_at(tx: &TenantTx, player: Option<CharacterId>, turns: &[TurnId]) -> Result<Vec<Attempts>> {
    let rows = sqlx::query(
        "SELECT t.id, turn_alternatives(t.tenant_id, t.id, t.parent_turn_id), t.id = (SELECT m.turn_id FROM message m WHERE m.tenant_id = $1 \
             AND m.entity_id = t.entity_id AND m.player_id = t.player_id AND m.turn_id IS NOT NULL ORDER BY m.seq DESC LIMIT 1) IS TRUE \
         FROM turn t WHERE t.tenant_id = $1 AND t.id = ANY ($2) AND ($3::uuid IS NULL OR t.player_id = $3) AND t.kind IN ('npc', 'owner') \
           AND t.trigger NOT IN ('reaction', 'prayer')",
    )
    .bind(tx.tenant())
    .bind(turns.iter().map(|turn| turn.0).collect::<Vec<_>>())
    .bind(player.map(|player| player.0))
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let read = |row: &PgRow| row.read_all().map(|(turn, all, is_last)| Attempts { turn, all, is_last });
    rows.iter().map(read).collect()
}
