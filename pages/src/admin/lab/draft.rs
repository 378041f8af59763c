//! An unsaved edit of a lore entry: the prompt before and after, and the way back to the edit.

use super::why;
use crate::admin::{
    InCampaign,
    form::{self, Errors},
    lore::edit::settled,
    world_row::World,
};
use ai::{
    prompt::preview::Preview,
    turns::lab::{self, Compared},
};
use base::error::{Code, Error, Result};
use world::lore::LoreEntries;

/// What the edit would change.
pub struct Draft {
    pub title: String,
    pub before_tokens: u32,
    pub after_tokens: u32,
    /// Sections that change, with their text before and after.
    pub changed: Vec<Changed>,
    /// Whether the entry itself is in or out, before and after.
    pub was: String,
    pub is: String,
    pub stale: Vec<lab::Stale>,
}

/// A section that changes.
pub struct Changed {
    pub name: String,
    pub before: String,
    pub after: String,
    pub before_tokens: u32,
    pub after_tokens: u32,
}

/// The fields of the entry's form, without the lab's own fields, so that the edit can be compared again, saved or continued.
pub(super) fn fields(at: &InCampaign) -> Vec<(String, String)> {
    let own = ["form_token", "entity", "player", "action", "find", "lore", "autosave"];
    let of_entry = at.form.fields().filter(|(name, _)| !own.contains(name));
    of_entry.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The changes of the entry's form, as the entry's own page would save them.
pub(super) async fn changes(at: &InCampaign, lore: &str) -> Result<serde_json::Value> {
    let row = at.current::<LoreEntries>(&at.read().await?, lore).await?;
    let texts = settled(form::texts_given(LoreEntries::GROUPS, &at.form));
    let wrong = form::too_long(LoreEntries::GROUPS, &texts);
    let changes = wrong.map_or_else(|| form::changes(LoreEntries::GROUPS, &texts, &row.view), Err);
    let told =
        |errors: Errors| errors.fields.into_iter().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>();
    changes.map_err(|errors| Error::new(Code::ValidationFailed, told(errors).join(" ")))
}

/// What an edit changes, and the prompt after it.
pub(super) fn of(compared: Compared, lore: &str) -> (Draft, Preview) {
    let state = |preview: &Preview| {
        let entry = preview.lore.iter().find(|e| e.slug == lore || e.id.to_string() == lore);
        entry.map_or_else(
            || "not considered".to_owned(),
            |e| {
                let reason = crate::admin::lore::reason_in_words(&e.reason);
                format!("{} ({reason})", if e.included { "in" } else { "out" })
            },
        )
    };
    let mut changed = Vec::new();
    for after in &compared.after.sections {
        let before = compared.before.sections.iter().find(|s| s.name == after.name);
        if before.is_some_and(|before| before.text == after.text) {
            continue;
        }
        changed.push(Changed {
            name: why::words(after.name),
            before: before.map(|s| s.text.clone()).unwrap_or_default(),
            before_tokens: before.map_or(0, |s| s.tokens),
            after: after.text.clone(),
            after_tokens: after.tokens,
        });
    }
    let draft = Draft {
        title: compared.title,
        before_tokens: compared.before.total_tokens,
        after_tokens: compared.after.total_tokens,
        was: state(&compared.before),
        is: state(&compared.after),
        changed,
        stale: compared.stale,
    };
    (draft, compared.after)
}
