//! What an import did, or would do: the one report of all imports. Rows with what became of them, and each field of the file
//! with where it went.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// Rows that a report names; the others are counted.
const ITEMS_MAX: usize = 2000;
/// Fields that a report names.
const FIELDS_MAX: usize = 500;
/// Entries that a field names by title.
const TITLES_MAX: usize = 5;

/// What became of one row.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Imported {
    pub kind: &'static str,
    pub slug: String,
    /// What it is called: its title or name.
    pub label: String,
    /// None for what a dry run would create.
    pub id: Option<Uuid>,
    /// `created`, `updated` or `unchanged`.
    pub action: &'static str,
    /// What is written over in an `updated` one, by the names of its fields.
    pub changes: Vec<String>,
    /// Whether it was changed here since a file was last written over it: what is lost then is somebody's work.
    pub edited_here: bool,
}

impl Imported {
    /// What is written over, as people read it.
    #[must_use]
    pub fn changes_in_words(&self) -> String {
        self.changes.iter().map(|name| name.replace('_', " ")).collect::<Vec<_>>().join(", ")
    }

    /// Changed rows are told first, those with work of somebody's before all others.
    fn rank(&self) -> u8 {
        match self.action {
            "updated" if self.edited_here => 0,
            "updated" => 1,
            "created" => 2,
            _ => 3,
        }
    }
}

/// What became of a field of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did not come along.
    Dropped,
    /// It came along, and means a little less or something a little different.
    Approximated,
    /// It has another name or shape here, and means the same.
    Mapped,
    /// It is kept as it is: used as it was, or given back on export.
    Kept,
}

/// A field of the file: all of its kind together.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FieldReport {
    /// Where it stands in the file; `*` for each entry.
    pub path: String,
    pub outcome: Outcome,
    /// What it is called here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// In how many entries.
    pub count: u32,
    /// The first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// The titles of the first five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub titles: Vec<String>,
}

/// How many rows of each fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Counts {
    pub created: u32,
    pub updated: u32,
    pub unchanged: u32,
}

/// What an import did, or would do.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct Report {
    pub dry_run: bool,
    /// What the file was read as, such as `character_card_v2` or `sillytavern`.
    pub format: &'static str,
    /// The campaign's slug.
    pub campaign: String,
    pub counts: Counts,
    /// The first 2000 rows: those that change before those that are new, those that stay as they are last.
    pub items: Vec<Imported>,
    pub memories_created: u32,
    pub messages_created: u32,
    /// Each field of a file of somebody else's format; empty for our own documents, of which nothing is lost.
    pub fields: Vec<FieldReport>,
    /// What could not be taken over as it was.
    pub warnings: Vec<String>,
}

impl FieldReport {
    /// How many entries it is in that are not named.
    #[must_use]
    pub fn unnamed(&self) -> usize {
        if self.titles.is_empty() {
            0
        } else {
            usize::try_from(self.count).unwrap_or_default().saturating_sub(self.titles.len())
        }
    }
}

impl Report {
    /// An empty one.
    #[must_use]
    pub fn new(format: &'static str, dry_run: bool) -> Self {
        Self { dry_run, format, ..Self::default() }
    }

    /// Notes what became of a row. What a dry run made has no id that stays.
    pub fn note(&mut self, mut item: Imported) {
        let count = match item.action {
            "created" => &mut self.counts.created,
            "updated" => &mut self.counts.updated,
            _ => &mut self.counts.unchanged,
        };
        *count += 1;
        if self.dry_run && item.action == "created" {
            item.id = None;
        }
        let place = self.items.partition_point(|other| other.rank() <= item.rank());
        if place < ITEMS_MAX {
            self.items.insert(place, item);
            self.items.truncate(ITEMS_MAX);
        }
    }

    /// How many rows there are beside the first so many.
    #[must_use]
    pub fn beside(&self, shown: usize) -> usize {
        let Counts { created, updated, unchanged } = self.counts;
        usize::try_from(created + updated + unchanged).unwrap_or_default().saturating_sub(shown)
    }

    /// How many rows are written over that were changed here, as far as rows are named.
    #[must_use]
    pub fn edited_here(&self) -> usize {
        self.items.iter().filter(|item| item.edited_here).count()
    }

    /// Adds a warning; there is an end to them.
    pub fn warn(&mut self, warning: String) {
        match self.warnings.len() {
            0..100 => self.warnings.push(warning),
            100 => self.warnings.push("There are more warnings than are shown.".to_owned()),
            _ => {}
        }
    }

    /// Takes over what a reader found.
    pub fn take(&mut self, losses: Losses) {
        self.fields.extend(losses.into_fields());
        self.fields.sort_by(|a, b| (a.outcome, &a.path).cmp(&(b.outcome, &b.path)));
        self.fields.truncate(FIELDS_MAX);
    }
}

/// What a reader says of the fields it met, those of the same kind together.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    found: BTreeMap<Kind, Met>,
    /// The entry that is read.
    entry: Option<Named>,
}

/// An entry: where it stands, and its title.
#[derive(Clone, Debug)]
struct Named {
    at: String,
    title: String,
}

/// In how many entries, and the first of them.
#[derive(Clone, Debug, Default)]
struct Met {
    count: u32,
    first: Vec<Named>,
}

/// What is counted together: outcome, path, what it is called here, and why.
type Kind = (Outcome, String, String, String);

impl Losses {
    /// From now on fields belong to this entry.
    pub fn enter(&mut self, at: String, title: &str) {
        self.entry = Some(Named { at, title: shown(title) });
    }

    /// From now on fields belong to the file itself.
    pub fn leave(&mut self) {
        self.entry = None;
    }

    fn add(&mut self, outcome: Outcome, path: &str, to: &str, reason: &str) {
        // A hostile file has as many names as it has fields.
        if self.found.len() >= FIELDS_MAX * 4 {
            return;
        }
        let met = self.found.entry((outcome, shown(path), shown(to), reason.to_owned())).or_default();
        met.count += 1;
        let is_new = |entry: &&Named| met.first.last().is_none_or(|last| last.at != entry.at);
        if let Some(entry) = self.entry.as_ref().filter(is_new).filter(|_| met.first.len() < TITLES_MAX) {
            met.first.push(entry.clone());
        }
    }

    /// Used as it is.
    pub fn kept(&mut self, path: &str, to: &str) {
        self.add(Outcome::Kept, path, to, "");
    }

    /// Without effect here, but given back on export.
    pub fn carried(&mut self, path: &str) {
        self.add(Outcome::Kept, path, "extensions", "has no effect here; it is kept and given back on export");
    }

    /// Used under another name or shape.
    pub fn mapped(&mut self, path: &str, to: &str, reason: &str) {
        self.add(Outcome::Mapped, path, to, reason);
    }

    /// Used for something near.
    pub fn approximated(&mut self, path: &str, to: &str, reason: &str) {
        self.add(Outcome::Approximated, path, to, reason);
    }

    /// Left behind.
    pub fn dropped(&mut self, path: &str, reason: &str) {
        self.add(Outcome::Dropped, path, "", reason);
    }

    fn into_fields(self) -> impl Iterator<Item = FieldReport> {
        let given = |text: String| (!text.is_empty()).then_some(text);
        self.found.into_iter().map(move |((outcome, path, to, reason), met)| FieldReport {
            path,
            outcome,
            to: given(to),
            reason: given(reason),
            count: met.count,
            example: met.first.first().map(|entry| entry.at.clone()),
            titles: met.first.into_iter().map(|entry| entry.title).collect(),
        })
    }
}

/// As much of a stranger's text as a report holds.
fn shown(text: &str) -> String {
    text.chars().take(120).collect()
}
