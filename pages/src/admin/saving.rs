//! A submitted form for an existing row: what it changes, what is wrong with it, and whether somebody else changed the row first.

use serde_json::Value;

use super::{
    form::{self, Errors, Group, Texts},
    submitted::Submitted,
};
use base::error::{Code, Error, Result};
use edge::http::etag::Expected;

/// The submitted form.
pub struct Saving {
    groups: &'static [Group],
    pub texts: Texts,
    /// The version that the form was loaded with.
    pub version: i64,
}

/// The outcome.
pub enum Saved<T> {
    /// The row is stored. None if nothing had changed, so nothing was written.
    Done(Option<T>),
    Wrong(Errors),
    /// Somebody else changed the row. Nothing was written.
    Late,
}

impl Saving {
    /// Reads the form.
    ///
    /// # Errors
    /// `bad_request` for one without a version.
    pub fn of(groups: &'static [Group], form: &Submitted) -> Result<Self> {
        let none = "This form has no version of its row. Reload the page.";
        let version = form.version().ok_or_else(|| Error::new(Code::BadRequest, none))?;
        Ok(Self { groups, texts: form::texts_sent(groups, form), version })
    }

    /// Replaces a submitted text by the stored one wherever the user chose that.
    pub fn take_theirs(&mut self, form: &Submitted, row: &Value) {
        let theirs = form::texts_of(self.groups, row);
        for (name, text) in &mut self.texts {
            if form.text(&format!("use-{name}")) == "theirs"
                && let Some(their) = theirs.get(name)
            {
                text.clone_from(their);
            }
        }
    }

    /// Writes the changes, and `more`, if the row still has the version that the form was loaded with. Otherwise the
    /// form is late, unless it wants exactly what is stored: the page may have saved itself before its button was
    /// pressed.
    ///
    /// # Errors
    /// Errors that the form did not cause.
    pub async fn over<T>(
        &self,
        (version, row): (i64, &Value),
        more: Value,
        write: impl AsyncFnOnce(Expected, Value) -> Result<T>,
    ) -> Result<Saved<T>> {
        if let Some(errors) = form::too_long(self.groups, &self.texts) {
            return Ok(Saved::Wrong(errors));
        }
        let is_late = self.version != version;
        let mut patch = match form::changes(self.groups, &self.texts, row) {
            Ok(patch) => patch,
            Err(_) if is_late => return Ok(Saved::Late),
            Err(errors) => return Ok(Saved::Wrong(errors)),
        };
        merge(&mut patch, more);
        if patch.as_object().is_none_or(serde_json::Map::is_empty) {
            return Ok(Saved::Done(None));
        }
        if is_late {
            return Ok(Saved::Late);
        }
        match write(Expected::version(version), patch).await {
            Ok(written) => Ok(Saved::Done(Some(written))),
            Err(error) if error.code == Code::PreconditionFailed => Ok(Saved::Late),
            Err(error) => Ok(Saved::Wrong(Errors::of(self.groups, error)?)),
        }
    }
}

/// Adds the members of `more` to a merge patch; nulls stay nulls.
fn merge(patch: &mut Value, more: Value) {
    match (patch, more) {
        (_, Value::Null) => {}
        (Value::Object(members), Value::Object(more)) => {
            for (name, value) in more {
                match members.get_mut(&name) {
                    Some(known @ Value::Object(_)) if value.is_object() => merge(known, value),
                    _ => {
                        members.insert(name, value);
                    }
                }
            }
        }
        (patch, more) => *patch = more,
    }
}
