//! The main path once, end to end: an innkeeper answers a player, remembers her, is corrected, and it shows.

use rehearsal::{Reply, Script};
use serde_json::json;

use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn an_innkeeper_remembers_and_can_be_corrected() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([
        Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "Alice pays well." })),
        Reply::text("Thank you, Alice!"),
    ]));
    let turn = world.bob("player_alice", "I pay for my drink.").await.expect(200);
    assert_eq!(turn.body["narrative"], "Thank you, Alice!");
    assert_eq!(turn.body["tool_calls"][0]["status"], "succeeded");
    assert_eq!(
        world.memories("npcs/innkeeper_bob", "player_alice").await,
        ["Initial impression: Seems friendly.", "Alice pays well."]
    );

    let memory = turn.body["tool_calls"][0]["result"]["memory_id"].as_str().unwrap().to_owned();
    world.patch(&format!("/memories/{memory}"), json!({ "text": "Alice pays too well." })).await.expect(200);
    let prompt = world.prompt("innkeeper_bob", "player_alice", "Hello").await;
    assert_eq!(prompt["cache"], "miss");
    assert!(prompt["messages"].to_string().contains("Alice pays too well."));
}
