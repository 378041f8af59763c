//! How an entry of an NPC's or owner's `available_tools` narrows a tool's parameters. The model reads the narrowed
//! schema, and the server enforces it.
//!
//! For each parameter, an entry can set a `type`, an `enum`, a `minimum` and `maximum`, a `maxLength`, a `default` for
//! calls that leave the parameter out, and a `description`. `const` is an `enum` of one value. An entry takes an optional parameter away
//! with `false`. An entry cannot add parameters or widen them: whoever
//! writes such an entry gets an error. If a part of a stored entry does not fit, the server ignores that part and
//! applies the rest.

use serde_json::{Map, Value, json};

use super::Tool;
use base::{
    error::{Error, FieldError, Result},
    json,
};

/// The most values of an `enum`.
const VALUES_MAX: usize = 100;
/// The most characters of a description.
const DESCRIPTION_CHARS_MAX: usize = 2000;
/// Other argument names that some tools accept.
const OTHER_NAMES: [(&str, &str); 3] = [("entity_id", "player_id"), ("damage_type", "type"), ("limit", "count")];

/// What an entry narrows: the JSON Schema keywords that it adds to each parameter, or `false` for one that it takes away.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Narrowing(Map<String, Value>);

impl Narrowing {
    /// Reads an entry's `parameters`. Also returns errors for whatever does not fit, with pointers into the parameters.
    pub fn of(tool: &Tool, parameters: &Value) -> (Self, Vec<FieldError>) {
        let mut narrowed = Map::new();
        let mut errors = Vec::new();
        let (given, above) = by_name(parameters);
        let Some(given) = given else {
            return (
                Self::default(),
                vec![wrong("", "invalid_value", "Parameters are an object, by name.".to_owned())],
            );
        };
        for (name, keywords) in given {
            let pointer = format!("{above}/{}", json::escape(name));
            let Some(base) = tool.schema().get("properties").and_then(|properties| properties.get(name)) else {
                let message = format!("`{}` has no parameter with this name.", tool.name);
                errors.push(wrong(&pointer, "unknown_field", message));
                continue;
            };
            if keywords == &Value::Bool(false) {
                match is_required(tool, name) {
                    false => drop(narrowed.insert(name.clone(), false.into())),
                    true => errors.push(wrong(&pointer, "invalid_value", "The tool needs this parameter.".to_owned())),
                }
                continue;
            }
            let kept = keywords_of(base, keywords, &pointer, &mut errors);
            if !kept.is_empty() {
                narrowed.insert(name.clone(), kept.into());
            }
        }
        (Self(narrowed), errors)
    }

    /// The tool's schema, narrowed by the entry.
    #[must_use]
    pub fn schema(&self, tool: &Tool) -> Value {
        let mut schema = tool.schema().clone();
        for (name, keywords) in &self.0 {
            if keywords == &Value::Bool(false) {
                schema.pointer_mut("/properties").and_then(Value::as_object_mut).map(|known| known.remove(name));
                continue;
            }
            let Some(property) = schema.pointer_mut(&format!("/properties/{}", json::escape(name))) else { continue };
            if let (Value::Object(property), Value::Object(keywords)) = (property, keywords) {
                property.extend(keywords.clone());
            }
            if keywords.get("default").is_some()
                && let Some(Value::Array(required)) = schema.get_mut("required")
            {
                required.retain(|required| required != name);
            }
        }
        schema
    }

    /// Fills in defaults and checks the arguments.
    ///
    /// # Errors
    /// `validation_failed` with a pointer to each argument that the entry does not allow.
    pub fn apply(&self, tool: &Tool, mut arguments: Value) -> Result<Value> {
        let Value::Object(members) = &mut arguments else { return Ok(arguments) };
        if self.0.is_empty() {
            return Ok(arguments);
        }
        by_own_names(tool, members);
        let mut errors = Vec::new();
        for (name, keywords) in &self.0 {
            match (members.get(name), keywords.get("default")) {
                (None | Some(Value::Null), Some(default)) => {
                    members.insert(name.clone(), default.clone());
                }
                (None | Some(Value::Null), None) => {}
                (Some(_), _) if keywords == &Value::Bool(false) => {
                    let why = "You cannot set this parameter. Leave it out.".to_owned();
                    errors.push(wrong(&format!("/{}", json::escape(name)), "unknown_field", why));
                }
                (Some(value), _) => {
                    if let Some(why) = unfit(keywords, value) {
                        errors.push(wrong(&format!("/{}", json::escape(name)), "invalid_value", why));
                    }
                }
            }
        }
        if errors.is_empty() { Ok(arguments) } else { Err(Error::validation(errors)) }
    }
}

/// Whether a call must give a parameter.
fn is_required(tool: &Tool, name: &str) -> bool {
    tool.schema().get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|known| known == name))
}

/// The parameters by name, and the pointer to them. An entry has them directly, or as a whole JSON Schema of an object.
fn by_name(parameters: &Value) -> (Option<&Map<String, Value>>, &'static str) {
    match (parameters.get("type"), parameters.get("properties")) {
        (Some(Value::String(kind)), Some(Value::Object(properties))) if kind == "object" => {
            (Some(properties), "/properties")
        }
        _ => (parameters.as_object(), ""),
    }
}

/// Renames arguments to the names in the schema.
fn by_own_names(tool: &Tool, members: &mut Map<String, Value>) {
    let has = |name: &str| tool.schema().get("properties").is_some_and(|properties| properties.get(name).is_some());
    for (other, own) in OTHER_NAMES {
        if has(own)
            && !has(other)
            && !members.contains_key(own)
            && let Some(value) = members.remove(other)
        {
            members.insert(own.to_owned(), value);
        }
    }
}

/// The keywords that narrow a parameter.
fn keywords_of(base: &Value, given: &Value, pointer: &str, errors: &mut Vec<FieldError>) -> Map<String, Value> {
    let mut kept = Map::new();
    let Value::Object(given) = given else {
        errors.push(wrong(pointer, "invalid_value", "Say it as an object, such as {\"maxLength\": 200}.".to_owned()));
        return kept;
    };
    for (keyword, value) in given.iter().filter(|(keyword, _)| *keyword != "default") {
        match keyword_fits(base, keyword, value) {
            // One value is narrower than any list of values.
            Ok(()) if keyword == "enum" && given.contains_key("const") => {}
            Ok(()) if keyword == "const" => {
                kept.insert("enum".to_owned(), json!([value]));
            }
            Ok(()) => {
                kept.insert(keyword.clone(), value.clone());
            }
            Err((code, why)) => errors.push(wrong(&format!("{pointer}/{}", json::escape(keyword)), code, why)),
        }
    }
    if number(&kept, "minimum") > number(&kept, "maximum") && kept.contains_key("maximum") {
        errors.push(wrong(&format!("{pointer}/minimum"), "invalid_value", "must be at most `maximum`".to_owned()));
        kept.remove("minimum");
    }
    if let Some(default) = given.get("default") {
        let narrowed = Value::Object(kept.clone());
        if fits(base, default) && unfit(&narrowed, default).is_none() {
            kept.insert("default".to_owned(), default.clone());
        } else {
            let why = "must be a value that the parameter allows".to_owned();
            errors.push(wrong(&format!("{pointer}/default"), "invalid_value", why));
        }
    }
    // A keyword that repeats the tool's own schema changes nothing.
    kept.retain(|keyword, value| base.get(keyword) != Some(value));
    kept
}

type Unfit = (&'static str, String);

/// Checks that a keyword allows nothing that the tool does not allow.
fn keyword_fits(base: &Value, keyword: &str, value: &Value) -> Result<(), Unfit> {
    let types = types(base);
    let is = |wanted: &[&str]| types.iter().any(|t| wanted.contains(&t.as_str()));
    let widens = |why: &str| Err(("invalid_value", why.to_owned()));
    match keyword {
        "description" => match value.as_str() {
            Some(text) if text.chars().count() <= DESCRIPTION_CHARS_MAX => Ok(()),
            _ => widens("must be a text of at most 2000 characters"),
        },
        "type" => match value.as_str() {
            Some(name) if types.iter().any(|t| t == name || (t == "number" && name == "integer")) => Ok(()),
            _ => widens(&format!("must be a type that the tool takes: {}", types.join(", "))),
        },
        "enum" => match value.as_array() {
            Some(values) if (1..=VALUES_MAX).contains(&values.len()) && values.iter().all(|v| fits(base, v)) => Ok(()),
            _ => widens("must be a list of 1 to 100 values that the tool takes"),
        },
        "const" if fits(base, value) => Ok(()),
        "const" => widens("must be a value that the tool takes"),
        "minimum" | "maximum" if is(&["number", "integer"]) => {
            let own = bound(base, keyword);
            match (value.as_f64(), own) {
                (None, _) => widens("must be a number"),
                (Some(given), Some(own)) if keyword == "minimum" && given < own => {
                    widens(&format!("must be at least {own}, the smallest value that the tool takes"))
                }
                (Some(given), Some(own)) if keyword == "maximum" && given > own => {
                    widens(&format!("must be at most {own}, the largest value that the tool takes"))
                }
                _ => Ok(()),
            }
        }
        "maxLength" if is(&["string"]) => match (value.as_u64(), bound(base, keyword)) {
            (None, _) => widens("must be a number of characters"),
            (Some(given), Some(own)) if json!(given).as_f64() > Some(own) => {
                widens(&format!("must be at most {own}, the longest text that the tool takes"))
            }
            _ => Ok(()),
        },
        "minimum" | "maximum" | "maxLength" => widens("cannot be set for parameters of this type"),
        _ => Err((
            "unknown_field",
            "A parameter can have only `type`, `default`, `enum`, `minimum`, `maximum`, `maxLength` and `description`."
                .to_owned(),
        )),
    }
}

/// Why a value is not allowed by the keywords.
fn unfit(keywords: &Value, value: &Value) -> Option<String> {
    let limit = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
    let chars = || u32::try_from(value.as_str()?.chars().count()).ok().map(f64::from);
    if let Some(name) = keywords.get("type").and_then(Value::as_str).filter(|name| !is_type(name, value)) {
        return Some(format!("must be of type {name}"));
    }
    if let Some(values) = keywords.get("enum").and_then(Value::as_array).filter(|values| !values.contains(value)) {
        let named: Vec<String> = values.iter().take(20).map(ToString::to_string).collect();
        return Some(format!("must be one of {}", named.join(", ")));
    }
    if let (Some(min), Some(given)) = (limit("minimum"), value.as_f64())
        && given < min
    {
        return Some(format!("must be at least {min}"));
    }
    if let (Some(max), Some(given)) = (limit("maximum"), value.as_f64())
        && given > max
    {
        return Some(format!("must be at most {max}"));
    }
    if let (Some(max), Some(given)) = (limit("maxLength"), chars())
        && given > max
    {
        return Some(format!("must have at most {max} characters"));
    }
    None
}

/// Whether a value fits one of our own schemas. Checks only the keywords that those schemas use.
fn fits(schema: &Value, value: &Value) -> bool {
    let alternatives = |keyword: &str| {
        schema.get(keyword).and_then(Value::as_array).is_none_or(|all| all.iter().any(|one| fits(one, value)))
    };
    let types = schema.get("type").is_none_or(|named| match named {
        Value::String(name) => is_type(name, value),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(|name| is_type(name, value)),
        _ => true,
    });
    let items = match (schema.get("items"), value.as_array()) {
        (Some(items), Some(values)) => values.iter().all(|value| fits(items, value)),
        _ => true,
    };
    let constant = schema.get("const").is_none_or(|only| only == value);
    types && items && constant && alternatives("anyOf") && alternatives("oneOf") && fits_own_limits(schema, value)
}

/// Whether a value fits the schema's own limits.
fn fits_own_limits(schema: &Value, value: &Value) -> bool {
    let mut limits = schema.clone();
    if let Value::Object(members) = &mut limits {
        members.remove("type");
    }
    unfit(&limits, value).is_none()
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

/// The types that a schema of ours allows.
fn types(schema: &Value) -> Vec<String> {
    let mut found: Vec<String> = match schema.get("type") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
        _ => Vec::new(),
    };
    for keyword in ["anyOf", "oneOf"] {
        found.extend(schema.get(keyword).and_then(Value::as_array).into_iter().flatten().flat_map(types));
    }
    found.sort();
    found.dedup();
    found
}

/// A limit in one of our own schemas, at whatever depth it is.
fn bound(schema: &Value, keyword: &str) -> Option<f64> {
    schema.get(keyword).and_then(Value::as_f64).or_else(|| {
        let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|name| schema.get(name)?.as_array()).flatten();
        alternatives.filter_map(|one| bound(one, keyword)).next()
    })
}

fn number(keywords: &Map<String, Value>, keyword: &str) -> Option<f64> {
    keywords.get(keyword).and_then(Value::as_f64)
}

fn wrong(pointer: &str, code: &'static str, message: String) -> FieldError {
    FieldError { pointer: pointer.to_owned(), code: code.into(), message }
}
