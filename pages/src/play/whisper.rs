//! `/w NAME …` and `/whisper NAME …` at the table: a message only to another player's character or to the game master.
//!
//! A whisper must never become public by mistake: if the name is unknown, it is rejected, and the error lists who can
//! be whispered to.

use entity::message::Author;

use super::table::Seat;
use base::{
    error::{Error, Result},
    fold::fold,
};
use world::{
    messages::service::NewMessage,
    table::{self, Person},
};

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
pub fn parse(text: &str) -> Option<&str> {
    COMMANDS.iter().find_map(|command| {
        let (head, rest) = text.split_at_checked(command.len())?;
        let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
        (head.eq_ignore_ascii_case(command) && ends).then(|| rest.trim())
    })
}

/// The whisper as a message. One statement, in addition to the seat's.
///
/// # Errors
/// `validation_failed` if the name is not of somebody who can be whispered to, or if there is no text.
pub async fn message(seat: &Seat, rest: &str) -> Result<NewMessage> {
    let name = seat.character().await?.name;
    let listeners = table::characters(&seat.tx, seat.campaign).await?;
    let others: Vec<&Person> = listeners.iter().filter(|l| l.id != seat.player).collect();
    let masters = MASTERS.iter().map(|name| (*name, "gm".to_owned()));
    let slugs = others.iter().map(|l| (l.slug.as_str(), l.id.to_string()));
    let names = others.iter().map(|l| (l.name.as_str(), l.id.to_string()));
    // The longest match wins: `Anna Maria` is not `Anna`. If a name and a slug have the same length, the name wins.
    let found = slugs
        .chain(names)
        .chain(masters)
        .filter_map(|(name, id)| Some((name.len(), id, behind(rest, name)?)))
        .max_by_key(|(length, ..)| *length);
    let Some((length, to, said)) = found else { return Err(nobody(&others)) };
    let is_shared = |l: &&&Person| l.name.len() == length && behind(rest, &l.name).is_some();
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
    Ok(NewMessage {
        player_id: Some(seat.player),
        whisper_to: vec![to],
        ..NewMessage::chat(Author::Player, &name, said.to_owned())
    })
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

fn nobody(others: &[&Person]) -> Error {
    let mut names: Vec<&str> = others.iter().take(NAMED_MAX).map(|l| l.name.as_str()).collect();
    names.push("gm");
    let more = if others.len() > NAMED_MAX { " and others" } else { "" };
    refusal(format!(
        "Your whisper was not sent. You can whisper to {}{more}: write /w NAME and your message. You can only speak aloud to NPCs.",
        names.join(", ")
    ))
}

fn refusal(message: String) -> Error {
    Error::invalid("/text", "invalid_value", message)
}
