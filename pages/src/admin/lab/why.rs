//! The prompt in the lab, and why each lore entry is in or out. Entries that are in or were held back come first. The
//! rest is folded, unless a search finds it.

use std::collections::HashMap;

use serde_json::json;
use uuid::Uuid;

use super::super::{
    InCampaign,
    lore::reason_in_words,
    recalled::{self, Recalled},
};
use ai::prompt::{LoreDecision, LoreReason, preview::Preview};
use base::{
    error::{Result, TooLarge},
    fold::{fold, occurs},
};
use edge::http::{paging::Page, resource};
use world::lore::{
    LoreEntries, LoreFilter,
    overview::{self, Waking},
};

/// The most entries that each list shows.
const ENTRIES_SHOWN: usize = 100;

/// A prompt.
pub struct View {
    pub cache: &'static str,
    pub total_tokens: u32,
    pub base_tokens: u32,
    /// Set if the model's context cannot hold the prompt.
    pub too_large: Option<TooLarge>,
    pub sections: Vec<Part>,
    pub messages: Vec<(String, String)>,
    pub recalled: Option<Recalled>,
    pub inside: usize,
    pub woken: usize,
    pub outside: usize,
    /// The search text for the entries; empty for all of them.
    pub find: String,
    /// The entries that are in, then those that were held back; or the entries that were found.
    pub near: Vec<ExplainedEntry>,
    pub near_more: usize,
    /// The entries that are out and were not held back.
    pub far: Vec<ExplainedEntry>,
    pub far_more: usize,
}

/// An entry, and why it is in or out.
pub struct ExplainedEntry {
    pub id: Uuid,
    pub title: String,
    pub is_in: bool,
    pub reason: String,
    /// Its keywords, and whether the action contains them.
    pub keys: Vec<(String, bool)>,
    /// The condition on its secondary keywords, if it has any.
    pub further: String,
}

/// A section.
pub struct Part {
    pub name: String,
    pub tokens: u32,
    /// The percentage of all tokens.
    pub percent: u32,
    /// Where its part of the bar begins and how wide it is, in percent with two decimals.
    pub begins: String,
    pub width: String,
    pub text: String,
    pub cut: String,
}

/// A number of hundredths, as SVG reads it.
fn hundredths(number: u64) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}

/// A section's name in words.
#[must_use]
pub fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// The view of a preview; `find` filters its entries.
///
/// # Errors
/// Database errors.
pub async fn view(at: &InCampaign, preview: Preview, action: &str, find: &str) -> Result<View> {
    let total = preview.total_tokens.max(1);
    let mut before = 0u64;
    let lore = preview.lore;
    let inside = lore.iter().filter(|entry| entry.included).count();
    let woken = lore.iter().filter(|entry| is_woken(&entry.reason)).count();
    let outside = lore.len() - inside;
    let (mut near, mut far): (Vec<_>, Vec<_>) = if find.is_empty() {
        lore.into_iter().partition(is_near)
    } else {
        (search_entries(at, lore, find).await?, Vec::new())
    };
    near.sort_by_key(|entry| !entry.included);
    far.sort_by_key(|entry| matches!(entry.reason, LoreReason::OtherScope(_)));
    let more = |list: &[LoreDecision]| list.len().saturating_sub(ENTRIES_SHOWN);
    let (near_more, far_more) = (more(&near), more(&far));
    near.truncate(ENTRIES_SHOWN);
    far.truncate(ENTRIES_SHOWN);
    let ids: Vec<Uuid> = near.iter().chain(&far).map(|entry| entry.id).collect();
    let tx = at.read().await?;
    let mut waking = overview::waking(&tx, &ids).await?;
    let recalled = match preview.recall {
        Some(report) => Some(recalled::recalled(at, &tx, report).await?),
        None => None,
    };
    let action = fold(action);
    let mut entries = |list: Vec<LoreDecision>| list.into_iter().map(|e| entry(e, &mut waking, &action)).collect();
    Ok(View {
        cache: preview.cache.as_str(),
        total_tokens: preview.total_tokens,
        base_tokens: preview.base_tokens,
        too_large: preview.too_large,
        recalled,
        inside,
        woken,
        outside,
        find: find.to_owned(),
        near: entries(near),
        near_more,
        far: entries(far),
        far_more,
        sections: preview
            .sections
            .into_iter()
            .map(|s| Part {
                name: words(s.name),
                tokens: s.tokens,
                percent: s.tokens.saturating_mul(100) / total,
                begins: hundredths({
                    let begins = before;
                    before += u64::from(s.tokens);
                    begins * 10_000 / u64::from(total)
                }),
                width: hundredths(u64::from(s.tokens) * 10_000 / u64::from(total)),
                text: s.text,
                cut: s.cut,
            })
            .collect(),
        messages: preview
            .messages
            .into_iter()
            .map(|m| (json!(m.role).as_str().unwrap_or_default().to_owned(), m.content))
            .collect(),
    })
}

/// Whether a keyword brought the entry in.
fn is_woken(reason: &LoreReason) -> bool {
    matches!(reason, LoreReason::Keyword(_) | LoreReason::KeywordEarlier)
}

/// Whether an entry is in, or was held back by its secondary keywords, its secrecy or the budget.
fn is_near(entry: &LoreDecision) -> bool {
    let is_far = matches!(
        entry.reason,
        LoreReason::NoKeyword | LoreReason::OtherScope(_) | LoreReason::Disabled | LoreReason::Unknown(_)
    );
    entry.included || !is_far
}

/// The entries that a search of the lore finds.
async fn search_entries(at: &InCampaign, lore: Vec<LoreDecision>, find: &str) -> Result<Vec<LoreDecision>> {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("q", find), ("sort", "name"), ("limit", "200")])
        .finish();
    let tx = at.read().await?;
    let page = Page::<LoreFilter>::parse(&query)?;
    let found = resource::find_page::<LoreEntries>(&tx, &at.caller, Some(at.campaign.id.0), &page).await?;
    let mut by_id: HashMap<Uuid, LoreDecision> = lore.into_iter().map(|entry| (entry.id, entry)).collect();
    Ok(found.items.iter().filter_map(|entry| by_id.remove(&entry.id.0)).collect())
}

fn entry(decision: LoreDecision, waking: &mut HashMap<Uuid, Waking>, action: &str) -> ExplainedEntry {
    let marked = |key: String| {
        let is_found = occurs(action, &fold(key.trim()));
        (key, is_found)
    };
    let (title, keys, further) = match waking.remove(&decision.id) {
        None => (decision.slug, Vec::new(), String::new()),
        Some(its) => (its.title, its.keys, further(&its.logic, &its.secondary_keys)),
    };
    ExplainedEntry {
        id: decision.id,
        title,
        is_in: decision.included,
        reason: reason_in_words(&decision.reason),
        keys: keys.into_iter().map(marked).collect(),
        further,
    }
}

/// The condition on the secondary keywords, in words.
fn further(logic: &str, keys: &[String]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let asked = match logic {
        "and_all" => "and all of",
        "not_any" => "but none of",
        "not_all" => "but not all of",
        _ => "and one of",
    };
    format!("{asked} {}", keys.join(", "))
}
