//! Each door acts in the fight: attack, economy, turn order, the end of a turn, what is taken back.

use futures_util::future::join_all;
use rehearsal::{Reply, Script};
use serde_json::json;

use super::{
    CHECKS, DOORS, Door, advance, all_doors, begin, brawl, brawling, log_of, participant, player, refused, says,
    tenant, town, turn_id, turn_of,
};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn an_attack_by_words_spends_the_action_and_hits_a_participant() {
    for door in DOORS {
        let server = Server::start().await;
        let acme = tenant(&server, "acme").await;
        let world = town(&acme).await;
        let id = brawling(&world).await;
        let alice = player(&acme, "player_alice").await;
        let done = says(door, &alice, "player_alice", "I attack thug 1 with my longsword").await.expect(200);
        let thug = participant(&world, &id, "thug-1").await;
        let own = participant(&world, &id, "alice").await;
        assert_eq!(own["economy"]["action"], true, "{door:?}: {}", done.text);
        assert_eq!(own["statistics"]["attacks_made"], 1);
        let hit = own["statistics"]["attacks_hit"] == 1;
        assert_eq!(thug["hp"].as_i64().unwrap() < 932_177, hit, "{door:?}: {}", done.text);
        // Records change with the commit alone, and no number of a foe is told.
        assert!(done.text.contains("Alice attacks Thug 1 with Longsword"), "{door:?}: {}", done.text);
        for secret in ["932177", &thug["hp"].to_string(), "dc_or_ac", "DC/AC"] {
            assert!(!done.text.contains(secret), "{door:?}: {secret} in {}", done.text);
        }
        let kept = world.get(&format!("/turns/{}", turn_id(&done.body))).await.expect(200);
        let call = &kept.body["tool_calls"][0];
        assert!(call["result"].get("dc_or_ac").is_none() && call["result"].get("effects").is_none(), "{call}");

        // One action a turn, by whatever door.
        for door in all_doors() {
            let again = says(door, &alice, "player_alice", "I attack thug 1 with my longsword").await;
            refused(door, &again, "no_action_left", "no action left");
        }
        assert_eq!(participant(&world, &id, "alice").await["statistics"]["attacks_made"], 1);
        // The log tells it once.
        let told = log_of(&acme).await;
        let attacks = told.iter().filter(|m| m.contains("attacks Thug 1 with Longsword:")).count();
        assert_eq!(attacks, 1, "{door:?}: {told:#?}");

        // What is undone did not happen.
        world.post(&format!("/turns/{}/undo", turn_id(&done.body)), json!({})).await.expect(200);
        let own = participant(&world, &id, "alice").await;
        assert_eq!(own["economy"]["action"], false);
        assert_eq!(participant(&world, &id, "thug-1").await["hp"], 932_177);
        assert!(!log_of(&acme).await.iter().any(|m| m.contains("attacks Thug 1 with Longsword:")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whose_turn_it_is_is_said_and_a_turn_ends_by_words() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = brawling(&world).await;
    let (alice, mallory) = (player(&acme, "player_alice").await, player(&acme, "player_mallory").await);
    for door in CHECKS {
        let early = says(door, &mallory, "player_mallory", "").await;
        refused(door, &early, "not_your_turn", "It is Alice's turn.");
    }
    for door in DOORS {
        for words in ["I attack thug 1", "I end my turn", "I dodge", "I search the room"] {
            let early = says(door, &mallory, "player_mallory", words).await;
            refused(door, &early, "not_your_turn", "It is Alice's turn.");
        }
        assert_eq!(turn_of(&world, &id).await, "alice");
        let ended = says(door, &alice, "player_alice", "I end my turn.").await.expect(200);
        assert_eq!(turn_of(&world, &id).await, "mallory", "{door:?}");
        assert!(ended.text.contains("It is Mallory's turn."), "{door:?}: {}", ended.text);
        // Once around.
        for _ in 0..5 {
            advance(&world, &id).await;
        }
        assert_eq!(turn_of(&world, &id).await, "alice");
    }
    // What is not a deed of the fight stays what it was: a word to the others, out of turn.
    let talk = says(Door::Rules, &mallory, "player_mallory", "I greet the guard.").await.expect(200);
    assert_eq!(talk.body["tool"], "mark_no_check");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_deeds_and_checks_take_the_action() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = brawling(&world).await;
    says(Door::Act, &acme, "player_alice", "I dodge").await.expect(200);
    let own = participant(&world, &id, "alice").await;
    assert_eq!((&own["economy"]["action"], &own["economy"]["dodging"]), (&json!(true), &json!(true)));
    refused(
        Door::Rules,
        &says(Door::Rules, &acme, "player_alice", "I sneak away").await,
        "no_action_left",
        "no action",
    );
    says(Door::Act, &acme, "player_alice", "I end my turn").await.expect(200);
    let sneaks = says(Door::Rules, &acme, "player_mallory", "I sneak away").await.expect(200);
    assert_eq!(sneaks.body["tool"], "resolve_skill_check");
    assert_eq!(participant(&world, &id, "mallory").await["economy"]["action"], true);
    let told = log_of(&acme).await;
    assert!(told.iter().any(|m| m == "Mallory hides."), "{told:#?}");
    assert_eq!(told.iter().filter(|m| m.starts_with("Mallory: Stealth Check")).count(), 1, "{told:#?}");
    // Undone as one.
    world.post(&format!("/turns/{}/undo", turn_id(&sneaks.body)), json!({})).await.expect(200);
    assert_eq!(participant(&world, &id, "mallory").await["economy"]["action"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_by_name_takes_the_action_in_its_turn() {
    for door in CHECKS {
        let server = Server::start().await;
        let acme = tenant(&server, "acme").await;
        let world = town(&acme).await;
        let id = brawling(&world).await;
        let alice = player(&acme, "player_alice").await;
        let done = says(door, &alice, "player_alice", "").await.expect(200);
        let own = participant(&world, &id, "alice").await;
        assert_eq!(own["economy"]["action"], true, "{door:?}: {}", done.text);
        let told = log_of(&acme).await;
        assert!(told.iter().any(|m| m == "Alice hides."), "{door:?}: {told:#?}");
        assert_eq!(told.iter().filter(|m| m.starts_with("Alice: Stealth Check")).count(), 1, "{door:?}: {told:#?}");
        // One action a turn, by whatever door.
        for door in all_doors() {
            let again = says(door, &alice, "player_alice", "I attack thug 1 with my longsword").await;
            refused(door, &again, "no_action_left", "no action left");
        }
        assert_eq!(log_of(&acme).await.iter().filter(|m| m.starts_with("Alice: Stealth Check")).count(), 1);
        // Dice alone are free, in anybody's turn.
        let dice = json!({ "player_id": "player_mallory", "arguments": { "expr": "1d20" } });
        world.post("/commands/roll", dice).await.expect(200);
        // Undone as one.
        world.post(&format!("/turns/{}/undo", turn_id(&done.body)), json!({})).await.expect(200);
        assert_eq!(participant(&world, &id, "alice").await["economy"]["action"], false, "{door:?}");
        assert!(!log_of(&acme).await.iter().any(|m| m == "Alice hides."), "{door:?}");
    }
}

/// A check in a fight is made as the fight knows the character, and nobody who lies unconscious tries anything.
#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_act_makes_no_check() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = brawling(&world).await;
    let falls = json!({ "action": "damage", "target_id": "alice", "amount": 100 });
    world.post(&format!("/encounters/{id}/actions"), falls).await.expect(200);
    for door in CHECKS {
        let done = says(door, &acme, "player_alice", "").await.expect(200);
        assert_eq!(done.body["result"]["impossible"], true, "{door:?}: {}", done.text);
    }
    assert_eq!(participant(&world, &id, "alice").await["economy"]["action"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_goes_elsewhere_during_a_fight() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = brawling(&world).await;
    let before = world.get("/characters/player_alice").await.expect(200).body["location"].clone();
    let goes = async || {
        let body = json!({ "player_id": "player_alice", "arguments": { "location": "harbour" } });
        world.post("/commands/move", body).await
    };
    let refusal = goes().await.problem(409, "encounter_not_ended");
    assert!(refusal.text.contains("Alice is in a fight and cannot go elsewhere."), "{}", refusal.text);
    assert_eq!(world.get("/characters/player_alice").await.expect(200).body["location"], before);
    // A tenant whose planner may move says so in a sentence, too.
    let features = json!({ "features": { "planner_commands": ["move"] } });
    acme.patch("/v1/tenant", features).await.expect(200);
    let plan = json!({ "command": "move", "args": { "location": "harbour" }, "confidence": 0.9 }).to_string();
    server.model.set_script(Script::replies([Reply::text(plan)]));
    let planned = says(Door::Act, &acme, "player_alice", "I go to the harbour").await;
    refused(Door::Act, &planned, "encounter_not_ended", "End the fight first.");
    // When the fight is over, she goes.
    world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "fled" })).await.expect(200);
    goes().await.expect(200);
    assert_eq!(world.get("/characters/player_alice").await.expect(200).body["location"], "harbour");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_an_npc_is_no_deed() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let fight = json!({ "participants": [{ "id": "alice", "character_id": "player_alice", "initiative": 20 },
        { "id": "bob", "npc_id": "innkeeper_bob", "is_enemy": true, "initiative": 10 }] });
    let id = begin(&world, fight).await;
    server.model.set_script(Script::always(Reply::text("You would not dare.")));
    let alice = player(&acme, "player_alice").await;
    let before = participant(&world, &id, "bob").await;
    let talk = alice.npc_turn("port-town", "innkeeper_bob", "player_alice", "I attack you with my longsword!").await;
    assert_eq!(talk.expect(200).body["narrative"], "You would not dare.");
    let own = participant(&world, &id, "alice").await;
    assert_eq!((&own["economy"]["action"], &own["statistics"]["attacks_made"]), (&json!(false), &json!(0)));
    assert_eq!(participant(&world, &id, "bob").await, before);
    // Nor does it need a turn.
    advance(&world, &id).await;
    alice.npc_turn("port-town", "innkeeper_bob", "player_alice", "I attack you!").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_words_at_once_one_spends_the_action() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = brawling(&world).await;
    let words = |n: usize| {
        let door = if n.is_multiple_of(2) { Door::Act } else { Door::Do };
        says(door, &acme, "player_alice", "I attack thug 1 with my longsword")
    };
    let all = join_all((0..8).map(words)).await;
    let done = all.iter().filter(|a| a.text.contains("Alice attacks Thug 1")).count();
    assert_eq!(done, 1, "{:#?}", all.iter().map(|a| &a.text).collect::<Vec<_>>());
    let own = participant(&world, &id, "alice").await;
    assert_eq!(own["statistics"]["attacks_made"], 1);
    let told = log_of(&acme).await;
    assert_eq!(told.iter().filter(|m| m.starts_with("Alice attacks Thug 1 with Longsword:")).count(), 1, "{told:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_acts_and_tells_once() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = brawling(&world).await;
    let path = world.path("/act");
    let body = json!({ "player_id": "player_alice", "message": "I end my turn" });
    let first = acme.post_with_key(&path, "once", body.clone()).await.expect(200);
    let again = acme.post_with_key(&path, "once", body).await.expect(200);
    assert_eq!((first.body, again.header("idempotency-replayed")), (again.body.clone(), "true"));
    let path = world.path(&format!("/encounters/{id}/actions"));
    let dodge = json!({ "action": "dodge" });
    for _ in 0..2 {
        acme.post_with_key(&path, "twice", dodge.clone()).await.expect(200);
    }
    let told = log_of(&acme).await;
    assert_eq!(told.iter().filter(|m| m.contains("Alice's turn is over.")).count(), 1, "{told:#?}");
    assert_eq!(told.iter().filter(|m| *m == "Mallory dodges.").count(), 1, "{told:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_fight_words_do_what_they_did() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    world.patch("/npcs/innkeeper_bob", json!({ "location": "starting_room" })).await.expect(200);
    let hit = says(Door::Rules, &acme, "player_alice", "I attack Bob").await.expect(200);
    assert_eq!(hit.body["arguments"]["target"], "innkeeper_bob", "{}", hit.text);
    assert!(hit.body["parsed"].get("dc_or_ac").is_some());
    // A fight that others fight, or that is over, is none of hers.
    let fight =
        json!({ "participants": [{ "id": "m", "character_id": "player_mallory" }, super::foe("thug", "Thug", 1)] });
    let other = super::begin(&world, fight).await;
    let own = brawling(&world).await;
    world.post(&format!("/encounters/{own}/end"), json!({ "outcome": "fled" })).await.expect(200);
    let hit = says(Door::Rules, &acme, "player_alice", "I attack Bob").await.expect(200);
    assert_eq!(hit.body["arguments"]["target"], "innkeeper_bob", "{}", hit.text);
    assert_eq!(participant(&world, &other, "thug").await["hp"], 932_177);
}

/// Those whom a model plays act where they stand, too, also if their calls do not name the fight.
#[tokio::test(flavor = "multi_thread")]
async fn who_a_model_plays_acts_in_the_fight_it_stands_in() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let fists = json!({ "hp": 30, "max_hp": 30, "attacks": [{ "name": "Fist", "bonus": 30, "damage": "1d4+1", "damage_type": "bludgeoning" }] });
    let armed = json!({ "stats": fists, "available_tools": ["resolve_attack"] });
    world.patch("/npcs/innkeeper_bob", armed).await.expect(200);
    let fight = json!({ "participants": [{ "id": "bob", "npc_id": "innkeeper_bob", "is_enemy": true, "initiative": 20 },
        { "id": "alice", "character_id": "player_alice", "initiative": 10 }] });
    let id = super::begin(&world, fight).await;
    let strike = Reply::tool("resolve_attack", json!({ "target": "Alice" }));
    server.model.set_script(Script::replies([strike.clone(), Reply::text("Take that!"), strike, Reply::text("Hm.")]));
    let turn = world.bob("player_alice", "I insult Bob.").await.expect(200);
    assert_eq!(turn.body["tool_calls"][0]["status"], "succeeded", "{}", turn.text);
    assert_eq!(participant(&world, &id, "bob").await["statistics"]["attacks_made"], 1, "{}", turn.text);
    let again = world.bob("player_alice", "I insult Bob again.").await.expect(200);
    assert_eq!(again.body["tool_calls"][0]["error"]["code"], "no_action_left", "{}", again.text);
    assert_eq!(world.get("/characters/player_alice").await.expect(200).body["hp"], 100, "only the fight knows");
    // A character's own action need not name the fight either.
    advance(&world, &id).await;
    let call = json!({ "arguments": { "action": "dodge" }, "actor": { "type": "character", "id": "player_alice" } });
    world.post("/tools/encounter_action", call).await.expect(200);
    assert_eq!(participant(&world, &id, "alice").await["economy"]["dodging"], true);
}

/// Without squares a move has a length only, which counts.
#[tokio::test(flavor = "multi_thread")]
async fn words_say_how_far_somebody_goes() {
    for door in DOORS {
        let server = Server::start().await;
        let acme = tenant(&server, "acme").await;
        let world = town(&acme).await;
        begin(&world, brawl()).await;
        let alice = player(&acme, "player_alice").await;
        says(door, &alice, "player_alice", "I move 20 feet").await.expect(200);
        assert!(log_of(&acme).await.iter().any(|told| told == "Alice moves 20 feet."), "{door:?}");
        let far = says(door, &alice, "player_alice", "I move 20 feet").await;
        assert!(far.text.contains("10"), "{door:?}: {}", far.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_move_towards_somebody_and_away_and_strike_at_who_leaves() {
    for door in DOORS {
        let server = Server::start().await;
        let acme = tenant(&server, "acme").await;
        let world = town(&acme).await;
        let mut placed = brawl();
        for (index, (x, y)) in [(0, 0), (20, 20), (10, 0), (20, 0), (25, 0), (30, 0)].into_iter().enumerate() {
            placed["participants"][index]["position"] = json!({ "x": x, "y": y });
        }
        let id = begin(&world, placed).await;
        let place = async |who: &str| participant(&world, &id, who).await["position"].clone();
        let alice = player(&acme, "player_alice").await;
        says(door, &alice, "player_alice", "I move towards thug 1").await.expect(200);
        assert_eq!(place("alice").await["x"], 6, "{door:?}: 30 feet");
        let far = says(door, &alice, "player_alice", "I move towards thug 1").await;
        refused(door, &far, "no_action_left", "no movement left");
        says(door, &alice, "player_alice", "I dash").await.expect(200);
        says(door, &alice, "player_alice", "I walk up to thug 1").await.expect(200);
        assert_eq!(place("alice").await["x"], 9, "{door:?}: next to it, no farther");

        // In the thug's turn: it leaves, and who stood next to it strikes.
        advance(&world, &id).await;
        advance(&world, &id).await;
        assert_eq!(turn_of(&world, &id).await, "thug-1");
        let early = says(door, &alice, "player_alice", "I attack thug 1 with my longsword").await;
        refused(door, &early, "not_your_turn", "It is Thug 1's turn.");
        let leaves = json!({ "action": "move", "target_id": "alice", "away": true });
        world.post(&format!("/encounters/{id}/actions"), leaves).await.expect(200);
        says(door, &alice, "player_alice", "I attack thug 1 with my longsword").await.expect(200);
        let own = participant(&world, &id, "alice").await;
        assert_eq!((&own["economy"]["reaction"], &own["statistics"]["attacks_made"]), (&json!(true), &json!(1)));
        let again = says(door, &alice, "player_alice", "I attack thug 1 with my longsword").await;
        refused(door, &again, "not_your_turn", "It is Thug 1's turn.");

        // Her own turn again: away from it.
        while turn_of(&world, &id).await != "alice" {
            advance(&world, &id).await;
        }
        let before = place("alice").await;
        says(door, &alice, "player_alice", "I retreat from thug 1 and run to safety").await.expect(200);
        assert_ne!(place("alice").await, before, "{door:?}");
        let told = log_of(&acme).await;
        assert!(told.iter().any(|m| m.contains("Alice moves")), "{told:#?}");
    }
}
