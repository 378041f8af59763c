//! Replaces names whose meaning is text (`@scale.rogue.sneak-attack` is `3d6`) and names with hyphens, before a formula is parsed.
//!
//! The formula then contains a name's text as if it had been written there, as in Foundry. The text must be a formula of its own, so
//! that no bracket, flavour or comment extends beyond it. A hyphen belongs to a name as far as the name is known: `@sneak-attack` is
//! that name, or else `@sneak` minus `attack`. Unknown names are left for the parser to report. Texts may contain other names, up to
//! [`DEPTH_MAX`] levels deep. The whole formula has the usual limit in bytes at every step, so it cannot grow without end.

use super::{
    error::{At, Fault, FormulaErrorKind, Outcome},
    limits::Limits,
    parse::parse,
};

/// The deepest nesting of texts.
const DEPTH_MAX: u32 = 4;

/// What one of the roller's names stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning<'a> {
    Number(f64),
    /// A formula.
    Text(&'a str),
    /// A value that a formula cannot use, such as a list, null or a boolean. It is an error if a formula uses it.
    Nothing,
}

impl Meaning<'_> {
    /// The number, if the meaning is one.
    #[must_use]
    pub const fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Text(_) | Self::Nothing => None,
        }
    }
}

/// Looks up what one of the roller's names, without the `@`, stands for.
pub type Names<'a> = dyn Fn(&str) -> Option<Meaning<'a>> + 'a;

/// A formula with its names replaced, and the origin of each part.
#[derive(Clone, Debug, Default)]
pub(super) struct Expanded {
    pub(super) text: String,
    /// For each part in order: its first byte here, its first byte in the original formula, and whether it was copied
    /// unchanged.
    parts: Vec<(At, At, bool)>,
}

impl Expanded {
    /// The position in the original formula for a position here. For replaced text this is the name's `@`.
    pub(super) fn origin(&self, at: At) -> At {
        let after = self.parts.partition_point(|(start, ..)| *start <= at);
        match self.parts.get(after.saturating_sub(1)) {
            Some((start, from, true)) => from + (at - start),
            Some((_, from, false)) => *from,
            None => at,
        }
    }
}

/// Replaces a formula's names; `None` if the parser can read it unchanged.
pub(super) fn expand(text: &str, names: &Names<'_>, limits: &Limits) -> Outcome<Option<Expanded>> {
    // The parser rejects a text that is too long, and says how long it may be.
    if !text.contains('@') || text.len() > limits.bytes_max {
        return Ok(None);
    }
    let mut writer = Writer { names, limits, needed: false };
    let expanded = writer.write(text, DEPTH_MAX)?;
    Ok(Some(expanded).filter(|_| writer.needed))
}

struct Writer<'a, 'n> {
    names: &'a Names<'n>,
    limits: &'a Limits,
    /// Whether there is something that the parser cannot read as a name.
    needed: bool,
}

impl<'n> Writer<'_, 'n> {
    fn write(&mut self, text: &str, deeper: u32) -> Outcome<Expanded> {
        let mut out = Expanded::default();
        let mut rest = text;
        while let Some(place) = next_name(rest) {
            let at = (text.len() - rest.len() + place) as At;
            self.copy(&mut out, rest.get(..place).unwrap_or_default(), at - place as At, at)?;
            rest = rest.get(place + 1..).unwrap_or_default();
            let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"_.-".contains(b)).count();
            let Some((name, meaning)) = self.longest_known_name(rest.get(..length).unwrap_or_default()) else {
                self.copy(&mut out, "@", at, at)?;
                continue;
            };
            let value = self.value(name, meaning, at, deeper)?;
            out.parts.push((out.text.len() as At, at, false));
            paste(&mut out.text, &value);
            self.fits(&out, at)?;
            rest = rest.get(name.len()..).unwrap_or_default();
        }
        let from = (text.len() - rest.len()) as At;
        self.copy(&mut out, rest, from, from)?;
        Ok(out)
    }

    fn copy(&self, out: &mut Expanded, text: &str, from: At, at: At) -> Outcome<()> {
        out.parts.push((out.text.len() as At, from, true));
        out.text.push_str(text);
        self.fits(out, at)
    }

    fn fits(&self, out: &Expanded, at: At) -> Outcome<()> {
        if out.text.len() <= self.limits.bytes_max {
            return Ok(());
        }
        let message =
            format!("with its variables filled in, the formula has more than {} bytes", self.limits.bytes_max);
        Err(Fault::new(FormulaErrorKind::TooLong, at, message).hint("Use shorter variables, or split the formula."))
    }

    /// The longest known name, shortened only at hyphens.
    fn longest_known_name<'t>(&self, path: &'t str) -> Option<(&'t str, Meaning<'n>)> {
        let mut name = path;
        loop {
            if name.is_empty() {
                return None;
            }
            if let Some(meaning) = (self.names)(name) {
                return Some((name, meaning));
            }
            name = name.get(..name.rfind('-')?)?;
        }
    }

    fn value(&mut self, name: &str, meaning: Meaning<'_>, at: At, deeper: u32) -> Outcome<String> {
        let fault = |kind, message: String| Fault::new(kind, at, message).expected("a number or a formula");
        self.needed |= name.contains('-');
        let text = match meaning {
            // Brackets keep it one number wherever it is used.
            Meaning::Number(number) => return Ok(format!("({number})")),
            Meaning::Nothing => {
                let message = format!("@{} is neither a number nor a formula", clip(name));
                return Err(fault(FormulaErrorKind::UnknownVariable, message)
                    .hint("Leave the variable out, or give it a number or text such as 2d6."));
            }
            Meaning::Text(text) => text,
        };
        self.needed = true;
        if text.len() > self.limits.bytes_max {
            return Err(fault(
                FormulaErrorKind::TooLong,
                format!("the text of @{} is too long for a formula", clip(name)),
            ));
        }
        let text = text.trim();
        if text.is_empty() {
            // The text of a bonus that nobody filled in.
            return Ok("(0)".to_owned());
        }
        if deeper == 0 {
            let message = format!("variables refer to each other more than {DEPTH_MAX} levels deep");
            return Err(
                fault(FormulaErrorKind::TooDeep, message).hint("Write the formula out, without @ in variables.")
            );
        }
        let inner = self.write(text, deeper - 1).map_err(|mut inner| {
            inner.at = at;
            inner
        })?;
        match parse(&inner.text, self.limits) {
            Ok(program) if program.comment.is_none() && !inner.text.contains('#') => Ok(inner.text),
            Ok(_) => Err(fault(FormulaErrorKind::Syntax, format!("the text of @{} contains a comment", clip(name)))),
            Err(inner) => {
                let message = format!("the text of @{} is not a formula: {}", clip(name), inner.message);
                Err(fault(inner.kind, message))
            }
        }
    }
}

/// The position of the next `@` of a formula, outside of flavours and its comment.
fn next_name(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let found = at + text.get(at..)?.find(['@', '[', '#'])?;
        match text.as_bytes().get(found)? {
            b'@' => return Some(found),
            b'#' => return None,
            _ => at = found + text.get(found..)?.find(']')?,
        }
    }
}

/// Appends a value without merging it with what is there.
fn paste(text: &mut String, value: &str) {
    let before = text.bytes().last().unwrap_or(b' ');
    let whole = value.bytes().all(|b| b.is_ascii_digit());
    let word = text.bytes().rev().take_while(u8::is_ascii_alphanumeric);
    let counts = before == b')' || before.is_ascii_digit() && word.clone().all(|b| b.is_ascii_digit());
    let starts_with_die = value.starts_with(['d', 'D']);
    if before.is_ascii_alphabetic() || b"<>=".contains(&before) {
        // The end of the text is a number of faces, or of a modifier.
        let bare = whole || value.starts_with('(');
        text.push_str(&if bare { value.to_owned() } else { format!("({value})") });
        return;
    }
    if before.is_ascii_digit() && !(counts && starts_with_die) && !value.starts_with('(') {
        // Keep `2` and `3d6` from becoming `23d6`.
        text.push(' ');
    }
    text.push_str(value);
}

/// The beginning of a name, for a message.
fn clip(name: &str) -> &str {
    name.get(..60).unwrap_or(name)
}
