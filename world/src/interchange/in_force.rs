//! What an import puts in force: instructions that models follow, tools, and thresholds of reactions. Whoever imports a campaign
//! document or entity documents may write all of it and intends it, so it waits for nobody. The report counts it before anything else.
//! What a character card brings is a draft instead, and not counted here.

use entity::shapes::ToolRef;
use serde_json::{Map, Value};

use crate::{guidance::own_words::has_own_words, tools};

/// The most rows that a line of the report names.
const NAMED_MAX: usize = 5;

/// What the rows of a file put in force that was not in force before.
#[derive(Clone, Debug, Default)]
pub struct InForce {
    own_words: Named,
    acting: Named,
    thresholds: Named,
    instructions: Named,
}

/// How many there are, and the first of them.
#[derive(Clone, Debug, Default)]
struct Named {
    count: usize,
    first: Vec<String>,
}

impl Named {
    fn add(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push(name());
        }
    }

    /// A line of the report. None without any.
    fn line(&self, one: &str, many: &str) -> Option<String> {
        let named = self.first.join(", ");
        match (self.count, self.count.saturating_sub(self.first.len())) {
            (0, _) => None,
            (1, _) => Some(format!("The file brings 1 {one}: {named}.")),
            (count, 0) => Some(format!("The file brings {count} {many}: {named}.")),
            (count, more) => Some(format!("The file brings {count} {many}: {named} and {more} more.")),
        }
    }
}

impl InForce {
    /// Counts what a row of the file has and the stored row did not have.
    pub fn note(&mut self, slug: &str, stored: Option<&Map<String, Value>>, row: &Map<String, Value>) {
        let own = |name: &str| stored.and_then(|stored| stored.get(name)).filter(|value| !value.is_null());
        let new = |name: &str| {
            row.get(name).filter(|value| !value.is_null() && **value != "" && **value != 0 && own(name) != Some(*value))
        };
        let before = own("available_tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for entry in new("available_tools").and_then(Value::as_array).into_iter().flatten() {
            let Ok(tool) = serde_json::from_value::<ToolRef>(entry.clone()) else { continue };
            let name = tool.name();
            let named = || format!("`{name}` of `{slug}`");
            if before.contains(entry) {
                continue;
            }
            if has_own_words(&tool) {
                self.own_words.add(named);
            }
            if tools::acts(name) {
                self.acting.add(named);
            }
        }
        for (name, how) in
            [("reaction_threshold", "a sum of scores of"), ("immediate_threshold", "a single action with a score of")]
        {
            if let Some(score) = new(name) {
                self.thresholds.add(|| format!("`{slug}` reacts to {how} {score}"));
            }
        }
        for name in ["instructions", "post_history_instructions", "authors_note"] {
            if new(name).is_some() {
                self.instructions.add(|| format!("`{name}` of `{slug}`"));
            }
        }
    }

    /// The lines of the report.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        [
            self.own_words.line("tool with words of its own", "tools with words of their own"),
            self.acting.line("tool that acts on the world", "tools that act on the world"),
            self.thresholds.line("threshold of reactions", "thresholds of reactions"),
            self.instructions.line("text of instructions for models", "texts of instructions for models"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
