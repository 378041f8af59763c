//! What a tool told, made short enough: for the model that reads it, and for the turn that keeps it. Its shape stays as far as that is
//! possible, and it says of itself that it was shortened. What fits is never touched.

use serde_json::{Map, Value, json};

use crate::http::bounds::size;

/// Bytes of JSON of one result that a model is told.
pub const RESULT_BYTES_MAX: usize = 128 * 1024;
/// Bytes of JSON of all results of a turn; what comes after them has [`RESULT_BYTES_MIN`] each.
pub const RESULTS_BYTES_MAX: usize = 512 * 1024;
/// Bytes of JSON that every result may have.
pub const RESULT_BYTES_MIN: usize = 1024;
/// Bytes of JSON of a call's arguments that a turn keeps; they are executed whole.
pub const ARGUMENTS_BYTES_KEPT: usize = 16 * 1024;
/// Bytes of JSON of a result that is answered to a request.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// The member that says that something was shortened.
pub const NOTE: &str = "shortened";

/// Characters of a text and entries of a list or members of an object, shorter from try to try.
const TRIES: [(usize, usize); 7] = [(4000, 200), (2000, 100), (1000, 50), (500, 20), (200, 10), (80, 5), (30, 2)];

/// `value` in at most about `bytes_max` bytes of JSON.
#[must_use]
pub fn shorten(value: Value, bytes_max: usize) -> Value {
    let bytes = size(&value);
    if bytes <= bytes_max {
        return value;
    }
    let note = format!("The whole has {bytes} bytes, more than the {bytes_max} that are told. Ask for less at a time.");
    let room = bytes_max.saturating_sub(note.len() + 40);
    for (chars, entries) in TRIES {
        let short = cut(&value, chars, entries);
        if size(&short) <= room {
            return noted(short, note);
        }
    }
    json!({ NOTE: note })
}

fn noted(short: Value, note: String) -> Value {
    match short {
        Value::Object(mut members) => {
            members.insert(NOTE.to_owned(), note.into());
            members.into()
        }
        short => json!({ NOTE: note, "value": short }),
    }
}

fn cut(value: &Value, chars: usize, entries: usize) -> Value {
    match value {
        Value::String(text) => match text.char_indices().nth(chars) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
            None => value.clone(),
        },
        Value::Array(list) => list.iter().take(entries).map(|item| cut(item, chars, entries)).collect(),
        Value::Object(members) => {
            let kept = members.iter().take(entries);
            kept.map(|(name, member)| (name.clone(), cut(member, chars, entries))).collect::<Map<_, _>>().into()
        }
        value => value.clone(),
    }
}

/// What the results of one turn may still have.
pub struct Allowance(usize);

impl Allowance {
    /// What results that were told have left.
    pub fn after<'a>(told: impl Iterator<Item = &'a Value>) -> Self {
        Self(RESULTS_BYTES_MAX.saturating_sub(told.map(size).sum()))
    }

    /// A result as it is told and kept.
    pub fn fit(&mut self, result: Value) -> Value {
        let result = shorten(result, RESULT_BYTES_MAX.min(self.0).max(RESULT_BYTES_MIN));
        self.0 = self.0.saturating_sub(size(&result));
        result
    }
}
