//! Modifiers: their names, what each may carry, and what it does to the dice.
//!
//! To add one, add a `Name`, its line in `NAMES`, its arm in `resolve`, and for a new behaviour an [`Action`] with its arm
//! in `roll/dice.rs`, `analyze/die.rs` and `analyze/bounds.rs`.

use std::borrow::Cow;

use super::{
    error::{At, Fault, FormulaErrorKind, Outcome},
    sides::{DieKind, Sides},
};

/// A modifier's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Reroll,
    RerollUntil,
    Explode,
    ExplodeOnce,
    Keep,
    KeepHighest,
    KeepLowest,
    Drop,
    DropHighest,
    DropLowest,
    CountSuccess,
    CountFailure,
    DeductFailure,
    SubtractFailure,
    MarginOfSuccess,
    Even,
    Odd,
    Minimum,
    Maximum,
    Call,
}

/// What may follow a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Nothing,
    /// An optional number: `kh3`, `kh`.
    Count,
    /// A number: `min3`.
    Number,
    /// A number, or `<`, `<=`, `>` or `>=` and a number; `ms12` is `ms>=12`.
    Margin,
    /// Nothing, a number, or a comparison and a number.
    Test,
    /// As `Test`, with an optional number of dice before the comparison.
    LimitedTest,
}

/// Longer names come first, because the longest match counts.
const NAMES: [(&str, Name, Shape); 20] = [
    ("even", Name::Even, Shape::Nothing),
    ("odd", Name::Odd, Shape::Nothing),
    ("min", Name::Minimum, Shape::Number),
    ("max", Name::Maximum, Shape::Number),
    ("rr", Name::RerollUntil, Shape::LimitedTest),
    ("xo", Name::ExplodeOnce, Shape::LimitedTest),
    ("kh", Name::KeepHighest, Shape::Count),
    ("kl", Name::KeepLowest, Shape::Count),
    ("dh", Name::DropHighest, Shape::Count),
    ("dl", Name::DropLowest, Shape::Count),
    ("df", Name::DeductFailure, Shape::Test),
    ("cs", Name::CountSuccess, Shape::Test),
    ("cf", Name::CountFailure, Shape::Test),
    ("sf", Name::SubtractFailure, Shape::Test),
    ("ms", Name::MarginOfSuccess, Shape::Margin),
    ("r", Name::Reroll, Shape::LimitedTest),
    ("x", Name::Explode, Shape::LimitedTest),
    ("k", Name::Keep, Shape::Count),
    ("d", Name::Drop, Shape::Count),
    ("c", Name::Call, Shape::Number),
];

impl Name {
    /// Reads a name at the beginning of the text. Returns its length and what may follow.
    pub(super) fn read(text: &[u8]) -> Option<(Self, usize, Shape)> {
        let fits = |name: &str| text.get(..name.len()).is_some_and(|t| t.eq_ignore_ascii_case(name.as_bytes()));
        NAMES.iter().find(|(name, ..)| fits(name)).map(|(name, is, shape)| (*is, name.len(), *shape))
    }

    /// The name as it is written.
    pub(super) fn text(self) -> &'static str {
        NAMES.iter().find(|(_, name, _)| *name == self).map_or("", |(text, ..)| text)
    }

    /// Whether it can follow dice of this kind.
    pub(super) const fn fits(self, kind: DieKind) -> bool {
        match kind {
            DieKind::Standard => !matches!(self, Self::Call),
            DieKind::Fate => {
                matches!(
                    self,
                    Self::Reroll
                        | Self::RerollUntil
                        | Self::Keep
                        | Self::KeepHighest
                        | Self::KeepLowest
                        | Self::Drop
                        | Self::DropHighest
                        | Self::DropLowest
                )
            }
            DieKind::Coin => matches!(self, Self::Call),
        }
    }

    /// Whether it can follow a pool.
    pub(super) const fn fits_pools(self) -> bool {
        matches!(
            self,
            Self::Keep
                | Self::KeepHighest
                | Self::KeepLowest
                | Self::Drop
                | Self::DropHighest
                | Self::DropLowest
                | Self::CountSuccess
                | Self::CountFailure
        )
    }
}

/// How a die is compared with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
    /// Not written; for `even`.
    Even,
    /// Not written; for `odd`.
    Odd,
}

impl Comparison {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Equal => "=",
            Self::GreaterOrEqual => ">=",
            Self::Greater => ">",
            Self::Even | Self::Odd => "",
        }
    }
}

/// A test of a die.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Test {
    pub(super) comparison: Comparison,
    pub(super) target: f64,
}

impl Test {
    pub(super) fn holds(self, value: f64) -> bool {
        match self.comparison {
            Comparison::Less => value < self.target,
            Comparison::LessOrEqual => value <= self.target,
            Comparison::Equal => value == self.target,
            Comparison::GreaterOrEqual => value >= self.target,
            Comparison::Greater => value > self.target,
            Comparison::Even => value % 2.0 == 0.0,
            Comparison::Odd => value % 2.0 != 0.0,
        }
    }

    pub(super) fn holds_die(self, shown: i32) -> bool {
        self.holds(f64::from(shown))
    }
}

/// What a modifier does to the dice of its term that still count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    /// Keeps (`keep`) or drops `count` dice; `highest`: the highest or lowest ones.
    Select { keep: bool, highest: bool, count: u32 },
    /// Replaces dice that pass by new ones; with `again` also the new ones.
    Reroll { test: Test, limit: u32, again: bool },
    /// Adds a die for each die that passes; with `again` also for the new ones.
    Explode { test: Test, limit: u32, again: bool },
    /// Limits what dice count to the range from `low` to `high`.
    Clamp { low: i32, high: i32 },
    /// Dice that pass count 1, others 0.
    Count { test: Test, success: bool },
    /// Failed dice count -1, or minus their value. Without a test: dice that already failed.
    Deduct { test: Option<Test>, shown: bool },
    /// The total becomes its distance above the target, or with `below` the distance below it.
    Margin { target: f64, below: bool },
}

/// A number in a dice term: written, or computed before and taken from the stack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operand {
    Value(f64),
    Stack,
}

impl Operand {
    pub(super) const fn is_computed(self) -> bool {
        matches!(self, Self::Stack)
    }
}

/// A modifier as written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modifier {
    pub(super) at: At,
    pub(super) name: Name,
    /// The prefix of `r1=1` and `x3=6`.
    pub(super) limit: Option<Operand>,
    pub(super) comparison: Option<Comparison>,
    pub(super) operand: Option<Operand>,
}

impl Modifier {
    /// The number of its values on the stack.
    pub(super) fn computed(&self) -> usize {
        let one = |operand: Option<Operand>| usize::from(operand.is_some_and(Operand::is_computed));
        one(self.limit) + one(self.operand)
    }
}

/// The numbers of a modifier, once known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    pub(super) limit: Option<f64>,
    pub(super) operand: Option<f64>,
}

impl Modifier {
    /// Resolves the modifier for such dice. `counted`: a modifier before it counted successes or failures.
    pub(super) fn resolve(&self, numbers: Numbers, sides: Sides, counted: bool) -> Outcome<Action> {
        let (low, high) = sides.span();
        let limit = numbers.limit.map_or(Ok(u32::MAX), |n| self.whole(n))?;
        let test = |default: i32| Test {
            comparison: self.comparison.unwrap_or(Comparison::Equal),
            target: numbers.operand.unwrap_or(f64::from(default)),
        };
        let parity = |comparison| Action::Count { test: Test { comparison, target: 0.0 }, success: true };
        let deduct = |shown| {
            let bare = numbers.operand.is_none() && counted;
            Action::Deduct { test: if bare { None } else { Some(test(low)) }, shown }
        };
        let select = |keep, highest| -> Outcome<Action> {
            let count = numbers.operand.map_or(Ok(1), |n| self.whole(n))?;
            Ok(Action::Select { keep, highest, count })
        };
        Ok(match self.name {
            Name::Keep | Name::KeepHighest => select(true, true)?,
            Name::KeepLowest => select(true, false)?,
            Name::Drop | Name::DropLowest => select(false, false)?,
            Name::DropHighest => select(false, true)?,
            Name::Reroll => Action::Reroll { test: test(low), limit, again: false },
            Name::RerollUntil => Action::Reroll { test: test(low), limit, again: true },
            Name::Explode => Action::Explode { test: test(high), limit, again: true },
            Name::ExplodeOnce => Action::Explode { test: test(high), limit, again: false },
            Name::CountSuccess => Action::Count { test: test(high), success: true },
            Name::CountFailure => Action::Count { test: test(low), success: false },
            Name::DeductFailure => deduct(false),
            Name::SubtractFailure => deduct(true),
            Name::Even => parity(Comparison::Even),
            Name::Odd => parity(Comparison::Odd),
            Name::Minimum => Action::Clamp { low: self.die_value(numbers)?, high: i32::MAX },
            Name::Maximum => Action::Clamp { low: i32::MIN, high: self.die_value(numbers)? },
            Name::MarginOfSuccess => Action::Margin {
                target: numbers.operand.unwrap_or_default(),
                below: matches!(self.comparison, Some(Comparison::Less | Comparison::LessOrEqual)),
            },
            Name::Call => Action::Count { test: self.call(test(high))?, success: true },
        })
    }

    /// A number of dice.
    fn whole(&self, number: f64) -> Outcome<u32> {
        if number < 0.0 || number.fract() != 0.0 {
            return Err(self.fault(format!("`{}` needs a whole number, at least 0", self.name.text())));
        }
        Ok(number as u32)
    }

    /// The number after `min` or `max`.
    fn die_value(&self, numbers: Numbers) -> Outcome<i32> {
        let number = numbers.operand.unwrap_or_default();
        if number.fract() != 0.0 || number.abs() > f64::from(i32::MAX) {
            return Err(self.fault(format!("`{}` needs a whole number that a die can show", self.name.text())));
        }
        Ok(number as i32)
    }

    fn call(&self, test: Test) -> Outcome<Test> {
        if test.target == 0.0 || test.target == 1.0 {
            return Ok(test);
        }
        Err(self.fault("a coin shows 0 or 1").hint("Write c1 or c0."))
    }

    fn fault(&self, message: impl Into<Cow<'static, str>>) -> Box<Fault> {
        Fault::new(FormulaErrorKind::Modifier, self.at, message)
    }
}

/// The error for a modifier that cannot follow these dice.
#[cold]
pub(super) fn misplaced(name: Name, at: At, kind: Option<DieKind>) -> Box<Fault> {
    let (whose, takes) = match kind {
        None => ("A pool", "k, kh, kl, d, dh, dl, cs and cf"),
        Some(DieKind::Fate) => ("Fate dice", "r, rr, k, kh, kl, d, dh and dl"),
        Some(DieKind::Coin) => ("Coins", "c1 and c0"),
        Some(DieKind::Standard) => ("These dice", "no call, which is for coins only (`3dcc1`)"),
    };
    let verb = if kind.is_none() { "takes" } else { "take" };
    Fault::new(FormulaErrorKind::Modifier, at, format!("`{}` does not belong here", name.text()))
        .hint(format!("{whose} {verb} {takes}."))
}
