//! `/w NAME …` and `/whisper NAME …` at the table: a message only to a player's character or, from a player, to the game master.
//!
//! A whisper must never become public by mistake: if the name is unknown, it is rejected, and the error lists who can
//! be whispered to.

use base::{
    error::{Error, Result},
    fold::fold,
};
use world::table::Person;

/// How a whisper begins.
const COMMANDS: [&str; 2] = ["/whisper", "/w"];
/// The names for the game master.
const MASTERS: [&str; 4] = ["gm", "dm", "game master", "the game master"];
/// The most colons and commas in a word at which a name may end.
const MARKS_TRIED: usize = 8;
/// The most names that an error lists.
const NAMED_MAX: usize = 20;

/// The text after the command, if this is a whisper.
#[must_use]
pub(crate) fn parse(text: &str) -> Option<&str> {
    super::command::rest(text, &COMMANDS)
}

/// Whom a whisper is for (`gm`, or the id of a character), and its words. `others` are the characters who can be whispered to, and `to_master`
/// is whether the game master can.
///
/// # Errors
/// `validation_failed` if the name is not of somebody who can be whispered to, or if there is no text.
pub(crate) fn addressed<'t>(others: &[Person], to_master: bool, rest: &'t str) -> Result<(String, &'t str)> {
    let masters = MASTERS.iter().filter(|_| to_master).map(|name| (*name, "gm".to_owned()));
    let slugs = others.iter().map(|l| (l.slug.as_str(), l.id.to_string()));
    let names = others.iter().map(|l| (l.name.as_str(), l.id.to_string()));
    // The longest match wins: `Anna Maria` is not `Anna`. If a name and a slug have the same length, the name wins.
    let found = slugs
        .chain(names)
        .chain(masters)
        .filter_map(|(name, id)| Some((name.len(), id, behind(rest, name)?)))
        .max_by_key(|(length, ..)| *length);
    let Some((length, to, said)) = found else { return Err(nobody(others, to_master)) };
    let is_shared = |l: &&Person| l.name.len() == length && behind(rest, &l.name).is_some();
    if to != "gm" && others.iter().filter(is_shared).count() > 1 {
        let slugs: Vec<&str> = others.iter().filter(is_shared).map(|l| l.slug.as_str()).collect();
        return Err(refusal(format!(
            "Several characters have this name. Write one of these instead: {}.",
            slugs.join(" or ")
        )));
    }
    if said.is_empty() {
        return Err(refusal("Write your message after the name.".to_owned()));
    }
    Ok((to, said))
}

/// The text after a name. The name may be in quotes and may be followed by a colon.
fn behind<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let wanted = fold(name);
    if let Some(quoted) = text.strip_prefix('"') {
        let (said, rest) = quoted.split_once('"')?;
        return (fold(said.trim()) == wanted).then(|| rest.trim_start_matches(':').trim());
    }
    // A name that is typed otherwise can have another length, but it has as many words.
    let mut was_space = true;
    let starts =
        text.char_indices().filter(|(_, c)| std::mem::replace(&mut was_space, c.is_whitespace()) && !was_space);
    let (begin, _) = { starts }.nth(name.split_whitespace().count().checked_sub(1)?)?;
    let last = text.get(begin..)?.split(char::is_whitespace).next()?;
    let marks = last.match_indices([':', ',']).map(|(at, _)| at).take(MARKS_TRIED).chain([last.len()]);
    let (_, rest) = marks.filter_map(|at| text.split_at_checked(begin + at)).find(|(head, _)| fold(head) == wanted)?;
    let ends = rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || matches!(c, ':' | ','));
    ends.then(|| rest.trim_start_matches([':', ',']).trim())
}

fn nobody(others: &[Person], to_master: bool) -> Error {
    let mut names: Vec<&str> = others.iter().take(NAMED_MAX).map(|l| l.name.as_str()).collect();
    if to_master {
        names.push("gm");
    }
    let more = if others.len() > NAMED_MAX { " and others" } else { "" };
    let whom = match names.is_empty() {
        true => "There is nobody to whisper to.".to_owned(),
        false => format!("You can whisper to {}{more}: write /w NAME and your message.", names.join(", ")),
    };
    refusal(format!("Your whisper was not sent. {whom} You can only speak aloud to NPCs."))
}

fn refusal(message: String) -> Error {
    Error::invalid("/text", "invalid_value", message)
}
