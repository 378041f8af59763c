//! Rolls one dice term: first all dice, then each modifier in written order, applied to the dice that still count.

use super::{
    result::{DieRoll, Verdict},
    select,
    stack::Slot,
};
use crate::dice::{
    Dice,
    error::{At, Fault, FormulaErrorKind, Outcome},
    limits::Limits,
    modifier::{Action, Test},
    program::{Plan, Program, SMALL, Shape, Term, part},
    resolve,
    sides::Sides,
};

/// The dice of one formula.
pub(super) struct Table<'a, D> {
    pub(super) dice: &'a mut D,
    /// All dice of the formula; without recording only those of the current term.
    pub(super) tray: &'a mut Vec<DieRoll>,
    pub(super) limits: &'a Limits,
    /// The number of dice drawn so far.
    pub(super) drawn: u32,
}

impl<D: Dice> Table<'_, D> {
    /// The total of a term.
    #[inline]
    pub(super) fn term<const RECORD: bool>(
        &mut self,
        program: &Program,
        term: &Term,
        computed: &[Slot],
    ) -> Outcome<f64> {
        let Plan::Ready { count, faces, first, end, shape } = term.plan else {
            return self.late::<RECORD>(program, term, computed);
        };
        let sides = Sides { kind: term.kind, faces };
        let actions = part(&program.actions, &(first..end));
        if RECORD && shape == Shape::Plain {
            let start = self.tray.len();
            self.fall(count, sides, term.at)?;
            return Ok(sum(self.tray.get(start..).unwrap_or_default()));
        }
        match shape {
            _ if RECORD => self.general::<RECORD>(count, sides, actions, term.at),
            Shape::Plain => self.plain(count, sides, term.at),
            Shape::Highest(kept) => self.selected(count, sides, kept, true, term.at),
            Shape::Lowest(kept) => self.selected(count, sides, kept, false, term.at),
            Shape::Exploding(at_value) => self.exploding(count, sides, at_value, term.at),
            Shape::General => self.general::<RECORD>(count, sides, actions, term.at),
        }
    }

    /// A term with computed numbers.
    fn late<const RECORD: bool>(&mut self, program: &Program, term: &Term, computed: &[Slot]) -> Outcome<f64> {
        let values: Vec<f64> = computed.iter().map(|slot| slot.value).collect();
        let modifiers = part(&program.modifiers, &term.modifiers);
        let resolved = resolve::term(term, modifiers, &values, self.limits).map_err(Fault::untold)?;
        self.general::<RECORD>(resolved.count, resolved.sides, &resolved.actions, term.at)
    }

    /// Counts dice before they are drawn.
    #[inline]
    fn reserve(&mut self, count: u32, at: At) -> Outcome<()> {
        self.drawn += count;
        if self.drawn > self.limits.dice_per_formula_max {
            return Err(resolve::too_many_dice(at, self.limits));
        }
        Ok(())
    }

    #[inline]
    fn draw(&mut self, faces: u32, at: At) -> Outcome<u32> {
        self.dice.roll(faces).map_err(|why| out_of_dice(&why, at))
    }

    /// The sum of dice without modifiers.
    fn plain(&mut self, count: u32, sides: Sides, at: At) -> Outcome<f64> {
        self.reserve(count, at)?;
        let mut total = 0_i64;
        for _ in 0..count {
            total += i64::from(sides.face_value(self.draw(sides.faces, at)?));
        }
        Ok(total as f64)
    }

    /// The sum of the highest or lowest of a few dice.
    fn selected(&mut self, count: u32, sides: Sides, kept: u32, highest: bool, at: At) -> Outcome<f64> {
        self.reserve(count, at)?;
        let mut values = [0_i32; SMALL];
        let values = values.get_mut(..count as usize).unwrap_or_default();
        for value in values.iter_mut() {
            *value = sides.face_value(self.draw(sides.faces, at)?);
        }
        Ok(select::sum_kept_dice(values, kept as usize, highest) as f64)
    }

    /// Dice that explode at one value. They are drawn in the same order as by [`Self::general`], each die checked once.
    fn exploding(&mut self, count: u32, sides: Sides, at_value: i32, at: At) -> Outcome<f64> {
        self.reserve(count, at)?;
        let (mut total, mut left, mut extra) = (0_i64, count, 0);
        while left > 0 {
            let value = sides.face_value(self.draw(sides.faces, at)?);
            total += i64::from(value);
            left -= 1;
            if value == at_value {
                self.add(&mut extra, at)?;
                left += 1;
            }
        }
        Ok(total as f64)
    }

    /// Draws one die beyond the term's own number.
    #[inline]
    fn add(&mut self, extra: &mut u32, at: At) -> Outcome<()> {
        *extra += 1;
        if *extra > self.limits.extra_dice_per_term_max {
            return Err(resolve::too_many_extra(at, self.limits));
        }
        self.reserve(1, at)
    }

    /// Draws dice onto the tray.
    fn fall(&mut self, count: u32, sides: Sides, at: At) -> Outcome<()> {
        self.reserve(count, at)?;
        self.tray.reserve(count as usize);
        for _ in 0..count {
            let value = sides.face_value(self.draw(sides.faces, at)?);
            self.tray.push(DieRoll::fresh(sides.faces, value, sides.kind));
        }
        Ok(())
    }

    /// Any term.
    fn general<const RECORD: bool>(&mut self, count: u32, sides: Sides, actions: &[Action], at: At) -> Outcome<f64> {
        let first = self.tray.len();
        self.fall(count, sides, at)?;
        let mut extra = 0;
        let mut margin = None;
        for action in actions {
            match *action {
                Action::Reroll { test, limit, again } => {
                    self.more(first, sides, (test, limit, again), &mut extra, at, |die| {
                        die.kept = false;
                        die.rerolled = true;
                    })?;
                }
                Action::Explode { test, limit, again } => {
                    self.more(first, sides, (test, limit, again), &mut extra, at, |die| die.exploded = true)?;
                }
                Action::Margin { target, below } => margin = Some((target, below)),
                other => {
                    let dice = self.tray.get_mut(first..).unwrap_or_default();
                    apply(other, dice);
                }
            }
        }
        let total = sum(self.tray.get(first..).unwrap_or_default());
        if !RECORD {
            self.tray.truncate(first);
        }
        Ok(match margin {
            None => total,
            Some((target, false)) => total - target,
            Some((target, true)) => target - total,
        })
    }

    /// For each die that counts and passes, marks it and rolls another one at the end; with `again` also checks the new
    /// ones.
    fn more(
        &mut self,
        first: usize,
        sides: Sides,
        (test, limit, again): (Test, u32, bool),
        extra: &mut u32,
        at: At,
        mark: impl Fn(&mut DieRoll),
    ) -> Outcome<()> {
        let before = self.tray.len();
        let (mut next, mut done) = (first, 0);
        while done < limit && (again || next < before) {
            let Some(die) = self.tray.get_mut(next) else { break };
            next += 1;
            if !die.kept || !test.holds_die(die.shown) {
                continue;
            }
            mark(die);
            done += 1;
            self.add(extra, at)?;
            let value = sides.face_value(self.draw(sides.faces, at)?);
            self.tray.push(DieRoll::fresh(sides.faces, value, sides.kind));
        }
        Ok(())
    }
}

/// Applies a modifier that rolls nothing.
fn apply(action: Action, dice: &mut [DieRoll]) {
    if let Action::Select { keep, highest, count } = action {
        select::apply(dice, keep, highest, count as usize);
        return;
    }
    for die in dice.iter_mut().filter(|die| die.kept) {
        touch(action, &mut die.shown, &mut die.counted, &mut die.verdict);
    }
}

/// Applies a modifier that treats each die separately. The statistics use it, too.
pub(in crate::dice) fn touch(action: Action, shown: &mut i32, counted: &mut i32, verdict: &mut Verdict) {
    match action {
        Action::Clamp { low, high } => {
            *shown = (*shown).max(low).min(high);
            // A die that was counted keeps its verdict.
            if *verdict == Verdict::None {
                *counted = *shown;
            }
        }
        Action::Count { test, success } => {
            let holds = test.holds_die(*shown);
            *counted = i32::from(holds);
            *verdict = match (holds, success) {
                (true, true) => Verdict::Success,
                (true, false) => Verdict::Failure,
                (false, true) => Verdict::Missed,
                (false, false) => Verdict::Passed,
            };
        }
        Action::Deduct { test, shown: by_shown } => {
            let fails = match test {
                Some(test) => test.holds_die(*shown),
                None => matches!(*verdict, Verdict::Missed | Verdict::Failure),
            };
            if fails {
                *verdict = Verdict::Failure;
                *counted = if by_shown { shown.saturating_neg() } else { -1 };
            }
        }
        Action::Reroll { .. } | Action::Explode { .. } | Action::Select { .. } | Action::Margin { .. } => {}
    }
}

#[inline]
fn sum(dice: &[DieRoll]) -> f64 {
    dice.iter().map(|die| if die.kept { i64::from(die.counted) } else { 0 }).sum::<i64>() as f64
}

#[cold]
fn out_of_dice(why: &crate::dice::OutOfDice, at: At) -> Box<Fault> {
    Fault::new(FormulaErrorKind::Dice(why.clone()), at, why.to_string())
        .expected("one given die for each die of the roll, in order")
}
