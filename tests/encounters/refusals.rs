//! What no caller should send: a clear problem, and nothing changed.

use serde_json::{Value, json};

use super::{act, begin, duel, dungeon, end};
use crate::support::{Server, counts};

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_beginning_is_pointed_at() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let with = |participant: Value| json!({ "participants": [participant] });
    let one = json!([{ "id": "a", "hp": 5, "max_hp": 5 }]);
    let before = counts(&server).await;
    for (body, pointer) in [
        (json!({}), "/participants"),
        (json!({ "participants": [] }), "/participants"),
        (
            json!({ "participants": (0..201).map(|n| json!({ "id": format!("p{n}"), "hp": 1 })).collect::<Vec<_>>() }),
            "/participants",
        ),
        (json!({ "participants": [{ "id": "a", "hp": 1 }, { "id": "a", "hp": 1 }] }), "/participants/1/id"),
        (with(json!({ "hp": 5 })), "/participants/0/id"),
        (with(json!({ "id": "a", "hp": 9, "max_hp": 5 })), "/participants/0/hp"),
        (with(json!({ "id": "a", "hp": -1, "max_hp": 5 })), "/participants/0/hp"),
        (with(json!({ "id": "a", "hp": 5, "size": "colossal" })), "/participants/0/size"),
        (with(json!({ "id": "a", "hp": 5, "resistances": ["wet"] })), "/participants/0/resistances"),
        (with(json!({ "id": "a", "hp": 5, "conditions": ["sleepy"] })), "/participants/0/conditions"),
        (with(json!({ "id": "a", "hp": 5, "mood": "bad" })), "/participants/0/mood"),
        (with(json!({ "character_id": "fenric", "npc_id": "goblin" })), "/participants/0/npc_id"),
        (
            json!({ "participants": [{ "id": "a", "character_id": "fenric" }, { "id": "b", "character_id": "fenric" }] }),
            "/participants/1/character_id",
        ),
        (json!({ "participants": one, "lighting": "twilight" }), "/lighting"),
        (json!({ "participants": one, "terrain": { "width": 3 } }), "/terrain/width"),
        (json!({ "participants": one, "terrain": { "obstacles": ["99,1"] } }), "/terrain/obstacles"),
        (json!({ "participants": one, "terrain": { "water": ["here"] } }), "/terrain/water/0"),
        (json!({ "participants": one, "surprise": ["b"] }), "/surprise"),
    ] {
        let answer = world.post("/encounters", body.clone()).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{body}: {}", answer.text);
    }
    let prone = json!({ "participants": [{ "id": "a", "hp": 5, "conditions": [{ "name": "prone", "bogus": 1 }] }] });
    let prone = world.post("/encounters", prone).await.problem(422, "validation_failed");
    assert_eq!(prone.pointers(), ["/participants/0/conditions/0/bogus"], "{}", prone.text);
    let twilight = world.post("/encounters", json!({ "participants": one, "lighting": "twilight" })).await;
    assert!(twilight.text.contains("magical_darkness"), "it lists what there is: {}", twilight.text);
    world.post("/encounters", json!({ "participants": one, "dice": [1, 2] })).await.problem(422, "invalid_dice");
    world.post("/encounters", json!({ "participants": one, "dice": [21] })).await.problem(422, "invalid_dice");
    assert_eq!(counts(&server).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_action_changes_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = begin(&world, duel()).await;
    let before = (counts(&server).await, world.get(&format!("/encounters/{id}?verbosity=detailed")).await.body);
    for (action, status, code) in [
        (json!({}), 422, "validation_failed"),
        (json!({ "action": "fly" }), 422, "validation_failed"),
        (json!({ "action": "damage", "amount": 5 }), 422, "validation_failed"),
        (json!({ "action": "damage", "target_id": "orc" }), 422, "validation_failed"),
        (json!({ "action": "damage", "target_id": "nobody", "amount": 5 }), 422, "validation_failed"),
        (json!({ "action": "damage", "target_id": "orc", "amount": -5 }), 422, "validation_failed"),
        (
            json!({ "action": "damage", "target_id": "orc", "amount": 5, "damage_type": "wet" }),
            422,
            "validation_failed",
        ),
        (json!({ "action": "add_condition", "target_id": "orc", "condition": "sleepy" }), 422, "validation_failed"),
        (json!({ "action": "dodge", "luck": 1 }), 422, "validation_failed"),
        (json!({ "action": "dodge", "participant_id": "orc" }), 409, "not_your_turn"),
        (json!({ "action": "attack", "participant_id": "orc", "target_id": "fenric" }), 409, "not_your_turn"),
        (json!({ "action": "use_spell_slot", "participant_id": "fenric", "level": 5 }), 409, "no_action_left"),
        (
            json!({ "action": "use_resource", "participant_id": "fenric", "resource": "Lay on Hands", "amount": 99 }),
            409,
            "no_action_left",
        ),
        (json!({ "action": "death_save", "participant_id": "fenric" }), 409, "not_dying"),
        (
            json!({ "action": "attack", "target_id": "orc", "weapon": "Longsword", "dice": [21, 3] }),
            422,
            "invalid_dice",
        ),
        (
            json!({ "action": "attack", "target_id": "orc", "weapon": "Longsword", "dice": [15, 3, 3] }),
            422,
            "invalid_dice",
        ),
    ] {
        let answer = act(&world, &id, action.clone()).await;
        assert_eq!((answer.status, answer.body["code"].as_str()), (status, Some(code)), "{action}: {}", answer.text);
    }
    // What cannot be done in the game is an outcome, not an error.
    let unarmed =
        act(&world, &id, json!({ "action": "attack", "target_id": "orc", "weapon": "Ballista" })).await.expect(200);
    assert_eq!(unarmed.body["outcomes"][0]["impossible"], true, "{}", unarmed.text);
    let preview =
        json!({ "action": "attack", "target_id": "orc", "weapon": "Longsword", "preview": true, "dice": [15, 6] });
    assert_eq!(act(&world, &id, preview).await.expect(200).body["preview"], true);
    let after = (counts(&server).await, world.get(&format!("/encounters/{id}?verbosity=detailed")).await.body);
    assert_eq!(after, before);

    act(&world, &id, json!({ "action": "dodge" })).await.expect(200);
    act(&world, &id, json!({ "action": "dash" })).await.problem(409, "no_action_left");
    act(&world, &id, json!({ "action": "dash", "override": true })).await.expect(200);
}

/// Whichever way in: REST, the tools of encounters, the resolvers.
#[tokio::test(flavor = "multi_thread")]
async fn every_text_has_a_limit() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = begin(&world, duel()).await;
    let before = counts(&server).await;
    let long = "fire ".repeat(50);
    for (mut action, pointer) in [
        (json!({ "action": "attack", "target_id": "orc", "weapon": long }), "/weapon"),
        (json!({ "action": "cast_spell", "target_id": "orc", "spell_name": long }), "/spell_name"),
        (
            json!({ "action": "attack", "target_id": "orc", "extra_damage_sources": ["Rage", long] }),
            "/extra_damage_sources/1",
        ),
        (json!({ "action": "heal", "target_id": "orc", "formula": long }), "/formula"),
        (json!({ "action": "damage", "target_id": "orc", "parts": [{ "amount": 1, "type": long }] }), "/parts/0/type"),
        (json!({ "action": "add_condition", "target_id": "orc", "condition": long }), "/condition"),
        (json!({ "action": "use_resource", "resource": long }), "/resource"),
        (json!({ "action": "dodge", "source": long }), "/source"),
        (json!({ "action": "dodge", "context": { "other_weapon": long } }), "/context/other_weapon"),
        (json!({ "action": "dodge", "context": { "reactions": vec!["Uncanny Dodge"; 21] } }), "/context/reactions"),
    ] {
        let answer = act(&world, &id, action.clone()).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{action}: {}", answer.text);
        action["encounter_id"] = json!(id);
        let call = json!({ "actor": { "type": "gm" }, "arguments": action });
        let answer = world.post("/tools/encounter_action", call).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [format!("/arguments{pointer}")], "{action}: {}", answer.text);
    }
    let goblin = |field: &str, value: Value| json!({ "id": "goblin", "hp": 7, field: value });
    for (participant, pointer) in [
        (goblin("resistances", json!(["fire", long])), "/resistances/1"),
        (goblin("condition_immunities", json!([long])), "/condition_immunities/0"),
        (goblin("conditions", json!([{ "name": "prone", "source": long }])), "/conditions/0/source"),
        (goblin("resources", json!([{ "name": long, "max": 1, "remaining": 1 }])), "/resources/0/name"),
        (goblin("npc_id", json!(long)), "/npc_id"),
        (goblin("attacks", json!([{ "name": "Bite", "damage": "", "damage_type": "piercing" }])), "/attacks/0/damage"),
        (goblin("attacks", json!([{ "name": "Bite", "damage": "1d4" }])), "/attacks/0/damage_type"),
    ] {
        let answer = world.post(&format!("/encounters/{id}/participants"), participant.clone()).await;
        assert_eq!(answer.problem(422, "validation_failed").pointers(), [pointer], "{participant}");
        let answer = world.post("/encounters", json!({ "participants": [participant] })).await;
        assert_eq!(answer.problem(422, "validation_failed").pointers(), [format!("/participants/0{pointer}")]);
        let call = json!({ "actor": { "type": "gm" }, "arguments":
            { "operation": "add_participant", "encounter_id": id, "participant": participant } });
        let answer = world.post("/tools/manage_encounter", call).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [format!("/arguments/participant{pointer}")], "{}", answer.text);
    }
    for (arguments, pointer) in [
        (json!({ "target": "goblin", "encounter_id": long }), "/encounter_id"),
        (json!({ "target": "goblin", "weapon": long }), "/weapon"),
        (json!({ "target": "goblin", "context": { "other_weapon": long } }), "/context/other_weapon"),
        (json!({ "target": "goblin", "context": { "reactions": vec!["Uncanny Dodge"; 21] } }), "/context/reactions"),
    ] {
        let call = json!({ "actor": { "type": "character", "id": "fenric" }, "arguments": arguments });
        let answer = world.post("/tools/resolve_attack", call).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [format!("/arguments{pointer}")], "{}", answer.text);
    }
    assert_eq!(counts(&server).await, before);
    end(&world, &id).await;
    for (names, pointer) in [(json!([long]), "/character_ids/0"), (json!(vec!["fenric"; 201]), "/character_ids")] {
        let answer = world.post(&format!("/encounters/{id}/commit"), json!({ "character_ids": names })).await;
        assert_eq!(answer.problem(422, "validation_failed").pointers(), [pointer]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spell_on_several_says_whom_it_does_not_reach() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let mage = json!({ "slug": "mage", "name": "Mage", "profession": "Wizard", "level": 5, "spells": ["Hold Person"],
        "spell_slots": { "2": { "max": 2, "remaining": 2 } } });
    world.post("/characters", mage).await.expect(201);
    let foe =
        |id: &str, x| json!({ "id": id, "hp": 9, "is_enemy": true, "initiative": 1, "position": { "x": x, "y": 0 } });
    let mage = json!({ "character_id": "mage", "initiative": 20, "position": { "x": 0, "y": 0 } });
    let id = begin(&world, json!({ "participants": [mage, foe("near", 12), foe("far", 13)] })).await;
    let hold = |targets: Value| json!({ "action": "cast_spell", "spell_name": "Hold Person", "target_ids": targets });
    let answer = act(&world, &id, hold(json!(["near", "far"]))).await.problem(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/target_ids/1"], "{}", answer.text);
    let mut both = hold(json!(["near"]));
    both["target_id"] = json!("far");
    let answer = act(&world, &id, both).await.problem(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/target_ids"], "{}", answer.text);
    let held = act(&world, &id, hold(json!(["near"]))).await.expect(200);
    assert_eq!(held.body["outcomes"][0]["participants"][0]["creature"], "near", "{}", held.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_tenants_encounters_do_not_exist() {
    let server = Server::start().await;
    let (acme, globex) = (server.tenant("acme").await, server.tenant("globex").await);
    let (world, other) = (dungeon(&acme).await, dungeon(&globex).await);
    let id = begin(&world, duel()).await;
    other.get(&format!("/encounters/{id}")).await.problem(404, "not_found");
    act(&other, &id, json!({ "action": "dodge" })).await.problem(404, "not_found");
    for (path, body) in [("end", json!({ "outcome": "fled" })), ("commit", json!({}))] {
        other.post(&format!("/encounters/{id}/{path}"), body).await.problem(404, "not_found");
    }
    for name in ["nonsense", "01900000-0000-7000-8000-000000000000", ""] {
        let missing = act(&world, name, json!({ "action": "dodge" })).await;
        assert_eq!(missing.status, 404, "{}", missing.text);
    }
    // Another tenant's character takes part as a stranger would.
    let theirs = globex.get("/v1/campaigns/dungeon/characters/fenric").await.body["id"].clone();
    let body = json!({ "participants": [{ "id": "x", "character_id": theirs, "hp": 5, "max_hp": 5 }] });
    let begun = world.post("/encounters", body).await.expect(201).body;
    assert_eq!(begun["participants"][0].get("character_id"), None);
    assert_eq!(begun["warnings"].as_array().unwrap().len(), 1);
}
