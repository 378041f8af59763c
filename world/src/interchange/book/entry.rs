//! An entry of a lorebook.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::interchange::text;
use base::hex::hex;

/// The members of a JSON object.
pub type Members = Map<String, Value>;

/// One entry.
#[derive(Debug)]
pub struct BookEntry {
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

/// The id that a row of ours had where its file was written. Ids cannot be guessed, so a file with an id comes from
/// somebody who had the row's own file.
#[must_use]
pub fn id_of(ours: &Members) -> Option<Uuid> {
    Uuid::try_parse(text::string(ours, "id")).ok()
}

/// A short hash that stands for a text.
#[must_use]
pub fn short(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..5])
}
