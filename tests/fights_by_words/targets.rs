//! Whom words mean, and what a hostile model cannot do.

use rehearsal::{Reply, Script};
use serde_json::json;

use super::{DOORS, Door, brawling, log_of, participant, player, proposes, says, tenant, town};
use crate::support::{Answer, Server, World};

/// That nothing was done, and the player is told why: by a rules turn as what is impossible, else for the player alone.
fn asked(door: Door, answer: &Answer, words: &str) {
    let answer = &answer.body;
    assert!(answer.to_string().contains(words), "{door:?}: {words:?} is not in {answer}");
    match door {
        Door::Rules => assert_eq!(answer["parsed"]["impossible"], true, "{answer}"),
        Door::Act => {
            assert_eq!((&answer["outcome"], &answer["visibility"]), (&json!("rejected"), &json!("ephemeral")));
            assert_eq!(answer["failed_predicates"][0]["code"], "target_exists", "{answer}");
        }
        Door::Do => assert_eq!(answer["visibility"], "ephemeral", "{answer}"),
        Door::Check | Door::UseSkill | Door::PlannedCheck => panic!("{door:?} is not for words"),
    }
}

async fn untouched(world: &World<'_>, id: &str) {
    for who in ["thug-1", "thug-2", "dog", "zz_killer"] {
        assert_eq!(participant(world, id, who).await["hp"], 932_177, "{who}");
    }
    assert_eq!(participant(world, id, "alice").await["economy"]["action"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_be_several_is_asked_for_and_who_is_nobody_is_told() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = brawling(&world).await;
    let alice = player(&acme, "player_alice").await;
    for door in DOORS {
        let unclear = says(door, &alice, "player_alice", "I attack the thug").await.expect(200);
        asked(door, &unclear, "Whom do you mean: Thug 1 or Thug 2?");
        let nobody = says(door, &alice, "player_alice", "I attack the dragon").await.expect(200);
        asked(door, &nobody, "The others are: Mallory, Thug 1, Thug 2 and Dog.");
        // Also when a model chooses for the player.
        proposes(&server, door, "resolve_attack", json!({ "target": "thug-1", "weapon": "Longsword" }));
        let text = format!("I attack the thug, {door:?}");
        let unclear = says(door, &alice, "player_alice", &text).await.expect(200);
        asked(door, &unclear, "Whom do you mean: Thug 1 or Thug 2?");
        server.model.set_script(Script::replies(Vec::<Reply>::new()));
    }
    untouched(&world, &id).await;
    let told = log_of(&acme).await;
    assert!(!told.iter().any(|m| m.contains("Whom do you mean")), "what is asked is for the player alone: {told:#?}");
    // Who is called by the whole name is meant, also if a model takes another.
    proposes(&server, Door::Rules, "resolve_attack", json!({ "target": "thug-1", "weapon": "Spoon" }));
    let whole = says(Door::Rules, &alice, "player_alice", "I attack thug 2 with a spoon").await.expect(200);
    assert_eq!(whole.body["arguments"]["target"], "thug-2", "{}", whole.text);
    // In any case.
    says(Door::Act, &alice, "player_alice", "I ATTACK THUG 2").await.expect(200);
    assert_eq!(participant(&world, &id, "alice").await["statistics"]["attacks_made"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_of_the_thug_means_the_one_who_lives() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let alice = player(&acme, "player_alice").await;
    for door in DOORS {
        let id = brawling(&world).await;
        let unclear = says(door, &alice, "player_alice", "I attack the thug").await.expect(200);
        asked(door, &unclear, "Whom do you mean: Thug 1 or Thug 2?");
        let blow = json!({ "action": "damage", "target_id": "thug-1", "amount": 1_000_000, "damage_type": "fire" });
        world.post(&format!("/encounters/{id}/actions"), blow).await.expect(200);
        let done = says(door, &alice, "player_alice", "I attack the thug").await.expect(200);
        let attacks = participant(&world, &id, "alice").await["statistics"]["attacks_made"].clone();
        assert_eq!(attacks, 1, "{door:?}: {}", done.text);
        world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "fled" })).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_model_has_no_effect() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = brawling(&world).await;
    let other = acme.post("/v1/campaigns", json!({ "slug": "elsewhere", "name": "Elsewhere" })).await.expect(201);
    assert!(other.status == 201);
    let npc = acme
        .post(
            "/v1/campaigns/elsewhere/npcs",
            json!({ "slug": "far", "name": "Far", "stats": { "hp": 7, "max_hp": 7 } }),
        )
        .await
        .expect(201)
        .id();
    let far = json!({ "participants": [{ "id": "orc", "hp": 55, "max_hp": 55, "is_enemy": true }] });
    let far = acme.post("/v1/campaigns/elsewhere/encounters", far).await.expect(201).body["encounter_id"].clone();
    let alice = player(&acme, "player_alice").await;
    let attack = "resolve_attack";
    for (n, (tool, arguments)) in [
        (attack, json!({ "target": npc, "weapon": "Longsword" })),
        (attack, json!({ "target": "far", "weapon": "Longsword" })),
        (attack, json!({ "target": "zz_killer", "weapon": "Longsword" })),
        (attack, json!({ "target": "Night Killer", "weapon": "Longsword" })),
        (attack, json!({ "target": "orc", "weapon": "Longsword", "encounter_id": far })),
        (attack, json!({ "target": "thug-1", "weapon": "Doom", "damage": 9999 })),
        ("apply_damage", json!({ "target": "thug-1", "parts": [{ "amount": 9999 }] })),
        ("encounter_action", json!({ "action": "damage", "target": "thug-1", "amount": 9999 })),
        ("encounter_action", json!({ "action": "reveal", "target": "zz_killer" })),
        ("encounter_action", json!({ "action": "grapple", "target": "zz_killer" })),
        ("encounter_action", json!({ "action": "advance_turn", "override": true })),
        ("encounter_action", json!({ "action": "end_turn", "participant_id": "thug-1" })),
        ("encounter_action", json!({ "action": "grapple", "target": "orc", "encounter_id": far })),
    ]
    .into_iter()
    .enumerate()
    {
        for door in DOORS {
            proposes(&server, door, tool, arguments.clone());
            let answer = says(door, &alice, "player_alice", &format!("I do it, {n} {door:?}")).await.expect(200);
            for secret in ["killer", "Killer", "932177"] {
                assert!(!answer.text.contains(secret), "{tool} {arguments}: {}", answer.text);
            }
        }
    }
    untouched(&world, &id).await;
    assert_eq!(super::turn_of(&world, &id).await, "alice");
    let orc = acme.get(&format!("/v1/campaigns/elsewhere/encounters/{}", far.as_str().unwrap())).await.expect(200);
    assert_eq!(orc.body["participants"][0]["hp"], 55);
    let stats = acme.get("/v1/campaigns/elsewhere/npcs/far").await.expect(200);
    assert_eq!(stats.body["stats"]["hp"], 7);
    // What a model claims of advantage, cover and distance is the engine's to know.
    let claims = json!({ "target": "thug-1", "weapon": "Longsword", "advantage": "advantage", "cover": "total",
        "context": { "distance_ft": 9000, "target_unseen": true } });
    proposes(&server, Door::Rules, attack, claims);
    let fair = says(Door::Rules, &alice, "player_alice", "I strike at thug 1").await.expect(200);
    assert_eq!(fair.body["parsed"]["advantage"], "none", "{}", fair.text);
    assert_eq!(fair.body["arguments"].get("cover"), None);
}
