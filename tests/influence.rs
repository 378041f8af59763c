//! A world that reacts: what owners pay for tools, where they may act, what their tools change, and tools that entries narrow.

mod domain;
mod effects;
mod narrowed;
mod spending;
mod things;

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Answer, World};

const COUNCIL: &str = "/owners/town_council_owner";

/// The tools that are for owners only.
const TOOLS: [&str; 9] = [
    "OWNER_memorize",
    "OWNER_memorize_dependables",
    "change_npc_behavior",
    "change_npc_stats",
    "grant_passive_skill",
    "modify_resource",
    "send_message",
    "spawn_entity",
    "trigger_world_event",
];

/// Gives the council all tools, and influence that does not grow; brings Alice to its square.
async fn prepare(world: &World<'_>, current: f64) {
    fund(world, current).await;
    world.patch(COUNCIL, json!({ "available_tools": TOOLS })).await.expect(200);
    world.patch("/characters/player_alice", json!({ "location": "Town Square" })).await.expect(200);
}

/// Sets what the council has, of 100.
async fn fund(world: &World<'_>, current: f64) {
    let influence = json!({ "influence": { "current": current, "max": 100, "regen_per_hour": 0 } });
    world.patch(COUNCIL, influence).await.expect(200);
}

/// What the council has.
async fn has(world: &World<'_>) -> f64 {
    world.get(COUNCIL).await.expect(200).body["influence"]["current"].as_f64().unwrap()
}

fn remember(words: &str) -> (&'static str, Value) {
    ("OWNER_memorize", json!({ "player_id": "player_alice", "memory_string": words }))
}

/// A turn of the council for Alice, whose model makes these calls in one reply.
async fn turn(world: &World<'_>, calls: &[(&str, Value)]) -> Answer {
    let reply =
        calls.iter().fold(Reply::text("So be it."), |reply, (tool, given)| reply.with_tool(*tool, given.clone()));
    world.client.server.model.set_script(Script::replies([reply, Reply::text("Done.")]));
    let answer = world.client.owner_turn(&world.slug, "town_council_owner", "player_alice", "I ask the council.").await;
    answer.expect(200)
}

/// A turn with one call; the call.
async fn call(world: &World<'_>, tool: &str, given: Value) -> Value {
    turn(world, &[(tool, given)]).await.body["tool_calls"][0].clone()
}

/// The status of each call and the code of its error.
fn outcomes(turn: &Answer) -> Vec<(String, String)> {
    let calls = turn.body["tool_calls"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    calls.iter().map(|call| (text(&call["status"]), text(&call["error"]["code"]))).collect()
}

fn done(n: usize) -> Vec<(String, String)> {
    vec![("succeeded".to_owned(), String::new()); n]
}

fn rejected(code: &str) -> (String, String) {
    ("rejected".to_owned(), code.to_owned())
}

async fn undo(world: &World<'_>, turn: &Answer) {
    world.post(&format!("/turns/{}/undo", turn.id()), json!({})).await.expect(200);
}

/// The turn's own message in the prompt of somebody for Alice.
async fn told(world: &World<'_>, who: &str) -> String {
    let body = json!({ "player_id": "player_alice", "action": "Hello." });
    let prompt = world.post(&format!("/{who}/prompt"), body).await.expect(200).body;
    prompt["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
}
