//! What is known of endpoints and models, remembered while the process runs.
//!
//! "Compatible" endpoints differ in the members that they take. A member that the request is complete without is left out once an
//! endpoint refuses it. The output limit cannot be left out, but it has two names. Some endpoints pass on the end of a model's
//! thoughts without their beginning; once that was seen, nothing of their replies is told before the thoughts have ended.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::echo::Origin;

/// The most endpoints and models that are remembered.
const REMEMBERED_MAX: usize = 4_096;

/// What is known of an endpoint and model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Habits {
    refused: BTreeSet<String>,
    /// Whether replies begin within a thought.
    pub(super) begins_in_thought: bool,
}

impl Habits {
    /// Whether the endpoint refuses a member.
    pub(super) fn refuses(&self, member: &str) -> bool {
        self.refused.contains(member)
    }

    /// The same of an endpoint that refuses some members more.
    pub(super) fn refusing<'a>(&self, members: impl IntoIterator<Item = &'a str>) -> Self {
        let mut more = self.clone();
        more.refused.extend(members.into_iter().map(str::to_owned));
        more
    }
}

/// What is known of all endpoints.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<Origin, Habits>>);

impl Known {
    fn lock(&self) -> MutexGuard<'_, HashMap<Origin, Habits>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of an endpoint and model.
    pub(super) fn of(&self, origin: Origin) -> Habits {
        self.lock().get(&origin).cloned().unwrap_or_default()
    }

    /// Forgets what is known of an endpoint.
    pub(super) fn forget(&self, origin: Origin) {
        self.lock().remove(&origin);
    }

    /// Remembers the habits of an endpoint. If there are too many endpoints, those of another are forgotten, and learned once more.
    pub(super) fn remember(&self, origin: Origin, habits: Habits) {
        let mut known = self.lock();
        if known.len() >= REMEMBERED_MAX && !known.contains_key(&origin) {
            let other = known.keys().next().copied();
            other.and_then(|other| known.remove(&other));
        }
        known.insert(origin, habits);
    }
}

/// Whether an error's text names a member, as a word of its own.
pub(super) fn names(text: &str, member: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(member)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + member.len()..].starts_with(is_part))
}
