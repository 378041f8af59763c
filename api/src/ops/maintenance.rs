//! Background tasks: liveness, leases, the sweeper, allowed origins, prompt-cache invalidation from the journal, feeds, the bridge's mail,
//! erasures, rows of deleted campaigns, retention.
//!
//! Each task does a bounded amount of work at a time and loses nothing if the server dies. Tasks that somebody waits for have
//! connections that requests cannot take.

use std::{collections::HashMap, sync::Arc, time::Duration};

use time::OffsetDateTime;
use tokio::time::{MissedTickBehavior, interval, sleep};
use uuid::Uuid;

use crate::app::App;
use crate::life::Life;
use ai::{
    frontends::{mail, post},
    prompt::base_prompt::BasePrompt,
    reactions,
    turns::{self, store::sweep},
};
use base::metrics;
use base::{clock, error::Result, stored::Columns};
use db::{
    pool::{Need, with_need},
    tenancy::TURN_LEASE_SECONDS,
};
use edge::{caller::links, origins::READ_EVERY, users::sessions};
use world::{campaigns::removal, erasure};

/// Must be shorter than the three seconds that `orphaned_turns` allows a server that has lost its lock.
const LEASE_EVERY: Duration = Duration::from_secs(2);
const TAIL_FAST: Duration = Duration::from_millis(250);
const TAIL_SLOW: Duration = Duration::from_secs(2);
const FEEDS_EVERY: Duration = Duration::from_millis(200);
const LINKS_EVERY: Duration = Duration::from_secs(2);
const PRUNE_EVERY: Duration = Duration::from_secs(300);
const PRUNE_ROWS: i32 = 5000;
/// The most portions of one kind in one round. That is more than is written between two rounds.
const PORTIONS_MAX: u32 = 50;
const TAIL_ROWS: i32 = 500;
const ERASE_EVERY: Duration = Duration::from_secs(1);
const REMOVE_EVERY: Duration = Duration::from_secs(1);
/// The most erasures in one round, and how long each may take before the next one gets its turn.
const ERASURES_AT_ONCE: i32 = 20;
const ERASE_SHARE: Duration = Duration::from_secs(2);

/// Starts all tasks. They end with the runtime.
pub fn start(app: &Arc<App>, url: &str, life: Life) {
    tokio::spawn(leases(app.clone(), life));
    tokio::spawn(with_need(Need::End, sweeper(app.clone())));
    tokio::spawn(with_need(Need::End, tail(app.clone())));
    tokio::spawn(with_need(Need::End, feeds(app.clone())));
    tokio::spawn(with_need(Need::End, open_links(app.clone())));
    tokio::spawn(with_need(Need::End, origins(app.clone())));
    tokio::spawn(erasures(app.clone()));
    tokio::spawn(removals(app.clone()));
    tokio::spawn(elsewhere(app.clone()));
    tokio::spawn(retention(app.clone()));
    tokio::spawn(post::listen(app.frontends.clone(), url.to_owned()));
    tokio::spawn(with_need(Need::End, post::fetch(app.frontends.clone())));
    if let Err(error) = reactions::work::start(app.ai(), url.to_owned()) {
        tracing::error!(%error, "NPCs and owners cannot react on this server");
    }
}

/// Keeps the turns of a command-line command alive, next to running servers.
pub fn stay_alive(app: &Arc<App>, life: Life) {
    tokio::spawn(leases(app.clone(), life));
}

/// Shows that this server is alive, renews leases, and cancels turns whose cancellation another replica was asked for.
async fn leases(app: Arc<App>, mut life: Life) {
    let mut ticks = interval(LEASE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match life.renew(&app.running.ids(), TURN_LEASE_SECONDS).await {
            Ok(unwanted) => {
                app.running.steady.renewed();
                unwanted.into_iter().for_each(|turn| {
                    app.running.cancel(turn);
                });
            }
            Err(error) => tracing::warn!(%error, "could not renew leases"),
        }
    }
}

/// Reads the origins that pages may call from. A server has read them once before it begins.
async fn origins(app: Arc<App>) {
    loop {
        sleep(READ_EVERY).await;
        if let Err(error) = app.origins.read(&app.pool).await {
            tracing::warn!(%error, "could not read the allowed origins");
        }
    }
}

async fn sweeper(app: Arc<App>) {
    let mut ticks = interval(app.config.sweep_every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        loop {
            match sweep(&app.pool, &app.running).await {
                Ok(swept) if swept.more => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(%error, "could not look for orphaned turns");
                    break;
                }
            }
        }
        if let Err(error) = reactions::work::measure(&app).await {
            tracing::warn!(%error, "could not count reactions");
        }
        if let Err(error) = reverts_waiting(&app).await {
            tracing::warn!(%error, "could not count turns that are being reverted");
        }
    }
}

/// Updates the metrics about turns that are being reverted.
async fn reverts_waiting(app: &App) -> Result<()> {
    let row = sqlx::query("SELECT turns, failing, oldest_seconds FROM reverts_waiting()")
        .fetch_one(&mut *app.pool.acquire().await?)
        .await?;
    metrics::TURNS_REVERTING.set(row.read("turns")?);
    metrics::TURNS_REVERTS_FAILING.set(row.read("failing")?);
    metrics::TURNS_REVERTING_OLDEST.set(row.read("oldest_seconds")?);
    Ok(())
}

/// Evicts cached prompts whose sources changed, to free memory. Correctness does not depend on it.
async fn tail(app: Arc<App>) {
    let mut seen: HashMap<(Uuid, Uuid), i64> = HashMap::new();
    loop {
        let wait = match tail_once(&app, &mut seen).await {
            Ok(0) => TAIL_SLOW,
            Ok(_) => TAIL_FAST,
            Err(error) => {
                tracing::warn!(%error, "could not read the journal's tail");
                TAIL_SLOW
            }
        };
        sleep(wait).await;
    }
}

async fn tail_once(app: &App, seen: &mut HashMap<(Uuid, Uuid), i64>) -> Result<usize> {
    let mut held: Vec<(Uuid, Uuid)> =
        app.prompts.base.keys().into_iter().map(|(tenant, key)| (tenant, key.campaign)).collect();
    held.sort_unstable();
    held.dedup();
    seen.retain(|campaign, _| held.binary_search(campaign).is_ok());
    if held.is_empty() {
        return Ok(0);
    }
    let tenants: Vec<_> = held.iter().map(|h| h.0).collect();
    let campaigns: Vec<_> = held.iter().map(|h| h.1).collect();
    // For a new campaign, start at the feed's end: earlier changes are covered by the prompts' stamps.
    let fresh: Vec<_> = held.iter().filter(|h| !seen.contains_key(h)).copied().collect();
    if !fresh.is_empty() {
        seen.extend(fresh.iter().map(|feed| (*feed, 0)));
        seen.extend(db::feeds::ends(&app.pool, &fresh).await?);
    }
    let seqs: Vec<i64> = held.iter().map(|h| seen.get(h).copied().unwrap_or_default()).collect();
    let rows = sqlx::query("SELECT tenant_id, campaign_id, seq, heads, versions FROM journal_tail($1, $2, $3, $4)")
        .bind(&tenants)
        .bind(&campaigns)
        .bind(&seqs)
        .bind(TAIL_ROWS)
        .fetch_all(&mut *app.pool.acquire().await?)
        .await?;
    for row in &rows {
        let (tenant, campaign): (Uuid, Uuid) = (row.read("tenant_id")?, row.read("campaign_id")?);
        seen.insert((tenant, campaign), row.read("seq")?);
        let (heads, versions): (Vec<String>, Vec<i64>) = (row.read("heads")?, row.read("versions")?);
        let is_stale =
            |base: &BasePrompt| heads.iter().zip(&versions).any(|(head, version)| base.is_older(head, *version));
        let gone = app.prompts.base.forget(tenant, |key, base| key.campaign == campaign && is_stale(base));
        metrics::PROMPT_CACHE_EVICTED.inc_by(gone as u64);
    }
    Ok(rows.len())
}

/// Notifies streams that follow a campaign that it changed.
async fn feeds(app: Arc<App>) {
    loop {
        sleep(FEEDS_EVERY).await;
        if let Err(error) = app.feeds.tell(&app.pool).await {
            tracing::warn!(%error, "could not read the feeds");
        }
    }
}

/// Tells open tables that their link no longer works.
async fn open_links(app: Arc<App>) {
    loop {
        sleep(LINKS_EVERY).await;
        if let Err(error) = links::tell(&app.open_links, &app.pool).await {
            tracing::warn!(%error, "could not ask which player links still work");
        }
    }
}

/// Notifies clients that wait for turns on other servers.
async fn elsewhere(app: Arc<App>) {
    turns::elsewhere::look(&app).await;
}

/// Continues erasures. Also clears this server's caches for tenants whose erasures progressed, on whatever server.
async fn erasures(app: Arc<App>) {
    // This server holds nothing from before it started.
    let mut since = clock::now() - Duration::from_secs(60);
    loop {
        sleep(ERASE_EVERY).await;
        match erase(&app, since).await {
            Ok(upto) => since = upto,
            Err(error) => tracing::warn!(%error, "could not look for erasures"),
        }
    }
}

/// One round of [`erasures`]. Returns where the next one begins.
async fn erase(app: &App, since: OffsetDateTime) -> Result<OffsetDateTime> {
    let moved = sqlx::query("SELECT * FROM erasures_moved($1, $2)")
        .bind(since)
        .bind(ERASURES_AT_ONCE)
        .fetch_all(&mut *app.pool.acquire().await?)
        .await?;
    let mut upto = since;
    for row in &moved {
        let (tenant, id): (Uuid, Uuid) = (row.read("tenant_id")?, row.read("id")?);
        upto = upto.max(row.read("moved_at")?);
        app.forget(tenant);
        if !row.read::<bool>("is_done")? {
            if let Err(error) = erasure::steps::carry_on(&app.pool, tenant, id, ERASE_SHARE).await {
                tracing::warn!(erasure = %id, %error, "could not continue an erasure");
            }
            app.forget(tenant);
        }
    }
    Ok(upto)
}

/// Deletes the rows of deleted campaigns.
async fn removals(app: Arc<App>) {
    loop {
        sleep(REMOVE_EVERY).await;
        if let Err(error) = removal::carry_on(&app.pool).await {
            tracing::warn!(%error, "could not look for deleted campaigns");
        }
    }
}

/// Prunes rows that are older than their retention, a few thousand at a time.
async fn retention(app: Arc<App>) {
    loop {
        sleep(PRUNE_EVERY).await;
        app.pool.close_idle();
        if let Err(error) = prune(&app).await {
            tracing::warn!(%error, "could not prune old rows");
        }
    }
}

/// Prunes everything older than its retention: the journal, turn records, idempotency keys, usage, sessions of the editor, and remains of
/// the bridge, imports and deleted campaigns. It works in portions, each in its own transaction, and leaves the rest for the next round.
///
/// # Errors
/// Database errors.
pub async fn prune(app: &App) -> Result<()> {
    let journal = app.config.journal_retention_days.map(i64::from);
    let turns = Some(i64::from(app.config.turn_retention_days));
    let idle = Some(i64::from(sessions::IDLE_SECONDS));
    let usage = app.config.usage_retention_days.map(i64::from);
    let mut failed = None;
    for (statement, age) in [
        ("SELECT prune_journal($1 * interval '1 day', $2)", journal),
        ("SELECT prune_edit_steps($2) WHERE $1::bigint IS NULL", None),
        ("SELECT prune_encounter_past($1 * interval '1 day', $2)", journal),
        ("SELECT prune_system($1 * interval '1 day', interval '24 hours', $2)", turns),
        ("SELECT prune_reactions($1 * interval '1 day', $2)", turns),
        ("SELECT prune_usage($1 * interval '1 day', $2) WHERE $1::bigint IS NOT NULL", usage),
        ("SELECT prune_editor_sessions($1::int, $2)", idle),
        ("SELECT prune_gone_campaigns($2) WHERE $1::bigint IS NULL", None),
    ] {
        // If one table cannot be pruned, the others still are.
        if let Err(error) = portions(app, statement, age).await {
            tracing::warn!(%error, statement, "could not prune old rows");
            failed.get_or_insert(error);
        }
    }
    sqlx::query("SELECT prune_pending_imports()").execute(&mut *app.pool.acquire().await?).await?;
    mail::prune(&app.frontends).await?;
    failed.map_or(Ok(()), Err)
}

/// Prunes until a portion is not full, or for as many portions as one round may take. `$1` is an age, `$2` the number of rows in
/// a portion.
async fn portions(app: &App, statement: &'static str, age: Option<i64>) -> Result<()> {
    for _ in 0..PORTIONS_MAX {
        let row =
            sqlx::query(statement).bind(age).bind(PRUNE_ROWS).fetch_optional(&mut *app.pool.acquire().await?).await?;
        let pruned = row.map_or(Ok(0), |row| row.read::<i64>(0))?;
        if pruned < i64::from(PRUNE_ROWS) {
            break;
        }
    }
    Ok(())
}
