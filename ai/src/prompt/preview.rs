//! Shows the prompt that would be sent, without sending it, and explains for each lore entry why it is in or out.

use std::{collections::HashMap, sync::Arc};

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    LoreDecision,
    assemble::{Assembled, Wanted, assemble, turn_text_apart},
    cache::Prompts,
    lore::ScopeLore,
};
use crate::prompt::state::PromptState;
use base::error::Result;
use base::stored::Columns;
use db::tenancy::TenantTx;
use edge::caller::Caller;
use llm::Role;
use world::campaigns::prompt_section::Section;

/// The most entries that a preview explains.
const ENTRIES_MAX: i64 = 20_000;

/// A section and its text.
#[derive(Debug, Serialize, ToSchema)]
pub struct SectionText {
    pub name: &'static str,
    pub text: String,
    pub tokens: u32,
    pub hash: String,
    /// What was left out to fit the section's budget.
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
    /// `hit` if the base prompt was in the cache.
    pub cache: &'static str,
    /// What a session's AI would read about the game: `overview` or `delta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<&'static str>,
    pub base_hash: String,
    pub base_tokens: u32,
    pub total_tokens: u32,
}

/// Assembles a prompt and explains it.
///
/// # Errors
/// The errors of [`assemble`].
pub async fn preview(app: &PromptState, caller: &Caller, wanted: &Wanted<'_>, action: &str) -> Result<Preview> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    preview_in(&app.prompts, &tx, caller, wanted, action).await
}

/// The same in a transaction, with the caller's own cache, because uncommitted data must not reach the server's cache.
///
/// # Errors
/// The errors of [`assemble`].
pub async fn preview_in(
    prompts: &Prompts,
    tx: &TenantTx,
    caller: &Caller,
    wanted: &Wanted<'_>,
    action: &str,
) -> Result<Preview> {
    let Assembled { base, hit } = assemble(prompts, tx, caller, wanted).await?;
    let transcript = base.transcript.within(Section::History.budget_in(&base.cast.settings));
    let turn = turn_text_apart(&base, &transcript, action, None).await?;
    let mut sections: Vec<SectionText> = base
        .segments
        .iter()
        .map(|s| SectionText {
            name: s.section.name(),
            text: s.text.to_string(),
            tokens: s.tokens,
            hash: s.hash.clone(),
            cut: s.cut.clone(),
        })
        .collect();
    let history: Vec<_> = transcript.exchanges.iter().map(|e| format!("{}{}\n", e.user, e.assistant)).collect();
    let cut = match base.transcript.exchanges.len() - transcript.exchanges.len() {
        0 => String::new(),
        1 => "1 older exchange".to_owned(),
        n => format!("{n} older exchanges"),
    };
    sections.push(SectionText {
        name: Section::History.name(),
        text: history.concat(),
        tokens: transcript.tokens,
        hash: transcript.hash.clone(),
        cut,
    });
    sections.push(SectionText {
        name: Section::Turn.name(),
        text: turn.text.to_string(),
        tokens: turn.tokens,
        hash: turn.hash.clone(),
        cut: turn.cut.clone(),
    });
    let decided: Vec<_> = base.segments.iter().flat_map(|s| s.lore.iter()).chain(&turn.lore).cloned().collect();
    let lore = explain(tx, base.key.campaign, decided, &base.lore).await?;
    let messages = base.messages(&transcript, turn.text.clone());
    let messages = messages.iter().map(|m| MessageText { role: m.role, content: m.content.concat() }).collect();
    Ok(Preview {
        total_tokens: sections.iter().map(|s| s.tokens).sum(),
        sections,
        messages,
        lore,
        cache: if hit { "hit" } else { "miss" },
        context: None,
        base_hash: base.hash.as_ref().to_owned(),
        base_tokens: base.tokens,
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
    rows.iter()
        .map(|row| {
            let id: Uuid = row.read("id")?;
            decided.remove(&id).map_or_else(
                || {
                    let (scope, key): (&str, &str) = (row.read("scope")?, row.read("associated_key")?);
                    let concerns = lores.iter().any(|l| l.scope.scope == scope && l.scope.key == key);
                    let reason = if !row.read::<bool>("enabled")? {
                        "disabled".to_owned()
                    } else if row.read::<&str>("activation")? == "keyword" && concerns {
                        "keyword: none of its keys was met".to_owned()
                    } else if concerns {
                        "budget: too many entries of its scope come first".to_owned()
                    } else {
                        format!("scope: {scope} {key} does not concern this entity and player")
                    };
                    Ok(LoreDecision { id, slug: row.read("slug")?, included: false, reason })
                },
                Ok,
            )
        })
        .collect()
}
