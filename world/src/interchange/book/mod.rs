//! Reads and writes lorebooks of other programs.
//!
//! Every format is first converted to SillyTavern's world info ([`world_info`]), which can express most; one function
//! converts that to lore. An entry keeps its source under `extensions.lorebook`. So an export gives back everything
//! that was not changed here, including fields that have no meaning here.

mod entry;
pub mod formats;
mod values;
pub mod world_info;
pub mod write;

pub use entry::{BookEntry, Members, id_of, short};

use serde_json::Value;

use super::{originals, report::Losses, text};
use base::{
    error::{Error, Result},
    json,
};
use formats::Format;

/// The largest number of entries in a book.
pub const ENTRIES_MAX: usize = 10_000;
/// The largest size of all contents of a book in bytes, after macros are filled in. A file without macros cannot reach
/// it.
const CONTENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The largest size of a book's own settings in bytes. Larger ones are not kept.
pub const ABOUT_BYTES_MAX: usize = 4096;

/// A lorebook that was read.
#[derive(Debug)]
pub struct Book {
    pub format: Format,
    pub name: String,
    /// The book's own settings, without its entries.
    pub about: Members,
    pub entries: Vec<BookEntry>,
}

/// Reads a lorebook in any format that we know.
///
/// # Errors
/// `bad_request` for invalid JSON; `validation_failed` if it is not a lorebook or has no entries.
pub fn read(bytes: &[u8], losses: &mut Losses) -> Result<Book> {
    let book = of_value(json::file(bytes)?, losses)?;
    if book.entries.is_empty() {
        return Err(Error::invalid("", "invalid_file", "This lorebook has no entry with content."));
    }
    Ok(book)
}

/// Like [`read`], from parsed JSON. It may have no entries.
///
/// # Errors
/// `validation_failed` if it is not a lorebook.
pub fn of_value(value: Value, losses: &mut Losses) -> Result<Book> {
    let (format, about, entries) = formats::sort(value)?;
    of_entries(format, about, entries, "", "", losses)
}

/// Reads a card's book. `character` is the name for `{{char}}`.
///
/// # Errors
/// `validation_failed` if it is not a book.
pub fn of_card(value: Value, character: &str, losses: &mut Losses) -> Result<Book> {
    let at = "/data/character_book";
    let mut about = match value {
        Value::Object(about) => about,
        // Some programs write the entries alone, and `[]` for no book.
        Value::Array(entries) => Members::from_iter([("entries".to_owned(), Value::Array(entries))]),
        _ => return Err(Error::invalid(at, "invalid_value", "A character_book must be an object.")),
    };
    let entries = match about.remove("entries") {
        None | Some(Value::Null) => Vec::new(),
        Some(entries) => formats::objects(entries, &format!("{at}/entries"))?,
    };
    of_entries(Format::CharacterBook, about, entries, at, character, losses)
}

fn of_entries(
    format: Format,
    about: Members,
    entries: Vec<Members>,
    at: &str,
    character: &str,
    losses: &mut Losses,
) -> Result<Book> {
    if entries.len() > ENTRIES_MAX {
        return Err(Error::invalid(at, "too_many", format!("A book may have at most {ENTRIES_MAX} entries.")));
    }
    let mut about = Value::Object(about);
    originals::clean(&mut about, at).keep(None, losses);
    let Value::Object(about) = about else { return Err(Error::internal("a book's settings are an object")) };
    let mut book = Book { format, name: text::line(text::string(&about, "name")), about, entries: Vec::new() };
    let scan_depth = book.about.get("scan_depth").and_then(|v| text::whole(v, 0, world_info::SCAN_DEPTH_MAX));
    let is_too_large = Value::Object(book.about.clone()).to_string().len() > ABOUT_BYTES_MAX;
    for name in book.about.keys() {
        match name.as_str() {
            "name" => losses.kept(&format!("{at}/name"), "the book's name, and a tag of its entries"),
            "scan_depth" if scan_depth.is_some() => {
                losses.mapped(
                    &format!("{at}/scan_depth"),
                    "scan_depth",
                    "used for each entry that has none of its own",
                );
                world_info::tell_number(
                    &format!("{at}/scan_depth"),
                    "scan_depth",
                    book.about.get("scan_depth"),
                    scan_depth,
                    losses,
                );
            }
            "spec" | "spec_version" | "kind" | "type" | "lorebookVersion" => {}
            _ if is_too_large => {
                losses.dropped(&format!("{at}/{name}"), "the book's own settings are too large to be kept")
            }
            _ => losses.carried(&format!("{at}/{name}")),
        }
    }
    let reading = world_info::Reading { at: format!("{at}{}", format.entries_at()), format, character, scan_depth };
    let mut met = std::collections::HashMap::<String, u32>::new();
    let mut bytes = 0;
    for (number, source) in entries.into_iter().enumerate() {
        losses.enter(format!("{at}/entries/{number}"), &format.title_of(&source, number));
        let mut source = Value::Object(source);
        let originals = originals::clean(&mut source, &reading.at);
        let Value::Object(source) = source else { continue };
        let mut entry = reading.entry(source, number, losses);
        let lore = entry.as_mut().and_then(|entry| entry.lore.get_mut("extensions"));
        originals.keep(lore.and_then(|e| e.get_mut("lorebook")).and_then(Value::as_object_mut), losses);
        let Some(mut entry) = entry else { continue };
        bytes += text::string(&entry.lore, "content").len();
        if bytes > CONTENT_BYTES_MAX {
            let detail =
                format!("With its macros filled in, the book has more than {CONTENT_BYTES_MAX} bytes of text.");
            return Err(Error::invalid(at, "too_long", detail));
        }
        // Two entries with the same number and name are distinguished by their order.
        let times = met.entry(entry.key.clone()).or_insert(0);
        *times += 1;
        if *times > 1 {
            entry.key.push_str(&format!(".{times}"));
        }
        book.entries.push(entry);
    }
    losses.leave();
    Ok(book)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::interchange::report::{FieldReport, Outcome, Report};

    fn field_reports(losses: Losses) -> Vec<FieldReport> {
        let mut report = Report::new("", true);
        report.take(losses);
        report.fields
    }

    fn with(about: Value, entries: Vec<Value>) -> Value {
        let mut book = about;
        book["entries"] = entries.into();
        book
    }

    #[test]
    fn a_book_has_its_limit() {
        for (count, fits) in [(ENTRIES_MAX, true), (ENTRIES_MAX + 1, false)] {
            let book = with(json!({}), vec![json!({ "content": "" }); count]);
            assert_eq!(of_value(book, &mut Losses::default()).is_ok(), fits, "{count}");
        }
    }

    /// The server recognizes a file that is imported again by these keys. Later releases must make the same keys.
    #[test]
    fn entries_that_look_the_same_have_keys_of_their_own() {
        let entry = json!({ "uid": 7, "comment": "Gulls", "content": "Gulls steal.", "key": ["gull"] });
        let book = of_value(with(json!({}), vec![entry; 3]), &mut Losses::default()).unwrap();
        let keys: Vec<_> = book.entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["7:fd4855aefb", "7:fd4855aefb.2", "7:fd4855aefb.3"]);
    }

    #[test]
    fn what_a_book_says_of_itself_is_reported_as_what_it_is() {
        let entry = json!({ "name": "Gulls", "entry": "Gulls steal.", "keywords": ["gull"] });
        for (depth, wanted) in [
            (json!(5), Some(Outcome::Mapped)),
            (json!(500), Some(Outcome::Approximated)),
            (json!("x"), Some(Outcome::Kept)),
        ] {
            let about = json!({ "kind": "memory", "name": "Birds", "scan_depth": depth, "theme": "sea" });
            let mut losses = Losses::default();
            of_value(with(about, vec![entry.clone()]), &mut losses).unwrap();
            let fields = field_reports(losses);
            let of = |path: &str| fields.iter().find(|field| field.path == path);
            assert_eq!(of("/scan_depth").map(|field| field.outcome), wanted, "{depth}");
            assert!(of("/name").is_some() && of("/theme").is_some());
            assert!(of("/kind").is_none(), "the format is no setting");
            assert!(of("/theme").is_some_and(|field| field.titles.is_empty()), "it belongs to no entry");
        }
    }

    /// What the report says of each field of these entries.
    fn fields_of(entries: Value) -> Vec<(String, Outcome, String)> {
        let mut losses = Losses::default();
        of_value(json!({ "entries": entries }), &mut losses).unwrap();
        field_reports(losses)
            .into_iter()
            .map(|field| (field.path, field.outcome, field.reason.unwrap_or_default()))
            .collect()
    }

    /// What has no effect elsewhere, or is what happens here anyway, loses nothing.
    #[test]
    fn what_is_the_same_here_is_not_reported() {
        let usual = json!({ "key": ["x"], "content": "A text.", "comment": "Usual", "position": 1, "depth": 2,
            "caseSensitive": false, "matchWholeWords": true, "probability": 50, "useProbability": false, "sticky": 0 });
        let fields = fields_of(json!([usual]));
        let fields: Vec<_> = fields.iter().map(|(path, outcome, _)| (path.as_str(), *outcome)).collect();
        assert_eq!(
            fields,
            [
                ("/entries/*/comment", Outcome::Mapped),
                ("/entries/*/key", Outcome::Mapped),
                ("/entries/*/content", Outcome::Kept)
            ]
        );
        let other = json!({ "key": ["x"], "content": "A text.", "comment": "Other", "position": 4, "depth": 2,
            "caseSensitive": true, "matchWholeWords": false, "probability": 50, "useProbability": true, "sticky": 3 });
        let fields = fields_of(json!([other]));
        for name in ["position", "depth", "caseSensitive", "matchWholeWords", "probability", "sticky"] {
            let path = format!("/entries/*/{name}");
            assert!(fields.iter().any(|(p, outcome, _)| *p == path && *outcome == Outcome::Approximated), "{name}");
        }
    }

    #[test]
    fn keys_that_are_not_used_are_reported() {
        let many: Vec<_> = (0..101).map(|n| format!("key {n}")).chain(["/.*/".to_owned()]).collect();
        let fields = fields_of(json!([{ "key": many, "comment": "Many", "content": "Words." }]));
        for reason in ["only the first 100 keywords are used", "unless it matches a short list of words"] {
            assert_eq!(fields.iter().filter(|(.., why)| why.contains(reason)).count(), 1, "{fields:?}");
        }
    }
}
