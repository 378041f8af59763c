//! What `openapi.yaml` promises: an answer's status is listed, its headers are named, its body is of the schema; and so is the
//! body of a request that was taken. All that tests send and read through [`super::Client::send`] is compared with it.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use jsonschema::{Registry, ValidationError, Validator};
use reqwest::Request;
use serde_json::{Value, json};

use super::Answer;

/// Headers that are named wherever they may come.
const HEADERS: [&str; 4] = ["ETag", "Location", "Idempotency-Replayed", "Retry-After"];

/// A request, as far as the document describes it.
pub struct Sent {
    method: String,
    path: String,
    body: Option<Value>,
}

impl Sent {
    pub fn of(request: &Request) -> Self {
        let body = request.body().and_then(|body| body.as_bytes());
        Self {
            method: request.method().as_str().to_ascii_lowercase(),
            path: request.url().path().to_owned(),
            body: body.and_then(|bytes| serde_json::from_slice(bytes).ok()),
        }
    }
}

/// What is not as the document says of a request and its answer.
pub fn check(sent: &Sent, answer: &Answer) -> Result<(), String> {
    let contract = &*CONTRACT;
    let Sent { method, path, body } = sent;
    let Some(pattern) = contract.pattern(method, path).filter(|pattern| pattern.starts_with("/v1/")) else {
        return Ok(());
    };
    let operation = format!("/paths/{}/{method}", pattern.replace('/', "~1"));
    let status = answer.status.to_string();
    let responses = &contract.api.pointer(&operation).unwrap()["responses"];
    let status = if responses.get(&status).is_none() && answer.status >= 400 { "default" } else { &status };
    let response = responses.get(status).ok_or_else(|| format!("{method} {pattern}: {status} is not described"))?;
    // What is the same for all is described once.
    let place = match response["$ref"].as_str() {
        Some(place) => place.trim_start_matches('#').to_owned(),
        None => format!("{operation}/responses/{status}"),
    };
    let response = contract.api.pointer(&place).ok_or_else(|| format!("{place} is not described"))?;
    for name in HEADERS.iter().filter(|name| answer.headers.contains_key(**name)) {
        response["headers"].get(name).ok_or_else(|| format!("{method} {pattern}: {status} comes with {name}"))?;
    }
    let request = format!("{operation}/requestBody");
    if let Some(body) = body.as_ref().filter(|_| answer.status < 300 && contract.api.pointer(&request).is_some()) {
        contract.holds(&request, body)?;
    }
    if answer.header("content-type").contains("json") {
        contract.holds(&place, &answer.body)?;
        is_well_said(answer).map_err(|wrong| format!("{method} {pattern}: {wrong}: {}", answer.text))?;
    }
    Ok(())
}

/// What no schema says of answers.
fn is_well_said(answer: &Answer) -> Result<(), &'static str> {
    if answer.text.contains("+00:00\"") {
        return Err("a time does not end with Z");
    }
    if answer.body["code"] == "validation_failed" && answer.body["errors"].is_array() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let first = text(&answer.body["errors"][0]["pointer"]);
        if !text(&answer.body["detail"]).starts_with(&format!("{first}: ")) {
            return Err("the detail is not that of the first error");
        }
    }
    Ok(())
}

/// What is not as `bridge.schema.json` says of a frame of one side, `FrontendFrame` or `ServerFrame`.
pub fn check_frame(side: &str, frame: &Value) -> Result<(), String> {
    static FRAMES: LazyLock<Value> = LazyLock::new(|| tavernkeep::routes::frames().unwrap());
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let kind = frame["type"].as_str().unwrap_or_default();
    let place = FRAMES["$defs"][side]["discriminator"]["mapping"][kind].as_str();
    let place = place.ok_or_else(|| format!("{side}: there is no type `{kind}`"))?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = known.entry(place.to_owned()).or_insert_with(|| {
        let schema = json!({ "$ref": place, "$defs": FRAMES["$defs"] });
        Arc::new(jsonschema::options().build(&schema).unwrap())
    });
    let said = |wrong: ValidationError<'_>| format!("{}: {:.300}", wrong.instance_path(), wrong.to_string());
    let wrong: Vec<_> = validator.iter_errors(frame).map(said).collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("{place}: {wrong:#?}\n{frame}")) }
}

/// What is not as the document says of an event of a stream.
pub fn check_event(path: &str, name: &str, data: &Value) -> Result<(), String> {
    let contract = &*CONTRACT;
    let streams = |method: &str| {
        let pattern = contract.pattern(method, path)?;
        let place = format!("/paths/{}/{method}/responses/200/content/text~1event-stream", pattern.replace('/', "~1"));
        contract.api.pointer(&place).map(|_| format!("{place}/schema/contentSchema"))
    };
    let place =
        ["get", "post"].into_iter().find_map(streams).ok_or_else(|| format!("{path}: no stream is described"))?;
    let of = contract.api.pointer(&place).and_then(|schema| schema["$ref"].as_str()).unwrap_or_default();
    // Where the events of a stream are of several kinds, the schema tells them apart by their names.
    let (is_named, place, told) = match of.rsplit('/').next().unwrap_or_default() {
        "JournalChange" if name == "reply" => (true, "/components/schemas/ReplyAnnounced".to_owned(), data.clone()),
        "JournalChange" => (name == "change", place, data.clone()),
        "ReplyAnnounced" => (name == "reply", place, data.clone()),
        _ => (true, place, json!({ "event": name, "data": data })),
    };
    if !is_named {
        return Err(format!("{path}: an event of {of} has the name {name}"));
    }
    contract.fits(&place, &told)
}

struct Contract {
    api: Value,
    registry: Registry<'static>,
    /// By the place of their schema in the document; compiled when they are first asked for.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let api = tavernkeep::routes::published().unwrap();
    let registry = Registry::new().add("urn:api", api.clone()).unwrap().prepare().unwrap();
    Contract { api, registry, validators: Mutex::default() }
});

impl Contract {
    /// What of a body is not as the request or response at a place of the document says.
    fn holds(&self, place: &str, body: &Value) -> Result<(), String> {
        let content = &self.api.pointer(place).ok_or_else(|| format!("{place} is not described"))?["content"];
        let media = content.as_object().into_iter().flatten().find(|(media, _)| media.contains("json"));
        let (media, _) = media.ok_or_else(|| format!("{place}: no body is described"))?;
        self.fits(&format!("{place}/content/{}/schema", media.replace('/', "~1")), body)
    }

    /// What of a value is not as the schema at a place of the document says.
    fn fits(&self, place: &str, value: &Value) -> Result<(), String> {
        let validator = self.validator(place);
        let said = |wrong: ValidationError<'_>| format!("{}: {:.300}", wrong.instance_path(), wrong.to_string());
        let wrong: Vec<_> = validator.iter_errors(value).take(5).map(said).collect();
        if wrong.is_empty() { Ok(()) } else { Err(format!("{place}: {wrong:#?}\n{:.2000}", value.to_string())) }
    }

    fn validator(&self, pointer: &str) -> Arc<Validator> {
        let mut known = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = known.entry(pointer.to_owned()).or_insert_with(|| {
            let fragment = pointer.replace('{', "%7B").replace('}', "%7D");
            let schema = json!({ "$ref": format!("urn:api#{fragment}") });
            Arc::new(jsonschema::options().with_registry(&self.registry).build(&schema).unwrap())
        });
        compiled.clone()
    }

    /// The pattern of the path, if a route has it: that with the fewest holes.
    fn pattern(&self, method: &str, path: &str) -> Option<&str> {
        let parts: Vec<_> = path.trim_end_matches('/').split('/').collect();
        let fits = |pattern: &str| {
            let own: Vec<_> = pattern.split('/').collect();
            own.len() == parts.len() && own.iter().zip(&parts).all(|(own, part)| own == part || own.starts_with('{'))
        };
        let paths = self.api["paths"].as_object().unwrap();
        let known = paths.iter().filter(|(pattern, item)| fits(pattern) && item.get(method).is_some());
        known.map(|(pattern, _)| pattern.as_str()).min_by_key(|pattern| pattern.matches('{').count())
    }
}
