//! The OpenAPI file is generated, committed and the same; what it says of the whole, and of every example.

mod examples;
mod invariants;
mod nulls;
mod page;
mod required;

use tavernkeep::routes;

fn committed(name: &str) -> String {
    std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
}

#[test]
fn the_committed_file_is_the_generated_one() {
    let committed = committed("openapi.yaml");
    let generated = routes::published_yaml().unwrap();
    assert!(
        committed == generated,
        "openapi.yaml is out of date; mend it: cargo run -p tavernkeep -- openapi > openapi.yaml"
    );
}

#[test]
fn the_committed_schema_of_frames_is_the_generated_one() {
    let committed = committed("bridge.schema.json");
    let generated = serde_json::to_string_pretty(&routes::frames().unwrap()).unwrap() + "\n";
    assert!(
        committed == generated,
        "bridge.schema.json is out of date; mend it: cargo run -p tavernkeep -- openapi --bridge > bridge.schema.json"
    );
}

#[test]
fn every_operation_says_what_it_is() {
    let api = routes::document();
    for (path, item) in &api.paths.paths {
        let operations = [&item.get, &item.post, &item.put, &item.patch, &item.delete];
        for operation in operations.into_iter().flatten() {
            let name = operation.operation_id.clone().unwrap_or_default();
            assert!(!name.is_empty(), "{path}: no operation id");
            assert!(operation.summary.as_deref().is_some_and(|s| s.len() > 5), "{path}: {name} has no summary");
            assert!(!operation.responses.responses.is_empty(), "{path}: {name} has no responses");
        }
    }
}

#[test]
fn operation_ids_are_unique() {
    let api = routes::document();
    let mut seen = std::collections::HashSet::new();
    for item in api.paths.paths.values() {
        for operation in [&item.get, &item.post, &item.put, &item.patch, &item.delete].into_iter().flatten() {
            assert!(seen.insert(operation.operation_id.clone()), "{:?} twice", operation.operation_id);
        }
    }
}

#[test]
fn arguments_of_commands_are_described() {
    let described = routes::document().components.unwrap().schemas;
    for command in ai::commands::REGISTRY {
        let schema = serde_json::to_value(&described[&format!("Arguments.{}", command.name)]).unwrap();
        let names = |schema: &serde_json::Value| -> Vec<String> {
            schema["properties"].as_object().unwrap().keys().cloned().collect()
        };
        let (mut ours, mut theirs) = (names(command.schema()), names(&schema));
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "{}", command.name);
    }
}

/// Of two types of one name the document would hold one, and describe with it what the other is.
#[test]
fn no_two_types_share_a_name() {
    let mut named = std::collections::BTreeMap::new();
    let mut shared = std::collections::BTreeSet::new();
    for (name, schema) in routes::schemas() {
        if named.entry(name.clone()).or_insert_with(|| schema.clone()) != &schema {
            shared.insert(name);
        }
    }
    assert!(named.len() > 100);
    assert!(shared.is_empty(), "give one of them another name, `#[schema(as = …)]`: {shared:?}");
}
