//! Makes outcomes: of a d20 roll, without a roll, and for what the rules forbid or what needs no roll.

use super::{DieShown, Outcome, Parties, d20::D20Test, summary};
use crate::sheet::Creature;

impl Outcome {
    /// An outcome with the results of a d20 roll.
    pub(crate) fn of(check_type: String, test: D20Test) -> Self {
        Self {
            check_type,
            components: test.components(),
            die_result: test.die(),
            total_modifier: summary::signed(test.modifier()),
            total: test.total(),
            automatic: test.automatic,
            advantage: test.advantage(),
            modifiers: test.modifiers,
            reasons: test.reasons,
            dice: test.shown,
            effects: test.spent,
            parties: Parties { rolled: vec![test.by], others: Vec::new() },
            ..Self::default()
        }
    }

    /// An outcome without a d20, of what these do or what is done to them.
    pub(crate) fn without_roll(check_type: String, who: &[&Creature]) -> Self {
        let rolled = who.iter().map(|creature| creature.key().to_owned()).collect();
        Self {
            check_type,
            total_modifier: "+0".to_owned(),
            dc_or_ac: "N/A".to_owned(),
            parties: Parties { rolled, others: Vec::new() },
            ..Self::default()
        }
    }

    /// Adds somebody who takes part beside those who rolled.
    pub(crate) fn with(&mut self, other: &Creature) {
        self.parties.others.push(other.key().to_owned());
    }

    /// Adds the dice of somebody else's roll.
    pub(crate) fn dice_of(&mut self, creature: &Creature, dice: Vec<DieShown>) {
        let by = |die| DieShown { by: Some(creature.key().to_owned()), ..die };
        self.dice.extend(dice.into_iter().map(by));
    }

    /// Writes the summary, once everything else is complete.
    pub(crate) fn finished(mut self) -> Self {
        self.raw = summary::raw(&self);
        self
    }
}

/// An outcome for something that the rules forbid, with the reason (tool `mark_impossible`).
#[must_use]
pub fn impossible(reason: &str) -> Outcome {
    let marked = Outcome {
        check_type: "IMPOSSIBLE".to_owned(),
        impossible: true,
        outcome: "impossible".to_owned(),
        notes: reason.trim().to_owned(),
        total_modifier: "+0".to_owned(),
        dc_or_ac: "N/A".to_owned(),
        ..Outcome::default()
    };
    marked.finished()
}

/// An outcome for something that needs no roll, with the reason (tool `mark_no_check`).
#[must_use]
pub fn no_check(reason: &str) -> Outcome {
    let marked = Outcome {
        check_type: "NONE".to_owned(),
        no_check: true,
        outcome: "no check".to_owned(),
        notes: reason.trim().to_owned(),
        total_modifier: "+0".to_owned(),
        dc_or_ac: "N/A".to_owned(),
        ..Outcome::default()
    };
    marked.finished()
}
