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

/// Who can be whispered to, and who is there besides.
pub(crate) struct Around<'a> {
    /// Characters.
    pub(crate) others: &'a [Person],
    /// NPCs. A name that may mean one of them is not taken for somebody else's.
    pub(crate) npcs: &'a [Person],
    /// Whether the game master can be whispered to.
    pub(crate) has_master: bool,
}

/// Whom a whisper is for (`gm`, or the id of a character), and its words.
///
/// # Errors
/// `validation_failed` if the name is not of somebody who can be whispered to, or if there is no text.
pub(crate) fn addressed<'t>(around: &Around<'_>, rest: &'t str) -> Result<(String, &'t str)> {
    let Around { others, npcs, has_master } = *around;
    let masters = MASTERS.iter().filter(|_| has_master);
    let masters = masters.map(|name| Named { id: "gm".to_owned(), slug: "gm", name, is_title: true });
    let characters = others.iter().map(|person| of(person, person.id.to_string()));
    let people: Vec<Named<'_>> =
        characters.chain(npcs.iter().map(|npc| of(npc, String::new()))).chain(masters).collect();
    match named(&people, rest) {
        Ok((person, _)) if person.id.is_empty() => Err(nobody(around)),
        Ok((_, "")) => Err(refusal("Write your message after the name.".to_owned())),
        Ok((person, said)) => Ok((person.id.clone(), said)),
        Err(Misnamed::SameName(slugs)) => Err(refusal(format!(
            "Your whisper was not sent: several people have this name. Write one of these instead: {}.",
            slugs.join(" or ")
        ))),
        Err(Misnamed::SameBeginning(mut names)) => {
            names.truncate(NAMED_MAX);
            Err(refusal(format!(
                "Your whisper was not sent: several names begin with that. Write more of the one you mean: {}.",
                names.join(", ")
            )))
        }
        Err(Misnamed::Nobody) => Err(nobody(around)),
    }
}

fn of(person: &Person, id: String) -> Named<'_> {
    Named { id, slug: &person.slug, name: &person.name, is_title: false }
}

fn nobody(&Around { others, has_master, .. }: &Around<'_>) -> Error {
    let mut names: Vec<&str> = others.iter().take(NAMED_MAX).map(|l| l.name.as_str()).collect();
    if has_master {
        names.push("gm");
    }
    let more = if others.len() > NAMED_MAX { " and others" } else { "" };
    let whom = match names.is_empty() {
        true => "There is nobody to whisper to.".to_owned(),
        false => format!("You can whisper to {}{more}: write /w NAME and your message.", names.join(", ")),
    };
    refusal(format!("Your whisper was not sent. {whom} You can only speak aloud to NPCs."))
}
