//! JSON merge patch (RFC 7396): an absent member stays, null removes it, a value replaces it.

use serde_json::{Map, Value};

use base::error::{Error, FieldError, Result};

/// Applies `patch` to `target`.
pub fn merge(target: &mut Value, patch: Value) {
    let Value::Object(changes) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (name, change) in changes {
        if change.is_null() {
            members.remove(&name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), change);
        }
    }
}

/// The document after a patch: `current` without its read-only members, changed by `patch`.
///
/// # Errors
/// `validation_failed` if the patch is not an object or touches a read-only member.
pub fn apply(current: Value, patch: Value, read_only: &[&str]) -> Result<Value> {
    let Value::Object(changes) = &patch else {
        return Err(Error::invalid("", "invalid_value", "A merge patch must be a JSON object."));
    };
    let errors: Vec<_> = changes
        .keys()
        .filter(|name| read_only.contains(&name.as_str()))
        .map(|name| FieldError {
            pointer: format!("/{name}"),
            code: "read_only".into(),
            message: "This member is read-only.".to_owned(),
        })
        .collect();
    if !errors.is_empty() {
        return Err(Error::validation(errors));
    }
    let mut document = current;
    if let Value::Object(members) = &mut document {
        members.retain(|name, value| !read_only.contains(&name.as_str()) && !value.is_null());
    }
    merge(&mut document, patch);
    Ok(document)
}
