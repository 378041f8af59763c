//! What a turn writes of itself: that it runs, how it ended, its messages, its usage, its idempotency key.

use entity::session::Role;
use sea_orm::ActiveEnum;
use serde_json::{Value, json};
use sqlx::{Row, postgres::PgRow};
use uuid::Uuid;

use super::{OnFailure, Status, live::Live};
use crate::{
    auth::Caller,
    dice::{ahead::settled, seeds},
    edits, encounters,
    error::{Code, Error, Result},
    http::{
        Reply,
        idempotency::{IdempotencyKey, in_flight},
        reply::Reply as Stored,
        resource::Ref,
    },
    llm::{ReplyMode, Usage},
    messages::service::NewMessage,
    ops::metrics,
    pool::Pool,
    prompt::assemble::BasePrompt,
    sessions::{
        facts::{Facts, Held},
        service::Position,
    },
    tenancy::{self, Actor, Call, Origin, TenantTx},
    tools::Rest,
};

/// Seconds that a turn is its server's without a sign of life.
pub const LEASE_SECONDS: i32 = 20;

/// A turn about to run.
pub struct NewTurn<'a> {
    pub id: Uuid,
    pub campaign: Uuid,
    pub kind: &'static str,
    pub entity: Uuid,
    /// None for a session's turn.
    pub player: Option<Uuid>,
    pub action: &'a str,
    pub mode: ReplyMode,
    pub on_failure: OnFailure,
    pub key_id: Uuid,
    pub instance: i64,
    pub key: Option<&'a IdempotencyKey>,
    /// Where it tells what happens, if somebody hears it.
    pub live: Option<&'a Live>,
    /// The version of the conversation that the prompt holds, if it was read before the turn had its place.
    pub talk_version: Option<i64>,
    pub place: Place,
}

/// What a turn that is opened is to do with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Take it and run, if it is free.
    Free,
    /// Write that it waits for it.
    Queue,
    /// The same as `Free` for a turn that waits, under this id.
    Queued(Uuid),
}

impl Place {
    /// The id of the turn: its own if it waits, or a new one.
    #[must_use]
    pub fn turn(self) -> Uuid {
        if let Place::Queued(turn) = self { turn } else { Uuid::now_v7() }
    }

    fn status(self) -> &'static str {
        if self == Place::Queue { "queued" } else { "running" }
    }
}

/// What opening a turn led to.
pub enum Opened {
    /// It runs, or waits as it was to, under this id.
    Runs(Uuid),
    /// It ran before.
    Replay(Reply),
    /// The conversation went on while the prompt was assembled: roll back and begin again.
    Moved,
}

impl NewTurn<'_> {
    fn talk_head(&self) -> String {
        format!("talk:{}:{}", self.entity, self.player.unwrap_or_default())
    }

    /// What taking the place led to, by the conversation's version from then on.
    fn placed(&self, id: Uuid, row: &PgRow) -> Opened {
        let now = row.get::<i64, _>("talk");
        if self.place == Place::Queue || self.talk_version.is_none_or(|read| read == now) {
            Opened::Runs(id)
        } else {
            Opened::Moved
        }
    }
}

/// The same as [`open`] for a cached prompt, if the heads it was built from have not moved and the key is fresh: one round
/// trip for the whole transaction. False if not; nothing is written then.
///
/// # Errors
/// `turn_in_progress`.
pub async fn open_cached(pool: &Pool, actor: &Actor, new: &NewTurn<'_>, base: &BasePrompt) -> Result<bool> {
    let opened = tenancy::call(
        pool,
        actor,
        "SELECT turn_open($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) AS runs",
        |q| {
            q.bind(new.campaign)
                .bind(base.head_keys())
                .bind(base.head_versions().iter().sum::<i64>())
                .bind(new.id)
                .bind(new.kind)
                .bind(new.entity)
                .bind(new.player)
                .bind(new.action)
                .bind(new.mode.as_str())
                .bind(new.on_failure.as_str())
                .bind(new.key_id)
                .bind(new.instance)
                .bind(LEASE_SECONDS)
                .bind(Uuid::now_v7())
                .bind(new.key.map(|k| k.route.as_str()))
                .bind(new.key.map(|k| k.key.as_str()))
                .bind(new.key.map(|k| &k.fingerprint[..]))
        },
    );
    Ok(opened.await?.get("runs"))
}

/// Opens a session's turn and reads what it is told from, in one round trip; `campaign` is as the client named it. None, and nothing
/// written, if the key is known or something is not there.
///
/// # Errors
/// `turn_in_progress`.
pub async fn open_session(
    pool: &Pool,
    caller: &Caller,
    campaign: &Ref,
    role: Option<Role>,
    new: &NewTurn<'_>,
    held: Held<'_>,
) -> Result<Option<Facts>> {
    let (named, slug) = match campaign {
        Ref::Id(id) => (Some(*id), None),
        Ref::Slug(slug) => (None, Some(slug.as_str())),
    };
    let actor = caller.actor().in_turn(new.id, Origin::Turn);
    let opened = tenancy::call_optional(
        pool,
        &actor,
        "SELECT o.campaign, o.upto_seq, o.upto_event, f.* FROM session_turn_open($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, \
             $15, $16, $17, $18) o CROSS JOIN LATERAL session_facts($1, o.campaign, $6, $7, $19, $20) f",
        |q| {
            q.bind(named)
                .bind(slug)
                .bind(caller.campaign)
                .bind(new.entity)
                .bind(role.as_ref().map(ActiveEnum::to_value))
                .bind(new.id)
                .bind(new.action)
                .bind(new.mode.as_str())
                .bind(new.on_failure.as_str())
                .bind(new.key_id)
                .bind(new.instance)
                .bind(LEASE_SECONDS)
                .bind(Uuid::now_v7())
                .bind(new.key.map(|k| k.route.as_str()))
                .bind(new.key.map(|k| k.key.as_str()))
                .bind(new.key.map(|k| &k.fingerprint[..]))
                .bind(held.campaign)
                .bind(held.heads)
        },
    );
    let Some(row) = opened.await? else { return Ok(None) };
    let mut facts = Facts::of_row(&row, row.get("campaign"), new.entity)?;
    // What the turn is told reaches no further than what is written of it.
    facts.standing.now = Position { seq: row.get("upto_seq"), event: row.get("upto_event") };
    Ok(Some(facts))
}

/// Writes that a turn runs or waits, and claims its key. One statement for a fresh key or none.
///
/// # Errors
/// `turn_in_progress`, `idempotency_in_flight`, `idempotency_key_reused`; `conflict` for a turn that waited and was cancelled.
pub async fn open(tx: &TenantTx, new: &NewTurn<'_>) -> Result<Opened> {
    if let Place::Queued(turn) = new.place {
        return next_in_line(tx, new, turn).await;
    }
    let Some(key) = new.key else { return insert(tx, new).await };
    let claimed = sqlx::query(
        "WITH claim AS (INSERT INTO idempotency (tenant_id, id, key, route, fingerprint, state, turn_id) \
           VALUES ($1, $2, $3, $4, $5, 'running', $6) ON CONFLICT (tenant_id, route, key) DO NOTHING RETURNING turn_id) \
         INSERT INTO turn (tenant_id, id, campaign_id, kind, status, entity_id, player_id, action, reply_mode, on_failure, \
                           key_id, instance, lease_until) \
         SELECT $1, turn_id, $7, $8, $18, $9, $10, $11, $12, $13, $14, $15, now() + $16 * interval '1 second' FROM claim \
         RETURNING head_now($1, $7, $17) AS talk",
    )
    .bind(tx.tenant())
    .bind(Uuid::now_v7())
    .bind(&key.key)
    .bind(&key.route)
    .bind(&key.fingerprint)
    .bind(new.id)
    .bind(new.campaign)
    .bind(new.kind)
    .bind(new.entity)
    .bind(new.player)
    .bind(new.action)
    .bind(new.mode.as_str())
    .bind(new.on_failure.as_str())
    .bind(new.key_id)
    .bind(new.instance)
    .bind(LEASE_SECONDS)
    .bind(new.talk_head())
    .bind(new.place.status())
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    match claimed {
        Some(row) => Ok(new.placed(new.id, &row)),
        None => reopen(tx, new, key).await,
    }
}

async fn insert(tx: &TenantTx, new: &NewTurn<'_>) -> Result<Opened> {
    let row = sqlx::query(
        "INSERT INTO turn (tenant_id, id, campaign_id, kind, status, entity_id, player_id, action, reply_mode, on_failure, \
                           key_id, instance, lease_until) \
         VALUES ($1, $2, $3, $4, $14, $5, $6, $7, $8, $9, $10, $11, now() + $12 * interval '1 second') \
         RETURNING head_now($1, $3, $13) AS talk",
    )
    .bind(tx.tenant())
    .bind(new.id)
    .bind(new.campaign)
    .bind(new.kind)
    .bind(new.entity)
    .bind(new.player)
    .bind(new.action)
    .bind(new.mode.as_str())
    .bind(new.on_failure.as_str())
    .bind(new.key_id)
    .bind(new.instance)
    .bind(LEASE_SECONDS)
    .bind(new.talk_head())
    .bind(new.place.status())
    .fetch_one(&mut *tx.connection().await)
    .await?;
    Ok(new.placed(new.id, &row))
}

/// A turn that waited takes its place.
async fn next_in_line(tx: &TenantTx, new: &NewTurn<'_>, turn: Uuid) -> Result<Opened> {
    let begun = sqlx::query(
        "UPDATE turn SET status = 'running', lease_until = now() + $4 * interval '1 second' \
         WHERE tenant_id = $1 AND id = $2 AND instance = $3 AND status = 'queued' AND NOT cancel_requested \
         RETURNING head_now($1, $5, $6) AS talk",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(new.instance)
    .bind(LEASE_SECONDS)
    .bind(new.campaign)
    .bind(new.talk_head())
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    Ok(new.placed(turn, &begun.ok_or_else(lost)?))
}

/// A key that was used before: replays what it led to, or starts a turn that came to nothing anew under its id.
///
/// # Errors
/// `idempotency_in_flight`, `idempotency_key_reused`.
pub async fn reopen(tx: &TenantTx, new: &NewTurn<'_>, key: &IdempotencyKey) -> Result<Opened> {
    let row = sqlx::query(
        "SELECT fingerprint, state, headers, body, turn_id FROM idempotency \
         WHERE tenant_id = $1 AND route = $2 AND key = $3 FOR UPDATE",
    )
    .bind(tx.tenant())
    .bind(&key.route)
    .bind(&key.key)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    key.check_same(&row.get::<Vec<u8>, _>("fingerprint"))?;
    match row.get::<&str, _>("state") {
        "done" => {
            let mut reply: Stored = serde_json::from_value(row.get("headers")).map_err(Error::internal)?;
            reply.body = row.get::<Option<Vec<u8>>, _>("body").unwrap_or_default();
            reply.replayed = true;
            Ok(Opened::Replay(reply))
        }
        "retry" => {
            let turn: Uuid =
                row.get::<Option<Uuid>, _>("turn_id").ok_or_else(|| Error::internal("a key without its turn"))?;
            restart(tx, new, key, turn).await
        }
        _ => Err(match row.get("turn_id") {
            Some(turn) => in_flight().for_turn(turn),
            None => in_flight(),
        }),
    }
}

async fn restart(tx: &TenantTx, new: &NewTurn<'_>, key: &IdempotencyKey, turn: Uuid) -> Result<Opened> {
    let restarted = sqlx::query(
        "WITH claim AS (UPDATE idempotency SET state = 'running' WHERE tenant_id = $1 AND route = $2 AND key = $3 RETURNING 1), \
           untold AS (DELETE FROM turn_event WHERE tenant_id = $1 AND turn_id = $4) \
         UPDATE turn SET status = $9, runs_before = runs_before + 1, error = NULL, record = NULL, finished_at = NULL, undone_at = NULL, \
                cancel_requested = false, revert_conflicts = NULL, instance = $5, lease_until = now() + $6 * interval '1 second' \
         WHERE tenant_id = $1 AND id = $4 AND EXISTS (SELECT 1 FROM claim) RETURNING runs_before, head_now($1, $7, $8) AS talk",
    )
    .bind(tx.tenant())
    .bind(&key.route)
    .bind(&key.key)
    .bind(turn)
    .bind(new.instance)
    .bind(LEASE_SECONDS)
    .bind(new.campaign)
    .bind(new.talk_head())
    .bind(new.place.status())
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    match restarted {
        Some(row) => {
            if let Some(live) = new.live {
                live.run_before(usize::try_from(row.get::<i32, _>("runs_before")).unwrap_or_default());
            }
            Ok(new.placed(turn, &row))
        }
        None => insert(tx, &NewTurn { id: turn, key: None, ..*new }).await,
    }
}

fn lost() -> Error {
    Error::new(Code::Conflict, "The turn was cancelled or taken over.")
}

/// Saves what a turn told since the last time, for those who listen elsewhere or come back. One statement, none without news.
/// If it fails it is tried again with what comes next.
pub async fn save_told(pool: &Pool, actor: &Actor, turn: Uuid, live: &Live) {
    let (first, items) = live.unsaved();
    if items.is_empty() {
        return;
    }
    let seqs: Vec<i32> = (first..).take(items.len()).map(|seq| i32::try_from(seq).unwrap_or(i32::MAX)).collect();
    let (names, told): (Vec<&str>, Vec<&str>) = items.iter().map(|item| (item.name, item.data.as_str())).unzip();
    let statement = "SELECT turn_tell($1, $2, $3, $4, $5, $6)";
    match tenancy::call(pool, actor, statement, |q| q.bind(turn).bind(&seqs).bind(&names).bind(&told)).await {
        Ok(_) => live.saved(items.len()),
        Err(error) => tracing::warn!(turn_id = %turn, %error, "what a turn told could not be saved"),
    }
}

/// Whether someone asked for the turn to stop, perhaps through another replica.
///
/// # Errors
/// Those of the database.
pub async fn cancel_requested(pool: &Pool, tenant: Uuid, turn: Uuid) -> Result<bool> {
    let tx = TenantTx::read(pool, tenant).await?;
    let row = sqlx::query("SELECT cancel_requested FROM turn WHERE tenant_id = $1 AND id = $2")
        .bind(tenant)
        .bind(turn)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    Ok(row.is_some_and(|row| row.get("cancel_requested")))
}

/// The two messages of a turn.
pub struct Said<'a> {
    pub player_message: Uuid,
    pub player_name: &'a str,
    pub entity_name: &'a str,
    pub action: &'a str,
    pub prompt_text: &'a str,
    pub user_tokens: u32,
    pub narrative: &'a str,
    pub narrative_tokens: u32,
    pub window_start: Uuid,
}

/// How a turn ended.
pub struct Ended<'a> {
    pub status: Status,
    pub record: String,
    pub model: &'a str,
    pub usage: &'a Usage,
    pub cost_micros: Option<u64>,
    /// The answer to store under the turn's key.
    pub body: &'a [u8],
}

/// Writes how the turn ended, its usage, its answer under its key, and what was said, if anything; one round trip for the whole
/// transaction.
///
/// # Errors
/// `conflict` if the turn was cancelled or taken over meanwhile.
pub async fn finish(
    pool: &Pool,
    actor: &Actor,
    new: &NewTurn<'_>,
    ended: &Ended<'_>,
    said: Option<&Said<'_>>,
) -> Result<()> {
    let row = tenancy::call(pool, actor, FINISH, |q| bind_end(q, new, ended, said)).await?;
    if row.get("done") { Ok(()) } else { Err(lost()) }
}

/// The same for a turn that says something else than a player's question and its answer, or nothing; with what is left of the
/// work that was done for it.
///
/// # Errors
/// `conflict` if the turn is no longer this server's; those of the database.
pub async fn finish_saying(
    pool: &Pool,
    actor: &Actor,
    new: &NewTurn<'_>,
    ended: &Ended<'_>,
    messages: &[NewMessage],
    Rest { begun, claim }: Rest,
) -> Result<()> {
    if messages.is_empty() && begun.is_none() && claim.is_none() {
        return finish(pool, actor, new, ended, None).await;
    }
    let messages = serde_json::to_value(messages).map_err(Error::internal)?;
    let bind = |q| seeds::bind_claim(bind_end(q, new, ended, None).bind(messages), claim.as_ref());
    let Some(tx) = begun else {
        let row = settled(claim.clone(), tenancy::call(pool, actor, FINISH_SAYING, bind).await)?;
        return if row.get("done") { Ok(()) } else { Err(lost()) };
    };
    let q = bind(sqlx::query(FINISH_SAYING).bind(actor.tenant).bind(actor.signature()));
    let row = q.fetch_one(&mut *tx.connection().await).await?;
    if row.get("done") { tx.commit().await } else { Err(lost()) }
}

/// Notes up to where a session's turn is told what happened, and as what; it counts once the turn completes.
///
/// # Errors
/// Those of the database.
pub async fn tell(tx: &TenantTx, turn: Uuid, facts: &Facts) -> Result<()> {
    sqlx::query("UPDATE turn SET seen_seq = $3, seen_event = $4, told_as = $5 WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(turn)
        .bind(facts.standing.now.seq)
        .bind(facts.standing.now.event)
        .bind(facts.playing.told_as())
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}

macro_rules! finish {
    () => {
        "turn_finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, \
         $25, $26, $27, $28, $29)"
    };
}

const FINISH: &str = concat!("SELECT ", finish!(), " AS done");
/// A `CASE` keeps the order.
const FINISH_SAYING: &str = concat!(
    "SELECT CASE WHEN ",
    finish!(),
    " THEN claim_dice($1, $31, $32, $33) AND write_messages($1, $3, $30) IS NOT NULL \
            ELSE false END AS done"
);

/// What follows tenant and signature in [`FINISH`].
fn bind_end<'q>(q: Call<'q>, new: &NewTurn<'_>, ended: &Ended<'_>, said: Option<&Said<'_>>) -> Call<'q> {
    let headers = new.key.map(|_| json!(Stored { status: 200, ..Stored::default() }));
    q.bind(new.campaign)
        .bind(new.id)
        .bind(new.kind)
        .bind(new.instance)
        .bind(ended.status.as_str())
        .bind(&ended.record)
        .bind(Uuid::now_v7())
        .bind(ended.model)
        .bind(i32::try_from(ended.usage.llm_calls).unwrap_or(i32::MAX))
        .bind(clamp(ended.usage.prompt_tokens))
        .bind(clamp(ended.usage.cached_tokens))
        .bind(clamp(ended.usage.completion_tokens))
        .bind(ended.cost_micros.map(clamp))
        .bind(headers)
        .bind(new.key.map(|_| ended.body))
        .bind(new.entity)
        .bind(new.player)
        .bind(said.map(|s| s.player_message))
        .bind(said.map(|s| s.player_name))
        .bind(said.map(|s| s.action))
        .bind(said.map(|s| s.prompt_text))
        .bind(said.map(|s| i32::try_from(s.user_tokens).unwrap_or(i32::MAX)))
        .bind(said.map(|s| s.window_start))
        .bind(Uuid::now_v7())
        .bind(said.map(|s| s.entity_name))
        .bind(said.map(|s| s.narrative))
        .bind(said.map(|s| i32::try_from(s.narrative_tokens).unwrap_or(i32::MAX)))
}

fn clamp(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A turn that came to nothing.
pub struct Failure<'a> {
    pub status: Status,
    pub code: &'a str,
    pub message: &'a str,
    pub record: Option<String>,
    pub model: &'a str,
    pub usage: &'a Usage,
    pub cost_micros: Option<u64>,
}

/// Ends a turn without success: takes its effects back (unless it keeps them), records why, frees its key to be tried
/// again. What someone else changed since stays, and is reported.
///
/// # Errors
/// Those of the database; the sweeper then does it later.
pub async fn fail(pool: &Pool, actor: &Actor, turn: Uuid, instance: i64, failure: &Failure<'_>) -> Result<Value> {
    let tx = TenantTx::write(pool, &actor.clone().in_turn(turn, Origin::Revert)).await?;
    let mine = sqlx::query(
        "SELECT on_failure, campaign_id, kind FROM turn \
         WHERE tenant_id = $1 AND id = $2 AND instance = $3 AND status IN ('queued', 'running') FOR UPDATE",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(instance)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    let Some(mine) = mine else { return Ok(Value::Null) };
    let conflicts = if mine.get::<&str, _>("on_failure") == "keep" {
        Value::Array(Vec::new())
    } else {
        revert(&tx, turn).await?.conflicts
    };
    sqlx::query(
        "WITH freed AS (UPDATE idempotency SET state = 'retry' WHERE tenant_id = $1 AND turn_id = $2), \
         used AS (INSERT INTO usage_entry (tenant_id, id, campaign_id, kind, model, llm_calls, prompt_tokens, cached_tokens, \
             completion_tokens, cost_micros) SELECT $1, $7, $8, $9, $10, $11, $12, $13, $14, $15 WHERE $11 > 0) \
         UPDATE turn SET status = $3, error = $4, revert_conflicts = $5, record = $6::text::json, finished_at = now() \
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(turn)
    .bind(failure.status.as_str())
    .bind(json!({ "code": failure.code, "message": failure.message }))
    .bind(&conflicts)
    .bind(&failure.record)
    .bind(Uuid::now_v7())
    .bind(mine.get::<Uuid, _>("campaign_id"))
    .bind(mine.get::<String, _>("kind"))
    .bind(failure.model)
    .bind(i32::try_from(failure.usage.llm_calls).unwrap_or(i32::MAX))
    .bind(clamp(failure.usage.prompt_tokens))
    .bind(clamp(failure.usage.cached_tokens))
    .bind(clamp(failure.usage.completion_tokens))
    .bind(failure.cost_micros.map(clamp))
    .execute(&mut *tx.connection().await)
    .await?;
    tx.commit().await?;
    Ok(conflicts)
}

/// What came of taking a turn back.
pub struct Reverted {
    /// What stood in the way, as a list.
    pub conflicts: Value,
    /// New rows that somebody else had taken away already.
    pub gone: i64,
}

/// Takes back what a turn changed, except for what something stands in the way of.
///
/// # Errors
/// Those of the database.
pub async fn revert(tx: &TenantTx, turn: Uuid) -> Result<Reverted> {
    let fights = encounters::rewind::rewind(tx, turn).await?;
    let rows = sqlx::query("SELECT * FROM revert_turn($1)").bind(turn).fetch_all(&mut *tx.connection().await).await?;
    let (gone, stopped): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.get::<&str, _>("reason") == edits::GONE);
    let conflicts = stopped.into_iter().map(|row| {
        json!({
            "table": row.get::<String, _>("table_name"), "id": row.get::<Uuid, _>("row_id"),
            "column": row.get::<Option<String>, _>("column_name"), "reason": row.get::<String, _>("reason"),
        })
    });
    let conflicts = Value::Array(fights.into_iter().chain(conflicts).collect());
    Ok(Reverted { conflicts, gone: i64::try_from(gone.len()).unwrap_or(i64::MAX) })
}

/// Reverts and fails turns whose server is gone; returns how many.
///
/// # Errors
/// Those of the database.
pub async fn sweep(pool: &Pool) -> Result<usize> {
    let orphans = sqlx::query("SELECT * FROM orphaned_turns(100)").fetch_all(&mut *pool.acquire().await?).await?;
    for row in &orphans {
        let (tenant, turn): (Uuid, Uuid) = (row.get("tenant_id"), row.get("turn_id"));
        let tx = TenantTx::write(pool, &Actor::system(tenant).in_turn(turn, Origin::Revert)).await?;
        let held = sqlx::query(
            "SELECT on_failure FROM turn WHERE tenant_id = $1 AND id = $2 AND status IN ('queued', 'running') \
             AND EXISTS (SELECT 1 FROM orphaned_turns(100) o WHERE o.turn_id = turn.id) FOR UPDATE SKIP LOCKED",
        )
        .bind(tenant)
        .bind(turn)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
        let Some(held) = held else { continue };
        let keep = held.get::<&str, _>("on_failure") == "keep";
        let conflicts = if keep { Value::Array(Vec::new()) } else { revert(&tx, turn).await?.conflicts };
        sqlx::query(
            "WITH freed AS (UPDATE idempotency SET state = 'retry' WHERE tenant_id = $1 AND turn_id = $2) \
             UPDATE turn SET status = 'failed', error = $3, revert_conflicts = $4, finished_at = now() \
             WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tenant)
        .bind(turn)
        .bind(json!({ "code": "internal", "message": "The server that ran this turn stopped." }))
        .bind(&conflicts)
        .execute(&mut *tx.connection().await)
        .await?;
        tx.commit().await?;
        metrics::TURNS_SWEPT.inc();
        tracing::warn!(turn_id = %turn, "reverted a turn whose server stopped");
    }
    Ok(orphans.len())
}
