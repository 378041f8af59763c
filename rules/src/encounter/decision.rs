//! What an action does, before it happens.

use serde::{Deserialize, Serialize};

use super::event::Event;
use crate::resolve::Outcome;

/// What an action does. Nothing has happened yet; apply the events in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What happens. Empty if the action is impossible.
    pub events: Vec<Event>,
    /// What was resolved: the action first, then what followed from it, with the dice.
    pub outcomes: Vec<Outcome>,
}
