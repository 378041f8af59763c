//! A token lives no longer than what it was narrowed to, and gives nobody's dice.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::support::{Client, Server};

/// Waits until a credential is good for nothing any more: what is known of it is half a second old at most.
async fn ended(client: &Client<'_>, path: &str) {
    let until = Instant::now() + Duration::from_secs(30);
    while client.get(path).await.status != 401 {
        assert!(Instant::now() < until, "the token is still good");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_characters_token_ends() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let token = |player: &str| json!({ "campaign": "port-town", "player_id": player, "scopes": ["read", "play"] });
    let (alice, mallory) = (tenant.token(token("player_alice")).await, tenant.token(token("player_mallory")).await);
    let (npcs, messages) = (world.path("/npcs"), world.path("/messages"));
    for player in [&alice, &mallory] {
        player.get(&npcs).await.expect(200);
    }
    let stream = mallory.request(Method::GET, &world.path("/events")).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    world.delete("/characters/player_mallory").await.expect(204);
    ended(&mallory, &npcs).await;
    mallory.get(&messages).await.problem(401, "unauthenticated");
    let roll = json!({ "rolls": [{ "formula": "1d20" }] });
    mallory.post("/v1/dice/roll", roll).await.problem(401, "unauthenticated");
    alice.get(&npcs).await.expect(200);
    // What it was listening to ends, too.
    world.post("/messages", json!({ "content": "Is anybody there?" })).await.expect(201);
    let told = tokio::time::timeout(Duration::from_secs(60), stream.text()).await.expect("the stream ends");
    assert!(!told.unwrap_or_default().contains("anybody there"));
}

#[tokio::test(flavor = "multi_thread")]
async fn players_give_no_dice() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let fight = json!({ "participants": [{ "character_id": "player_alice", "initiative": 20 }, { "id": "orc", "hp": 9, "max_hp": 9 }] });
    let fight = world.post("/encounters", fight).await.expect(201).id();
    let token = |scopes: &[&str]| json!({ "campaign": "port-town", "player_id": "player_alice", "scopes": scopes });
    let credentials = [
        tenant.token(token(&["read", "write", "play", "tools"])).await,
        tenant.token(token(&["read", "write", "play", "tools", "gm", "admin"])).await,
        tenant.token(json!({ "scopes": ["read", "write", "play", "tools"] })).await,
    ];
    let roll = json!({ "rolls": [{ "formula": "1d20" }], "dice": [20] });
    for client in &credentials {
        for (path, body) in [
            ("/v1/dice/roll".to_owned(), roll.clone()),
            ("/v1/dice/roll".to_owned(), json!({ "rolls": [{ "formula": "1d20" }], "seed": 7 })),
            (world.path("/rules/resolve"), json!({ "player_id": "player_alice", "action": "I climb.", "dice": [20] })),
            (world.path("/characters/player_alice/rest"), json!({ "type": "short", "dice": [8] })),
            (world.path(&format!("/encounters/{fight}/actions")), json!({ "action": "death_save", "dice": [20] })),
            (
                world.path("/tools/roll_dice"),
                json!({ "arguments": { "rolls": [{ "formula": "1d20" }] }, "dice": [20] }),
            ),
        ] {
            let answer = client.post(&path, body).await;
            assert_eq!(answer.status, 403, "{path}: {}", answer.text);
        }
    }
    assert_eq!(server.model.request_count(), 0, "no model was asked what an action needs");
}
