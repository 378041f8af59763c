//! What a fight leaves behind: nothing before the commit, everything once with it.

use serde_json::{Value, json};

use super::{act, begin, commit, duel, dungeon, end, hp, hurt};
use crate::support::{Server, counts};

#[tokio::test(flavor = "multi_thread")]
async fn a_character_changes_once_and_only_at_the_commit() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = begin(&world, duel()).await;
    hurt(&world, &id, "fenric", 5).await;
    assert_eq!(super::participant(&world, &id, "fenric").await["hp"], 23);
    assert_eq!(hp(&world, "fenric").await, 28, "a fight is a simulation");

    let ended = end(&world, &id).await;
    assert_eq!((&ended["outcome"], &ended["commit_required"]), (&json!("victory"), &json!(true)));
    let update = &ended["participant_updates"][0];
    assert_eq!(update["changes"]["hp"], json!({ "initial": 28, "final": 23, "delta": -5 }));
    assert_eq!((&update["is_ephemeral"], &update["changes"]["statistics"]["damage_taken"]), (&json!(false), &json!(5)));
    assert_eq!(ended["participant_updates"][1]["is_ephemeral"], true);

    let before = counts(&server).await;
    let shown = commit(&world, &id, json!({ "dry_run": true })).await;
    assert_eq!(shown["committed"][0]["changes"]["hp"], json!({ "initial": 28, "final": 23, "delta": -5 }));
    assert_eq!((&shown["dry_run"], &shown["committed"][0]["character_name"]), (&json!(true), &json!("Fenric")));
    assert_eq!((counts(&server).await, hp(&world, "fenric").await), (before, 28));

    let version = world.get("/characters/fenric").await.body["version"].as_i64().unwrap();
    let done = commit(&world, &id, json!({})).await;
    assert_eq!(done["committed"], shown["committed"]);
    assert_eq!(done["skipped"], json!([{ "participant_id": "orc", "reason": "ephemeral" }]));
    let after = world.get("/characters/fenric").await.body;
    assert_eq!((&after["hp"], after["version"].as_i64().unwrap()), (&json!(23), version + 1));

    // Whatever happens to the character later, a second commit changes nothing.
    world.patch("/characters/fenric", json!({ "hp": 3 })).await.expect(200);
    let again = commit(&world, &id, json!({})).await;
    assert_eq!(again["committed"], json!([]));
    assert_eq!(again["skipped"][0], json!({ "participant_id": "fenric", "reason": "already_committed" }));
    assert_eq!(hp(&world, "fenric").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_a_fight_can_change_is_committed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = begin(&world, duel()).await;
    for action in [
        json!({ "action": "damage", "target_id": "fenric", "amount": 9, "damage_type": "fire" }),
        json!({ "action": "heal", "target_id": "fenric", "amount": 2 }),
        json!({ "action": "temp_hp", "target_id": "fenric", "amount": 4 }),
        json!({ "action": "add_condition", "target_id": "fenric", "condition": "poisoned", "rounds": 5 }),
        json!({ "action": "use_spell_slot", "participant_id": "fenric", "level": 1 }),
        json!({ "action": "use_resource", "participant_id": "fenric", "resource": "Lay on Hands", "amount": 5 }),
    ] {
        act(&world, &id, action).await.expect(200);
    }
    for _ in 0..4 {
        act(&world, &id, json!({ "action": "advance_turn" })).await.expect(200);
    }
    let ended = end(&world, &id).await;
    let changes = &ended["participant_updates"][0]["changes"];
    assert_eq!(changes["spell_slots"], json!([{ "level": 1, "initial": 3, "final": 2, "expended": 1 }]));
    assert_eq!(changes["resources"], json!([{ "name": "Lay on Hands", "initial": 15, "final": 10, "delta": -5 }]));
    assert_eq!(changes["conditions"]["added"], json!(["poisoned"]));
    assert_eq!(changes["statistics"]["damage_taken"], 9);

    // Slots and conditions can be left out; the rest is written.
    let part =
        commit(&world, &id, json!({ "exclude_conditions": true, "exclude_spell_slots": true, "dry_run": true })).await;
    assert_eq!(part["committed"][0]["changes"]["conditions"]["added"], json!([]));
    commit(&world, &id, json!({})).await;
    let after = world.get("/characters/fenric").await.body;
    assert_eq!((&after["hp"], &after["temp_hp"]), (&json!(21), &json!(4)));
    assert_eq!(after["spell_slots"]["1"]["remaining"], 2);
    assert_eq!(after["resources"][0]["remaining"], 10);
    let poisoned = &after["conditions"][0];
    assert_eq!(
        (&poisoned["name"], &poisoned["rounds_remaining"]),
        (&json!("poisoned"), &json!(3)),
        "two of five rounds passed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_raises_each_version_by_one() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let both =
        json!({ "participants": [{ "character_id": "fenric" }, { "npc_id": "goblin" }, { "id": "rat", "hp": 1 }] });
    let versions = async || {
        let of = async |path: &str| world.get(path).await.expect(200).body["version"].as_i64().unwrap();
        (of("/characters/fenric").await, of("/npcs/goblin").await)
    };
    // Nothing happened, and something did.
    for hurts in [None, Some("fenric"), Some("goblin")] {
        let id = begin(&world, both.clone()).await;
        if let Some(who) = hurts {
            hurt(&world, &id, who, 2).await;
        }
        end(&world, &id).await;
        let before = versions().await;
        commit(&world, &id, json!({ "dry_run": true })).await;
        assert_eq!(versions().await, before);
        let only = commit(&world, &id, json!({ "character_ids": ["goblin"] })).await;
        assert_eq!(only["committed"].as_array().unwrap().len(), 1, "{only}");
        assert_eq!(versions().await, (before.0, before.1 + 1), "{hurts:?}");
        commit(&world, &id, json!({})).await;
        commit(&world, &id, json!({})).await;
        assert_eq!(versions().await, (before.0 + 1, before.1 + 1), "{hurts:?}");
    }
    assert_eq!(hp(&world, "fenric").await, 26);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lasts_until_a_rest_ends_with_one() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = begin(&world, duel()).await;
    let poison =
        json!({ "action": "add_condition", "target_id": "fenric", "condition": "poisoned", "duration": "until_rest" });
    act(&world, &id, poison).await.expect(200);
    end(&world, &id).await;
    commit(&world, &id, json!({})).await;
    let prone = json!({ "conditions": [{ "name": "poisoned", "until_rest": true }, { "name": "prone" }] });
    let conditions = async || world.get("/characters/fenric").await.body["conditions"].clone();
    let kept = conditions().await;
    assert_eq!((&kept[0]["name"], &kept[0]["until_rest"]), (&json!("poisoned"), &json!(true)));
    // Whoever lies there gets up.
    world.patch("/characters/fenric", prone).await.expect(200);
    world.post("/characters/fenric/rest", json!({ "type": "short" })).await.expect(200);
    assert_eq!(conditions().await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_character_edited_meanwhile_takes_the_difference() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = begin(&world, duel()).await;
    hurt(&world, &id, "fenric", 5).await;
    world.patch("/characters/fenric", json!({ "hp": 20, "conditions": [{ "name": "blinded" }] })).await.expect(200);
    // Reading the encounter changes nothing: it still has its own numbers.
    assert_eq!(super::participant(&world, &id, "fenric").await["hp"], 23);
    end(&world, &id).await;
    for body in [json!({ "dry_run": true }), json!({})] {
        let told = commit(&world, &id, body).await;
        assert_eq!(told["committed"][0]["merged"], true, "{told}");
        assert_eq!(told["committed"][0]["changes"]["hp"], json!({ "initial": 20, "final": 15, "delta": -5 }));
    }
    let after = world.get("/characters/fenric").await.body;
    assert_eq!((&after["hp"], &after["conditions"][0]["name"]), (&json!(15), &json!("blinded")));
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_may_be_selective() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    world.post("/characters", json!({ "slug": "mira", "name": "Mira", "max_hp": 20 })).await.expect(201);
    let mut body = duel();
    body["participants"].as_array_mut().unwrap().push(json!({ "id": "mira", "character_id": "mira" }));
    body["participants"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "id": "ghost", "character_id": "nobody_here", "hp": 9, "max_hp": 9 }));
    let begun = world.post("/encounters", body).await.expect(201).body;
    assert!(begun["warnings"][0].as_str().unwrap().contains("nobody_here"), "{begun}");
    let id = begun["encounter_id"].as_str().unwrap();
    for who in ["fenric", "mira", "ghost"] {
        hurt(&world, id, who, 3).await;
    }
    world.post(&format!("/encounters/{id}/commit"), json!({})).await.problem(409, "encounter_not_ended");
    end(&world, id).await;
    let first = commit(&world, id, json!({ "character_ids": ["mira", "stranger"] })).await;
    assert_eq!(first["committed"][0]["character_name"], "Mira");
    assert_eq!(first["errors"][0]["character_id"], "stranger");
    let reason = |told: &Value, who: &str| {
        told["skipped"].as_array().unwrap().iter().find(|s| s["participant_id"] == who).unwrap()["reason"].clone()
    };
    assert_eq!((reason(&first, "fenric"), reason(&first, "ghost")), (json!("excluded"), json!("ephemeral")));
    assert_eq!((hp(&world, "mira").await, hp(&world, "fenric").await), (17, 28));
    // Who is gone is skipped; the others are written.
    world.delete("/characters/fenric").await.expect(204);
    let second = commit(&world, id, json!({})).await;
    assert_eq!((reason(&second, "mira"), reason(&second, "fenric")), (json!("already_committed"), json!("not_found")));
    assert_eq!(second["committed"], json!([]));
    world
        .post(&format!("/encounters/{id}/end"), json!({ "outcome": "other" }))
        .await
        .problem(409, "encounter_already_ended");
    act(&world, id, json!({ "action": "advance_turn" })).await.problem(409, "encounter_already_ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_encounter_can_still_be_committed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let (kept, hidden) = (begin(&world, duel()).await, begin(&world, duel()).await);
    assert_eq!(world.get("/encounters").await.items().len(), 2);
    hurt(&world, &hidden, "fenric", 4).await;
    end(&world, &kept).await;
    let gone = json!({ "outcome": "fled", "preserve_log": false, "generate_summary": false });
    let ended = world.post(&format!("/encounters/{hidden}/end"), gone).await.expect(200).body;
    assert_eq!(ended["summary"], Value::Null);
    assert!(world.get("/encounters").await.items().is_empty(), "what has ended is listed when it is asked for");
    let all = world.get("/encounters?include_ended=true").await;
    assert_eq!((all.items().len(), &all.items()[0]["outcome"]), (1, &json!("victory")));
    world.get(&format!("/encounters/{hidden}")).await.problem(404, "not_found");
    assert_eq!(commit(&world, &hidden, json!({})).await["committed"][0]["changes"]["hp"]["final"], 24);
    assert_eq!(hp(&world, "fenric").await, 24);
}
