//! What holds for the whole of the published document, found by walking through it.

use std::collections::{BTreeMap, BTreeSet};

use edge::caller::Scope;
use serde_json::{Map, Value, json};
use tavernkeep::{openapi::credentials, routes};

/// Values in answers that may be anything, with the reason. `*` is any schema.
const FREE: &[(&str, &str)] = &[
    ("*.extensions", "the clients' own members, or those of other programs"),
    ("*.arguments", "`GET …/tools` and `GET …/commands` have their schemas"),
    ("*.args", "`GET …/commands` has their schemas"),
    ("*.parameters", "a JSON Schema"),
    ("*.before", "a row or some of its columns, whose kind another member says"),
    ("*.after", "a row or some of its columns, whose kind another member says"),
    ("*.roll", "as the frontend reported it"),
    ("*.armor", "a name, or what the client knows of it"),
    ("*.shield", "a name, or what the client knows of it"),
    ("*.inventory[]", "a name, or what the client knows of it"),
    ("*.conditions[]", "a name, or the condition in full"),
    ("*.grid", "in a frontend's own form"),
    ("*.extra", "members of requests that only some providers know"),
    ("*.notes[]", "in a frontend's own form"),
    ("*.light_sources[]", "in a frontend's own form"),
    ("ActorDetails.data", "any part of a sheet"),
    ("ActorMatch.value", "any part of a sheet"),
    ("Campaign.settings", "earlier servers may have known other settings"),
    ("CharacterBook.*", "as another program wrote it"),
    ("CharacterCardData.*", "as another program wrote it"),
    ("WorldInfo.*", "as another program wrote it"),
    ("WorldInfoEntry.*", "as another program wrote it"),
    ("HistoryMessage.dice", "as the frontend reported them"),
    ("Spell[]", "what the client knows of it"),
    ("WorldState.active_encounter", "in a frontend's own form"),
];

/// Names of schemas that say too little of what they are.
const VAGUE: &[&str] = &[
    "Act", "Change", "Changes", "Commit", "Create", "Data", "Details", "End", "Fork", "Info", "Item", "Items", "Kind",
    "Link", "Links", "Mend", "Move", "Note", "Open", "Outcome", "Part", "Preview", "Progress", "Replace", "Report",
    "Resolve", "Result", "Rotate", "Start", "State", "Status", "Totals", "Type", "Undo", "Usage", "Verify", "View",
];

/// Unions that have no member which says which kind a value is, with the reason.
const UNTAGGED: &[(&str, &str)] = &[
    ("EncounterCondition", "a name, or the condition in full"),
    ("LorePriorityChange", "`set` or `add`: clients give one of them"),
    ("EncounterManaged", "the operation that was asked for says which"),
    ("ReportedSpeaker", "a name, or more about who it is"),
    ("SceneInput.grid", "a size, or an object with that"),
    ("ScenePatch.grid", "a size, or an object with that"),
    ("SheetSpell", "a name, or the spell in full"),
    ("Spell", "a name, or the spell in full"),
    ("SrdRow", "the table that was asked for says which"),
    ("ToolRef", "a name, or the tool in full"),
];

/// What can happen in a fight.
const ENCOUNTER_EVENTS: &[&str] = &[
    "joined",
    "left",
    "initiative",
    "turn_started",
    "turn_ended",
    "nobody_left",
    "spent",
    "moved",
    "took",
    "provoked",
    "attacked",
    "changed",
    "lasts",
    "hid",
    "overridden",
    "ended",
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
            let ends = ["Input", "Request", "View", "Page"].iter().find_map(|end| name.strip_suffix(end));
            let is_vague = [name.as_str()].into_iter().chain(ends).any(|name| VAGUE.contains(&name));
            assert!(!is_vague, "{part}: {name} says too little; add a line in openapi/names.rs");
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

/// A sentence that does nothing but list values is one of an enum; so is one that gives the only value, and a pattern of whole words.
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
    let is_words = |pattern: &str| {
        let words = pattern.strip_prefix("^(").and_then(|words| words.strip_suffix(")$")).unwrap_or_default();
        !words.is_empty() && words.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '|')
    };
    let is_loose = |of: &Value, says: &str| {
        let is_text = of["type"].to_string().contains("string");
        let is_told =
            is_list(says) || says.starts_with("Always `") || is_words(of["pattern"].as_str().unwrap_or_default());
        is_text && of.get("enum").is_none() && is_told
    };
    let document = document();
    let mut loose = BTreeSet::new();
    for (_, _, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = resolved(&document, parameter);
            if is_loose(&parameter["schema"], parameter["description"].as_str().unwrap_or_default()) {
                loose.insert(format!("{}: {}", id(operation), parameter["name"]));
            }
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        walk(name, schema, &mut |place, of| {
            for (member, of) in of["properties"].as_object().into_iter().flatten() {
                if is_loose(of, of["description"].as_str().unwrap_or_default()) {
                    loose.insert(format!("{place}.{member}"));
                }
            }
        });
    }
    assert!(loose.is_empty(), "a line in openapi/values.rs: {loose:#?}");
}

/// Whether a schema says nothing of its value, or only that it is an object.
fn is_bare(schema: &Value) -> bool {
    let shaped = ["$ref", "properties", "oneOf", "anyOf", "allOf", "enum", "contentSchema"];
    let may_be_object = schema["type"].is_null() || schema["type"].to_string().contains("object");
    may_be_object
        && !schema["additionalProperties"].is_object()
        && !shaped.iter().any(|word| schema.get(word).is_some())
}

#[test]
fn no_success_is_a_bare_object() {
    fn look(document: &Value, place: &str, schema: &Value, seen: &mut BTreeSet<String>, bare: &mut BTreeSet<String>) {
        let mut inner = Vec::new();
        walk(place, schema, &mut |place, of| {
            if is_bare(of) {
                bare.insert(place.to_owned());
            }
            inner.extend(
                [&of["$ref"], &of["contentSchema"]["$ref"]].into_iter().filter_map(Value::as_str).map(str::to_owned),
            );
        });
        for at in inner {
            let name = at.rsplit('/').next().unwrap().to_owned();
            if seen.insert(name.clone()) {
                look(document, &name, document.pointer(at.trim_start_matches('#')).unwrap(), seen, bare);
            }
        }
    }
    let document = document();
    let (mut seen, mut bare) = (BTreeSet::new(), BTreeSet::new());
    for (_, _, operation) in operations(&document) {
        for (status, answer) in operation["responses"].as_object().unwrap() {
            let has_body = status.starts_with('2') && !["204", "202"].contains(&status.as_str());
            assert!(!has_body || answer["content"].is_object(), "{}: {status} has no body", id(operation));
            for content in answer["content"].as_object().into_iter().flat_map(Map::values) {
                look(&document, id(operation), &content["schema"], &mut seen, &mut bare);
            }
        }
    }
    let is_at = |at: &str, place: &str| {
        let (schema, member) = at.split_once('.').unwrap_or((at, ""));
        let (own, way) = place.split_once('.').unwrap_or((place, ""));
        (schema == "*" || schema == own) && (member == "*" || way.rsplit('.').next() == Some(member))
    };
    let without: Vec<_> = bare.iter().filter(|place| !FREE.iter().any(|(at, _)| is_at(at, place))).collect();
    assert!(without.is_empty(), "these say nothing of their values: {without:#?}");
    for (at, _) in FREE {
        assert!(bare.iter().any(|place| is_at(at, place)), "{at} is nowhere");
    }
}

#[test]
fn errors_are_problems() {
    let document = document();
    for (_, _, operation) in operations(&document) {
        let answers = operation["responses"].as_object().unwrap();
        assert!(["4XX", "default"].iter().all(|status| answers.contains_key(*status)), "{}", id(operation));
        for (status, answer) in answers.iter().filter(|(status, _)| !["1", "2", "3"].contains(&&status[..1])) {
            let answer = resolved(&document, answer);
            let kinds: Vec<_> = answer["content"].as_object().unwrap().keys().collect();
            assert_eq!(kinds, ["application/problem+json"], "{}: {status}", id(operation));
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
        let answers = operation["responses"].as_object().unwrap().values();
        for (kind, content) in answers.filter_map(|answer| answer["content"].as_object()).flatten() {
            let is_text = ["json", "yaml", "text/"].iter().any(|word| kind.contains(word));
            let is_binary = content["schema"]["type"] == "string" && content["schema"]["format"] == "binary";
            assert_eq!(is_binary, !is_text, "{}: {kind}", id(operation));
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten().filter(|p| p["in"] == "path") {
            assert!(parameter.get("example").is_some(), "{}: {}", id(operation), parameter["name"]);
        }
    }
}

/// What a row is called is not blank, and a slug is of the form that the server takes.
#[test]
fn names_and_slugs_say_what_is_taken() {
    let document = document();
    let mut slugs = 0;
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let members = &schema["properties"];
        if !["Input", "Patch"].iter().any(|end| name.ends_with(end)) || members.get("slug").is_none() {
            continue;
        }
        let slug = &members["slug"];
        assert_eq!(slug["pattern"], "^[a-z0-9][a-z0-9_-]*$", "{name}");
        assert_eq!((&slug["minLength"], &slug["maxLength"]), (&json!(1), &json!(63)), "{name}");
        for member in ["name", "title", "content"].iter().filter_map(|member| members.get(*member)) {
            assert_eq!(member["minLength"], 1, "{name}: {member}");
        }
        slugs += 1;
    }
    assert!(slugs > 12, "{slugs}");
    assert_eq!(document["components"]["schemas"]["MessageInput"]["properties"]["content"]["minLength"], 1);
}

/// Where a member means something else in each action, each says its own.
#[test]
fn members_of_actions_say_what_they_mean_there() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for member in ["amount", "level"] {
        let mut said = BTreeSet::new();
        for (name, schema) in schemas.iter().filter(|(name, _)| name.starts_with("EncounterAction")) {
            if let Some(text) = schema["properties"][member]["description"].as_str() {
                assert!(said.insert(text), "{name}.{member} says the same as another: {text}");
            }
        }
        assert!(said.len() > 2, "{said:?}");
    }
    let prices = &schemas["Prices"]["properties"];
    assert!(
        ["prompt", "cached", "completion"]
            .iter()
            .all(|of| prices[*of]["description"].as_str().unwrap().starts_with("The price of"))
    );
    let user = schemas["CharacterInput"]["properties"]["player_user"]["description"].as_str().unwrap();
    assert!(user.contains("by id") && user.contains("not accepted"), "{user}");
}

/// Two lines for one name would be one that nobody reads.
#[test]
fn every_line_of_the_words_is_for_another_name() {
    let mut seen = BTreeSet::new();
    for line in include_str!("../../api/src/openapi/words.txt").lines() {
        let name = line.split_once(": ").unwrap_or_else(|| panic!("{line}")).0;
        assert!(seen.insert(name), "{name} has two lines");
    }
}

/// A fuzzer would wait for the end of a stream.
#[test]
fn fuzzing_leaves_out_every_stream() {
    let settings = include_str!("../contract/schemathesis.toml");
    let document = document();
    let streams = operations(&document).filter(|(_, method, operation)| {
        *method == "get" && operation["responses"]["200"]["content"].get("text/event-stream").is_some()
    });
    let ids: Vec<_> = streams.map(|(_, _, operation)| id(operation)).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    for id in ids {
        assert!(settings.contains(&format!("\"{id}\"")), "{id} is not excluded in schemathesis.toml");
    }
}

/// The server takes a merge patch by two media types.
#[test]
fn patches_say_that_they_are_taken_as_json() {
    let document = document();
    let mut patches = 0;
    for (_, method, operation) in operations(&document).filter(|(_, method, _)| *method == "patch") {
        let body = &operation["requestBody"];
        assert!(body["content"].get("application/merge-patch+json").is_some(), "{method} {}", id(operation));
        assert!(
            body["description"].as_str().unwrap().contains("`Content-Type: application/json`"),
            "{}",
            id(operation)
        );
        patches += 1;
    }
    assert!(patches > 8, "{patches}");
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
    // As `ai::turns` sends them, and as `rules::encounter::Event` is written.
    let turn =
        ["turn.started", "text.delta", "tool.call", "tool.result", "turn.completed", "turn.failed", "turn.cancelled"];
    assert_eq!(kinds("TurnEvent"), names(&turn));
    assert_eq!(kinds("EncounterEvent"), names(ENCOUNTER_EVENTS));
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
