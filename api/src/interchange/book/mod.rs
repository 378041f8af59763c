//! Lorebooks of other programs, read and written.
//!
//! Every format is first brought into the shape of SillyTavern's world info ([`world_info`]), which can say most; from there one
//! function makes lore of it. An entry keeps what it was read from under `extensions.lorebook`, so that writing it gives back what
//! was not changed here, fields that mean nothing here included.

pub mod formats;
pub mod world_info;
pub mod write;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{report::Losses, text};
use crate::error::{Error, Result};
use crate::json;
use formats::Format;

/// The members of a JSON object.
pub type Members = Map<String, Value>;

/// Entries of one book.
pub const ENTRIES_MAX: usize = 10_000;
/// Bytes of all contents of one book, macros filled in; a file without macros cannot have as many.
const CONTENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of what a book says of itself; what is larger is not kept.
pub const ABOUT_BYTES_MAX: usize = 4096;

/// A book that was read.
#[derive(Debug)]
pub struct Book {
    pub format: Format,
    pub name: String,
    /// What the book says of itself, without its entries.
    pub about: Members,
    pub entries: Vec<Entry>,
}

/// One entry.
#[derive(Debug)]
pub struct Entry {
    /// What tells it from the book's other entries, and is the same when the book is read again.
    pub key: String,
    /// Its number, if the file gives it one.
    pub uid: Option<String>,
    /// Members of `lore::LoreInput` that the file says.
    pub lore: Members,
    /// Those that it says nothing of, for an entry that is new here.
    pub at_first: Members,
    /// Where it was left: if it was written by us, its slug.
    pub slug: Option<String>,
    /// If it was written by us, the id it had there.
    pub id: Option<Uuid>,
    /// Slugs of those who know it, if it was written by us and says so.
    pub known_by: Option<Vec<String>>,
}

/// Reads a lorebook of any format we know.
///
/// # Errors
/// `bad_request` for what is no JSON, `validation_failed` for what is no lorebook, or holds nothing.
pub fn read(bytes: &[u8], losses: &mut Losses) -> Result<Book> {
    let book = of_value(json::file(bytes)?, losses)?;
    if book.entries.is_empty() {
        return Err(Error::invalid("", "invalid_file", "There is no entry with content in this lorebook."));
    }
    Ok(book)
}

/// The same from JSON.
///
/// # Errors
/// `validation_failed` for what is no lorebook.
pub fn of_value(value: Value, losses: &mut Losses) -> Result<Book> {
    let (format, about, entries) = formats::sort(value)?;
    of_entries(format, about, entries, "", "", losses)
}

/// A card's book; `character` is who `{{char}}` is.
///
/// # Errors
/// `validation_failed` if it is none.
pub fn of_card(value: Value, character: &str, losses: &mut Losses) -> Result<Book> {
    let at = "/data/character_book";
    let Value::Object(mut about) = value else {
        return Err(Error::invalid(at, "invalid_value", "A character_book is an object."));
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
        return Err(Error::invalid(at, "too_many", format!("A book may have {ENTRIES_MAX} entries.")));
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
                    "given to each entry that has none of its own",
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
            let detail = format!("With its macros filled in the book has more than {CONTENT_BYTES_MAX} bytes of text.");
            return Err(Error::invalid(at, "too_long", detail));
        }
        // Two entries that are alike in number and name are told apart by their order.
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

/// The id that a row of ours had where its file was written. Nobody guesses one, so who knows it had the row's own file.
#[must_use]
pub fn id_of(ours: &Members) -> Option<Uuid> {
    Uuid::try_parse(text::string(ours, "id")).ok()
}

/// A few characters that stand for a text.
#[must_use]
pub fn short(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(5).map(|b| format!("{b:02x}")).collect()
}
