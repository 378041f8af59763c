//! A row of a file: its members, how it is found again, and how it is combined with what is stored.

use serde_json::{Map, Value};
use uuid::Uuid;

use base::error::Error;
use edge::http::resource::Resource;

/// Identifies a row of a file, so that it is found when the file is imported again.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum RowIdentity {
    /// By slug, which is the same here and in the file.
    BySlug(String),
    /// By origin: the id that the row had where the file was written, if that was here, or the `external_ref` that it
    /// gets when it is created. The slug in the file is used if it is free; a row with this slug but another origin is
    /// a different row.
    ByOrigin { id: Option<Uuid>, reference: String, slug: Option<String> },
}

/// How the members of a row are combined with what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onto {
    /// They replace the members of the same name.
    Replace,
    /// Like `Replace`, but clients' own keys of the stored row are kept in addition to those in the file.
    BesideExtensions,
    /// They are applied as a merge patch.
    Merge,
}

/// A row to create or change.
#[derive(Debug)]
pub struct Row {
    /// Members of the kind's input. Absent ones are not changed.
    pub members: Map<String, Value>,
    /// Members for a new row that the file does not set.
    pub at_first: Map<String, Value>,
    pub identity: RowIdentity,
    pub onto: Onto,
    /// Columns that are not members of the input.
    pub beside: Map<String, Value>,
    /// Columns for a new row that the file does not set.
    pub beside_first: Map<String, Value>,
    /// Whether a stranger wrote the file. What it tells models or lets an NPC do is then a draft.
    pub is_strangers: bool,
    /// The position in the file.
    pub pointer: String,
}

impl Row {
    /// An empty row for this position in the file.
    #[must_use]
    pub fn at(pointer: String) -> Self {
        Self {
            members: Map::new(),
            at_first: Map::new(),
            identity: RowIdentity::BySlug(String::new()),
            onto: Onto::Replace,
            beside: Map::new(),
            beside_first: Map::new(),
            is_strangers: false,
            pointer,
        }
    }

    /// The name or title of the row if it is new.
    #[must_use]
    pub fn label<R: Resource>(&self) -> &str {
        let label = self.members.get(R::LABEL).or_else(|| self.at_first.get(R::LABEL));
        label.and_then(Value::as_str).unwrap_or_default()
    }

    /// The slug in the file.
    #[must_use]
    pub fn slug(&self) -> Option<&str> {
        match &self.identity {
            RowIdentity::BySlug(slug) => Some(slug),
            RowIdentity::ByOrigin { slug, .. } => slug.as_deref(),
        }
    }
}

/// The names of members that differ.
#[must_use]
pub fn changed_names(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    after.iter().filter(|(name, value)| before.get(*name) != Some(value)).map(|(name, _)| name.clone()).collect()
}

/// The error for two rows of a file that are the same row here.
#[must_use]
pub fn twice(pointer: &str) -> Error {
    Error::invalid(format!("{pointer}/slug"), "slug_taken", "Another row of the file has the same slug or origin.")
}
