//! The answers of resolvers.

use rules::{
    encounter::{SeenOutcome, SeenRoll},
    resolve::{DieShown, Outcome, StateChange},
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::dice::service::DiceOrigin;

/// An outcome as its reader sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OutcomeShown {
    /// To a game master, or outside of fights.
    Whole(Box<Outcome>),
    /// To somebody who watches a fight.
    Seen(Box<SeenOutcome>),
}

impl OutcomeShown {
    /// The outcome of something that needed no roll, or of which the reader sees nothing.
    #[must_use]
    pub fn nothing(success: bool) -> Self {
        Self::Seen(Box::new(SeenOutcome::nothing(success)))
    }

    /// Why nothing was tried; `None` if it was.
    #[must_use]
    pub fn why_impossible(&self) -> Option<&str> {
        match self {
            Self::Whole(outcome) => outcome.impossible.then_some(outcome.notes.as_str()),
            Self::Seen(outcome) => outcome.impossible.then(|| outcome.notes.as_deref().unwrap_or_default()),
        }
    }

    /// Whether nothing about it was uncertain.
    #[must_use]
    pub fn is_without_check(&self) -> bool {
        match self {
            Self::Whole(outcome) => outcome.no_check,
            Self::Seen(outcome) => outcome.no_check,
        }
    }

    /// What it was: `Stealth Check`.
    #[must_use]
    pub fn check_type(&self) -> &str {
        match self {
            Self::Whole(outcome) => &outcome.check_type,
            Self::Seen(outcome) => &outcome.check_type,
        }
    }

    /// The roll; `None` if no d20 was rolled, or if the reader does not see it.
    #[must_use]
    pub fn roll(&self) -> Option<RollShown<'_>> {
        let (die, total_modifier, total, dice) = match self {
            Self::Whole(outcome) => (outcome.die_result, &outcome.total_modifier, outcome.total, &outcome.dice),
            Self::Seen(outcome) => {
                let SeenRoll { die_result, total_modifier, total, dice, .. } = outcome.roll.as_ref()?;
                (*die_result, total_modifier, *total, dice)
            }
        };
        (die > 0).then_some(RollShown { total_modifier, total, dice })
    }

    /// The target number, if the reader may know it.
    #[must_use]
    pub fn difficulty(&self) -> Option<&str> {
        match self {
            Self::Whole(outcome) => Some(outcome.dc_or_ac.as_str()),
            Self::Seen(outcome) => outcome.dc_or_ac.as_deref(),
        }
    }

    /// The notes, which say more than the result; the result where the reader sees no notes.
    #[must_use]
    pub fn notes(&self) -> &str {
        let notes = match self {
            Self::Whole(outcome) => outcome.notes.as_str(),
            Self::Seen(outcome) => outcome.notes.as_deref().unwrap_or_default(),
        };
        if notes.is_empty() { self.result() } else { notes }
    }

    /// The result in a word or two: `success`.
    #[must_use]
    pub fn result(&self) -> &str {
        match self {
            Self::Whole(outcome) => &outcome.outcome,
            Self::Seen(outcome) => &outcome.outcome,
        }
    }

    /// Tells the target number of a roll to everybody who sees the roll.
    pub fn tell_difficulty(&mut self, difficulty: i32) {
        if let Self::Seen(outcome) = self
            && outcome.roll.is_some()
        {
            outcome.dc_or_ac = Some(difficulty.to_string());
        }
    }

    /// Takes out the changes.
    #[must_use]
    pub fn take_effects(&mut self) -> Vec<StateChange> {
        match self {
            Self::Whole(outcome) => std::mem::take(&mut outcome.effects),
            Self::Seen(outcome) => std::mem::take(&mut outcome.effects),
        }
    }
}

/// A d20 roll as the reader of its outcome sees it.
#[derive(Clone, Copy, Debug)]
pub struct RollShown<'a> {
    pub total_modifier: &'a str,
    pub total: i32,
    pub dice: &'a [DieShown],
}

/// The result of a resolver or a rest. Its effects stand either in the outcome or, with whether each was applied, beside it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ResolvedOutcome {
    /// None if the reader sees nothing of it.
    #[serde(flatten)]
    #[schema(inline, value_type = Outcome)]
    pub outcome: Option<OutcomeShown>,
    /// The necessary changes, in order, and whether each was applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<AppliedChange>>)]
    pub effects: Vec<AppliedChange>,
    /// Outcomes that followed from it, such as a saving throw to keep concentrating.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<Outcome>>)]
    pub followed_by: Vec<OutcomeShown>,
    /// True if nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<bool>,
    /// The encounter in which it happened, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encounter_id: Option<Uuid>,
    /// The round of that encounter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The current participant's place in the turn order of that encounter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// The text that everybody can read in the campaign's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    #[serde(flatten)]
    #[schema(inline)]
    pub dice: DiceOrigin,
}

impl ResolvedOutcome {
    /// The lines for a narrator, which tell no more than the reader sees. Takes them out of an outcome that has them already.
    #[must_use]
    pub fn take_lines(&mut self) -> String {
        let told = self.told.as_deref().filter(|told| !told.is_empty());
        match &mut self.outcome {
            Some(OutcomeShown::Whole(outcome)) => std::mem::take(&mut outcome.raw),
            Some(OutcomeShown::Seen(outcome)) => outcome.lines(told),
            None => told.unwrap_or_default().to_owned(),
        }
    }
}

impl From<OutcomeShown> for ResolvedOutcome {
    fn from(outcome: OutcomeShown) -> Self {
        Self {
            outcome: Some(outcome),
            effects: Vec::new(),
            followed_by: Vec::new(),
            preview: None,
            encounter_id: None,
            round: None,
            turn: None,
            told: None,
            dice: DiceOrigin::default(),
        }
    }
}

/// A change to a creature.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct AppliedChange {
    #[serde(flatten)]
    pub change: StateChange,
    /// Whether it was applied.
    pub applied: bool,
}
