//! Dice terms: count, faces and modifiers.

use super::Parser;
use crate::dice::{
    error::{At, Fault, FormulaErrorKind, Outcome},
    modifier::{Action, Comparison, Modifier, Name, Numbers, Operand, Shape as Carries, misplaced},
    program::{Plan, SMALL, Shape, Step, Term},
    resolve,
    sides::{DieKind, Sides},
};

impl Parser<'_> {
    /// Parses a term from its `d` on.
    pub(super) fn dice(&mut self, at: At, count: Operand) -> Outcome<()> {
        self.at += 1;
        let faces_at = self.here();
        let (kind, faces) = self.faces()?;
        let first = self.program.modifiers.len();
        self.modifiers(Some(kind))?;
        let modifiers = first as u32..self.program.modifiers.len() as u32;
        let written = self.program.modifiers.get(first..).unwrap_or_default();
        let computed = usize::from(count.is_computed())
            + usize::from(faces.is_computed())
            + written.iter().map(Modifier::computed).sum::<usize>();
        let mut term = Term { at, kind, count, faces, faces_at, modifiers, plan: Plan::Late };
        if let Operand::Value(number) = count {
            self.check_dice_count(number, at)?;
        }
        if computed == 0 {
            term.plan = self.plan(&term, first)?;
        }
        let index = self.program.terms.len() as u32;
        self.program.terms.push(term);
        self.emit(Step::Dice(index), at, computed as u32);
        Ok(())
    }

    /// Checks a written number of dice.
    fn check_dice_count(&mut self, number: f64, at: At) -> Outcome<()> {
        if number == 0.0 {
            return Err(Fault::new(FormulaErrorKind::Count, at, "the number of dice is 0")
                .expected("a number of dice, at least 1")
                .hint("Remove the term, or write at least 1 die."));
        }
        let count = resolve::count(number, at, self.limits)?;
        self.program.dice_written = self.program.dice_written.saturating_add(count);
        if self.program.dice_written > self.limits.dice_per_formula_max {
            return Err(resolve::too_many_dice(at, self.limits));
        }
        Ok(())
    }

    fn faces(&mut self) -> Outcome<(DieKind, Operand)> {
        let standard = |operand| Ok((DieKind::Standard, operand));
        match self.peek() {
            Some(b'0'..=b'9') => {
                let at = self.here();
                let number = self.number()?;
                resolve::faces(number, at, self.limits)?;
                standard(Operand::Value(number))
            }
            Some(b'%') => {
                self.at += 1;
                standard(Operand::Value(100.0))
            }
            Some(b'(') => {
                self.group()?;
                standard(Operand::Stack)
            }
            Some(b'@') => {
                self.variable()?;
                standard(Operand::Stack)
            }
            Some(b'f' | b'F') => {
                self.at += 1;
                Ok((DieKind::Fate, Operand::Value(3.0)))
            }
            Some(b'c' | b'C') => {
                self.at += 1;
                Ok((DieKind::Coin, Operand::Value(2.0)))
            }
            _ => Err(self.missing_faces()),
        }
    }

    /// Parses all modifiers that follow directly. `kind` is the kind of dice before them; `None` after a pool.
    pub(super) fn modifiers(&mut self, kind: Option<DieKind>) -> Outcome<()> {
        let first = self.program.modifiers.len();
        while let Some(byte) = self.peek() {
            if !byte.is_ascii_alphabetic() {
                return if matches!(byte, b'!' | b'<' | b'>' | b'=') { Err(self.unknown_modifier()) } else { Ok(()) };
            }
            let at = self.here();
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some((name, length, carries)) = Name::read(rest).filter(|_| !says_disadvantage(rest)) else {
                return Err(self.unknown_modifier());
            };
            let fits = kind.map_or(name.fits_pools(), |kind| name.fits(kind));
            if !fits {
                // `1d20c`, `4d6e`: report letters that are not a modifier at all as such.
                return Err(if name == Name::Call { self.unknown_modifier() } else { misplaced(name, at, kind) });
            }
            let ended = self.program.modifiers.get(first..).and_then(<[_]>::last);
            if ended.is_some_and(|m| m.name == Name::MarginOfSuccess) {
                return Err(Fault::new(FormulaErrorKind::Modifier, at, "`ms` must be the last modifier of a term")
                    .hint("Write the other modifiers before it: 2d20khms>=12."));
            }
            let before = self.program.modifiers.get(first..).unwrap_or_default();
            if matches!(name, Name::Explode | Name::ExplodeOnce) && before.iter().any(|m| m.name == Name::CountSuccess)
            {
                let (later, name) = (Name::CountSuccess.text(), name.text());
                return Err(Fault::new(
                    FormulaErrorKind::Modifier,
                    at,
                    format!("`{name}` must stand before `{later}`"),
                )
                .hint(format!(
                    "Write `{name}` first, so that the dice it adds are counted too: 5d10{name}{later}>=8."
                )));
            }
            self.at += length;
            let modifier = self.modifier(name, at, carries)?;
            if kind.is_none() && matches!(name, Name::CountSuccess | Name::CountFailure) && modifier.operand.is_none() {
                return Err(incomplete(name, self.here(), "a number to compare with", "{1d20, 1d20}cs>=10"));
            }
            self.program.modifiers.push(modifier);
        }
        Ok(())
    }

    /// Parses what follows a modifier's name.
    fn modifier(&mut self, name: Name, at: At, carries: Carries) -> Outcome<Modifier> {
        let mut modifier = Modifier { at, name, limit: None, comparison: None, operand: None };
        if carries == Carries::Nothing {
            return Ok(modifier);
        }
        modifier.operand = self.operand()?;
        let compared = self.here();
        if matches!(carries, Carries::Test | Carries::LimitedTest | Carries::Margin) {
            modifier.comparison = self.comparison();
        }
        if modifier.comparison.is_some() {
            modifier.limit = modifier.operand.take();
            modifier.operand = self.operand()?;
            if modifier.operand.is_none() {
                let text = format!("{}>=(-1)", name.text());
                return Err(incomplete(name, self.here(), "a number directly after the comparison", &text));
            }
            if modifier.limit.is_some() && carries != Carries::LimitedTest {
                let message = format!("`{}` takes one number", name.text());
                return Err(Fault::new(FormulaErrorKind::Modifier, compared, message)
                    .hint(format!("Write {}>=5.", name.text())));
            }
        }
        let equal = modifier.comparison == Some(Comparison::Equal);
        match carries {
            Carries::Number if modifier.operand.is_none() => {
                let text = if name == Name::Call { "c1".to_owned() } else { format!("{}3", name.text()) };
                Err(incomplete(name, self.here(), "a number", &text))
            }
            Carries::Margin if equal || modifier.operand.is_none() => {
                Err(incomplete(name, compared, "a number, or `<`, `<=`, `>` or `>=` and a number", "ms>=12"))
            }
            _ => Ok(modifier),
        }
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let (comparison, length) = match (self.peek()?, self.peek_at(1)) {
            (b'<', Some(b'=')) => (Comparison::LessOrEqual, 2),
            (b'<', _) => (Comparison::Less, 1),
            (b'>', Some(b'=')) => (Comparison::GreaterOrEqual, 2),
            (b'>', _) => (Comparison::Greater, 1),
            (b'=', _) => (Comparison::Equal, 1),
            _ => return None,
        };
        self.at += length;
        Some(comparison)
    }

    /// Parses a number, an expression in brackets or a variable.
    fn operand(&mut self) -> Outcome<Option<Operand>> {
        match self.peek() {
            Some(b'0'..=b'9') => Ok(Some(Operand::Value(self.number()?))),
            Some(b'(') => {
                self.group()?;
                Ok(Some(Operand::Stack))
            }
            Some(b'@') => {
                self.variable()?;
                Ok(Some(Operand::Stack))
            }
            _ => Ok(None),
        }
    }

    /// Plans how to roll a term without computed numbers.
    fn plan(&mut self, term: &Term, first_modifier: usize) -> Outcome<Plan> {
        let (Operand::Value(count), Operand::Value(faces)) = (term.count, term.faces) else {
            return Ok(Plan::Late);
        };
        let (count, faces) = (count as u32, faces as u32);
        let first = self.program.actions.len();
        let sides = Sides { kind: term.kind, faces };
        self.actions(first_modifier, sides)?;
        let actions = self.program.actions.get(first..).unwrap_or_default();
        let small = count as usize <= SMALL;
        let shape = match actions {
            [] => Shape::Plain,
            [Action::Select { keep, highest, count: n }] if small => {
                let kept = if *keep { (*n).min(count) } else { count.saturating_sub(*n) };
                if keep == highest { Shape::Highest(kept) } else { Shape::Lowest(kept) }
            }
            [Action::Explode { test, limit: u32::MAX, again: true }] if test.comparison == Comparison::Equal => {
                exploding(test.target, sides)
            }
            _ => Shape::General,
        };
        Ok(Plan::Ready { count, faces, first: first as u32, end: self.program.actions.len() as u32, shape })
    }

    pub(super) fn pool_actions(&mut self, first_modifier: usize) -> Outcome<std::ops::Range<u32>> {
        let first = self.program.actions.len();
        self.actions(first_modifier, Sides { kind: DieKind::Standard, faces: 1 })?;
        Ok(first as u32..self.program.actions.len() as u32)
    }

    /// Appends the actions of the modifiers from this one on.
    fn actions(&mut self, first_modifier: usize, sides: Sides) -> Outcome<()> {
        let mut counted = false;
        for modifier in self.program.modifiers.get(first_modifier..).unwrap_or_default() {
            let numbers = Numbers { limit: literal(modifier.limit), operand: literal(modifier.operand) };
            let action = modifier.resolve(numbers, sides, counted)?;
            counted |= matches!(action, Action::Count { .. });
            self.program.actions.push(action);
        }
        Ok(())
    }
}

fn literal(operand: Option<Operand>) -> Option<f64> {
    match operand {
        Some(Operand::Value(number)) => Some(number),
        _ => None,
    }
}

/// Whether the text is `dis`, which would otherwise be read as `d` and something unknown.
fn says_disadvantage(text: &[u8]) -> bool {
    text.get(..3).is_some_and(|t| t.eq_ignore_ascii_case(b"dis"))
}

/// The shape of dice that explode at one number.
fn exploding(target: f64, sides: Sides) -> Shape {
    let (low, high) = sides.span();
    if target.fract() == 0.0 && target >= f64::from(low) && target <= f64::from(high) {
        Shape::Exploding(target as i32)
    } else {
        Shape::General
    }
}

#[cold]
fn incomplete(name: Name, at: At, expected: &'static str, example: &str) -> Box<Fault> {
    Fault::new(FormulaErrorKind::Modifier, at, format!("`{}` is not complete", name.text()))
        .expected(expected)
        .hint(format!("Write something like {example}."))
}
