//! What a bulk edit does to one entry. Pure code: it takes an entry, and returns the changed entry or what is wrong
//! with it.

use entity::{
    Json,
    lore::{Activation, Scope},
};
use garde::Validate;
use sea_orm::FromQueryResult;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::replace::{Part, Replace, Replacer, Stopped};
use crate::lore;
use base::{
    error::{Error, FieldError, Result},
    tokens,
};
use edge::http::{resource::scope_key, validate};

/// Tags to add or to remove, or the new tags.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields, default)]
#[garde(allow_unvalidated)]
pub struct TagChange {
    #[garde(custom(validate::words))]
    pub add: Vec<String>,
    #[garde(custom(validate::words))]
    pub remove: Vec<String>,
    /// Replaces all tags. Cannot be combined with `add` or `remove`.
    #[garde(inner(custom(|v: &Vec<String>, cx: &()| validate::words(v, cx))))]
    pub set: Option<Vec<String>>,
}

/// A new priority, or a number that is added to the current one.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PriorityChange {
    Set(i32),
    Add(i32),
}

/// What to change. At least one member is required; `delete` must be the only one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields, default)]
#[schema(as = LoreChanges)]
#[garde(allow_unvalidated)]
pub struct Changes {
    #[garde(dive)]
    pub tags: Option<TagChange>,
    /// The new scope. A global entry loses its `associated_id`.
    pub scope: Option<Scope>,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    pub associated_id: Option<String>,
    pub priority: Option<PriorityChange>,
    pub enabled: Option<bool>,
    pub secret: Option<bool>,
    pub ai_lock: Option<bool>,
    pub activation: Option<Activation>,
    #[garde(dive)]
    pub replace: Option<Replace>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub delete: bool,
}

impl Changes {
    /// Checks rules that concern several members.
    ///
    /// # Errors
    /// `validation_failed`.
    pub fn check(&self) -> Result<()> {
        let columns = self.columns();
        if columns.is_empty() && !self.delete {
            return Err(Error::invalid("/changes", "required", "Give at least one change."));
        }
        if !columns.is_empty() && self.delete {
            return Err(Error::invalid(
                "/changes/delete",
                "invalid_value",
                "Entries that are deleted cannot be changed as well.",
            ));
        }
        if let Some(tags) = &self.tags
            && tags.set.is_some()
            && !(tags.add.is_empty() && tags.remove.is_empty())
        {
            return Err(Error::invalid(
                "/changes/tags/set",
                "invalid_value",
                "Either set the tags, or add and remove some.",
            ));
        }
        if self.scope == Some(Scope::Global) && self.associated_id.is_some() {
            return Err(Error::invalid(
                "/changes/associated_id",
                "invalid_value",
                "A global entry must not have an associated_id.",
            ));
        }
        Ok(())
    }

    /// Whether the content of entries is needed.
    #[must_use]
    pub fn reads_content(&self) -> bool {
        self.replace.as_ref().is_some_and(|r| r.parts.contains(&Part::Content))
    }

    /// The columns that may change.
    #[must_use]
    pub fn columns(&self) -> Vec<&'static str> {
        let replaces = |part| self.replace.as_ref().is_some_and(|r| r.parts.contains(&part));
        let places = self.scope.is_some() || self.associated_id.is_some();
        let all: [(bool, &[&str]); 10] = [
            (self.tags.is_some(), &["tags"]),
            (places, &["scope", "associated_id", "associated_key"]),
            (self.priority.is_some(), &["priority"]),
            (self.enabled.is_some(), &["enabled"]),
            (self.secret.is_some(), &["secret"]),
            (self.ai_lock.is_some(), &["ai_lock"]),
            (self.activation.is_some(), &["activation"]),
            (replaces(Part::Title), &["title"]),
            (replaces(Part::Content), &["content", "tokens"]),
            (replaces(Part::Keys), &["keys", "secondary_keys"]),
        ];
        all.into_iter().filter(|(changes, _)| *changes).flat_map(|(_, columns)| columns.iter().copied()).collect()
    }

    /// Changes an entry. Returns what is wrong with the result; if there is anything, the entry must not be written.
    #[must_use]
    pub fn apply(&self, entry: &mut StoredEntry, replacer: Option<&Replacer>) -> Vec<FieldError> {
        let mut wrong = Vec::new();
        if let Some(replacer) = replacer {
            self.replace(entry, replacer, &mut wrong);
        }
        if let Some(tags) = &self.tags {
            change_tags(&mut entry.tags.0, tags);
            keep(&mut wrong, "tags", validate::words(&entry.tags.0, &()));
        }
        if let Some(scope) = self.scope {
            entry.scope = scope;
            if scope == Scope::Global {
                entry.associated_id = None;
            }
        }
        if let Some(name) = &self.associated_id {
            entry.associated_id = Some(name.clone());
        }
        if self.scope.is_some() || self.associated_id.is_some() {
            entry.associated_key = entry.associated_id.as_deref().map(scope_key).unwrap_or_default();
            wrong.extend(lore::check_scope(entry.scope, entry.associated_id.as_deref()).err());
        }
        match self.priority {
            Some(PriorityChange::Set(value)) => entry.priority = value,
            Some(PriorityChange::Add(more)) => entry.priority = entry.priority.saturating_add(more),
            None => {}
        }
        if !lore::PRIORITIES.contains(&entry.priority) {
            wrong.push(field("priority", "must be from -1,000,000 to 1,000,000".to_owned()));
        }
        entry.enabled = self.enabled.unwrap_or(entry.enabled);
        entry.secret = self.secret.unwrap_or(entry.secret);
        entry.ai_lock = self.ai_lock.unwrap_or(entry.ai_lock);
        entry.activation = self.activation.unwrap_or(entry.activation);
        wrong.extend(lore::check_keys(entry.activation, &entry.keys.0).err());
        wrong
    }

    fn replace(&self, entry: &mut StoredEntry, replacer: &Replacer, wrong: &mut Vec<FieldError>) {
        let parts = self.replace.as_ref().map(|r| r.parts.as_slice()).unwrap_or_default();
        let run = |text: &str, chars_max: usize| replacer.run(text, chars_max * 4);
        if parts.contains(&Part::Title)
            && let Some(title) = replaced_text(wrong, "title", run(&entry.title, 200))
        {
            entry.title = title;
            keep(wrong, "title", validate::line(&entry.title, &()));
        }
        if parts.contains(&Part::Content)
            && let Some(content) = replaced_text(
                wrong,
                "content",
                run(entry.content.as_deref().unwrap_or_default(), lore::CONTENT_CHARS_MAX),
            )
        {
            match content.chars().count() {
                0 => wrong.push(field("content", "would become empty".to_owned())),
                n if n > lore::CONTENT_CHARS_MAX => {
                    wrong.push(field(
                        "content",
                        format!("would have {n} characters, but may have at most {}", lore::CONTENT_CHARS_MAX),
                    ));
                }
                _ => entry.tokens = i32::try_from(tokens::count(&content)).unwrap_or(i32::MAX),
            }
            entry.content = Some(content);
        }
        if parts.contains(&Part::Keys) {
            for (name, keys) in [("keys", &mut entry.keys.0), ("secondary_keys", &mut entry.secondary_keys.0)] {
                for key in keys.iter_mut() {
                    if let Some(changed) = replaced_text(wrong, name, run(key, 200)) {
                        *key = changed;
                    }
                }
                keys.retain(|key| !key.trim().is_empty());
                dedup(keys);
                keep(wrong, name, validate::words(keys, &()));
            }
        }
    }
}

fn change_tags(tags: &mut Vec<String>, change: &TagChange) {
    if let Some(set) = &change.set {
        tags.clone_from(set);
    }
    tags.retain(|tag| !change.remove.contains(tag));
    tags.extend(change.add.iter().cloned());
    dedup(tags);
}

/// Removes duplicates. The first of equal words stays.
fn dedup(words: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    words.retain(|word| seen.insert(word.clone()));
}

fn field(column: &str, message: String) -> FieldError {
    FieldError { pointer: format!("/{column}"), code: "invalid_value".into(), message }
}

fn keep(wrong: &mut Vec<FieldError>, column: &str, result: garde::Result) {
    if let Err(e) = result {
        wrong.push(field(column, e.message().to_owned()));
    }
}

fn replaced_text(wrong: &mut Vec<FieldError>, column: &str, result: Result<Option<String>, Stopped>) -> Option<String> {
    result.unwrap_or_else(|stopped| {
        let (code, message) = match stopped {
            Stopped::TooSlow => (TOO_SLOW, "The pattern takes too long. Make it simpler or choose fewer entries."),
            Stopped::TooLong => ("invalid_value", "would become too long"),
        };
        wrong.push(FieldError { pointer: format!("/{column}"), code: code.into(), message: message.to_owned() });
        None
    })
}

/// The error code for a pattern that takes too long.
pub const TOO_SLOW: &str = "too_slow";

/// The columns of an entry that a bulk edit reads.
#[derive(Clone, Debug, Serialize, FromQueryResult)]
pub struct StoredEntry {
    pub id: Uuid,
    #[serde(skip)]
    pub slug: String,
    pub title: String,
    pub scope: Scope,
    pub associated_id: Option<String>,
    pub associated_key: String,
    /// None if the content is not needed.
    pub content: Option<String>,
    pub tags: Json<Vec<String>>,
    pub priority: i32,
    pub enabled: bool,
    pub secret: bool,
    pub ai_lock: bool,
    pub activation: Activation,
    pub keys: Json<Vec<String>>,
    pub secondary_keys: Json<Vec<String>>,
    pub tokens: i32,
}
