//! Finds the memories that have to do with a text, the best first.

use std::{collections::HashMap, sync::Arc};

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::recall_report::ScoreView;
use crate::corpora::{Corpora, CorpusKey, Found, best, corpus_now, memories};
use base::{
    error::{Error, Result},
    fold::without_marks,
    search,
    stored::Columns,
    threads,
};
use db::tenancy::TenantTx;
use world::memory::{
    MemoryView,
    recall::{Corpus, Memory, is_stop_word},
    service,
    whose::Whose,
};

/// The most characters of a text that is searched for.
const QUERY_CHARS_MAX: usize = 500;
/// The most memories that are ranked if no holder is named.
const ROWS_MAX: i32 = 2000;
/// The most words and pairs of letters that are looked up for that.
const WORDS_MAX: usize = 64;

/// A memory that was found.
#[derive(Debug, Serialize, ToSchema)]
pub struct FoundMemory {
    #[serde(flatten)]
    pub memory: MemoryView,
    pub score: ScoreView,
    /// The words of the query that the memory has, also in another form: at most 20 of the first 100, cut to 50 letters. Of a script without
    /// spaces, the letters that both have in a row.
    pub words: Vec<String>,
}

/// The text to search for.
pub(super) fn query(given: Option<&str>) -> Result<&str> {
    let text = given.map(str::trim).filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| Error::invalid("/q", "required", "Give a text to search for."))?;
    if text.chars().count() > QUERY_CHARS_MAX {
        return Err(Error::invalid("/q", "too_long", format!("must have at most {QUERY_CHARS_MAX} characters")));
    }
    Ok(text)
}

/// Those of the memories that have to do with a text and are `wanted`, the best first. Takes one statement and those of the corpus.
///
/// # Errors
/// Database errors.
pub async fn find(
    (corpora, tx, campaign): (&Corpora, &TenantTx, Uuid),
    Whose { holder, player }: Whose,
    text: &str,
    limit: usize,
    wanted: impl Fn(&Memory) -> bool + Send + 'static,
) -> Result<Vec<FoundMemory>> {
    let corpus = match holder {
        Some(holder) => corpus_now(corpora, tx, CorpusKey { campaign, holder, player }).await?.corpus.clone(),
        None => Arc::new(with_any_word(tx, campaign, player, text).await?),
    };
    let found = best(corpus, text, limit, wanted).await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = found.iter().map(|found| found.memory.id).collect();
    let views = service::of_ids(tx, campaign, &ids).await?;
    let mut views: HashMap<Uuid, MemoryView> = views.into_iter().map(|view| (view.id, view)).collect();
    let found = found.into_iter().filter_map(|Found { memory, score, words }| {
        views.remove(&memory.id).map(|memory| FoundMemory { memory, score: ScoreView::of(score), words })
    });
    Ok(found.collect())
}

/// The campaign's memories that have at least one word of a text. Two statements.
async fn with_any_word(tx: &TenantTx, campaign: Uuid, player: Option<Uuid>, text: &str) -> Result<Corpus> {
    let all = search::words(text);
    let mut words: Vec<String> = all.iter().filter(|word| !is_stop_word(&without_marks(word))).cloned().collect();
    if words.is_empty() {
        words = all;
    }
    words.truncate(WORDS_MAX);
    if words.is_empty() {
        return Ok(Corpus::default());
    }
    let rows = sqlx::query("SELECT id FROM memories_with_any($1, $2, $3, $4) AS id")
        .bind(campaign)
        .bind(player)
        .bind(words)
        .bind(ROWS_MAX)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let ids: Vec<Uuid> = rows.iter().map(|row| row.read("id")).collect::<Result<_>>()?;
    let found = memories(tx, &ids, None).await?;
    let bytes = found.iter().map(|memory| memory.text.len()).sum();
    threads::apart(bytes, move || Corpus::of(found)).await
}
