//! The document as JSON, which the passes that follow utoipa's work on: where its operations and schemas are.
//!
//! Nothing here knows what a route or a schema is about. A pass that needs another place of the document asks here for it.

use serde_json::{Map, Value};

/// What a request is made with.
pub const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub type Object = Map<String, Value>;

/// Calls `then` with the path, the method and each operation.
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

/// Calls `then` with every object below a value, those within before those around them.
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

/// The same for schemas alone: what stands in examples and defaults is no schema.
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
