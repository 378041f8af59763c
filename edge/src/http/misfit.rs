//! Reports everything in a value that does not fit its type, in the API's words instead of serde's.
//!
//! [`find_errors`] compares a value with its schema and so finds all errors, where serde stops at the first. It is called
//! only for values that could not be read. [`in_words`] translates serde's messages, for errors that no schema
//! describes. Nothing here decides whether a value is accepted.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use base::{error::FieldError, json::escape};

/// The largest number of errors that one answer reports.
pub const ERRORS_MAX: usize = 20;
/// The largest number of member names that a message lists.
const NAMES_MAX: usize = 30;

/// Finds where a value does not fit its schema. `named` are the schemas that others refer to. For a value that fits,
/// nothing is recorded.
pub fn find_errors(schema: &Value, named: &BTreeMap<String, Value>, value: &Value) -> Vec<FieldError> {
    let mut look = Look { named, way: Vec::new(), errors: Vec::new() };
    look.at(schema, value);
    look.errors
}

struct Look<'a> {
    named: &'a BTreeMap<String, Value>,
    /// The path from the root to the current value.
    way: Vec<Step<'a>>,
    errors: Vec<FieldError>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

impl<'a> Look<'a> {
    fn wrong(&mut self, code: &'static str, message: String) {
        if !self.is_full() {
            self.errors.push(FieldError { pointer: self.pointer(), code: code.into(), message });
        }
    }

    /// Whether enough errors for one answer are found. The rest of the value is not checked then.
    fn is_full(&self) -> bool {
        self.errors.len() >= ERRORS_MAX
    }

    fn pointer(&self) -> String {
        let segment = |step: &Step<'_>| match step {
            Step::Member(name) => format!("/{}", escape(name)),
            Step::Item(i) => format!("/{i}"),
        };
        self.way.iter().map(segment).collect()
    }

    fn below(&mut self, step: Step<'a>, then: impl FnOnce(&mut Self)) {
        self.way.push(step);
        then(self);
        self.way.pop();
    }

    fn at(&mut self, schema: &'a Value, value: &'a Value) {
        if self.is_full() {
            return;
        }
        let Some(says) = self.resolved(schema) else { return };
        if let Some(any) = says.get("oneOf").or_else(|| says.get("anyOf")).and_then(Value::as_array) {
            return self.one_of(any, value);
        }
        for part in says.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.at(part, value);
        }
        let types = types(says);
        if !types.is_empty() && !types.iter().any(|kind| is_a(value, kind)) {
            return self.wrong("invalid_value", format!("must be {}", type_names(&types)));
        }
        if let Some(values) = says.get("enum").and_then(Value::as_array)
            && !values.contains(value)
        {
            return self.wrong("invalid_value", format!("must be {}", one_of(values.iter().filter_map(Value::as_str))));
        }
        match value {
            Value::Array(items) => {
                let Some(of) = says.get("items") else { return };
                items.iter().enumerate().for_each(|(i, item)| self.below(Step::Item(i), |look| look.at(of, item)));
            }
            Value::Object(members) => self.object(says, members),
            Value::Number(_) => self.number(says, value),
            _ => {}
        }
    }

    fn object(&mut self, says: &'a Map<String, Value>, members: &'a Map<String, Value>) {
        let known = says.get("properties").and_then(Value::as_object);
        let others = says.get("additionalProperties");
        for (name, member) in members {
            if self.is_full() {
                return;
            }
            match known.and_then(|known| known.get(name)).or(others.filter(|others| others.is_object())) {
                Some(schema) => self.below(Step::Member(name), |look| look.at(schema, member)),
                None if others == Some(&Value::Bool(false)) => {
                    let few = known.filter(|known| known.len() <= NAMES_MAX);
                    let names = few.map(|known| one_of(known.keys().map(String::as_str)));
                    self.below(Step::Member(name), |look| look.wrong("unknown_field", unknown(names.as_deref())));
                }
                None => {}
            }
        }
        let required = says.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for name in required.filter(|name| !members.contains_key(*name)) {
            self.below(Step::Member(name), |look| look.wrong("required", REQUIRED.to_owned()));
        }
    }

    fn number(&mut self, says: &Map<String, Value>, value: &Value) {
        let bound = |word: &str| says.get(word).and_then(Value::as_f64);
        let number = value.as_f64().unwrap_or_default();
        match (bound("minimum"), bound("maximum")) {
            (Some(least), Some(most)) if number < least || number > most => {
                self.wrong("invalid_value", format!("must be from {least} to {most}"));
            }
            (Some(least), None) if number < least => self.wrong("invalid_value", format!("must be at least {least}")),
            (None, Some(most)) if number > most => self.wrong("invalid_value", format!("must be at most {most}")),
            _ => {}
        }
    }

    /// Checks a value that may have one of several shapes. Reports the errors of the one shape that the client meant,
    /// if that is clear.
    fn one_of(&mut self, any: &'a [Value], value: &'a Value) {
        let before = std::mem::take(&mut self.errors);
        let mut tries = Vec::new();
        for shape in any {
            self.at(shape, value);
            tries.push(std::mem::take(&mut self.errors));
        }
        self.errors = before;
        if tries.iter().any(Vec::is_empty) {
            return;
        }
        // The client did not mean a shape whose type or tag does not match.
        let here = self.pointer();
        let mut meant = tries.into_iter().filter(|errors| !errors.iter().any(|error| error.pointer == here));
        if let (Some(errors), None) = (meant.next(), meant.next()) {
            let room = ERRORS_MAX.saturating_sub(self.errors.len());
            self.errors.extend(errors.into_iter().take(room));
            return;
        }
        let mut kinds: Vec<String> = Vec::new();
        for shape in any.iter().filter_map(|shape| self.resolved(shape)) {
            match shape.get("enum").and_then(Value::as_array) {
                Some(values) => kinds.extend(values.iter().filter_map(Value::as_str).map(|word| format!("`{word}`"))),
                None => kinds.extend(types(shape).iter().map(|kind| word(kind).to_owned())),
            }
        }
        kinds.dedup();
        self.wrong("invalid_value", format!("must be {}", kinds.join(" or ")));
    }

    fn resolved(&self, schema: &'a Value) -> Option<&'a Map<String, Value>> {
        let says = schema.as_object()?;
        match says.get("$ref").and_then(Value::as_str).and_then(|at| at.rsplit('/').next()) {
            Some(name) => self.named.get(name)?.as_object(),
            None => Some(says),
        }
    }
}

const REQUIRED: &str = "is required";
/// What is said instead of a message that is neither serde's nor ours: it may name Rust's types.
const NOT_VALID: &str = "is not valid";
/// How the messages of our own types begin.
const OURS: [&str; 4] = ["must ", "there is no ", "a square must ", "this option "];

fn unknown(names: Option<&str>) -> String {
    match names.filter(|names| !names.is_empty()) {
        Some(names) => format!("is not a known name here; use {names}"),
        None => "is not a known name here".to_owned(),
    }
}

fn types(says: &Map<String, Value>) -> Vec<&str> {
    match says.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn word(kind: &str) -> &str {
    match kind {
        "null" => "null",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a string",
        "array" => "a list",
        "object" => "an object",
        other => other,
    }
}

fn type_names(types: &[&str]) -> String {
    types.iter().map(|kind| word(kind)).collect::<Vec<_>>().join(" or ")
}

fn one_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut words: Vec<_> = words.map(|word| format!("`{word}`")).collect();
    match words.pop() {
        Some(last) if words.is_empty() => last,
        Some(last) => format!("{} or {last}", words.join(", ")),
        None => String::new(),
    }
}

/// Translates one of serde's messages and leaves out the names of Rust types. What our own types say stays as it is.
#[must_use]
pub fn in_words(message: &str) -> String {
    // Where in the text is for the reader of a file; types are looked up without it.
    let message = message.rsplit_once(" at line ").map_or(message, |(before, _)| before);
    let expected = || message.split_once("expected ").map_or("", |(_, rest)| rest);
    if message.starts_with("missing field") {
        return REQUIRED.to_owned();
    }
    if message.starts_with("unknown field") {
        return unknown(Some(&quoted(expected())));
    }
    if message.starts_with("unknown variant") {
        return format!("must be {}", quoted(expected()));
    }
    if message.starts_with("invalid type") || message.starts_with("invalid value") {
        return format!("must be {}", type_in_words(expected()));
    }
    if message.starts_with("data did not match any variant") {
        return "must have one of the allowed shapes".to_owned();
    }
    if message.starts_with("provided string was not") {
        return "must be `true` or `false`".to_owned();
    }
    if message.starts_with("UUID parsing failed")
        || message.starts_with("invalid character: expected an optional prefix")
    {
        return "must be an id".to_owned();
    }
    if OURS.iter().any(|beginning| message.starts_with(beginning)) {
        return message.to_owned();
    }
    match message {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "must be a whole number".to_owned()
        }
        "number too large to fit in target type" => "is too large a number".to_owned(),
        "number too small to fit in target type" => "is too small a number".to_owned(),
        "invalid float literal" | "cannot parse float from empty string" => "must be a number".to_owned(),
        _ => NOT_VALID.to_owned(),
    }
}

/// The words in backquotes in a message.
fn quoted(text: &str) -> String {
    one_of(text.split('`').skip(1).step_by(2).take(NAMES_MAX))
}

fn type_in_words(expected: &str) -> String {
    let kind = expected.trim();
    match kind {
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "a borrowed string" | "a character" | "str" => "a string".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "unit" => "null".to_owned(),
        _ if kind.starts_with("struct ") || kind.contains("struct variant") => "an object".to_owned(),
        _ if kind.starts_with("enum ") || kind.contains("variant") => "one of the allowed words or objects".to_owned(),
        _ if kind.starts_with("a tuple") || kind.starts_with("tuple ") => "a list of a different length".to_owned(),
        other => other.to_owned(),
    }
}

/// Joins broken limits with schema errors. Where both concern the same value, the schema error is kept because it says
/// more.
#[must_use]
pub fn beside(mut limits: Vec<FieldError>, found: Vec<FieldError>) -> Vec<FieldError> {
    for error in found {
        match limits.iter().position(|known| known.pointer == error.pointer) {
            Some(at) => limits[at] = error,
            None if limits.len() < ERRORS_MAX => limits.push(error),
            None => {}
        }
    }
    limits
}

/// Joins the schema errors with serde's own error, which comes first. It is left out if a schema error covers the same
/// value.
#[must_use]
pub fn together(read: Vec<FieldError>, found: Vec<FieldError>) -> Vec<FieldError> {
    let is_told = |error: &FieldError| {
        found
            .iter()
            .any(|known| known.pointer == error.pointer || known.pointer.starts_with(&format!("{}/", error.pointer)))
    };
    let mut errors: Vec<_> = read.into_iter().filter(|error| !is_told(error)).collect();
    errors.extend(found);
    errors
}
