//! What people tell models about an NPC, an owner or a campaign: instructions, notes, example dialogue and greetings.
//!
//! Somebody with the scope `write` wrote them, so models may follow them. A stranger wrote the instructions of a file: [`draft`] keeps
//! them apart until a person accepts them.

use entity::shapes::{AuthorsNote, PendingInstructions};
use serde_json::{Map, Value};

/// The most characters of a text.
pub const TEXT_CHARS_MAX: usize = 20_000;
/// The most greetings, and the most characters of all of them.
pub const GREETINGS_MAX: usize = 50;
pub const GREETINGS_CHARS_MAX: usize = 100_000;
/// The most messages that may stand after an author's note.
pub const DEPTH_MAX: u32 = 100;

/// The members that are instructions to a model. A file cannot set them.
const INSTRUCTIONS: [&str; 3] = ["instructions", "post_history_instructions", "authors_note"];
/// The member with the instructions of a file.
const PENDING: &str = "pending_instructions";

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

/// Whether a draft can be stored. Its macros are checked when somebody accepts it.
///
/// # Errors
/// A sentence that says what to change.
pub fn pending(pending: &Option<PendingInstructions>, _: &()) -> garde::Result {
    let Some(PendingInstructions { instructions, post_history_instructions, authors_note }) = pending else {
        return Ok(());
    };
    let texts =
        [instructions.as_ref(), post_history_instructions.as_ref(), authors_note.as_ref().map(|note| &note.text)];
    if authors_note.as_ref().is_some_and(|note| note.depth > DEPTH_MAX) {
        return Err(garde::Error::new(format!("`depth` must be from 0 to {DEPTH_MAX}")));
    }
    texts.into_iter().flatten().try_for_each(|text| is_short(text))
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

/// Moves the instructions of an imported row into a draft. Instructions that the stored row already has do not go into the draft.
pub fn draft(members: &mut Map<String, Value>, stored: Option<&Map<String, Value>>) {
    let own = |name: &str| stored.and_then(|stored| stored.get(name));
    let mut pending = match members.get(PENDING) {
        Some(Value::Object(pending)) => pending.clone(),
        _ => Map::new(),
    };
    let was_empty = pending.is_empty();
    for name in INSTRUCTIONS {
        let is_told = members.get(name).is_some_and(|value| !value.is_null() && *value != "");
        let has_own = own(name).is_some_and(|value| !value.is_null() && *value != "");
        if !is_told && has_own {
            // A file takes nothing away that a person wrote or accepted.
            members.remove(name);
        }
        if is_told
            && members.get(name) != own(name)
            && let Some(value) = members.remove(name)
        {
            pending.insert(name.to_owned(), value);
        }
    }
    pending.retain(|name, value| !value.is_null() && own(name) != Some(value));
    if !pending.is_empty() {
        members.insert(PENDING.to_owned(), Value::Object(pending));
    } else if !was_empty {
        members.insert(PENDING.to_owned(), Value::Null);
    }
}

/// The changes that accept a row's draft, as a merge patch. None without a draft.
#[must_use]
pub fn accepted(row: &Value) -> Option<Value> {
    let pending = row.get(PENDING)?.as_object()?;
    let mut patch: Map<String, Value> =
        INSTRUCTIONS.iter().filter_map(|name| Some(((*name).to_owned(), pending.get(*name)?.clone()))).collect();
    patch.insert(PENDING.to_owned(), Value::Null);
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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

    #[test]
    fn a_files_instructions_are_a_draft_unless_they_were_accepted() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        let drafted = |members: Value, stored: Option<Value>| {
            let mut members = object(members);
            draft(&mut members, stored.map(object).as_ref());
            Value::Object(members)
        };
        let told = json!({ "name": "Ann", "instructions": "Be brief.", "authors_note": null });
        let pending =
            json!({ "name": "Ann", "authors_note": null, "pending_instructions": { "instructions": "Be brief." } });
        assert_eq!(drafted(told.clone(), None), pending);
        assert_eq!(drafted(told.clone(), Some(json!({ "instructions": "" }))), pending);
        assert_eq!(drafted(told.clone(), Some(json!({ "instructions": "Be brief." }))), told);
        let of_card = json!({ "pending_instructions": { "instructions": "Be brief." } });
        assert_eq!(drafted(of_card.clone(), None), of_card);
        let after = drafted(of_card, Some(json!({ "instructions": "Be brief." })));
        assert_eq!(after, json!({ "pending_instructions": null }));
        assert_eq!(drafted(json!({ "instructions": "" }), None), json!({ "instructions": "" }));
        assert_eq!(drafted(json!({ "instructions": "" }), Some(json!({ "instructions": "No gore." }))), json!({}));
    }
}
