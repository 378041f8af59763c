//! Bounds of a dice term: follows the number of dice and what each counts through the modifiers.

use super::interval::{Interval, numbers};
use crate::dice::{
    limits::Limits,
    modifier::{Comparison, Modifier, Name, Operand},
    program::{Program, Term, part},
    sides::Sides,
};

/// Dice as they pass through the modifiers.
struct Crowd {
    /// How many dice still count.
    dice: Interval,
    /// The value of one die.
    shown: Interval,
    /// What one die counts.
    counted: Interval,
    /// The value of a new die.
    fresh: Interval,
    /// Whether a modifier has counted the dice.
    is_counted: bool,
}

/// The bounds of a term, given the bounds of its computed numbers in order.
pub(super) fn bounds(program: &Program, term: &Term, computed: &[Interval], limits: &Limits) -> Interval {
    let mut computed = computed.iter().copied();
    let mut number = |operand: Operand| match operand {
        Operand::Value(value) => Interval::point(value),
        Operand::Stack => computed.next().unwrap_or(Interval::ANY),
    };
    let dice = number(term.count);
    let most = f64::from(limits.dice_per_term_max);
    // Values beyond the limits are an error when the formula is rolled.
    let dice = Interval { low: dice.low.clamp(0.0, most), high: dice.high.clamp(0.0, most) };
    let faces = number(term.faces).high.clamp(1.0, f64::from(limits.faces_max));
    let (low, high) = Sides { kind: term.kind, faces: faces as u32 }.span();
    let fresh = Interval { low: f64::from(low), high: f64::from(high) };
    let mut crowd = Crowd { dice, shown: fresh, counted: fresh, fresh, is_counted: false };
    let mut margin = None;
    for modifier in part(&program.modifiers, &term.modifiers) {
        let (limit, operand) = numbers(modifier, &mut computed);
        if modifier.name == Name::MarginOfSuccess {
            let below = matches!(modifier.comparison, Some(Comparison::Less | Comparison::LessOrEqual));
            margin = Some((below, operand.unwrap_or(Interval::ANY)));
        } else {
            crowd.pass(modifier, limit, operand);
        }
    }
    let total = crowd.total();
    match margin {
        None => total,
        Some((false, target)) => Interval { low: total.low - target.high, high: total.high - target.low },
        Some((true, target)) => Interval { low: target.low - total.high, high: target.high - total.low },
    }
}

impl Crowd {
    fn pass(&mut self, modifier: &Modifier, limit: Option<Interval>, operand: Option<Interval>) {
        let target = operand.unwrap_or(Interval::ANY);
        let count = operand.unwrap_or(Interval::point(1.0));
        match modifier.name {
            Name::Keep | Name::KeepHighest | Name::KeepLowest => {
                self.dice = Interval { low: self.dice.low.min(count.low), high: self.dice.high.min(count.high) };
            }
            Name::Drop | Name::DropHighest | Name::DropLowest => {
                let low = (self.dice.low - count.high).max(0.0);
                self.dice = Interval { low, high: (self.dice.high - count.low).max(0.0) };
            }
            Name::Reroll | Name::RerollUntil => self.widen(),
            Name::Explode | Name::ExplodeOnce => {
                if self.may_pass(modifier, operand) {
                    let again = if modifier.name == Name::Explode { f64::INFINITY } else { self.dice.high };
                    self.dice.high += limit.map_or(again, |limit| limit.high.min(again));
                    self.widen();
                }
            }
            Name::Minimum => self.clamp(|value, end| value.max(end), target),
            Name::Maximum => self.clamp(|value, end| value.min(end), target),
            Name::CountSuccess | Name::CountFailure | Name::Even | Name::Odd | Name::Call => {
                self.counted = Interval { low: 0.0, high: 1.0 };
                self.is_counted = true;
            }
            Name::DeductFailure => {
                self.reach(Interval::point(-1.0));
                self.is_counted = true;
            }
            Name::SubtractFailure => {
                self.reach(Interval { low: -self.shown.high, high: -self.shown.low });
                self.is_counted = true;
            }
            Name::MarginOfSuccess => {}
        }
    }

    /// Includes new dice.
    fn widen(&mut self) {
        let fresh = self.fresh;
        self.shown = union(self.shown, fresh);
        self.reach(fresh);
    }

    fn reach(&mut self, values: Interval) {
        self.counted = union(self.counted, values);
    }

    fn clamp(&mut self, apply: impl Fn(f64, f64) -> f64, end: Interval) {
        self.shown = Interval { low: apply(self.shown.low, end.low), high: apply(self.shown.high, end.high) };
        // Counted dice keep what they count. Dice that were added since do not.
        self.counted = if self.is_counted { union(self.counted, self.shown) } else { self.shown };
    }

    /// Whether a die may pass a modifier's test.
    fn may_pass(&self, modifier: &Modifier, operand: Option<Interval>) -> bool {
        // The default target is the highest face.
        let target = operand.unwrap_or(Interval::point(self.fresh.high));
        match modifier.comparison.unwrap_or(Comparison::Equal) {
            Comparison::Less => self.shown.low < target.high,
            Comparison::LessOrEqual => self.shown.low <= target.high,
            Comparison::Greater => self.shown.high > target.low,
            Comparison::GreaterOrEqual => self.shown.high >= target.low,
            Comparison::Equal => target.low <= self.shown.high && self.shown.low <= target.high,
            Comparison::Even | Comparison::Odd => true,
        }
    }

    /// The number of dice times what each counts. Without dice it is 0, whatever they would count.
    fn total(&self) -> Interval {
        let times = |dice: f64, value: f64| if dice == 0.0 || value == 0.0 { 0.0 } else { dice * value };
        let low = if self.counted.low < 0.0 { self.dice.high } else { self.dice.low };
        let high = if self.counted.high < 0.0 { self.dice.low } else { self.dice.high };
        Interval { low: times(low, self.counted.low), high: times(high, self.counted.high) }
    }
}

fn union(a: Interval, b: Interval) -> Interval {
    Interval { low: a.low.min(b.low), high: a.high.max(b.high) }
}
