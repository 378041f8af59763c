//! Those whom only the game master knows of: no targets, not named, not told of.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{DOORS, Door, advance, brawling, log_of, participant, player, says, tenant, town};
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
    says(Door::Act, &alice, "player_alice", "I attack the night killer").await.expect(200);
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
    for _ in 0..5 {
        advance(&world, &id).await;
    }
    for (role, player, knows) in [("gm", Value::Null, true), ("player", json!("player_alice"), false)] {
        let body = json!({ "client_id": role, "role": role, "player_id": player });
        let session = world.post("/sessions", body).await.expect(201).id();
        let actor = json!({ "type": "gm" });
        let call = json!({ "arguments": {}, "session_id": session, "actor": actor });
        let told = world.post("/tools/get_encounter", call).await.expect(200);
        assert_eq!(told.text.contains("Night Killer"), knows, "{role}: {}", told.text);
        let combatants = told.body["result"]["combatants"].as_array().unwrap();
        assert_eq!(combatants.len(), if knows { 6 } else { 5 });
        let thug = combatants.iter().find(|c| c["token_id"] == "thug-1").unwrap();
        let seen = ["name", "initiative", "is_player", "is_current_turn", "token_id", "conditions"];
        let rest = thug.as_object().unwrap().keys().filter(|name| !seen.contains(&name.as_str())).count();
        assert_eq!(rest, if knows { 2 } else { 0 }, "hit points: {thug}");
        assert_eq!(told.body["result"]["turn"], if knows { 6 } else { 0 });
    }
}

/// A difficulty is told if a player named it. One that a model or the server chose is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_difficulty_that_nobody_told_is_not_told() {
    for door in super::all_doors().filter(|door| *door != Door::PlannedCheck) {
        let server = Server::start().await;
        let acme = tenant(&server, "acme").await;
        let world = town(&acme).await;
        brawling(&world).await;
        let alice = player(&acme, "player_alice").await;
        let done = says(door, &alice, "player_alice", "I sneak away").await.expect(200);
        let turn = world.get(&format!("/turns/{}", super::turn_id(&done.body))).await.expect(200).body;
        let log = log_of(&alice).await.join("\n");
        assert!(log.contains("Alice: Stealth Check"), "{door:?}: {log}");
        if door == Door::Check {
            assert!(done.text.contains("against 15") && log.contains("against 15"), "{}", done.text);
            assert_eq!(done.body["result"]["dc_or_ac"], "15");
            continue;
        }
        for text in [
            &done.text,
            &turn["tool_calls"].to_string(),
            &turn["narrative"].to_string(),
            &log.replace("y against T", ""),
        ] {
            for difficulty in ["\"dc\"", "dc_or_ac", "DC/AC", "against"] {
                assert!(!text.contains(difficulty), "{door:?}: {text}");
            }
        }
    }
}

/// A model that plans a check may make up its difficulty.
#[tokio::test(flavor = "multi_thread")]
async fn a_planned_check_tells_the_difficulty_that_the_player_named() {
    for (words, tells) in [("I make a stealth check against DC 15", true), ("I try to be stealthy", false)] {
        let server = Server::start().await;
        let acme = tenant(&server, "acme").await;
        let world = town(&acme).await;
        brawling(&world).await;
        let alice = player(&acme, "player_alice").await;
        let plan = json!({ "command": "check", "args": { "skill": "stealth", "dc": 15 }, "confidence": 0.9 });
        server.model.set_script(Script::replies([Reply::text(plan.to_string())]));
        let body = json!({ "player_id": "player_alice", "message": words });
        let done = alice.post(&world.path("/act"), body).await.expect(200);
        assert_eq!(done.body["outcome"], "executed", "{}", done.text);
        assert_eq!(done.text.contains("against 15"), tells, "{}", done.text);
        assert_eq!(done.text.contains("\"dc_or_ac\""), tells, "{}", done.text);
        assert!(tells || !done.text.contains("\"dc\""), "{}", done.text);
        assert_eq!(log_of(&alice).await.join("\n").contains("against 15"), tells);
    }
}

/// What a model makes of a player's words is told as the engine tells it to a player.
#[tokio::test(flavor = "multi_thread")]
async fn a_grapple_by_words_tells_no_enemys_strength() {
    for door in DOORS {
        let server = Server::start().await;
        let acme = tenant(&server, "acme").await;
        let world = town(&acme).await;
        brawling(&world).await;
        let alice = player(&acme, "player_alice").await;
        super::proposes(&server, door, "encounter_action", json!({ "action": "grapple", "target": "thug-1" }));
        let done = says(door, &alice, "player_alice", "I grapple thug 1").await.expect(200);
        let call = world.get(&format!("/turns/{}", super::turn_id(&done.body))).await.expect(200).body["tool_calls"][0]
            .clone();
        let rolls = call["result"]["participants"].as_array().unwrap();
        assert_eq!(rolls[0]["name"], "Alice", "{call}");
        let success = rolls[1]["success"].as_bool().unwrap();
        assert_eq!(rolls[1], json!({ "name": "Thug 1", "success": success }), "{call}");
        assert!(
            !done.text.contains("Athletics Check\",\"components\":\"STR +0 = +0\",\"creature\":\"thug-1"),
            "{}",
            done.text
        );
        for secret in ["dc_or_ac", "DC/AC", "\"notes\"", "\"reasons\""] {
            assert!(
                !done.text.contains(secret) && !call.to_string().contains(secret),
                "{door:?}: {secret} in {}",
                done.text
            );
        }
        if door == Door::Do {
            let narrator = server.model.requests().last().unwrap()["messages"].to_string();
            assert!(narrator.contains("CHECK: Athletics Check") && !narrator.contains("DC/AC"), "{narrator}");
        }
    }
}
