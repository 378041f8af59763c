//! Assembles the base prompt for the names in a request: the cached one if its version heads match the database's, or else one
//! whose outdated sections are written again.
//!
//! A cache hit costs one statement. Everything that goes into a section has a version head, which is read before the data.

use std::sync::Arc;

use super::{
    base_prompt::{BasePrompt, summed},
    build::Builder,
    cache::Prompts,
    heads::{self, Heads},
    names::PromptRequest,
    remembered::{self, Recall, Remembered, Room},
    segment::Segment,
    transcript::Transcript,
};
use base::{error::Result, metrics};
use db::tenancy::TenantTx;
use edge::caller::Caller;
use world::campaigns::prompt_section::Section;

/// A base prompt, and what is recalled with it.
pub struct Assembled {
    pub base: Arc<BasePrompt>,
    pub recall: Recall,
    /// Whether the base came unchanged from the cache.
    pub hit: bool,
}

/// The base prompt of an entity for a player. One statement if it is cached and no head changed.
///
/// # Errors
/// `not_found` for campaign or entity, `validation_failed` for the player, `forbidden` for another player.
pub async fn assemble(
    prompts: &Prompts,
    tx: &TenantTx,
    caller: &Caller,
    request: &PromptRequest<'_>,
) -> Result<Assembled> {
    let cached = cached_base(prompts, caller, request);
    if let Some(base) = &cached {
        let now = heads::versions(tx, base.key.campaign, base.head_keys()).await?;
        if let Some(renewed) = renew(prompts, tx, base, &now).await? {
            return Ok(kept(prompts, tx, renewed));
        }
    }
    let mut key = request.resolve(tx, caller).await?;
    let old = cached.filter(|base| base.key == key).or_else(|| prompts.base.get(tx.tenant(), &key));
    let build = async |key| -> Result<Assembled> {
        let (base, recall, built) = Builder::new(prompts, tx, old.as_deref(), key).build(request).await?;
        Ok(Assembled { base: Arc::new(base), recall, hit: old.is_some() && !built })
    };
    let mut assembled = build(key).await?;
    // Somebody may have chosen another model since the names were resolved.
    if request.mode.is_none() && assembled.base.mode(request.models) != key.mode {
        key.mode = assembled.base.mode(request.models);
        assembled = build(key).await?;
    }
    request.remember(prompts, caller, key);
    Ok(kept(prompts, tx, assembled))
}

/// Keeps a prompt in the cache.
fn kept(prompts: &Prompts, tx: &TenantTx, assembled: Assembled) -> Assembled {
    prompts.base.put(tx.tenant(), assembled.base.key, assembled.base.clone());
    metrics::PROMPT_CACHE.with_label_values(&[if assembled.hit { "hit" } else { "miss" }]).inc();
    assembled
}

/// The cached prompt for what the names stood for the last time, if what it needs is cached too. It may be outdated.
#[must_use]
pub fn cached(prompts: &Prompts, caller: &Caller, request: &PromptRequest<'_>) -> Option<Assembled> {
    let base = cached_base(prompts, caller, request)?;
    let recall = match &base.recalled {
        Some(same) => Recall::Same(same.clone()),
        None => {
            let held = prompts.corpora.get(caller.tenant_id(), &(&base.key).into());
            Recall::Chosen(held.filter(|held| held.version == base.memory_version())?)
        }
    };
    Some(Assembled { base, recall, hit: true })
}

fn cached_base(prompts: &Prompts, caller: &Caller, request: &PromptRequest<'_>) -> Option<Arc<BasePrompt>> {
    let base = prompts.base.get(caller.tenant_id(), &request.known()?)?;
    base.fits(request.mode, request.models).then_some(base)
}

/// A cached prompt, updated to the present heads, if only its memories and its conversation changed.
async fn renew(prompts: &Prompts, tx: &TenantTx, old: &Arc<BasePrompt>, now: &Heads) -> Result<Option<Assembled>> {
    let mut moved = now.iter().zip(old.head_versions()).filter(|((_, now), then)| now != then).map(|((key, _), _)| key);
    if !moved.all(|key| key.starts_with("talk:") || key.starts_with("memory:")) {
        return Ok(None);
    }
    let version = |head: String| now.get(&head).copied().unwrap_or_default();
    let (memory, talk) = (version(old.key.memory_head()), version(old.key.talk_head()));
    let mut segments = old.segments.clone();
    let mut written = None;
    for segment in segments.iter_mut().filter(|s| s.section == Section::Memories) {
        let mut stamps = segment.heads.clone();
        stamps.iter_mut().filter(|(key, _)| key.starts_with("memory:")).for_each(|(_, version)| *version = memory);
        if stamps != segment.heads {
            metrics::SEGMENTS_BUILT.with_label_values(&[Section::Memories.name()]).inc();
            let room = Room::of(&old.cast, old.layout.budget(Section::Memories, &old.cast.settings));
            let Remembered { memories, recall, rows } =
                remembered::read((prompts, tx), &old.key, memory, &room, old.recalled.is_none()).await?;
            *segment = Arc::new(Segment { heads: stamps, ..memories });
            written = Some((recall, rows));
        }
    }
    let hit = written.is_none();
    let (recall, memory_rows) = match written {
        Some(written) => written,
        None => (remembered::unchanged((prompts, tx), old).await?, old.memory_rows),
    };
    let transcript = if old.transcript.version == talk {
        old.transcript.clone()
    } else {
        Arc::new(Transcript::load(tx, old.key.entity, old.key.player, talk).await?)
    };
    let head_versions = now.values().copied().collect();
    let (hash, tokens) = summed(&segments);
    let recalled = recall.same();
    let base = BasePrompt {
        segments,
        recalled,
        memory_rows,
        transcript,
        head_versions,
        hash,
        tokens,
        ..BasePrompt::clone(old)
    };
    Ok(Some(Assembled { base: Arc::new(base), recall, hit }))
}
