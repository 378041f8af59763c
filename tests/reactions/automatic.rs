//! What the server itself sees characters do: commands, planned or direct, fights, and words at the table.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{act, ended, settings, threshold, town};
use crate::{
    bridge::Socket,
    play::{Guest, token},
    support::{Server, World},
};

/// What Alice's actions make together, for Bob.
async fn score(world: &World<'_>) -> f64 {
    let standing = world.get("/significance?entity_id=innkeeper_bob").await.expect(200);
    standing.items().first().map_or(0.0, |bob| bob["score"].as_f64().unwrap())
}

async fn command(world: &World<'_>, name: &str, arguments: Value) {
    let body = json!({ "player_id": "player_alice", "arguments": arguments });
    world.post(&format!("/commands/{name}"), body).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_report_themselves_if_the_campaign_says_so() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    command(&world, "move", json!({ "location": "town square" })).await;
    assert_eq!(score(&world).await, 0.0);
    settings(&world, json!({ "report_actions": { "commands": true, "moves": true, "table_events": true } })).await;
    command(&world, "move", json!({ "location": "TOWN-SQUARE" })).await;
    assert_eq!(score(&world).await, 0.0, "she is there already");
    command(&world, "move", json!({ "location": "harbour" })).await;
    assert_eq!(score(&world).await, 0.0, "it concerns those at the harbour");
    world.patch("/characters/player_alice", json!({ "location": "Town Square", "hp": 1 })).await.expect(200);
    assert_eq!(score(&world).await, 1.0, "it does not matter who moves her");
    world.patch("/characters/player_alice", json!({ "hp": 2 })).await.expect(200);
    assert_eq!(score(&world).await, 1.0);
    command(&world, "roll", json!({ "expr": "1d20" })).await;
    assert_eq!(score(&world).await, 1.0, "dice alone are no action");
    command(&world, "check", json!({ "skill": "stealth", "dc": 10 })).await;
    assert_eq!(score(&world).await, 6.0, "a check uses a skill");
    // A plan of the player's words.
    let plan = json!({ "command": "check", "args": { "skill": "stealth", "dc": 10 } });
    server.model.set_script(Script::replies([Reply::text(plan.to_string())]));
    let planned = world.post("/act", json!({ "player_id": "player_alice", "message": "I sneak." })).await.expect(200);
    assert_eq!(planned.body["outcome"], "executed", "{}", planned.text);
    assert_eq!(score(&world).await, 11.0);
    // A command that fails counts nothing.
    let wrong = json!({ "player_id": "player_alice", "arguments": { "skill": "nonsense" } });
    world.post("/commands/check", wrong).await.expect(422);
    assert_eq!(score(&world).await, 11.0);
    // Words at the table.
    let session = world.post("/sessions", json!({ "client_id": "vtt" })).await.expect(201).id();
    let said = |content: &str, whisper: Value| json!({ "type": "chat_message", "data": { "content": content, "speaker": { "name": "Alice" }, "player_id": "player_alice", "whisper_to": whisper } });
    let events = json!({ "events": [said("Good evening!", json!([])), said("Psst.", json!(["gm"]))] });
    world.post(&format!("/sessions/{session}/events"), events).await.expect(200);
    assert_eq!(score(&world).await, 13.0, "a whisper is heard by nobody else");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_at_the_table_count_and_dice_do_not() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    let session = world.post("/sessions", json!({ "client_id": "vtt" })).await.expect(201).id();
    let event = |kind: &str, more: Value| {
        let mut data = json!({ "formula": "1d20", "total": 7, "speaker": "Alice", "player_id": "player_alice" });
        if kind == "chat_message" {
            data = json!({ "content": "Ha!", "speaker": "Alice", "player_id": "player_alice" });
        }
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "type": kind, "data": data })
    };
    let report = async |events: Value| {
        world.post(&format!("/sessions/{session}/events"), json!({ "events": events })).await.expect(200);
    };
    settings(&world, json!({ "report_actions": { "commands": true } })).await;
    report(json!([event("chat_message", json!({}))])).await;
    assert_eq!(score(&world).await, 0.0, "the campaign does not want words");
    settings(&world, json!({ "report_actions": { "table_events": true } })).await;
    let once = event("chat_message", json!({ "id": "w1" }));
    report(json!([event("dice_roll", json!({})), once, once])).await;
    assert_eq!(score(&world).await, 2.0, "what is sent twice counts once, and dice count for nothing");
    // Whispers and a game master's words count for nobody.
    let hidden = [json!({ "whisper_to": ["gm"] }), json!({ "author": "gm" })];
    report(hidden.map(|more| event("chat_message", more)).into()).await;
    assert_eq!(score(&world).await, 2.0);
    // The page at the table.
    let guest = Guest::seated(&server, &token(&tenant, "player_alice").await).await;
    guest.send(guest.form("/play/port-town/roll", &[("formula", "1d6")])).await.expect(303);
    let says = async |text: &str| guest.send(guest.form("/play/port-town/say", &[("text", text)])).await.expect(303);
    says("/ooc Shall we order pizza?").await;
    assert_eq!(score(&world).await, 2.0, "out of character is out of the story");
    says("Ha!").await;
    says("/me laughs.").await;
    assert_eq!(score(&world).await, 6.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn attacks_in_fights_concern_whom_they_are_aimed_at() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    settings(&world, json!({ "report_actions": { "encounters": true } })).await;
    threshold(&world, "npcs/harbour_ilse", 10).await;
    world.patch("/characters/player_alice", json!({ "weapons": [{ "name": "Dagger" }] })).await.expect(200);
    let fight = json!({ "participants": [
        { "id": "alice", "character_id": "player_alice", "initiative": 20 },
        { "id": "ilse", "npc_id": "harbour_ilse", "initiative": 5, "is_enemy": true },
    ] });
    let fight = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    server.model.set_script(Script::always(Reply::text("How dare you!")));
    let attack = json!({ "action": "attack", "target_id": "ilse", "weapon": "dagger" });
    world.post(&format!("/encounters/{fight}/actions"), attack).await.expect(200);
    ended(&world, "done", 1).await;
    let standing = world.get("/significance?entity_id=harbour_ilse").await.expect(200);
    assert_eq!(standing.items()[0]["last_reaction"]["actions"], 1);
}

/// Of what a character does in a fight, only attacks and spells are reported. What a command does is also the command.
#[tokio::test(flavor = "multi_thread")]
async fn only_attacks_and_spells_in_fights_count() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    let sheet = json!({ "weapons": [{ "name": "Dagger" }], "profession": "Wizard", "spells": ["Fire Bolt"] });
    world.patch("/characters/player_alice", sheet).await.expect(200);
    let fight = json!({ "participants": [
        { "id": "alice", "character_id": "player_alice", "initiative": 20 },
        { "id": "thug", "name": "Thug", "hp": 90, "max_hp": 90, "initiative": 5, "is_enemy": true },
    ] });
    let fight = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    let does = async |action: Value| {
        world.post(&format!("/encounters/{fight}/actions"), action).await.expect(200);
    };
    let again = async || {
        does(json!({ "action": "advance_turn" })).await;
        does(json!({ "action": "advance_turn" })).await;
    };
    let dagger = || json!({ "action": "attack", "target_id": "thug", "weapon": "dagger" });
    does(dagger()).await;
    assert_eq!(score(&world).await, 0.0, "the campaign does not want them");
    settings(&world, json!({ "report_actions": { "encounters": true } })).await;
    again().await;
    does(json!({ "action": "dodge" })).await;
    does(json!({ "action": "damage", "target_id": "alice", "amount": 1 })).await;
    does(json!({ "action": "add_condition", "target_id": "alice", "condition": "prone" })).await;
    does(json!({ "action": "remove_condition", "target_id": "alice", "condition": "prone" })).await;
    again().await;
    does(json!({ "action": "attack", "target_id": "thug", "weapon": "dagger", "preview": true })).await;
    assert_eq!(score(&world).await, 0.0);
    does(dagger()).await;
    assert_eq!(score(&world).await, 10.0);
    again().await;
    does(json!({ "action": "cast_spell", "target_id": "thug", "spell_name": "Fire Bolt" })).await;
    assert_eq!(score(&world).await, 17.0);
    // By words: the fight is not asked for more than its attacks.
    again().await;
    let told = [Reply::tool("encounter_action", json!({ "action": "dodge" })), Reply::text("She ducks.")];
    server.model.set_script(Script::replies(told));
    command(&world, "do", json!({ "message": "I dodge." })).await;
    assert_eq!(score(&world).await, 17.0);
    settings(&world, json!({ "report_actions": { "commands": true } })).await;
    again().await;
    let told = [Reply::tool("encounter_action", json!({ "action": "dodge" })), Reply::text("She ducks.")];
    server.model.set_script(Script::replies(told));
    command(&world, "do", json!({ "message": "I dodge." })).await;
    assert_eq!(score(&world).await, 22.0, "the command counts as a skill that was used");
}

/// Frontends are told of a reply that their player can hear.
#[tokio::test(flavor = "multi_thread")]
async fn the_bridge_announces_replies() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    server.model.set_script(Script::always(Reply::text("Well met.")));
    let (mut socket, _) =
        Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "vtt", "role": "gm" })).await;
    act(&world, "talk", json!({})).await.expect(202);
    let announced = socket.next_of("reply").await;
    let reply = &announced["data"]["reply"];
    assert_eq!((&reply["narrative"], &reply["entity"]["slug"]), (&json!("Well met."), &json!("innkeeper_bob")));
    world.post(&format!("/replies/{}/ack", reply["id"].as_str().unwrap()), json!({})).await.expect(204);
    assert_eq!(socket.next_of("chat_response").await["data"]["message"]["content"], "Well met.");
}
