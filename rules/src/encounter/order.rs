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

    /// Who has the next turn, and in which round: the first in order who has not had a turn in this round, or else the first of the next. The
    /// dead have no turns; whoever comes back before the round ends still has its turn.
    pub(super) fn next_turn(&self, round: u32) -> Option<(&Participant, u32)> {
        let living: Vec<&Participant> = self.turn_order().into_iter().filter(|p| p.life() != Life::Dead).collect();
        let in_this_round = living.iter().find(|p| p.acted_in < round).map(|p| (*p, round));
        in_this_round.or_else(|| living.first().map(|p| (*p, round.saturating_add(1))))
    }

    /// Whether a newcomer's place in the order comes before that of the turn that goes on. Then its first turn is in the next round.
    pub(super) fn is_too_late(&self, newcomer: &Participant) -> bool {
        self.current().is_some_and(|current| {
            let began_at = self.began_at.unwrap_or(current.initiative);
            (newcomer.initiative, newcomer.initiative_bonus) > (began_at, current.initiative_bonus)
        })
    }

    /// Whether anybody can still have a turn.
    pub(super) fn anybody_left(&self) -> bool {
        self.participants.iter().any(|p| p.life() != Life::Dead)
    }
}
