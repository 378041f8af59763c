//! How the document writes what has no shape: objects that may hold anything, bytes, and streams of events.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document::{Object, operations, reference, schemas, walk_schemas};
use crate::http::bounds;

/// What words come to: the outcome of a resolver or of an action in a fight, of which a player is shown a part.
const DECIDED: [&str; 2] = ["ActionResolution", "TurnMechanics"];

/// Gives what was decided of words the shape of a resolver's outcome, with nothing that has to be there.
pub fn decided(document: &mut Value) {
    let Some(schemas) = schemas(document) else { return };
    let Some(mut outcome) = schemas.get("ResolvedOutcome").cloned() else { return };
    outcome["description"] =
        json!("What came of a player's words. Of a fight a player is not told the numbers of foes.");
    outcome.as_object_mut().map(|members| members.remove("required"));
    schemas.insert("ActionOutcome".to_owned(), outcome);
    for name in DECIDED {
        if let Some(parsed) = schemas.get_mut(name).map(|schema| &mut schema["properties"]["parsed"]) {
            let description = parsed["description"].take();
            *parsed = reference("ActionOutcome");
            parsed["description"] = description;
        }
    }
}

/// Says of objects without members that they may have any, of bytes that they are such, and of streams what their events are.
pub fn complete(document: &mut Value) {
    for part in ["paths", "components"] {
        walk_schemas(&mut document[part], &mut |members| {
            open(members);
            item(members);
        });
    }
    operations(document, |path, _, operation| {
        let answers = operation.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten();
        for content in answers.filter_map(|(_, answer)| answer.get_mut("content")) {
            media(path, content, false);
        }
        if let Some(content) = operation.get_mut("requestBody").and_then(|body| body.get_mut("content")) {
            media(path, content, true);
        }
    });
}

/// Leaves out schemas that nothing refers to: those that only their patches are made of. Arguments of commands are there by name.
pub fn prune(document: &mut Value) {
    loop {
        let mut used = BTreeSet::new();
        references(document, &mut used);
        let Some(known) = schemas(document) else { return };
        let before = known.len();
        known.retain(|name, _| used.contains(name) || name.ends_with("Arguments"));
        if known.len() == before {
            return;
        }
    }
}

fn references(value: &Value, used: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, used)),
        Value::Object(members) => {
            used.extend(
                members
                    .get("$ref")
                    .and_then(Value::as_str)
                    .and_then(|place| place.rsplit('/').next())
                    .map(str::to_owned),
            );
            members.values().for_each(|member| references(member, used));
        }
        _ => {}
    }
}

/// `type: object` and nothing more is any object.
fn open(members: &mut Object) {
    let shaped = ["properties", "additionalProperties", "allOf", "oneOf", "anyOf", "$ref"];
    let is_object = match members.get("type") {
        Some(Value::String(one)) => one == "object",
        Some(Value::Array(several)) => several.iter().any(|one| one == "object"),
        _ => false,
    };
    if is_object && !shaped.iter().any(|word| members.contains_key(*word)) {
        members.insert("additionalProperties".to_owned(), true.into());
    }
}

/// A list says what it is a list of, if only that it is anything.
fn item(members: &mut Object) {
    if members.get("type").is_some_and(|kind| kind == "array") && !members.contains_key("items") {
        members.insert("items".to_owned(), json!({}));
    }
}

fn media(path: &str, content: &mut Value, is_asked: bool) {
    for (kind, of) in content.as_object_mut().into_iter().flatten() {
        let schema = match kind.as_str() {
            "text/event-stream" => {
                let event =
                    if path.ends_with("/events") && !path.contains("/turns/") { "JournalChange" } else { "TurnEvent" };
                json!({ "type": "string", "contentMediaType": kind, "contentSchema": reference(event) })
            }
            "image/png" | "application/zip" => json!({ "type": "string", "format": "binary" }),
            "application/json" if is_asked && path == "/v1/campaigns/import" => {
                let bytes = of["schema"][bounds::BYTES_WORD].clone();
                let document = reference("CampaignDocument");
                json!({ "$ref": document["$ref"], (bounds::BYTES_WORD): bytes })
            }
            "text/html" | "text/plain" | "application/yaml" => json!({ "type": "string" }),
            _ => continue,
        };
        of["schema"] = schema;
    }
}
