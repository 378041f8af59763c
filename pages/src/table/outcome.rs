//! What the game tells, with what came of the dice made to stand out: the total of a roll, and whether it hit or saved.

use std::fmt::{self, Display, Formatter};

use askama::filters::{Html, HtmlSafe, escape};

/// What came of a roll, as the log of a fight says it.
const OUTCOMES: [&str; 6] = ["a critical hit", "a hit", "a miss", "the save succeeds", "the save fails", "dies"];

/// A text of the game as HTML.
pub(crate) struct Told<'a>(pub(crate) &'a str);

impl HtmlSafe for Told<'_> {}

impl Display for Told<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (mut text, mut at) = (self.0, 0);
        loop {
            if let Some(length) = outstanding(&text[at..]) {
                let (plain, found) = text[..at + length].split_at(at);
                let (Ok(plain), Ok(found)) = (escape(plain, Html), escape(found, Html));
                write!(out, "{plain}<strong>{found}</strong>")?;
                (text, at) = (&text[at + length..], 0);
            }
            // The next word.
            match text[at..].find(' ') {
                Some(space) => at += space + 1,
                None => break,
            }
        }
        let Ok(rest) = escape(text, Html);
        write!(out, "{rest}")
    }
}

/// How many bytes at the beginning of a word stand out: an outcome, or a total whose dice follow in brackets.
fn outstanding(rest: &str) -> Option<usize> {
    let is_whole = |length: usize| !rest[length..].starts_with(char::is_alphanumeric);
    if let Some(outcome) = OUTCOMES.iter().find(|outcome| rest.starts_with(**outcome) && is_whole(outcome.len())) {
        return Some(outcome.len());
    }
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).filter(|digits| *digits > 0)?;
    let is_total = |dice: &str| {
        dice.starts_with(|letter: char| letter.is_ascii_digit())
            || dice.starts_with("advantage:")
            || dice.starts_with("disadvantage:")
    };
    rest[digits..].strip_prefix(" (").is_some_and(is_total).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::Told;

    #[test]
    fn totals_and_outcomes_stand_out_and_nothing_else_is_markup() {
        for (told, shown) in [
            (
                "Lirien attacks Thug with Fire Bolt: 20 (15 + 5), a hit for 5 fire damage (1d10: 5). Thug is hurt.",
                "Lirien attacks Thug with Fire Bolt: <strong>20</strong> (15 + 5), <strong>a hit</strong> for 5 fire damage (1d10: 5). Thug is hurt.",
            ),
            (
                "Bo <i> attacks Al: 4 (disadvantage: the lower of 1 and 9, + 3), a miss.",
                "Bo &#60;i&#62; attacks Al: <strong>4</strong> (disadvantage: the lower of 1 and 9, + 3), <strong>a miss</strong>.",
            ),
            ("Alice takes 3 damage (97 of 100 hit points).", "Alice takes 3 damage (97 of 100 hit points)."),
            ("a hitch", "a hitch"),
            ("Ü dies", "Ü <strong>dies</strong>"),
            ("", ""),
        ] {
            assert_eq!(Told(told).to_string(), shown);
        }
    }
}
