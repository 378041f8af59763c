//! Shows the prompt that would be sent, without sending it, and explains for each lore entry why it is in or out.

use std::{collections::HashMap, sync::Arc};

use serde::Serialize;
use sqlx::postgres::PgRow;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    Cache, Context, LoreDecision, LoreReason,
    assemble::assemble,
    cache::Prompts,
    lore::ScopeLore,
    names::PromptRequest,
    recall_report::RecallReport,
    reminder::reminders,
    scope::LoreScope,
    shown::{Shown, ShownSection},
    turn::{Cause, Told},
};
use crate::state::Ai;
use base::error::{Error, Result, TooLarge};
use base::stored::Columns;
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    models::{Choice, Models},
};
use entity::kind::EntityKind;
use llm::Role;
use world::{campaigns::prompt_section::Section, owners::influence};

/// The most entries that a preview explains.
const ENTRIES_MAX: i64 = 20_000;

/// A section and its text.
#[derive(Debug, Serialize, ToSchema)]
pub struct SectionText {
    pub name: &'static str,
    pub text: String,
    pub tokens: u32,
    pub hash: String,
    /// What was left out to fit the section's budget and the model's context.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cut: String,
}

/// A message in the form in which the model would read it.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageText {
    /// `system`, `user` or `assistant`.
    #[schema(value_type = String)]
    pub role: Role,
    pub content: String,
}

/// A prompt that is not sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct Preview {
    pub sections: Vec<SectionText>,
    pub messages: Vec<MessageText>,
    pub lore: Vec<LoreDecision>,
    /// Why it holds which memories. Absent if it has no section for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<RecallReport>,
    /// `hit` if the base prompt was in the cache.
    #[schema(value_type = String)]
    pub cache: Cache,
    /// What a session's AI would read about the game: `overview` or `delta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, required = false)]
    pub context: Option<Context>,
    pub base_hash: String,
    pub base_tokens: u32,
    pub total_tokens: u32,
    /// If the model's context cannot hold the prompt, whatever is left out: such a turn fails with `prompt_too_large`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_large: Option<TooLarge>,
}

/// A prompt to preview.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    pub wanted: &'a PromptRequest<'a>,
    pub action: &'a str,
    /// Another model than the one that would answer.
    pub choice: Option<&'a Choice>,
}

/// Assembles a prompt and explains it.
///
/// # Errors
/// The errors of [`assemble`].
pub async fn preview(app: &Ai, caller: &Caller, look: Look<'_>) -> Result<Preview> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    preview_in((&app.prompts, &app.llm), &tx, caller, look).await
}

/// The same in a transaction, with the caller's own cache, because uncommitted data must not reach the server's cache.
///
/// # Errors
/// The errors of [`assemble`].
pub async fn preview_in(
    (prompts, llm): (&Prompts, &Models),
    tx: &TenantTx,
    caller: &Caller,
    look: Look<'_>,
) -> Result<Preview> {
    let assembled = assemble(prompts, tx, caller, look.wanted).await?;
    let (base, hit) = (&assembled.base, assembled.hit);
    let has = match base.cast.entity.kind {
        EntityKind::Owner => influence::now(tx, base.key.entity).await?,
        EntityKind::Npc => None,
    };
    let usual = base.choose(look.wanted.models).ok();
    let window = look.choice.or(usual.as_deref()).and_then(|choice| llm.window(choice));
    let told = Told { cause: Cause::Action, action: look.action, mechanics: None, has };
    // There is no turn whose id could decide what is random.
    let mut shown = Shown::of(&assembled, told, reminders(&base.cast, Uuid::nil())).await?;
    if let Some(window) = window {
        Box::pin(shown.fit(base, told, window)).await?;
    }
    let exchanges = &shown.transcript.exchanges;
    let history: String = exchanges.iter().map(|e| format!("{}{}\n", e.user, e.assistant)).collect();
    let section = |section: ShownSection<'_>| SectionText {
        name: section.name,
        text: if section.name == Section::History.name() { history.clone() } else { section.text.to_owned() },
        tokens: section.tokens,
        hash: section.hash.to_owned(),
        cut: section.cut.to_owned(),
    };
    let sections: Vec<SectionText> = shown.sections().map(section).collect();
    let lore = explain(tx, base.key.campaign, shown.lore().cloned().collect(), &base.lore).await?;
    let messages = shown.messages();
    let messages = messages.iter().map(|m| MessageText { role: m.role, content: m.content.concat() }).collect();
    Ok(Preview {
        total_tokens: sections.iter().map(|s| s.tokens).sum(),
        sections,
        messages,
        lore,
        cache: Cache::of(hit),
        context: None,
        base_hash: shown.base_hash.as_ref().to_owned(),
        base_tokens: shown.base_tokens,
        recall: shown.recall.map(|report| report.about(look.action)),
        too_large: shown.too_large,
    })
}

/// Adds the campaign's other entries, each with the reason why it is out.
async fn explain(
    tx: &TenantTx,
    campaign: Uuid,
    decided: Vec<LoreDecision>,
    lores: &[Arc<ScopeLore>],
) -> Result<Vec<LoreDecision>> {
    let rows = sqlx::query(
        "SELECT id, slug, scope, associated_key, enabled, activation FROM lore WHERE tenant_id = $1 AND campaign_id = $2 \
         ORDER BY id LIMIT $3",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(ENTRIES_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut decided: HashMap<Uuid, LoreDecision> = decided.into_iter().map(|d| (d.id, d)).collect();
    let decision = |row: &PgRow| {
        let id: Uuid = row.read("id")?;
        if let Some(decision) = decided.remove(&id) {
            return Ok(decision);
        }
        let reason = why_not_considered(row, lores)?;
        Ok(LoreDecision { id, slug: row.read("slug")?, included: false, reason })
    };
    rows.iter().map(decision).collect()
}

/// Why an entry is out although no section decided about it.
fn why_not_considered(row: &PgRow, lores: &[Arc<ScopeLore>]) -> Result<LoreReason> {
    if !row.read::<bool>("enabled")? {
        return Ok(LoreReason::Disabled);
    }
    let scope = LoreScope::named(row.read("scope")?, row.read("associated_key")?)
        .ok_or_else(|| Error::internal("a lore entry has an unknown scope"))?;
    if matches!(scope.scope, "creature" | "item") {
        return Ok(LoreReason::NotHere(scope));
    }
    Ok(if !lores.iter().any(|lore| lore.scope == scope) {
        LoreReason::OtherScope(scope)
    } else if row.read::<&str>("activation")? == "keyword" {
        LoreReason::NoKeyword
    } else {
        LoreReason::TooManyFirst
    })
}
