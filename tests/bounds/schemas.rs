//! Every schema of a request in `openapi.yaml` says how large its values may be, and a request is held to it.

use std::collections::BTreeSet;

use edge::http::bounds::{BYTES_WORD, Limit, OTHERWISE};
use reqwest::Method;
use serde_json::{Map, Value, json};
use tavernkeep::routes;

use crate::support::Server;

/// A value somewhere in a request: which limit it needs, and what its schema says.
struct Place {
    /// `NpcInput/inventory`, `NpcInput/owner_ids[]`.
    name: String,
    word: &'static str,
    max: Option<u64>,
}

struct Walk<'a> {
    schemas: &'a Value,
    seen: BTreeSet<String>,
    places: Vec<Place>,
}

impl Walk<'_> {
    fn note(&mut self, name: &str, word: &'static str, schema: &Value) {
        self.places.push(Place { name: name.to_owned(), word, max: schema[word].as_u64() });
    }

    fn schema(&mut self, name: &str, schema: &Value) {
        if let Some(reference) = schema["$ref"].as_str() {
            let named = reference.rsplit('/').next().unwrap();
            if self.seen.insert(named.to_owned()) {
                self.schema(named, &self.schemas[named]);
            }
            return;
        }
        if schema["enum"].is_array() || !schema["const"].is_null() {
            return;
        }
        let parts = ["oneOf", "anyOf", "allOf"].map(|word| schema[word].as_array().into_iter().flatten());
        let mut has_parts = false;
        for part in parts.into_iter().flatten() {
            has_parts = true;
            self.schema(name, part);
        }
        let is =
            |kind: &str| schema["type"] == kind || schema["type"].as_array().is_some_and(|t| t.contains(&json!(kind)));
        if schema["type"].is_null() && !has_parts {
            self.note(name, BYTES_WORD, schema);
        }
        if is("string") && !["uuid", "date-time", "date"].iter().any(|format| schema["format"] == *format) {
            self.note(name, "maxLength", schema);
        }
        if is("array") {
            self.note(name, "maxItems", schema);
            match schema["items"]["type"].is_null() && schema["items"].as_object().is_some_and(Map::is_empty) {
                true => self.note(name, BYTES_WORD, schema),
                false => self.schema(&format!("{name}[]"), &schema["items"]),
            }
        }
        if is("object") {
            self.object(name, schema);
        }
    }

    fn object(&mut self, name: &str, schema: &Value) {
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        for (member, of) in &properties {
            self.schema(&format!("{name}/{member}"), of);
        }
        match &schema["additionalProperties"] {
            Value::Bool(false) => {}
            Value::Object(of) if of.is_empty() => self.note(name, BYTES_WORD, schema),
            Value::Object(of) => {
                self.note(name, "maxProperties", schema);
                self.schema(&format!("{name}{{}}"), &Value::Object(of.clone()));
            }
            Value::Bool(true) => self.note(name, BYTES_WORD, schema),
            _ if properties.is_empty() => self.note(name, BYTES_WORD, schema),
            _ => {}
        }
    }
}

fn document() -> Value {
    serde_json::to_value(routes::document()).unwrap()
}

/// Each operation that takes a body: method, path and the schemas of its body.
fn bodies(api: &Value) -> Vec<(String, String, Vec<&Value>)> {
    let mut found = Vec::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if let Some(content) = operation["requestBody"]["content"].as_object() {
                let schemas = content.values().map(|media| &media["schema"]).collect();
                found.push((method.clone(), path.clone(), schemas));
            }
        }
    }
    found
}

fn places(api: &Value) -> Vec<Place> {
    let mut walk = Walk { schemas: &api["components"]["schemas"], seen: BTreeSet::new(), places: Vec::new() };
    for (method, path, schemas) in bodies(api) {
        schemas.iter().for_each(|schema| walk.schema(&format!("{method} {path}"), schema));
    }
    walk.places
}

#[test]
fn every_value_of_a_request_has_a_limit() {
    let places = places(&document());
    assert!(places.len() > 400, "{}", places.len());
    let without: Vec<_> = places
        .iter()
        .filter(|place| place.max.is_none())
        .map(|place| format!("{} {}", place.name, place.word))
        .collect();
    assert!(without.is_empty(), "no limit in openapi.yaml: {without:#?}");
}

#[test]
fn every_line_of_the_table_is_some_value_s_limit() {
    let places = places(&document());
    for (at, limit) in OTHERWISE.iter().filter(|(at, _)| *at != "import") {
        let (word, max) = match *limit {
            Limit::Chars(max) => ("maxLength", max),
            Limit::Items(max) => ("maxItems", max),
            Limit::Members(max) => ("maxProperties", max),
            Limit::Bytes(max) => (BYTES_WORD, max),
        };
        let (schema, member) = at.split_once('/').unwrap();
        let is_here = |place: &Place| {
            let (own, way) = place.name.split_once('/').unwrap_or((&place.name, ""));
            (schema == "*" || schema == own) && (member == "*" || way.rsplit('/').next() == Some(member))
        };
        let is_used = places.iter().any(|place| is_here(place) && place.word == word && place.max == Some(max as u64));
        // An array's bytes stand beside its entries.
        let is_beside = word == BYTES_WORD && places.iter().any(|place| is_here(place) && place.word == "maxItems");
        assert!(is_used || is_beside, "{at} {limit:?} is nothing's limit");
    }
}

/// What is one more than a member's schema allows; none if the member has no such limit.
fn over(schema: &Value) -> Option<Value> {
    let max = |word: &str| schema[word].as_u64().and_then(|max| usize::try_from(max).ok());
    if let Some(bytes) = max(BYTES_WORD).filter(|bytes| *bytes < 1024 * 1024) {
        return Some(if schema["type"] == "array" { super::list(bytes + 1) } else { super::free(bytes + 1) });
    }
    if let Some(items) = max("maxItems") {
        return Some(json!(vec![0; items + 1]));
    }
    max("maxLength").map(|chars| "ä".repeat(chars + 1).into())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_its_limit_is_refused_with_its_pointer() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let api = document();
    let mut tried = 0;
    for (method, path, schemas) in bodies(&api) {
        // A patch is held to the limits of what it leads to: `sent` has those.
        let Some(name) = schemas.iter().find_map(|s| s["$ref"].as_str()?.rsplit('/').next()) else { continue };
        if method == "patch" {
            continue;
        }
        let url = path.replace("{c}", "nowhere").replace("{x}", "00000000-0000-7000-8000-000000000000");
        let schema = &api["components"]["schemas"][name];
        for (member, of) in schema["properties"].as_object().into_iter().flatten() {
            let Some(value) = over(of) else { continue };
            let request = tenant.request(Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(), &url);
            let answer = tenant.send(request.json(&json!({ (member.as_str()): value }))).await;
            let pointer = format!("/{member}");
            assert_eq!(answer.status, 422, "{method} {path} {member}: {}", answer.text);
            assert!(answer.pointers().contains(&pointer.as_str()), "{method} {path} {member}: {}", answer.text);
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
}
