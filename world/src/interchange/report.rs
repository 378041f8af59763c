//! The report of an import: what it did, or would do, to each row, and what happened to each field of the file.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::in_force::InForce;

/// The largest number of rows that a report lists. The others are only counted.
const ITEMS_MAX: usize = 2000;
/// The largest number of fields that a report lists.
const FIELDS_MAX: usize = 500;
/// The largest number of entries that a field lists by title.
const TITLES_MAX: usize = 5;

/// What happened to one row.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Imported {
    pub kind: &'static str,
    pub slug: String,
    /// Its title or name.
    pub label: String,
    /// Null for a row that a dry run would create.
    pub id: Option<Uuid>,
    /// `created`, `updated` or `unchanged`.
    pub action: &'static str,
    /// For an `updated` row: the names of the fields that are overwritten.
    pub changes: Vec<String>,
    /// Whether the row was edited here since the last import. That work is overwritten.
    pub edited_here: bool,
}

impl Imported {
    /// The overwritten fields in words.
    #[must_use]
    pub fn changes_in_words(&self) -> String {
        self.changes.iter().map(|name| name.replace('_', " ")).collect::<Vec<_>>().join(", ")
    }

    /// The order in the report: changed rows come first, and before all those that were edited here.
    fn rank(&self) -> u8 {
        match self.action {
            "updated" if self.edited_here => 0,
            "updated" => 1,
            "created" => 2,
            _ => 3,
        }
    }
}

/// What happened to a field of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was not imported.
    Dropped,
    /// It was imported, but with a slightly different or reduced meaning.
    Approximated,
    /// It was imported under another name or in another form, with the same meaning.
    Mapped,
    /// It was kept unchanged: it is either used as it is, or exported again.
    Kept,
}

/// A field of the file. Equal fields of all entries are reported together.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FieldReport {
    /// The path in the file; `*` stands for each entry.
    pub path: String,
    pub outcome: Outcome,
    /// The name of the field here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// In how many entries it occurs.
    pub count: u32,
    /// The path of the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// The titles of the first five of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub titles: Vec<String>,
}

/// How many rows were created, changed or left as they were.
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
    /// The detected format of the file, such as `character_card_v2` or `sillytavern`.
    pub format: &'static str,
    /// The campaign's slug.
    pub campaign: String,
    pub counts: Counts,
    /// The first 2000 rows: changed ones first, then new ones, then unchanged ones.
    pub items: Vec<Imported>,
    pub memories_created: u32,
    pub messages_created: u32,
    /// The fields of a file in another program's format. Empty for our own documents, because nothing in them is lost.
    pub fields: Vec<FieldReport>,
    /// What the import puts in force that nobody has to accept (instructions, tools, thresholds of reactions), then what could not be
    /// imported as it was.
    pub warnings: Vec<String>,
    /// What goes before the other warnings.
    #[serde(skip)]
    pub in_force: InForce,
}

impl FieldReport {
    /// How many entries with this field are not listed by title.
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
    /// An empty report.
    #[must_use]
    pub fn new(format: &'static str, dry_run: bool) -> Self {
        Self { dry_run, format, ..Self::default() }
    }

    /// Records what happened to a row. A row that a dry run creates has no permanent id.
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

    /// How many rows there are in addition to the first `shown`.
    #[must_use]
    pub fn beside(&self, shown: usize) -> usize {
        let Counts { created, updated, unchanged } = self.counts;
        usize::try_from(created + updated + unchanged).unwrap_or_default().saturating_sub(shown)
    }

    /// How many of the listed rows overwrite an edit made here.
    #[must_use]
    pub fn edited_here(&self) -> usize {
        self.items.iter().filter(|item| item.edited_here).count()
    }

    /// Puts what is now in force before the warnings.
    pub fn tell_in_force(&mut self) {
        self.warnings.splice(0..0, std::mem::take(&mut self.in_force).warnings());
    }

    /// Adds a warning, up to a limit.
    pub fn warn(&mut self, warning: String) {
        match self.warnings.len() {
            0..100 => self.warnings.push(warning),
            100 => self.warnings.push("There are more warnings than are shown.".to_owned()),
            _ => {}
        }
    }

    /// Warns that the texts at these paths lost control characters.
    pub fn warn_of_control_characters(&mut self, paths: impl IntoIterator<Item = String>) {
        paths.into_iter().for_each(|path| self.warn(format!("{path}: control characters were left out.")));
    }

    /// Adds the fields that a reader found.
    pub fn take(&mut self, losses: Losses) {
        self.fields.extend(losses.into_fields());
        self.fields.sort_by(|a, b| (a.outcome, &a.path).cmp(&(b.outcome, &b.path)));
        self.fields.truncate(FIELDS_MAX);
    }
}

/// The fields that a reader found. Equal ones are counted together.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    found: BTreeMap<Kind, Met>,
    /// The entry that is being read.
    entry: Option<Named>,
}

/// The path and the title of an entry.
#[derive(Clone, Debug)]
struct Named {
    at: String,
    title: String,
}

/// The number of entries, and the first of them.
#[derive(Clone, Debug, Default)]
struct Met {
    count: u32,
    first: Vec<Named>,
}

/// Fields with the same outcome, path, name here and reason are counted together.
type Kind = (Outcome, String, String, String);

impl Losses {
    /// The following fields belong to this entry.
    pub fn enter(&mut self, at: String, title: &str) {
        self.entry = Some(Named { at, title: shorten(title) });
    }

    /// The following fields belong to the file itself.
    pub fn leave(&mut self) {
        self.entry = None;
    }

    fn add(&mut self, outcome: Outcome, path: &str, to: &str, reason: &str) {
        // A hostile file may have as many different names as fields.
        if self.found.len() >= FIELDS_MAX * 4 {
            return;
        }
        let met = self.found.entry((outcome, shorten(path), shorten(to), reason.to_owned())).or_default();
        met.count += 1;
        let is_new = |entry: &&Named| met.first.last().is_none_or(|last| last.at != entry.at);
        if let Some(entry) = self.entry.as_ref().filter(is_new).filter(|_| met.first.len() < TITLES_MAX) {
            met.first.push(entry.clone());
        }
    }

    /// The field is used as it is.
    pub fn kept(&mut self, path: &str, to: &str) {
        self.add(Outcome::Kept, path, to, "");
    }

    /// The field has no effect here, but is exported again.
    pub fn carried(&mut self, path: &str) {
        self.add(Outcome::Kept, path, "extensions", "has no effect here; it is kept and exported again");
    }

    /// The field is used under another name or in another form.
    pub fn mapped(&mut self, path: &str, to: &str, reason: &str) {
        self.add(Outcome::Mapped, path, to, reason);
    }

    /// The field is used for something similar.
    pub fn approximated(&mut self, path: &str, to: &str, reason: &str) {
        self.add(Outcome::Approximated, path, to, reason);
    }

    /// The field is not imported.
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

/// Shortens a text from a file for the report.
#[must_use]
pub fn shorten(text: &str) -> String {
    text.chars().take(120).collect()
}
