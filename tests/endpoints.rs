//! What endpoints really send. The bytes are like those of public reports about programs that talk to many endpoints.

mod endings;
mod providers;
mod reading;
mod sending;
mod thoughts;

use serde_json::{Value, json};

use crate::support::{
    Server, World,
    scripted::{Act, Scripted},
    sse::Events,
};

/// A server whose model is an endpoint with a script.
async fn asking(endpoint: &Scripted) -> Server {
    let env = [("LLM_API_ENDPOINT", &*endpoint.url), ("LLM_MODEL_NAME", "m"), ("LLM_RETRIES", "1")];
    Server::start_with(&env).await
}

/// The head of an answer that ends with its connection.
fn head(content_type: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n")
}

/// A chunk of a stream.
fn chunk(delta: Value, finish_reason: Value) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
    event(json!({ "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice] }))
}

fn event(data: Value) -> String {
    format!("data: {data}\n\n")
}

fn says(text: &str) -> String {
    chunk(json!({ "content": text }), Value::Null)
}

/// A whole reply.
fn whole(message: Value, finish_reason: &str) -> Value {
    let choice = json!({ "index": 0, "message": message, "finish_reason": finish_reason });
    json!({ "id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
        "usage": { "prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55 } })
}

fn stream(chunks: &[String]) -> String {
    head("text/event-stream") + &chunks.concat()
}

const DONE: &str = "data: [DONE]\n\n";

/// What Bob answers in a stream: what is told, and the narrative or the turn's error.
async fn told(world: &World<'_>) -> (String, Result<String, String>) {
    let body = json!({ "player_id": "player_alice", "action": "Hello.", "stream": true });
    let asked = world.client.request(reqwest::Method::POST, &world.path("/npcs/innkeeper_bob/turns")).json(&body);
    let events = Events::open(asked, None).await.rest().await;
    let told = events
        .iter()
        .filter(|event| event.name == "text.delta")
        .map(|event| event.data["text"].as_str().unwrap())
        .collect();
    let last = events.last().unwrap();
    let end = match last.name.as_str() {
        "turn.completed" => Ok(last.data["turn"]["narrative"].as_str().unwrap().to_owned()),
        "turn.failed" => Err(last.data["error"]["code"].as_str().unwrap().to_owned()),
        other => panic!("{other} is no end"),
    };
    (told, end)
}

/// What Bob answers in a stream, of which everything that is told is kept: the narrative, or the turn's error.
async fn heard(world: &World<'_>) -> Result<String, String> {
    let (told, end) = told(world).await;
    if let Ok(narrative) = &end {
        assert_eq!(&told, narrative, "what was heard adds up to what is kept");
    }
    end
}

/// The same without a stream.
async fn answered(world: &World<'_>) -> Result<String, String> {
    let answer = world.bob("player_alice", "Hello.").await;
    match answer.status {
        200 => Ok(answer.body["narrative"].as_str().unwrap().to_owned()),
        _ => Err(answer.body["code"].as_str().unwrap().to_owned()),
    }
}

/// What a model wants to remember, as the JSON text of a call's arguments.
fn memory(text: &str) -> String {
    json!({ "player_id": "player_alice", "memory_string": text }).to_string()
}

/// An answer with a whole reply.
fn replies(message: Value, finish_reason: &str) -> Act {
    Act::Raw((head("application/json") + &whole(message, finish_reason).to_string()).into())
}

/// An answer that refuses the request.
fn refuses(status: u16, body: &Value) -> String {
    format!("HTTP/1.1 {status} No\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{body}")
}
