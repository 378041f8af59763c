//! Forks: copies of a campaign with its whole world, as it is now or as it was when a turn had ended.
//!
//! The copying is done in SQL (`migration/src/sql/fork.sql`), table by table, in a transaction that sees one moment. So
//! a change that happens meanwhile is copied completely or not at all. The past is reconstructed by walking the journal
//! backwards. Sessions, turns, dice seeds and idempotency keys do not belong to the world and are not copied. To copy a
//! new table, add its name to [`TABLES`]; `tests/fork.rs` finds tables that were forgotten.

use std::time::Duration;

use entity::{campaign, shapes::ForkedFrom};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use tokio::time::{Instant, sleep};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Campaigns;
use base::{
    clock,
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::{Actor, Origin, TenantTx};
use edge::{
    caller::Caller,
    http::{
        Answer, Written,
        idempotency::IdempotencyKey,
        resource::{self, Place, Ref, Resource, Shown},
        validate, write_in,
    },
    state::Edge,
};

/// Tables of the world, in the order in which they are copied: a row comes after the rows it refers to. Tables that
/// belong to encounters are copied with them.
pub const TABLES: &[&str] =
    &["campaign", "owner", "character", "npc", "scene", "lore", "memory", "message", "encounter"];

/// The longest time for one statement of a fork, in seconds. A million rows take minutes.
const SECONDS_MAX: u32 = 900;
/// How long a fork waits for another fork of its tenant.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How often it checks whether the other fork is done.
const WAIT_POLL: Duration = Duration::from_millis(200);

/// The options of a fork.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields, default)]
#[garde(allow_unvalidated)]
pub struct ForkInput {
    /// The turn after which the world is copied. By default the present world is copied.
    pub at_turn: Option<Uuid>,
    /// The slug of the fork. By default it is made from the name.
    #[garde(custom(validate::opt_slug))]
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9_-]*$")]
    pub slug: Option<String>,
    /// The name of the fork. By default the original's name.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    pub name: Option<String>,
}

/// Forks a campaign with everything in it. Waits while another fork of the tenant runs.
///
/// # Errors
/// `validation_failed`, `conflict`, `gone`; `unavailable` if the other fork takes too long.
pub async fn fork(
    app: &Edge,
    caller: &Caller,
    c: &str,
    input: &ForkInput,
    key: Option<&IdempotencyKey>,
) -> Result<Written<Shown<campaign::Model>>> {
    validate::check(input)?;
    let actor = Actor { origin: Origin::Fork, ..caller.actor() };
    write_in(async || place(app, &actor).await, key, async |tx| copy(app, caller, c, input, tx).await).await
}

/// Copies the campaign within a transaction, in a constant number of statements.
async fn copy(
    app: &Edge,
    caller: &Caller,
    c: &str,
    input: &ForkInput,
    tx: &TenantTx,
) -> Result<Answer<Shown<campaign::Model>>> {
    let source = resource::campaign_id(tx, caller, &Ref::parse(c)).await?;
    if caller.campaign.is_some() {
        return Err(Error::new(Code::Forbidden, "This token is for one campaign only."));
    }
    let at = match input.at_turn {
        Some(turn) => Some(end_of(tx, source, turn).await?),
        None => None,
    };
    let target = clock::id();
    let name = match &input.name {
        Some(name) => name.clone(),
        None => name_at(tx, source, at.as_ref().map(|at| at.seq)).await?,
    };
    let slug = match &input.slug {
        Some(slug) => slug.clone(),
        None => resource::free_slug::<Campaigns>(&Place { tx, campaign: target, caller }, &name).await?,
    };
    sqlx::query("SELECT fork_campaign($1, $2, $3, $4, $5, $6, $7, $8)")
        .bind(source)
        .bind(target)
        .bind(at.as_ref().map(|at| at.seq))
        .bind(at.as_ref().map(|at| at.moment))
        .bind(slug)
        .bind(name)
        .bind(json!(ForkedFrom { campaign_id: source, turn_id: input.at_turn }))
        .bind(TABLES)
        .execute(&mut *tx.connection().await)
        .await
        .map_err(|error| if input.slug.is_none() { Error::from(error).of_derived_slug() } else { error.into() })?;
    app.limits.check_rows_kept(tx, caller, TABLES).await?;
    let model = resource::find::<Campaigns>(tx, caller, None, &Ref::Id(target)).await?;
    let version = Campaigns::stamp(&model).version;
    Ok(Answer::created(format!("/v1/campaigns/{target}"), version, resource::shown::<Campaigns>(model, caller)))
}

/// Waits until no other fork of the tenant is running, because a fork holds a connection for a long time. Waiting holds
/// none.
///
/// A transaction sees the world as of its first statement, which is the one that asks for the lock. A fork that commits
/// at that very moment would be neither waited for nor seen. But no fork can finish in the time between two such
/// statements. So if the lock was free twice in a row, it was free when the second transaction began.
async fn place(app: &Edge, actor: &Actor) -> Result<TenantTx> {
    let until = Instant::now() + WAIT_MAX;
    let mut was_free = false;
    loop {
        let tx = TenantTx::write_at_one_moment(&app.pool, actor, SECONDS_MAX).await?;
        let row = sqlx::query("SELECT pg_try_advisory_xact_lock(hashtextextended('fork:' || $1, 0)) AS free")
            .bind(tx.tenant().to_string())
            .fetch_one(&mut *tx.connection().await)
            .await?;
        let is_free = row.read("free")?;
        if is_free && was_free {
            return Ok(tx);
        }
        tx.commit().await?;
        if !is_free {
            if Instant::now() >= until {
                let detail = "Another campaign of this tenant is being forked. Try again later.";
                return Err(Error::new(Code::Unavailable, detail).retry_after(10));
            }
            sleep(WAIT_POLL).await;
        }
        was_free = is_free;
    }
}

/// The moment when a turn had ended.
struct End {
    /// The last entry of the journal at that moment.
    seq: i64,
    moment: OffsetDateTime,
}

/// A turn ended with its last journal entry: its own last change or, if it failed, the last change that was reverted.
/// Changes from an earlier attempt do not count, and neither does a later undo or correction of the turn. If a turn changed nothing,
/// its end is found by the time.
const END: &str = "\
    SELECT t.status, t.finished_at, coalesce(h.pruned_seq, 0) AS pruned, \
           CASE WHEN t.status IN ('failed', 'cancelled') AND t.on_failure <> 'keep' THEN j.last \
                WHEN t.undone_at IS NOT NULL THEN j.last_own ELSE j.last_anew END AS last, \
           (SELECT b.seq FROM journal b WHERE b.tenant_id = $1 AND b.campaign_id = $2 AND b.at <= t.finished_at \
            ORDER BY b.seq DESC LIMIT 1) AS by_clock, \
           (SELECT b.at FROM journal b WHERE b.tenant_id = $1 AND b.campaign_id = $2 ORDER BY b.seq LIMIT 1) AS kept_since \
    FROM turn t LEFT JOIN feed_head h ON h.tenant_id = t.tenant_id AND h.campaign_id = t.campaign_id \
    CROSS JOIN LATERAL (SELECT max(j.seq) AS last, max(j.seq) FILTER (WHERE j.origin <> 'revert' AND j.is_own) AS last_own, \
        max(j.seq) FILTER (WHERE j.origin <> 'revert' AND j.seq > t.reverted_through AND j.is_own) AS last_anew \
        FROM (SELECT o.seq, o.origin, o.at <= t.finished_at OR t.edited_at IS NULL AND t.reverted_through = 0 AS is_own \
              FROM journal o WHERE o.tenant_id = t.tenant_id AND o.turn_id = t.id) j) j \
    WHERE t.tenant_id = $1 AND t.campaign_id = $2 AND t.id = $3";

async fn end_of(tx: &TenantTx, source: Uuid, turn: Uuid) -> Result<End> {
    let row = sqlx::query(END)
        .bind(tx.tenant())
        .bind(source)
        .bind(turn)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::invalid("/at_turn", "unknown_reference", "There is no such turn in this campaign."))?;
    let finished: Option<OffsetDateTime> = row.read("finished_at")?;
    let (Some(moment), false) = (finished, matches!(row.read("status")?, "queued" | "running")) else {
        return Err(Error::new(Code::Conflict, "The turn is still running. Fork the campaign when it has ended."));
    };
    match seq_of(&row, moment)? {
        Some(seq) => Ok(End { seq, moment }),
        None => Err(Error::new(Code::Gone, "The journal no longer reaches back to this turn.")),
    }
}

/// The position of a turn's end in the journal, if the journal reaches back that far.
fn seq_of(row: &PgRow, moment: OffsetDateTime) -> Result<Option<i64>> {
    let pruned: i64 = row.read("pruned")?;
    let seq = match row.read::<Option<i64>>("last")? {
        Some(last) => last,
        // Its entries may have been pruned.
        None if pruned > 0 && row.read::<Option<OffsetDateTime>>("kept_since")?.is_none_or(|at| moment < at) => {
            return Ok(None);
        }
        None => row.read::<Option<i64>>("by_clock")?.unwrap_or(pruned),
    };
    Ok((seq >= pruned).then_some(seq))
}

/// The campaign's name at a position in its journal.
async fn name_at(tx: &TenantTx, source: Uuid, seq: Option<i64>) -> Result<String> {
    let row = sqlx::query(
        "SELECT coalesce((SELECT j.before ->> 'name' FROM journal j WHERE j.tenant_id = $1 AND j.row_id = $2 AND j.seq > $3 \
         ORDER BY j.seq LIMIT 1), c.name) AS name FROM campaign c WHERE c.tenant_id = $1 AND c.id = $2",
    )
    .bind(tx.tenant())
    .bind(source)
    .bind(seq)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    row.read("name")
}
