//! A short summary of a fight.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Encounter, EndOutcome, Participant};
use crate::sheet::Life;

/// The participant that did most of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "their names say it")]
#[schema(as = EncounterBest)]
pub struct Best {
    pub participant_id: String,
    pub name: String,
    pub amount: i32,
}

/// A short summary of a fight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EncounterSummary)]
pub struct Summary {
    /// The number of rounds.
    pub rounds: u32,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<EndOutcome>,
    /// The names of those who are standing.
    pub standing: Vec<String>,
    /// The names of those who are at 0 hit points but not dead.
    pub down: Vec<String>,
    /// The names of the dead.
    pub dead: Vec<String>,
    /// Who dealt the most damage, if anybody dealt any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_damage_dealt: Option<Best>,
    /// Who took the most damage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_damage_taken: Option<Best>,
    /// Who healed the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_healing_done: Option<Best>,
    /// The summary as text.
    pub text: String,
}

impl Encounter {
    /// Summarizes the fight.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.summary_of(|_| true, |_| true)
    }

    /// Summarizes how those fare whom a reader `knows`, and who did most among those whose numbers it may see.
    pub(super) fn summary_of(
        &self,
        knows: impl Fn(&Participant) -> bool,
        numbers: impl Fn(&Participant) -> bool,
    ) -> Summary {
        let named = |lives: &[Life]| {
            let such = self.participants().iter().filter(|p| knows(p) && lives.contains(&p.life()));
            such.map(|p| p.creature.name.clone()).collect::<Vec<_>>()
        };
        let mut summary = Summary {
            rounds: self.round(),
            outcome: self.outcome(),
            standing: named(&[Life::Alive]),
            down: named(&[Life::Dying, Life::Stable]),
            dead: named(&[Life::Dead]),
            most_damage_dealt: self.best(&numbers, |p| p.statistics.damage_dealt),
            most_damage_taken: self.best(&numbers, |p| p.statistics.damage_taken),
            most_healing_done: self.best(&numbers, |p| p.statistics.healing_done),
            text: String::new(),
        };
        summary.text = text(&summary);
        summary
    }

    /// The first of those with the highest value, if that is more than 0.
    fn best(&self, among: impl Fn(&Participant) -> bool, of: impl Fn(&Participant) -> i32) -> Option<Best> {
        let best = self.participants().iter().rev().filter(|p| among(p)).max_by_key(|p| of(p)).filter(|p| of(p) > 0)?;
        Some(Best { participant_id: best.id.clone(), name: best.creature.name.clone(), amount: of(best) })
    }
}

fn text(summary: &Summary) -> String {
    let rounds = if summary.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", summary.rounds) };
    let mut text = format!("{rounds}.");
    let mut add = |title: &str, what: String| {
        if !what.is_empty() {
            text.push_str(&format!(" {title}: {what}."));
        }
    };
    add("Standing", summary.standing.join(", "));
    add("Down", summary.down.join(", "));
    add("Dead", summary.dead.join(", "));
    let best = |b: &Option<Best>| b.as_ref().map(|b| format!("{} ({})", b.name, b.amount)).unwrap_or_default();
    add("Most damage", best(&summary.most_damage_dealt));
    add("Most damage taken", best(&summary.most_damage_taken));
    add("Most healing", best(&summary.most_healing_done));
    text
}
