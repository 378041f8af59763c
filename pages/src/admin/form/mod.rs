//! Form fields from a list: their labels, how their text becomes JSON and back, and their errors.
//!
//! A field's name is the JSON pointer of its value, so that a service's error finds its field. A template shows a
//! [`FormView`] with `{% include "admin/fields.html" %}`.

mod common;
mod rows;
mod tools;
mod view;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub use common::{
    AI_LOCK, CONDITIONS, EFFECTS, EXTENSIONS, EXTERNAL_REF, GUIDANCE, INVENTORY, OTHER_PROGRAMS, SIZES, WORN,
};
pub use rows::{Cell, Column, Rows, Shape};
pub use view::FormView;

use super::{submitted::Submitted, words};
use base::error::{Code, Error};
use entity::kind::EntityKind;
use world::lore::CONTENT_CHARS_MAX;

/// The most characters of any text of a row. JSON is only bounded by the size of the form.
const TEXT_CHARS_MAX: usize = CONTENT_CHARS_MAX;

/// How a field is edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One line of text.
    Line,
    /// Several lines.
    Text { rows: u8 },
    /// A number.
    Number,
    /// A choice from a list: the value that is sent, and the label that people read.
    Choice(&'static [(&'static str, &'static str)]),
    /// A list of texts, one per line.
    Words,
    /// A list of longer texts, with a line `---` between them.
    Parts { rows: u8 },
    /// A box to tick.
    Tick,
    /// JSON, for values with too many parts to have their own fields.
    Json { rows: u8 },
    /// A list of things with parts: a row of fields for each.
    Rows(&'static Rows),
    /// The tools that this kind of entity may call: boxes, and JSON for other tools.
    Tools(EntityKind),
}

/// A field of a form.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The JSON pointer of its value: `/stats/armor_class`.
    pub pointer: &'static str,
    pub label: &'static str,
    pub hint: &'static str,
    pub kind: Kind,
    pub is_needed: bool,
    /// Whether its value changes with time. Then it is written only if the user changed what the form showed.
    pub is_moving: bool,
}

impl Field {
    /// A field that may be left empty.
    #[must_use]
    pub const fn new(pointer: &'static str, label: &'static str, kind: Kind) -> Self {
        Self { pointer, label, hint: "", kind, is_needed: false, is_moving: false }
    }

    /// The same with a hint below it.
    #[must_use]
    pub const fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    /// The same, but required.
    #[must_use]
    pub const fn needed(self) -> Self {
        Self { is_needed: true, ..self }
    }

    /// The same, with a value that changes with time.
    #[must_use]
    pub const fn moving(self) -> Self {
        Self { is_moving: true, ..self }
    }

    /// Its name in a form, which is also a valid HTML id.
    #[must_use]
    pub fn name(&self) -> String {
        self.pointer.trim_start_matches('/').replace('/', "-")
    }

    /// The text that was sent for it.
    fn text_sent(&self, form: &Submitted) -> String {
        let name = self.name();
        match self.kind {
            Kind::Tools(kind) if form.has(&format!("{name}-boxes")) => {
                let ticked = format!("{name}-ticked");
                tools::text_sent(kind, &form.all(&ticked).collect::<Vec<_>>(), form.text(&name))
            }
            Kind::Rows(rows) => rows.text_sent(&name, form),
            _ => form.text(&name).to_owned(),
        }
    }

    /// The text of a stored value.
    fn text_of(&self, value: &Value) -> String {
        match (self.kind, value) {
            (_, Value::Null) => String::new(),
            (Kind::Json { .. } | Kind::Rows(_), value) => words::json(value),
            (Kind::Tick, Value::Bool(is_set)) => if *is_set { "true" } else { "" }.to_owned(),
            (Kind::Words, Value::Array(items)) => words::lines(items),
            (Kind::Parts { .. }, Value::Array(items)) => {
                items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(BETWEEN_PARTS)
            }
            (Kind::Tools(kind), Value::Array(items)) => tools::text_of(kind, items),
            (_, other) => words::display_text(other),
        }
    }

    /// The JSON value of a text; null if it is empty.
    fn value_of(&self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        if self.kind == Kind::Tick {
            return Ok(Value::Bool(!text.is_empty()));
        }
        if let Kind::Tools(kind) = self.kind {
            return tools::value_of(kind, text);
        }
        if trimmed.is_empty() {
            return Ok(Value::Null);
        }
        match self.kind {
            Kind::Number => {
                let number =
                    trimmed.parse::<i64>().map(Value::from).or_else(|_| trimmed.parse::<f64>().map(Value::from));
                number.ok().filter(|n| !n.is_null()).ok_or_else(|| "Write a number.".to_owned())
            }
            Kind::Words => Ok(words::of_lines(trimmed).map(Value::from).collect()),
            Kind::Parts { .. } => Ok(parts(trimmed).map(Value::from).collect()),
            Kind::Json { .. } | Kind::Rows(_) => words::json_of(trimmed),
            Kind::Text { .. } => Ok(text.into()),
            _ => Ok(trimmed.into()),
        }
    }
}

/// What stands between the texts of a [`Kind::Parts`].
const BETWEEN_PARTS: &str = "\n---\n";

/// The texts between lines of `---`, without empty ones.
fn parts(text: &str) -> impl Iterator<Item = String> {
    let parts: Vec<String> = text.split(BETWEEN_PARTS).map(|part| part.trim().to_owned()).collect();
    parts.into_iter().filter(|part| !part.is_empty())
}

/// Fields that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub title: &'static str,
    pub fields: &'static [Field],
    /// Whether the group is folded until one of its fields has an error.
    pub is_folded: bool,
}

/// The texts of a form by field name.
pub type Texts = BTreeMap<String, String>;

fn fields(groups: &'static [Group]) -> impl Iterator<Item = &'static Field> {
    groups.iter().flat_map(|group| group.fields)
}

/// The texts of a stored row.
#[must_use]
pub fn texts_of(groups: &'static [Group], row: &Value) -> Texts {
    let text = |field: &Field| field.text_of(row.pointer(field.pointer).unwrap_or(&Value::Null));
    fields(groups).map(|field| (field.name(), text(field))).collect()
}

/// The texts of a submitted form, without fields that change with time and that the user left alone.
#[must_use]
pub fn texts_sent(groups: &'static [Group], form: &Submitted) -> Texts {
    let is_touched = |field: &&Field| {
        let name = field.name();
        !field.is_moving || form.get(&format!("was-{name}")) != Some(form.text(&name))
    };
    fields(groups).filter(is_touched).map(|field| (field.name(), field.text_sent(form))).collect()
}

/// The texts of a form that may contain only some of the fields. Browsers do not send an unticked box, so boxes count
/// only if all required fields were sent.
#[must_use]
pub fn texts_given(groups: &'static [Group], form: &Submitted) -> Texts {
    let is_whole = fields(groups).filter(|field| field.is_needed).all(|field| form.has(&field.name()));
    let mut texts = texts_sent(groups, form);
    texts.retain(|name, _| {
        let is_box = fields(groups).any(|field| field.kind == Kind::Tick && field.name() == *name);
        form.has(name) || (is_box && is_whole)
    });
    texts
}

/// Errors for texts that are too long; None if there are none.
#[must_use]
pub fn too_long(groups: &'static [Group], texts: &Texts) -> Option<Errors> {
    let is_long = |field: &&Field| {
        let text = texts.get(&field.name()).filter(|_| !matches!(field.kind, Kind::Json { .. } | Kind::Rows(_)));
        // Characters are counted only if there are enough bytes.
        text.is_some_and(|text| text.len() > TEXT_CHARS_MAX && text.chars().count() > TEXT_CHARS_MAX)
    };
    let message = format!("This text may have at most {TEXT_CHARS_MAX} characters.");
    let long: Vec<_> = fields(groups).filter(is_long).map(|field| (field.name(), message.clone())).collect();
    (!long.is_empty()).then(|| Errors { fields: long, general: Vec::new() })
}

/// The errors of a form.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    /// By field name.
    pub fields: Vec<(String, String)>,
    /// Errors of the form as a whole.
    pub general: Vec<String>,
}

impl Errors {
    /// A service's errors about the form, at the fields that they mean. Errors that the form did not cause are returned.
    ///
    /// # Errors
    /// The error itself.
    pub fn of(groups: &'static [Group], error: Error) -> base::error::Result<Self> {
        let mut errors = Self::default();
        match error.code {
            Code::ValidationFailed => {
                for wrong in &error.errors {
                    errors.add(groups, &wrong.pointer, sentence(&wrong.code, &wrong.message));
                }
            }
            Code::SlugTaken => errors.add(groups, "/slug", error.detail.clone()),
            Code::Conflict | Code::Referenced | Code::PayloadTooLarge | Code::QuotaExceeded | Code::Forbidden => {
                errors.general.push(error.detail.clone());
            }
            _ => return Err(error),
        }
        Ok(errors)
    }

    fn add(&mut self, groups: &'static [Group], pointer: &str, message: String) {
        let within = |field: &&Field| {
            pointer.strip_prefix(field.pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match fields(groups).find(within) {
            None if pointer.is_empty() => self.general.push(message),
            None => self.general.push(format!("{}: {message}", pointer.trim_start_matches('/'))),
            Some(field) if pointer == field.pointer => self.fields.push((field.name(), message)),
            Some(field) => {
                let at = pointer.strip_prefix(field.pointer).unwrap_or_default().trim_start_matches('/');
                let at = match (field.kind, at.split_once('/')) {
                    (Kind::Rows(rows), Some((nth, part))) => rows.place(nth, part),
                    _ => at.to_owned(),
                };
                self.fields.push((field.name(), format!("{message} ({at})")));
            }
        }
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.general.is_empty()
    }
}

/// The error of a broken rule, for people to read.
fn sentence(code: &str, message: &str) -> String {
    if code == "required" {
        return "This field is required.".to_owned();
    }
    if let Some((_, expected)) = message.split_once(", expected ").filter(|_| message.starts_with("invalid ")) {
        let expected = expected.split(" at line ").next().unwrap_or(expected);
        let wanted = match expected {
            "u8" | "u16" | "u32" | "u64" => "a whole number, not below 0",
            "i8" | "i16" | "i32" | "i64" => "a whole number",
            "f32" | "f64" => "a number",
            "a string" => "text in quotes",
            "a boolean" => "true or false",
            "a map" => "members in braces",
            structure if structure.starts_with("struct ") => "members in braces",
            "a sequence" => "a list in brackets",
            other => other,
        };
        return format!("Write {wanted} here.");
    }
    let mut chars = message.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let text = format!("{first}{}", chars.as_str());
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

/// The changes of a form to a row, as a merge patch. With an empty row, the patch is a new row. A field that was not
/// sent changes nothing.
///
/// # Errors
/// Errors for texts that cannot be parsed.
pub fn changes(groups: &'static [Group], texts: &Texts, row: &Value) -> Result<Value, Errors> {
    let mut patch = Value::Object(Map::new());
    let mut errors = Errors::default();
    for field in fields(groups) {
        let Some(text) = texts.get(&field.name()) else { continue };
        let stored = row.pointer(field.pointer).unwrap_or(&Value::Null);
        // A text that did not change is left alone, even if it shows less than the stored value.
        if field.is_needed && text.trim().is_empty() {
            errors.fields.push((field.name(), "This field is required.".to_owned()));
            continue;
        }
        if *text == field.text_of(stored) {
            continue;
        }
        match field.value_of(text) {
            Ok(value) => put(&mut patch, field.pointer, instead_of(stored, value)),
            Err(message) => errors.fields.push((field.name(), message)),
        }
    }
    if errors.is_empty() { Ok(patch) } else { Err(errors) }
}

/// A value for a merge patch that replaces the stored object completely.
fn instead_of(stored: &Value, value: Value) -> Value {
    match (stored, value) {
        (Value::Object(old), Value::Object(mut new)) => {
            for (key, before) in old {
                let after = new.remove(key).map_or(Value::Null, |after| instead_of(before, after));
                new.insert(key.clone(), after);
            }
            Value::Object(new)
        }
        (_, value) => value,
    }
}

fn put(document: &mut Value, pointer: &str, value: Value) {
    let mut place = document;
    for part in pointer.trim_start_matches('/').split('/') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(members) = place else { return };
        place = members.entry(part).or_insert(Value::Null);
    }
    *place = value;
}
