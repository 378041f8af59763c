//! Converts character cards, V1 to V3, to NPCs and back.
//!
//! The card's data is stored with the NPC under `extensions.character_card`, so that an export gives back what has no
//! meaning here. What a card tells a model or lets the NPC do (`system_prompt`, `post_history_instructions`, `depth_prompt`, tools,
//! thresholds of reactions) is a draft until somebody accepts it, because a stranger wrote the card. Assets are file names and
//! URLs; none is fetched or stored.

mod fields;
mod speech;

use crate::{guidance::draft, npcs::MEMORY_TOOL};
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use entity::npc;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use self::fields::{At, CUT, TEXT_CHARS_MAX};
use super::{
    book::{self, Book, Members, world_info::UNKNOWN_MACRO, write::Uids},
    charx,
    originals::{self, Originals},
    picture, png,
    report::Losses,
    text::{self, string},
};
use base::{
    error::{Error, Result},
    json,
};

/// The largest size in bytes of the card data that an NPC keeps. Clients' own keys are stored next to it.
const KEPT_BYTES_MAX: usize = 52 * 1024;

/// A card that was read.
#[derive(Debug)]
pub struct Card {
    pub format: &'static str,
    /// Members of `NpcInput`. They include the slug if we wrote the card.
    pub npc: Members,
    /// Members that the card does not set, for a new NPC.
    pub at_first: Members,
    /// Identifies this card. A newer version of the card has the same key.
    pub key: String,
    /// The NPC's original id, if we wrote the card.
    pub id: Option<Uuid>,
    /// The slugs of its owners, if we wrote the card.
    pub owners: Vec<String>,
    pub book: Option<Book>,
}

/// Reads a card: JSON, PNG or CHARX.
///
/// # Errors
/// `bad_request` for invalid JSON, `validation_failed` for an invalid card.
pub fn read(bytes: &[u8], losses: &mut Losses) -> Result<Card> {
    if png::is_png(bytes) {
        let card = in_picture(bytes, losses)?;
        losses.dropped("picture", "the picture itself is not kept; an exported card has a different one");
        return of_value(json::file(&card)?, losses);
    }
    picture::refuse_other_pictures(bytes)?;
    if charx::is_zip(bytes) {
        let (card, others) = charx::card(bytes)?;
        if others > 0 {
            losses.dropped("assets/*", "pictures and sounds are not kept");
        }
        return of_value(json::file(&card)?, losses);
    }
    of_value(json::file(bytes)?, losses)
}

/// Extracts the card's JSON from a picture, preferring `ccv3` over `chara`.
fn in_picture(bytes: &[u8], losses: &mut Losses) -> Result<Vec<u8>> {
    let is_card = |name: &str| ["ccv3", "chara"].iter().any(|card| name.eq_ignore_ascii_case(card));
    let texts = png::texts(bytes, is_card)?;
    let named = |name: &str| texts.sound.iter().find(|(keyword, _)| keyword.eq_ignore_ascii_case(name));
    let (keyword, value) = named("ccv3").or_else(|| named("chara")).ok_or_else(|| {
        let why = if texts.has_damaged {
            "The card in this picture is damaged: the checksum of its text chunk is wrong."
        } else {
            "This picture contains no card: it has no text chunk `chara` or `ccv3`."
        };
        Error::invalid("", "invalid_file", why)
    })?;
    if texts.has_damaged {
        losses.approximated("picture", "", "the checksum of one of its two cards is wrong, so the other one was read");
    }
    if texts.is_damaged_elsewhere {
        losses.approximated("picture", "", "the checksum of a part that is not the card is wrong");
    }
    decode(&value.read()?).ok_or_else(|| {
        Error::invalid("", "invalid_file", format!("The text chunk `{keyword}` of this picture is not base64."))
    })
}

/// Decodes base64 in either alphabet, with or without padding.
fn decode(value: &[u8]) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let value: Vec<u8> = value.iter().copied().filter(|b| !b.is_ascii_whitespace() && *b != 0).collect();
    let alphabet =
        if value.iter().any(|b| matches!(b, b'-' | b'_')) { &alphabet::URL_SAFE } else { &alphabet::STANDARD };
    GeneralPurpose::new(alphabet, config).decode(value).ok()
}

fn of_value(mut value: Value, losses: &mut Losses) -> Result<Card> {
    let originals = without_control_characters(&mut value);
    let Value::Object(mut top) = value else { return Err(no_card()) };
    let spec = string(&top, "spec").to_owned();
    let (format, at, mut data) = match (spec.as_str(), top.remove("data")) {
        ("chara_card_v3", Some(Value::Object(data))) => ("character_card_v3", At("/data"), data),
        ("chara_card_v2", Some(Value::Object(data))) => ("character_card_v2", At("/data"), data),
        ("", None) => {
            let is_card = ["description", "personality", "first_mes"].into_iter().chain(OLDER.map(|(older, _)| older));
            if !is_card.into_iter().any(|name| top.contains_key(name)) {
                return Err(no_card());
            }
            let mut data = std::mem::take(&mut top);
            modernize(&mut data, losses);
            ("character_card_v1", At(""), data)
        }
        _ => return Err(no_card()),
    };
    // Some programs write null for what is not there.
    data.retain(|_, value| !value.is_null());
    text::spell(&mut data, TEXTS);
    if format == "character_card_v3" && string(&top, "spec_version").parse().is_ok_and(|v: f64| v > 3.0) {
        losses.approximated("/spec_version", "", "the card has a newer version and was read as 3.0");
    }
    let name = text::line(string(&data, "name"));
    if name.is_empty() {
        return Err(Error::invalid(at.path("name"), "required", "A card must have a name."));
    }
    match text::is_cut(string(&data, "name")) {
        true => losses.approximated(&at.path("name"), "name", "cut off after 200 characters"),
        false => losses.kept(&at.path("name"), "name"),
    }
    let key = key_of(&name, &data);
    let spoken = called(&name, string(&data, "nickname"));
    let book = match data.remove("character_book") {
        None | Some(Value::Null) => None,
        Some(book) => Some(book::of_card(book, &spoken, losses)?),
    };
    let ours = match data.get_mut("extensions").and_then(Value::as_object_mut).and_then(|e| e.remove("tavernkeep")) {
        Some(Value::Object(ours)) => ours,
        _ => Members::new(),
    };
    tell(&data, at, losses);
    let mut npc = npc_of(&data, Some((at, losses)));
    let id = book::id_of(&ours);
    // A card that came from elsewhere, went out as V3 and comes back is still what it was.
    let first_format = FORMATS.into_iter().find(|name| *name == string(&ours, "format"));
    let owners = ours.get("owners").and_then(Value::as_array).into_iter().flatten();
    let owners = owners.filter_map(Value::as_str).take(50).map(ToOwned::to_owned).collect();
    take_ours(ours, &mut npc, at, losses);
    let mut at_first = Members::new();
    if !npc.contains_key("available_tools") {
        at_first.insert("available_tools".to_owned(), json!([MEMORY_TOOL]));
        losses.approximated(
            &at.path("*"),
            "available_tools",
            "a card has no tools; a new NPC gets `NPC_memorize`, because without it the NPC could not remember anybody",
        );
    }
    let about = book.as_ref().map(|b| b.about.clone());
    // If we wrote the card and nobody added anything, there is nothing to keep.
    let is_ours = npc.contains_key("slug");
    if is_ours {
        data.retain(|_, value| is_filled(value));
    }
    let mut kept = keep(first_format.unwrap_or(format), data, top, about, &npc, at, losses);
    let says = |name: &str| kept.get(name).and_then(Value::as_object).is_some_and(|part| part.values().any(is_filled));
    if !is_ours || says("data") || says("book") || says("beside") || !originals.is_empty() {
        originals.keep(Some(&mut kept), losses);
        npc.insert("extensions".to_owned(), json!({ "character_card": kept }));
    }
    Ok(Card { format, npc, at_first, key, id, owners, book })
}

/// Leaves control characters out of the card's texts. Each entry of its book keeps its own.
fn without_control_characters(card: &mut Value) -> Originals {
    let data = if card.get("data").is_some() { "/data" } else { "" };
    let book = card.pointer_mut(data).and_then(Value::as_object_mut).and_then(|data| data.remove("character_book"));
    let originals = originals::clean(card, "");
    let data = card.pointer_mut(data).and_then(Value::as_object_mut);
    if let (Some(data), Some(book)) = (data, book) {
        data.insert("character_book".to_owned(), book);
    }
    originals
}

const FORMATS: [&str; 3] = ["character_card_v1", "character_card_v2", "character_card_v3"];

/// Members that are texts or lists of texts.
const TEXTS: &[&str] = &[
    "name",
    "nickname",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
    "creator_notes",
    "system_prompt",
    "post_history_instructions",
    "creator",
    "character_version",
    "alternate_greetings",
    "group_only_greetings",
    "tags",
];

/// Members of cards from before V1 (Pygmalion, Text Generation), and what V1 calls them.
const OLDER: [(&str, &str); 7] = [
    ("char_name", "name"),
    ("char_persona", "personality"),
    ("char_greeting", "first_mes"),
    ("world_scenario", "scenario"),
    ("example_dialogue", "mes_example"),
    ("context", "description"),
    ("greeting", "first_mes"),
];

/// Renames older members to V1's. If a card has both, V1's counts.
fn modernize(data: &mut Members, losses: &mut Losses) {
    for (older, name) in OLDER {
        if !is_filled(data.get(name).unwrap_or(&Value::Null))
            && let Some(value) = data.remove(older)
        {
            losses.mapped(&format!("/{older}"), name, "");
            data.insert(name.to_owned(), value);
        } else if data.get(older) == data.get(name) {
            data.remove(older);
        }
    }
}

/// What a card calls its character in its texts: the nickname, or else the name (Character Card V3).
fn called(name: &str, nickname: &str) -> String {
    Some(text::line(nickname)).filter(|nickname| !nickname.is_empty()).unwrap_or_else(|| name.to_owned())
}

/// What an NPC's texts call it: the nickname of the card that it came from, unless it was renamed here; or else its name.
#[must_use]
pub fn called_here(npc: &npc::Model) -> String {
    let card = npc.extensions.0.get("character_card").and_then(|kept| kept.get("data")).and_then(Value::as_object);
    match card.filter(|card| text::line(string(card, "name")) == npc.name) {
        Some(card) => called(&npc.name, string(card, "nickname")),
        None => npc.name.clone(),
    }
}

/// Identifies a card: by its name and its creator, so that a newer version is known again. Cards of one name without a creator may be
/// of different people, so they are told apart by the texts that make the character.
fn key_of(name: &str, data: &Members) -> String {
    let creator = string(data, "creator").trim();
    let by = match creator.is_empty() {
        true => json!(CHARACTER.map(|text| string(data, text).trim())).to_string(),
        false => creator.to_owned(),
    };
    format!("{}:{}", text::within(&slug(name), 40), book::short(&by))
}

/// The texts that make a character: those of V1. What a card tells a model may change.
const CHARACTER: [&str; 5] = ["description", "personality", "scenario", "first_mes", "mes_example"];

fn slug(name: &str) -> String {
    edge::http::resource::slug_of(name, "_").unwrap_or_else(|| book::short(name))
}

fn no_card() -> Error {
    Error::invalid(
        "",
        "invalid_file",
        "This is not a character card. A card has `spec` chara_card_v2 or chara_card_v3 with `data`, or is flat with a description.",
    )
}

fn is_filled(value: &Value) -> bool {
    !matches!(value, Value::Null) && value != "" && *value != json!([]) && *value != json!({})
}

/// Reports what happens to the fields that are not texts of the NPC.
fn tell(data: &Members, at: At, losses: &mut Losses) {
    for (name, value) in data.iter().filter(|(_, value)| is_filled(value)) {
        let path = at.path(name);
        match name.as_str() {
            "name"
            | "description"
            | "personality"
            | "mes_example"
            | "scenario"
            | "first_mes"
            | "alternate_greetings"
            | "system_prompt"
            | "post_history_instructions" => {}
            "group_only_greetings" => {
                losses.approximated(
                    &path,
                    "extensions",
                    "there are no group conversations here; it is kept and exported again",
                );
            }
            "assets" => losses.approximated(
                &path,
                "extensions",
                "pictures and sounds are not fetched; only their names are kept",
            ),
            "extensions" => {
                for name in
                    value.as_object().into_iter().flat_map(|e| e.keys()).filter(|name| *name != speech::DEPTH_PROMPT)
                {
                    losses.carried(&format!("{path}/{name}"));
                }
            }
            _ => losses.carried(&path),
        }
    }
}

/// The texts of the NPC, made from a card's data.
fn npc_of(data: &Members, told: Option<(At, &mut Losses)>) -> Members {
    let name = text::line(string(data, "name"));
    let spoken = called(&name, string(data, "nickname"));
    // One more character than the limit, to notice longer texts.
    let plain = |field: &str| text::plain(string(data, field), &spoken, TEXT_CHARS_MAX + 1);
    let description = plain("description");
    let personality = plain("personality");
    if let Some((at, losses)) = told {
        for (field, to, value) in
            [("description", "description", &description), ("personality", "personality_prompt", &personality)]
        {
            let source = string(data, field);
            let path = at.path(field);
            if value.chars().count() > TEXT_CHARS_MAX {
                losses.approximated(&path, to, CUT);
            } else if source.trim().is_empty() {
            } else if plain(field) != source {
                losses.approximated(&path, to, "macros were filled in: {{char}} is the name, {{user}} the player");
            } else if field == to {
                losses.kept(&path, to);
            } else {
                losses.mapped(&path, to, "");
            }
        }
        for field in ["description", "personality"] {
            for name in text::unknown_macros(string(data, field)) {
                losses.approximated(&format!("{} {{{{{name}}}}}", at.path(field)), "", UNKNOWN_MACRO);
            }
        }
        speech::tell(data, at, losses);
    }
    let mut npc = Members::new();
    npc.insert("name".to_owned(), name.into());
    npc.insert("description".to_owned(), text::within(&description, TEXT_CHARS_MAX).into());
    npc.insert("personality_prompt".to_owned(), text::within(&personality, TEXT_CHARS_MAX).into());
    npc.extend(speech::of(data));
    npc
}

/// Members of an NPC that only cards written by us have.
const OURS: &[&str] = &[
    "race",
    "profession",
    "location",
    "faction",
    "available_tools",
    "stats",
    "disposition",
    "inventory",
    "reaction_threshold",
    "immediate_threshold",
];

/// Takes over the members that only cards written by us have.
fn take_ours(ours: Members, npc: &mut Members, at: At, losses: &mut Losses) {
    for (member, value) in ours.into_iter().filter(|(member, _)| OURS.contains(&member.as_str()) || member == "slug") {
        let path = format!("{}/extensions/tavernkeep/{member}", at.0);
        match draft::waits(&member, &value) {
            true => losses.mapped(&path, draft::PENDING, speech::DRAFT),
            false => losses.kept(&path, &member),
        }
        npc.insert(member, value);
    }
}

/// The card data that an NPC keeps: without the NPC's own texts and, if it is too large, without the largest members.
fn keep(
    format: &'static str,
    mut data: Members,
    top: Members,
    about: Option<Members>,
    npc: &Members,
    at: At,
    losses: &mut Losses,
) -> Members {
    // With a nickname the card's name tells whether the NPC was renamed here.
    if string(&data, "nickname").is_empty() {
        data.remove("name");
    }
    if data.get("description") == npc.get("description") {
        data.remove("description");
    }
    if data.get("personality") == npc.get("personality_prompt") {
        data.remove("personality");
    }
    speech::drop_own(&mut data, npc);
    let size = |value: &Value| serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len());
    for name in text::lighten(&mut data, KEPT_BYTES_MAX) {
        losses.dropped(&at.path(&name), "too large to be kept with the NPC");
    }
    let mut kept = Members::new();
    kept.insert("format".to_owned(), format.into());
    kept.insert("data".to_owned(), data.into());
    // Members that other programs write next to `data`: mostly V1's fields again.
    let known = ["spec", "spec_version", "name", "description", "personality", "scenario", "first_mes", "mes_example"];
    let top: Members = top.into_iter().filter(|(name, _)| !known.contains(&name.as_str())).collect();
    for (name, value) in [("beside", top), ("book", about.unwrap_or_default())] {
        if value.is_empty() {
            continue;
        }
        let value = Value::Object(value);
        if size(&value) <= 4096 {
            kept.insert(name.to_owned(), value);
        } else {
            losses.dropped(
                if name == "book" { "/data/character_book" } else { "/" },
                "the settings are too large to be kept",
            );
        }
    }
    kept
}

/// Writes an NPC as a V3 card. `npc` has the members of `NpcInput`, with the slugs of owners, and the row's id. `lore`
/// has the entries of its book.
#[must_use]
pub fn write(npc: &Members, owners: &[String], lore: &[Members]) -> Value {
    // A draft is written as if it had been accepted: the card's author wrote it.
    let mut accepted = npc.clone();
    accepted.extend(draft::accepted(npc).unwrap_or_default());
    let npc = &accepted;
    let mut card = without_originals(npc, owners, lore);
    originals::put_back(kept_of(npc), &mut card);
    card
}

/// What an NPC keeps of the card that it was imported from.
fn kept_of(npc: &Members) -> Option<&Value> {
    npc.get("extensions")?.get("character_card")
}

/// The card without the control characters that its file had.
fn without_originals(npc: &Members, owners: &[String], lore: &[Members]) -> Value {
    let kept = kept_of(npc);
    let part = |name: &str| kept.and_then(|k| k.get(name)).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut data = part("data");
    let mut origin = data.clone();
    origin.insert("name".to_owned(), npc.get("name").cloned().unwrap_or_default());
    for (field, member) in [("description", "description"), ("personality", "personality_prompt")] {
        if kept.is_some() && !origin.contains_key(field) {
            origin.insert(field.to_owned(), npc.get(member).cloned().unwrap_or_default());
        }
    }
    let was = npc_of(&origin, None);
    let spoken = called(string(npc, "name"), string(&data, "nickname"));
    let own = data.insert("name".to_owned(), npc.get("name").cloned().unwrap_or_default());
    if own.is_some_and(|own| text::line(own.as_str().unwrap_or_default()) != string(npc, "name")) {
        data.remove("nickname");
    }
    for (field, member) in [("description", "description"), ("personality", "personality_prompt")] {
        let value = if was.get(member) == npc.get(member) { origin.get(field) } else { npc.get(member) };
        data.insert(field.to_owned(), value.cloned().unwrap_or_else(|| "".into()));
    }
    // A personality that was imported by an older version contains the examples.
    if string(npc, "example_dialogue").is_empty() && was.get("personality_prompt") != npc.get("personality_prompt") {
        data.remove("mes_example");
    }
    speech::put(npc, &mut data);
    // A card that was imported by an older version may have kept nulls, and other programs write other types.
    data.retain(|_, value| !value.is_null());
    text::spell(&mut data, TEXTS);
    for name in [
        "scenario",
        "first_mes",
        "mes_example",
        "creator_notes",
        "system_prompt",
        "post_history_instructions",
        "creator",
        "character_version",
    ] {
        if !data.get(name).is_some_and(Value::is_string) {
            data.insert(name.to_owned(), "".into());
        }
    }
    for name in ["alternate_greetings", "tags", "group_only_greetings"] {
        let texts = json!(text::list(&data, name));
        data.insert(name.to_owned(), texts);
    }
    if !data.get("extensions").is_some_and(Value::is_object) {
        data.insert("extensions".to_owned(), json!({}));
    }
    let mut ours: Members =
        OURS.iter().filter_map(|name| Some(((*name).to_owned(), npc.get(*name)?.clone()))).collect();
    ours.retain(|_, value| !value.is_null());
    ours.insert("slug".to_owned(), string(npc, "slug").into());
    ours.extend(kept.and_then(|kept| kept.get("format")).map(|format| ("format".to_owned(), format.clone())));
    ours.extend(npc.get("id").map(|id| ("id".to_owned(), id.clone())));
    ours.insert("owners".to_owned(), json!(owners));
    if let Some(Value::Object(extensions)) = data.get_mut("extensions") {
        extensions.insert("tavernkeep".to_owned(), ours.into());
    }
    if !lore.is_empty() {
        let mut uids = Uids::beside(lore.iter().filter_map(book::write::uid_of));
        let entries: Vec<_> = lore.iter().map(|entry| book::write::card_entry(entry, &spoken, &mut uids)).collect();
        let mut book = part("book");
        book.entry("extensions").or_insert_with(|| json!({}));
        book.insert("entries".to_owned(), json!(entries));
        data.insert("character_book".to_owned(), book.into());
    }
    let mut card = part("beside");
    card.insert("spec".to_owned(), "chara_card_v3".into());
    card.insert("spec_version".to_owned(), "3.0".into());
    card.insert("data".to_owned(), data.into());
    card.into()
}

/// A picture that contains a card: as V3 and, for older programs, also as V2.
///
/// # Errors
/// `internal` if the card cannot be written as JSON.
pub fn picture(card: &Value) -> Result<Vec<u8>> {
    let v3 = serde_json::to_vec(card).map_err(Error::internal)?;
    let mut older = card.clone();
    if let Some(members) = older.as_object_mut() {
        members.insert("spec".to_owned(), "chara_card_v2".into());
        members.insert("spec_version".to_owned(), "2.0".into());
    }
    let v2 = serde_json::to_vec(&older).map_err(Error::internal)?;
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes).into_bytes();
    let name = card.get("data").and_then(|d| d.get("name")).and_then(Value::as_str).unwrap_or_default();
    Ok(png::picture(Sha256::digest(name.as_bytes()).into(), &[("chara", &encode(&v2)), ("ccv3", &encode(&v3))]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interchange::report::{FieldReport, Report};

    fn field_reports(spec_version: &str, description: &str) -> Vec<FieldReport> {
        let mut losses = Losses::default();
        let entry = json!({ "keys": ["k"], "content": "Words.", "comment": "Entry" });
        let data = json!({ "name": "Ann", "description": description, "scenario": "At sea.",
            "character_book": { "entries": [entry] } });
        of_value(json!({ "spec": "chara_card_v3", "spec_version": spec_version, "data": data }), &mut losses).unwrap();
        let mut report = Report::new("", true);
        report.take(losses);
        report.fields
    }

    fn reason<'a>(fields: &'a [FieldReport], path: &str) -> Option<&'a str> {
        fields.iter().find(|field| field.path == path)?.reason.as_deref()
    }

    #[test]
    fn only_a_version_that_we_do_not_know_is_reported() {
        for (version, is_told) in [("3.0", false), ("2.0", false), ("3.1", true), ("x", false)] {
            assert_eq!(reason(&field_reports(version, ""), "/spec_version").is_some(), is_told, "{version}");
        }
    }

    #[test]
    fn a_text_that_is_cut_off_is_reported_as_that() {
        let reason_of = |text: &str| reason(&field_reports("3.0", text), "/data/description").map(ToOwned::to_owned);
        assert_eq!(reason_of(&"x".repeat(TEXT_CHARS_MAX)), None);
        assert_eq!(reason_of(&"x".repeat(TEXT_CHARS_MAX + 1)).unwrap(), "cut off after 20000 characters");
        assert!(reason_of("{{char}}").unwrap().starts_with("macros were filled in"));
    }

    #[test]
    fn what_belongs_to_no_entry_names_none() {
        let fields = field_reports("3.0", "A sailor.");
        for path in ["/data/scenario", "/data/description", "/data/name"] {
            let field = fields.iter().find(|field| field.path == path).unwrap();
            assert!(field.titles.is_empty() && field.example.is_none(), "{field:?}");
        }
        let keys = fields.iter().find(|field| field.path == "/data/character_book/entries/*/keys").unwrap();
        assert_eq!(keys.titles, ["Entry"]);
    }
}
