//! A memory that is gone: no prompt has it, no search and no tool finds it, neither on the server that knows it already nor on another.

use rehearsal::{Reply, Script};
use serde_json::json;

use super::{
    BOB, HORSE, many, noted,
    prompt::{innkeeper, look, section},
    search::found,
    tool::{grant, recalled},
};
use crate::support::{Server, World, until};

const MALLORY: &str = "Mallory asked for a grey horse.";

/// Checks whether Bob has a memory of Alice before him, when he is asked about it.
async fn assert_remembered(worlds: [&World<'_>; 2], question: &str, text: &str, is_there: bool) {
    for world in worlds {
        let prompt = look(world, question).await;
        let everywhere = [section(&prompt, "memories"), section(&prompt, "recalled")].concat();
        assert_eq!(everywhere.contains(text), is_there, "{text}: {everywhere}");
        assert_eq!(prompt["messages"].to_string().contains(text), is_there, "{text}");
        let pair = "&holder_id=innkeeper_bob&player_id=player_alice";
        for place in [pair, "&holder_id=innkeeper_bob", "&player_id=player_alice", ""] {
            let found = found(world, question, place).await;
            assert_eq!(found.iter().any(|found| found.contains(text)), is_there, "{place}: {found:?}");
        }
        let found = recalled(world, json!({ "query": question }), json!({ "player_id": "player_alice" })).await;
        assert_eq!(found.iter().any(|found| found.contains(text)), is_there, "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_undone_changed_moved_or_deleted_is_gone_everywhere() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    innkeeper(&server, &world).await;
    grant(&world).await;
    let replica = Server::on(server.db.clone(), &[]).await;
    let there = tenant.at(&replica);
    let elsewhere = World { client: &there, slug: world.slug.clone() };
    let check =
        |text, is_there| assert_remembered([&world, &elsewhere], "Where did I hide the emerald?", text, is_there);
    // A memory of a turn, which is undone.
    let memory = json!({ "player_id": "player_alice", "memory_string": "Alice hid an emerald in the well." });
    server.model.set_script(Script::replies([Reply::tool("NPC_memorize", memory), Reply::text("I will remember.")]));
    let turn = world.bob("player_alice", "Keep my secret.").await.expect(200).id();
    many(&server, &world, BOB, 30, "Alice asked for the way, # times.").await;
    check("an emerald in the well", true).await;
    world.post(&format!("/turns/{turn}/undo"), json!({})).await.expect(200);
    check("an emerald in the well", false).await;
    // An edit, another player, a deletion.
    let emerald = noted(&world, BOB, "player_alice", "Alice hid an emerald in the barn.").await;
    many(&server, &world, BOB, 30, "Alice asked for the time, # times.").await;
    check("emerald in the barn", true).await;
    let path = format!("/memories/{emerald}");
    world.patch(&path, json!({ "text": "Alice hid an emerald in the attic.", "pinned": false })).await.expect(200);
    check("emerald in the barn", false).await;
    check("emerald in the attic", true).await;
    world.post(&format!("{path}/move"), json!({ "player_id": "player_mallory" })).await.expect(200);
    for world in [&world, &elsewhere] {
        assert!(!look(world, "Where did I hide the emerald?").await.to_string().contains("emerald in the attic"));
        let of_alice = json!({ "player_id": "player_alice" });
        let of_pair = found(world, "emerald", "&holder_id=innkeeper_bob&player_id=player_alice").await;
        let by_tool = recalled(world, json!({ "query": "Where is the emerald?" }), of_alice).await;
        assert!(![of_pair, by_tool].concat().iter().any(|found| found.contains("emerald")));
    }
    world.post(&format!("{path}/move"), json!({ "player_id": "player_alice" })).await.expect(200);
    check("emerald in the attic", true).await;
    // A pinned memory always stands in the base.
    world.patch(&path, json!({ "pinned": true })).await.expect(200);
    for world in [&world, &elsewhere] {
        assert!(section(&look(world, "Hello.").await, "memories").contains("emerald in the attic"));
    }
    world.delete(&path).await.expect(204);
    check("emerald in the attic", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_erased_is_in_nobodys_memory() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    innkeeper(&server, &world).await;
    grant(&world).await;
    noted(&world, BOB, "player_mallory", MALLORY).await;
    let replica = Server::on(server.db.clone(), &[]).await;
    let there = tenant.at(&replica);
    let elsewhere = World { client: &there, slug: world.slug.clone() };
    // Both servers know what Bob remembers.
    for (memory, question, _) in HORSE {
        assert_remembered([&world, &elsewhere], question, memory, true).await;
        for world in [&world, &elsewhere] {
            let found = recalled(world, json!({ "query": question, "limit": 20 }), json!({})).await;
            assert!(found.iter().any(|found| found == memory), "{found:?}");
        }
    }
    let answer = world.delete("/characters/player_alice?erase=true").await;
    if answer.status == 202 {
        let path = answer.header("location");
        until("the end of the erasure", || async { tenant.get(path).await.expect(200).body["status"] == "done" }).await;
    }
    for (_, question, _) in HORSE {
        for world in [&world, &elsewhere] {
            let hello = json!({ "player_id": "player_alice", "action": question });
            world.post("/npcs/innkeeper_bob/prompt", hello).await.problem(422, "validation_failed");
            let query = format!("{question} A horse?");
            for place in ["&holder_id=innkeeper_bob", ""] {
                assert_eq!(found(world, &query, place).await, [MALLORY], "{place}");
            }
            let found = recalled(world, json!({ "query": query, "limit": 20 }), json!({})).await;
            assert_eq!(found, [MALLORY]);
        }
    }
}
