//! Sessions themselves: one for each frontend, taken over when it comes back.

use serde_json::json;

use super::Session;
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_frontend_that_comes_back_takes_its_session_over() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let body = json!({ "client_id": "gb-user-1", "role": "gm", "dice": "server" });
    let opened = world.post("/sessions", body.clone()).await.expect(201);
    assert_eq!(opened.header("location"), world.path(&format!("/sessions/{}", opened.id())));
    assert_eq!(opened.body["state"]["first_turn_complete"], false);
    let session = Session { world: &world, id: opened.id() };
    session.turn().await;
    let again = json!({ "client_id": "gb-user-1", "role": "assistant", "dice": "frontend" });
    let again = world.post("/sessions", again).await.expect(200);
    assert_eq!(again.id(), session.id);
    assert_eq!((&again.body["role"], &again.body["dice"]), (&json!("assistant"), &json!("frontend")));
    assert_eq!(again.body["state"]["first_turn_complete"], true);
    assert_eq!(world.get("/sessions").await.expect(200).items().len(), 1);
    // Another frontend, and another campaign, have their own.
    world.post("/sessions", json!({ "client_id": "gb-user-2" })).await.expect(201);
    tenant.post("/v1/campaigns", json!({ "slug": "inland", "name": "Inland" })).await.expect(201);
    tenant.post("/v1/campaigns/inland/sessions", body.clone()).await.expect(201);
    tenant.get(&format!("/v1/campaigns/inland/sessions/{}", session.id)).await.problem(404, "not_found");
    // A session that is ended is begun anew.
    world.delete(&session.path("")).await.expect(204);
    let fresh = world.post("/sessions", body).await.expect(201);
    assert_ne!(fresh.id(), session.id);
    assert_eq!(fresh.body["state"]["first_turn_complete"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_open_one_session_get_one() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let opens = (0..8).map(|_| world.post("/sessions", json!({ "client_id": "vtt" })));
    let answers = futures_util::future::join_all(opens).await;
    assert_eq!(answers.iter().filter(|a| a.status == 201).count(), 1);
    assert!(answers.iter().all(|a| a.status < 300 && a.id() == answers[0].id()));
    // And with a key, one answer.
    let (path, body) = (world.path("/sessions"), json!({ "client_id": "other" }));
    tenant.post_with_key(&path, "k", body.clone()).await.expect(201);
    let replay = tenant.post_with_key(&path, "k", body).await.expect(201);
    assert_eq!(replay.header("idempotency-replayed"), "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_patched_like_everything_else() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    let read = world.get(&session.path("")).await.expect(200);
    let etag = read.header("etag").to_owned();
    let patch = |etag: &str, body| {
        tenant.request(reqwest::Method::PATCH, &world.path(&session.path(""))).header("if-match", etag).json(&body)
    };
    let body = json!({ "role": "player", "player_id": "player_alice" });
    let patched = tenant.send(patch(&etag, body)).await.expect(200);
    let now = world.get(&session.path("")).await.expect(200);
    assert_eq!((&now.body, now.header("etag")), (&patched.body, patched.header("etag")));
    assert_eq!(patched.body["state"]["first_turn_complete"], false);
    assert_eq!(patched.body["player_id"], world.get("/characters/player_alice").await.expect(200).body["id"]);
    tenant.send(patch(&etag, json!({ "dice": "frontend" }))).await.problem(412, "precondition_failed");
    for (body, pointer) in [
        (json!({ "role": "dm" }), "/role"),
        (json!({ "dice": "mine" }), "/dice"),
        (json!({ "player_id": "nobody" }), "/player_id"),
        (json!({ "client_id": "" }), "/client_id"),
        (json!({ "client_id": "x".repeat(65) }), "/client_id"),
        (json!({ "id": "x" }), "/id"),
        (json!({ "state": { "cursor_seq": 0 } }), "/state"),
        (json!({ "nickname": "x" }), "/nickname"),
    ] {
        let answer = world.patch(&session.path(""), body.clone()).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{body}");
        let is_read_only = ["/id", "/state"].contains(&pointer);
        assert_eq!(answer.body["errors"][0]["code"] == "read_only", is_read_only, "{body}");
    }
    world.post("/sessions", json!({ "role": "gm" })).await.problem(422, "validation_failed");
    // A message may name its session, if it is one.
    let message = json!({ "content": "Hello.", "session_id": session.id });
    assert_eq!(world.post("/messages", message).await.expect(201).body["session_id"], json!(session.id));
    let stranger = json!({ "content": "Hello.", "session_id": "00000000-0000-7000-8000-000000000000" });
    let answer = world.post("/messages", stranger).await.problem(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/session_id"]);
    // The character's end is not the session's.
    world.delete("/characters/player_alice").await.expect(204);
    assert_eq!(world.get(&session.path("")).await.expect(200).body["player_id"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_a_session() {
    let server = Server::start().await;
    let replica = Server::on(server.db.clone(), &[]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    session.turn().await;
    session.chat("Hello!").await;
    let there = tenant.at(&replica);
    let path = world.path(&session.path("/turns"));
    let turn = there.post(&path, json!({})).await.expect(200);
    assert_eq!(turn.body["context"], "delta");
    assert_eq!(session.delta().await["has_changes"], false);
}
