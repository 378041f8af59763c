//! What the parser makes of a formula: steps for a small stack machine.
//!
//! Steps come in the order of work (operands first), so that rolling, statistics and printing are loops over a list
//! and need no recursion, however deep a formula nests. Nothing here knows the source text but the positions.

use std::ops::Range;

use super::{function::Function, modifier::Action};

/// A byte of the source.
pub(super) type At = u32;

/// One step. It takes its operands from the stack and puts its result there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Number(f64),
    /// Index into [`Program::variables`].
    Variable(u32),
    Negate,
    Binary(Operator),
    Call(Function, u8),
    /// Index into [`Program::terms`].
    Dice(u32),
    /// Index into [`Program::pools`].
    Pool(u32),
    /// Names the value on top of the stack; index into [`Program::flavours`].
    Flavour(u32),
}

/// An operator of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub(super) const fn sign(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
            Self::Remainder => '%',
        }
    }

    /// Binds how strongly: products before sums.
    pub(super) const fn precedence(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => 1,
            Self::Multiply | Self::Divide | Self::Remainder => 2,
        }
    }

    /// The result; not finite after a division by zero.
    pub(super) fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Remainder => left % right,
        }
    }
}

/// A number of a dice term: as written, or computed before and taken from the stack.
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

/// What kind of die it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DieKind {
    /// Shows 1 to its faces.
    #[default]
    Standard,
    /// A Fate (Fudge) die: -1, 0 or 1. `faces` is 3.
    Fate,
    /// A coin: 0 or 1. `faces` is 2.
    Coin,
}

/// Dice that are rolled together: `4d6kh3`.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) at: At,
    pub(super) kind: DieKind,
    pub(super) count: Operand,
    /// 3 for Fate dice and 2 for coins.
    pub(super) faces: Operand,
    pub(super) faces_at: At,
    /// As written: part of [`Program::modifiers`].
    pub(super) modifiers: Range<u32>,
    /// How it is rolled, if that is known before the roll.
    pub(super) plan: Plan,
}

impl Term {
    /// How many of its numbers are on the stack.
    #[inline]
    pub(super) fn computed(&self, program: &Program) -> usize {
        if self.plan != Plan::Late {
            return 0;
        }
        let modifiers = part(&program.modifiers, &self.modifiers).iter().map(Modifier::computed).sum::<usize>();
        usize::from(self.count.is_computed()) + usize::from(self.faces.is_computed()) + modifiers
    }
}

/// How a term is rolled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plan {
    /// Something is computed: it is known at the roll.
    Late,
    /// Everything is written: `actions` are a part of [`Program::actions`].
    Ready { count: u32, faces: u32, first: u32, end: u32, shape: Shape },
}

/// The common terms, which need no list of dice for their total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// No modifier.
    Plain,
    /// Keeps the highest this many of at most [`SMALL`] dice.
    Highest(u32),
    /// Keeps the lowest this many of at most [`SMALL`] dice.
    Lowest(u32),
    /// Explodes when a die shows this.
    Exploding(i32),
    /// Anything else.
    General,
}

/// Dice that fit into an array on the stack.
pub(super) const SMALL: usize = 32;

/// `{a, b}kh`.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) members: u32,
    /// As written: part of [`Program::modifiers`].
    pub(super) modifiers: Range<u32>,
    /// Part of [`Program::actions`], if every target is written.
    pub(super) actions: Option<Range<u32>>,
}

/// A modifier as written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modifier {
    pub(super) at: At,
    pub(super) name: super::modifier::Name,
    /// The prefix of `r1=1` and `x3=6`.
    pub(super) limit: Option<Operand>,
    pub(super) comparison: Option<super::modifier::Comparison>,
    pub(super) operand: Option<Operand>,
}

impl Modifier {
    /// How many of its numbers are on the stack.
    pub(super) fn computed(&self) -> usize {
        let one = |operand: Option<Operand>| usize::from(operand.is_some_and(Operand::is_computed));
        one(self.limit) + one(self.operand)
    }
}

/// A whole formula.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    /// Where each step was written.
    pub(super) places: Vec<At>,
    pub(super) terms: Vec<Term>,
    pub(super) pools: Vec<Pool>,
    pub(super) modifiers: Vec<Modifier>,
    pub(super) actions: Vec<Action>,
    /// Bytes of the names, without the `@`.
    pub(super) variables: Vec<Range<u32>>,
    /// Bytes of the texts, without the brackets.
    pub(super) flavours: Vec<Range<u32>>,
    /// Bytes of the text after `#`, trimmed.
    pub(super) comment: Option<Range<u32>>,
    /// Most values that are on the stack at once.
    pub(super) stack_max: u32,
    /// Dice that are written: rolled whatever happens.
    pub(super) dice_written: u32,
}

/// A part of a list; nothing if the range is not within it (which the parser rules out).
pub(super) fn part<'a, T>(list: &'a [T], range: &Range<u32>) -> &'a [T] {
    list.get(range.start as usize..range.end as usize).unwrap_or_default()
}
