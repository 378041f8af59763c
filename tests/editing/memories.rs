//! Memories moved to others, and broadcasts as one thing.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Server, World};

async fn broadcast(world: &World<'_>, text: &str) -> String {
    let call = json!({
        "arguments": { "player_id": "player_alice", "memory_string": text },
        "actor": { "type": "owner", "id": "town_council_owner" },
    });
    let called = world.post("/tools/OWNER_memorize_dependables", call).await.expect(200);
    called.body["result"]["broadcast_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_moves_to_another_holder_or_player() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let body = json!({ "player_id": "player_alice", "text": "Owes me, canary." });
    let id = world.post("/npcs/innkeeper_bob/memories", body).await.expect(201).id();
    let said = async |npc: &str, player: &str| world.prompt(npc, player, "Hello").await.to_string().contains("canary");
    assert!(said("innkeeper_bob", "player_alice").await);
    let path = format!("/memories/{id}/move");
    let moved = world.post(&path, json!({ "holder_id": "harbour_ilse" })).await.expect(200).body;
    assert_eq!((&moved["holder"]["slug"], &moved["version"]), (&json!("harbour_ilse"), &json!(2)));
    assert!(!said("innkeeper_bob", "player_alice").await, "its former holder's prompt is made anew");
    assert!(said("harbour_ilse", "player_alice").await);
    let moved = world.post(&path, json!({ "player_id": "player_mallory" })).await.expect(200).body;
    assert_eq!((&moved["player_slug"], &moved["source"]), (&json!("player_mallory"), &json!("editor")));
    assert!(!said("harbour_ilse", "player_alice").await && said("harbour_ilse", "player_mallory").await);
    let both = json!({ "holder_id": "town_council_owner", "player_id": "player_alice" });
    let moved = world.post(&path, both).await.expect(200).body;
    assert_eq!(moved["holder"]["type"], "owner");

    let stale = tenant.request(reqwest::Method::POST, &world.path(&path)).header("if-match", "\"v1\"");
    tenant.send(stale.json(&json!({ "player_id": "player_alice" }))).await.problem(412, "precondition_failed");
    for (body, pointer) in [
        (json!({}), "/holder_id"),
        (json!({ "holder_id": "player_alice" }), "/holder_id"),
        (json!({ "holder_id": "nobody" }), "/holder_id"),
        (json!({ "player_id": "innkeeper_bob" }), "/player_id"),
    ] {
        let answer = world.post(&path, body).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcast_is_one_item_with_its_audience() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..4 {
        let npc = json!({ "slug": format!("guard_{n}"), "name": "Guard", "owner_ids": ["town_council_owner"] });
        world.post("/npcs", npc).await.expect(201);
    }
    let first = broadcast(&world, "An ally of the town.").await;
    let second = broadcast(&world, "Not to be trusted.").await;
    let told = world.get("/broadcasts?sort=-created_at").await.expect(200);
    let ids: Vec<&str> = told.items().iter().map(|b| b["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [second.as_str(), first.as_str()]);
    let item = &told.items()[1];
    assert_eq!(
        (&item["text"], &item["audience_total"], &item["edited"]),
        (&json!("An ally of the town."), &json!(5), &json!(false))
    );
    assert_eq!((&item["player_slug"], &item["audience"][0]["slug"]), (&json!("player_alice"), &json!("guard_0")));
    // Paged, searched, by player.
    let page = world.get("/broadcasts?limit=1").await.expect(200);
    let next = world.get(&format!("/broadcasts?limit=1&cursor={}", page.body["next_cursor"].as_str().unwrap())).await;
    assert_eq!((&page.items()[0]["id"], &next.expect(200).items()[0]["id"]), (&json!(first), &json!(second)));
    assert_eq!(world.get("/broadcasts?q=trusted").await.expect(200).items().len(), 1);
    assert_eq!(world.get("/broadcasts?player_id=player_mallory").await.expect(200).items().len(), 0);
    assert_eq!(world.get("/broadcasts?player_id=nobody").await.expect(200).items().len(), 0);
    // A copy that is corrected shows; one that is moved has left.
    let copy = item["audience"][0]["memory_id"].as_str().unwrap();
    world.patch(&format!("/memories/{copy}"), json!({ "text": "Hm." })).await.expect(200);
    let moved =
        world.post(&format!("/memories/{copy}/move"), json!({ "holder_id": "harbour_ilse" })).await.expect(200).body;
    assert_eq!((&moved["broadcast_id"], &moved["source"]), (&Value::Null, &json!("editor")));
    let other = item["audience"][1]["memory_id"].as_str().unwrap();
    world.patch(&format!("/memories/{other}"), json!({ "text": "Hm!" })).await.expect(200);
    let told = world.get("/broadcasts").await.expect(200);
    assert_eq!((&told.items()[0]["audience_total"], &told.items()[0]["edited"]), (&json!(4), &json!(true)));
    world.delete(&format!("/broadcasts/{first}")).await.expect(204);
    assert_eq!(world.get("/broadcasts").await.expect(200).items().len(), 1);
    assert_eq!(world.get(&format!("/memories/{copy}")).await.expect(200).body["text"], "Hm.");
    // One of a turn names its owner.
    server.model.set_script(Script::replies([
        Reply::tool("OWNER_memorize_dependables", json!({ "player_id": "player_alice", "memory_string": "Told." })),
        Reply::text("So be it."),
    ]));
    let turn = tenant.owner_turn(&world.slug, "town_council_owner", "player_alice", "I ask.").await.expect(200).id();
    let told = world.get(&format!("/broadcasts?turn_id={turn}")).await.expect(200);
    assert_eq!(
        (&told.items()[0]["owner_slug"], &told.items()[0]["turn_id"]),
        (&json!("town_council_owner"), &json!(turn))
    );
}
