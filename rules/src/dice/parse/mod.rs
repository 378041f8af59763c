//! Parses text into a [`Program`]: recursive descent over bytes, once from left to right.
//!
//! It never uses the values of variables and rolls nothing. It recurses only at brackets, and counts them. Text that is
//! not a formula ends in `hints`, which knows common mistakes.

mod dice;
mod hints;
mod primary;

use super::{
    error::{At, Fault, FormulaErrorKind, Outcome},
    limits::Limits,
    program::{Operator, Program, Step},
};

/// Parses a formula.
pub(super) fn parse(text: &str, limits: &Limits) -> Outcome<Program> {
    if text.len() > limits.bytes_max || text.len() >= At::MAX as usize {
        let message = format!("the formula has {} bytes, but at most {} are allowed", text.len(), limits.bytes_max);
        return Err(Fault::new(FormulaErrorKind::TooLong, 0, message)
            .hint("Split it into several rolls, or write fewer terms."));
    }
    let mut parser = Parser::new(text, limits);
    parser.blanks();
    if parser.peek().is_none() || parser.peek() == Some(b'#') {
        return Err(Fault::new(FormulaErrorKind::Empty, 0, "there is no formula")
            .expected("dice or a number")
            .hint("Write something like 1d20 + 5."));
    }
    parser.expression()?;
    match parser.peek() {
        None => {}
        Some(b'#') => parser.comment(),
        Some(_) => return Err(parser.stray()),
    }
    Ok(parser.program)
}

pub(super) struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: u32,
    stack: u32,
    limits: &'a Limits,
    program: Program,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, limits: &'a Limits) -> Self {
        let mut program = Program::default();
        // Enough for most formulas, so that these lists are allocated only once.
        program.steps.reserve(8);
        program.places.reserve(8);
        Self { text, bytes: text.as_bytes(), at: 0, depth: 0, stack: 0, limits, program }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn peek_at(&self, offset: usize) -> Option<u8> {
        self.bytes.get(self.at + offset).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The position of the next character. It fits, because the length is checked.
    fn here(&self) -> At {
        self.at as At
    }

    /// Takes the byte if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    /// Skips Unicode's white space.
    fn blanks(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b' ' || (9..=13).contains(&byte) {
                self.at += 1;
            } else if byte >= 0x80 {
                match self.rest().chars().next() {
                    Some(c) if c.is_whitespace() => self.at += c.len_utf8(),
                    _ => return,
                }
            } else {
                return;
            }
        }
    }

    /// Appends a step that takes `takes` values from the stack and puts one there.
    fn emit(&mut self, step: Step, at: At, takes: u32) {
        self.stack = (self.stack + 1).saturating_sub(takes);
        self.program.stack_max = self.program.stack_max.max(self.stack);
        self.program.steps.push(step);
        self.program.places.push(at);
    }

    /// Parses sums of products, and the spaces after them.
    fn expression(&mut self) -> Outcome<()> {
        self.product()?;
        loop {
            let at = self.here();
            let operator = match self.peek() {
                Some(b'+') => Operator::Add,
                Some(b'-') => Operator::Subtract,
                _ => return Ok(()),
            };
            self.at += 1;
            self.product()?;
            self.emit(Step::Binary(operator), at, 2);
        }
    }

    fn product(&mut self) -> Outcome<()> {
        self.signed()?;
        loop {
            let at = self.here();
            let operator = match self.peek() {
                Some(b'*') => Operator::Multiply,
                Some(b'/') => Operator::Divide,
                Some(b'%') => Operator::Remainder,
                _ => return Ok(()),
            };
            self.at += 1;
            self.signed()?;
            self.emit(Step::Binary(operator), at, 2);
        }
    }

    /// Parses any number of signs, then one term: `5 - -+3`.
    fn signed(&mut self) -> Outcome<()> {
        let mut negative = None;
        let mut odd = false;
        loop {
            self.blanks();
            let at = self.here();
            if self.take(b'-') {
                odd = !odd;
                negative = Some(at);
            } else if !self.take(b'+') {
                break;
            }
        }
        self.primary()?;
        self.flavour()?;
        if let (true, Some(at)) = (odd, negative) {
            self.emit(Step::Negate, at, 1);
        }
        Ok(())
    }

    /// Parses the content of brackets that were opened. `inside` reads up to the closing bracket.
    fn nested<T>(&mut self, at: At, inside: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.depth += 1;
        if self.depth > self.limits.depth_max {
            let message = format!("brackets are nested more than {} levels deep", self.limits.depth_max);
            return Err(
                Fault::new(FormulaErrorKind::TooDeep, at, message).hint("Write the formula with fewer brackets.")
            );
        }
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// Parses the closing bracket for the one at `opened`.
    fn close(&mut self, bracket: u8, opened: At) -> Outcome<()> {
        if self.take(bracket) {
            return Ok(());
        }
        if matches!(self.peek(), None | Some(b'#')) {
            let open = if bracket == b'}' { '{' } else { '(' };
            return Err(Fault::new(FormulaErrorKind::Syntax, opened, format!("this `{open}` is never closed"))
                .expected(format!("a `{}`", char::from(bracket)))
                .hint(format!("Add `{}` where it should end.", char::from(bracket))));
        }
        Err(self.stray())
    }

    /// Parses `# text` to the end.
    fn comment(&mut self) {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let text = rest.trim();
        if !text.is_empty() {
            let start = self.at + 1 + (rest.len() - rest.trim_start().len());
            self.program.comment = Some(start as At..(start + text.len()) as At);
        }
    }
}
