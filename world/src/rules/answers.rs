//! The answers of resolvers.

use rules::{
    encounter::SeenOutcome,
    resolve::{Outcome, StateChange},
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

    /// Takes out the changes.
    #[must_use]
    pub fn take_effects(&mut self) -> Vec<StateChange> {
        match self {
            Self::Whole(outcome) => std::mem::take(&mut outcome.effects),
            Self::Seen(outcome) => std::mem::take(&mut outcome.effects),
        }
    }
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
