//! What people tell models about an NPC, an owner or a campaign: instructions, notes, example dialogue and greetings.
//!
//! Somebody with the scope `write` wrote them, so models may follow them. A stranger wrote those of a character card: [`draft`] keeps
//! them apart until a person accepts them.

pub mod draft;
pub mod own_words;

use entity::shapes::{AuthorsNote, PendingInstructions};

use crate::actors;

/// The most characters of a text.
pub const TEXT_CHARS_MAX: usize = 20_000;
/// The most greetings, and the most characters of all of them.
pub const GREETINGS_MAX: usize = 50;
pub const GREETINGS_CHARS_MAX: usize = 100_000;
/// The most messages that may stand after an author's note.
pub const DEPTH_MAX: u32 = 100;
/// The highest threshold of a reaction.
const THRESHOLD_MAX: i32 = 1_000_000;

/// Whether a text can be stored: it is not too long, and each macro in it ends.
///
/// # Errors
/// A sentence that says what to change.
pub fn instructions(text: &str, _: &()) -> garde::Result {
    is_short(text)?;
    match open_macro(text) {
        None => Ok(()),
        Some(at) => Err(garde::Error::new(format!("the macro at character {at} has no end: add }}}}"))),
    }
}

/// Whether an author's note can be stored.
///
/// # Errors
/// A sentence that says what to change.
pub fn note(note: &Option<AuthorsNote>, cx: &()) -> garde::Result {
    let Some(AuthorsNote { text, depth }) = note else { return Ok(()) };
    if *depth > DEPTH_MAX {
        return Err(garde::Error::new(format!("`depth` must be from 0 to {DEPTH_MAX}")));
    }
    instructions(text, cx)
}

/// Whether greetings can be stored.
///
/// # Errors
/// A sentence that says what to change.
pub fn greetings(greetings: &[String], cx: &()) -> garde::Result {
    if greetings.len() > GREETINGS_MAX {
        return Err(garde::Error::new(format!("must have at most {GREETINGS_MAX} greetings")));
    }
    if greetings.iter().any(|greeting| greeting.trim().is_empty()) {
        return Err(garde::Error::new("a greeting must not be blank"));
    }
    if greetings.iter().map(|greeting| greeting.chars().count()).sum::<usize>() > GREETINGS_CHARS_MAX {
        return Err(garde::Error::new(format!("must have at most {GREETINGS_CHARS_MAX} characters together")));
    }
    greetings.iter().try_for_each(|greeting| instructions(greeting, cx))
}

/// Whether an NPC's or owner's draft can be stored. Its macros and tools are checked when somebody accepts it.
///
/// # Errors
/// A sentence that says what to change.
pub fn pending(pending: &Option<PendingInstructions>, cx: &()) -> garde::Result {
    let Some(pending) = pending else { return Ok(()) };
    let PendingInstructions {
        instructions,
        post_history_instructions,
        authors_note,
        available_tools,
        reaction_threshold,
        immediate_threshold,
    } = pending;
    if authors_note.as_ref().is_some_and(|note| note.depth > DEPTH_MAX) {
        return Err(garde::Error::new(format!("`depth` must be from 0 to {DEPTH_MAX}")));
    }
    for (name, least, threshold) in
        [("reaction_threshold", 0, reaction_threshold), ("immediate_threshold", 1, immediate_threshold)]
    {
        if threshold.is_some_and(|threshold| !(least..=THRESHOLD_MAX).contains(&threshold)) {
            return Err(garde::Error::new(format!("`{name}` must be from {least} to {THRESHOLD_MAX}")));
        }
    }
    actors::tool_refs(available_tools.as_deref().unwrap_or_default(), cx)?;
    let note = authors_note.as_ref().map(|note| &note.text);
    let texts = [instructions.as_ref(), post_history_instructions.as_ref(), note];
    texts.into_iter().flatten().try_for_each(|text| is_short(text))
}

/// Whether a campaign's draft can be stored. A campaign has no tools and never reacts.
///
/// # Errors
/// A sentence that says what to change.
pub fn pending_of_campaign(draft: &Option<PendingInstructions>, cx: &()) -> garde::Result {
    if draft.as_ref().is_some_and(|draft| {
        draft.available_tools.is_some() || draft.reaction_threshold.is_some() || draft.immediate_threshold.is_some()
    }) {
        return Err(garde::Error::new("a campaign has no tools and no thresholds"));
    }
    pending(draft, cx)
}

fn is_short(text: &str) -> garde::Result {
    if text.len() > TEXT_CHARS_MAX && text.chars().count() > TEXT_CHARS_MAX {
        return Err(garde::Error::new(format!("must have at most {TEXT_CHARS_MAX} characters")));
    }
    Ok(())
}

/// The position, in characters from 1, of a `{{` without a `}}` after it.
fn open_macro(text: &str) -> Option<usize> {
    let last = text.rfind("{{")?;
    let rest = text.get(last..)?;
    (!rest.contains("}}")).then(|| text.get(..last).unwrap_or_default().chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_macro_without_an_end_is_found() {
        for (text, at) in [
            ("", None),
            ("{{char}}", None),
            ("{{outer:{{char}}}}", None),
            ("{ {", None),
            ("ä {{char", Some(3)),
            ("{{char}} {{", Some(10)),
        ] {
            assert_eq!(open_macro(text), at, "{text}");
        }
    }
}
