//! Terms: numbers, brackets, functions, variables, pools, and the flavour after any of them.

use super::Parser;
use crate::dice::{
    error::{At, Fault, FormulaErrorKind, Outcome},
    function::Function,
    modifier::{Modifier, Operand},
    program::{Pool, Step},
};

impl Parser<'_> {
    /// Parses one term without its flavour.
    pub(super) fn primary(&mut self) -> Outcome<()> {
        let at = self.here();
        match self.peek() {
            Some(b'0'..=b'9') => {
                let number = self.number()?;
                match self.peek() {
                    Some(b'd' | b'D') => self.dice(at, Operand::Value(number)),
                    _ => {
                        self.emit(Step::Number(number), at, 0);
                        Ok(())
                    }
                }
            }
            Some(b'd' | b'D') if self.faces_follow(1) => self.dice(at, Operand::Value(1.0)),
            Some(b'(') => {
                self.group()?;
                match self.peek() {
                    Some(b'd' | b'D') => self.dice(at, Operand::Stack),
                    _ => Ok(()),
                }
            }
            Some(b'{') => self.pool(),
            Some(b'@') => self.variable(),
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.call(),
            _ => Err(self.missing_term()),
        }
    }

    /// Whether faces begin `offset` bytes from here.
    pub(super) fn faces_follow(&self, offset: usize) -> bool {
        matches!(self.peek_at(offset), Some(b'0'..=b'9' | b'%' | b'(' | b'@' | b'F' | b'f' | b'C' | b'c'))
    }

    /// Digits, and a fraction after a point.
    pub(super) fn number(&mut self) -> Outcome<f64> {
        let start = self.at;
        let mut whole = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            whole = whole.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        if self.peek() == Some(b'.') {
            if !matches!(self.peek_at(1), Some(b'0'..=b'9')) {
                return Err(Fault::new(FormulaErrorKind::Syntax, self.here(), "a point without digits after it")
                    .expected("a digit")
                    .hint("Write 5 or 5.0, not `5.`."));
            }
            self.at += 1;
            while matches!(self.peek(), Some(b'0'..=b'9')) {
                self.at += 1;
            }
        } else if self.at - start <= 15 {
            return Ok(whole as f64);
        }
        let number: f64 = self.text.get(start..self.at).and_then(|t| t.parse().ok()).unwrap_or(f64::INFINITY);
        if number.is_finite() {
            return Ok(number);
        }
        Err(Fault::new(FormulaErrorKind::NotFinite, start as At, "the number is too large"))
    }

    /// `( … )`.
    pub(super) fn group(&mut self) -> Outcome<()> {
        let at = self.here();
        self.at += 1;
        self.nested(at, |p| {
            p.expression()?;
            p.close(b')', at)
        })
    }

    /// `name( … )`.
    fn call(&mut self) -> Outcome<()> {
        let at = self.here();
        let length = self.rest().bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let name = self.rest().get(..length).unwrap_or_default();
        if self.peek_at(length) != Some(b'(') {
            return Err(self.bare_name(name));
        }
        let Some((function, fewest, most)) = Function::find(name) else {
            return Err(self.unknown_function(name));
        };
        self.at += length;
        let opened = self.here();
        self.at += 1;
        let arguments = self.nested(opened, |p| p.list(b')', opened))?;
        if arguments < u32::from(fewest) || arguments > u32::from(most) {
            let takes = match (fewest, most) {
                (1, 1) => "one argument".to_owned(),
                (a, b) if a == b => format!("{a} arguments"),
                (a, b) => format!("{a} to {b} arguments"),
            };
            let message = format!("`{name}` takes {takes}, but this call has {arguments}");
            return Err(Fault::new(FormulaErrorKind::Arguments, at, message));
        }
        self.emit(Step::Call(function, arguments as u8), at, arguments);
        if matches!(self.peek(), Some(b'd' | b'D')) && self.faces_follow(1) {
            return Err(Fault::new(FormulaErrorKind::Syntax, self.here(), "a function is not allowed before `d`")
                .expected("an operator")
                .hint("Put brackets around the number of dice: (min(2, 3))d6."));
        }
        Ok(())
    }

    /// Parses expressions separated by commas, up to the bracket. Returns their number.
    fn list(&mut self, bracket: u8, opened: At) -> Outcome<u32> {
        let mut count = 0;
        loop {
            self.expression()?;
            count += 1;
            if !self.take(b',') {
                self.close(bracket, opened)?;
                return Ok(count);
            }
        }
    }

    /// `{a, b}` with modifiers.
    fn pool(&mut self) -> Outcome<()> {
        let at = self.here();
        self.at += 1;
        let members = self.nested(at, |p| p.list(b'}', at))?;
        let first = self.program.modifiers.len();
        self.modifiers(None)?;
        let modifiers = first as u32..self.program.modifiers.len() as u32;
        let written = self.program.modifiers.get(first..).unwrap_or_default();
        let computed: usize = written.iter().map(Modifier::computed).sum();
        let actions = if computed == 0 { Some(self.pool_actions(first)?) } else { None };
        let index = self.program.pools.len() as u32;
        self.program.pools.push(Pool { members, modifiers, actions });
        self.emit(Step::Pool(index), at, members + computed as u32);
        Ok(())
    }

    /// `@a.b.c`.
    pub(super) fn variable(&mut self) -> Outcome<()> {
        let at = self.here();
        self.at += 1;
        let start = self.at;
        loop {
            let segment = self.rest().bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
            if segment == 0 {
                return Err(Fault::new(FormulaErrorKind::Syntax, self.here(), "the name of a variable is missing")
                    .expected("a name of letters, digits and `_`")
                    .hint("Write something like @abilities.dex.mod."));
            }
            self.at += segment;
            if !self.take(b'.') {
                break;
            }
        }
        let index = self.program.variables.len() as u32;
        self.program.variables.push(start as At..self.here());
        self.emit(Step::Variable(index), at, 0);
        Ok(())
    }

    /// Parses at most one `[text]`, and the spaces around it.
    pub(super) fn flavour(&mut self) -> Outcome<()> {
        self.blanks();
        let at = self.here();
        if !self.take(b'[') {
            return Ok(());
        }
        let start = self.at;
        let rest = self.rest();
        let length = rest.find(['[', ']']).unwrap_or(rest.len());
        self.at += length;
        match self.peek() {
            Some(b']') if !rest.get(..length).unwrap_or_default().trim().is_empty() => {}
            Some(b']') => {
                return Err(Fault::new(FormulaErrorKind::Syntax, at, "the flavour is empty")
                    .expected("text between `[` and `]`")
                    .hint("Write something like 1d8[fire], or remove the brackets."));
            }
            Some(_) => {
                return Err(Fault::new(FormulaErrorKind::Syntax, self.here(), "a `[` within a flavour")
                    .expected("a `]`")
                    .hint("A flavour is plain text. Write formulas without [[ ]]."));
            }
            None => {
                return Err(Fault::new(FormulaErrorKind::Syntax, at, "this `[` is never closed")
                    .expected("a `]`")
                    .hint("Add `]` after the flavour: 1d4[fire]."));
            }
        }
        let index = self.program.flavours.len() as u32;
        self.program.flavours.push(start as At..self.here());
        self.at += 1;
        self.emit(Step::Flavour(index), at, 1);
        self.blanks();
        if self.peek() == Some(b'[') {
            return Err(Fault::new(FormulaErrorKind::Syntax, self.here(), "a term can have only one flavour")
                .expected("an operator")
                .hint("Put both texts into one: 1d4[cold, magical]."));
        }
        Ok(())
    }
}
