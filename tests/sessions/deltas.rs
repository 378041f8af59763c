//! What changed since the AI's last turn.

use rehearsal::{Reply, Script};
use serde_json::json;

use super::{Session, fight, no_changes};
use crate::support::{Server, until};

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_rolls_are_counted_under_their_names() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    assert_eq!(session.delta().await, no_changes());
    session.turn().await;
    assert_eq!(session.delta().await, no_changes(), "the AI's own words are no news to it");
    session.chat("Hello!").await;
    session.event("chat_message", json!({ "id": "m1", "content": "Who is there?" })).await;
    let roll = json!({ "formula": "1d20 + 5", "total": 19, "results": [14], "flavor": "Attack", "speaker": "Ann" });
    session.event("dice_roll", roll).await;
    session.event("message_deleted", json!({ "id": "m1" })).await;
    // What reaches the campaign by another way counts too.
    world.post("/messages", json!({ "content": "From elsewhere." })).await.expect(201);
    assert_eq!(
        session.delta().await,
        json!({
            "has_changes": true, "NewMessages": 4, "DeletedMessages": 1,
            "NewDiceRolls": [{ "formula": "1d20 + 5", "result": 19, "flavor": "Attack" }],
        })
    );
    session.turn().await;
    assert_eq!(session.delta().await, no_changes());
    let several =
        json!({ "rolls": [{ "formula": "1d6", "total": 3 }, { "formula": "1d8", "total": 8, "flavor": "Bow" }] });
    session.event("dice_roll", several).await;
    let delta = session.delta().await;
    assert_eq!(delta["NewMessages"], 1);
    assert_eq!(delta["NewDiceRolls"].as_array().unwrap().len(), 2, "{delta}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fights_begin_go_on_and_end() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    session.turn().await;
    session.event("combat_state", fight(1, 1, 7, &[])).await;
    assert_eq!(
        session.delta().await,
        json!({ "has_changes": true, "EncounterStarted": { "id": "c1", "name": "Ambush" } })
    );
    session.turn().await;
    session.event("combat_state", fight(1, 2, 7, &[])).await;
    session.event("combat_state", fight(1, 2, 3, &["prone"])).await;
    session.event("combat_state", fight(2, 1, 2, &["prone"])).await;
    assert_eq!(
        session.delta().await,
        json!({
            "has_changes": true, "TurnAdvanced": true,
            "CombatantChanged": [{ "actor_id": "t2", "hp_change": -5, "new_status_effects": ["prone"] }],
        })
    );
    session.turn().await;
    session.event("combat_state", json!({ "combat_state": { "in_combat": false, "combat_id": null } })).await;
    // A fight without a name that begins and ends in one window is told with both its ends.
    session.event("combat_state", json!({ "in_combat": true, "combat_id": "c2", "combatants": [] })).await;
    session.event("combat_state", json!({ "in_combat": false })).await;
    assert_eq!(
        session.delta().await,
        json!({
            "has_changes": true, "EncounterEnded": true, "EncounterStarted": { "id": "c2", "name": "Combat Encounter" },
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scene_and_the_campaign_move_too() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    let scene = |x: i64, lights: serde_json::Value| {
        json!({ "active_scene": { "id": "s1", "name": "Crypt", "tokens": [{ "id": "t1", "name": "Alice", "x": x, "y": 2 }],
            "light_sources": lights } })
    };
    let put = |body| tenant.request(reqwest::Method::PUT, &world.path(&session.path("/world-state"))).json(&body);
    tenant.send(put(scene(1, json!([{ "id": "torch", "x": 0, "y": 0 }])))).await.expect(200);
    session.turn().await;
    tenant.send(put(scene(7, json!([])))).await.expect(200);
    session.event("door_state_changed", json!({ "door_id": "d1", "new_state": "open" })).await;
    session.event("token_moved", json!({ "token_id": "t9", "x": 3, "y": 4 })).await;
    session.event("item_acquired", json!({ "actor_id": "alice", "item_name": "Key" })).await;
    session.event("game_delta", json!({ "hasChanges": true, "TurnAdvanced": true, "NewMessages": 2, "EncounterEnded": null, "TokenMoved": null })).await;
    let inn =
        world.post("/scenes", json!({ "name": "Inn", "active": true, "tokens": [] })).await.expect(201).body["id"]
            .clone();
    world
        .patch("/characters/player_alice", json!({ "hp": 90, "conditions": [{ "name": "poisoned" }] }))
        .await
        .expect(200);
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    assert_eq!(
        session.delta().await,
        json!({
            "has_changes": true, "NewMessages": 2, "TurnAdvanced": true,
            "SceneChanged": { "new_scene_id": inn, "new_scene_name": "Inn" },
            "CombatantChanged": [{ "actor_id": alice, "hp_change": -10, "new_status_effects": ["poisoned"] }],
            "TokenMoved": [{ "token_id": "t1", "x": 7, "y": 2 }, { "token_id": "t9", "x": 3, "y": 4 }],
            "SceneLightingChanged": [{ "light_source_id": "torch", "new_status": "extinguished" }],
            "DoorStateChanged": [{ "door_id": "d1", "new_state": "open" }],
            "ItemAcquired": [{ "actor_id": "alice", "item_name": "Key" }],
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whispers_are_for_those_they_are_for() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let master = Session::open(&world, "master").await;
    let alice = json!({ "client_id": "alice", "role": "player", "player_id": "player_alice" });
    let alice = Session::with(&world, alice).await;
    let mallory = json!({ "client_id": "mallory", "role": "player", "player_id": "player_mallory" });
    let mallory = Session::with(&world, mallory).await;
    for session in [&master, &alice, &mallory] {
        session.turn().await;
    }
    let between = json!({ "content": "Only for Alice.", "whisper": ["player_alice"], "player_id": "player_mallory" });
    master.event("chat_message", between).await;
    master.event("chat_message", json!({ "content": "To the master.", "whisper_to": ["gm"] })).await;
    let blind = json!({ "formula": "1d20", "total": 3, "blind": true, "flavor": "Stealth" });
    master.event("dice_roll", blind).await;
    let news = |delta: serde_json::Value| (delta["NewMessages"].clone(), delta["NewDiceRolls"][0]["result"].clone());
    assert_eq!(news(master.delta().await), (json!(4), json!(3)), "not what players whisper to each other");
    assert_eq!(news(alice.delta().await), (json!(2), json!(null)), "and what Mallory's AI said");
    assert_eq!(news(mallory.delta().await), (json!(1), json!(null)), "her own whisper");
    for (session, sees) in [
        (&master, ["To the master.", "1d20"].as_slice()),
        (&alice, &["Only for Alice."]),
        (&mallory, &["Only for Alice."]),
    ] {
        let history = session.called("get_message_history", json!({ "count": 50 })).await.to_string();
        for text in ["Only for Alice.", "To the master.", "1d20"] {
            assert_eq!(history.contains(text), sees.contains(&text), "{text}: {history}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_have_their_own_cursors() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (first, second) = (Session::open(&world, "a").await, Session::open(&world, "b").await);
    first.turn().await;
    second.turn().await;
    first.chat("Hello!").await;
    first.event("token_moved", json!({ "token_id": "t", "x": 1, "y": 1 })).await;
    first.turn().await;
    assert_eq!(first.delta().await, no_changes());
    let second = second.delta().await;
    assert_eq!(second["NewMessages"], 2, "messages are the campaign's, also those of another's AI: {second}");
    assert_eq!(second.get("TokenMoved"), None, "a frontend's map is its own");
}

/// The server's own fights are told like a frontend's, and looked at first.
#[tokio::test(flavor = "multi_thread")]
async fn the_campaigns_own_encounters_are_told() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    session.turn().await;
    let goblin = |id: &str| json!({ "id": id, "hp": 7, "max_hp": 7, "is_enemy": true });
    let fight = json!({ "name": "Cellar", "participants": [goblin("a"), goblin("b")] });
    let made = world.post("/encounters", fight).await.expect(201).body;
    let id = made["encounter_id"].as_str().unwrap();
    assert_eq!(session.delta().await["EncounterStarted"], json!({ "id": id, "name": "Cellar" }));
    session.event("combat_state", fight_of_frontend()).await;
    let both = session.called("get_encounter", json!({})).await;
    assert_eq!((&both["active_count"], &both["encounters"][0]["combat_id"]), (&json!(2), &json!(id)));
    let offered = || server.model.requests().pop().unwrap()["tools"].to_string().contains("encounter_action");
    assert!(!offered());
    session.turn().await;
    assert!(offered(), "while there is a fight");
    let action =
        json!({ "action": "advance_turn", "participant_id": made["current_participant_id"], "override": true });
    world.post(&format!("/encounters/{id}/actions"), action).await.expect(200);
    assert_eq!(session.delta().await, json!({ "has_changes": true, "TurnAdvanced": true }));
    world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "victory" })).await.expect(200);
    assert_eq!(session.delta().await["EncounterEnded"], true);
    assert_eq!(session.called("get_encounter", json!({})).await["combat_id"], "c1");
    // Of what a frontend tells and what the campaign holds the newest stands.
    session.turn().await;
    let begin = async |name: &str| {
        let fight = json!({ "name": name, "participants": [goblin("a")] });
        world.post("/encounters", fight).await.expect(201);
    };
    begin("First").await;
    session.event("encounter_started", json!({ "id": "e", "name": "Second" })).await;
    begin("Third").await;
    let delta = session.delta().await;
    assert_eq!(delta["EncounterStarted"]["name"], "Third");
    let before = delta["details"]["encounters_started_before"].as_array().unwrap().iter();
    assert_eq!(before.map(|e| e["name"].clone()).collect::<Vec<_>>(), ["First", "Second"]);
}

fn fight_of_frontend() -> serde_json::Value {
    fight(1, 1, 7, &[])
}

/// Nothing that happens while the model thinks is lost, and nothing is told twice.
#[tokio::test(flavor = "multi_thread")]
async fn events_during_a_turn_are_kept_for_the_next() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    session.turn().await;
    session.chat("Before.").await;
    server.model.set_script(Script::replies([Reply::text("Hm.").held()]));
    let called = server.model.request_count();
    let during = async {
        until("the question", async || server.model.request_count() > called).await;
        session.chat("During.").await;
        session.event("combat_state", fight(1, 1, 7, &[])).await;
        server.model.let_go(1);
    };
    let (turn, ()) = tokio::join!(session.turn(), during);
    assert_eq!(turn["context"], "delta");
    assert!(session.last_told().contains("\"NewMessages\": 1"), "{}", session.last_told());
    let delta = session.delta().await;
    assert_eq!((&delta["NewMessages"], &delta["EncounterStarted"]["id"]), (&json!(1), &json!("c1")));
    session.turn().await;
    assert!(session.last_told().contains("EncounterStarted"));
    assert_eq!(session.delta().await, no_changes());
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_to_be_told_one_by_one_is_told_as_an_overview() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    session.turn().await;
    let moves: Vec<_> = (0..100)
        .map(|n| json!({ "type": "token_moved", "data": { "token_id": format!("t{n}"), "x": n, "y": 0 } }))
        .collect();
    for _ in 0..2 {
        session.events(json!(moves)).await.expect(200);
    }
    assert_eq!(session.delta().await["TokenMoved"].as_array().unwrap().len(), 100);
    for _ in 0..19 {
        session.events(json!(moves)).await.expect(200);
    }
    let turn = session.turn().await;
    assert_eq!(turn["context"], "overview", "the oldest of 2,100 events are forgotten");
    assert_eq!(session.turn().await["context"], "delta");
}
