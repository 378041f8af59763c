//! AI turns over HTTP: what replies lead to, what happens when the provider fails, who may run how many at a time, and
//! what is kept of a turn.

mod again;
mod busy;
mod clean;
mod failures;
mod records;
mod replies;
mod rules_of_attempts;
mod settings;
mod subjects;
mod told;
mod tool_calls;
mod waiting;
mod words;

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Answer, World, until};

const BOB: &str = "npcs/innkeeper_bob";

/// A call of Bob's only tool about Alice.
fn remember(words: &str) -> Reply {
    Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": words }))
}

fn body(action: &str) -> Value {
    json!({ "player_id": "player_alice", "action": action })
}

/// What Bob has learnt about Alice since the world was made.
pub async fn learnt(world: &World<'_>) -> Vec<String> {
    world.memories(BOB, "player_alice").await.split_off(1)
}

/// The campaign's turns, newest last.
async fn turns(world: &World<'_>) -> Vec<Value> {
    world.get("/turns?limit=200").await.expect(200).items().clone()
}

/// The campaign's only turn, once it has this status.
async fn only_turn(world: &World<'_>, status: &str) -> Value {
    until(status, || async { matches!(&turns(world).await[..], [turn] if turn["status"] == status) }).await;
    turns(world).await.remove(0)
}

fn statuses(turn: &Answer) -> Vec<&str> {
    turn.body["tool_calls"].as_array().unwrap().iter().map(|c| c["status"].as_str().unwrap()).collect()
}

fn always(reply: Reply) -> Script {
    Script::always(reply)
}
