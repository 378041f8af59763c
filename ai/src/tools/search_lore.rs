//! `search_lore`: searches the lore.

use entity::session::Role;
use schemars::JsonSchema;
use serde::Deserialize;
use sqlx::postgres::PgRow;

use super::{
    answers::{LoreFound, LoreFoundEntry},
    arguments::{limit, text},
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::{
    error::Result,
    search::Query,
    stored::{self, Columns},
};

pub(super) struct SearchLore;

const ENTRIES: i64 = 5;
const ENTRIES_MAX: i64 = 20;
/// The most characters of an entry that are shown.
const CONTENT_CHARS: i32 = 2000;
const QUERY_CHARS_MAX: usize = 200;

/// What is looked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A few words.
    #[schemars(length(min = 1, max = 200))]
    query: String,
    /// How many entries; 5 if not given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 20))]
    limit: Option<i64>,
}

impl ToolSpec for SearchLore {
    const NAME: &'static str = "search_lore";
    const DESCRIPTION: &'static str =
        "Look something up in the lore of the world. Entries marked secret are for you alone.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm];
    const INFORMS: bool = true;
    const READS: bool = true;
    type Arguments = Arguments;
    type Answer = LoreFound;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let query = text(&arguments.query, "/query", QUERY_CHARS_MAX)?;
        let limit = limit(arguments.limit, ENTRIES, ENTRIES_MAX)?;
        let mut rows = search(cx, query, limit).await?;
        if rows.is_empty() {
            // If no entry has all the words, search for any of them.
            let any: Vec<_> = query.split_whitespace().collect();
            rows = search(cx, &any.join(" or "), limit).await?;
        }
        let entries = stored::each(&rows, entry_view);
        Ok(LoreFound { count: entries.len(), entries })
    }
}

async fn search(cx: &ToolCx<'_>, query: &str, limit: i64) -> Result<Vec<PgRow>> {
    let Query { words, contains, lacks } = Query::of(query);
    Ok(sqlx::query(
        "SELECT slug, title, scope, associated_id, left(content, $5) AS content, length(content) > $5 AS is_cut, secret FROM lore \
         WHERE tenant_id = $1 AND campaign_id = $2 AND id IN (SELECT search_lore($2, $3, $7, $8, 1000)) AND enabled \
           AND (NOT secret OR $6) ORDER BY priority DESC, id LIMIT $4",
    )
    .bind(cx.work.tenant())
    .bind(cx.campaign)
    .bind(words)
    .bind(limit)
    .bind(CONTENT_CHARS)
    .bind(cx.reader.role != Role::Player)
    .bind(contains)
    .bind(lacks)
    .fetch_all(&mut *cx.tx().await?.connection().await)
    .await?)
}

fn entry_view(row: &PgRow) -> Result<LoreFoundEntry> {
    let (slug, title, scope, associated_id, content, cut, secret) = row.read_all()?;
    Ok(LoreFoundEntry { slug, title, scope, associated_id, content, cut, secret })
}
