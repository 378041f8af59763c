//! Fields of forms from a list: what they are called, how their text becomes JSON and back, and what is wrong with them.
//!
//! A field is named by the JSON pointer of what it holds, so that an error of a service finds its field. A template shows a
//! [`FormView`] with `{% include "admin/fields.html" %}`.

mod common;
mod tools;
mod view;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub use common::{EXTENSIONS, EXTERNAL_REF, OTHER_PROGRAMS, SIZES};
pub use view::FormView;

use super::{submitted::Submitted, words};
use crate::{
    error::{Code, Error},
    json,
    lore::CONTENT_CHARS_MAX,
    prompt::EntityKind,
};

/// Characters of the longest text of the world; JSON is bounded by what a form may have.
const TEXT_CHARS_MAX: usize = CONTENT_CHARS_MAX;

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One line of text.
    Line,
    /// Several lines.
    Text { rows: u8 },
    /// A number.
    Number,
    /// One of a few: what is sent, what is read.
    Choice(&'static [(&'static str, &'static str)]),
    /// A list of texts, each on a line of its own.
    Words,
    /// A box to tick.
    Tick,
    /// What has too many parts for fields of its own, as JSON.
    Json { rows: u8 },
    /// The tools that an entity of this kind may call: boxes, and JSON for others.
    Tools(EntityKind),
}

/// A field of a form.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Where its value is: `/stats/armor_class`.
    pub pointer: &'static str,
    pub label: &'static str,
    pub hint: &'static str,
    pub kind: Kind,
    pub is_needed: bool,
    /// Whether its value changes with time: it is written only if somebody wrote another than the form was shown with.
    pub is_moving: bool,
}

impl Field {
    /// A field that may be left empty.
    #[must_use]
    pub const fn new(pointer: &'static str, label: &'static str, kind: Kind) -> Self {
        Self { pointer, label, hint: "", kind, is_needed: false, is_moving: false }
    }

    /// The same with a sentence below it.
    #[must_use]
    pub const fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    /// The same, and it may not be left empty.
    #[must_use]
    pub const fn needed(self) -> Self {
        Self { is_needed: true, ..self }
    }

    /// The same, and its value changes with time.
    #[must_use]
    pub const fn moving(self) -> Self {
        Self { is_moving: true, ..self }
    }

    /// Its name in a form, also good as an id.
    #[must_use]
    pub fn name(&self) -> String {
        self.pointer.trim_start_matches('/').replace('/', "-")
    }

    /// What was sent for it.
    fn text_sent(&self, form: &Submitted) -> String {
        let name = self.name();
        match self.kind {
            Kind::Tools(kind) if form.has(&format!("{name}-boxes")) => {
                let ticked = format!("{name}-ticked");
                tools::text_sent(kind, &form.all(&ticked).collect::<Vec<_>>(), form.text(&name))
            }
            _ => form.text(&name).to_owned(),
        }
    }

    /// What a stored value reads as.
    fn text_of(&self, value: &Value) -> String {
        match (self.kind, value) {
            (_, Value::Null) => String::new(),
            (Kind::Json { .. }, Value::Array(items)) if items.is_empty() => String::new(),
            (Kind::Json { .. }, Value::Object(members)) if members.is_empty() => String::new(),
            (Kind::Json { .. }, value) => serde_json::to_string_pretty(value).unwrap_or_default(),
            (Kind::Tick, Value::Bool(is_set)) => if *is_set { "true" } else { "" }.to_owned(),
            (Kind::Words, Value::Array(items)) => words::lines(items),
            (Kind::Tools(kind), Value::Array(items)) => tools::text_of(kind, items),
            (_, other) => words::shown(other),
        }
    }

    /// What a text means; null if it is empty.
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
            Kind::Json { .. } => json::parse(trimmed).map_err(|e| format!("This is not JSON: {e}.")),
            Kind::Text { .. } => Ok(text.into()),
            _ => Ok(trimmed.into()),
        }
    }
}

/// Fields that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub title: &'static str,
    pub fields: &'static [Field],
    /// Whether it is shown folded, until something in it is wrong.
    pub is_folded: bool,
}

/// What was filled in, by the fields' names.
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

/// The texts of a form that was sent. Left out is what changes with time and was left alone.
#[must_use]
pub fn texts_sent(groups: &'static [Group], form: &Submitted) -> Texts {
    let is_touched = |field: &&Field| {
        let name = field.name();
        !field.is_moving || form.get(&format!("was-{name}")) != Some(form.text(&name))
    };
    fields(groups).filter(is_touched).map(|field| (field.name(), field.text_sent(form))).collect()
}

/// The texts of a form that may hold some of the fields alone. An unticked box is not sent, so boxes count where text fields do.
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

/// What is longer than anything that is kept; none if nothing is.
#[must_use]
pub fn too_long(groups: &'static [Group], texts: &Texts) -> Option<Errors> {
    let is_long = |field: &&Field| {
        let text = texts.get(&field.name()).filter(|_| !matches!(field.kind, Kind::Json { .. }));
        // Characters are counted only where there are bytes enough.
        text.is_some_and(|text| text.len() > TEXT_CHARS_MAX && text.chars().count() > TEXT_CHARS_MAX)
    };
    let message = format!("This has more than {TEXT_CHARS_MAX} characters.");
    let long: Vec<_> = fields(groups).filter(is_long).map(|field| (field.name(), message.clone())).collect();
    (!long.is_empty()).then(|| Errors { fields: long, general: Vec::new() })
}

/// What is wrong with a form.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    /// By the fields' names.
    pub fields: Vec<(String, String)>,
    /// With the form as a whole.
    pub general: Vec<String>,
}

impl Errors {
    /// What a service says about the form, at the fields that it means; what is no fault of the form's is given back.
    ///
    /// # Errors
    /// The error itself.
    pub fn of(groups: &'static [Group], error: Error) -> crate::error::Result<Self> {
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

/// A rule that was broken, as a person reads it.
fn sentence(code: &str, message: &str) -> String {
    if code == "required" {
        return "This is needed.".to_owned();
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
        return format!("Needed here: {wanted}.");
    }
    let mut chars = message.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let text = format!("{first}{}", chars.as_str());
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

/// What a form changes of a row, as a merge patch; of nothing, a new row. A field that was not sent changes nothing.
///
/// # Errors
/// What cannot be read.
pub fn changes(groups: &'static [Group], texts: &Texts, row: &Value) -> Result<Value, Errors> {
    let mut patch = Value::Object(Map::new());
    let mut errors = Errors::default();
    for field in fields(groups) {
        let Some(text) = texts.get(&field.name()) else { continue };
        let stored = row.pointer(field.pointer).unwrap_or(&Value::Null);
        // What reads as before is left alone, also where its text says less than it.
        if field.is_needed && text.trim().is_empty() {
            errors.fields.push((field.name(), "This is needed.".to_owned()));
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

/// A value for a merge patch that leaves nothing of an object that was there before.
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
