//! What is kept of a session's prompt is used only while it is true: whatever changes, a server that kept everything and one that
//! has just started write the same.

use reqwest::Method;
use serde_json::{Value, json};

use super::Session;
use crate::support::{Client, Server, World};

/// The prompt, without whether it was kept.
async fn told(client: &Client<'_>, world: &World<'_>, session: &Session<'_>) -> Value {
    let path = world.path(&session.path("/prompt"));
    let mut preview = client.post(&path, json!({ "instruction": "Describe the harbour." })).await.expect(200).body;
    preview["cache"].take();
    preview
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_never_told_when_it_is_no_longer_true() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    let scene = world.post("/scenes", json!({ "name": "Quay", "active": true })).await.expect(201).id();
    let zone = json!({ "title": "Gull cove", "scope": "zone", "associated_id": "Cove", "content": "Gulls nest here." });
    world.post("/lore", zone).await.expect(201);
    let mut turns = Vec::new();
    let changes: Vec<(Method, String, Value)> = vec![
        (Method::PATCH, String::new(), json!({ "description": "A town of salt and ropes." })),
        (Method::PATCH, String::new(), json!({ "game_time": "Second night" })),
        (
            Method::POST,
            "/lore".into(),
            json!({ "slug": "tide", "title": "Tide", "scope": "global", "content": "It is high." }),
        ),
        (Method::PATCH, "/lore/tide".into(), json!({ "content": "It is low." })),
        (Method::PATCH, "/lore/tide".into(), json!({ "activation": "keyword", "keys": ["harbour"] })),
        (Method::PATCH, format!("/scenes/{scene}"), json!({ "location": "Cove" })),
        (Method::PATCH, format!("/scenes/{scene}"), json!({ "active": false })),
        (Method::POST, "/messages".into(), json!({ "content": "Listen, the tide!" })),
        (
            Method::POST,
            session.path("/events"),
            json!({ "events": [{ "type": "chat_message", "data": { "content": "Who goes there?" } }] }),
        ),
        (
            Method::PUT,
            session.path("/world-state"),
            json!({ "active_scene": { "id": "s", "name": "Cove", "tokens": [] } }),
        ),
        (Method::POST, "/encounters".into(), json!({ "participants": [{ "id": "orc", "hp": 9, "max_hp": 9 }] })),
        (Method::PATCH, session.path(""), json!({ "role": "player", "player_id": "player_alice" })),
        (Method::PATCH, "/characters/player_alice".into(), json!({ "race": "gull" })),
        (Method::PATCH, session.path(""), json!({ "role": "gm", "player_id": null })),
        (Method::PATCH, String::new(), json!({ "settings": { "prompt_budgets": { "history": 40 } } })),
        (Method::DELETE, "/lore/tide".into(), Value::Null),
    ];
    for (method, path, body) in changes {
        turns.push(session.turn().await["id"].as_str().unwrap().to_owned());
        let fresh = Server::on(server.db.clone(), &[]).await;
        let there = tenant.at(&fresh);
        assert_eq!(
            told(&tenant, &world, &session).await,
            told(&there, &world, &session).await,
            "before {method} {path}"
        );
        let request = tenant.request(method.clone(), &world.path(&path));
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = tenant.send(request).await;
        assert!(answer.status < 300, "{method} {path}: {}", answer.text);
        assert_eq!(
            told(&tenant, &world, &session).await,
            told(&there, &world, &session).await,
            "after {method} {path} {body}"
        );
    }
    // The conversation, which another server lengthens, and which shrinks.
    let fresh = Server::on(server.db.clone(), &[]).await;
    let there = tenant.at(&fresh);
    there.post(&world.path(&session.path("/turns")), json!({})).await.expect(200);
    assert_eq!(told(&tenant, &world, &session).await, told(&there, &world, &session).await);
    let last = turns.last().unwrap();
    world.post(&format!("/turns/{last}/undo"), json!({})).await.expect(200);
    assert_eq!(told(&tenant, &world, &session).await, told(&there, &world, &session).await, "after an undo");
    let gone = world.get("/messages?sort=created_at").await.expect(200);
    let gone = gone.items().iter().find(|m| m["author"] == "ai").unwrap()["id"].as_str().unwrap().to_owned();
    world.delete(&format!("/messages/{gone}")).await.expect(204);
    assert_eq!(told(&tenant, &world, &session).await, told(&there, &world, &session).await, "after a deletion");
    // What did not move is kept.
    session.turn().await;
    let path = world.path(&session.path("/prompt"));
    assert_eq!(tenant.post(&path, json!({})).await.expect(200).body["cache"], "hit");
}
