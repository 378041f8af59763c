//! JSON Schemas in the plain subset that all endpoints take.
//!
//! Gemini's facade refuses a whole request because of one list of types, `const` or `$ref`. So a parameter has one `type`; what
//! may be left out is simply not required; a single allowed value is an `enum` with one element.

use serde_json::{Map, Value, json};

/// What says nothing to a model, or is refused somewhere.
const DROPPED: [&str; 6] = ["$schema", "title", "format", "uniqueItems", "examples", "writeOnly"];
const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Rewrites a schema of ours, which has no references.
pub(super) fn plain(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    for keyword in ALTERNATIVES {
        if let Some(Value::Array(alternatives)) = members.remove(keyword) {
            merge(members, alternatives);
        }
    }
    DROPPED.iter().for_each(|keyword| drop(members.remove(*keyword)));
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        // Text can say everything that another type says.
        let at = types.iter().position(|name| name == "string").unwrap_or_default();
        if let Some(one) = types.get_mut(at).map(Value::take) {
            members.insert("type".to_owned(), one);
        }
    }
    if let Some(value) = members.remove("const") {
        members.insert("enum".to_owned(), json!([value]));
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
        let of_text = values.iter().all(Value::is_string);
        if of_text {
            members.entry("type").or_insert_with(|| "string".into());
        }
    }
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    for (exclusive, inclusive, step) in [("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)] {
        match members.remove(exclusive) {
            // The bound itself is refused when the call runs.
            Some(bound) if members.get("type").is_some_and(|name| name == "integer") => {
                let bound = bound.as_i64().map(|bound| bound.saturating_add(step).into()).unwrap_or(bound);
                members.insert(inclusive.to_owned(), bound);
            }
            Some(bound) => drop(members.insert(inclusive.to_owned(), bound)),
            None => {}
        }
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(plain);
    }
    for keyword in ["items", "additionalProperties"] {
        members.get_mut(keyword).into_iter().for_each(plain);
    }
}

/// Merges alternatives of which only one says something, and lists of allowed values.
fn merge(members: &mut Map<String, Value>, alternatives: Vec<Value>) {
    let mut kept: Vec<Map<String, Value>> = Vec::new();
    for mut alternative in alternatives {
        plain(&mut alternative);
        match alternative {
            Value::Object(alternative) if alternative.get("type").is_none_or(|name| name != "null") => {
                kept.push(alternative)
            }
            _ => {}
        }
    }
    let values = |alternative: &Map<String, Value>| alternative.get("enum")?.as_array().cloned();
    if kept.len() > 1
        && let Some(lists) = kept.iter().map(values).collect::<Option<Vec<_>>>()
    {
        members.insert("type".to_owned(), "string".into());
        members.insert("enum".to_owned(), lists.concat().into());
        return;
    }
    for alternative in kept {
        for (keyword, value) in alternative {
            members.entry(keyword).or_insert(value);
        }
    }
}
