//! The scores of actions, and when a campaign's entities react. A campaign may change all of these settings.

use std::collections::BTreeMap;

use entity::shapes::Extensions;
use serde::Deserialize;
use serde_json::Value;

use base::error::{Error, Result};

/// The scores of the types of actions that every campaign has (`memory-and-lore`: the first version of the monitor),
/// and of the commands that can report themselves.
pub const DEFAULTS: &[(&str, f64)] = &[
    ("look", 0.0),
    ("move", 1.0),
    ("say", 2.0),
    ("use_item", 3.0),
    ("talk", 5.0),
    ("pray", 8.0),
    ("attack", 10.0),
    ("roll", 0.0),
    ("check", 1.0),
    ("do", 2.0),
    ("use_skill", 3.0),
];

/// What the server can report without a frontend: commands, the actions of encounters, and what players say at the
/// table. Each counts as the type of action with the same name.
pub const AUTOMATIC: &[&str] = &["roll", "check", "do", "move", "use_skill", "attack", "say"];

/// The largest score of one action, and the largest threshold.
pub const SCORE_MAX: f64 = 1_000_000.0;
/// The most types of actions that a campaign may define.
pub const TYPES_MAX: usize = 200;

const COOLDOWN_SECONDS: u32 = 60;
const EXPIRES_SECONDS: u32 = 3600;
const PER_DAY: u32 = 500;

/// A campaign's settings for significance. Members that are absent or null have their defaults.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Significance {
    significance_scores: Option<BTreeMap<String, Option<f64>>>,
    immediate_threshold: Option<f64>,
    reaction_cooldown_seconds: Option<u32>,
    reactions_per_day: Option<u32>,
    reply_expires_seconds: Option<u32>,
    reply_reverts: Option<bool>,
    automatic_actions: Option<Vec<String>>,
}

impl Significance {
    /// Reads a campaign's stored settings. A setting that cannot be read has its default.
    #[must_use]
    pub fn of(settings: &Extensions) -> Self {
        let member = |name: &str| settings.get(name).cloned().unwrap_or(Value::Null);
        fn read<T: serde::de::DeserializeOwned>(value: Value) -> Option<T> {
            serde_json::from_value(value).ok()
        }
        Self {
            significance_scores: read(member("significance_scores")),
            immediate_threshold: read(member("immediate_threshold")),
            reaction_cooldown_seconds: read(member("reaction_cooldown_seconds")),
            reactions_per_day: read(member("reactions_per_day")),
            reply_expires_seconds: read(member("reply_expires_seconds")),
            reply_reverts: read(member("reply_reverts")),
            automatic_actions: read(member("automatic_actions")),
        }
    }

    /// The score of an action of this type. None for an unknown type.
    #[must_use]
    pub fn score(&self, kind: &str) -> Option<f64> {
        let own = self.significance_scores.as_ref().and_then(|scores| scores.get(kind)).copied().flatten();
        own.or_else(|| DEFAULTS.iter().find(|(name, _)| *name == kind).map(|(_, score)| *score))
    }

    /// All types of actions with their scores, by name.
    #[must_use]
    pub fn types(&self) -> BTreeMap<String, f64> {
        let mut all: BTreeMap<String, f64> =
            DEFAULTS.iter().map(|(name, score)| ((*name).to_owned(), *score)).collect();
        let own = self.significance_scores.iter().flatten();
        all.extend(own.filter_map(|(name, score)| score.map(|score| (name.clone(), score))));
        all
    }

    /// The score at which a single action is enough for a reaction, whatever the threshold.
    #[must_use]
    pub fn immediate_threshold(&self) -> Option<f64> {
        self.immediate_threshold
    }

    /// For how long an entity does not react to the same player again.
    #[must_use]
    pub fn cooldown_seconds(&self) -> u32 {
        self.reaction_cooldown_seconds.unwrap_or(COOLDOWN_SECONDS)
    }

    /// The most reactions of the campaign in a day; 0 means no limit.
    #[must_use]
    pub fn per_day(&self) -> u32 {
        self.reactions_per_day.unwrap_or(PER_DAY)
    }

    /// How long a reply waits for its player.
    #[must_use]
    pub fn expires_seconds(&self) -> u32 {
        self.reply_expires_seconds.unwrap_or(EXPIRES_SECONDS)
    }

    /// Whether the effects of a reaction are undone when its reply cannot be delivered.
    #[must_use]
    pub fn reverts(&self) -> bool {
        self.reply_reverts.unwrap_or(false)
    }

    /// Whether the server reports this kind of action.
    #[must_use]
    pub fn is_automatic(&self, kind: &str) -> bool {
        self.automatic_actions.iter().flatten().any(|name| name == kind)
    }
}

/// Checks scores that a client sends.
///
/// # Errors
/// `validation_failed` that points to the first invalid one.
pub fn check_scores(scores: &BTreeMap<String, Option<f64>>) -> Result<()> {
    if scores.len() > TYPES_MAX {
        let rule = format!("may have at most {TYPES_MAX} types of actions");
        return Err(Error::invalid("/settings/significance_scores", "invalid_value", rule));
    }
    for (name, score) in scores {
        let pointer = format!("/settings/significance_scores/{}", base::json::escape(name));
        if !is_type(name) {
            let rule =
                "A type of action must have 1 to 40 lower-case letters, digits and `_`, and begin with a letter.";
            return Err(Error::invalid(pointer, "invalid_value", rule));
        }
        if score.is_some_and(|score| !fits(score)) {
            return Err(Error::invalid(pointer, "invalid_value", format!("must be a number from 0 to {SCORE_MAX}")));
        }
    }
    Ok(())
}

/// Whether a number can be a score or a threshold.
#[must_use]
pub fn fits(score: f64) -> bool {
    (0.0..=SCORE_MAX).contains(&score)
}

/// Whether a text can name a type of action.
#[must_use]
pub fn is_type(name: &str) -> bool {
    (1..=40).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(value: Value) -> Significance {
        Significance::of(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_campaign_changes_scores_and_adds_types() {
        let own = settings(json!({ "significance_scores": { "talk": 1.5, "steal": 12, "look": null } }));
        assert_eq!(own.score("talk"), Some(1.5));
        assert_eq!(own.score("steal"), Some(12.0));
        assert_eq!(own.score("look"), Some(0.0));
        assert_eq!(own.score("dance"), None);
        assert_eq!(own.types().len(), DEFAULTS.len() + 1);
    }

    #[test]
    fn a_setting_that_cannot_be_read_has_its_default() {
        let own = settings(json!({ "reaction_cooldown_seconds": "soon", "reply_reverts": true }));
        assert_eq!(own.cooldown_seconds(), 60);
        assert!(own.reverts());
    }
}
