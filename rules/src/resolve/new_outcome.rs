//! Makes outcomes: of a d20 roll, without a roll, and for what the rules forbid or what needs no roll.

use super::{Outcome, d20::D20Test, summary};

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
            ..Self::default()
        }
    }

    /// An outcome without a d20.
    pub(crate) fn without_roll(check_type: String) -> Self {
        Self { check_type, total_modifier: "+0".to_owned(), dc_or_ac: "N/A".to_owned(), ..Self::default() }
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
