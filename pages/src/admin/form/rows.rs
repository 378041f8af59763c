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
/// The most bytes of such a list. A form holds each thing twice: in its fields, and whole.
const BYTES_MAX: usize = 64 * 1024;
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
    /// One line.
    Text,
    /// Several lines.
    Lines,
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
            Cell::Lines => text.into(),
            Cell::Text | Cell::Choice(_) => text.into(),
        })
    }

    /// Whether its field can show a part and give it back as it is. A browser takes line breaks out of a field with one line, and sends
    /// those of a field with several in its own way.
    fn can_show(&self, part: &Value) -> bool {
        match part {
            Value::String(text) if self.cell == Cell::Lines => !text.contains('\r'),
            Value::String(text) => !text.contains(['\r', '\n']),
            Value::Array(words) => {
                self.cell == Cell::Words && words.iter().all(|w| w.as_str().is_some_and(|w| !w.contains(['\r', '\n'])))
            }
            Value::Object(_) => false,
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
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

    /// Whether its text may have several lines.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        self.column.cell == Cell::Lines
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
    /// Whether the field's error is about it.
    pub is_wrong: bool,
}

impl Rows {
    /// The rows of a text, and some empty ones, with the field's error at the part that it names. None for a text that rows cannot show.
    #[must_use]
    pub fn view(&self, text: &str, error: &str) -> Option<Vec<RowView>> {
        let value = if text.trim().is_empty() { Value::Null } else { json::parse(text).ok()? };
        let mut things = self.things(&value)?;
        if things.len() > ROWS_MAX || text.len() > BYTES_MAX {
            return None;
        }
        let blank = if self.shape == Shape::One { 1_usize.saturating_sub(things.len()) } else { BLANK };
        things.extend(std::iter::repeat_n((String::new(), Value::Null), blank));
        let row = |(n, (key, thing)): (usize, &(String, Value))| self.row(n, key, thing, error);
        Some(things.iter().enumerate().map(row).collect())
    }

    /// The things of a value: its key, if it has one, and itself. None for what rows cannot show: another shape, a thing without a name,
    /// a part that no field gives back as it is.
    fn things(&self, value: &Value) -> Option<Vec<(String, Value)>> {
        let whole = |thing: &Value| (String::new(), thing.clone());
        let keyed = |(key, thing): (&String, &Value)| (key.clone(), thing.clone());
        let things: Vec<(String, Value)> = match (self.shape, value) {
            (_, Value::Null) => Vec::new(),
            (Shape::Objects | Shape::Named, Value::Array(things)) => things.iter().map(whole).collect(),
            (Shape::One, Value::Object(members)) if members.is_empty() => Vec::new(),
            (Shape::One, thing) => vec![whole(thing)],
            (Shape::ByKey | Shape::Numbers, Value::Object(members)) => members.iter().map(keyed).collect(),
            _ => return None,
        };
        things.iter().all(|(key, thing)| self.can_show(key, thing)).then_some(things)
    }

    fn can_show(&self, key: &str, thing: &Value) -> bool {
        let is_shape = match self.shape {
            Shape::Objects | Shape::ByKey => thing.is_object(),
            Shape::Named | Shape::One => thing.is_object() || (thing.is_string() && self.is_named()),
            Shape::Numbers => !thing.is_object() && !thing.is_array(),
        };
        let has_name = |n, column| n > 0 || !self.text_of(n, column, key, thing).trim().is_empty();
        let mut columns = self.columns.iter().enumerate();
        is_shape
            && !key.contains(['\r', '\n'])
            && columns.all(|(n, column)| {
                has_name(n, column) && column.can_show(thing.get(column.name).unwrap_or(&Value::Null))
            })
    }

    /// Whether the first part is the name, for which a thing may stand.
    fn is_named(&self) -> bool {
        self.columns.first().is_some_and(|first| first.name == "name")
    }

    fn row(&self, nth: usize, key: &str, thing: &Value, error: &str) -> RowView {
        let nth = if self.has_keys() { key.to_owned() } else { nth.to_string() };
        let cell = |(n, column): (usize, &'static Column)| {
            let text = self.text_of(n, column, key, thing);
            let is_unlisted = !text.is_empty() && !column.choices().contains(&text.as_str());
            let is_wrong = error.ends_with(&format!("({})", self.place(&nth, column.name)));
            CellView { column, text, is_unlisted, is_wrong }
        };
        let whole = if thing.is_null() { String::new() } else { thing.to_string() };
        RowView { cells: self.columns.iter().enumerate().map(cell).collect(), key: key.to_owned(), whole }
    }

    /// Where an error is, in words: the row, from 1, and the label of the part.
    #[must_use]
    pub fn place(&self, nth: &str, part: &str) -> String {
        let label = self.columns.iter().find(|column| column.name == part).map_or(part, |column| column.label);
        match nth.parse::<usize>() {
            _ if self.has_keys() => format!("{nth}, {label}"),
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
            let whole = form.text(&format!("{name}-{n}-whole"));
            let is_empty = |text: &String| text.trim().is_empty();
            let is_removed = !whole.is_empty() && texts.first().is_none_or(is_empty);
            if is_removed || texts.iter().all(is_empty) {
                continue;
            }
            let was = form.text(&format!("{name}-{n}-key"));
            let key = texts.first().map_or("", |key| key.trim());
            let key = if key == was.trim() { was } else { key };
            things.push((key.to_owned(), self.thing(was, json::parse(whole).unwrap_or_default(), &texts)));
        }
        match self.shape {
            Shape::Objects | Shape::Named => words::json(&things.into_iter().map(|(_, thing)| thing).collect()),
            Shape::One => words::json(&things.into_iter().next().map_or(Value::Null, |(_, thing)| thing)),
            Shape::ByKey | Shape::Numbers => by_key(things),
        }
    }

    /// A thing with the parts that were changed.
    fn thing(&self, key: &str, whole: Value, texts: &[String]) -> Value {
        let mut thing = if self.shape == Shape::ByKey && whole.is_null() { Value::Object(Map::new()) } else { whole };
        for (n, (column, text)) in self.columns.iter().zip(texts).enumerate() {
            // Only older rows have other line ends than LF.
            let was = self.text_of(n, column, key, &thing).replace("\r\n", "\n");
            if was.trim() == text.trim() || (n == 0 && self.has_keys()) {
                continue;
            }
            let part = column.part_of(text);
            match (self.shape, &mut thing) {
                // A missing number stays a text, so that the error names it.
                (Shape::Numbers, thing) => *thing = part.unwrap_or_else(|| Value::String(String::new())),
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

/// An object as JSON. A key that is there twice stays there twice, which is an error instead of a loss.
fn by_key(things: Vec<(String, Value)>) -> String {
    let mut keys = std::collections::HashSet::new();
    if things.iter().all(|(key, _)| keys.insert(key.as_str())) {
        return words::json(&Value::Object(things.into_iter().collect()));
    }
    let member = |(key, thing): &(String, Value)| format!("  {}: {thing}", Value::from(key.as_str()));
    format!("{{\n{}\n}}", things.iter().map(member).collect::<Vec<_>>().join(",\n"))
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
