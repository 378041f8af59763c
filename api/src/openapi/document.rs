//! Access to the document as JSON: its operations and schemas, for the passes that run after utoipa.
//!
//! Nothing here knows particular routes or schemas. If a pass needs another part of the document, add a function here.

use serde_json::{Map, Value};

/// The HTTP methods that routes use.
pub const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub type Object = Map<String, Value>;

/// Calls `then` with the path, the method and the object of each operation.
pub fn operations(document: &mut Value, mut then: impl FnMut(&str, &str, &mut Object)) {
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        for method in METHODS {
            if let Some(operation) = item.get_mut(method).and_then(Value::as_object_mut) {
                then(path, method, operation);
            }
        }
    }
}

/// The named schemas.
pub fn schemas(document: &mut Value) -> Option<&mut Object> {
    document.pointer_mut("/components/schemas")?.as_object_mut()
}

/// Calls `then` with every object in a value, inner objects first.
pub fn walk(value: &mut Value, then: &mut impl FnMut(&mut Object)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, then)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| walk(member, then));
            then(members);
        }
        _ => {}
    }
}

/// Like [`walk`], for schemas only: skips examples and defaults.
pub fn walk_schemas(value: &mut Value, then: &mut impl FnMut(&mut Object)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk_schemas(item, then)),
        Value::Object(members) => {
            let inner =
                members.iter_mut().filter(|(name, _)| !matches!(name.as_str(), "example" | "examples" | "default"));
            inner.for_each(|(_, member)| walk_schemas(member, then));
            then(members);
        }
        _ => {}
    }
}

/// A reference to a schema.
#[must_use]
pub fn reference(name: &str) -> Value {
    serde_json::json!({ "$ref": format!("#/components/schemas/{name}") })
}
