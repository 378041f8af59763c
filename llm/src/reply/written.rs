//! Calls in a model's own notation, which its server passed on as text.
//!
//! The notations are those of Hermes and Qwen (`<tool_call>` with JSON, or with `<function=…>`), GLM (`<arg_key>`), Llama
//! (`<function=…>`, `<|python_tag|>`), Mistral (`[TOOL_CALLS]`), DeepSeek, Kimi, gpt-oss, and `<function_calls>` with `<invoke …>`.

use serde_json::{Map, Value};

use super::calls;
use super::text::without_fences;
use crate::completion::WireToolCall;

/// The calls in what [`super::Aside`] took out of a text, its opening marker included. What cannot be read becomes a call without a
/// name, so that the model is told.
pub(crate) fn read(taken: &str) -> Vec<WireToolCall> {
    let found = notation(taken).unwrap_or_default();
    if !found.is_empty() {
        return found;
    }
    vec![WireToolCall { arguments: taken.to_owned(), ..WireToolCall::default() }]
}

fn notation(taken: &str) -> Option<Vec<WireToolCall>> {
    let after = |marker: &str| taken.strip_prefix(marker).map(str::trim);
    if let Some(body) = after("<tool_call>") {
        return if body.contains("<function=") {
            functions(body)
        } else {
            json(body).or_else(|| keys_and_values(body))
        };
    }
    if taken.starts_with("<function=") {
        return functions(taken);
    }
    if let Some(body) = after("<function_calls>") {
        return each(body, "<invoke name=", |invoke| {
            let (name, rest) = invoke.split_once('>')?;
            Some(call(name.trim_matches(['"', '\'', ' ']), &parameters(rest, "<parameter name=")))
        });
    }
    if let Some(body) = after("[tool_calls]") {
        return json(body).or_else(|| {
            let all = format!("[TOOL_CALLS]{body}");
            each(&all, "[TOOL_CALLS]", |one| {
                let at = one.find('{')?;
                let name = one[..at].split('[').next().unwrap_or_default();
                Some(call(name, &one[at..]))
            })
        });
    }
    if let Some(body) = after("<|python_tag|>") {
        return json(body);
    }
    if let Some(body) = after("<｜tool▁calls▁begin｜>") {
        return each(body, "<｜tool▁call▁begin｜>", |one| {
            let one = one.split("<｜tool▁call▁end｜>").next()?;
            let (before, behind) = one.split_once("<｜tool▁sep｜>")?;
            // The older form has the word `function` in front, and the arguments in a code block.
            let (name, arguments) = match before.trim() {
                "function" => behind.split_once('\n')?,
                name => (name, behind),
            };
            Some(call(name, without_fences(arguments)))
        });
    }
    if let Some(body) = after("<|tool_calls_section_begin|>") {
        return each(body, "<|tool_call_begin|>", |one| {
            let one = one.split("<|tool_call_end|>").next()?;
            let (name, arguments) = one.split_once("<|tool_call_argument_begin|>")?;
            Some(call(name, arguments))
        });
    }
    let body = after("<|channel|>commentary")?;
    let (head, arguments) = body.split_once("<|message|>")?;
    let name = head.split("to=").nth(1)?.split([' ', '<']).next()?;
    Some(vec![call(name, arguments)])
}

/// Calls as JSON objects, one or several.
fn json(body: &str) -> Option<Vec<WireToolCall>> {
    let body = without_fences(body);
    if !body.starts_with(['{', '[']) {
        return None;
    }
    let calls = calls::list(body, false).ok()?;
    let one = |proposed: super::ProposedCall| match proposed.arguments {
        Ok(arguments) => call(&proposed.name, &arguments.to_string()),
        Err(_) => call(&proposed.name, &proposed.raw),
    };
    Some(calls.into_iter().map(one).collect())
}

/// `<function=name>` with JSON or `<parameter=…>` elements.
fn functions(body: &str) -> Option<Vec<WireToolCall>> {
    each(body, "<function=", |function| {
        let function = function.split("</function>").next()?;
        let (name, rest) = function.split_once('>')?;
        let rest = rest.trim();
        Some(if rest.starts_with('{') { call(name, rest) } else { call(name, &parameters(rest, "<parameter=")) })
    })
}

/// A name, and then `<arg_key>` and `<arg_value>` by turns.
fn keys_and_values(body: &str) -> Option<Vec<WireToolCall>> {
    let (name, rest) = body.split_at(body.find('<').unwrap_or(body.len()));
    let mut arguments = Map::new();
    for pair in rest.split("<arg_key>").skip(1) {
        let (key, behind) = pair.split_once("</arg_key>")?;
        let value = behind.split_once("<arg_value>")?.1.split("</arg_value>").next()?;
        arguments.insert(key.trim().to_owned(), value_of(value));
    }
    let name = name.trim();
    (!name.is_empty() && !name.contains(char::is_whitespace))
        .then(|| vec![call(name, &Value::Object(arguments).to_string())])
}

/// The parts of a text that begin with a marker. None if one of them cannot be read.
fn each(body: &str, marker: &str, read: impl Fn(&str) -> Option<WireToolCall>) -> Option<Vec<WireToolCall>> {
    body.split(marker).skip(1).map(read).collect()
}

/// Elements as a JSON object. Each has its name after `open`.
fn parameters(body: &str, open: &str) -> String {
    let one = |element: &str| {
        let (name, rest) = element.split_once('>')?;
        let value = rest.split("</parameter>").next()?;
        Some((name.trim_matches(['"', '\'', ' ']).to_owned(), value_of(value)))
    };
    Value::Object(body.split(open).skip(1).filter_map(one).collect()).to_string()
}

/// A value that was written without quotes if it is text.
fn value_of(text: &str) -> Value {
    let text = text.trim();
    match serde_json::from_str(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_) | Value::Bool(_))) => value,
        _ => text.into(),
    }
}

fn call(name: &str, arguments: &str) -> WireToolCall {
    let name = name.trim();
    let name = name.strip_prefix("functions.").unwrap_or(name);
    let name = name.split(':').next().unwrap_or(name);
    WireToolCall { name: name.to_owned(), arguments: arguments.trim().to_owned(), ..WireToolCall::default() }
}
