//! Descriptions of members and parameters that have none in Rust. A doc comment on the field takes precedence.
//! `words.txt` has a line for a name that many schemas share, or for a type whose doc comments are also read by models:
//! `member: sentence`, or `Schema.member: sentence` where the meaning differs.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::Value;

use super::document::{Object, operations, schemas};

static WORDS: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| include_str!("words.txt").lines().filter_map(|line| line.split_once(": ")).collect());

/// The description of a schema's member.
fn meaning(schema: &str, member: &str) -> Option<&'static str> {
    let own = |schema: &str| WORDS.get(format!("{schema}.{member}").as_str());
    // A patch has the members of the whole.
    let patched = || schema.strip_suffix("Patch").and_then(|whole| own(&format!("{whole}Input")));
    own(schema).or_else(patched).or_else(|| WORDS.get(member)).copied()
}

/// Whether a schema's member has a line of its own.
pub fn has_own(schema: &str, member: &str) -> bool {
    WORDS.contains_key(format!("{schema}.{member}").as_str())
}

/// Describes everything that has no description.
pub fn describe(document: &mut Value) {
    operations(document, |_, _, operation| {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(parameter) = parameter.as_object_mut() else { continue };
            let name = parameter.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            // "Id" says no more than the schema.
            let is_said = parameter.get("description").is_some_and(|said| said != "Id");
            if parameter.contains_key("name") && !is_said {
                say(parameter, meaning("parameter", &name));
            }
        }
    });
    for (name, schema) in schemas(document).into_iter().flatten() {
        members(name, schema);
    }
}

/// A nullable member has its description on the alternative that is not null. Copies it to the member.
fn lift(of: &mut Object) {
    let alternatives = of.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let said = alternatives.filter(|one| one.get("$ref").is_some()).find_map(|one| one.get("description").cloned());
    if let Some(said) = said {
        of.insert("description".to_owned(), said);
    }
}

fn say(of: &mut Object, text: Option<&str>) {
    if let Some(text) = text {
        of.insert("description".to_owned(), text.into());
    }
}

/// Describes the members of a schema and of nested schemas.
fn members(name: &str, schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| members(name, item)),
        Value::Object(words) => {
            for (member, of) in words.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
                if let Some(of) = of.as_object_mut().filter(|of| !of.contains_key("description")) {
                    lift(of);
                    if !of.contains_key("description") {
                        say(of, meaning(name, member));
                    }
                }
                members(name, of);
            }
            for word in ["items", "additionalProperties", "oneOf", "anyOf", "allOf"] {
                if let Some(inner) = words.get_mut(word) {
                    members(name, inner);
                }
            }
        }
        _ => {}
    }
}
