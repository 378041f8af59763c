//! `/w NAME …` at the table: a message only to a player's character or, from a player, to the game master.
//!
//! A whisper must never become public by mistake: if the name is unknown, it is rejected, and the error lists who can
//! be whispered to.

use super::{
    command::refusal,
    name::{Misnamed, Named, named},
};
use base::error::{Error, Result};
use world::table::Person;

/// The names for the game master.
const MASTERS: [&str; 4] = ["gm", "dm", "game master", "the game master"];
/// The most names that an error lists.
const NAMED_MAX: usize = 20;

/// Whom a whisper is for (`gm`, or the id of a character), and its words. `others` are the characters who can be whispered to, and `to_master`
/// is whether the game master can.
///
/// # Errors
/// `validation_failed` if the name is not of somebody who can be whispered to, or if there is no text.
pub(crate) fn addressed<'t>(others: &[Person], to_master: bool, rest: &'t str) -> Result<(String, &'t str)> {
    let masters = MASTERS.iter().filter(|_| to_master).map(|name| Named { id: "gm".to_owned(), slug: "gm", name });
    let others_named = others.iter().map(|l| Named { id: l.id.to_string(), slug: &l.slug, name: &l.name });
    // A character called like the game master is found by the slug.
    let people: Vec<Named<'_>> = others_named.chain(masters).collect();
    match named(&people, rest) {
        Ok((_, "")) => Err(refusal("Write your message after the name.".to_owned())),
        Ok((person, said)) => Ok((person.id.clone(), said)),
        Err(Misnamed::Alike(slugs)) => Err(refusal(format!(
            "Several characters have this name. Write one of these instead: {}.",
            slugs.join(" or ")
        ))),
        Err(Misnamed::Several(names)) => Err(refusal(format!(
            "Your whisper was not sent: several names begin so. Write more of the one you mean: {}.",
            names.join(", ")
        ))),
        Err(Misnamed::Nobody) => Err(nobody(others, to_master)),
    }
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
