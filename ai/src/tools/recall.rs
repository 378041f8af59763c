//! `recall`: an NPC or owner looks into its memory.

use entity::memory::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    arguments::{limit, text},
    spec::{ActorKind, ToolCx, ToolSpec},
};
use crate::corpora::{CorpusKey, Found, best, corpus_now, corpus_within};
use base::error::{Code, Error, Result};
use world::memory::{recall::Memory, subject::Bound};

pub(super) struct Recall;

const QUERY_CHARS_MAX: usize = 200;
const MEMORIES: i64 = 5;
const MEMORIES_MAX: i64 = 20;

/// What to look for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A few words about what to look for.
    #[schemars(length(min = 1, max = 200))]
    query: String,
    /// How many memories; 5 if not given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 20))]
    limit: Option<i64>,
}

/// The memories that have to do with a query, or were written just before or after one that has.
#[derive(Serialize, ToSchema)]
pub struct Recalled {
    /// How many memories are listed.
    count: usize,
    /// The memories, the best first.
    memories: Vec<RecalledMemory>,
}

/// A memory that was recalled.
#[derive(Serialize, ToSchema)]
pub struct RecalledMemory {
    /// The memory's id.
    memory_id: Uuid,
    /// What its holder remembers.
    text: String,
    /// Where it comes from, as in the list of memories.
    source: Source,
    /// When it happened, in the world's own words.
    #[schema(required = true)]
    game_time: Option<String>,
}

impl From<Memory> for RecalledMemory {
    fn from(Memory { id, text, source, game_time, .. }: Memory) -> Self {
        Self { memory_id: id, text, source, game_time }
    }
}

impl ToolSpec for Recall {
    const NAME: &'static str = "recall";
    const DESCRIPTION: &'static str = "Search your memories for something that you are not told here. In a conversation, only your memories of this player are searched.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Npc, ActorKind::Owner];
    const INFORMS: bool = true;
    const READS: bool = true;
    type Arguments = Arguments;
    type Answer = Recalled;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let query = text(&arguments.query, "/query", QUERY_CHARS_MAX)?;
        let limit = limit(arguments.limit, MEMORIES, MEMORIES_MAX)?;
        let player = match cx.bound() {
            Bound::To(player) => Some(player),
            Bound::Free => None,
            Bound::Nobody => {
                return Err(Error::new(Code::Forbidden, "This turn has no player, so there is nobody to remember."));
            }
        };
        let key = CorpusKey { campaign: cx.campaign, holder: cx.entity, player };
        let tx = cx.tx().await?;
        let held = match cx.turn {
            Some(_) => corpus_within(cx.corpora, tx, key).await?,
            // Such a transaction has one call.
            None => corpus_now(cx.corpora, tx, key).await?,
        };
        let found = best(held.corpus.clone(), query, usize::try_from(limit).unwrap_or_default(), |_| true).await?;
        let memories: Vec<RecalledMemory> = found.into_iter().map(|Found { memory, .. }| memory.into()).collect();
        Ok(Recalled { count: memories.len(), memories })
    }
}
