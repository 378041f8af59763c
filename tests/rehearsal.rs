//! The rehearsal model over real HTTP: what it answers by itself, what a script makes it do, and what its prefix cache
//! reports. Nothing here may need the network or another crate of ours.

mod faults;
mod persona;
mod provider;
mod scripted;

use std::error::Error;

use ::rehearsal::{Options, Rehearsal, Script, start};
use reqwest::{Client, Response};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn Error>>;

async fn model(script: Script) -> std::io::Result<Rehearsal> {
    start(Options { script, record_requests_max: 4, ..Options::default() }).await
}

async fn post(model: &Rehearsal, body: &Value) -> reqwest::Result<Response> {
    let url = format!("{}/chat/completions", model.base_url());
    Client::new().post(url).json(body).send().await
}

async fn ask(model: &Rehearsal, body: &Value) -> reqwest::Result<Value> {
    post(model, body).await?.error_for_status()?.json().await
}

fn turn(system: &str, action: &str) -> Value {
    let user = format!("<player_action player=\"player_alice\" name=\"Alice\">{action}</player_action>");
    json!({"model": "m", "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]})
}

fn with_tools(mut body: Value, names: &[&str]) -> Value {
    let tool = |name: &&str| {
        json!({"type": "function", "function": {"name": name, "description": "d", "parameters": {
            "type": "object", "required": ["skill", "dc", "note"], "properties": {
                "skill": {"type": "string", "enum": ["athletics", "stealth"]},
                "dc": {"type": "integer", "minimum": 5}, "note": {"type": "string", "maxLength": 12}},
        }}})
    };
    body["tools"] = names.iter().map(tool).collect();
    body
}

fn text(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_default()
}

fn call(answer: &Value) -> (&str, Value) {
    let function = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
    let arguments = function["arguments"].as_str().unwrap_or_default();
    (function["name"].as_str().unwrap_or_default(), serde_json::from_str(arguments).unwrap_or_default())
}

fn events(body: &str) -> Vec<Value> {
    let lines = body.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    lines.map(|data| serde_json::from_str(data).unwrap_or(json!(data))).collect()
}

fn joined(events: &[Value], pointer: &str) -> String {
    events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
}
