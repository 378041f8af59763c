//! `GET /campaigns/{c}/memories/search`: the memories that have to do with a text, the best first.

use std::{collections::HashMap, sync::Arc};

use actix_web::{HttpRequest, Responder, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::recall_report::ScoreView;
use crate::{
    corpora::{Corpora, CorpusKey, Found, best, corpus_now, memories},
    state::Ai,
};
use base::{
    error::{Error, Problem, Result},
    fold::without_marks,
    search,
    stored::Columns,
    threads,
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        Answer,
        paging::{self, Items},
        resource::{Ref, campaign_id},
    },
};
use world::memory::{
    MemoryView,
    recall::{Corpus, Memory, is_stop_word},
    service,
    whose::Whose,
};

/// The most characters of a text that is searched for.
const QUERY_CHARS_MAX: usize = 500;
const FOUND_MAX: usize = 50;
const FOUND_USUALLY: usize = 10;
/// The most memories that are ranked if no holder is named.
const ROWS_MAX: i32 = 2000;
/// The most words and pairs of letters that are looked up for that.
const WORDS_MAX: usize = 64;

/// What to search for, and in whose memories.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct SearchParams {
    /// A text in the player's words, of at most 500 characters.
    #[param(required = true, value_type = String, min_length = 1, max_length = 500, example = "the grey horse that Alice left")]
    q: Option<String>,
    /// Only memories of this NPC or owner, by id or slug.
    holder_id: Option<String>,
    /// Only memories about this player character, by id or slug.
    player_id: Option<String>,
    /// How many memories at most.
    #[param(minimum = 1, maximum = 50, default = 10)]
    limit: Option<usize>,
}

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

/// Searches memories.
///
/// The best come first; there are no further pages. Memories that have nothing to do with the query are left out. If a holder is named, misspelt
/// words and other endings are found. Without a holder, only memories with a word that begins like one of the query's are ranked, 2,000 at most.
#[utoipa::path(get, path = "/v1/campaigns/{c}/memories/search",
    tag = "memories", operation_id = "search_memories",
    params(("c" = String, Path, description = "Campaign id or slug"), SearchParams),
    responses((status = 200, body = Items<FoundMemory>), (status = "default", body = Problem)))]
pub async fn search_memories(
    app: web::Data<Ai>,
    caller: Caller,
    path: web::Path<String>,
    request: HttpRequest,
) -> Result<impl Responder> {
    let asked: SearchParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    let tx = TenantTx::read_at_one_moment(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    let query = query(asked.q.as_deref())?;
    let limit = asked.limit.unwrap_or(FOUND_USUALLY);
    if !(1..=FOUND_MAX).contains(&limit) {
        return Err(paging::bad("limit", "must be from 1 to 50"));
    }
    let names = (asked.holder_id.as_deref(), asked.player_id.as_deref());
    let items = match Whose::named(&tx, &caller, campaign, names).await? {
        Some(whose) => find((&app.prompts.corpora, &tx, campaign), whose, query, limit, |_| true).await?,
        None => Vec::new(),
    };
    Ok(Answer::ok(Items { items, next_cursor: None }))
}

/// The text to search for.
fn query(given: Option<&str>) -> Result<&str> {
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
