//! A list of things with parts, such as weapons: a row of fields for each, instead of JSON. As a text it is JSON all the same, so that
//! it is compared, merged and kept like any other field.
//!
//! Each row carries the stored thing whole. A part is changed only if its field was, so parts without a field stay, and what was not
//! touched stays exactly as it is. A list that rows cannot show is edited as JSON.

use serde_json::{Map, Value};

use crate::admin::{submitted::Submitted, words};
use base::json;
use rules::srd::{ARMOR, Ability, CONDITIONS, DAMAGE_TYPES, EFFECTS, SPELLS, WEAPONS};

/// The most things that rows show; each has a field for each part, and forms have a limit. Longer lists are edited as JSON.
const ROWS_MAX: usize = 24;
/// Empty rows for new things. The page adds another one when something is written into the last.
const BLANK: usize = 1;
/// The most rows that are read.
const READ_MAX: usize = ROWS_MAX + 20;

/// How the things are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A list of objects.
    Objects,
    /// A list of objects, of which each may be its name alone.
    Named,
    /// One object, or null.
    One,
    /// An object of objects. The first column is their key.
    ByKey,
    /// An object of numbers. The first column is their key, and the second the number.
    Numbers,
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    Text,
    Number,
    /// A list of words, with commas between them.
    Words,
    YesNo,
    /// A choice of texts; the empty one leaves the part out.
    Choice(&'static [&'static str]),
}

/// A part with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub label: &'static str,
    pub cell: Cell,
    /// The id of a list of suggestions; empty for none.
    pub offers: &'static str,
}

impl Column {
    /// A text.
    #[must_use]
    pub const fn text(name: &'static str, label: &'static str) -> Self {
        Self { name, label, cell: Cell::Text, offers: "" }
    }

    /// A number.
    #[must_use]
    pub const fn number(name: &'static str, label: &'static str) -> Self {
        Self { name, label, cell: Cell::Number, offers: "" }
    }

    /// Something else.
    #[must_use]
    pub const fn of(name: &'static str, label: &'static str, cell: Cell) -> Self {
        Self { name, label, cell, offers: "" }
    }

    /// The same with suggestions.
    #[must_use]
    pub const fn offers(self, offers: &'static str) -> Self {
        Self { offers, ..self }
    }

    /// What its field shows of a thing.
    fn text_of(&self, part: &Value) -> String {
        match (self.cell, part) {
            (_, Value::Null) => String::new(),
            (_, Value::String(text)) => text.clone(),
            (Cell::YesNo, Value::Bool(is)) => if *is { "yes" } else { "no" }.to_owned(),
            (Cell::Words, Value::Array(words)) if words.iter().all(Value::is_string) => {
                words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
            }
            (_, other) => other.to_string(),
        }
    }

    /// What a field's text stands for; none for an empty one. A number that is none stays a text, so that the error names it.
    fn part_of(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        Some(match self.cell {
            Cell::Number => {
                let whole = text.parse::<i64>().ok().map(Value::from);
                let number = whole.or_else(|| text.parse::<f64>().ok().map(Value::from)).filter(|n| !n.is_null());
                number.unwrap_or_else(|| text.into())
            }
            Cell::Words => text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(Value::from).collect(),
            Cell::YesNo => Value::Bool(text == "yes"),
            Cell::Text | Cell::Choice(_) => text.into(),
        })
    }

    /// The choices of its field, without the empty one.
    #[must_use]
    pub fn choices(&self) -> &'static [&'static str] {
        match self.cell {
            Cell::Choice(choices) => choices,
            Cell::YesNo => &["yes", "no"],
            _ => &[],
        }
    }
}

impl CellView {
    /// The width of its field: `long`, or `short` for numbers.
    #[must_use]
    pub fn size(&self) -> &'static str {
        if self.is_number() { "short" } else { "long" }
    }

    /// Whether it holds a number.
    #[must_use]
    pub fn is_number(&self) -> bool {
        self.column.cell == Cell::Number
    }
}

/// A list of things with parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Rows {
    pub shape: Shape,
    /// The first one names the thing: a row without it does not count.
    pub columns: &'static [Column],
}

/// A row for a template.
pub struct RowView {
    pub cells: Vec<CellView>,
    /// Its key, if the things have keys.
    pub key: String,
    /// The thing as it is stored, as JSON.
    pub whole: String,
}

/// A field of a row.
pub struct CellView {
    pub column: &'static Column,
    pub text: String,
    /// Whether the text is a choice that its field does not list.
    pub is_unlisted: bool,
}

impl Rows {
    /// The rows of a text, and some empty ones. None for a text that rows cannot show.
    #[must_use]
    pub fn view(&self, text: &str) -> Option<Vec<RowView>> {
        let value = if text.trim().is_empty() { Value::Null } else { json::parse(text).ok()? };
        let mut things = self.things(&value)?;
        if things.len() > ROWS_MAX {
            return None;
        }
        let blank = if self.shape == Shape::One { 1_usize.saturating_sub(things.len()) } else { BLANK };
        things.extend(std::iter::repeat_n((String::new(), Value::Null), blank));
        Some(things.iter().map(|(key, thing)| self.row(key, thing)).collect())
    }

    /// The things of a value: its key, if it has one, and itself. None for a value of another shape, or with a thing that has no name.
    fn things(&self, value: &Value) -> Option<Vec<(String, Value)>> {
        let first = self.columns.first()?;
        let is_named = |thing: &Value| match thing {
            Value::String(_) => matches!(self.shape, Shape::Named | Shape::One) && first.name == "name",
            thing => thing.get(first.name).is_some_and(|name| !first.text_of(name).trim().is_empty()),
        };
        let things: Vec<(String, Value)> = match (self.shape, value) {
            (_, Value::Null) => return Some(Vec::new()),
            (Shape::Objects | Shape::Named, Value::Array(things)) => {
                things.iter().map(|thing| (String::new(), thing.clone())).collect()
            }
            (Shape::One, Value::Object(members)) if members.is_empty() => return Some(Vec::new()),
            (Shape::One, thing @ (Value::Object(_) | Value::String(_))) => vec![(String::new(), thing.clone())],
            (Shape::ByKey, Value::Object(members)) if members.values().all(Value::is_object) => {
                return Some(members.iter().map(|(key, thing)| (key.clone(), thing.clone())).collect());
            }
            (Shape::Numbers, Value::Object(members)) if members.values().all(|v| !v.is_object() && !v.is_array()) => {
                return Some(members.iter().map(|(key, number)| (key.clone(), number.clone())).collect());
            }
            _ => return None,
        };
        things.iter().all(|(_, thing)| is_named(thing)).then_some(things)
    }

    fn row(&self, key: &str, thing: &Value) -> RowView {
        let cell = |(n, column): (usize, &'static Column)| {
            let text = self.text_of(n, column, key, thing);
            let is_unlisted = !text.is_empty() && !column.choices().contains(&text.as_str());
            CellView { column, text, is_unlisted }
        };
        let whole = if thing.is_null() { String::new() } else { thing.to_string() };
        RowView { cells: self.columns.iter().enumerate().map(cell).collect(), key: key.to_owned(), whole }
    }

    /// Where an error is, in words: the row, from 1, and the label of the part.
    #[must_use]
    pub fn place(&self, nth: &str, part: &str) -> String {
        let label = self.columns.iter().find(|column| column.name == part).map_or(part, |column| column.label);
        match nth.parse::<usize>() {
            Ok(nth) => format!("row {}, {label}", nth.saturating_add(1)),
            Err(_) => format!("{nth}, {label}"),
        }
    }

    fn has_keys(&self) -> bool {
        matches!(self.shape, Shape::ByKey | Shape::Numbers)
    }

    /// What the field of column `n` shows of a thing.
    fn text_of(&self, n: usize, column: &Column, key: &str, thing: &Value) -> String {
        match (n, self.has_keys(), thing) {
            (0, true, _) => key.to_owned(),
            (_, true, number) if self.shape == Shape::Numbers => column.text_of(number),
            (0, false, Value::String(name)) => name.clone(),
            (_, _, thing) => column.text_of(thing.get(column.name).unwrap_or(&Value::Null)),
        }
    }

    /// The text that a form's rows stand for; the text itself if the form has no rows.
    #[must_use]
    pub fn text_sent(&self, name: &str, form: &Submitted) -> String {
        let Ok(count) = form.text(&format!("{name}-rows")).parse::<usize>() else { return form.text(name).to_owned() };
        let mut things = Vec::new();
        for n in 0..count.min(READ_MAX) {
            let sent = |column: &Column| form.text(&format!("{name}-{n}-{}", column.name)).to_owned();
            let texts: Vec<String> = self.columns.iter().map(sent).collect();
            if texts.first().is_none_or(|first| first.trim().is_empty()) {
                continue;
            }
            let whole = json::parse(form.text(&format!("{name}-{n}-whole"))).unwrap_or_default();
            let was = form.text(&format!("{name}-{n}-key"));
            things.push((texts[0].trim().to_owned(), self.thing(was, whole, &texts)));
        }
        let value = match self.shape {
            Shape::Objects | Shape::Named => things.into_iter().map(|(_, thing)| thing).collect(),
            Shape::One => things.into_iter().next().map_or(Value::Null, |(_, thing)| thing),
            Shape::ByKey | Shape::Numbers => Value::Object(things.into_iter().collect()),
        };
        words::json(&value)
    }

    /// A thing with the parts that were changed.
    fn thing(&self, key: &str, whole: Value, texts: &[String]) -> Value {
        let mut thing = whole;
        for (n, (column, text)) in self.columns.iter().zip(texts).enumerate() {
            // Browsers send the ends of lines in their own way, and a thing's texts have none.
            if self.text_of(n, column, key, &thing).trim() == text.trim() || (n == 0 && self.has_keys()) {
                continue;
            }
            let part = column.part_of(text);
            match (self.shape, &mut thing) {
                (Shape::Numbers, thing) => *thing = part.unwrap_or_default(),
                (_, Value::Object(members)) => put(members, column.name, part),
                (Shape::Named, thing) if n == 0 => *thing = part.unwrap_or_default(),
                (_, thing) => {
                    let mut members = Map::new();
                    if let Value::String(name) = &*thing {
                        members.insert("name".to_owned(), name.as_str().into());
                    }
                    put(&mut members, column.name, part);
                    *thing = Value::Object(members);
                }
            }
        }
        thing
    }
}

fn put(members: &mut Map<String, Value>, name: &str, part: Option<Value>) {
    match part {
        Some(part) => members.insert(name.to_owned(), part),
        None => members.remove(name),
    };
}

/// The names of the SRD that a list of suggestions offers.
#[must_use]
pub fn offered(list: &str) -> Vec<&'static str> {
    match list {
        "srd-weapons" => WEAPONS.iter().map(|weapon| weapon.name).collect(),
        "srd-armor" => ARMOR.iter().map(|armor| armor.name).collect(),
        "srd-spells" => SPELLS.iter().map(|spell| spell.name).collect(),
        "srd-conditions" => CONDITIONS.iter().map(|condition| condition.name).collect(),
        "srd-effects" => EFFECTS.iter().map(|effect| effect.name).collect(),
        "srd-damage" => DAMAGE_TYPES.to_vec(),
        "srd-abilities" => Ability::ALL.iter().map(|ability| ability.name()).collect(),
        _ => Vec::new(),
    }
}
