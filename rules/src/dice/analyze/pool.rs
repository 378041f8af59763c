//! Exact distributions of pools.

use super::{
    distribution::Distribution,
    order::{self, KeptRanks},
    work::{Exact, Stop, Work},
};
use crate::dice::{
    modifier::Action,
    roll::{Member, apply_to_members, members_sum},
};

/// The most combinations of members that are enumerated.
const COMBINATIONS_MAX: usize = 100_000;

/// The distribution of a pool's total.
pub(super) fn total(members: &[Distribution], actions: &[Action], work: &mut Work) -> Exact<Distribution> {
    if !actions.iter().any(|a| matches!(a, Action::Select { .. })) {
        return each(members, actions, work);
    }
    let count = u32::try_from(members.len()).map_err(|_| Stop::TooMuch)?;
    let mut kept = KeptRanks { count, from: 0, to: count };
    let mut only_selects = true;
    for action in actions {
        match *action {
            Action::Select { keep, highest, count } => kept.select(keep, highest, count),
            _ => only_selects = false,
        }
    }
    if only_selects && kept.from == 0 && kept.to == count {
        return each(members, &[], work);
    }
    if only_selects && kept.to == kept.from {
        return Ok(Distribution::constant(0.0));
    }
    if only_selects && kept.to - kept.from == 1 && (kept.to == count || kept.from == 0) {
        return extreme(members, kept.from > 0, work);
    }
    if only_selects && let Some(sum) = alike(members, &kept, work)? {
        return Ok(sum);
    }
    combinations(members, actions, work)
}

/// Treats members one by one: counts or keeps each, then adds them.
fn each(members: &[Distribution], actions: &[Action], work: &mut Work) -> Exact<Distribution> {
    let mut total = Distribution::constant(0.0);
    for member in members {
        let counted = member.map(
            |value| {
                let mut one = [Member::new(value)];
                apply_to_members(actions, &mut one);
                Ok(members_sum(&one))
            },
            work,
        )?;
        total = total.plus(&counted, false, work)?;
    }
    Ok(total)
}

/// The highest or lowest of the members.
fn extreme(members: &[Distribution], highest: bool, work: &mut Work) -> Exact<Distribution> {
    let (first, rest) = members.split_first().ok_or(Stop::TooMuch)?;
    rest.iter().try_fold(first.clone(), |so_far, next| larger(&so_far, next, highest, work))
}

/// The larger or smaller of two values, in one pass over both.
fn larger(a: &Distribution, b: &Distribution, highest: bool, work: &mut Work) -> Exact<Distribution> {
    work.charge((a.points.len() + b.points.len()) * 100)?;
    let mut points: Vec<(f64, f64, bool)> = a.points.iter().map(|(v, p)| (*v, *p, true)).collect();
    points.extend(b.points.iter().map(|(v, p)| (*v, *p, false)));
    points.sort_by(|x, y| if highest { x.0.total_cmp(&y.0) } else { y.0.total_cmp(&x.0) });
    // For each point the probability that the other value does not exceed it. Equal values come one after the other.
    let (mut of_a, mut of_b) = (0.0, 0.0);
    let mut result = Vec::with_capacity(points.len());
    for (value, p, from_a) in points {
        let weight = if from_a { p * of_b } else { p * of_a };
        *(if from_a { &mut of_a } else { &mut of_b }) += p;
        result.push((value, weight));
    }
    Distribution::gather(result.into_iter().filter(|(_, p)| *p > 0.0).collect(), a.whole && b.whole)
}

/// Equal members, sorted like dice.
fn alike(members: &[Distribution], kept: &KeptRanks, work: &mut Work) -> Exact<Option<Distribution>> {
    let Some((first, rest)) = members.split_first() else { return Ok(None) };
    if rest.iter().any(|member| member.points != first.points) || first.to_lattice().is_none() {
        return Ok(None);
    }
    let mut shares = Vec::with_capacity(first.points.len());
    for (value, chance) in &first.points {
        shares.push((super::lattice::Lattice::point(*value as i64, 1.0), *chance));
    }
    let mut sum = order::total(&shares, kept, work)?;
    sum.whole &= first.whole;
    Ok(Some(Distribution::from_lattice(&sum)))
}

/// Enumerates all combinations of the members' values.
fn combinations(members: &[Distribution], actions: &[Action], work: &mut Work) -> Exact<Distribution> {
    let count = members.iter().try_fold(1_usize, |n, d| n.checked_mul(d.points.len()));
    let count = count.filter(|n| *n <= COMBINATIONS_MAX).ok_or(Stop::TooMuch)?;
    work.charge(count * (members.len() * (actions.len() + 1) * 32 + 128))?;
    let mut points = Vec::with_capacity(count);
    let mut list = Vec::with_capacity(members.len());
    for index in 0..count {
        let (mut rest, mut weight) = (index, 1.0);
        list.clear();
        for member in members {
            let (value, p) = member.points.get(rest % member.points.len()).ok_or(Stop::TooMuch)?;
            rest /= member.points.len();
            weight *= p;
            list.push(Member::new(*value));
        }
        apply_to_members(actions, &mut list);
        points.push((members_sum(&list), weight));
    }
    Distribution::gather(points, members.iter().all(|member| member.whole))
}
