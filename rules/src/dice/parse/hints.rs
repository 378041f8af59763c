//! The parser's error messages, with hints for what people and models commonly write by mistake.
//!
//! This module does not decide whether a text is a formula. The parser calls it after it has failed. To add a hint, add a
//! line to a table or an arm below, and a row to `tests/refusals.rs`.

use std::borrow::Cow;

use super::Parser;
use crate::dice::{
    error::{Fault, FormulaErrorKind},
    function::Function,
};

type Text = Cow<'static, str>;

/// Modifiers of other dice languages.
const OTHER_MODIFIERS: [(&str, &str); 18] = [
    ("advantage", "For advantage write 2d20kh."),
    ("adv", "For advantage write 2d20kh."),
    ("disadvantage", "For disadvantage write 2d20kl."),
    ("dis", "For disadvantage write 2d20kl."),
    ("!p", "Penetrating dice are not supported. Dice explode with `x`: 3d6x."),
    ("!!", "Compounding dice are not supported. Dice explode with `x`: 3d6x."),
    ("!", "Dice explode with `x`: 3d6x, 3d6x>=5, or once with `xo`."),
    (">=", "To count successes write cs>=5."),
    ("<=", "To count successes write cs<=5."),
    (">", "To count successes write cs>5."),
    ("<", "To count successes write cs<5."),
    ("=", "To count successes write cs=5."),
    ("o", "`r` rerolls once and `rr` repeatedly."),
    ("e", "Dice explode with `x`: 3d6x, 3d6x>=5, or once with `xo`."),
    ("p", "To drop dice write dl2 (lowest) or dh2 (highest)."),
    ("mi", "Write min3: each die counts as 3 or more."),
    ("ma", "Write max5: each die counts as 5 or less."),
    ("f", "Count failures with cf<=1, deduct them with df<=1."),
];

/// What people write instead of an operator.
const OTHER_OPERATORS: [(&str, &str); 12] = [
    ("**", "Write pow(a, b)."),
    ("^", "Write pow(a, b)."),
    ("//", "Write floor(a / b)."),
    ("\u{2212}", "Write the minus sign as -."),
    ("\u{2013}", "Write the minus sign as -."),
    ("\u{d7}", "Write the multiplication sign as *."),
    ("\u{f7}", "Write the division sign as /."),
    ("(", "Write the multiplication out: 2 * (3 + 4)."),
    ("{", "Write an operator before the pool: 2 + {1d6, 1d8}kh."),
    ("@", "Write an operator before the variable: 1d20 + @prof."),
    (",", "Commas are only allowed between the arguments of a function or the members of a pool."),
    ("$", "A formula can only contain numbers, dice, operators and functions."),
];

const COMMANDS: &str = "Leave the command out and send only the formula, such as 1d20 + 5.";

/// The first entry of a table that the text begins with, in any case.
fn look_up(table: &[(&str, &'static str)], text: &str) -> Option<Text> {
    let begins = |word: &str| text.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word));
    table.iter().find(|(word, _)| begins(word)).map(|(_, hint)| Cow::Borrowed(*hint))
}

/// A character for a message: itself if it is visible.
fn show(character: char) -> String {
    let invisible = character.is_control()
        || character.is_whitespace()
        || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    if invisible { format!("the invisible character U+{:04X}", u32::from(character)) } else { format!("`{character}`") }
}

impl Parser<'_> {
    fn syntax(&self, message: impl Into<Text>) -> Box<Fault> {
        Fault::new(FormulaErrorKind::Syntax, self.here(), message)
    }

    /// The error if a term should begin here.
    #[cold]
    pub(super) fn missing_term(&self) -> Box<Fault> {
        const TERM: &str = "a number, dice, a variable, a function or an opening bracket";
        let Some(character) = self.rest().chars().next().filter(|c| *c != '#') else {
            return self
                .syntax("the formula is incomplete")
                .expected(TERM)
                .hint("Write the missing term, or remove the operator before it.");
        };
        let fault = self.syntax(format!("{} is not allowed here", show(character))).expected(TERM);
        match character {
            '/' | '!' if self.text.trim_start().len() == self.rest().len() => fault.hint(COMMANDS),
            '*' if self.bytes.get(self.at.wrapping_sub(1)) == Some(&b'*') => fault.hint("Write pow(a, b)."),
            '/' if self.bytes.get(self.at.wrapping_sub(1)) == Some(&b'/') => fault.hint("Write floor(a / b)."),
            '.' if matches!(self.peek_at(1), Some(b'0'..=b'9')) => {
                fault.hint("Write a digit before the point: 0.5 instead of `.5`.")
            }
            '[' if self.peek_at(1) == Some(b'[') => fault.hint("Write the formula without [[ ]]."),
            '[' => fault.hint("A flavour follows its term: 1d8[fire]."),
            ')' | '}' | ',' => fault.hint("Something is missing before it."),
            '"' | '\'' | '`' => fault.hint("Write the formula without quotes; text goes into [flavour] or after #."),
            '\u{2212}' | '\u{2013}' => fault.hint("Write the minus sign as -."),
            '\u{feff}' => fault.hint("Remove the byte order mark."),
            _ => fault,
        }
    }

    /// The error if something follows a whole term that can neither continue nor end it.
    #[cold]
    pub(super) fn stray(&self) -> Box<Fault> {
        let rest = self.rest();
        let Some(character) = rest.chars().next() else {
            return self.syntax("the formula is incomplete").expected("an operator or a closing bracket");
        };
        let fault = self.syntax(format!("{} is not allowed here", show(character)));
        let fault = fault.expected("an operator, or the end of the formula");
        let hint = match character {
            ')' | '}' => Some(Cow::Borrowed("It has no opening bracket: remove it.")),
            ']' => Some(Cow::Borrowed("It has no opening bracket: remove it, or write 1d4[fire].")),
            '.' => Some(Cow::Borrowed("A number can have only one point, with digits on both sides.")),
            '[' => Some(Cow::Borrowed("A flavour follows its term: 1d8[fire].")),
            '"' | '\'' | '`' => Some(Cow::Borrowed("Text goes into [flavour] after a term, or after # at the end.")),
            _ => look_up(&OTHER_OPERATORS, rest).or_else(|| self.stray_word(character)),
        };
        match hint {
            Some(hint) => fault.hint(hint),
            None => fault,
        }
    }

    /// A hint for a word or a number after a whole term.
    fn stray_word(&self, character: char) -> Option<Text> {
        let spaced = self.bytes.get(self.at.wrapping_sub(1)).is_some_and(u8::is_ascii_whitespace);
        if look_up(&[("adv", ""), ("dis", "")], self.rest()).is_some() {
            return look_up(&OTHER_MODIFIERS, self.rest());
        }
        if matches!(character, 'd' | 'D') {
            return Some(if spaced {
                "Write dice without spaces: 2d10, (1 + 1)d10.".into()
            } else {
                "A variable or a flavour is not allowed before `d`: write (@prof)d6, 1d6[fire].".into()
            });
        }
        if matches!(character, '<' | '>' | '=' | '!') {
            return look_up(&OTHER_MODIFIERS, self.rest())
                .map(|hint| if spaced { format!("{hint} It follows the dice without a space.").into() } else { hint });
        }
        if !character.is_alphanumeric() {
            return None;
        }
        if matches!(character, 'e' | 'E') && !spaced {
            return Some("Write the number out: 1e3 is 1000.".into());
        }
        let modifier = crate::dice::modifier::Name::read(self.rest().as_bytes()).is_some();
        Some(if modifier && spaced {
            "Modifiers follow their dice without a space: 4d6kh3. Text goes into [flavour] or after #.".into()
        } else {
            "Text goes into [flavour] after a term, or after # at the end.".into()
        })
    }

    /// The error for a word without a bracket.
    #[cold]
    pub(super) fn bare_name(&self, name: &str) -> Box<Fault> {
        if name.eq_ignore_ascii_case("d") {
            return self.missing_faces_at(self.at + 1);
        }
        let fault = self.syntax(format!("the word `{}` is not a dice term, a number or a function", clip(name)));
        let fault = fault.expected("a number, dice, a variable or a function");
        if ["r", "roll", "gmr", "gmroll", "sr", "br"].iter().any(|c| name.eq_ignore_ascii_case(c)) {
            return fault.hint(COMMANDS);
        }
        match look_up(&[("adv", "For advantage write 2d20kh."), ("dis", "For disadvantage write 2d20kl.")], name) {
            Some(hint) => fault.hint(hint),
            None => fault.hint(
                "Write a character's value with @, such as @abilities.dex.mod; text goes into [flavour] or after #.",
            ),
        }
    }

    /// The error for `name(` with an unknown name.
    #[cold]
    pub(super) fn unknown_function(&self, name: &str) -> Box<Fault> {
        let message = format!("there is no function `{}`", clip(name));
        let fault = Fault::new(FormulaErrorKind::UnknownFunction, self.here(), message)
            .expected("a function such as floor, ceil, round, abs, min, max or clamp");
        if name == "random" {
            return fault.hint("Roll a die instead: every random number is a die.");
        }
        match Function::find_any_case(name) {
            Some(right) => fault.hint(format!("Names are case-sensitive: write {right}.")),
            None => fault,
        }
    }

    /// The error for a `d` without faces.
    #[cold]
    pub(super) fn missing_faces(&self) -> Box<Fault> {
        self.missing_faces_at(self.at)
    }

    fn missing_faces_at(&self, at: usize) -> Box<Fault> {
        let rest = self.text.get(at..).unwrap_or_default();
        let fault = Fault::new(FormulaErrorKind::Faces, at as u32, "the number of faces is missing")
            .expected("a number of faces, `%`, `F`, or an expression in brackets");
        let after_blanks = rest.trim_start();
        if after_blanks.len() < rest.len() && after_blanks.starts_with(|c: char| c.is_ascii_digit()) {
            return fault.hint("Write dice without spaces: 2d10.");
        }
        match after_blanks.chars().next() {
            Some('-') => fault.hint("A die has at least 1 face."),
            Some(c) if c.is_ascii_alphabetic() => fault.hint("Letters after `d` are F (Fate dice) and c (coins)."),
            _ => fault.hint("Write something like 1d20."),
        }
    }

    /// The error for an unknown modifier directly after dice or a pool.
    #[cold]
    pub(super) fn unknown_modifier(&self) -> Box<Fault> {
        let rest = self.rest();
        let length = rest.bytes().take_while(|b| b.is_ascii_alphabetic() || b"!<>=".contains(b)).count();
        let word = clip(rest.get(..length.max(1)).unwrap_or_default());
        let fault = Fault::new(FormulaErrorKind::Modifier, self.here(), format!("`{word}` is not a modifier"))
            .expected("a modifier such as kh, kl, dl, r, x, cs>=5 or min2, an operator, or the end");
        match look_up(&OTHER_MODIFIERS, rest) {
            Some(hint) => fault.hint(hint),
            None => fault.hint("Text goes into [flavour] after a term, or after # at the end."),
        }
    }
}

/// The beginning of a word, because an error must not repeat a long text.
fn clip(word: &str) -> &str {
    word.char_indices().nth(24).map_or(word, |(end, _)| word.get(..end).unwrap_or(word))
}
