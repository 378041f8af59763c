//! Describes values without a declared shape: free objects, bytes, and event streams.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    document::{Object, operations, reference, schemas, walk_schemas},
    names,
};
use ai::{
    commands,
    tools::{self, shorten::NOTE, spec::Schemas},
};
use edge::http::bounds;

/// Schemas with the outcome of a player's text: from the resolver or from an action in a fight. A player sees only a
/// part of it.
const DECIDED: [&str; 2] = ["ActionResolution", "TurnMechanics"];

/// Gives these outcomes the shape of a resolver's outcome, with no required members.
pub fn decided(document: &mut Value) {
    let Some(schemas) = schemas(document) else { return };
    let Some(mut outcome) = schemas.get("ResolvedOutcome").cloned() else { return };
    outcome["description"] =
        json!("The outcome of a player's text. In a fight, players do not see their enemies' numbers.");
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

/// Where a turn has the result of any tool or command: a schema, the way to the member, and what the member refers to.
const RESULTS: [(&str, &str, &str); 3] = [
    ("ToolCall", "/properties/result", TOOL_OUTCOME),
    ("TurnEventToolResult", "/properties/data/properties/result", TOOL_OUTCOME),
    ("PlayerTextResult", "/properties/result", COMMAND_OUTCOME),
];
const TOOL_OUTCOME: &str = "ToolOutcome";
const COMMAND_OUTCOME: &str = "CommandOutcome";
const SHORTENED: &str = "ShortenedResult";

/// What a turn keeps of a result that is too large (`ai::tools::shorten`).
fn shortened() -> Value {
    json!({
        "description": "A result that was too large, with as much of its members as there is room for.",
        "type": "object",
        "properties": { NOTE: { "type": "string", "description": "How many bytes the whole has." } },
        "required": [NOTE],
        "additionalProperties": true,
    })
}

/// Gives the results in turns the shapes of what tools and commands return. The name of the tool or command is in another
/// member, so the alternatives have no discriminator.
pub fn results(document: &mut Value) {
    let Some(schemas) = schemas(document) else { return };
    let tools = tools::REGISTRY.iter().map(tools::Tool::answer);
    let commands = commands::REGISTRY.iter().map(commands::Command::answer);
    let mut of_tools = any_of("What a tool returned.", tools);
    of_tools["anyOf"].as_array_mut().into_iter().for_each(|any| any.push(reference(SHORTENED)));
    schemas.insert(TOOL_OUTCOME.to_owned(), of_tools);
    schemas.insert(SHORTENED.to_owned(), shortened());
    schemas.insert(COMMAND_OUTCOME.to_owned(), any_of("What a command returned.", commands));
    for (name, way, outcome) in RESULTS {
        if let Some(result) = schemas.get_mut(name).and_then(|schema| schema.pointer_mut(way)) {
            let description = result["description"].take();
            *result = json!({ "oneOf": [{ "type": "null" }, reference(outcome)] });
            if !description.is_null() {
                result["description"] = description;
            }
        }
    }
}

fn any_of(says: &str, answers: impl Iterator<Item = Schemas>) -> Value {
    let names: BTreeSet<String> =
        answers.filter_map(|answer| answer.first().map(|(name, _)| names::of_schema(name))).collect();
    let any: Vec<Value> = names.iter().map(|name| reference(name)).collect();
    json!({ "description": says, "anyOf": any })
}

/// Declares that objects without members may have any, that bytes are binary, and what the events of streams are.
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

/// Removes schemas that nothing refers to, such as those from which only patches are made. The arguments of commands
/// stay.
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

/// `type: object` without anything else means any object.
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

/// Every list declares its items, even if they may be anything.
fn item(members: &mut Object) {
    if members.get("type").is_some_and(|kind| kind == "array") && !members.contains_key("items") {
        members.insert("items".to_owned(), json!({}));
    }
}

/// The schema of a stream's events, and what it describes of them.
fn stream(path: &str) -> (&'static str, &'static str) {
    match path.strip_suffix("/events") {
        Some(of) if of.ends_with("/replies") => {
            ("ReplyAnnounced", "Server-sent events with the name `reply`. The schema is that of their data.")
        }
        Some(of) if !of.contains("/turns/") => (
            "JournalChange",
            "Server-sent events with the name `change`, whose data the schema describes, and with the name `reply` and `{\"reply\": …}` as data.",
        ),
        _ => ("TurnEvent", "Server-sent events. In the schema, `event` is the name of an event, and `data` its data."),
    }
}

fn media(path: &str, content: &mut Value, is_asked: bool) {
    for (kind, of) in content.as_object_mut().into_iter().flatten() {
        let schema = match kind.as_str() {
            "text/event-stream" => {
                let (event, says) = stream(path);
                json!({ "type": "string", "description": says, "contentMediaType": kind, "contentSchema": reference(event) })
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
