//! Collects the words that an erasure looks for.

use std::collections::BTreeSet;

use serde_json::Value;

/// The shortest name that is looked for. For a shorter one, only the person's own rows are erased.
const CHARS_MIN: usize = 2;
/// The largest number of words in one erasure.
const WORDS_MAX: usize = 60;
/// Texts of a sheet that are at least this long are remembered sentence by sentence. Shorter ones are names from the
/// rules.
const PROSE_CHARS_MIN: usize = 40;
const PROSE_MAX: usize = 200;

/// Words of the rules and of our own documents that have a meaning there as a lower-case value of their own.
const TERMS: &[&str] = &[
    "acid",
    "bludgeoning",
    "cold",
    "fire",
    "force",
    "lightning",
    "necrotic",
    "piercing",
    "poison",
    "psychic",
    "radiant",
    "slashing",
    "thunder",
    "blinded",
    "charmed",
    "deafened",
    "exhaustion",
    "frightened",
    "grappled",
    "incapacitated",
    "invisible",
    "paralyzed",
    "petrified",
    "poisoned",
    "prone",
    "restrained",
    "stunned",
    "unconscious",
    "active",
    "ended",
    "victory",
    "defeat",
    "fled",
    "negotiated",
    "other",
    "attack",
    "cast",
    "dash",
    "disengage",
    "dodge",
    "help",
    "hide",
    "ready",
    "search",
    "move",
    "hit",
    "miss",
    "damage",
    "healing",
    "hostile",
    "neutral",
    "friendly",
    "light",
    "medium",
    "heavy",
    "melee",
    "ranged",
    "rest",
    "rounds",
    "save",
    "dispelled",
    "concentration",
    "bright",
    "dim",
    "dark",
    "darkness",
    "wall",
    "water",
    "door",
    "open",
    "closed",
    "chat",
    "roll",
    "player",
    "npc",
    "owner",
    "gm",
    "ai",
    "assistant",
    "system",
    "true",
    "false",
    "none",
    "null",
    "other",
    "surge",
    "lore",
    "scene",
];

/// The names to look for: as written and, with letters beyond ASCII, in lower and upper case.
#[derive(Default)]
pub struct Words(BTreeSet<String>);

impl Words {
    /// Adds a name, if it is long enough to be distinctive.
    pub fn add(&mut self, name: &str) {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        if name.chars().count() < CHARS_MIN || self.0.len() + 3 > WORDS_MAX {
            return;
        }
        // The database folds the case of ASCII letters only, whatever its locale.
        if !name.is_ascii() {
            self.0.insert(name.to_lowercase());
            self.0.insert(name.to_uppercase());
        }
        self.0.insert(name);
    }

    /// Adds the name in a member of a row.
    pub fn add_member(&mut self, row: &Value, member: &str) {
        if let Some(name) = row.get(member).and_then(Value::as_str) {
            self.add(name);
        }
    }

    /// The words as the database takes them.
    #[must_use]
    pub fn into_vec(self) -> Vec<String> {
        self.0.into_iter().collect()
    }
}

/// Those of the words that documents also use as values.
#[must_use]
pub fn terms(words: &[String]) -> Vec<String> {
    let lower: BTreeSet<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let own = TERMS.iter().chain(&rules::SIZES).chain(&rules::ABILITIES);
    own.filter(|term| lower.contains(**term)).map(|term| (*term).to_owned()).collect()
}

/// Collects the longer texts of a row.
pub fn prose(row: &Value, found: &mut Vec<String>) {
    match row {
        Value::String(text) if text.chars().count() >= PROSE_CHARS_MIN && found.len() < PROSE_MAX => {
            found.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| prose(item, found)),
        Value::Object(members) => members.values().for_each(|member| prose(member, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_for_in_every_case_and_terms_are_known() {
        let mut words = Words::default();
        ["Élise  Fire", "x", "Fire"].iter().for_each(|name| words.add(name));
        let words = words.into_vec();
        assert_eq!(
            words,
            ["Fire", "élise fire", "ÉLISE FIRE", "Élise Fire"]
                .map(str::to_owned)
                .into_iter()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
        );
        assert_eq!(terms(&words), ["fire"]);
    }
}
