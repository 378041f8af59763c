//! The memories that prompts, searches and tools choose from: from the cache if nothing changed, else renewed by what did.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use entity::memory::Source;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::fair_cache::{FairCache, Weigh};
use base::{
    error::Result,
    metrics,
    stored::{self, Columns},
    threads,
};
use db::tenancy::TenantTx;
use world::memory::recall::{Corpus, Memory, Query, Score};

/// The memories in use.
pub type Corpora = FairCache<CorpusKey, StampedCorpus>;

/// Whose memories a corpus holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CorpusKey {
    pub campaign: Uuid,
    pub holder: Uuid,
    /// Those about this player, or about all.
    pub player: Option<Uuid>,
}

/// Memories, with the version at which they were read.
pub struct StampedCorpus {
    pub version: i64,
    pub corpus: Arc<Corpus>,
    /// About how many bytes of memories will have to be counted in tokens when some of them are chosen: as many as the last time, and those that
    /// are new.
    pub counted: AtomicUsize,
}

impl Weigh for StampedCorpus {
    fn bytes(&self) -> usize {
        self.corpus.bytes()
    }
}

/// The most memories of a corpus: all that are pinned, then the newest.
const ROWS_MAX: usize = 20_000;
/// The most bytes of their texts.
const TEXT_BYTES_MAX: usize = 3 * 1024 * 1024;
/// A byte of text takes as long to be read, or counted in tokens, as so many memories take to be ranked.
pub const RANKED_IN_A_BYTE: usize = 8;
/// The bytes of text that take as long to read as a memory that is already known takes to be indexed again.
const BYTES_OF_KNOWN: usize = 4;

/// The present memories of a holder, about one player or about all. One statement if they are cached, two if some were deleted, else
/// three, and one more if there are too many to hold. The transaction must not have written memories: see [`corpus_within`].
///
/// # Errors
/// Database errors; `internal` if the server is stopping.
pub async fn corpus_now(corpora: &Corpora, tx: &TenantTx, key: CorpusKey) -> Result<Arc<StampedCorpus>> {
    // Before the memories, so that a change in between makes them look outdated.
    let version = version(tx, &key).await?;
    corpus_at(corpora, tx, key, version).await
}

/// The memories of a holder, if the version of their head is known already. No statement if they are cached.
///
/// # Errors
/// Database errors; `internal` if the server is stopping.
pub async fn corpus_at(corpora: &Corpora, tx: &TenantTx, key: CorpusKey, version: i64) -> Result<Arc<StampedCorpus>> {
    let held = corpora.get(tx.tenant(), &key);
    let present = present(tx, &key, version, held.clone()).await?;
    if held.is_none_or(|held| !Arc::ptr_eq(&held, &present)) {
        corpora.put(tx.tenant(), key, present.clone());
    }
    Ok(present)
}

/// The memories of a holder about one player, as a transaction sees them that may have written some. It takes as many statements as
/// [`corpus_now`]. What it reads is not cached: the transaction may be rolled back, and its own changes may raise a head only once.
///
/// # Errors
/// Database errors; `internal` if the server is stopping.
pub async fn corpus_within(corpora: &Corpora, tx: &TenantTx, key: CorpusKey) -> Result<Arc<StampedCorpus>> {
    let version = version(tx, &key).await?;
    present(tx, &key, version, corpora.get(tx.tenant(), &key)).await
}

/// The cached corpus if it has this version, or else what it lacks is read, or everything.
async fn present(
    tx: &TenantTx,
    key: &CorpusKey,
    version: i64,
    held: Option<Arc<StampedCorpus>>,
) -> Result<Arc<StampedCorpus>> {
    if let Some(held) = held.as_ref().filter(|held| held.version == version) {
        metrics::CORPORA.with_label_values(&["cached"]).inc();
        return Ok(held.clone());
    }
    metrics::CORPORA.with_label_values(&[if held.is_some() { "renewed" } else { "read" }]).inc();
    let (listed, unread) = listed(tx, key).await?;
    let known: HashMap<Uuid, i64> =
        held.iter().flat_map(|held| held.corpus.memories()).map(|memory| (memory.id, memory.version)).collect();
    let changed: Vec<Uuid> =
        listed.iter().filter(|(id, version)| known.get(id) != Some(version)).map(|(id, _)| *id).collect();
    let changed = memories(tx, &changed, Some(key)).await?;
    let new = changed.iter().map(|memory| memory.text.len()).sum::<usize>();
    let bytes = new + listed.len() * BYTES_OF_KNOWN;
    let counted = new + held.as_ref().map_or(0, |held| held.counted.load(Ordering::Relaxed));
    let corpus = threads::apart(bytes, move || match held {
        None => Corpus::of(changed),
        Some(held) => {
            let stays: HashMap<Uuid, i64> = listed.into_iter().collect();
            held.corpus.renewed(|memory| stays.get(&memory.id) == Some(&memory.version), changed)
        }
    });
    Ok(Arc::new(StampedCorpus {
        version,
        corpus: Arc::new(corpus.await?.with_unread(unread)),
        counted: counted.into(),
    }))
}

/// A memory that has to do with a text.
pub struct Found {
    pub memory: Memory,
    pub score: Score,
    /// The words that both have.
    pub words: Vec<String>,
}

/// Those of the memories that have to do with a text and are `wanted`, the best first.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn best(
    corpus: Arc<Corpus>,
    text: &str,
    limit: usize,
    wanted: impl Fn(&Memory) -> bool + Send + 'static,
) -> Result<Vec<Found>> {
    let query = Query::of(text);
    threads::apart(corpus.len() / RANKED_IN_A_BYTE, move || {
        let (ranking, mut shared) = (corpus.rank(&query), corpus.shared_words(&query));
        let scored =
            ranking.best_first().filter_map(|place| Some((place, corpus.memory(place)?, ranking.score(place)?)));
        let best = scored.filter(|(_, memory, _)| wanted(memory)).take(limit);
        best.map(|(place, memory, score)| Found { memory: memory.clone(), score, words: shared.of(place) }).collect()
    })
    .await
}

/// The newest memories of a holder, at most `max`; the newest comes first. One statement.
///
/// # Errors
/// Database errors.
pub async fn newest(tx: &TenantTx, key: &CorpusKey, max: usize) -> Result<Vec<Memory>> {
    let rows = sqlx::query(
        "SELECT id, version, seq, text, game_time, source, pinned FROM memory \
         WHERE tenant_id = $1 AND holder_id = $2 AND subject_id = $3 ORDER BY seq DESC LIMIT $4",
    )
    .bind(tx.tenant())
    .bind(key.holder)
    .bind(key.player)
    .bind(i64::try_from(max).unwrap_or(i64::MAX))
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(stored::each(&rows, memory))
}

/// The version of the head of what a holder remembers about a player, or the sum of those about all. Heads only rise, and so does their sum.
async fn version(tx: &TenantTx, key: &CorpusKey) -> Result<i64> {
    let of_holder = format!("memory:{}:", key.holder);
    let (from, to) = match key.player {
        Some(player) => (format!("{of_holder}{player}"), format!("{of_holder}{player}")),
        // No id is larger.
        None => (of_holder.clone(), format!("{of_holder}~")),
    };
    let row = sqlx::query(
        "SELECT coalesce(sum(version), 0)::bigint AS version FROM version_head \
         WHERE tenant_id = $1 AND campaign_id = $2 AND key >= $3 AND key <= $4",
    )
    .bind(tx.tenant())
    .bind(key.campaign)
    .bind(from)
    .bind(to)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    row.read("version")
}

/// The ids and versions of the memories that a corpus holds, and how many others there are. One statement if it holds all.
async fn listed(tx: &TenantTx, key: &CorpusKey) -> Result<(Vec<(Uuid, i64)>, usize)> {
    let about = if key.player.is_some() { "AND m.subject_id = $3" } else { "AND $3::uuid IS NULL" };
    let newest = |condition: &str| {
        format!(
            "(SELECT m.id, m.version, m.seq, m.pinned, octet_length(m.text) + coalesce(octet_length(m.game_time), 0) AS bytes \
              FROM memory m WHERE m.tenant_id = $1 AND m.holder_id = $2 {about} AND {condition} ORDER BY m.seq DESC LIMIT $4)"
        )
    };
    let sql = format!(
        "SELECT id, version, bytes FROM ({} UNION ALL {}) m ORDER BY m.pinned DESC, m.seq DESC LIMIT $4",
        newest("m.pinned"),
        newest("NOT m.pinned")
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(key.holder)
        .bind(key.player)
        .bind(i64::try_from(ROWS_MAX).unwrap_or(i64::MAX))
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let (mut listed, mut used) = (Vec::with_capacity(rows.len()), 0);
    for row in &rows {
        used += usize::try_from(row.read::<i32>("bytes")?).unwrap_or_default();
        if used > TEXT_BYTES_MAX {
            break;
        }
        listed.push((row.read("id")?, row.read("version")?));
    }
    if listed.len() == rows.len() && rows.len() < ROWS_MAX {
        return Ok((listed, 0));
    }
    let all = count(tx, key).await?;
    let unread = all.saturating_sub(listed.len());
    Ok((listed, unread))
}

/// How many memories a holder has. One statement.
///
/// # Errors
/// Database errors.
pub async fn count(tx: &TenantTx, key: &CorpusKey) -> Result<usize> {
    let row = sqlx::query(
        "SELECT count(*) AS count FROM memory WHERE tenant_id = $1 AND holder_id = $2 AND ($3::uuid IS NULL OR subject_id = $3)",
    )
    .bind(tx.tenant())
    .bind(key.holder)
    .bind(key.player)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    Ok(usize::try_from(row.read::<i64>("count")?).unwrap_or_default())
}

/// Memories by their ids, in no particular order. Those that are gone, or belong to others than the key says, are left out. No statement
/// for none.
///
/// # Errors
/// Database errors.
pub async fn memories(tx: &TenantTx, ids: &[Uuid], key: Option<&CorpusKey>) -> Result<Vec<Memory>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(
        "SELECT id, version, seq, text, game_time, source, pinned FROM memory WHERE tenant_id = $1 AND id = ANY ($2) \
         AND ($3::uuid IS NULL OR holder_id = $3) AND ($4::uuid IS NULL OR subject_id = $4)",
    )
    .bind(tx.tenant())
    .bind(ids)
    .bind(key.map(|key| key.holder))
    .bind(key.and_then(|key| key.player))
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(stored::each(&rows, memory))
}

fn memory(row: &PgRow) -> Result<Memory> {
    Ok(Memory {
        id: row.read("id")?,
        version: row.read("version")?,
        seq: row.read("seq")?,
        text: row.read("text")?,
        game_time: row.read("game_time")?,
        source: Source::named(row.read("source")?),
        is_pinned: row.read("pinned")?,
    })
}
