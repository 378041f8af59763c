//! Whole fights: told by verbosity, with the campaign's dice or given ones, replayed from their log.

use ::rules::encounter::{Encounter, Event};
use serde_json::{Value, json};
use sqlx::Row;

use super::{act, begin, duel, dungeon, end, participant};
use crate::support::{Server, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_goes_by_turns() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let begun = world.post("/encounters", duel()).await.expect(201);
    let view = &begun.body;
    assert_eq!((&view["status"], &view["round"], &view["turn"]), (&json!("active"), &json!(1), &json!(1)));
    assert_eq!((&view["current_participant_id"], &view["name"]), (&json!("fenric"), &json!("At the bridge")));
    assert_eq!(view["participants"][1]["hp"], 15);
    let id = view["encounter_id"].as_str().unwrap();
    assert!(begun.header("location").ends_with(&format!("/encounters/{id}")));

    let blow = json!({ "action": "attack", "participant_id": "fenric", "target_id": "orc", "weapon": "Longsword", "dice": [15, 6] });
    let hit = act(&world, id, blow).await.expect(200).body;
    assert_eq!(hit["outcomes"][0]["damage"]["total_damage"], 9, "{hit}");
    assert_eq!((&hit["source"], &hit["participants"][0]["id"]), (&json!("manual"), &json!("fenric")));
    let orc = hit["participants"].as_array().unwrap().iter().find(|p| p["id"] == "orc").unwrap();
    assert_eq!(orc["hp"], 6);
    // A miss leaves the damage die unused.
    act(&world, id, json!({ "action": "advance_turn" })).await.expect(200);
    let missed = json!({ "action": "attack", "target_id": "fenric", "dice": [2, 4] });
    let missed = act(&world, id, missed).await.expect(200).body;
    assert_eq!((&missed["outcomes"][0]["success"], &missed["dice_unused"]), (&json!(false), &json!([4])));
    let next = act(&world, id, json!({ "action": "advance_turn" })).await.expect(200).body;
    assert_eq!((&next["round"], &next["current_participant_id"]), (&json!(2), &json!("fenric")));
    // The campaign's dice, verifiable.
    let rolled = act(&world, id, json!({ "action": "attack", "target_id": "orc", "weapon": "Longsword" }))
        .await
        .expect(200)
        .body;
    assert!(rolled["counter"].is_i64() && rolled["source"] == "server", "{rolled}");
    let ended = end(&world, id).await;
    assert!(ended["summary"]["text"].as_str().unwrap().contains("Most damage: Fenric"), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn verbosity_says_how_much_is_told() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = begin(&world, duel()).await;
    let get =
        async |verbosity: &str| world.get(&format!("/encounters/{id}?verbosity={verbosity}")).await.expect(200).body;
    assert_eq!(get("minimal").await.get("participants"), None);
    assert_eq!(get("minimal").await["participant_count"], 2);
    assert_eq!(get("summary").await["participants"][0].get("initiative"), None);
    assert_eq!(get("standard").await["participants"][0]["initiative"], 20);
    assert_eq!(get("detailed").await["participants"][0]["is_ephemeral"], false);
    assert_eq!(world.get(&format!("/encounters/{id}")).await.body, get("standard").await);
    world.get(&format!("/encounters/{id}?verbosity=chatty")).await.problem(400, "bad_request");
    // Name and notes are edited beside the fight, and never its numbers.
    let seen = world.get(&format!("/encounters/{id}")).await;
    let renamed = world.patch(&format!("/encounters/{id}"), json!({ "name": "On the bridge" })).await.expect(200);
    assert_ne!(seen.header("etag"), renamed.header("etag"));
    assert_eq!(get("standard").await["name"], "On the bridge");
    world.patch(&format!("/encounters/{id}"), json!({ "round": 9 })).await.problem(422, "validation_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_rolls_the_same_initiative() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let many: Vec<Value> = (0..8).map(|n| json!({ "id": format!("orc{n}"), "hp": 5, "max_hp": 5 })).collect();
    let order = async |seed: u64| {
        let made = world.post("/encounters", json!({ "participants": many, "seed": seed })).await.expect(201).body;
        assert_eq!(made["source"], "seeded");
        made["participants"].as_array().unwrap().iter().map(|p| p["initiative"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    let first = order(7).await;
    assert_eq!(first, order(7).await);
    assert_ne!(first, order(8).await);
    assert!(first.iter().any(|i| *i != first[0]), "the dice of a seed vary: {first:?}");
    let given = json!({ "participants": &many[..2], "dice": [3, 17] });
    let given = world.post("/encounters", given).await.expect(201).body;
    assert_eq!((&given["participants"][0]["id"], &given["source"]), (&json!("orc1"), &json!("manual")));
}

/// The encounter as the log tells it.
async fn replayed(server: &Server, id: &str) -> (Encounter, i64) {
    let mut owner = server.owner().await;
    let id: uuid::Uuid = id.parse().unwrap();
    let beginning: String = sqlx::query("SELECT beginning::text AS text FROM encounter_state WHERE encounter_id = $1")
        .bind(id)
        .fetch_one(&mut owner)
        .await
        .unwrap()
        .get("text");
    let mut encounter: Encounter = serde_json::from_str(&beginning).unwrap();
    let log = sqlx::query("SELECT seq, events::text AS events FROM encounter_log WHERE encounter_id = $1 ORDER BY seq")
        .bind(id)
        .fetch_all(&mut owner)
        .await
        .unwrap();
    for (n, row) in log.iter().enumerate() {
        assert_eq!(row.get::<i64, _>("seq"), n as i64 + 1, "the log has no gaps");
        let events: Vec<Event> = serde_json::from_str(row.get("events")).unwrap();
        encounter.apply_all(&events);
    }
    (encounter, log.len() as i64)
}

/// A random action that may or may not be allowed.
fn anything(random: &mut impl FnMut(u32) -> u32, who: &[String]) -> Value {
    let mut one = || who[random(who.len() as u32) as usize].clone();
    let (a, b) = (one(), one());
    match random(12) {
        0..3 => json!({ "action": "attack", "target_id": b }),
        3 => json!({ "action": "damage", "target_id": b, "amount": random(6), "damage_type": "fire" }),
        4 => json!({ "action": "heal", "target_id": b, "amount": random(9) }),
        5 => json!({ "action": "temp_hp", "target_id": b, "amount": random(4) }),
        6 => json!({ "action": "add_condition", "target_id": b, "condition": "poisoned", "rounds": 1 + random(3) }),
        7 => json!({ "action": "remove_condition", "target_id": b, "condition": "poisoned" }),
        8 => json!({ "action": "use_spell_slot", "participant_id": a, "level": 1, "override": true }),
        9 => json!({ "action": "dodge" }),
        _ => json!({ "action": "advance_turn" }),
    }
}

async fn play(world: &World<'_>, id: &str, actions: usize, who: &[String]) -> usize {
    let mut state = 7_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let mut legal = 0;
    for _ in 0..actions {
        let answer = act(world, id, anything(&mut random, who)).await;
        assert!(matches!(answer.status, 200 | 409 | 422), "{}", answer.text);
        legal += usize::from(answer.status == 200 && answer.body["events"].as_array().is_some_and(|e| !e.is_empty()));
    }
    legal
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_actions_are_replayed_from_the_log() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let mut body = duel();
    for n in 0..6 {
        body["participants"].as_array_mut().unwrap().push(json!({
            "id": format!("p{n}"), "hp": 90, "max_hp": 90, "is_enemy": n % 2 == 0,
            "spell_slots": { "1": { "max": 9, "remaining": 9 } },
            "attacks": [{ "name": "Claw", "bonus": 4, "damage": "1d4", "damage_type": "slashing" }] }));
    }
    let id = begin(&world, body).await;
    let who: Vec<String> = (0..6).map(|n| format!("p{n}")).collect();
    let mut legal = 0;
    while legal < 1000 {
        legal += play(&world, &id, 200, &who).await;
    }
    let (told, actions) = replayed(&server, &id).await;
    assert_eq!(actions, i64::try_from(legal).unwrap());
    for verbosity in ["minimal", "summary", "standard", "detailed"] {
        let mut shown = world.get(&format!("/encounters/{id}?verbosity={verbosity}")).await.expect(200).body;
        for stamp in ["id", "version"] {
            shown.as_object_mut().unwrap().remove(stamp);
        }
        let verbosity = serde_json::from_value(json!(verbosity)).unwrap();
        assert_eq!(serde_json::to_value(told.view(verbosity)).unwrap(), shown);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_take_part_and_more_join() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let many: Vec<Value> = (0..100).map(|n| json!({ "id": format!("orc{n}"), "hp": 5, "max_hp": 5 })).collect();
    let id = begin(&world, json!({ "participants": many })).await;
    let path = format!("/encounters/{id}/participants");
    let view = world.post(&path, json!({ "character_id": "fenric" })).await.expect(200).body;
    assert_eq!(view["participants"].as_array().unwrap().len(), 101);
    assert_eq!(participant(&world, &id, "fenric").await["hp"], 28);
    world.post(&path, json!({ "character_id": "fenric", "id": "twin" })).await.problem(422, "validation_failed");
    world.post(&path, json!({ "id": "orc3", "hp": 5, "max_hp": 5 })).await.problem(422, "validation_failed");
    // Who came later is committed like the others.
    super::hurt(&world, &id, "fenric", 8).await;
    end(&world, &id).await;
    assert_eq!(super::commit(&world, &id, json!({})).await["committed"][0]["changes"]["hp"]["delta"], -8);
    world.post(&path, json!({ "id": "late", "hp": 5, "max_hp": 5 })).await.problem(409, "encounter_already_ended");
}

/// An initiative that is set during a round takes nobody's turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_delayed_turn_leaves_the_others_theirs() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let who = |id: &str, initiative: i64| json!({ "id": id, "name": id, "hp": 9, "max_hp": 9, "initiative": initiative, "is_enemy": id != "a" });
    let id = begin(&world, json!({ "participants": [who("a", 20), who("b", 15), who("c", 10)] })).await;
    act(&world, &id, json!({ "action": "roll_initiative", "participant_id": "a", "amount": 5 })).await.expect(200);
    let mut turns = Vec::new();
    for _ in 0..5 {
        act(&world, &id, json!({ "action": "advance_turn" })).await.expect(200);
        let fight = world.get(&format!("/encounters/{id}")).await.expect(200).body;
        turns.push(format!("{} {}", fight["round"], fight["current_participant_id"].as_str().unwrap()));
    }
    assert_eq!(turns, ["1 b", "1 c", "2 b", "2 c", "2 a"]);
}
