//! `/docs` shows the whole document: of each operation its scopes, parameters and example, of each schema its members and their types.

use serde_json::Value;
use tavernkeep::routes;

use crate::support::Server;

/// The part of a page between two pieces of it.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let at = page.find(from).unwrap_or_else(|| panic!("{from} is not on the page"));
    let rest = &page[at..];
    &rest[..rest.find(to).unwrap()]
}

/// A text as the page writes it.
fn escaped(text: &str) -> String {
    text.replace('&', "&#38;").replace('<', "&#60;").replace('>', "&#62;").replace('"', "&#34;").replace('\'', "&#39;")
}

fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(place) => document.pointer(place.trim_start_matches('#')).unwrap(),
        None => value,
    }
}

/// What the page has to say of a type.
fn words(schema: &Value) -> Vec<String> {
    if let Some(place) = schema["$ref"].as_str() {
        return vec![format!("href=\"#schema-{}\"", place.rsplit('/').next().unwrap())];
    }
    let several = ["oneOf", "anyOf"].iter().find_map(|word| schema[*word].as_array());
    if let Some(several) = several {
        return several.iter().flat_map(words).collect();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().take(40).map(|value| escaped(&value.to_string())).collect();
    }
    let of = |kind: &str| match (kind, schema["format"].as_str()) {
        ("string", Some("uuid")) => "id",
        ("string", Some("date-time")) => "time",
        ("string", Some("binary")) => "bytes",
        ("string", _) => "text",
        ("integer", _) => "whole number",
        ("number", _) => "number",
        ("boolean", _) => "true or false",
        ("array", _) => "list",
        ("null", _) => "null",
        ("object", _) if schema["additionalProperties"].is_object() => "map of names to",
        _ => "object",
    };
    let mut words: Vec<String> = match &schema["type"] {
        Value::String(one) => vec![of(one).to_owned()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).map(|one| of(one).to_owned()).collect(),
        _ => Vec::new(),
    };
    words.extend(schema["pattern"].as_str().map(escaped));
    words.extend(schema["maxLength"].as_u64().map(|most| format!("{most} characters")));
    words.extend(schema["maximum"].as_f64().map(|most| most.to_string()));
    words
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_every_operation_and_schema() {
    let document = routes::published().unwrap();
    let page = &Server::start().await.anonymous().get("/docs").await.expect(200).text;
    let mut missing = Vec::new();
    for operation in document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values())
    {
        let id = operation["operationId"].as_str().unwrap();
        let part = between(page, &format!("<details id=\"{id}\">"), "</details>");
        let mut has = |text: String| {
            if !part.contains(&text) {
                missing.push(format!("{id}: {text}"));
            }
        };
        for scope in operation["security"].as_array().unwrap().iter().flat_map(|way| way["bearer"].as_array().unwrap())
        {
            has(scope.as_str().unwrap().to_owned());
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = resolved(&document, parameter);
            let is_required = if parameter["required"] == true { " <small>required</small>" } else { "" };
            has(format!("<code>{}</code>{is_required}</td>", parameter["name"].as_str().unwrap()));
            words(&parameter["schema"]).into_iter().for_each(&mut has);
            if let Some(example) = parameter.get("example") {
                let example = example.as_str().map_or_else(|| example.to_string(), ToOwned::to_owned);
                has(format!("Example: <code>{}</code>", escaped(&example)));
            }
        }
        let mut bodies = operation["requestBody"]["content"].as_object().into_iter().flatten();
        if let Some(example) = bodies.find_map(|(_, body)| body.get("example")) {
            has(escaped(&serde_json::to_string_pretty(example).unwrap()));
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let part = between(page, &format!("<div id=\"schema-{name}\">"), "</div>");
        for (member, of) in schema["properties"].as_object().into_iter().flatten() {
            let Some(at) = part.find(&format!("<tr><td><code>{}</code>", escaped(member))) else {
                missing.push(format!("{name}.{member}"));
                continue;
            };
            let row = part[at..].split("</tr>").next().unwrap();
            missing.extend(
                words(of).iter().filter(|word| !row.contains(*word)).map(|word| format!("{name}.{member}: {word}")),
            );
        }
        let is_union = ["oneOf", "anyOf"].iter().any(|word| schema.get(*word).is_some());
        if is_union {
            missing.extend(
                words(schema).iter().filter(|word| !part.contains(*word)).map(|word| format!("{name}: {word}")),
            );
        }
    }
    assert!(missing.is_empty(), "not on the page: {missing:#?}");
}
