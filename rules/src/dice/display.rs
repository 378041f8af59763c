//! Writes a formula in its canonical form: `1d20 + 5`, dice as short as possible, without unnecessary brackets.

use super::{
    error::At,
    modifier::{Modifier, Name, Operand},
    program::{Operator, Pool, Program, Step, Term, part},
    sides::DieKind,
};

/// A part that is already written, and its precedence.
struct Piece {
    text: String,
    precedence: u8,
}

/// Signs bind more strongly than operators, and whole terms more strongly than signs.
const SIGN: u8 = 3;
const TERM: u8 = 4;
/// A term with a flavour or brackets. Only an operator may follow.
const CLOSED: u8 = 5;

impl Piece {
    /// The text, in brackets unless it binds at least this strongly.
    fn at_least(self, precedence: u8) -> String {
        if self.precedence >= precedence { self.text } else { format!("({})", self.text) }
    }
}

/// Writes a program. `source` is the text that it was parsed from. With `flavours`, the flavours of its terms are written too.
pub(super) fn write(program: &Program, source: &str, flavours: bool) -> String {
    let mut stack: Vec<Piece> = Vec::new();
    for step in &program.steps {
        let piece = match *step {
            Step::Number(number) => Piece { text: number.to_string(), precedence: TERM },
            Step::Variable(index) => {
                let name = slice(source, program.variables.get(index as usize));
                Piece { text: format!("@{name}"), precedence: TERM }
            }
            Step::Negate => {
                let text = pop(&mut stack).at_least(TERM);
                Piece { text: format!("-{text}"), precedence: SIGN }
            }
            Step::Binary(operator) => binary(operator, &mut stack),
            Step::Call(function, arguments) => {
                let list = take(&mut stack, arguments as usize);
                Piece { text: format!("{}({})", function.name(), join(list)), precedence: TERM }
            }
            Step::Dice(index) => match program.terms.get(index as usize) {
                Some(term) => dice(program, term, &mut stack),
                None => continue,
            },
            Step::Pool(index) => match program.pools.get(index as usize) {
                Some(one) => pool(program, one, &mut stack),
                None => continue,
            },
            Step::Flavour(_) if !flavours => continue,
            Step::Flavour(index) => {
                let piece = pop(&mut stack);
                // A second flavour needs brackets around the first.
                let inner = if piece.precedence == CLOSED { format!("({})", piece.text) } else { piece.at_least(TERM) };
                let text = slice(source, program.flavours.get(index as usize)).trim();
                Piece { text: format!("{inner}[{text}]"), precedence: CLOSED }
            }
        };
        stack.push(piece);
    }
    pop(&mut stack).text
}

fn slice<'a>(source: &'a str, range: Option<&std::ops::Range<At>>) -> &'a str {
    range.and_then(|r| source.get(r.start as usize..r.end as usize)).unwrap_or_default()
}

fn pop(stack: &mut Vec<Piece>) -> Piece {
    stack.pop().unwrap_or(Piece { text: String::new(), precedence: TERM })
}

fn take(stack: &mut Vec<Piece>, count: usize) -> Vec<Piece> {
    stack.split_off(stack.len().saturating_sub(count))
}

fn join(pieces: Vec<Piece>) -> String {
    pieces.into_iter().map(|piece| piece.text).collect::<Vec<_>>().join(", ")
}

fn binary(operator: Operator, stack: &mut Vec<Piece>) -> Piece {
    let right = pop(stack).at_least(operator.precedence() + 1);
    let left = pop(stack);
    // Append to the left side, so that a long sum is written in linear time.
    let mut text = left.at_least(operator.precedence());
    text.push(' ');
    text.push(operator.sign());
    text.push(' ');
    text.push_str(&right);
    Piece { text, precedence: operator.precedence() }
}

/// The computed numbers of a term or pool, in order.
struct Computed(std::vec::IntoIter<Piece>);

impl Computed {
    fn write(&mut self, operand: Operand, text: &mut String) {
        match operand {
            Operand::Value(number) => text.push_str(&number.to_string()),
            Operand::Stack => {
                let inner = self.0.next().map(|piece| piece.text).unwrap_or_default();
                text.push_str(&format!("({inner})"));
            }
        }
    }
}

fn dice(program: &Program, term: &Term, stack: &mut Vec<Piece>) -> Piece {
    let mut computed = Computed(take(stack, term.computed(program)).into_iter());
    let mut text = String::new();
    computed.write(term.count, &mut text);
    text.push('d');
    match term.kind {
        DieKind::Standard => computed.write(term.faces, &mut text),
        DieKind::Fate => text.push('F'),
        DieKind::Coin => text.push('c'),
    }
    modifiers(part(&program.modifiers, &term.modifiers), &mut computed, &mut text);
    Piece { text, precedence: TERM }
}

fn pool(program: &Program, pool: &Pool, stack: &mut Vec<Piece>) -> Piece {
    let list = part(&program.modifiers, &pool.modifiers);
    let mut computed = Computed(take(stack, list.iter().map(Modifier::computed).sum()).into_iter());
    let members = take(stack, pool.members as usize);
    let mut text = format!("{{{}}}", join(members));
    modifiers(list, &mut computed, &mut text);
    Piece { text, precedence: TERM }
}

fn modifiers(list: &[Modifier], computed: &mut Computed, text: &mut String) {
    for modifier in list {
        text.push_str(match modifier.name {
            // Use one spelling for each meaning.
            Name::Keep => Name::KeepHighest.text(),
            Name::Drop => Name::DropLowest.text(),
            name => name.text(),
        });
        if let Some(limit) = modifier.limit {
            computed.write(limit, text);
        }
        text.push_str(modifier.comparison.map_or("", super::modifier::Comparison::text));
        if let Some(operand) = modifier.operand {
            computed.write(operand, text);
        }
    }
}
