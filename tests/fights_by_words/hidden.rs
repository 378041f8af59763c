//! Those whom only the game master knows of: no targets, not named, not told of.

use serde_json::{Value, json};

use super::{DOORS, advance, brawling, log_of, participant, player, says, tenant, town};
use crate::support::{Server, World};

async fn acts(world: &World<'_>, id: &str, action: Value) -> Value {
    world.post(&format!("/encounters/{id}/actions"), action).await.expect(200).body
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hidden_are_seen_by_game_masters_alone() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = brawling(&world).await;
    let alice = player(&acme, "player_alice").await;
    let path = world.path(&format!("/encounters/{id}"));
    let full = acme.get(&path).await.expect(200).body;
    assert_eq!((&full["hidden"], &full["participant_count"]), (&json!(["zz_killer"]), &json!(6)));
    for door in DOORS {
        let answer = says(door, &alice, "player_alice", "I attack the night killer").await.expect(200);
        assert!(!answer.text.contains("Killer") && !answer.text.contains("zz_"), "{door:?}: {}", answer.text);
    }
    let asked = server.model.requests().last().unwrap()["messages"].to_string();
    assert!(asked.contains("thug-1") && !asked.contains("Killer"), "{asked}");
    let attack = json!({ "action": "attack", "target_id": "zz_killer", "weapon": "Longsword" });
    alice.post(&format!("{path}/actions"), attack).await.problem(422, "validation_failed");

    // It has the turn.
    for _ in 0..5 {
        advance(&world, &id).await;
    }
    let seen = alice.get(&path).await.expect(200);
    assert_eq!((&seen.body["current_participant_id"], &seen.body["participant_count"]), (&Value::Null, &json!(5)));
    let listed = alice.get(&world.path("/encounters")).await.expect(200);
    for door in DOORS {
        let early = says(door, &alice, "player_alice", "I end my turn").await;
        super::refused(door, &early, "not_your_turn", "It is somebody else's turn.");
    }
    let strike = json!({ "action": "attack", "target_id": "alice", "weapon": "Club", "dice": [19, 3] });
    let struck = acts(&world, &id, strike).await;
    assert_eq!(struck["outcomes"][0]["success"], true, "{struck}");
    let told = log_of(&alice).await;
    let for_master = log_of(&acme).await;
    for text in [seen.text, listed.text, told.join("\n")] {
        assert!(!text.contains("Killer") && !text.contains("zz_"), "{text}");
    }
    assert!(for_master.iter().any(|m| m.contains("Night Killer attacks Alice with Club")), "{for_master:#?}");
    assert!(told.iter().any(|m| m.contains("Alice takes 4 damage")), "{told:#?}");

    // Revealed, it is as others are.
    acts(&world, &id, json!({ "action": "reveal", "target_id": "zz_killer" })).await;
    let told = log_of(&alice).await;
    assert!(told.iter().any(|m| m == "Night Killer comes into view."), "{told:#?}");
    assert!(alice.get(&path).await.expect(200).text.contains("Night Killer"));
    advance(&world, &id).await;
    says(super::Door::Act, &alice, "player_alice", "I attack the night killer").await.expect(200);
    assert_eq!(participant(&world, &id, "alice").await["statistics"]["attacks_made"], 1);
    // Only a game master hides and reveals.
    for action in ["reveal", "conceal"] {
        let body = json!({ "action": action, "target_id": "dog" });
        alice.post(&format!("{path}/actions"), body).await.problem(403, "forbidden");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sessions_player_is_not_told_of_the_hidden() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = brawling(&world).await;
    for (role, player, knows) in [("gm", Value::Null, true), ("player", json!("player_alice"), false)] {
        let body = json!({ "client_id": role, "role": role, "player_id": player });
        let session = world.post("/sessions", body).await.expect(201).id();
        let actor = json!({ "type": "gm" });
        let call = json!({ "arguments": {}, "session_id": session, "actor": actor });
        let told = world.post("/tools/get_encounter", call).await.expect(200);
        assert_eq!(told.text.contains("Night Killer"), knows, "{role}: {}", told.text);
        assert!(told.text.contains("Thug 1"));
    }
    let _ = id;
}
