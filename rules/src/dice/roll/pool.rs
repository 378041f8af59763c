//! Pools: keeps, drops or counts the subtotals of their members.

use super::{result::DieRoll, stack::Slot};
use crate::dice::{
    error::Outcome,
    modifier::Action,
    program::{Pool, Program, part},
    resolve,
    sides::{DieKind, Sides},
};

/// A member of a pool.
#[derive(Clone, Copy, Debug)]
pub(in crate::dice) struct Member {
    /// Its subtotal.
    pub(in crate::dice) value: f64,
    /// What it adds if it is kept.
    pub(in crate::dice) counted: f64,
    pub(in crate::dice) kept: bool,
}

impl Member {
    pub(in crate::dice) const fn new(value: f64) -> Self {
        Self { value, counted: value, kept: true }
    }
}

/// The total of a pool. `slots` has its members, then its computed targets. The dice of dropped members are dropped too.
pub(super) fn total(program: &Program, pool: &Pool, slots: &[Slot], tray: &mut [DieRoll]) -> Outcome<f64> {
    let (members, computed) = slots.split_at_checked(pool.members as usize).unwrap_or((slots, &[]));
    let late;
    let actions = match &pool.actions {
        Some(range) => part(&program.actions, range),
        None => {
            late = late_actions(program, pool, computed.iter().map(|slot| slot.value))?;
            &late
        }
    };
    if actions.is_empty() {
        return Ok(members.iter().map(|slot| slot.value).sum());
    }
    let mut list: Vec<Member> = members.iter().map(|slot| Member::new(slot.value)).collect();
    apply(actions, &mut list);
    // A member's dice end where the next member's begin. The last member's end where the targets or the rest begin.
    let after = computed.first().map_or(tray.len(), |slot| slot.first as usize);
    for (index, _) in list.iter().enumerate().filter(|(_, member)| !member.kept) {
        let start = members.get(index).map_or(after, |slot| slot.first as usize);
        let end = members.get(index + 1).map_or(after, |slot| slot.first as usize);
        for die in tray.get_mut(start..end).unwrap_or_default() {
            die.kept = false;
        }
    }
    Ok(sum(&list))
}

/// The actions of a pool with computed targets.
pub(in crate::dice) fn late_actions(
    program: &Program,
    pool: &Pool,
    computed: impl IntoIterator<Item = f64>,
) -> Outcome<Vec<Action>> {
    let sides = Sides { kind: DieKind::Standard, faces: 1 };
    resolve::actions(part(&program.modifiers, &pool.modifiers), computed, sides)
}

/// Applies modifiers to members in written order. Of equal members the last is dropped first.
pub(in crate::dice) fn apply(actions: &[Action], members: &mut [Member]) {
    for action in actions {
        match *action {
            Action::Select { keep, highest, count } => select(members, keep, highest, count as usize),
            Action::Count { test, .. } => {
                for member in members.iter_mut().filter(|member| member.kept) {
                    member.counted = f64::from(u8::from(test.holds(member.value)));
                }
            }
            _ => {}
        }
    }
}

fn select(members: &mut [Member], keep: bool, highest: bool, count: usize) {
    let mut present: Vec<(f64, usize)> =
        members.iter().enumerate().filter(|(_, m)| m.kept).map(|(index, m)| (m.value, index)).collect();
    let gone = if keep { present.len().saturating_sub(count) } else { count };
    let low_go = keep == highest;
    present.sort_unstable_by(|a, b| {
        let values = a.0.total_cmp(&b.0);
        (if low_go { values } else { values.reverse() }).then(b.1.cmp(&a.1))
    });
    for (_, index) in present.into_iter().take(gone) {
        if let Some(member) = members.get_mut(index) {
            member.kept = false;
        }
    }
}

/// The sum of the members that still count.
pub(in crate::dice) fn sum(members: &[Member]) -> f64 {
    members.iter().filter(|member| member.kept).map(|member| member.counted).sum()
}
