//! What a turn that fails leaves behind: a record, no effects, and a key that can be tried again.

use base::clock;
use rehearsal::{Reply, Script};
use reqwest::Method;
use serde_json::json;

use super::{always, body, learnt, only_turn, remember, turns, until};
use crate::support::{Server, World, sse::Events};

/// Quick timeouts, one attempt.
const IMPATIENT: [(&str, &str); 3] =
    [("LLM_FIRST_TOKEN_TIMEOUT_MS", "3000"), ("LLM_TIMEOUT_MS", "6000"), ("LLM_RETRIES", "0")];

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_fails_is_told_and_recorded() {
    let server = Server::start_with(&IMPATIENT).await;
    let tenant = server.tenant("acme").await;
    let faults = [
        (Reply::status(500), 502, "llm_unavailable"),
        (Reply::status(401), 502, "llm_unavailable"),
        (
            Reply::status(503).with_body(json!({ "error": { "message": "SECRET host 10.0.0.7" } })),
            502,
            "llm_unavailable",
        ),
        (Reply::status(400).with_body(json!({ "error": { "message": "SECRET org-123" } })), 502, "llm_unavailable"),
        (Reply::raw_body("<html>no json</html>"), 502, "llm_unavailable"),
        (Reply::close(), 502, "llm_unavailable"),
        (Reply::text("never whole").truncate_after_bytes(40), 502, "llm_unavailable"),
        (Reply::repeat_bytes(20_000_000), 502, "llm_unavailable"),
        (Reply::hang(), 504, "llm_timeout"),
        (Reply::text("drip").chunk_bytes(1).chunk_delay_ms(100), 504, "llm_timeout"),
    ];
    for (n, (fault, status, code)) in faults.into_iter().enumerate() {
        // After a 400 the model is asked once more without optional members. A world each, and a success between them so that no breaker opens.
        let world = World::make(&tenant, &format!("town-{n}")).await;
        server.model.set_script(Script::replies([remember("Gone."), fault.clone(), fault]));
        let failed = world.bob("player_alice", "I pay.").await.problem(status, code);
        let id = failed.body["turn_id"].as_str().unwrap();
        let record = world.get(&format!("/turns/{id}")).await.expect(200).body;
        assert!(!format!("{} {record}", failed.text).contains("SECRET"), "what the endpoint wrote is for the log");
        assert_eq!(record["status"], "failed", "{code}");
        assert_eq!(record["error"]["code"], code);
        assert!(record["error"]["message"].as_str().is_some_and(|m| !m.is_empty()));
        assert_eq!(record["tool_calls"][0]["name"], "NPC_memorize", "the record says what was tried");
        assert_eq!(record["usage"]["llm_calls"], 1);
        assert!(learnt(&world).await.is_empty(), "its effects are taken back: {n}");
        // It left no words in the conversation, and the next turn works.
        server.model.set_script(always(Reply::text("Welcome.")));
        world.bob("player_alice", "Hello").await.expect(200);
        let sent = server.model.requests().pop().unwrap();
        assert_eq!(sent["messages"].as_array().unwrap().len(), 2);
        assert!(!sent.to_string().contains("Gone."));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_may_be_there() {
    let nowhere = [("LLM_API_ENDPOINT", "http://127.0.0.1:1/v1"), ("LLM_MODEL_NAME", "m"), ("LLM_RETRIES", "1")];
    let server = Server::start_with(&nowhere).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let failed = world.bob("player_alice", "Hello").await.problem(502, "llm_unavailable");
    assert_eq!(only_turn(&world, "failed").await["id"], failed.body["turn_id"]);
    // The tenant's usage knows of no call.
    assert!(tenant.get("/v1/usage").await.expect(200).items().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_turn_may_keep_its_effects() {
    let server = Server::start_with(&IMPATIENT).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember("Kept."), Reply::status(500)]));
    let body = json!({ "player_id": "player_alice", "action": "I pay.", "on_failure": "keep" });
    world.post("/npcs/innkeeper_bob/turns", body).await.problem(502, "llm_unavailable");
    assert_eq!(learnt(&world).await, ["Kept."]);
    assert_eq!(only_turn(&world, "failed").await["tool_calls"][0]["status"], "succeeded");
}

/// What somebody changed in the meantime is not taken back but reported.
#[tokio::test(flavor = "multi_thread")]
async fn a_revert_leaves_what_others_changed() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let two = remember("Mine.")
        .with_tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "Changed." }));
    server.model.set_script(Script::replies([two, Reply::status(500).held()]));
    let turn = world.bob("player_alice", "I pay.");
    let edit = async {
        until("the memories", || async { learnt(&world).await.len() == 2 }).await;
        let all = world.get("/npcs/innkeeper_bob/memories?player_id=player_alice").await.expect(200);
        let id = all.items()[2]["id"].as_str().unwrap().to_owned();
        world.patch(&format!("/memories/{id}"), json!({ "text": "By a person." })).await.expect(200);
        server.model.let_go(1);
        id
    };
    let (failed, id) = tokio::join!(turn, edit);
    let failed = failed.problem(502, "llm_unavailable");
    assert_eq!(learnt(&world).await, ["By a person."]);
    let record = world.get(&format!("/turns/{}", failed.body["turn_id"].as_str().unwrap())).await.expect(200).body;
    let conflicts = record["revert_conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 1, "{record}");
    assert_eq!((conflicts[0]["table"].as_str(), conflicts[0]["id"].as_str()), (Some("memory"), Some(id.as_str())));
}

#[tokio::test(flavor = "multi_thread")]
async fn passing_troubles_are_retried() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for fault in [Reply::status(429).retry_after(0), Reply::status(500), Reply::close()] {
        server.model.set_script(Script::replies([fault, Reply::text("At last.")]));
        let before = server.model.request_count();
        let turn = world.bob("player_alice", "Hello").await.expect(200);
        assert_eq!(turn.body["narrative"], "At last.");
        assert_eq!(turn.body["usage"]["llm_calls"], 1, "an attempt that failed is no call");
        assert_eq!(server.model.request_count() - before, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_in_trouble_is_left_alone_for_a_while() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(always(Reply::status(500)));
    for _ in 0..5 {
        world.bob("player_alice", "Hello").await.problem(502, "llm_unavailable");
    }
    let refused = world.bob("player_alice", "Hello").await.problem(502, "llm_unavailable");
    assert_eq!(server.model.request_count(), 5, "the open breaker calls nobody");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=15).contains(&wait), "{wait}");
    assert!(refused.body["turn_id"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_turn_can_be_cancelled() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember("Gone."), Reply::hang()]));
    let turn = world.bob("player_alice", "I pay.");
    let cancel = async {
        until("the memory", || async { learnt(&world).await.len() == 1 }).await;
        let id = only_turn(&world, "running").await["id"].as_str().unwrap().to_owned();
        world.post(&format!("/turns/{id}/cancel"), json!({})).await.expect(202);
        id
    };
    let (turn, id) = tokio::join!(turn, cancel);
    let turn = turn.expect(200);
    assert_eq!((turn.body["status"].as_str(), turn.body["id"].as_str()), (Some("cancelled"), Some(id.as_str())));
    assert!(learnt(&world).await.is_empty());
    assert_eq!(world.get(&format!("/turns/{id}")).await.expect(200).body["status"], "cancelled");
    let messages = world.get("/messages").await.expect(200);
    assert!(messages.items().is_empty());
    // What has ended cannot be cancelled; what is not there neither.
    world.post(&format!("/turns/{id}/cancel"), json!({})).await.problem(409, "conflict");
    world.post(&format!("/turns/{}/cancel", clock::id()), json!({})).await.problem(404, "not_found");
    // The entity is free again at once.
    server.model.set_script(always(Reply::text("Welcome.")));
    world.bob("player_alice", "Hello").await.expect(200);
}

/// A turn is cancelled through whichever replica the request meets.
#[tokio::test(flavor = "multi_thread")]
async fn another_replica_can_cancel() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let replica = Server::on(server.db.clone(), &[]).await;
    // The model answers after the request to cancel, before this replica hears of it by itself.
    server.model.set_script(Script::replies([remember("Gone."), Reply::text("Too late.").held()]));
    let turn = world.bob("player_alice", "I pay.");
    let cancel = async {
        until("the memory", || async { learnt(&world).await.len() == 1 }).await;
        let id = only_turn(&world, "running").await["id"].as_str().unwrap().to_owned();
        let url = format!("{}{}", replica.url, world.path(&format!("/turns/{id}/cancel")));
        let answer =
            reqwest::Client::new().post(url).bearer_auth(&tenant.credential).json(&json!({})).send().await.unwrap();
        assert_eq!(answer.status(), 202);
        server.model.let_go(1);
    };
    let (turn, ()) = tokio::join!(turn, cancel);
    assert_eq!(turn.expect(200).body["status"], "cancelled");
    only_turn(&world, "cancelled").await;
    assert!(learnt(&world).await.is_empty());
}

/// Sends a request and closes its connection when the model is asked for the `calls`th time.
async fn leave(server: &Server, request: reqwest::RequestBuilder, calls: usize) {
    let sent = tokio::spawn(request.send());
    until("the model's call", || async { server.model.request_count() == calls }).await;
    sent.abort();
    assert!(sent.await.unwrap_err().is_cancelled());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_ends_with_its_client() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember("Gone."), Reply::hang()]));
    let request = tenant.request(reqwest::Method::POST, &world.path("/npcs/innkeeper_bob/turns")).json(&body("I pay."));
    leave(&server, request, 2).await;
    only_turn(&world, "cancelled").await;
    assert!(learnt(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_with_a_key_goes_on_without_its_client() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember("Stays."), Reply::text("There you are.").held()]));
    let path = world.path("/npcs/innkeeper_bob/turns");
    let request = tenant.request(reqwest::Method::POST, &path).header("idempotency-key", "k").json(&body("I pay."));
    leave(&server, request, 2).await;
    // While it runs, the same key is told so.
    let busy = tenant.post_with_key(&path, "k", body("I pay.")).await.problem(409, "idempotency_in_flight");
    assert!(!busy.header("retry-after").is_empty());
    server.model.let_go(1);
    let record = only_turn(&world, "succeeded").await;
    let replay = tenant.post_with_key(&path, "k", body("I pay.")).await.expect(200);
    assert_eq!(replay.header("idempotency-replayed"), "true");
    assert_eq!((&replay.body["id"], &replay.body["narrative"]), (&record["id"], &json!("There you are.")));
    assert_eq!(learnt(&world).await, ["Stays."]);
    assert_eq!(server.model.request_count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_turn_is_begun_anew_under_its_key_and_id() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let path = world.path("/npcs/innkeeper_bob/turns");
    server.model.set_script(Script::replies([remember("First try."), Reply::status(500)]));
    let failed = tenant.post_with_key(&path, "k", body("I pay.")).await.problem(502, "llm_unavailable");
    let turn = failed.body["turn_id"].as_str().unwrap().to_owned();
    let heard = async |last: Option<&str>| {
        let path = world.path(&format!("/turns/{turn}/events"));
        Events::open(tenant.request(Method::GET, &path), last).await.rest().await
    };
    let first = heard(None).await;
    assert_eq!(first.last().unwrap().name, "turn.failed");
    tenant.post_with_key(&path, "k", body("Another action.")).await.problem(422, "idempotency_key_reused");
    server.model.set_script(Script::replies([remember("Second try."), Reply::text("Thanks.")]));
    let done = tenant.post_with_key(&path, "k", body("I pay.")).await.expect(200);
    assert_eq!(done.body["id"], failed.body["turn_id"]);
    assert_eq!(learnt(&world).await, ["Second try."]);
    let record = only_turn(&world, "succeeded").await;
    assert_eq!(record["error"], json!(null));
    assert_eq!(tenant.post_with_key(&path, "k", body("I pay.")).await.expect(200).body, done.body);
    // Whoever heard the first try, even to its end, hears all of the second.
    let whole = heard(None).await;
    assert_eq!((whole[0].name.as_str(), whole.last().unwrap().name.as_str()), ("turn.started", "turn.completed"));
    for event in &first {
        let again = heard(Some(&event.id)).await;
        assert_eq!(again.iter().map(|e| &e.id).collect::<Vec<_>>(), whole.iter().map(|e| &e.id).collect::<Vec<_>>());
    }
    // Its undo takes back the second try alone.
    let undone = world.post(&format!("/turns/{}/undo", done.id()), json!({})).await.expect(200);
    assert_eq!(undone.body["changes_reverted"], 3, "a memory and two messages");
    assert!(learnt(&world).await.is_empty());
    assert_eq!(turns(&world).await.len(), 1);
}

/// Whoever takes part may be deleted while the model thinks: the turn then fails cleanly, whatever was first.
#[tokio::test(flavor = "multi_thread")]
async fn who_takes_part_may_vanish() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    for (n, path) in ["/npcs/innkeeper_bob", "/characters/player_alice", ""].into_iter().enumerate() {
        let world = World::make(&tenant, &format!("town-{n}")).await;
        server.model.set_script(Script::replies([
            Reply::text("Hm.")
                .held()
                .with_tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "x" })),
            Reply::text("Well."),
        ]));
        let vanish = async {
            only_turn(&world, "running").await;
            world.delete(path).await.expect(204);
            server.model.let_go(1);
        };
        let (turn, ()) = tokio::join!(world.bob("player_alice", "Hello"), vanish);
        assert!(turn.status < 500, "{path}: {}", turn.text);
        let mut db = server.owner().await;
        let rows: (i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM memory WHERE text = 'x'), (SELECT count(*) FROM turn WHERE status = 'running')",
        )
        .fetch_one(&mut db)
        .await
        .unwrap();
        assert_eq!(rows, (0, 0), "{path}: {}", turn.text);
    }
}

/// A turn that lost its lease is somebody else's: what its server still does comes to nothing.
#[tokio::test(flavor = "multi_thread")]
async fn who_lost_the_lease_changes_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember("One."), remember("Two.").held(), Reply::text("Done.")]));
    let sweep = async {
        until("the memory", || async { learnt(&world).await.len() == 1 }).await;
        let mut db = server.owner().await;
        sqlx::query("UPDATE turn SET lease_until = now() - interval '1 second'").execute(&mut db).await.unwrap();
        ai::turns::store::sweep(server.pool(), &server.app.running).await.unwrap();
        assert!(learnt(&world).await.is_empty());
        server.model.let_go(1);
    };
    let (turn, ()) = tokio::join!(world.bob("player_alice", "I pay."), sweep);
    turn.problem(409, "conflict");
    assert!(learnt(&world).await.is_empty());
    assert!(world.get("/messages").await.expect(200).items().is_empty());
    assert_eq!(only_turn(&world, "failed").await["error"]["code"], "internal");
}
