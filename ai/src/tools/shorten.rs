//! Shortens a tool's result for the model that reads it and for the turn that keeps it. Its shape stays as far as possible, and it
//! says that it was shortened. A result that fits is not changed.

use serde_json::{Map, Value, json};

use edge::http::bounds::size;

/// The most bytes of one result's JSON that a model reads.
pub const RESULT_BYTES_MAX: usize = 128 * 1024;
/// The most bytes of all results of a turn. Further results get [`RESULT_BYTES_MIN`] each.
pub const RESULTS_BYTES_MAX: usize = 512 * 1024;
/// The number of bytes that every result may have.
pub const RESULT_BYTES_MIN: usize = 1024;
/// The most bytes of a call's arguments that a turn keeps. The call itself uses all of them.
pub const ARGUMENTS_BYTES_KEPT: usize = 16 * 1024;
/// The most bytes of a result in an answer to a request.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// The member that says that the result was shortened.
pub const NOTE: &str = "shortened";

/// The most characters of a text, and the most entries of a list or members of an object. Tried in order.
const TRIES: [(usize, usize); 7] = [(4000, 200), (2000, 100), (1000, 50), (500, 20), (200, 10), (80, 5), (30, 2)];

/// Shortens `value` to about `bytes_max` bytes of JSON.
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

/// How many bytes the further results of a turn may have.
pub struct Allowance(usize);

impl Allowance {
    /// What is left after earlier results.
    pub fn after<'a>(told: impl Iterator<Item = &'a Value>) -> Self {
        Self(RESULTS_BYTES_MAX.saturating_sub(told.map(size).sum()))
    }

    /// Shortens a result for the model and for the record.
    pub fn fit(&mut self, result: Value) -> Value {
        let result = shorten(result, RESULT_BYTES_MAX.min(self.0).max(RESULT_BYTES_MIN));
        self.0 = self.0.saturating_sub(size(&result));
        result
    }
}
