//! Rolls that a game master asks for: a message of the table that each player who reads it can answer with one roll.

use rules::srd::{Ability, Advantage, SKILLS};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use base::error::{Error, Result};
use entity::MessageId;

/// What a game master asks players to roll, as the message has it in `roll.asked`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// `ability`, `skill` or `save`, and after a space the name of the ability or skill.
    pub of: String,
    #[serde(default, skip_serializing_if = "is_none")]
    pub advantage: Advantage,
    /// The difficulty, if it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dc: Option<i32>,
}

fn is_none(advantage: &Advantage) -> bool {
    *advantage == Advantage::None
}

/// A message's `roll` that asks for one.
#[derive(Deserialize)]
struct AskingRoll {
    asked: Asked,
}

/// The highest difficulty. The rules know none above 30.
const DC_MAX: i32 = 100;

impl Asked {
    /// What a message asks for, if it does. Clients write what they like into a message.
    #[must_use]
    pub fn of_roll(roll: &Value) -> Option<Self> {
        let AskingRoll { asked } = AskingRoll::deserialize(roll).ok()?;
        asked.what().map(|_| asked)
    }

    /// Checks what a form asks for.
    ///
    /// # Errors
    /// `validation_failed`.
    pub fn checked(self) -> Result<Self> {
        if self.what().is_none() {
            return Err(Error::invalid("/of", "invalid_value", "Choose an ability, a skill or a saving throw."));
        }
        if self.dc.is_some_and(|dc| !(0..=DC_MAX).contains(&dc)) {
            return Err(Error::invalid("/dc", "invalid_value", format!("Write a difficulty from 0 to {DC_MAX}.")));
        }
        Ok(self)
    }

    /// The kind of roll, and the name of the ability or skill.
    #[must_use]
    pub fn parts(&self) -> (&str, &str) {
        self.of.split_once(' ').unwrap_or((&self.of, ""))
    }

    /// What is rolled, in words: `stealth check`. None if there is no such thing.
    fn what(&self) -> Option<String> {
        match self.parts() {
            ("skill", name) => {
                SKILLS.iter().find(|skill| skill.name == name).map(|skill| format!("{} check", skill.name))
            }
            ("ability", name) => Ability::named(name).map(|ability| format!("{} check", ability.title())),
            ("save", name) => Ability::named(name).map(|ability| format!("{} saving throw", ability.title())),
            _ => None,
        }
    }

    /// What the result of this roll means, if its difficulty was told: `success by 2 against 15`.
    #[must_use]
    pub fn outcome(&self, total: i32, success: bool) -> Option<String> {
        let dc = self.dc?;
        let result = if success { "success" } else { "failure" };
        Some(match total.abs_diff(dc) {
            0 => format!("{result} against {dc}"),
            by => format!("{result} by {by} against {dc}"),
        })
    }

    /// What is rolled and how, in words: `stealth check with advantage against 15`.
    #[must_use]
    pub fn words(&self) -> String {
        let with = match self.advantage {
            Advantage::None => "",
            Advantage::Advantage => " with advantage",
            Advantage::Disadvantage => " with disadvantage",
        };
        let against = self.dc.map(|dc| format!(" against {dc}")).unwrap_or_default();
        format!("{}{with}{against}", self.what().unwrap_or_default())
    }
}

/// A roll that answers a message: the message's id beside the roll.
#[derive(Deserialize)]
struct AnsweringRoll {
    asked: MessageId,
}

/// The message that a roll answers, if it does.
#[must_use]
pub fn answered_by(roll: &Value) -> Option<MessageId> {
    AnsweringRoll::deserialize(roll).ok().map(|roll| roll.asked)
}
