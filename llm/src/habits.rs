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

/// After so many replies in a row that did not begin within a thought, replies are no longer held back.
const HELD_BACK: u8 = 10;

/// What is known of an endpoint and model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Habits {
    refused: BTreeSet<String>,
    /// How many further replies are held back in case they begin within a thought.
    held_back: u8,
}

impl Habits {
    /// Whether the endpoint refuses a member.
    pub(super) fn refuses(&self, member: &str) -> bool {
        self.refused.contains(member)
    }

    /// Whether replies may begin within a thought.
    pub(super) fn begins_in_thought(&self) -> bool {
        self.held_back > 0
    }

    /// Learns from a reply that has a text. Somebody may have talked a model into writing the end of a thought, so it is forgotten after
    /// some replies without one.
    pub(super) fn hear(&mut self, began_in_thought: bool) {
        self.held_back = if began_in_thought { HELD_BACK } else { self.held_back.saturating_sub(1) };
    }

    /// Learns that the endpoint refuses what another try left out.
    pub(super) fn refuse_as(&mut self, other: &Self) {
        self.refused.extend(other.refused.iter().cloned());
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

    /// Learns of an endpoint. If there are too many endpoints, another is forgotten, and learned once more.
    pub(super) fn learn(&self, origin: Origin, learn: impl FnOnce(&mut Habits)) {
        let mut known = self.lock();
        if known.len() >= REMEMBERED_MAX && !known.contains_key(&origin) {
            let other = known.keys().next().copied();
            other.and_then(|other| known.remove(&other));
        }
        learn(known.entry(origin).or_default());
    }
}

/// Whether an error's text names a member, as a word of its own.
pub(super) fn names(text: &str, member: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(member)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + member.len()..].starts_with(is_part))
}
