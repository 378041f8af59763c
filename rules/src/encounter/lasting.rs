//! How long conditions and effects last.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::srd::{Ability, same};

/// What ends a condition, besides its rounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "until", rename_all = "snake_case")]
#[schema(as = ConditionEnd)]
pub enum Until {
    /// The condition ends after its rounds, which it has itself.
    Rounds,
    /// The end of somebody's concentration.
    Concentration {
        /// Who concentrates.
        by: String,
    },
    /// Somebody who dispels it.
    Dispelled,
    /// A rest.
    Rest,
    /// A saving throw at the end of its owner's turn.
    Save {
        /// The DC.
        dc: i32,
        /// The ability.
        ability: Ability,
    },
}

/// How long a condition lasts, and its description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConditionLasting)]
pub struct Lasting {
    /// The name of the condition.
    pub condition: String,
    /// What ends it.
    #[serde(flatten)]
    pub until: Until,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Effects that last until the end of the next turn of whoever caused them, one more turn than a round.
pub(super) fn lasts_through_the_turn(effect: &str) -> bool {
    same(effect, "Guiding Bolt")
}
