//! Several at once, and crashes: actions follow one another, a commit happens once or not at all.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use sqlx::{Connection, Executor};
use tokio::sync::Barrier;

use super::{begin, commit, duel, dungeon, end, hp, hurt, participant};
use crate::support::{Prepared, Server};

#[tokio::test(flavor = "multi_thread")]
async fn of_many_actions_none_is_lost() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let mut body = duel();
    body["participants"][1]["hp"] = json!(500);
    body["participants"][1]["max_hp"] = json!(500);
    let id = begin(&world, body).await;
    let barrier = Arc::new(Barrier::new(40));
    join_all((0..40).map(|_| async {
        barrier.wait().await;
        hurt(&world, &id, "orc", 7).await
    }))
    .await;
    assert_eq!(participant(&world, &id, "orc").await["hp"], 500 - 40 * 7);
    assert_eq!(participant(&world, &id, "orc").await["statistics"]["damage_taken"], 280);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_commits_one_applies() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    for round in 1..=5 {
        let id = begin(&world, duel()).await;
        hurt(&world, &id, "fenric", 1).await;
        end(&world, &id).await;
        let barrier = Arc::new(Barrier::new(6));
        let told = join_all((0..6).map(|_| async {
            barrier.wait().await;
            commit(&world, &id, json!({})).await
        }))
        .await;
        let applied: usize = told.iter().map(|t| t["committed"].as_array().unwrap().len()).sum();
        assert_eq!((applied, hp(&world, "fenric").await), (1, 28 - round));
    }
}

/// The commit is killed where it waits for the second of two characters.
#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_a_commit() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let mut child = prepared.start(&model).await;
    let body = json!({ "participants": [
        { "id": "alice", "character_id": "player_alice" }, { "id": "mallory", "character_id": "player_mallory" } ] });
    let post = |path: String, body: Value| {
        let sent = child.post(&path, body);
        async { sent.await.unwrap() }
    };
    let id = post("/encounters".to_owned(), body).await.expect(201).id();
    for who in ["alice", "mallory"] {
        post(format!("/encounters/{id}/actions"), json!({ "action": "damage", "target_id": who, "amount": 3 }))
            .await
            .expect(200);
    }
    post(format!("/encounters/{id}/end"), json!({ "outcome": "victory" })).await.expect(200);
    let full = |body: &Value| (body["hp"].clone(), body["version"].clone());
    let before = (
        full(&child.get("/characters/player_alice").await.body),
        full(&child.get("/characters/player_mallory").await.body),
    );

    let mut owner = sqlx::PgConnection::connect(&prepared.db.url).await.unwrap();
    owner.execute("BEGIN; SELECT 1 FROM character WHERE slug = 'player_mallory' FOR UPDATE").await.unwrap();
    let waiting = tokio::spawn(child.post(&format!("/encounters/{id}/commit"), json!({})));
    prepared.db.somebody_waits().await;
    assert!(!waiting.is_finished());
    child.kill().await;
    waiting.abort();
    owner.execute("ROLLBACK").await.unwrap();

    let child = prepared.start(&model).await;
    let now = (
        full(&child.get("/characters/player_alice").await.body),
        full(&child.get("/characters/player_mallory").await.body),
    );
    assert_eq!(now, before, "nothing half done remains");
    let done = child.post(&format!("/encounters/{id}/commit"), json!({})).await.unwrap().expect(200).body;
    assert_eq!(done["committed"].as_array().unwrap().len(), 2, "{done}");
    let again = child.post(&format!("/encounters/{id}/commit"), json!({})).await.unwrap().expect(200).body;
    assert_eq!(again["committed"], json!([]));
}
