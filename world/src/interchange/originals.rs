//! Texts of another program's file that have control characters. They are left out here, and an export restores them.
//!
//! The file's text is kept beside the row, as JSON in which every control character is an escape, because no stored text may have
//! one. An export puts it back in place of its cleaned form, so a text that somebody has changed stays changed. A text is kept only if
//! its cleaned form is not blank and occurs once, because an export could not tell which one it was.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{
    report::{Losses, shorten},
    rows,
};
use base::{
    error::Result,
    json::{self, Cleaned},
    text,
};

/// The member under which they are kept, beside the row's source.
const MEMBER: &str = "originals";

/// The largest size in bytes of what is kept of one row.
const BYTES_MAX: usize = 4096;
/// The largest number of texts that are considered.
const TEXTS_MAX: usize = 1000;
/// How many paths of one value [`value_of`] tells.
const PATHS_MAX: usize = 100;

/// Texts that lost control characters.
#[derive(Debug, Default)]
pub struct Originals {
    /// The path of each for the report, and the text if it may be kept.
    texts: Vec<(String, Option<String>)>,
}

/// Leaves control characters out of all texts. `at` is the path of the value in reports.
#[must_use]
pub fn clean(value: &mut Value, at: &str) -> Originals {
    let mut texts = Vec::new();
    json::clean_and_tell(value, |Cleaned { pointer, original, is_name }| {
        if texts.len() < TEXTS_MAX {
            let is_small = !is_name && original.len() <= BYTES_MAX;
            texts.push((format!("{at}{}", shorten(pointer)), is_small.then(|| original.to_owned())));
        }
    });
    if !texts.is_empty() {
        let mut counts = HashMap::new();
        count(value, &mut counts);
        for (_, original) in &mut texts {
            original.take_if(|original| {
                let cleaned = text::cleaned(original);
                cleaned.trim().is_empty() || counts.get(&*cleaned) != Some(&1)
            });
        }
    }
    Originals { texts }
}

/// Counts how often each text occurs.
fn count<'a>(value: &'a Value, counts: &mut HashMap<&'a str, u32>) {
    match value {
        Value::String(text) => *counts.entry(text).or_default() += 1,
        Value::Array(items) => items.iter().for_each(|item| count(item, counts)),
        Value::Object(members) => members.values().for_each(|member| count(member, counts)),
        _ => {}
    }
}

impl Originals {
    /// Whether no text lost anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Reports the texts, and keeps beside a source what fits. Without a place to keep them, they are lost.
    pub fn keep(self, mut kept: Option<&mut Map<String, Value>>, losses: &mut Losses) {
        let mut originals = Vec::new();
        let mut left = if kept.is_some() { BYTES_MAX } else { 0 };
        for (path, original) in self.texts {
            let literal = original.map(|original| {
                let original = Value::String(original).to_string();
                let literal = Value::String(text::json_on_one_line(&original).into_owned());
                (literal.to_string().len(), literal)
            });
            match literal.filter(|(bytes, _)| *bytes <= left) {
                Some((bytes, literal)) => {
                    left -= bytes;
                    losses.approximated(&path, "", "control characters are left out here; an export restores them");
                    originals.push(literal);
                }
                None => losses.dropped(&path, "control characters were left out"),
            }
        }
        if let Some(kept) = kept.as_mut().filter(|_| !originals.is_empty()) {
            kept.insert(MEMBER.to_owned(), originals.into());
        }
    }
}

/// Puts the texts that were kept beside a source back into what is made of it.
pub fn put_back(kept: Option<&Value>, value: &mut Value) {
    let originals = kept.and_then(|kept| kept.get(MEMBER)).and_then(Value::as_array).into_iter().flatten();
    let originals = originals.filter_map(|original| serde_json::from_str::<String>(original.as_str()?).ok());
    let mut originals: HashMap<String, String> =
        originals.map(|original| (text::cleaned(&original).into_owned(), original)).collect();
    // Clients can change what is kept, and a blank text is in many places.
    originals.retain(|cleaned, _| !cleaned.trim().is_empty());
    if !originals.is_empty() {
        replace(value, &originals);
    }
}

fn replace(value: &mut Value, originals: &HashMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(original) = originals.get(text) {
                text.clone_from(original);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, originals)),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, originals)),
        _ => {}
    }
}

/// The value of a text of JSON without control characters, and the paths of the first texts that lost some.
///
/// # Errors
/// `bad_request` for invalid JSON.
pub fn value_of(text: &[u8], pointer: &str) -> Result<(Value, Vec<String>)> {
    let mut value = json::file(text).map_err(|e| rows::at(e, pointer))?;
    let mut paths = Vec::new();
    json::clean_and_tell(&mut value, |Cleaned { pointer: own, .. }| {
        if paths.len() < PATHS_MAX {
            paths.push(format!("{pointer}{}", shorten(own)));
        }
    });
    Ok((value, paths))
}
