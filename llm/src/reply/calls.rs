//! Lists of calls in JSON, in the spellings that models use.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::call::{CALLS_BYTES_MAX, CALLS_PER_REPLY_MAX, ProposedCall, too_many};
use super::text::{decode_entities, with_escaped_controls};
use crate::completion::WireToolCall;
use base::{json, text};

const NAMES: [&str; 4] = ["tool_name", "name", "tool", "function"];
const ARGUMENTS: [&str; 5] = ["parameters", "arguments", "args", "params", "input"];
const LISTS: [&str; 4] = ["tools", "tool_calls", "proposed_actions", "actions"];

/// Reads a list of calls, one call, or several values in a row. An empty text, `null` and `[]` mean no calls.
///
/// # Errors
/// What is wrong, if any part is not a call. Then none of the calls may be executed.
pub(super) fn list(json: &str, escaped_entities: bool) -> Result<Vec<ProposedCall>, String> {
    let json = json.trim();
    if json.len() > CALLS_BYTES_MAX {
        return Err(format!("the list of calls has more than {CALLS_BYTES_MAX} bytes"));
    }
    let mended = if values(json).is_err() { with_escaped_controls(json) } else { None };
    let mut calls = Vec::new();
    for value in values(mended.as_deref().unwrap_or(json))? {
        add(&mut calls, value.get(), escaped_entities, true)?;
    }
    Ok(calls)
}

fn values(json: &str) -> Result<Vec<&RawValue>, String> {
    serde_json::Deserializer::from_str(json)
        .into_iter::<&RawValue>()
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the list of calls {}", describe(&error)))
}

/// Adds the calls in `json`. `outer` says whether it may be a list or wrapper.
fn add(calls: &mut Vec<ProposedCall>, json: &str, escaped_entities: bool, outer: bool) -> Result<(), String> {
    match json.as_bytes().first() {
        Some(b'n') if outer => Ok(()),
        Some(b'[') if outer => {
            let items: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| "the list of calls is broken")?;
            if calls.len() + items.len() > CALLS_PER_REPLY_MAX {
                return Err(too_many(calls.len() + items.len()));
            }
            items.into_iter().try_for_each(|item| add(calls, item.get(), escaped_entities, false))
        }
        Some(b'"') if outer => {
            let text: String = serde_json::from_str(json).map_err(|_| "the list of calls is broken")?;
            let inner: &RawValue = serde_json::from_str(&text).map_err(|_| "the list of calls is not a list")?;
            if inner.get().starts_with('"') {
                return Err("the list of calls is not a list".to_owned());
            }
            add(calls, inner.get(), escaped_entities, true)
        }
        Some(b'{') => {
            let fields: Map<String, Value> =
                serde_json::from_str(json).map_err(|error| format!("a call {}", describe(&error)))?;
            if let Some(list) =
                LISTS.iter().find_map(|name| fields.get(*name)).filter(|_| outer && name(&fields).is_none())
            {
                return add(calls, &list.to_string(), escaped_entities, true);
            }
            calls.push(one(fields, json, escaped_entities)?);
            Ok(())
        }
        _ => Err("a call is not an object".to_owned()),
    }
}

fn name(fields: &Map<String, Value>) -> Option<&str> {
    let given = NAMES.iter().find_map(|name| fields.get(*name).filter(|value| !value.is_null()))?;
    let name = given.as_str().or_else(|| given.get("name")?.as_str())?.trim();
    (!name.is_empty()).then_some(name)
}

fn one(mut fields: Map<String, Value>, raw: &str, escaped_entities: bool) -> Result<ProposedCall, String> {
    let mut name = name(&fields).ok_or("a call has no name")?.to_owned();
    if escaped_entities {
        name = decode_entities(&name);
    }
    let name = text::on_one_line(&name).into_owned();
    // `{"type":"function","function":{"name":…,"arguments":…}}`
    if let Some(Value::Object(function)) = fields.get_mut("function") {
        fields = std::mem::take(function);
    }
    let given = ARGUMENTS.iter().find_map(|name| fields.remove(*name));
    let arguments = match given {
        Some(Value::String(text)) => parse_arguments(&text),
        other => object(other.unwrap_or(Value::Null)),
    };
    let arguments = arguments.map(|mut value| {
        clean(&mut value, escaped_entities);
        value
    });
    Ok(ProposedCall { id: None, name, arguments, raw: raw.to_owned() })
}

/// Reads a native call. Only its own arguments can be wrong.
pub(super) fn native(call: &WireToolCall) -> ProposedCall {
    let arguments = parse_arguments(&call.arguments).map(|mut value| {
        clean(&mut value, false);
        value
    });
    ProposedCall {
        id: Some(call.id.clone()),
        name: call.name.trim().to_owned(),
        arguments,
        raw: call.arguments.clone(),
    }
}

/// Parses arguments from text. An empty text means no arguments.
fn parse_arguments(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if text.len() > CALLS_BYTES_MAX {
        return Err(format!("the arguments have more than {CALLS_BYTES_MAX} bytes"));
    }
    if text.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let parsed = serde_json::from_str(text);
    let value = match parsed {
        Ok(value) => value,
        Err(error) => with_escaped_controls(text)
            .and_then(|mended| serde_json::from_str(&mended).ok())
            .ok_or_else(|| format!("the arguments: the JSON {}", describe(&error)))?,
    };
    match value {
        // Some models write the JSON into a JSON string.
        Value::String(text) if text.trim_start().starts_with('{') => {
            let inner = serde_json::from_str(&text);
            object(inner.map_err(|error| format!("the arguments: the JSON in the string {}", describe(&error)))?)
        }
        value => object(value),
    }
}

fn object(value: Value) -> Result<Value, String> {
    match value {
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Object(_) => Ok(value),
        _ => Err("the arguments must be a JSON object".to_owned()),
    }
}

/// Makes strings and keys fit to be stored, and decodes entities if the list was written inside XML.
fn clean(value: &mut Value, escaped_entities: bool) {
    if escaped_entities {
        decode_all(value);
    }
    json::clean(value);
}

/// Decodes the entities in all strings. The JSON parser limits the depth.
fn decode_all(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('&') => *text = decode_entities(text),
        Value::Array(items) => items.iter_mut().for_each(decode_all),
        Value::Object(fields) => fields.values_mut().for_each(decode_all),
        _ => {}
    }
}

/// Says where the JSON is broken. Serde's own message may quote it.
fn describe(error: &serde_json::Error) -> String {
    let what = if error.is_eof() { "ends too early" } else { "is not valid JSON" };
    format!("{what} (line {}, column {})", error.line(), error.column())
}
