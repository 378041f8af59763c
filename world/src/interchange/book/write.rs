//! Writes lore as SillyTavern's world info, or as the book of a card.
//!
//! An entry that was imported is written as in the original file, except for the fields that were changed here since.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    Format, Members,
    formats::EXTENSIONS,
    world_info::{self, OURS, Reading},
};
use crate::interchange::{originals, report::Losses, text::string};

/// The highest number that an imported entry keeps.
const UID_MAX: u64 = 1_000_000_000;

/// Numbers for the entries of an exported file. Each entry gets a unique one: the number it was imported with, if that
/// is free.
#[derive(Debug, Default)]
pub struct Uids {
    used: HashSet<u64>,
    /// The numbers that entries were imported with.
    wished: HashSet<u64>,
    next: u64,
}

impl Uids {
    /// Reserves the numbers in `wished` for the entries that were imported with them.
    #[must_use]
    pub fn beside(wished: impl IntoIterator<Item = u64>) -> Self {
        Self { wished: wished.into_iter().collect(), ..Self::default() }
    }

    fn take(&mut self, wish: Option<u64>) -> u64 {
        if let Some(uid) = wish.filter(|uid| self.used.insert(*uid)) {
            return uid;
        }
        while self.wished.contains(&self.next) || self.used.contains(&self.next) {
            self.next += 1;
        }
        self.used.insert(self.next);
        self.next
    }
}

/// The number that an entry was imported with.
#[must_use]
pub fn uid_of(lore: &Members) -> Option<u64> {
    let (format, source) = source_of(lore);
    source.get(format.name_of("uid"))?.as_u64().filter(|uid| *uid <= UID_MAX)
}

/// Writes a lore entry in SillyTavern's format. `lore` has the members of `LoreInput`, with slugs in `known_by`, and
/// the row's id.
#[must_use]
pub fn world_info_entry(lore: &Members, character: &str, uids: &mut Uids) -> Members {
    with_originals(lore, world_info(lore, character, uids))
}

/// The entry with the control characters that the file had.
fn with_originals(lore: &Members, entry: Members) -> Members {
    let mut entry = Value::Object(entry);
    originals::put_back(lore.get("extensions").and_then(|e| e.get("lorebook")), &mut entry);
    match entry {
        Value::Object(entry) => entry,
        _ => Members::new(),
    }
}

/// A lore entry in SillyTavern's format, without the control characters that its file had.
fn world_info(lore: &Members, character: &str, uids: &mut Uids) -> Members {
    let (format, source) = source_of(lore);
    let origin = with_content(format, source.clone(), lore);
    let mut info = format.to_world_info(&origin);
    let kept = lore.get("extensions").and_then(|e| e.get("lorebook"));
    let scan_depth = kept.and_then(|k| k.get("scan_depth")).and_then(Value::as_i64);
    let reading = Reading { at: String::new(), format, character, scan_depth };
    // An entry that was created here has no earlier form to compare with.
    let was = kept.and_then(|_| reading.lore(&info, &mut Losses::default())).unwrap_or_default();
    overlay(lore, &was, &mut info);
    for (name, value) in world_info::defaults() {
        info.entry(name).or_insert(value);
    }
    let own_uid = info.get("uid").cloned();
    let uid: Value = uids.take(uid_of(lore)).into();
    info.insert("uid".to_owned(), uid.clone());
    let mut ours: Members =
        OURS.iter().map(|name| ((*name).to_owned(), lore.get(*name).cloned().unwrap_or_default())).collect();
    ours.extend(own_uid.filter(|own| *own != uid).map(|own| ("uid".to_owned(), own)));
    ours.insert("slug".to_owned(), string(lore, "slug").into());
    ours.extend(lore.get("id").map(|id| ("id".to_owned(), id.clone())));
    let is_known = lore.get("known_by").and_then(Value::as_array).is_some_and(|k| !k.is_empty());
    if is_known || lore.get("secret") == Some(&Value::Bool(true)) {
        ours.insert("known_by".to_owned(), lore.get("known_by").cloned().unwrap_or_default());
    }
    if kept.is_none() {
        ours.insert("own".to_owned(), true.into());
    }
    if let Some(depth) = scan_depth {
        ours.insert("scan_depth".to_owned(), depth.into());
    }
    if format != Format::SillyTavern {
        ours.insert("source".to_owned(), json!({ "format": format.as_str(), "entry": source }));
    }
    if let Some(extensions) = info.entry("extensions").or_insert_with(|| json!({})).as_object_mut() {
        extensions.insert("tavernkeep".to_owned(), ours.into());
    }
    info
}

/// The source that an entry was imported from; empty if it was created here.
fn source_of(lore: &Members) -> (Format, Members) {
    let kept = lore.get("extensions").and_then(|e| e.get("lorebook"));
    let format = kept.and_then(|k| k.get("format")).and_then(Value::as_str).and_then(Format::parse);
    let entry = kept.and_then(|k| k.get("entry")).and_then(Value::as_object).cloned();
    format.zip(entry).unwrap_or((Format::SillyTavern, Members::new()))
}

/// Puts the content back into a source from which it was left out because it equalled the lore's own.
fn with_content(format: Format, mut source: Members, lore: &Members) -> Members {
    let name = format.name_of("content");
    if !source.contains_key(name) {
        source.insert(name.to_owned(), lore.get("content").cloned().unwrap_or_default());
    }
    source
}

/// Overwrites the fields that differ from the imported ones.
fn overlay(lore: &Members, was: &Members, info: &mut Members) {
    let changed = |name: &str| lore.get(name) != was.get(name);
    let value = |name: &str| lore.get(name).cloned().unwrap_or_default();
    for (ours, theirs) in [
        ("title", "comment"),
        ("content", "content"),
        ("keys", "key"),
        ("priority", "order"),
        ("scan_depth", "scanDepth"),
    ] {
        if changed(ours) {
            info.insert(theirs.to_owned(), value(ours));
        }
    }
    if changed("priority") {
        info.remove("priority");
    }
    if changed("activation") || changed("enabled") {
        info.insert("constant".to_owned(), (string(lore, "activation") == "always").into());
    }
    if changed("enabled") {
        info.insert("disable".to_owned(), (lore.get("enabled") != Some(&Value::Bool(true))).into());
    }
    if changed("secondary_keys") || changed("logic") {
        info.insert("keysecondary".to_owned(), value("secondary_keys"));
        info.insert("selective".to_owned(), true.into());
        let logic = match string(lore, "logic") {
            "not_all" => 1,
            "not_any" => 2,
            "and_all" => 3,
            _ => 0,
        };
        info.insert("selectiveLogic".to_owned(), logic.into());
    }
}

/// Writes a lore entry as an entry of a card's book.
#[must_use]
pub fn card_entry(lore: &Members, character: &str, uids: &mut Uids) -> Members {
    let mut info = world_info(lore, character, uids);
    let (format, source) = source_of(lore);
    let mut entry = if format == Format::CharacterBook { source } else { Members::new() };
    let mut take = |name: &str| info.remove(name).unwrap_or_default();
    let (order, constant, disabled) = (take("order"), take("constant"), take("disable"));
    let (title, position) = (take("comment"), take("position"));
    let selective = take("selective");
    for (name, value) in [
        ("keys", take("key")),
        ("secondary_keys", take("keysecondary")),
        ("content", take("content")),
        ("constant", constant),
        ("selective", selective),
        ("insertion_order", order),
        ("enabled", Value::Bool(disabled != Value::Bool(true))),
        ("id", take("uid")),
    ] {
        entry.insert(name.to_owned(), value);
    }
    let named = [string(&entry, "comment"), string(&entry, "name")].into_iter().find(|t| !t.trim().is_empty());
    if named.map(crate::interchange::text::line).as_deref() != Some(title.as_str().unwrap_or_default()) {
        entry.insert("comment".to_owned(), title.clone());
        entry.entry("name").or_insert(title);
    }
    let is_expression = |key: &Value| key.as_str().is_some_and(|key| key.starts_with('/'));
    let any = entry.get("keys").and_then(Value::as_array).is_some_and(|keys| keys.iter().any(is_expression));
    entry.entry("use_regex").or_insert(any.into());
    entry.entry("position").or_insert(if position == json!(0) { "before_char" } else { "after_char" }.into());
    let origin = entry.clone();
    let mut extensions = match entry.remove("extensions") {
        Some(Value::Object(extensions)) => extensions,
        _ => Members::new(),
    };
    let mut own = match info.remove("extensions") {
        Some(Value::Object(own)) => own,
        _ => Members::new(),
    };
    if format == Format::CharacterBook
        && let Some(ours) = own.get_mut("tavernkeep").and_then(Value::as_object_mut)
    {
        ours.remove("source");
    }
    extensions.extend(own);
    // The entry already contains what it was imported with.
    let was = match format {
        Format::CharacterBook => format.to_world_info(&origin),
        _ => Members::new(),
    };
    let defaults = world_info::defaults();
    for (theirs, ours) in EXTENSIONS {
        match info.get(*ours) {
            Some(value) if defaults.get(*ours) != Some(value) && was.get(*ours) != Some(value) => {
                extensions.insert((*theirs).to_owned(), value.clone())
            }
            _ => None,
        };
    }
    if !extensions.contains_key("position") && !matches!(position.as_i64(), Some(0 | 1) | None) {
        extensions.insert("position".to_owned(), position);
    }
    entry.insert("extensions".to_owned(), extensions.into());
    with_originals(lore, entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lore of an entry that came from a file.
    fn imported(entry: Value) -> Members {
        let mut book = super::super::of_value(json!({ "entries": [entry] }), &mut Losses::default()).unwrap();
        let entry = book.entries.remove(0);
        let mut lore = entry.at_first;
        lore.extend(entry.lore);
        lore
    }

    #[test]
    fn each_member_that_was_changed_here_is_written() {
        let file = json!({ "uid": 3, "key": ["k"], "keysecondary": ["s"], "comment": "T", "content": "x", "selectiveLogic": 3,
            "order": 9, "constant": false, "disable": false });
        let was = world_info_entry(&imported(file.clone()), "", &mut Uids::default());
        for (name, value) in file.as_object().unwrap() {
            assert_eq!(was.get(name), Some(value), "{name}");
        }
        for (ours, value, changes) in [
            ("logic", json!("not_all"), json!({ "selectiveLogic": 1 })),
            ("logic", json!("not_any"), json!({ "selectiveLogic": 2 })),
            ("logic", json!("and_any"), json!({ "selectiveLogic": 0 })),
            ("secondary_keys", json!(["t"]), json!({ "keysecondary": ["t"] })),
            ("keys", json!(["t"]), json!({ "key": ["t"] })),
            ("title", json!("U"), json!({ "comment": "U" })),
            ("content", json!("y"), json!({ "content": "y" })),
            ("priority", json!(8), json!({ "order": 8 })),
            ("activation", json!("always"), json!({ "constant": true })),
            ("enabled", json!(false), json!({ "disable": true })),
            ("scan_depth", json!(7), json!({ "scanDepth": 7 })),
        ] {
            let mut lore = imported(file.clone());
            lore.insert(ours.to_owned(), value);
            let mut wanted = was.clone();
            wanted.extend(changes.as_object().unwrap().clone());
            wanted.insert("selective".to_owned(), true.into());
            assert_eq!(world_info_entry(&lore, "", &mut Uids::default()), wanted, "{ours} {changes}");
        }
    }
}
