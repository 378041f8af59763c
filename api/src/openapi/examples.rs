//! An example for each operation: values for its path, and a body. Tests send each of them to a server and check the
//! answer against the document.
//!
//! They use the rows of the world that tests and the demo start with. To add an operation, add its body to
//! `examples.json`.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::document::{Object, operations};

/// Example bodies, by operation id.
static BODIES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).unwrap_or_default());

/// Example values of path parameters.
const PARAMETERS: &[(&str, &str)] = &[
    ("campaign", "port-town"),
    ("character", "player_alice"),
    ("npc", "innkeeper_bob"),
    ("owner", "town_council_owner"),
    ("lore_entry", "the_harbour"),
    ("scene", "quay"),
    ("command", "roll"),
    ("tool", "NPC_memorize"),
    ("table", "weapons"),
    ("user", "maya@example.org"),
    ("model", "storyteller"),
    ("code", "not_found"),
];
const ID: &str = "01970000-0000-7000-8000-000000000001";

/// Gives every operation its example.
pub fn give(document: &mut Value) {
    operations(document, |_, _, operation| {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            if parameter["in"] == "path" {
                parameter["example"] = of_parameter(parameter);
            }
        }
        let id = operation.get("operationId").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(body) = BODIES.get(&id) {
            media(operation, body);
        }
    });
}

fn of_parameter(parameter: &Value) -> Value {
    if parameter["schema"]["type"] == "integer" {
        return json!(12);
    }
    let known =
        PARAMETERS.iter().find(|(name, _)| parameter["name"] == *name && parameter["schema"]["format"] != "uuid");
    json!(known.map_or(ID, |(_, example)| example))
}

fn media(operation: &mut Object, body: &Value) {
    let content = operation.get_mut("requestBody").and_then(|body| body.get_mut("content"));
    for (kind, of) in content.and_then(Value::as_object_mut).into_iter().flatten() {
        if kind.contains("json") {
            of["example"] = body.clone();
        }
    }
}
