//! Turn order (SRD 5.1, "Initiative"): the highest initiative first, then the higher bonus, then the order of joining.

use super::{Encounter, Participant};
use crate::sheet::Life;

impl Encounter {
    /// Indexes into `participants`, in turn order.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<(i32, i32, usize)> =
            self.participants.iter().enumerate().map(|(at, p)| (p.initiative, p.initiative_bonus, at)).collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
        order.into_iter().map(|(_, _, at)| at).collect()
    }

    /// All participants in turn order, with the dead.
    #[must_use]
    pub fn turn_order(&self) -> Vec<&Participant> {
        self.order().into_iter().filter_map(|at| self.participants.get(at)).collect()
    }

    /// The position of the current participant in the turn order, from 1; 0 if it is nobody's turn.
    #[must_use]
    pub fn turn(&self) -> usize {
        self.order().into_iter().position(|at| Some(at) == self.current).map_or(0, |at| at + 1)
    }

    /// The next participant after `at`, and the round; for `None` the first of this round.
    pub(super) fn after(&self, order: &[usize], at: Option<usize>, round: u32) -> Option<(usize, u32)> {
        let place = at.and_then(|at| order.iter().position(|o| *o == at));
        let next = place.map_or(0, |p| p + 1);
        match order.get(next) {
            Some(at) => Some((*at, round)),
            None => order.first().map(|at| (*at, round.saturating_add(1))),
        }
    }

    /// Whether anybody can still have a turn.
    pub(super) fn anybody_left(&self) -> bool {
        self.participants.iter().any(|p| p.life() != Life::Dead)
    }
}
