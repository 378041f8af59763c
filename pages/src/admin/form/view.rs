//! A form for a template, shown with `{% include "admin/fields.html" %}`: the texts that were filled in, the errors,
//! and the version that somebody else stored.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Errors, Field, Group, Kind, Texts, fields,
    rows::{RowView, Shape, offered},
    texts_of,
    tools::{self, Tick},
};

/// A form for a template.
pub struct FormView {
    pub groups: Vec<GroupView>,
    /// All errors: the field's id (empty if the error is about the whole form), its label, the sentence.
    pub problems: Vec<(String, &'static str, String)>,
    pub is_read_only: bool,
}

/// Fields that belong together.
pub struct GroupView {
    pub title: &'static str,
    pub is_folded: bool,
    pub is_open: bool,
    pub fields: Vec<FieldView>,
    of: &'static [Field],
}

/// A field for a template.
pub struct FieldView {
    pub name: String,
    pub label: &'static str,
    pub hint: &'static str,
    pub kind: Kind,
    pub is_needed: bool,
    pub text: String,
    pub error: Option<String>,
    /// The stored text, if somebody changed it since the form was loaded.
    pub theirs: Option<String>,
    /// The text that the form is loaded with, for a field that changes with time.
    pub was: Option<String>,
    /// A note for whoever reads the form.
    pub note: Option<String>,
}

impl FieldView {
    /// The ids of the elements that describe the field.
    #[must_use]
    pub fn described_by(&self) -> String {
        let parts = [
            ("hint", !self.hint.is_empty()),
            ("note", self.note.is_some()),
            ("error", self.error.is_some()),
            ("theirs", self.theirs.is_some()),
        ];
        let ids = parts.iter().filter(|(_, is_there)| *is_there).map(|(what, _)| format!("{}-{what}", self.name));
        ids.collect::<Vec<_>>().join(" ")
    }

    /// The id of the page's list of suggestions for this field; empty for none.
    #[must_use]
    pub fn offers(&self) -> &'static str {
        match self.name.as_str() {
            "associated_id" => "names",
            "holder_id" | "player_id" => "actors",
            _ => "",
        }
    }

    /// How many lines the field shows.
    #[must_use]
    pub fn rows(&self) -> u8 {
        match self.kind {
            Kind::Text { rows } | Kind::Json { rows } | Kind::Parts { rows } => rows,
            Kind::Words | Kind::Tools(_) | Kind::Rows(_) => 3,
            _ => 1,
        }
    }

    /// The choices: the value that is sent, and the label that people read.
    #[must_use]
    pub fn choices(&self) -> &'static [(&'static str, &'static str)] {
        match self.kind {
            Kind::Choice(choices) => choices,
            _ => &[],
        }
    }

    /// Whether the field's value is not among its choices, for example empty. Then the value becomes an extra choice,
    /// or the browser would send another one.
    #[must_use]
    pub fn is_unlisted(&self) -> bool {
        !self.choices().iter().any(|(value, _)| *value == self.text)
    }

    /// Whether the field has several lines.
    #[must_use]
    pub fn is_area(&self) -> bool {
        matches!(self.kind, Kind::Text { .. } | Kind::Json { .. } | Kind::Words | Kind::Parts { .. } | Kind::Rows(_))
    }

    /// How a row is removed.
    #[must_use]
    pub fn how_to_remove(&self) -> String {
        let first = if let Kind::Rows(rows) = self.kind { rows.columns.first() } else { None };
        format!("To remove a row, empty its field {}.", first.map_or("", |column| column.label))
    }

    /// Whether it is a list of things that rows cannot show.
    #[must_use]
    pub fn is_json_of_rows(&self) -> bool {
        matches!(self.kind, Kind::Rows(_)) && self.things().is_none()
    }

    /// Whether its rows grow in number.
    #[must_use]
    pub fn grows(&self) -> bool {
        matches!(self.kind, Kind::Rows(rows) if rows.shape != Shape::One)
    }

    /// The rows of a list of things. None if it is edited as JSON.
    #[must_use]
    pub fn things(&self) -> Option<Vec<RowView>> {
        let Kind::Rows(rows) = self.kind else { return None };
        rows.view(&self.text, self.error.as_deref().unwrap_or_default())
    }

    /// Whether the field is as wide as the form, because its lines are long.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        (self.is_area() && self.kind != Kind::Words) || self.is_tools()
    }

    /// Whether the field holds tools: a box for each tool, and a text field for others.
    #[must_use]
    pub fn is_tools(&self) -> bool {
        matches!(self.kind, Kind::Tools(_))
    }

    /// A box for each tool.
    #[must_use]
    pub fn ticks(&self) -> Vec<Tick> {
        if let Kind::Tools(kind) = self.kind { tools::ticks(kind, &self.text) } else { Vec::new() }
    }

    /// Tools without a box.
    #[must_use]
    pub fn other_tools(&self) -> String {
        if let Kind::Tools(kind) = self.kind { tools::others(kind, &self.text) } else { String::new() }
    }

    /// Whether the field is written as JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        matches!(self.kind, Kind::Json { .. } | Kind::Rows(_))
    }
}

impl FormView {
    /// The lists of suggestions that the rows of the form offer: their ids and names.
    #[must_use]
    pub fn lists(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        let rows = self.groups.iter().flat_map(|group| group.of).filter_map(|field| match field.kind {
            Kind::Rows(rows) => Some(rows.columns),
            _ => None,
        });
        let ids: BTreeSet<&str> = rows.flatten().map(|column| column.offers).filter(|id| !id.is_empty()).collect();
        ids.into_iter().map(|id| (id, offered(id))).collect()
    }

    /// A form with the texts that were filled in, the errors, and the version that somebody else stored.
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
            let note = if let Kind::Tools(kind) = kind { tools::note(kind, &text) } else { None };
            FieldView { name, label, hint, kind, is_needed, text, error, theirs, was: None, note }
        };
        let group_view = |group: &Group| {
            let fields: Vec<_> = group.fields.iter().map(field_view).collect();
            let is_told = |field: &FieldView| field.error.is_some() || field.theirs.is_some() || field.note.is_some();
            let is_open = fields.iter().any(is_told);
            GroupView { title: group.title, is_folded: group.is_folded, is_open, fields, of: group.fields }
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

    /// The form of a row as it is stored.
    #[must_use]
    pub fn of_row(groups: &'static [Group], row: &Value, is_read_only: bool) -> Self {
        let stored = texts_of(groups, row);
        Self::new(groups, &stored, &Errors::default(), None, is_read_only).with_stored(&stored)
    }

    /// A submitted form for a row. Fields that were not sent show the stored values. With `theirs`, fields that differ
    /// show both values.
    #[must_use]
    pub fn over(groups: &'static [Group], row: &Value, sent: &Texts, errors: &Errors, theirs: bool) -> Self {
        let stored = texts_of(groups, row);
        let mut texts = stored.clone();
        texts.extend(sent.clone());
        Self::new(groups, &texts, errors, theirs.then_some(&stored), false).with_stored(&stored)
    }

    fn with_stored(mut self, stored: &Texts) -> Self {
        for group in &mut self.groups {
            for (view, field) in group.fields.iter_mut().zip(group.of) {
                view.was = field.is_moving.then(|| stored.get(&view.name).cloned().unwrap_or_default());
            }
        }
        self
    }
}
