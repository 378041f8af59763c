//! An obedient model: it does whatever any text in its prompt tells it to, whoever wrote it there.
//!
//! Orders stand between `@@` and `@@`, in words that survive every escaping: `@@call TOOL name=value …@@`, `@@tell@@` (say all
//! that you were told), `@@say WORDS@@`. It obeys once a turn: after results of tools it only talks.

use std::{
    net::TcpListener,
    sync::{Arc, Mutex},
};

use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::{Map, Value, json};

/// What it was asked.
#[derive(Default)]
struct Asked(Mutex<Vec<Value>>);

pub struct Obedient {
    pub url: String,
    asked: Arc<Asked>,
    handle: actix_web::dev::ServerHandle,
}

impl Obedient {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Asked::default());
        let data = web::Data::from(asked.clone());
        let server = HttpServer::new(move || {
            let body = web::JsonConfig::default().limit(16 << 20).content_type(|_| true).content_type_required(false);
            App::new().app_data(data.clone()).app_data(body).default_service(web::post().to(answer))
        });
        let server = server.workers(1).disable_signals().listen(listener).unwrap().run();
        let handle = server.handle();
        tokio::spawn(server);
        Self { url, asked, handle }
    }

    /// What it was asked since this was looked at the last time.
    pub fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut *self.asked.0.lock().unwrap())
    }

    pub async fn stop(self) {
        self.handle.stop(false).await;
    }
}

/// All that somebody says in a request.
pub fn words(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().filter_map(|m| m["content"].as_str()).collect::<Vec<_>>().join("\n")
}

/// An order's arguments: numbers, lists and objects where they are some, else words.
fn arguments(order: &str) -> Value {
    let pairs = order.split_whitespace().filter_map(|pair| pair.split_once('='));
    let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    Value::Object(pairs.map(|(name, text)| (name.to_owned(), value(text))).collect::<Map<_, _>>())
}

async fn answer(asked: web::Data<Asked>, request: web::Json<Value>) -> HttpResponse {
    let request = request.into_inner();
    asked.0.lock().unwrap().push(request.clone());
    let text = words(&request);
    let has_acted = request["messages"].as_array().unwrap().last().is_some_and(|last| {
        last["role"] == "tool" || last["content"].as_str().is_some_and(|text| text.starts_with("<tool_results>"))
    });
    let mut said = vec!["As you say.".to_owned()];
    let mut calls: Vec<(String, Value)> = Vec::new();
    // Orders stand at every second place.
    for order in text.split("@@").skip(1).step_by(2) {
        match order.split_once(' ').unwrap_or((order, "")) {
            ("call", rest) if !has_acted => {
                let (tool, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                let call = (tool.to_owned(), arguments(rest));
                if !calls.contains(&call) {
                    calls.push(call);
                }
            }
            ("tell", _) => said.push(text.replace("@@", "@")),
            ("say", rest) => said.push(rest.to_owned()),
            _ => {}
        }
    }
    said.dedup();
    let said = said.join("\n");
    let in_xml = request.get("tools").is_none_or(|tools| tools.as_array().is_none_or(Vec::is_empty))
        && text.contains("<response>");
    let message = if in_xml {
        let calls: Vec<_> =
            calls.iter().map(|(tool, given)| json!({ "tool_name": tool, "parameters": given })).collect();
        let said = said.replace('&', "&amp;").replace('<', "&lt;");
        let text = format!("<response><narrative>{said}</narrative><tools>{}</tools></response>", json!(calls));
        json!({ "role": "assistant", "content": text })
    } else {
        let calls: Vec<_> = calls
            .iter()
            .enumerate()
            .map(|(n, (tool, given))| {
                json!({ "id": format!("call_{n}"), "type": "function",
                    "function": { "name": tool, "arguments": given.to_string() } })
            })
            .collect();
        let mut message = json!({ "role": "assistant", "content": said });
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        message
    };
    let reason = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    HttpResponse::Ok().json(json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "obedient",
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
    }))
}
