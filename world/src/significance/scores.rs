//! The scores of actions, and when a campaign's entities react. A campaign may change all of these settings.

use std::collections::BTreeMap;

use entity::shapes::Extensions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use base::error::{Error, Result};

/// The scores of the types of actions that every campaign has.
pub const DEFAULTS: &[(&str, f64)] = &[
    ("look", 0.0),
    ("move", 1.0),
    ("say", 2.0),
    ("use_item", 3.0),
    ("give", 4.0),
    ("talk", 5.0),
    ("use_skill", 5.0),
    ("steal", 7.0),
    ("cast_spell", 7.0),
    ("pray", 8.0),
    ("attack", 10.0),
];

/// The largest score of one action.
pub const SCORE_MAX: f64 = 1000.0;
/// The most types of actions that a campaign may define.
pub const TYPES_MAX: usize = 200;

/// The setting that lets the dead talk and act.
pub const DEAD_SPEAK: &str = "dead_speak";

const COOLDOWN_SECONDS: u32 = 60;
const EXPIRY_SECONDS: u32 = 86_400;
const PER_DAY: u32 = 1000;

/// A campaign's settings for significance. Members that are absent or null have their defaults.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Significance {
    significance_scores: Option<BTreeMap<String, Option<f64>>>,
    reaction_cooldown_seconds: Option<u32>,
    reactions_per_day_max: Option<u32>,
    reply_expiry_seconds: Option<u32>,
    withheld_reverts: Option<bool>,
    report_actions: Option<ReportActions>,
    dead_speak: Option<bool>,
}

/// What the server reports as actions by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReportActions {
    /// The commands `check`, `do` and `use_skill`, as `use_skill`. A `do` counts as a type with a higher score if its words name one.
    pub commands: bool,
    /// Attacks in encounters as `attack`, spells as `cast_spell`.
    pub encounters: bool,
    /// A changed location of a character, as `move`.
    pub moves: bool,
    /// What players write at the table where everybody reads it, as `say`.
    pub table_events: bool,
}

impl ReportActions {
    /// Reads a campaign's stored setting.
    #[must_use]
    pub fn of(setting: Option<&Value>) -> Self {
        setting.and_then(|setting| Self::deserialize(setting).ok()).unwrap_or_default()
    }

    /// The type of action as which a command of this name is reported.
    #[must_use]
    pub fn of_command(self, name: &str) -> Option<&'static str> {
        match name {
            "check" | "do" | "use_skill" if self.commands => Some("use_skill"),
            _ => None,
        }
    }
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
            reaction_cooldown_seconds: read(member("reaction_cooldown_seconds")),
            reactions_per_day_max: read(member("reactions_per_day_max")),
            reply_expiry_seconds: read(member("reply_expiry_seconds")),
            withheld_reverts: read(member("withheld_reverts")),
            report_actions: read(member("report_actions")),
            dead_speak: read(member(DEAD_SPEAK)),
        }
    }

    /// The score of an action of this type. None for an unknown type.
    #[must_use]
    pub fn score(&self, kind: &str) -> Option<f64> {
        let own = self.significance_scores.as_ref().and_then(|scores| scores.get(kind)).copied().flatten();
        own.or_else(|| DEFAULTS.iter().find(|(name, _)| *name == kind).map(|(_, score)| *score))
    }

    /// The type of a deed that a player tells in words: the one with the highest score among `least` and those that its words name, such as
    /// `steal` in "Alice steals it". Of fights that report themselves, attacks and spells do not count again.
    #[must_use]
    pub fn kind_of(&self, deed: &str, least: &str) -> String {
        let reported: &[&str] = if self.report_actions().encounters { &["attack", "cast_spell"] } else { &[] };
        let deed = deed.to_lowercase();
        let words: Vec<&str> = deed.split(|c: char| !c.is_alphanumeric()).collect();
        let is_named = |kind: &str| kind.split('_').all(|part| words.iter().any(|word| is_form(word, part)));
        let mut kind = (least.to_owned(), self.score(least).unwrap_or_default());
        for (name, score) in self.types() {
            if score > kind.1 && !reported.contains(&name.as_str()) && is_named(&name) {
                kind = (name, score);
            }
        }
        kind.0
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

    /// For how long an entity does not react to the same player again.
    #[must_use]
    pub fn cooldown_seconds(&self) -> u32 {
        self.reaction_cooldown_seconds.unwrap_or(COOLDOWN_SECONDS)
    }

    /// The most reactions of the campaign in a day; 0 means no limit.
    #[must_use]
    pub fn per_day(&self) -> u32 {
        self.reactions_per_day_max.unwrap_or(PER_DAY)
    }

    /// Whether the dead talk and act.
    #[must_use]
    pub fn dead_speak(&self) -> bool {
        self.dead_speak.unwrap_or_default()
    }

    /// How long a reply waits for its player.
    #[must_use]
    pub fn expires_seconds(&self) -> u32 {
        self.reply_expiry_seconds.unwrap_or(EXPIRY_SECONDS)
    }

    /// Whether the effects of a reaction are undone when its reply cannot be delivered.
    #[must_use]
    pub fn reverts(&self) -> bool {
        self.withheld_reverts.unwrap_or(false)
    }

    /// What the server reports by itself.
    #[must_use]
    pub fn report_actions(&self) -> ReportActions {
        self.report_actions.unwrap_or_default()
    }
}

/// Whether a word is a verb or one of its usual forms: `steals` and `stealing` of `steal`, but not `stealth`.
fn is_form(word: &str, verb: &str) -> bool {
    let stem = verb.strip_suffix('e').unwrap_or(verb);
    word.strip_prefix(verb).is_some_and(|rest| matches!(rest, "" | "s" | "es" | "d" | "ed" | "ing"))
        || word.strip_prefix(stem).is_some_and(|rest| rest == "ing" && stem != verb)
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

/// Whether a number can be a score.
#[must_use]
fn fits(score: f64) -> bool {
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
        let own = settings(json!({ "significance_scores": { "talk": 1.5, "dig": 12, "look": null } }));
        assert_eq!(own.score("talk"), Some(1.5));
        assert_eq!(own.score("dig"), Some(12.0));
        assert_eq!(own.score("look"), Some(0.0));
        assert_eq!(own.score("dance"), None);
        assert_eq!(own.types().len(), DEFAULTS.len() + 1);
    }

    #[test]
    fn a_setting_that_cannot_be_read_has_its_default() {
        let own = settings(json!({ "reaction_cooldown_seconds": "soon", "withheld_reverts": true }));
        assert_eq!(own.cooldown_seconds(), 60);
        assert!(own.reverts());
    }

    #[test]
    fn a_deed_counts_as_the_highest_type_that_it_names() {
        let ours = settings(json!({ "significance_scores": { "steal": 12, "dig": 2, "burn": null } }));
        for (deed, kind) in [
            ("I steal a purse", "steal"),
            ("Alice STEALS it, and gives it to Bob", "steal"),
            ("I attacked him", "attack"),
            ("I cast a spell on the lock", "cast_spell"),
            ("I stealthily look around with stealth", "use_skill"),
            ("With dignity I dig and look", "use_skill"),
            ("I dodge the attackers", "use_skill"),
            ("", "use_skill"),
        ] {
            assert_eq!(ours.kind_of(deed, "use_skill"), kind, "{deed}");
        }
        let fights = settings(json!({ "report_actions": { "encounters": true } }));
        assert_eq!(fights.kind_of("I attack him", "use_skill"), "use_skill", "the fight tells it");
        assert_eq!(fights.kind_of("I am praying", "use_skill"), "pray");
    }
}
