//! The parser's result: steps for a small stack machine.
//!
//! The steps are in the order of execution (operands first), so that rolling, statistics and printing are loops over a
//! list without recursion, however deeply a formula is nested. Nothing here knows the source text except the positions.

use std::ops::Range;

use super::{
    error::At,
    function::Function,
    modifier::{Action, Modifier, Operand},
    sides::DieKind,
};

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
    /// Names the value on top of the stack. Index into [`Program::flavours`].
    Flavour(u32),
}

/// An operator with two operands.
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

    /// The precedence: products before sums.
    pub(super) const fn precedence(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => 1,
            Self::Multiply | Self::Divide | Self::Remainder => 2,
        }
    }

    /// The result; it is not finite after a division by zero.
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

/// Dice that are rolled together, such as `4d6kh3`.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) at: At,
    pub(super) kind: DieKind,
    pub(super) count: Operand,
    /// 3 for Fate dice and 2 for coins.
    pub(super) faces: Operand,
    pub(super) faces_at: At,
    /// The modifiers as written: a range of [`Program::modifiers`].
    pub(super) modifiers: Range<u32>,
    /// How to roll it, if that is known before the roll.
    pub(super) plan: Plan,
}

impl Term {
    /// The number of its values on the stack.
    #[inline]
    pub(super) fn computed(&self, program: &Program) -> usize {
        if self.plan != Plan::Late {
            return 0;
        }
        let modifiers = part(&program.modifiers, &self.modifiers).iter().map(Modifier::computed).sum::<usize>();
        usize::from(self.count.is_computed()) + usize::from(self.faces.is_computed()) + modifiers
    }
}

/// How to roll a term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plan {
    /// A number is computed, so it is only known at the roll.
    Late,
    /// All numbers are written. The actions are the range `first..end` of [`Program::actions`].
    Ready { count: u32, faces: u32, first: u32, end: u32, shape: Shape },
}

/// Common terms, whose total needs no list of dice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// No modifier.
    Plain,
    /// Keeps this many of at most [`SMALL`] dice, the highest.
    Highest(u32),
    /// Keeps this many of at most [`SMALL`] dice, the lowest.
    Lowest(u32),
    /// Explodes at this value.
    Exploding(i32),
    /// Anything else.
    General,
}

/// The number of dice that fit into an array on the stack.
pub(super) const SMALL: usize = 32;

/// A pool such as `{a, b}kh`.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) members: u32,
    /// The modifiers as written: a range of [`Program::modifiers`].
    pub(super) modifiers: Range<u32>,
    /// A range of [`Program::actions`], if every target is written.
    pub(super) actions: Option<Range<u32>>,
}

/// A whole formula.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    /// The position of each step in the source.
    pub(super) places: Vec<At>,
    pub(super) terms: Vec<Term>,
    pub(super) pools: Vec<Pool>,
    pub(super) modifiers: Vec<Modifier>,
    pub(super) actions: Vec<Action>,
    /// The bytes of the names, without the `@`.
    pub(super) variables: Vec<Range<u32>>,
    /// The bytes of the texts, without the brackets.
    pub(super) flavours: Vec<Range<u32>>,
    /// The bytes of the text after `#`, trimmed.
    pub(super) comment: Option<Range<u32>>,
    /// The largest number of values on the stack.
    pub(super) stack_max: u32,
    /// The number of written dice, which are always rolled.
    pub(super) dice_written: u32,
}

/// A part of a list; empty if the range is outside of it, which the parser rules out.
pub(super) fn part<'a, T>(list: &'a [T], range: &Range<u32>) -> &'a [T] {
    list.get(range.start as usize..range.end as usize).unwrap_or_default()
}
