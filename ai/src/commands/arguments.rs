//! Arguments on a command line.

use serde_json::{Map, Value};

use crate::tools::as_meant;

/// Reads arguments from a command line: either one JSON object, or several `name=value`. Each value is JSON or plain text.
///
/// # Errors
/// A sentence about what is wrong.
pub fn of_words(schema: &Value, words: &[String]) -> Result<Value, String> {
    if let [one] = words
        && one.trim_start().starts_with('{')
    {
        return serde_json::from_str(one).map_err(|e| format!("the arguments are not JSON: {e}"));
    }
    let mut members = Map::new();
    for word in words {
        let (name, text) = word.split_once('=').ok_or_else(|| format!("`{word}` is not `name=value`"))?;
        let value = serde_json::from_str(text)
            .ok()
            .filter(|value: &Value| value.is_object() || value.is_array() || value.is_boolean());
        members.insert(name.to_owned(), value.unwrap_or_else(|| Value::String(text.to_owned())));
    }
    let mut arguments = Value::Object(members);
    as_meant(schema, &mut arguments);
    Ok(arguments)
}
