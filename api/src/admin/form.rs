//! Fields of forms from a list: what they are called, how their text becomes JSON and back, and what is wrong with them.
//!
//! A field is named by the JSON pointer of what it holds, so that an error of a service finds its field. A template shows a
//! [`FormView`] with `{% include "admin/fields.html" %}`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::submitted::Submitted;
use crate::error::{Code, Error};

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
    /// Words, separated by commas or lines: a list of texts.
    Words,
    /// A box to tick.
    Tick,
    /// What has too many parts for fields of its own, as JSON.
    Json { rows: u8 },
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
}

impl Field {
    #[must_use]
    pub const fn new(pointer: &'static str, label: &'static str, kind: Kind) -> Self {
        Self { pointer, label, hint: "", kind, is_needed: false }
    }

    #[must_use]
    pub const fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    #[must_use]
    pub const fn needed(self) -> Self {
        Self { is_needed: true, ..self }
    }

    /// Its name in a form, also good as an id.
    #[must_use]
    pub fn name(&self) -> String {
        self.pointer.trim_start_matches('/').replace('/', "-")
    }

    /// What a stored value reads as.
    fn text_of(&self, value: &Value) -> String {
        match (self.kind, value) {
            (_, Value::Null) => String::new(),
            (Kind::Words, Value::Array(words)) => words
                .iter()
                .map(|w| w.as_str().map_or_else(|| w.to_string(), ToOwned::to_owned))
                .collect::<Vec<_>>()
                .join(", "),
            (Kind::Json { .. }, Value::Array(items)) if items.is_empty() => String::new(),
            (Kind::Json { .. }, Value::Object(members)) if members.is_empty() => String::new(),
            (Kind::Json { .. }, value) => serde_json::to_string_pretty(value).unwrap_or_default(),
            (Kind::Tick, Value::Bool(is_set)) => if *is_set { "true" } else { "" }.to_owned(),
            (_, Value::String(text)) => text.clone(),
            (_, other) => other.to_string(),
        }
    }

    /// What a text means; null if it is empty.
    fn value_of(&self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        if self.kind == Kind::Tick {
            return Ok(Value::Bool(!text.is_empty()));
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
            Kind::Words => {
                Ok(trimmed.split([',', '\n']).map(str::trim).filter(|w| !w.is_empty()).map(Value::from).collect())
            }
            Kind::Json { .. } => serde_json::from_str(trimmed).map_err(|e| format!("This is not JSON: {e}.")),
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

/// The texts of a form that was sent.
#[must_use]
pub fn texts_sent(groups: &'static [Group], form: &Submitted) -> Texts {
    fields(groups).map(|field| (field.name(), form.text(&field.name()).to_owned())).collect()
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
    let mut chars = message.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let text = format!("{first}{}", chars.as_str());
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

/// What a form changes of a row, as a merge patch; of nothing, a new row.
///
/// # Errors
/// What cannot be read.
pub fn changes(groups: &'static [Group], texts: &Texts, row: &Value) -> Result<Value, Errors> {
    let mut patch = Value::Object(Map::new());
    let mut errors = Errors::default();
    for field in fields(groups) {
        let text = texts.get(&field.name()).map(String::as_str).unwrap_or_default();
        let stored = row.pointer(field.pointer).unwrap_or(&Value::Null);
        // What reads as before is left alone, also where its text says less than it.
        if field.is_needed && text.trim().is_empty() {
            errors.fields.push((field.name(), "This is needed.".to_owned()));
            continue;
        }
        if text == field.text_of(stored) {
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

/// A new row from a patch: what was left empty is left out.
#[must_use]
pub fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect()
        }
        other => other,
    }
}

/// A form as a template shows it.
pub struct FormView {
    pub groups: Vec<GroupView>,
    /// Everything that is wrong: the field's id if it is one's, its label, the sentence.
    pub problems: Vec<(String, &'static str, String)>,
    pub is_read_only: bool,
}

/// Fields that belong together.
pub struct GroupView {
    pub title: &'static str,
    pub is_folded: bool,
    pub is_open: bool,
    pub fields: Vec<FieldView>,
}

/// A field as a template shows it.
pub struct FieldView {
    pub name: String,
    pub label: &'static str,
    pub hint: &'static str,
    pub kind: Kind,
    pub is_needed: bool,
    pub text: String,
    pub error: Option<String>,
    /// What is stored now, if somebody changed it since.
    pub theirs: Option<String>,
}

impl FieldView {
    /// The ids of what describes it.
    #[must_use]
    pub fn described_by(&self) -> String {
        let parts =
            [("hint", !self.hint.is_empty()), ("error", self.error.is_some()), ("theirs", self.theirs.is_some())];
        let ids = parts.iter().filter(|(_, is_there)| *is_there).map(|(what, _)| format!("{}-{what}", self.name));
        ids.collect::<Vec<_>>().join(" ")
    }

    /// The id of the list that a page may offer for it; empty for none.
    #[must_use]
    pub fn offers(&self) -> &'static str {
        match self.name.as_str() {
            "associated_id" => "names",
            "holder_id" | "player_id" => "actors",
            _ => "",
        }
    }

    #[must_use]
    pub fn rows(&self) -> u8 {
        match self.kind {
            Kind::Text { rows } | Kind::Json { rows } => rows,
            _ => 1,
        }
    }

    #[must_use]
    pub fn choices(&self) -> &'static [(&'static str, &'static str)] {
        match self.kind {
            Kind::Choice(choices) => choices,
            _ => &[],
        }
    }

    #[must_use]
    pub fn is_area(&self) -> bool {
        matches!(self.kind, Kind::Text { .. } | Kind::Json { .. })
    }

    #[must_use]
    pub fn is_json(&self) -> bool {
        matches!(self.kind, Kind::Json { .. })
    }
}

impl FormView {
    /// A form with what was filled in, what is wrong, and what somebody else made of it.
    #[must_use]
    pub fn new(
        groups: &'static [Group],
        texts: &Texts,
        errors: &Errors,
        theirs: Option<&Texts>,
        is_read_only: bool,
    ) -> Self {
        let field_view = |field: &Field| {
            let name = field.name();
            let text = texts.get(&name).cloned().unwrap_or_default();
            let theirs = theirs.and_then(|theirs| theirs.get(&name)).filter(|their| **their != text).cloned();
            let error = errors.fields.iter().find(|(at, _)| *at == name).map(|(_, message)| message.clone());
            let Field { label, hint, kind, is_needed, .. } = *field;
            FieldView { name, label, hint, kind, is_needed, text, error, theirs }
        };
        let group_view = |group: &Group| {
            let fields: Vec<_> = group.fields.iter().map(field_view).collect();
            let is_open = fields.iter().any(|field| field.error.is_some() || field.theirs.is_some());
            GroupView { title: group.title, is_folded: group.is_folded, is_open, fields }
        };
        let general = errors.general.iter().map(|message| (String::new(), "", message.clone()));
        let at_fields = fields(groups).filter_map(|field| {
            let (name, message) = errors.fields.iter().find(|(at, _)| *at == field.name())?;
            Some((name.clone(), field.label, message.clone()))
        });
        Self {
            groups: groups.iter().map(group_view).collect(),
            problems: general.chain(at_fields).collect(),
            is_read_only,
        }
    }
}
