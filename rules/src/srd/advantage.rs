//! Advantage and disadvantage (SRD 5.1, "Advantage and Disadvantage").

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Advantage, disadvantage or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Advantage {
    /// One d20.
    #[default]
    None,
    /// Two d20s; the higher counts.
    Advantage,
    /// Two d20s; the lower counts.
    Disadvantage,
}
