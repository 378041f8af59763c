//! What a frontend reports over its connection is what it would report over REST.

use edge::caller::Scope;
use serde_json::{Value, json};

use super::{Socket, fight};
use crate::support::Server;

/// Events of every type, as frames and as REST takes them.
fn reports() -> Vec<(&'static str, Value)> {
    vec![
        ("chat_message", json!({ "id": "m1", "content": "Who goes there?", "speaker": { "name": "Ann" } })),
        (
            "dice_roll",
            json!({ "id": "m2", "formula": "1d20 + 5", "total": 19, "results": [14], "flavor": "Perception" }),
        ),
        ("chat_message", json!({ "content": "Psst.", "whisper": ["gm"], "timestamp": 5, "flags": {} })),
        ("message_deleted", json!({ "id": "m1" })),
        ("combat_state", fight(1)),
        ("combat_state", fight(2)),
        ("token_moved", json!({ "token_id": "t1", "x": 3, "y": 4 })),
        ("game_delta", json!({ "hasChanges": true, "DoorStateChanged": [{ "door_id": "d1", "new_state": "open" }] })),
        ("world_state", json!({ "active_scene": { "id": "s1", "name": "Crypt" } })),
        ("world_state", json!({ "active_scene": { "id": "s2", "name": "Vault" } })),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_the_same_as_events_over_rest() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    tenant.post("/v1/campaigns", json!({ "slug": "twin", "name": "Twin" })).await.expect(201);
    let rest = tenant.post("/v1/campaigns/twin/sessions", json!({ "client_id": "vtt" })).await.expect(201).id();
    let (mut socket, connected) = Socket::connect(&server.url, &tenant.credential, json!({})).await;
    for (i, (kind, data)) in reports().into_iter().enumerate() {
        // Names that other frontends use for the same.
        let alias = match (kind, i) {
            ("combat_state", 5) => "combat_context",
            ("world_state", 9) => "world_state_sync",
            _ => kind,
        };
        let frame = if alias == "combat_context" { data["combat_state"].clone() } else { data.clone() };
        socket.send(json!({ "type": alias, "request_id": i.to_string(), "data": frame })).await;
        let ack = socket.next_of("ack").await;
        let events = json!({ "events": [{ "type": kind, "data": data }] });
        let mut twin =
            tenant.post(&format!("/v1/campaigns/twin/sessions/{rest}/events"), events).await.expect(200).body;
        let mut results = ack["data"]["results"].clone();
        for result in [&mut results, &mut twin["results"]] {
            result[0].as_object_mut().unwrap().remove("message_id");
        }
        assert_eq!(results, twin["results"], "{kind}");
    }
    let session = connected["session_id"].as_str().unwrap();
    let over_bridge = world.get(&format!("/sessions/{session}/delta")).await.expect(200).body;
    let over_rest = tenant.get(&format!("/v1/campaigns/twin/sessions/{rest}/delta")).await.expect(200).body;
    assert_eq!(over_bridge, over_rest);
    assert_eq!((&over_bridge["NewMessages"], &over_bridge["DeletedMessages"]), (&json!(3), &json!(1)));
    assert_eq!(over_bridge["NewDiceRolls"][0]["result"], 19);
    assert_eq!((&over_bridge["EncounterStarted"]["id"], &over_bridge["TurnAdvanced"]), (&json!("c1"), &json!(true)));
    let shown = |messages: &Vec<Value>| -> Vec<Value> {
        messages
            .iter()
            .map(|m| json!([m["type"], m["content"], m["roll"], m["speaker"], m["whisper_to"], m["author"]]))
            .collect()
    };
    let twin = tenant.get("/v1/campaigns/twin/messages").await.expect(200);
    assert_eq!(shown(world.get("/messages").await.expect(200).items()), shown(twin.items()));
    let scrape = server.anonymous().get("/metrics").await.text;
    assert!(scrape.contains("tavernkeep_bridge_frames_total{direction=\"in\",type=\"event\"}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn players_report_themselves_only() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    let token = tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice" })).await;
    let (mut socket, connected) =
        Socket::connect(&server.url, &token.credential, json!({ "client_id": "phone" })).await;
    socket.send(json!({ "type": "chat_message", "request_id": "1", "data": { "content": "Hello." } })).await;
    let id = socket.next().await["data"]["results"][0]["message_id"].as_str().unwrap().to_owned();
    let message = world.get(&format!("/messages/{id}")).await.expect(200).body;
    assert_eq!((&message["player_id"], &message["author"]), (&json!(alice), &json!("player")));
    // Under its character's name, whatever name it gives, and over REST the same.
    let told = json!({ "content": "Trust me.", "speaker": { "name": "The Game Master" } });
    socket.send(json!({ "type": "chat_message", "request_id": "2", "data": told })).await;
    socket.next_of("ack").await;
    let events = json!({ "events": [{ "type": "chat_message", "data": told }] });
    token
        .post(&world.path(&format!("/sessions/{}/events", connected["session_id"].as_str().unwrap())), events.clone())
        .await
        .expect(200);
    let said = world.get("/messages").await.expect(200);
    assert!(said.items().len() == 3 && said.items().iter().all(|m| m["speaker"]["name"] == "Alice"), "{}", said.text);
    let others = world.post("/sessions", json!({ "client_id": "other" })).await.expect(201).id();
    token.post(&world.path(&format!("/sessions/{others}/events")), events).await.problem(404, "not_found");
    for (kind, data) in [
        ("chat_message", json!({ "content": "I am Mallory.", "player_id": "player_mallory" })),
        ("chat_message", json!({ "content": "I am the law.", "author": "gm" })),
        ("chat_message", json!({ "content": "I am the machine.", "author": "ai" })),
        ("combat_state", fight(1)),
        ("world_state", json!({ "session_info": { "gm_name": "Me" } })),
        ("item_acquired", json!({ "actor_id": "a", "item_name": "Crown" })),
    ] {
        socket.send(json!({ "type": kind, "data": data })).await;
        assert_eq!(socket.next().await["data"]["code"], "forbidden", "{kind}");
    }
    // A key with `play` reports what players said, in any session, and nobody else's words.
    let bot = tenant.with_scopes(&[Scope::Play]).await;
    let (mut socket, _) = Socket::connect(&server.url, &bot.credential, json!({ "client_id": "bot" })).await;
    socket.send(json!({ "type": "chat_message", "request_id": "1", "data": { "content": "Hi.", "player_id": "player_mallory" } })).await;
    socket.next_of("ack").await;
    socket.send(json!({ "type": "chat_message", "data": { "content": "I rule.", "author": "gm" } })).await;
    assert_eq!(socket.next_of("error").await["data"]["code"], "forbidden");
}
