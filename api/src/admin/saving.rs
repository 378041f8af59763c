//! A form that was sent for a row that is there: what it changes, what is wrong with it, and whether somebody was faster.

use serde_json::Value;

use super::{
    form::{self, Errors, Group, Texts},
    submitted::Submitted,
};
use crate::{
    error::{Code, Error, Result},
    http::etag::Expected,
};

/// What was sent.
pub struct Saving {
    groups: &'static [Group],
    pub texts: Texts,
    /// The version that the form was filled in from.
    pub version: i64,
}

/// What came of it.
pub enum Saved<T> {
    /// It is stored; without anything written if it was so already.
    Done(Option<T>),
    Wrong(Errors),
    /// The row is another by now: nothing was written.
    Late,
}

impl Saving {
    /// Reads the form.
    ///
    /// # Errors
    /// `bad_request` for one without a version.
    pub fn of(groups: &'static [Group], form: &Submitted) -> Result<Self> {
        let none = "This form does not say what it was filled in from. Load the page again.";
        let version = form.version().ok_or_else(|| Error::new(Code::BadRequest, none))?;
        Ok(Self { groups, texts: form::texts_sent(groups, form), version })
    }

    /// Puts what is stored in place of what was written, where somebody chose that.
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

    /// Writes what was changed, and `more`, over the row at its version. Who was slower than somebody else is late, but not
    /// if they want what is stored: a page that saves by itself may have been faster than its button.
    ///
    /// # Errors
    /// What is no fault of the form's.
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

/// Members of `more` put into a merge patch; nulls stay nulls.
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
