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
        ("send_message", json!({ "target_id": "harbour_ilse", "message": "Hello." })),
        ("send_message", json!({ "target_id": "player_alice", "message": "Hello.", "via_npc_id": "harbour_ilse" })),
        ("change_npc_behavior", json!({ "npc_id": "harbour_ilse", "behavior_type": "hostile" })),
        ("change_npc_stats", json!({ "npc_id": "harbour_ilse", "stat_changes": { "speed": 10 } })),
        ("spawn_entity", json!({ "entity_type": "Rat", "location": "harbour" })),
        ("grant_passive_skill", json!({ "player_id": "player_mallory", "skill_id": "keen eyes" })),
    ];
    let outside = turn(&world, &calls).await;
    assert_eq!(outcomes(&outside), vec![rejected("outside_domain"); calls.len()], "{}", outside.text);
    assert_eq!(has(&world).await, 100.0);
    assert_eq!(world.get("/npcs/harbour_ilse").await.expect(200).body["disposition"], "neutral");
    let body = json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "arguments": calls[3].1 });
    world.post("/tools/change_npc_behavior", body).await.problem(403, "outside_domain");
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
    for (aspect, subject, alice, mallory, square, gull) in [
        ("location", "town-square", true, false, true, false),
        ("race", "Human", true, false, true, true),
        ("profession", "THIEF", false, true, true, true),
        ("faction", "watch", false, false, true, true),
    ] {
        world.patch(COUNCIL, json!({ "monitored_aspect": aspect, "associated_id": subject })).await.expect(200);
        let mut calls = Vec::new();
        for player in ["player_alice", "player_mallory"] {
            calls.push(("send_message", json!({ "target_id": player, "message": "Hello." })));
        }
        // The rat of the first round is in the square, and answers to the council.
        for place in ["town square", "the gilded gull", "nowhere"] {
            calls.push(("spawn_entity", json!({ "entity_type": format!("Rat of {aspect}"), "location": place })));
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
        ("change_npc_behavior", json!({ "npc_id": "nobody", "behavior_type": "x" }), "/npc_id"),
        (
            "change_npc_behavior",
            json!({ "npc_id": "innkeeper_bob", "behavior_type": "x", "player_id": "player_alice" }),
            "/memory_entry",
        ),
        ("change_npc_stats", json!({ "npc_id": "innkeeper_bob", "stat_changes": {} }), "/stat_changes"),
        ("change_npc_stats", json!({ "npc_id": "innkeeper_bob", "stat_changes": { "hp": 5 } }), "/stat_changes/hp"),
        (
            "change_npc_stats",
            json!({ "npc_id": "innkeeper_bob", "stat_changes": { "strength": 31 } }),
            "/stat_changes/strength",
        ),
        ("spawn_entity", json!({ "entity_type": "Rat", "location": "town_square", "quantity": 11 }), "/quantity"),
        ("spawn_entity", json!({ "entity_type": "Rat", "location": "town_square", "quantity": 0 }), "/quantity"),
        ("modify_resource", json!({ "resource_id": "gold", "change_amount": 1 }), "/resource_id"),
        (
            "grant_passive_skill",
            json!({ "player_id": "player_alice", "skill_id": "x", "initial_percentage": 101 }),
            "/initial_percentage",
        ),
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
