//! Reads and writes lorebooks of other programs.
//!
//! Every format is first converted to SillyTavern's world info ([`world_info`]), which can express most; one function
//! converts that to lore. An entry keeps its source under `extensions.lorebook`. So an export gives back everything
//! that was not changed here, including fields that have no meaning here.

pub mod formats;
pub mod world_info;
pub mod write;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{report::Losses, text};
use base::error::{Error, Result};
use base::json;
use formats::Format;

/// The members of a JSON object.
pub type Members = Map<String, Value>;

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
    pub entries: Vec<Entry>,
}

/// One entry.
#[derive(Debug)]
pub struct Entry {
    /// Identifies the entry within the book, also when the book is imported again.
    pub key: String,
    /// The number of the entry, if the file gives one.
    pub uid: Option<String>,
    /// Members of `lore::LoreInput` that the file sets.
    pub lore: Members,
    /// Members that the file does not set, for a new entry.
    pub at_first: Members,
    /// The entry's slug, if we wrote the file.
    pub slug: Option<String>,
    /// The entry's original id, if we wrote the file.
    pub id: Option<Uuid>,
    /// The slugs of those who know the entry, if we wrote the file and it says so.
    pub known_by: Option<Vec<String>>,
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
    let Value::Object(mut about) = value else {
        return Err(Error::invalid(at, "invalid_value", "A character_book must be an object."));
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
        let Some(mut entry) = reading.entry(source, number, losses) else { continue };
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

/// The id that a row of ours had where its file was written. Ids cannot be guessed, so a file with an id comes from
/// somebody who had the row's own file.
#[must_use]
pub fn id_of(ours: &Members) -> Option<Uuid> {
    Uuid::try_parse(text::string(ours, "id")).ok()
}

/// A short hash that stands for a text.
#[must_use]
pub fn short(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(5).map(|b| format!("{b:02x}")).collect()
}
