//! Every command, given by itself.

use ai::commands::REGISTRY;
use edge::caller::Scope;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{history, rolls, tenant};
use crate::support::{Answer, Server, World};

async fn give(world: &World<'_>, name: &str, arguments: Value) -> Answer {
    world.post(&format!("/commands/{name}"), json!({ "player_id": "player_alice", "arguments": arguments })).await
}

/// A tenant's settings may name every command and nothing else.
#[test]
fn settings_know_the_names_of_all_commands() {
    let names: Vec<_> = REGISTRY.iter().map(|command| command.name).collect();
    assert_eq!(names, edge::tenants::commands::NAMES);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_does_what_it_says() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    let mut given = Vec::new();
    for (name, arguments, visibility, says) in [
        ("roll", json!({ "expr": "2d1+3" }), "public", "Alice rolls 2d1+3: 5"),
        ("check", json!({ "skill": "sleight_of_hand", "dc": 1 }), "public", "Alice: Sleight of hand Check"),
        (
            "check",
            json!({ "ability": "wis", "dc": 40, "advantage": "disadvantage" }),
            "public",
            "against 40: failure by ",
        ),
        (
            "sheet.create",
            json!({ "name": "Aria", "weapons": [{ "name": "Rapier" }] }),
            "ephemeral",
            "Aria is ready to play as aria",
        ),
        ("sheet.show", json!({}), "ephemeral", "Alice: level 1 human adventurer, 100 of 100 hit points"),
        ("sheet.show", json!({ "name": "aria" }), "ephemeral", "Aria: level 1"),
        ("ooc", json!({ "message": " Back in five. " }), "public", "Back in five."),
        ("move", json!({ "location": "Harbour" }), "public", "Alice goes to Harbour"),
        ("use_skill", json!({ "skill": "persuasion", "target": "Innkeeper Bob" }), "public", "Alice: Persuasion Check"),
        ("rest", json!({ "type": "short" }), "public", "Alice takes a short rest."),
        ("rest", json!({ "type": "long" }), "public", "Alice sleeps and regains"),
        ("pray", json!({ "message": "Let it rain." }), "ephemeral", "Alice prays, and nobody answers yet"),
        ("do", json!({ "message": "I sneak past the guard" }), "public", "Alice: Stealth Check"),
    ] {
        let done = give(&world, name, arguments).await.expect(200).body;
        assert_eq!((&done["command"], &done["visibility"]), (&json!(name), &json!(visibility)), "{done}");
        assert!(done["message"].as_str().unwrap().contains(says), "{done}");
        assert!(done["result"].is_object(), "{done}");
        assert_eq!(done.get("turn_id").is_some(), ["check", "do", "use_skill", "rest"].contains(&name));
        given.push(name);
    }
    assert!(REGISTRY.iter().all(|c| given.contains(&c.name)), "a command is not tried here");
    // What is public is in the history; what is not, is not.
    let said = history(&world).await;
    assert_eq!(said.len(), 11, "{said:?}");
    assert!(said.iter().all(|line| !line.contains("Aria")), "{said:?}");
    assert!(said.contains(&"Back in five.".to_owned()) && said.contains(&"I sneak past the guard".to_owned()));
    assert_eq!(world.get("/characters/player_alice").await.expect(200).body["location"], "Harbour");
    // What the rules decided can be told by a later turn, and undone.
    let check = give(&world, "check", json!({ "skill": "stealth", "dc": 10 })).await.expect(200).body;
    let turn = check["turn_id"].as_str().unwrap();
    let told = json!({ "player_id": "player_alice", "action": "Well?", "mechanics_turn_id": turn });
    let told = world.post("/npcs/innkeeper_bob/turns", told).await.expect(200).body;
    assert_eq!(told["mechanics"]["parsed"]["total"], check["result"]["total"]);
    let kept = world.get(&format!("/turns/{turn}")).await.expect(200).body;
    assert_eq!(
        (&kept["kind"], &kept["model"], &kept["usage"]["llm_calls"]),
        (&json!("rules"), &json!("none"), &json!(0))
    );
    world.post(&format!("/turns/{turn}/undo"), json!({})).await.expect(200);
    assert!(!history(&world).await.contains(&check["message"].as_str().unwrap().to_owned()));
    // A rest can be undone, and nobody rests in a fight or when they are dead.
    world.patch("/characters/player_alice", json!({ "hp": 7 })).await.expect(200);
    let rested = give(&world, "rest", json!({ "type": "long" })).await.expect(200).body;
    let hp = async || world.get("/characters/player_alice").await.expect(200).body["hp"].clone();
    assert_eq!(hp().await, 100);
    world.post(&format!("/turns/{}/undo", rested["turn_id"].as_str().unwrap()), json!({})).await.expect(200);
    assert_eq!(hp().await, 7);
    let fight = json!({ "participants": [{ "id": "alice", "character_id": "player_alice", "initiative": 12 }] });
    let fight = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    give(&world, "rest", json!({ "type": "short" })).await.problem(409, "encounter_not_ended");
    world.post(&format!("/encounters/{fight}/end"), json!({ "outcome": "fled" })).await.expect(200);
    world.patch("/characters/player_alice", json!({ "death_saves": { "failures": 3 }, "hp": 0 })).await.expect(200);
    for (name, arguments) in [("rest", json!({ "type": "long" })), ("pray", json!({ "message": "Help." }))] {
        give(&world, name, arguments).await.problem(409, "dead");
    }
    world.patch("/characters/player_alice", json!({ "death_saves": { "failures": 0 }, "hp": 100 })).await.expect(200);
    // Owners hear a prayer once; until they have answered, the table is told of no other.
    let prayer = || json!({ "message": "Let it rain." });
    world.patch("/characters/player_alice", json!({ "location": "town_square" })).await.expect(200);
    server.model.set_script(Script::always(Reply::text("It may.").held()));
    assert_eq!(give(&world, "pray", prayer()).await.expect(200).body["visibility"], "public");
    assert_eq!(give(&world, "pray", prayer()).await.expect(200).body["visibility"], "ephemeral");
    server.model.let_go(10);
    // `:` counts as `.`.
    give(&world, "sheet:show", json!({})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_checked_with_pointers() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    for (name, arguments, pointer) in [
        ("roll", json!({}), "/arguments/expr"),
        ("roll", json!({ "expr": "two dice" }), "/arguments/expr"),
        ("roll", json!({ "expr": "1d20 + @no.such" }), "/arguments/expr"),
        ("roll", json!({ "expr": "1d20", "seed": 1 }), "/arguments/seed"),
        ("roll", json!([]), "/arguments"),
        ("check", json!({ "dc": 10 }), "/arguments/ability"),
        ("check", json!({ "skill": "luck", "dc": 10 }), "/arguments/skill"),
        ("check", json!({ "skill": "stealth", "dc": 41 }), "/arguments/dc"),
        ("check", json!({ "skill": "stealth", "dc": "15" }), "/arguments/dc"),
        ("check", json!({ "skill": "stealth", "dc": 15, "actor": "player_mallory" }), "/arguments/actor"),
        ("sheet.create", json!({ "level": 3 }), "/arguments/name"),
        ("sheet.create", json!({ "name": "x", "level": 21 }), "/arguments/level"),
        ("sheet.show", json!({ "name": "nobody" }), "/arguments/name"),
        // Parts of words are nobody's name.
        ("sheet.show", json!({ "name": "malaria" }), "/arguments/name"),
        ("sheet.show", json!({ "name": "innkeeper_bob" }), "/arguments/name"),
        ("ooc", json!({ "message": "  " }), "/arguments/message"),
        ("do", json!({ "message": "" }), "/arguments/message"),
        ("move", json!({ "location": "a\nb" }), "/arguments/location"),
        ("use_skill", json!({ "skill": "stealth", "target": "nobody" }), "/arguments/target"),
        ("rest", json!({}), "/arguments/type"),
        ("rest", json!({ "type": "nap" }), "/arguments/type"),
        ("rest", json!({ "type": "short", "hit_dice": -1 }), "/arguments/hit_dice"),
        ("pray", json!({ "message": " " }), "/arguments/message"),
    ] {
        let answer = give(&world, name, arguments.clone()).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{name} {arguments}");
    }
    let long = json!({ "name": "Aria", "inventory": ["x".repeat(17 * 1024)] });
    give(&world, "sheet.create", long).await.problem(413, "payload_too_large");
    let taken = json!({ "name": "Aria", "slug": "player_alice" });
    give(&world, "sheet.create", taken).await.problem(409, "slug_taken");
    give(&world, "bananas", json!({})).await.problem(404, "not_found");
    let nobody = json!({ "player_id": "nobody", "arguments": { "expr": "1d20" } });
    assert_eq!(world.post("/commands/roll", nobody).await.problem(422, "validation_failed").pointers(), ["/player_id"]);
    assert_eq!((rolls(&world).await, history(&world).await.len()), (0, 0));
    assert_eq!(server.model.request_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_is_what_a_caller_may_give() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    let names = async |caller: &crate::support::Client<'_>| -> Vec<String> {
        let list = caller.get(&world.path("/commands")).await.expect(200);
        list.items().iter().map(|c| c["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&acme).await, REGISTRY.iter().map(|c| c.name).collect::<Vec<_>>());
    let list = world.get("/commands").await.expect(200).body;
    insta::with_settings!({ snapshot_path => "../snapshots" }, { insta::assert_json_snapshot!("catalogue", list) });
    let reader = acme.with_scopes(&[Scope::Read]).await;
    assert!(names(&reader).await.is_empty());
    let player =
        acme.token(json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": "player_alice" })).await;
    assert_eq!(names(&player).await, ["roll", "check", "sheet.show", "do", "ooc", "move", "use_skill", "rest", "pray"]);
    // And what is not listed cannot be given.
    let aria = json!({ "player_id": "player_alice", "arguments": { "name": "Aria" } });
    player.post(&world.path("/commands/sheet.create"), aria.clone()).await.problem(403, "forbidden");
    let playing = acme.with_scopes(&[Scope::Play]).await;
    playing.post(&world.path("/commands/sheet.create"), aria).await.problem(403, "forbidden");
    let hers = json!({ "player_id": "player_mallory", "arguments": { "expr": "1d20" } });
    player.post(&world.path("/commands/roll"), hers.clone()).await.problem(403, "forbidden");
    player
        .post(&world.path("/commands/do"), json!({ "player_id": "player_mallory", "arguments": { "message": "x" } }))
        .await
        .problem(403, "forbidden");
    playing.post(&world.path("/commands/roll"), hers).await.expect(200);
    // A player's command is what a player's tool call is not.
    player
        .post(&world.path("/tools/roll_dice"), json!({ "arguments": { "rolls": [{ "formula": "1d20" }] } }))
        .await
        .problem(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deed_is_a_turn_with_a_key() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    let path = world.path("/commands/do");
    let body = json!({ "player_id": "player_alice", "arguments": { "message": "I climb" }, "channel": "table-1" });
    server.model.set_script(Script::replies([
        Reply::tool("resolve_skill_check", json!({ "skill": "athletics", "dc": 10 })),
        Reply::text("Up she goes."),
    ]));
    let first = acme.post_with_key(&path, "k", body.clone()).await.expect(200);
    let again = acme.post_with_key(&path, "k", body).await.expect(200);
    assert_eq!((again.header("idempotency-replayed"), &again.text), ("true", &first.text));
    assert_eq!((rolls(&world).await, server.model.request_count()), (1, 2));
    assert_eq!(first.body["result"]["narration"], "Up she goes.");
    let turn = world.get(&format!("/turns/{}", first.body["turn_id"].as_str().unwrap())).await.expect(200).body;
    assert_eq!(
        (&turn["kind"], &turn["narration"], &turn["usage"]["llm_calls"]),
        (&json!("rules"), &json!("Up she goes."), &json!(2))
    );
    let scene = world.get("/scenes?q=table-1").await.expect(200).items()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.get(&format!("/messages?scene_id={scene}")).await.expect(200).items().len(), 3);
}
