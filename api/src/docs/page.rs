//! `/docs`: the published document as a page, with the fields, types and examples of everything. It is rendered once,
//! when the server starts, and needs no scripts and no other host.
//!
//! The page shows only what is in the document: anything missing here is missing in `openapi.yaml` too.

use askama::Template;
use serde_json::{Map, Value};

use crate::openapi::document::METHODS;
use base::error::{Error, Result};

/// How many levels of nested objects are shown.
const DEPTH_MAX: usize = 4;
/// The largest number of an enumeration's values that are listed.
const WORDS_MAX: usize = 40;

#[derive(Template)]
#[template(path = "docs.html")]
struct Docs<'a> {
    version: &'a str,
    groups: Vec<Group<'a>>,
    schemas: Vec<Shape<'a>>,
}

struct Group<'a> {
    tag: &'a str,
    says: &'a str,
    routes: Vec<Route<'a>>,
}

struct Route<'a> {
    id: &'a str,
    method: String,
    path: &'a str,
    summary: &'a str,
    says: &'a str,
    scopes: String,
    parameters: Vec<(&'a str, Field<'a>)>,
    body: Option<Body<'a>>,
    answers: Vec<Answer<'a>>,
}

struct Body<'a> {
    media: String,
    kind: Vec<Part<'a>>,
    example: Option<String>,
}

struct Answer<'a> {
    status: &'a str,
    says: &'a str,
    kind: Vec<Part<'a>>,
}

/// A named schema.
struct Shape<'a> {
    name: &'a str,
    says: &'a str,
    kind: Vec<Part<'a>>,
    fields: Vec<Field<'a>>,
}

struct Field<'a> {
    name: String,
    kind: Vec<Part<'a>>,
    is_required: bool,
    says: &'a str,
    example: Option<String>,
}

/// A piece of a type's description. If it names a schema, it links to it.
struct Part<'a> {
    text: String,
    schema: Option<&'a str>,
}

impl Part<'_> {
    fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), schema: None }
    }
}

/// Renders the page.
///
/// # Errors
/// `internal` if it cannot be written.
pub fn render(document: &Value) -> Result<String> {
    let page =
        Docs { version: text(&document["info"], "version"), groups: groups(document), schemas: schemas(document) };
    page.render().map_err(Error::internal)
}

/// Splits a text at its backquotes. The flag says whether a piece was inside them.
fn prose(text: &str) -> impl Iterator<Item = (bool, &str)> {
    text.split('`').enumerate().map(|(n, piece)| (n % 2 == 1, piece))
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or_default()
}

fn members(of: &Value) -> impl Iterator<Item = (&String, &Value)> {
    of.as_object().into_iter().flatten()
}

fn groups(document: &Value) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for tag in document["tags"].as_array().into_iter().flatten() {
        groups.push(Group { tag: text(tag, "name"), says: text(tag, "description"), routes: Vec::new() });
    }
    for (path, item) in members(&document["paths"]) {
        for (method, operation) in METHODS.iter().filter_map(|method| Some((method, item.get(method)?))) {
            let route = route(document, method, path, operation);
            let tag = operation["tags"][0].as_str().unwrap_or_default();
            if let Some(group) = groups.iter_mut().find(|group| group.tag == tag) {
                group.routes.push(route);
            }
        }
    }
    groups.retain(|group| !group.routes.is_empty());
    groups
}

fn route<'a>(document: &'a Value, method: &str, path: &'a str, operation: &'a Value) -> Route<'a> {
    let parameters = operation["parameters"].as_array().into_iter().flatten().map(|given| {
        let parameter = resolved(document, given);
        let field = Field {
            name: text(parameter, "name").to_owned(),
            kind: kind(&parameter["schema"]),
            is_required: parameter["required"] == true,
            says: text(parameter, "description"),
            example: parameter.get("example").map(plain),
        };
        (text(parameter, "in"), field)
    });
    let answers = members(&operation["responses"]).map(|(status, answer)| {
        let answer = resolved(document, answer);
        let content = members(&answer["content"]).next();
        let kind = content.map_or_else(Vec::new, |(media, content)| match content.get("schema") {
            Some(schema) => kind(schema),
            None => vec![Part::words(media)],
        });
        Answer { status, says: text(answer, "description"), kind }
    });
    Route {
        id: text(operation, "operationId"),
        method: method.to_uppercase(),
        path,
        summary: text(operation, "summary"),
        says: text(operation, "description"),
        scopes: scopes(operation),
        parameters: parameters.collect(),
        body: body(operation),
        answers: answers.collect(),
    }
}

/// A value as it is written in a path: a text without quotation marks.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// Follows a reference within the document.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let place = value["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    place.and_then(|place| document.pointer(place)).unwrap_or(value)
}

/// The scopes that a route requires, in words.
fn scopes(operation: &Value) -> String {
    let ways = operation["security"].as_array().into_iter().flatten().filter_map(Value::as_object);
    let of = |way: &Map<String, Value>| {
        let scopes: Vec<_> =
            way.values().flat_map(|s| s.as_array().into_iter().flatten()).filter_map(Value::as_str).collect();
        if scopes.is_empty() { "any credential".to_owned() } else { scopes.join(" and ") }
    };
    let ways: Vec<String> = ways.map(of).collect();
    if ways.is_empty() { "no credential".to_owned() } else { ways.join(", or ") }
}

fn body(operation: &Value) -> Option<Body<'_>> {
    let content = operation["requestBody"]["content"].as_object()?;
    let (_, first) = content.iter().next()?;
    let example = content.values().find_map(|of| of.get("example"));
    Some(Body {
        media: content.keys().map(String::as_str).collect::<Vec<_>>().join(" or "),
        kind: first.get("schema").map_or_else(Vec::new, kind),
        example: example.and_then(|example| serde_json::to_string_pretty(example).ok()),
    })
}

fn schemas(document: &Value) -> Vec<Shape<'_>> {
    members(&document["components"]["schemas"])
        .map(|(name, schema)| {
            let mut all = Vec::new();
            fields(schema, "", 0, &mut all);
            let shown = if all.is_empty() { kind(schema) } else { Vec::new() };
            Shape { name, says: text(schema, "description"), kind: shown, fields: all }
        })
        .collect()
}

/// The members of an object and of the objects nested in it, named like `abilities.strength`.
fn fields<'a>(schema: &'a Value, before: &str, depth: usize, all: &mut Vec<Field<'a>>) {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, of) in members(&schema["properties"]) {
        let name_here = format!("{before}{name}");
        all.push(Field {
            name: name_here.clone(),
            kind: kind(of),
            is_required: required.contains(&name.as_str()),
            says: text(of, "description"),
            example: None,
        });
        if depth < DEPTH_MAX {
            let (inner, mark) = if of["items"].is_object() { (&of["items"], "[].") } else { (of, ".") };
            fields(inner, &format!("{name_here}{mark}"), depth + 1, all);
        }
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        fields(part, before, depth, all);
    }
}

/// The named schema that this refers to.
fn references(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

/// A type in words: `text, at most 200 characters`.
fn kind(schema: &Value) -> Vec<Part<'_>> {
    if let Some(name) = references(schema) {
        return vec![Part { text: name.to_owned(), schema: Some(name) }];
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        if let Some(several) = schema[word].as_array() {
            let between = if word == "allOf" { " and " } else { " or " };
            return joined(several.iter().map(kind), between);
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let words: Vec<_> = values.iter().take(WORDS_MAX).map(Value::to_string).collect();
        return vec![Part::words(words.join(" or "))];
    }
    if let Some(value) = schema.get("const") {
        return vec![Part::words(value.to_string())];
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return vec![Part::words("anything")],
    };
    joined(types.into_iter().map(|one| of_type(schema, one)), " or ")
}

fn joined<'a>(several: impl Iterator<Item = Vec<Part<'a>>>, between: &str) -> Vec<Part<'a>> {
    let mut all = Vec::new();
    for (i, parts) in several.enumerate() {
        if i > 0 {
            all.push(Part::words(between));
        }
        all.extend(parts);
    }
    all
}

fn of_type<'a>(schema: &'a Value, one: &str) -> Vec<Part<'a>> {
    let range = |least: &str, most: &str, unit: &str| match (schema[least].as_f64(), schema[most].as_f64()) {
        (Some(least), Some(most)) => format!(" {least} to {most}{unit}"),
        (Some(least), None) => format!(" of at least {least}{unit}"),
        (None, Some(most)) => format!(" of at most {most}{unit}"),
        (None, None) => String::new(),
    };
    match one {
        "string" => match schema["format"].as_str() {
            Some("uuid") => vec![Part::words("id")],
            Some("date-time") => vec![Part::words("time")],
            Some("binary") => vec![Part::words("bytes")],
            _ => {
                let form =
                    schema["pattern"].as_str().map(|pattern| format!(" of the form {pattern}")).unwrap_or_default();
                vec![Part::words(format!("text{}{form}", range("minLength", "maxLength", " characters")))]
            }
        },
        "integer" => vec![Part::words(format!("whole number{}", range("minimum", "maximum", "")))],
        "number" => vec![Part::words(format!("number{}", range("minimum", "maximum", "")))],
        "boolean" => vec![Part::words("true or false")],
        "array" => {
            let of = schema.get("items").map_or_else(Vec::new, kind);
            let head = format!("list{} of ", range("minItems", "maxItems", ""));
            std::iter::once(Part::words(head)).chain(of).collect()
        }
        "object" => match schema.get("additionalProperties").filter(|of| of.is_object()) {
            Some(of) => std::iter::once(Part::words("map of names to ")).chain(kind(of)).collect(),
            None => vec![Part::words("object")],
        },
        other => vec![Part::words(other)],
    }
}
