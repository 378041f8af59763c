//! The AI is paused, for a campaign or for some of its NPCs and owners.

use edge::{tenant_settings::service::set_limits, tenants::TenantLimits, users::Role};
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::{
    admin::Visitor,
    play::token,
    support::{Client, Server, World, until},
};

const ALICE: &str = "player_alice";

async fn pause(world: &World<'_>, paused: Value) {
    world.patch("", json!({ "settings": { "ai_paused": paused } })).await.expect(200);
}

/// Alice's own token.
async fn alice<'a>(tenant: &Client<'a>) -> Client<'a> {
    Client { server: tenant.server, tenant: tenant.tenant, credential: token(tenant, ALICE).await }
}

fn says(what: &str) -> Value {
    json!({ "player_id": ALICE, "action": what })
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_paused_answers_only_game_masters() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let alice = alice(&tenant).await;
    world.post("/npcs", json!({ "slug": "ada", "name": "Ada" })).await.expect(201);
    world.post("/npcs", json!({ "slug": "cleo", "name": "Cleo", "greetings": ["Welcome."] })).await.expect(201);
    server.model.set_script(Script::always(Reply::text("Well met.")));
    let [bob, ada, council] = ["/npcs/innkeeper_bob/turns", "/npcs/ada/turns", "/owners/town_council_owner/turns"]
        .map(|path| world.path(path));
    alice.post(&ada, says("Hello.")).await.expect(200);
    // One of them, although the prompt is in a cache, by slug or by id.
    let ada_id = world.get("/npcs/ada").await.expect(200).id();
    for named in ["ada", &ada_id] {
        pause(&world, json!({ "entities": [named] })).await;
        let refused = alice.post(&ada, says("Hello?")).await.problem(409, "paused");
        assert!(
            refused.body["detail"].as_str().unwrap().starts_with("Ada does not answer for now"),
            "{}",
            refused.text
        );
    }
    alice.post(&bob, says("Hello.")).await.expect(200);
    // A program acts for players, whatever its scopes are.
    tenant.post(&ada, says("Hello?")).await.problem(409, "paused");
    // Everybody, also those who would only greet.
    pause(&world, json!({ "all": true, "entities": [] })).await;
    for path in [&bob, &ada, &council] {
        alice.post(path, says("Hello?")).await.problem(409, "paused");
    }
    let greet = json!({ "player_id": ALICE });
    alice.post(&world.path("/npcs/cleo/greet"), greet).await.problem(409, "paused");
    let asked = server.model.request_count();
    let deed = json!({ "player_id": ALICE, "arguments": { "message": "I climb the wall." } });
    alice.post(&world.path("/commands/do"), deed).await.problem(409, "paused");
    assert_eq!(server.model.request_count(), asked, "no model was asked");
    // What needs no model goes on.
    let roll = json!({ "player_id": ALICE, "arguments": { "expr": "1d20" } });
    alice.post(&world.path("/commands/roll"), roll).await.expect(200);
    // What a game master asks for in the editor is answered.
    let turn = world.get("/turns?kind=npc").await.expect(200).items()[0]["id"].as_str().unwrap().to_owned();
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let again = format!("/admin/c/port-town/turns/{turn}/again");
    let tried = mara.post(&again, &[]).await.expect(303);
    assert!(!tried.header("set-cookie").starts_with("tavernkeep_message=!"), "{}", tried.header("set-cookie"));
    assert!(tried.header("location").contains("/turns/") && !tried.header("location").ends_with(&turn));
    // Nothing of what was refused is in the log.
    let log = world.get("/messages?limit=200").await.expect(200).text;
    assert!(!log.contains("Hello?") && !log.contains("I climb the wall."), "{log}");
    pause(&world, Value::Null).await;
    alice.post(&bob, says("Hello again.")).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_planner_is_unavailable_and_sessions_wait() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let limits = TenantLimits { planner_per_player_per_minute: 0, ..TenantLimits::unlimited() };
    set_limits(&mut server.owner().await, tenant.tenant, &limits).await.unwrap();
    let world = tenant.world().await;
    let alice = alice(&tenant).await;
    let plan = json!({ "plan": { "command": "roll", "args": { "expr": "1d6" }, "confidence": 0.98 } }).to_string();
    server.model.set_script(Script::always(Reply::text(&plan)));
    let act = |text: &str| json!({ "player_id": ALICE, "message": text });
    let path = world.path("/act");
    assert_eq!(alice.post(&path, act("roll a d6")).await.expect(200).body["outcome"], "executed");
    pause(&world, json!({ "all": true })).await;
    let told = alice.post(&path, act("roll another d6")).await.expect(200).body;
    assert_eq!(told["outcome"], "unavailable", "{told}");
    assert!(told["message"].as_str().unwrap().contains("a game master has paused the AI"), "{told}");
    assert_eq!(tenant.post(&path, act("roll a third d6")).await.expect(200).body["outcome"], "unavailable");
    let session = world.post("/sessions", json!({ "client_id": "vtt" })).await.expect(201).id();
    let turns = format!("/sessions/{session}/turns");
    world.post(&turns, json!({ "instruction": "Go on." })).await.problem(409, "paused");
    server.model.set_script(Script::always(Reply::text("The tide turns.")));
    pause(&world, json!({ "all": false, "entities": ["innkeeper_bob"] })).await;
    world.post(&turns, json!({ "instruction": "Go on." })).await.expect(200);
}

/// Reactions and prayers wait, without a worker that turns in circles, and run when the pause ends.
#[tokio::test(flavor = "multi_thread")]
async fn reactions_wait_until_the_pause_ends() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for who in ["/characters/player_alice", "/npcs/innkeeper_bob"] {
        world.patch(who, json!({ "location": "town_square" })).await.expect(200);
    }
    world.patch("/npcs/innkeeper_bob", json!({ "reaction_threshold": 5 })).await.expect(200);
    server.model.set_script(Script::always(Reply::text("I saw that!")));
    pause(&world, json!({ "entities": ["innkeeper_bob"] })).await;
    let act = json!({ "player_id": ALICE, "type": "attack", "targets": ["innkeeper_bob"] });
    let triggered = world.post("/actions", act).await.expect(202);
    assert_eq!(triggered.body["triggered"].as_array().unwrap().len(), 1, "{}", triggered.text);
    // Somebody else's goes past it.
    world.post("/pray", json!({ "player_id": ALICE, "message": "Hear me." })).await.expect(202);
    let count = async |state: &str| world.get(&format!("/reactions?status={state}")).await.expect(200).items().len();
    until("the prayer is answered", async || count("done").await == 1).await;
    assert_eq!((count("waiting").await, server.model.request_count()), (1, 1));
    pause(&world, json!({ "all": true })).await;
    world.post("/pray", json!({ "player_id": ALICE, "message": "Hear me again." })).await.expect(202);
    world.get("/reactions").await.expect(200);
    assert_eq!(count("waiting").await, 2);
    pause(&world, Value::Null).await;
    until("all have reacted", async || count("done").await == 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setting_is_checked() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (paused, pointer) in [
        (json!(true), "/settings/ai_paused"),
        (json!({ "all": "yes" }), "/settings/ai_paused/all"),
        (json!({ "some": true }), "/settings/ai_paused/some"),
        (json!({ "entities": vec!["x"; 501] }), "/settings/ai_paused/entities"),
    ] {
        let refused =
            world.patch("", json!({ "settings": { "ai_paused": paused } })).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), [pointer], "{}", refused.text);
    }
}
