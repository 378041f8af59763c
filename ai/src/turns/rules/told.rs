//! What the table is told of a decision.

use entity::message::Type;
use serde_json::Value;

use world::{
    messages::service::{self as messages, NewMessage, RollFacts},
    rules::answers::{OutcomeShown, ResolvedOutcome, RollShown},
};

/// A decision in words.
pub(crate) struct Told {
    pub sentence: String,
    /// The roll, if its reader sees that dice were rolled.
    pub roll: Option<RollFacts>,
}

impl Told {
    /// What is told of a character's decision.
    #[must_use]
    pub fn of(decided: &ResolvedOutcome, name: &str) -> Self {
        let outcome = decided.outcome.as_ref();
        let rolled = outcome.and_then(|outcome| Some((outcome, outcome.roll()?)));
        let Some((outcome, RollShown { total_modifier, total, dice })) = rolled else {
            let does = match outcome {
                Some(outcome) if outcome.why_impossible().is_some() => " cannot do this",
                Some(outcome) if outcome.is_without_check() => " needs no roll",
                _ => "",
            };
            let sentence = format!("{name}{does}: {}", outcome.map(OutcomeShown::notes).unwrap_or_default());
            return Self { sentence, roll: None };
        };
        let flavor = outcome.check_type();
        let difficulty = outcome.difficulty();
        let by = difficulty.and_then(|told| told.parse::<i32>().ok()).map(|told| total.abs_diff(told));
        let against = difficulty.map(|difficulty| format!(" against {difficulty}")).unwrap_or_default();
        let result = match by {
            Some(by @ 1..) => format!("{} by {by}", outcome.result()),
            _ => outcome.result().to_owned(),
        };
        let facts = RollFacts {
            formula: format!("1d20{total_modifier}"),
            total: total.into(),
            flavor: flavor.to_owned(),
            dice: serde_json::to_value(dice).unwrap_or(Value::Null),
            outcome: by.map(|_| format!("{result}{against}")),
        };
        Self { sentence: format!("{name}: {flavor} {total}{against}: {result}"), roll: Some(facts) }
    }

    /// The message for the table, a roll if dice were rolled. `message` makes it from its type and its text.
    #[must_use]
    pub fn message(self, message: impl FnOnce(Type, String) -> NewMessage) -> NewMessage {
        match self.roll {
            Some(facts) => NewMessage {
                flavor: Some(facts.flavor.clone()),
                roll: Some(messages::roll_value(&[facts])),
                ..message(Type::Roll, self.sentence)
            },
            None => message(Type::System, self.sentence),
        }
    }
}
