//! What was paid for is written, also when the database goes away at the worst moment; and nothing is written twice.

mod endings;
mod mapped;
mod restart;
mod slugs;
mod texts;
mod words;
mod writes;

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{
    Client, Database, Server, World,
    cut::{Cutter, Moment},
    until,
};

/// A server whose wire to its database can be cut.
async fn cuttable() -> (Server, Cutter) {
    let cutter = Cutter::new().await;
    let db = cutter.database(&Database::create().await);
    (Server::on(db, &[]).await, cutter)
}

/// The contents of the campaign's history that hold `word`.
async fn told(world: &World<'_>, word: &str) -> usize {
    let list = world.get("/messages?limit=200").await.expect(200);
    list.items().iter().filter(|m| m["content"].as_str().unwrap().contains(word)).count()
}

/// Calls of models that the tenant was billed for.
async fn billed(tenant: &Client<'_>) -> u64 {
    let usage = tenant.get("/v1/usage").await.expect(200);
    usage.items().iter().map(|day| day["llm_calls"].as_u64().unwrap()).sum()
}

fn says(server: &Server, replies: impl IntoIterator<Item = Reply>) {
    server.model.set_script(Script::replies(replies));
}

fn remember(words: &str) -> Reply {
    Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": words }))
}

const MOMENTS: [Moment; 2] = [Moment::Before, Moment::After];

async fn turns(world: &World<'_>) -> Vec<Value> {
    world.get("/turns?limit=200").await.expect(200).items().clone()
}
