//! Counters of a fair stream that a roll uses.

use rules::dice::FairSeed;
use uuid::Uuid;

/// Counters of a stream that belong to the caller: `first` to `last`.
pub struct Taken {
    pub id: Uuid,
    pub seed: FairSeed,
    pub first: i64,
    pub last: i64,
}
