//! What a card's author tells the model, and how the character begins to talk. Their macros are filled in when a prompt is built.

use serde_json::{Value, json};

use super::fields::{At, CUT, TEXT_CHARS_MAX};
use crate::{
    guidance,
    interchange::{
        book::{Members, world_info::UNKNOWN_MACRO},
        report::Losses,
        text::{self, string},
    },
};

/// What a draft is.
pub(super) const DRAFT: &str =
    "a draft, unless the NPC has it already: it has no effect, and no model reads it, until somebody accepts it";
/// Why a text is not a text of the NPC.
const NO_END: &str = "a macro in it has no end; the text is kept and exported again, but no model reads it";
/// The member of a card's extensions with the author's note.
pub(super) const DEPTH_PROMPT: &str = "depth_prompt";

/// Reports what happens to the texts of a card whose macros are filled in when a prompt is built.
pub(super) fn tell(data: &Members, at: At, losses: &mut Losses) {
    let mut tell = |path: String, to: &str, text: &str, why: &str| {
        if text.trim().is_empty() {
        } else if why.is_empty() && storable(text).is_none() {
            losses.approximated(&path, "", NO_END);
        } else if text.chars().count() > TEXT_CHARS_MAX {
            losses.approximated(&path, to, CUT);
        } else if path.ends_with(to) && why.is_empty() {
            losses.kept(&path, to);
        } else {
            losses.mapped(&path, to, why);
        }
        for name in text::unknown_macros(text).iter().filter(|name| !["roll", "original"].contains(&name.as_str())) {
            losses.approximated(&format!("{path} {{{{{name}}}}}"), "", UNKNOWN_MACRO);
        }
    };
    for (field, to, why) in [
        ("scenario", "scenario", ""),
        ("mes_example", "example_dialogue", ""),
        ("first_mes", "greetings", ""),
        ("system_prompt", "pending_instructions", DRAFT),
        ("post_history_instructions", "pending_instructions", DRAFT),
    ] {
        tell(at.path(field), to, string(data, field), why);
    }
    tell(format!("{}/{DEPTH_PROMPT}/prompt", at.path("extensions")), "pending_instructions", note_of(data).0, DRAFT);
    let depth = data.get("extensions").and_then(|extensions| extensions.get(DEPTH_PROMPT)?.get("depth"));
    if depth.is_some_and(|depth| !depth.is_null() && text::number(depth).is_none()) {
        let path = format!("{}/{DEPTH_PROMPT}/depth", at.path("extensions"));
        losses.approximated(&path, "", "this is not a number, so 4 is used");
    }
    let others = text::list(data, "alternate_greetings");
    let all: usize = others.iter().map(|greeting| greeting.chars().count()).sum();
    let path = at.path("alternate_greetings");
    if greetings_of(data).len() < others.iter().filter(|greeting| !greeting.trim().is_empty()).count() {
        losses.approximated(
            &path,
            "greetings",
            "an NPC has at most 50 greetings with 100000 characters, and each macro in them must end; the others are kept and exported again",
        );
    } else if all > 0 {
        losses.mapped(&path, "greetings", "");
    }
}

/// The text as an NPC can store it. None if a macro in it has no end.
fn storable(text: &str) -> Option<&str> {
    let text = text::within(text, TEXT_CHARS_MAX);
    guidance::instructions(text, &()).is_ok().then_some(text)
}

/// The author's note of a card, and how many messages follow it.
fn note_of(data: &Members) -> (&str, i64) {
    let note = data.get("extensions").and_then(|extensions| extensions.get(DEPTH_PROMPT)).and_then(Value::as_object);
    let Some(note) = note else { return ("", 0) };
    let depth = note.get("depth").and_then(|depth| text::whole(depth, 0, guidance::DEPTH_MAX.into()));
    (string(note, "prompt"), depth.unwrap_or(4))
}

/// The greetings of a card: the first message, then its alternatives.
fn greetings_of(data: &Members) -> Vec<&str> {
    let others = text::list(data, "alternate_greetings");
    let all = std::iter::once(string(data, "first_mes")).chain(others);
    let all = all.filter(|greeting| !greeting.trim().is_empty()).filter_map(storable);
    let mut left = guidance::GREETINGS_CHARS_MAX;
    let fit = all.take(guidance::GREETINGS_MAX).take_while(|greeting| {
        let chars = greeting.chars().count();
        let fits = chars <= left;
        left = left.saturating_sub(chars);
        fits
    });
    fit.collect()
}

/// The texts of a card whose macros are filled in when a prompt is built, as members of `NpcInput`.
pub(super) fn of(data: &Members) -> Members {
    let fit = |field: &str| text::within(string(data, field), TEXT_CHARS_MAX);
    let whole = |field: &str| storable(string(data, field)).unwrap_or_default();
    let mut npc = Members::new();
    npc.insert("scenario".to_owned(), whole("scenario").into());
    npc.insert("example_dialogue".to_owned(), whole("mes_example").into());
    npc.insert("greetings".to_owned(), json!(greetings_of(data)));
    let mut pending = Members::new();
    for (field, member) in
        [("system_prompt", "instructions"), ("post_history_instructions", "post_history_instructions")]
    {
        if !string(data, field).trim().is_empty() {
            pending.insert(member.to_owned(), fit(field).into());
        }
    }
    let (note, depth) = note_of(data);
    if !note.trim().is_empty() {
        let note = text::within(note, TEXT_CHARS_MAX);
        pending.insert("authors_note".to_owned(), json!({ "text": note, "depth": depth }));
    }
    if !pending.is_empty() {
        npc.insert("pending_instructions".to_owned(), pending.into());
    }
    npc
}

/// The text of a card's member as an export writes it: that of the NPC, unless the card's own text was only cut off for it.
fn exported<'a>(own: &'a str, kept: &'a str) -> &'a str {
    let is_same = own.is_empty() || text::within(kept, TEXT_CHARS_MAX) == own;
    if is_same && !kept.is_empty() { kept } else { own }
}

/// Writes the texts of [`of`] into a card's data.
pub(super) fn put(npc: &Members, data: &mut Members) {
    for (field, member) in [
        ("scenario", "scenario"),
        ("mes_example", "example_dialogue"),
        ("system_prompt", "instructions"),
        ("post_history_instructions", "post_history_instructions"),
    ] {
        let text = exported(string(npc, member), string(data, field)).to_owned();
        data.insert(field.to_owned(), text.into());
    }
    let greetings = text::list(npc, "greetings");
    if greetings != greetings_of(data) && !greetings.is_empty() {
        // A card whose first message is empty has only alternatives.
        let has_first = data.get("first_mes").is_none_or(|first| first != "");
        let (first, others) = if has_first { greetings.split_at(1) } else { greetings.split_at(0) };
        let (first, others) = (first.concat(), json!(others));
        data.insert("first_mes".to_owned(), first.into());
        data.insert("alternate_greetings".to_owned(), others);
    }
    let note = npc.get("authors_note").and_then(Value::as_object).cloned();
    let extensions = data.entry("extensions").or_insert_with(|| json!({}));
    if !extensions.is_object() {
        *extensions = json!({});
    }
    if let (Some(note), Some(extensions)) = (note, extensions.as_object_mut()) {
        let kept = extensions.entry(DEPTH_PROMPT).or_insert_with(|| json!({ "role": "system" }));
        if let Some(kept) = kept.as_object_mut() {
            let prompt = exported(string(&note, "text"), string(kept, "prompt")).to_owned();
            kept.insert("prompt".to_owned(), prompt.into());
            kept.insert("depth".to_owned(), note.get("depth").cloned().unwrap_or_else(|| json!(4)));
        }
    }
}

/// Removes the texts that the NPC has as its own members. What was cut off for it stays, so that an export gives it back.
pub(super) fn drop_own(data: &mut Members, npc: &Members) {
    let pending = npc.get("pending_instructions").and_then(Value::as_object);
    let drafted = |member: &str| pending.map(|pending| string(pending, member)).unwrap_or_default();
    for (field, own) in [
        ("scenario", string(npc, "scenario")),
        ("mes_example", string(npc, "example_dialogue")),
        ("system_prompt", drafted("instructions")),
        ("post_history_instructions", drafted("post_history_instructions")),
    ] {
        if string(data, field) == own {
            data.remove(field);
        }
    }
    let greetings = text::list(npc, "greetings");
    let others = text::list(data, "alternate_greetings");
    let is_whole = std::iter::once(string(data, "first_mes"))
        .chain(others)
        .filter(|g| !g.is_empty())
        .eq(greetings.iter().copied());
    if is_whole {
        data.remove("alternate_greetings");
        // An empty first message before others is remembered.
        if !string(data, "first_mes").is_empty() || greetings.is_empty() {
            data.remove("first_mes");
        }
    }
    let (note, _) = note_of(data);
    let own = pending.and_then(|pending| pending.get("authors_note")).and_then(Value::as_object);
    if own.is_some_and(|own| string(own, "text") == note)
        && let Some(Value::Object(extensions)) = data.get_mut("extensions")
        && let Some(Value::Object(kept)) = extensions.get_mut(DEPTH_PROMPT)
    {
        kept.remove("prompt");
        kept.remove("depth");
    }
}
