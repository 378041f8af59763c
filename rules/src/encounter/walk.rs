//! Paths over the grid and what they cost (SRD 5.1, "Movement and Position").
//!
//! A square costs 5 feet, also diagonally. It costs 5 more in difficult terrain, in water and through another creature's
//! space, and 5 more for a prone creature. Obstacles and the spaces of enemies are closed, except an enemy that is two
//! sizes larger or smaller.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{Encounter, Participant, Position, Square, limits, position::SQUARE_FT};
use crate::sheet::Life;

/// One square of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) to: Position,
    pub(super) cost_ft: i32,
}

/// For each square the cost in feet, and the previous square on the path.
type Costs = Vec<(i32, usize)>;

/// What entering a square costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ground {
    closed: bool,
    slow: bool,
}

/// The grid for one creature.
struct Grid {
    width: i32,
    height: i32,
    side: i32,
    prone: bool,
    squares: Vec<Ground>,
}

impl Grid {
    fn of(encounter: &Encounter, mover: &Participant) -> Self {
        let terrain = &encounter.terrain;
        let [width, height] = [terrain.width, terrain.height].map(|size| size.clamp(0, limits::GRID_MAX));
        let size = usize::try_from(width.saturating_mul(height)).unwrap_or(0);
        let prone = mover.creature.has_condition("prone");
        let mut grid = Self { width, height, side: mover.side(), prone, squares: vec![Ground::default(); size] };
        terrain.obstacles.iter().for_each(|s| grid.mark(*s, |g| g.closed = true));
        terrain.difficult_terrain.iter().chain(&terrain.water).for_each(|s| grid.mark(*s, |g| g.slow = true));
        for other in encounter.participants.iter().filter(|p| p.id != mover.id && p.life() != Life::Dead) {
            let Some(at) = other.position.filter(|at| at.z == 0) else { continue };
            let closed = other.is_enemy != mover.is_enemy && !slips_past(mover, other);
            for x in 0..other.side() {
                for y in 0..other.side() {
                    let square = Square { x: at.x.saturating_add(x), y: at.y.saturating_add(y) };
                    grid.mark(square, |g| (g.closed, g.slow) = (g.closed || closed, true));
                }
            }
        }
        grid
    }

    fn index(&self, square: Square) -> Option<usize> {
        let inside = (0..self.width).contains(&square.x) && (0..self.height).contains(&square.y);
        inside.then(|| usize::try_from(square.y * self.width + square.x).ok()).flatten()
    }

    fn mark(&mut self, square: Square, change: impl FnOnce(&mut Ground)) {
        if let Some(ground) = self.index(square).and_then(|at| self.squares.get_mut(at)) {
            change(ground);
        }
    }

    /// The ground under a footprint; `None` if it does not fit or is closed.
    fn under(&self, at: Square) -> Option<Ground> {
        let mut all = Ground::default();
        for x in 0..self.side {
            for y in 0..self.side {
                let square = Square { x: at.x.saturating_add(x), y: at.y.saturating_add(y) };
                let ground = self.index(square).and_then(|at| self.squares.get(at))?;
                all.closed |= ground.closed;
                all.slow |= ground.slow;
            }
        }
        (!all.closed).then_some(all)
    }

    fn cost_ft(&self, ground: Ground) -> i32 {
        SQUARE_FT * (1 + i32::from(ground.slow) + i32::from(self.prone))
    }

    fn square(&self, at: usize) -> Square {
        let at = i32::try_from(at).unwrap_or(0);
        let width = self.width.max(1);
        Square { x: at % width, y: at / width }
    }

    /// The cheapest path. If several cost the same, always the same one.
    fn cheapest(&self, from: Square, to: Square) -> Option<Vec<Step>> {
        let (start, goal) = (self.index(from)?, self.index(to)?);
        let best = self.costs(start, Some(goal));
        best.get(goal).filter(|(cost, _)| *cost != i32::MAX)?;
        Some(self.traced(&best, start, goal))
    }

    /// The cost of each square from `start`, and the previous square on the cheapest path; `i32::MAX` for squares that
    /// cannot be reached. With a goal, no farther than the goal.
    fn costs(&self, start: usize, goal: Option<usize>) -> Costs {
        let mut best: Costs = vec![(i32::MAX, usize::MAX); self.squares.len()];
        if let Some(first) = best.get_mut(start) {
            *first = (0, start);
        }
        let mut open = BinaryHeap::from([Reverse((0, start))]);
        while let Some(Reverse((cost, at))) = open.pop() {
            if Some(at) == goal {
                break;
            }
            if best.get(at).is_none_or(|(known, _)| *known < cost) {
                continue;
            }
            for next in neighbours(self.square(at)) {
                let Some((index, ground)) = self.index(next).zip(self.under(next)) else { continue };
                let total = cost + self.cost_ft(ground);
                if let Some(known) = best.get_mut(index).filter(|known| total < known.0) {
                    *known = (total, at);
                    open.push(Reverse((total, index)));
                }
            }
        }
        best
    }

    fn traced(&self, best: &[(i32, usize)], start: usize, goal: usize) -> Vec<Step> {
        let mut way = Vec::new();
        let mut at = goal;
        while at != start && way.len() <= best.len() {
            let Some((total, before)) = best.get(at).copied() else { break };
            let cost_ft = total - best.get(before).map_or(0, |b| b.0);
            let Square { x, y } = self.square(at);
            way.push(Step { to: Position { x, y, z: 0 }, cost_ft });
            at = before;
        }
        way.reverse();
        way
    }
}

fn neighbours(of: Square) -> impl Iterator<Item = Square> {
    const AROUND: [(i32, i32); 8] = [(0, -1), (-1, 0), (1, 0), (0, 1), (-1, -1), (1, -1), (-1, 1), (1, 1)];
    AROUND.into_iter().map(move |(dx, dy)| Square { x: of.x.saturating_add(dx), y: of.y.saturating_add(dy) })
}

/// A creature that is two sizes larger or smaller does not block the way.
fn slips_past(mover: &Participant, other: &Participant) -> bool {
    let (own, theirs) = (mover.creature.size_step().unwrap_or(2), other.creature.size_step().unwrap_or(2));
    own.abs_diff(theirs) >= 2 || other.creature.is_incapacitated()
}

/// The path of a creature to a place: the given one, or the cheapest. The error says why there is none.
///
/// Through the air the path is a straight line, and the ground adds no cost.
pub(super) fn way(
    encounter: &Encounter,
    mover: &Participant,
    from: Position,
    to: Position,
    path: &[Position],
) -> Result<Vec<Step>, String> {
    if !encounter.terrain.holds(to, mover.side()) {
        let (width, height) = (encounter.terrain.width, encounter.terrain.height);
        return Err(format!("is outside of the grid of {width} by {height}"));
    }
    if let Some(other) = who_stands_at(encounter, mover, to) {
        return Err(format!("is taken, because {} is there", other.id));
    }
    if from.z != 0 || to.z != 0 {
        if to.z == 0 && encounter.terrain.blocks(to, mover.side()) {
            return Err("is blocked by an obstacle".to_owned());
        }
        let squares = from.squares_to(1, to, 1);
        return Ok(vec![Step { to, cost_ft: squares.saturating_mul(SQUARE_FT) }]);
    }
    let grid = Grid::of(encounter, mover);
    if grid.under(to.square()).is_none() {
        return Err("is blocked by an obstacle".to_owned());
    }
    if path.is_empty() {
        return grid.cheapest(from.square(), to.square()).ok_or_else(|| "cannot be reached".to_owned());
    }
    let mut at = from;
    let mut steps = Vec::with_capacity(path.len());
    for next in path.iter().copied() {
        if next.z != 0 || at.squares_to(1, next, 1) != 1 {
            return Err(format!("{} is not next to {} on the path", next.square(), at.square()));
        }
        let ground = grid.under(next.square()).ok_or_else(|| format!("{} is blocked", next.square()))?;
        steps.push(Step { to: next, cost_ft: grid.cost_ft(ground) });
        at = next;
    }
    if at != to {
        return Err("is not where the path ends".to_owned());
    }
    Ok(steps)
}

/// The destination of a move towards somebody on the ground within `left` feet: the last affordable square of the cheapest
/// path to a square next to them, or as near as possible. `None` if that is where the mover already is.
pub(super) fn towards(
    encounter: &Encounter,
    mover: &Participant,
    from: Position,
    target: &Participant,
    left_ft: i32,
) -> Option<Position> {
    let at = target.position?;
    let (grid, start, best) = reach(encounter, mover, from)?;
    let open = stops(encounter, mover, &grid, &best);
    let distance = |to: Position| to.squares_to(mover.side(), at, target.side());
    let (_, cost, goal) = open.map(|(index, cost, to)| (distance(to), cost, index)).min()?;
    if goal == start {
        return None;
    }
    let mut way = grid.traced(&best, start, goal);
    let mut spent = cost;
    while let Some(last) = way.pop() {
        if spent <= left_ft && who_stands_at(encounter, mover, last.to).is_none() {
            return Some(last.to);
        }
        spent -= last.cost_ft;
    }
    None
}

/// The destination of a move away from somebody on the ground within `left` feet: the farthest affordable square, and the
/// cheapest of several. `None` if that is where the mover already is.
pub(super) fn away(
    encounter: &Encounter,
    mover: &Participant,
    from: Position,
    target: &Participant,
    left_ft: i32,
) -> Option<Position> {
    let at = target.position?;
    let (grid, start, best) = reach(encounter, mover, from)?;
    let open = stops(encounter, mover, &grid, &best).filter(|(_, cost, _)| *cost <= left_ft);
    let distance = |to: Position| to.squares_to(mover.side(), at, target.side());
    let (_, _, goal) = open.map(|(index, cost, to)| (Reverse(distance(to)), cost, index)).min()?;
    let Square { x, y } = grid.square(goal);
    (goal != start).then_some(Position { x, y, z: 0 })
}

/// The grid for a creature, its square there, and the cost of each square from there ([`Grid::costs`]).
fn reach(encounter: &Encounter, mover: &Participant, from: Position) -> Option<(Grid, usize, Costs)> {
    let grid = Grid::of(encounter, mover);
    let start = grid.index(from.square())?;
    let best = grid.costs(start, None);
    Some((grid, start, best))
}

/// The squares that a mover can reach and stop on, with their costs.
fn stops<'a>(
    encounter: &'a Encounter,
    mover: &'a Participant,
    grid: &'a Grid,
    best: &'a [(i32, usize)],
) -> impl Iterator<Item = (usize, i32, Position)> + 'a {
    let reached = best.iter().enumerate().filter(|(_, (cost, _))| *cost != i32::MAX);
    let placed = reached.map(|(index, (cost, _))| {
        let Square { x, y } = grid.square(index);
        (index, *cost, Position { x, y, z: 0 })
    });
    placed.filter(|(_, _, to)| who_stands_at(encounter, mover, *to).is_none())
}

/// Whether a creature can be pushed to a square.
pub(super) fn is_free(encounter: &Encounter, mover: &Participant, to: Position) -> bool {
    let blocked = to.z == 0 && encounter.terrain.blocks(to, mover.side());
    encounter.terrain.holds(to, mover.side()) && !blocked && who_stands_at(encounter, mover, to).is_none()
}

/// Whose space a creature would be in, on the ground or above it. The dead leave their space free.
pub(super) fn who_stands_at<'a>(
    encounter: &'a Encounter,
    mover: &Participant,
    to: Position,
) -> Option<&'a Participant> {
    encounter.participants.iter().find(|p| {
        let there = p.position.is_some_and(|at| at.squares_to(p.side(), to, mover.side()) == 0);
        p.id != mover.id && p.life() != Life::Dead && there
    })
}
