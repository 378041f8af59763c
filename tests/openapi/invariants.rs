//! What holds for the whole of the published document, found by walking through it.

use std::collections::{BTreeMap, BTreeSet};

use edge::caller::Scope;
use serde_json::{Map, Value, json};
use tavernkeep::{openapi::credentials, routes};

/// Success bodies that may hold anything, with the reason.
const FREE: &[(&str, &str)] = &[];

/// Unions that have no member which says which kind a value is, with the reason.
const UNTAGGED: &[(&str, &str)] = &[
    ("EncounterCondition", "a name, or the condition in full"),
    ("LorePriorityChange", "`set` or `add`: clients give one of them"),
    ("EncounterManaged", "the operation that was asked for says which"),
    ("ReportedSpeaker", "a name, or more about who it is"),
    ("SheetSpell", "a name, or the spell in full"),
    ("Spell", "a name, or the spell in full"),
    ("SrdRow", "the table that was asked for says which"),
    ("ToolRef", "a name, or the tool in full"),
];

/// Operations that need no credential in a header.
const OPEN: &[&str] =
    &["connect_bridge", "get_docs", "get_health", "get_metrics", "get_openapi", "get_problem", "get_readiness"];

fn document() -> Value {
    routes::published().unwrap()
}

fn operations(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let items = document["paths"].as_object().unwrap().iter();
    items.flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |(method, of)| (path, method, of)))
}

fn id(operation: &Value) -> &str {
    operation["operationId"].as_str().unwrap()
}

fn said(value: &Value) -> bool {
    value["description"].as_str().is_some_and(|text| text.len() > 3)
}

/// What a reference leads to.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(place) => resolved(document, document.pointer(place.trim_start_matches('#')).expect(place)),
        None => value,
    }
}

/// Calls `then` with the place and each schema below a named one.
fn walk(place: &str, schema: &Value, then: &mut impl FnMut(&str, &Value)) {
    then(place, schema);
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{place}.{name}"), member, then);
    }
    for word in ["items", "additionalProperties"] {
        if schema[word].is_object() {
            walk(&format!("{place}[]"), &schema[word], then);
        }
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        schema[word].as_array().into_iter().flatten().for_each(|part| walk(place, part, then));
    }
}

#[test]
fn everything_is_described() {
    let document = document();
    let mut without = BTreeSet::new();
    for (_, _, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = resolved(&document, parameter);
            if !said(parameter) {
                without.insert(format!("{}: {}", id(operation), parameter["name"]));
            }
        }
        for (status, answer) in operation["responses"].as_object().unwrap() {
            if !said(resolved(&document, answer)) {
                without.insert(format!("{}: {status}", id(operation)));
            }
        }
        if !said(operation) {
            without.insert(id(operation).to_owned());
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        walk(name, schema, &mut |place, of| {
            for (member, of) in of["properties"].as_object().into_iter().flatten() {
                if !said(of) && of.get("$ref").is_none() {
                    without.insert(format!("{place}.{member}"));
                }
            }
        });
    }
    assert!(without.is_empty(), "a doc comment, or a line in openapi/words.txt: {without:#?}");
}

#[test]
fn every_tag_has_a_sentence_and_every_operation_one_tag() {
    let document = document();
    let tags = document["tags"].as_array().unwrap();
    let names: BTreeSet<_> = tags.iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    assert!(tags.iter().all(said));
    let mut used = BTreeSet::new();
    for (_, _, operation) in operations(&document) {
        let own = operation["tags"].as_array().unwrap();
        assert_eq!(own.len(), 1, "{}", id(operation));
        used.insert(own[0].as_str().unwrap());
    }
    assert_eq!(names, used);
}

#[test]
fn names_are_what_clients_can_type() {
    let document = document();
    let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    for part in ["schemas", "responses", "parameters", "headers"] {
        for name in document["components"][part].as_object().unwrap().keys() {
            assert!(plain(name), "{part}: {name}");
        }
    }
    for (path, _, operation) in operations(&document) {
        let id = id(operation);
        assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '_') && id.contains('_'), "{id}");
        for hole in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
            assert!(hole.len() > 2, "{path}: {hole} says too little");
        }
    }
}

#[test]
fn only_open_operations_ask_for_no_credential() {
    let document = document();
    let open: Vec<_> =
        operations(&document).filter(|(_, _, o)| o["security"] == json!([])).map(|(_, _, o)| id(o)).collect();
    let mut open = open;
    open.sort_unstable();
    assert_eq!(open, OPEN);
}

#[test]
fn operations_say_the_scopes_that_the_server_asks() {
    let document = document();
    let all = &document["components"]["securitySchemes"];
    assert_eq!(all["bearer"]["type"], "http", "{all}");
    for (path, method, operation) in operations(&document) {
        let Some(asked) = credentials::access(method, path).filter(|asked| !asked.in_first_frame) else { continue };
        let own: Vec<&str> = asked.scopes().map(Scope::as_str).collect();
        let first: Vec<&str> =
            operation["security"][0]["bearer"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(first, own, "{}", id(operation));
        for scope in own {
            assert!(operation["description"].as_str().unwrap().contains(&format!("`{scope}`")), "{}", id(operation));
        }
    }
}

#[test]
fn unions_say_which_kind_a_value_is() {
    let document = document();
    let mut without = BTreeSet::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        walk(name, schema, &mut |place, of| {
            let kinds = of["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
            let several = kinds.iter().filter(|kind| kind["type"] != "null").count() > 1;
            if several && of["discriminator"]["mapping"].is_null() {
                without.insert(place.to_owned());
            }
            let mapped = of["discriminator"]["mapping"].as_object().map_or(kinds.len(), Map::len);
            assert_eq!(mapped, kinds.len(), "{place}: a kind without a name");
        });
    }
    let named: BTreeSet<_> = UNTAGGED.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(without, named);
}

/// A sentence that does nothing but list values is one of an enum.
#[test]
fn values_that_are_listed_are_enums() {
    let is_list = |text: &str| {
        let text = text.trim_end_matches('.').replace(" or ", ", ");
        let values: Vec<_> = text.split(", ").collect();
        values.len() > 1
            && values.iter().all(|value| {
                let inner = value.strip_prefix('`').and_then(|value| value.strip_suffix('`')).unwrap_or_default();
                !inner.is_empty() && inner.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == ' ')
            })
    };
    let document = document();
    let mut loose = BTreeSet::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        walk(name, schema, &mut |place, of| {
            for (member, of) in of["properties"].as_object().into_iter().flatten() {
                let is_text = of["type"].to_string().contains("string");
                if is_text && of.get("enum").is_none() && is_list(of["description"].as_str().unwrap_or_default()) {
                    loose.insert(format!("{place}.{member}"));
                }
            }
        });
    }
    assert!(loose.is_empty(), "a line in openapi/values.rs: {loose:#?}");
}

#[test]
fn no_success_is_a_bare_object() {
    let document = document();
    let mut bare = BTreeSet::new();
    for (_, _, operation) in operations(&document) {
        let answers = operation["responses"].as_object().unwrap().iter().filter(|(status, _)| status.starts_with('2'));
        for (kind, content) in answers.filter_map(|(_, answer)| answer["content"].as_object()).flatten() {
            let schema = resolved(&document, &content["schema"]);
            let shaped = ["properties", "oneOf", "anyOf", "allOf", "contentSchema"]
                .iter()
                .any(|word| schema.get(word).is_some());
            let is_file = schema["type"] == "string" && !kind.contains("json");
            if !shaped && !is_file {
                bare.insert(id(operation).to_owned());
            }
        }
    }
    let named: BTreeSet<_> = FREE.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(bare, named);
}

#[test]
fn errors_are_problems() {
    let document = document();
    for (_, _, operation) in operations(&document) {
        for status in ["4XX", "default"] {
            let answer = resolved(&document, &operation["responses"][status]);
            let kinds: Vec<_> = answer["content"].as_object().unwrap().keys().collect();
            assert_eq!(kinds, ["application/problem+json"], "{}", id(operation));
        }
    }
}

#[test]
fn every_body_has_an_example_and_bytes_are_binary() {
    let document = document();
    for (_, _, operation) in operations(&document) {
        for (kind, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
            match kind.contains("json") {
                true => assert!(content.get("example").is_some(), "{}: {kind}", id(operation)),
                false => assert_eq!(content["schema"]["format"], "binary", "{}: {kind}", id(operation)),
            }
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten().filter(|p| p["in"] == "path") {
            assert!(parameter.get("example").is_some(), "{}: {}", id(operation), parameter["name"]);
        }
    }
}

/// Actions, tools, commands and events are told apart by name: none is missing in its union, and none is there that the server does not know.
#[test]
fn unions_have_every_kind() {
    let document = document();
    let kinds = |union: &str| -> BTreeSet<String> {
        let mapping = &document["components"]["schemas"][union]["discriminator"]["mapping"];
        mapping.as_object().unwrap_or_else(|| panic!("{union}")).keys().cloned().collect()
    };
    let names = |all: &[&str]| -> BTreeSet<String> { all.iter().map(|name| (*name).to_owned()).collect() };
    let tools: Vec<_> = ai::tools::REGISTRY.iter().map(|tool| tool.name).collect();
    let commands: Vec<_> = ai::commands::REGISTRY.iter().map(|command| command.name).collect();
    assert_eq!(kinds("ToolResult"), names(&tools));
    assert_eq!(kinds("CommandResult"), names(&commands));
    assert_eq!(kinds("SessionEvent"), names(world::sessions::events::KINDS));
    let actions = &document["components"]["schemas"]["EncounterActionKind"]["enum"];
    let actions: BTreeSet<String> = serde_json::from_value(actions.clone()).unwrap();
    assert_eq!(kinds("EncounterAction"), actions);
}

/// Names of types that say what they are do not stand for two things.
#[test]
fn references_lead_somewhere() {
    fn look(document: &Value, value: &Value, used: &mut BTreeMap<String, usize>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| look(document, item, used)),
            Value::Object(members) => {
                if let Some(place) = members.get("$ref").and_then(Value::as_str) {
                    assert!(document.pointer(place.trim_start_matches('#')).is_some(), "{place}");
                    *used.entry(place.to_owned()).or_default() += 1;
                }
                members.values().for_each(|member| look(document, member, used));
            }
            _ => {}
        }
    }
    let document = document();
    let mut used = BTreeMap::new();
    look(&document, &document, &mut used);
    let unused: Vec<_> = document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| !used.contains_key(&format!("#/components/schemas/{name}")) && !name.ends_with("Arguments"))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}
