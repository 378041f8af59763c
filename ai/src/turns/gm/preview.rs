//! The prompt of a session's AI, without a turn.

use entity::session::Role;
use uuid::Uuid;

use super::{
    prompt::{Asked, GmPrompt, Reads},
    session_prompts::{CachedPrompt, SessionPrompts},
};
use crate::prompt::{cache::Prompts, preview::Preview};
use base::error::Result;
use db::tenancy::TenantTx;
use edge::{
    models::{Choice, Models, TenantModels},
    tenants::tasks::Task,
};
use llm::ReplyMode;
use world::sessions::facts::facts;

/// A prompt to preview.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    pub campaign: Uuid,
    pub session: Uuid,
    /// Another role than the session's.
    pub role: Option<Role>,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
    pub models: &'a TenantModels,
    /// Another model than the one that would answer.
    pub choice: Option<&'a Choice>,
    pub instruction: Option<&'a str>,
}

/// The prompt of a session's AI, as the transaction sees the world. This does not move the cursor. `session_prompts` is the cache to
/// use, if any.
///
/// # Errors
/// `not_found`; database errors.
pub async fn preview_in(
    (prompts, llm): (&Prompts, &Models),
    session_prompts: Option<&SessionPrompts>,
    tx: &TenantTx,
    look: &Look<'_>,
) -> Result<Preview> {
    let kept = session_prompts.and_then(|known| known.get(tx.tenant(), &(look.session, look.role, look.mode)));
    let held = kept.as_deref().map(CachedPrompt::cached_facts).unwrap_or_default();
    let mut facts = facts(tx, look.campaign, look.session, look.role, held).await?;
    let instruction = look.instruction.filter(|i| !i.trim().is_empty());
    let named = CachedPrompt::named_model(kept.as_deref(), &facts);
    let mode = look.mode.unwrap_or_else(|| look.models.mode(Task::Gm, &[named]));
    let usual = look.models.choose(Task::Gm, &[named]).ok();
    let window = look.choice.or(usual.as_deref()).and_then(|choice| llm.window(choice));
    let kept = kept.filter(|kept| kept.mode == mode);
    let asked = Asked { mode, instruction, mechanics: None };
    let mut reads = Reads::Within(tx);
    Ok(GmPrompt::build(prompts, &mut reads, &mut facts, kept.as_deref(), asked, window).await?.preview())
}
