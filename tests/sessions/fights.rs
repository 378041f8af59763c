//! The server's own fights, as a session's AI is told of them.

use serde_json::{Value, json};

use super::{Session, fight, no_changes};
use crate::support::{Server, World};

async fn ambush(world: &World<'_>) -> String {
    let body = json!({ "name": "Ambush", "participants": [
        { "id": "alice", "character_id": "player_alice", "initiative": 20 },
        { "id": "hound", "name": "Hound", "hp": 9, "max_hp": 9, "initiative": 12 },
        { "id": "orc", "name": "Orc", "hp": 15, "max_hp": 15, "armor_class": 13, "is_enemy": true, "initiative": 10 },
    ] });
    world.post("/encounters", body).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned()
}

async fn act(world: &World<'_>, id: &str, action: Value) {
    world.post(&format!("/encounters/{id}/actions"), action).await.expect(200);
}

async fn hurt(world: &World<'_>, id: &str, target: &str, amount: i64) {
    act(world, id, json!({ "action": "damage", "target_id": target, "amount": amount })).await;
}

fn changes(delta: &Value) -> Value {
    let mut list = delta["CombatantChanged"].as_array().cloned().unwrap_or_default();
    list.sort_by_key(|c| c["actor_id"].to_string());
    json!(list)
}

fn change(actor: &str, hp: i64, effects: &[&str]) -> Value {
    json!({ "actor_id": actor, "hp_change": hp, "new_status_effects": effects })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_fight_does_is_told_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    let gm = Session::open(&world, "vtt").await;
    let player =
        Session::with(&world, json!({ "client_id": "p", "role": "player", "player_id": "player_mallory" })).await;
    gm.turn().await;
    player.turn().await;
    let id = ambush(&world).await;
    let started = json!({ "has_changes": true, "EncounterStarted": { "id": id, "name": "Ambush" } });
    assert_eq!(gm.delta().await["EncounterStarted"], started["EncounterStarted"]);
    gm.turn().await;

    // Blows are summed; the last one is no more than what was left.
    hurt(&world, &id, "alice", 10).await;
    act(&world, &id, json!({ "action": "heal", "target_id": "alice", "amount": 4 })).await;
    hurt(&world, &id, "orc", 6).await;
    hurt(&world, &id, "orc", 99).await;
    hurt(&world, &id, "hound", 2).await;
    act(&world, &id, json!({ "action": "add_condition", "target_id": "alice", "condition": "poisoned" })).await;
    act(&world, &id, json!({ "action": "advance_turn" })).await;
    // An edit is no action.
    world.patch(&format!("/encounters/{id}"), json!({ "name": "The ambush" })).await.expect(200);
    let told = gm.delta().await;
    assert_eq!(told["TurnAdvanced"], true);
    let orc = changes(&told)[2]["new_status_effects"].clone();
    let names: Vec<&str> = orc.as_array().unwrap().iter().map(|e| e.as_str().unwrap()).collect();
    let mine = change(&alice, -6, &["poisoned"]);
    let mut all = vec![mine.clone(), change("hound", -2, &[]), change("orc", -15, &names)];
    all.sort_by_key(|c| c["actor_id"].to_string());
    assert_eq!(changes(&told), json!(all));
    // A player learns what its friends suffer, and of enemies what can be seen.
    let seen = changes(&player.delta().await);
    let (orcs, friends): (Vec<_>, Vec<_>) = seen.as_array().unwrap().iter().partition(|c| c["actor_id"] == "orc");
    assert_eq!(json!(friends), json!([mine, change("hound", -2, &[])]));
    assert!(orcs.iter().all(|c| c["hp_change"] == 0), "{orcs:?}");
    gm.turn().await;
    assert_eq!(gm.delta().await, no_changes());

    // The commit writes what was told already.
    world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "victory" })).await.expect(200);
    world.post(&format!("/encounters/{id}/commit"), json!({})).await.expect(200);
    assert_eq!(world.get("/characters/player_alice").await.expect(200).body["hp"], 94);
    assert_eq!(gm.delta().await, json!({ "has_changes": true, "EncounterEnded": true }));
    world.patch("/characters/player_alice", json!({ "hp": 90 })).await.expect(200);
    assert_eq!(changes(&gm.delta().await), json!([change(&alice, -4, &[])]));
}

/// What a copy of a campaign has been through is no news there.
#[tokio::test(flavor = "multi_thread")]
async fn a_copied_fight_has_hurt_nobody_yet() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = ambush(&world).await;
    hurt(&world, &id, "orc", 6).await;
    let slug = "the-copy";
    world.post("/fork", json!({ "slug": slug })).await.expect(201);
    let copy = World { client: world.client, slug: slug.to_owned() };
    let session = Session::open(&copy, "vtt").await;
    session.turn().await;
    let its = copy.get("/encounters").await.expect(200).items()[0]["id"].as_str().unwrap().to_owned();
    hurt(&copy, &its, "orc", 2).await;
    assert_eq!(changes(&session.delta().await), json!([change("orc", -2, &[])]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_learns_no_numbers_of_a_frontends_foes() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let body = json!({ "client_id": "p", "role": "player", "player_id": "player_alice" });
    let session = Session::with(&world, body).await;
    session.event("combat_state", fight(1, 1, 7, &[])).await;
    session.turn().await;
    session.event("combat_state", fight(1, 2, 3, &["prone"])).await;
    session.event("combatant_changed", json!({ "actor_id": "t1", "hp_change": -3 })).await;
    session.event("combatant_changed", json!({ "actor_id": "player_alice", "hp_change": -1 })).await;
    session.event("combatant_changed", json!({ "actor_id": "troll", "hp_change": -30 })).await;
    let told = json!([change("player_alice", -1, &[]), change("t1", -3, &[]), change("t2", 0, &["prone"])]);
    assert_eq!(changes(&session.delta().await), told);
}
