//! An owner acts only inside its domain.

use serde_json::json;

use super::{COUNCIL, TOOLS, call, has, outcomes, prepare, rejected, turn};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_outside_is_rejected_and_costs_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    prepare(&world, 100.0).await;
    let calls = [
        ("send_message", json!({ "target_id": "player_mallory", "message": "Hello." })),
        ("send_message", json!({ "target_id": "player_alice", "message": "Hello.", "via_npc_id": "harbour_ilse" })),
        ("change_npc_behavior", json!({ "npc_id": "harbour_ilse", "behavior": "hostile" })),
        ("change_npc_stats", json!({ "npc_id": "harbour_ilse", "changes": { "speed": 10 } })),
        ("spawn_entity", json!({ "kind": "npc", "name": "Rat", "location": "harbour" })),
        ("grant_passive_skill", json!({ "player_id": "player_mallory", "name": "keen eyes" })),
        ("trigger_world_event", json!({ "title": "Flood", "description": "Water.", "location": "harbour" })),
        ("modify_resource", json!({ "name": "grain", "change": 5, "location": "harbour" })),
    ];
    let outside = turn(&world, &calls).await;
    assert_eq!(outcomes(&outside), vec![rejected("not_in_domain"); calls.len()], "{}", outside.text);
    assert_eq!(has(&world).await, 100.0);
    assert_eq!(world.get("/npcs/harbour_ilse").await.expect(200).body["disposition"], "neutral");
    // Over REST it is an outcome, too, and its key keeps it.
    let body = json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "arguments": calls[2].1 });
    let path = world.path("/tools/change_npc_behavior");
    let told = tenant.post_with_key(&path, "once", body.clone()).await.expect(200);
    assert_eq!((&told.body["status"], &told.body["error"]["code"]), (&json!("rejected"), &json!("not_in_domain")));
    assert!(told.body.get("result").is_none(), "{}", told.text);
    let again = tenant.post_with_key(&path, "once", body).await.expect(200);
    assert_eq!((again.header("idempotency-replayed"), &again.body), ("true", &told.body));
    assert_eq!(has(&world).await, 100.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_aspect_has_its_own_players_and_places() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    prepare(&world, 100.0).await;
    world
        .patch("", json!({ "settings": { "tool_prices": { "send_message": 0, "spawn_entity": 0 } } }))
        .await
        .expect(200);
    world.patch("/npcs/innkeeper_bob", json!({ "location": "The Gilded Gull" })).await.expect(200);
    world.patch("/characters/player_mallory", json!({ "faction": "night-watch" })).await.expect(200);
    for (aspect, subject, alice, mallory, square, gull) in [
        ("location", "town-square", true, false, true, false),
        ("race", "Human", true, false, true, true),
        ("profession", "THIEF", false, true, true, true),
        ("faction", "Night Watch", false, true, true, true),
    ] {
        world.patch(COUNCIL, json!({ "monitored_aspect": aspect, "associated_id": subject })).await.expect(200);
        let mut calls = Vec::new();
        for player in ["player_alice", "player_mallory"] {
            calls.push(("send_message", json!({ "target_id": player, "message": "Hello." })));
        }
        // The rat of the first round is in the square, and answers to the council.
        for place in ["town square", "the gilded gull", "nowhere"] {
            calls.push((
                "spawn_entity",
                json!({ "kind": "npc", "name": format!("Rat of {aspect}"), "location": place }),
            ));
        }
        let reached: Vec<_> =
            outcomes(&turn(&world, &calls).await).into_iter().map(|(status, _)| status == "succeeded").collect();
        assert_eq!(reached, [alice, mallory, square, gull, false], "{aspect}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_unknown_is_an_error_of_the_arguments() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    prepare(&world, 100.0).await;
    for (tool, given, pointer) in [
        ("send_message", json!({ "target_id": "nobody", "message": "x" }), "/target_id"),
        ("send_message", json!({ "target_id": "player_alice", "message": "x", "via_npc_id": "nobody" }), "/via_npc_id"),
        ("send_message", json!({ "target_id": "player_alice", "message": " " }), "/message"),
        ("send_message", json!({ "target_id": "innkeeper_bob", "message": "x" }), "/target_id"),
        ("change_npc_behavior", json!({ "npc_id": "nobody", "behavior": "x" }), "/npc_id"),
        ("change_npc_behavior", json!({ "npc_id": "innkeeper_bob", "behavior": "x".repeat(501) }), "/behavior"),
        (
            "change_npc_behavior",
            json!({ "npc_id": "innkeeper_bob", "behavior": "x", "player_id": "nobody" }),
            "/player_id",
        ),
        ("change_npc_stats", json!({ "npc_id": "innkeeper_bob", "changes": {} }), "/changes"),
        ("change_npc_stats", json!({ "npc_id": "innkeeper_bob", "changes": { "hp": 5 } }), "/changes/hp"),
        ("change_npc_stats", json!({ "npc_id": "innkeeper_bob", "changes": { "speed": -1 } }), "/changes/speed"),
        (
            "change_npc_stats",
            json!({ "npc_id": "innkeeper_bob", "changes": { "disposition": " " } }),
            "/changes/disposition",
        ),
        ("trigger_world_event", json!({ "title": " ", "description": "x" }), "/title"),
        ("trigger_world_event", json!({ "title": "x", "description": "x".repeat(1001) }), "/description"),
        (
            "spawn_entity",
            json!({ "kind": "npc", "name": "Rat", "location": "town_square", "quantity": 11 }),
            "/quantity",
        ),
        (
            "spawn_entity",
            json!({ "kind": "npc", "name": "Rat", "location": "town_square", "quantity": 0 }),
            "/quantity",
        ),
        ("spawn_entity", json!({ "kind": "house", "name": "Inn", "location": "town_square" }), "/kind"),
        ("modify_resource", json!({ "name": " ", "change": 1 }), "/name"),
        ("modify_resource", json!({ "name": "gold", "change": 1e12 }), "/change"),
        ("grant_passive_skill", json!({ "player_id": "player_alice", "name": "x", "description": "" }), "/description"),
    ] {
        let refused = call(&world, tool, given.clone()).await;
        assert_eq!(
            (&refused["status"], &refused["error"]["code"]),
            (&json!("failed"), &json!("validation_failed")),
            "{refused}"
        );
        let body = json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "arguments": given, "player_id": "player_alice" });
        let refused = world.post(&format!("/tools/{tool}"), body).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), [format!("/arguments{pointer}")], "{tool}");
    }
    assert_eq!(has(&world).await, 100.0);
    assert_eq!(world.get(COUNCIL).await.expect(200).body["available_tools"], json!(TOOLS));
}
