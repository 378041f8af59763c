//! One turn at a time per entity and player; one turn per key, however often it is asked for.

use std::time::Duration;

use futures_util::future::join_all;
use rehearsal::{Reply, Script};
use serde_json::json;

use super::{always, body, learnt, only_turn, remember, turns, until};
use crate::support::{Client, Server};

#[tokio::test(flavor = "multi_thread")]
async fn a_second_turn_is_refused_while_the_first_runs() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([Reply::text("Hm.").held()]));
    let second = async {
        only_turn(&world, "running").await;
        world.bob("player_alice", "Hello?").await.problem(409, "turn_in_progress");
        // Another player, and another entity, are not held up.
        let (mallory, council) = tokio::join!(
            world.bob("player_mallory", "Hello?"),
            tenant.owner_turn(&world.slug, "town_council_owner", "player_alice", "Hello?")
        );
        mallory.expect(200);
        council.expect(200);
        server.model.let_go(1);
    };
    let (first, ()) = tokio::join!(world.bob("player_alice", "Hello"), second);
    first.expect(200);
    assert_eq!(turns(&world).await.len(), 3, "a refused turn leaves no record");
    world.bob("player_alice", "Hello?").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_turns_run_in_order() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    // All of them come while the first is being answered.
    let answers = (0..6).map(|n| if n == 0 { Reply::text("First!").held() } else { Reply::text("Next!") });
    server.model.set_script(Script::replies(answers));
    let all_wait = async {
        until("all six", || async { server.app.running.in_line() == 6 }).await;
        server.model.let_go(1);
    };
    let posts = (0..6).map(|n| {
        let (world, running) = (&world, &server.app.running);
        async move {
            until("those before", || async { running.in_line() == n }).await;
            let body = json!({ "player_id": "player_alice", "action": format!("Action {n}"), "on_busy": "queue" });
            world.post("/npcs/innkeeper_bob/turns", body).await.expect(200)
        }
    });
    tokio::join!(join_all(posts), all_wait);
    let messages = world.get("/messages?limit=200").await.expect(200);
    let mut said: Vec<_> = messages.items().iter().filter(|m| m["author"] == "player").collect();
    said.sort_by_key(|m| m["id"].as_str().unwrap().to_owned());
    let said: Vec<_> = said.iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["Action 0", "Action 1", "Action 2", "Action 3", "Action 4", "Action 5"]);
    // Each saw the one before it as history.
    let last = server.model.requests().pop().unwrap();
    assert_eq!(last["messages"].as_array().unwrap().len(), 2 + 2 * 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_one_turn() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember("Once."), Reply::text("Thanks.")]));
    let path = world.path("/npcs/innkeeper_bob/turns");
    let first = tenant.post_with_key(&path, "k", body("I pay.")).await.expect(200);
    assert_eq!(first.header("idempotency-replayed"), "");
    let again = tenant.post_with_key(&path, "\"k\"", body("I pay.")).await.expect(200);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(first.body, again.body);
    tenant.post_with_key(&path, "k", body("I pay more.")).await.problem(422, "idempotency_key_reused");
    assert_eq!(server.model.request_count(), 2);
    assert_eq!(learnt(&world).await, ["Once."]);
    // Keys are per route: another entity's turn under the same key is another turn.
    tenant.post_with_key(&world.path("/owners/town_council_owner/turns"), "k", body("Hello.")).await.expect(200);
    // And per tenant.
    let rival = server.tenant("rival").await;
    let theirs = rival.world().await;
    let turn = rival.post_with_key(&path, "k", body("I pay.")).await.expect(200);
    assert_ne!(turn.body["id"], first.body["id"]);
    assert_eq!(turns(&theirs).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_posts_with_one_key_are_one_turn() {
    let server = Server::start().await;
    let replica = Server::on(server.db.clone(), &[]).await;
    let tenant = server.tenant("acme").await;
    let there = tenant.at(&replica);
    let world = tenant.world().await;
    for server in [&server, &replica] {
        let script = [remember("Once.").delay_ms(150), Reply::text("Thanks.").delay_ms(150)];
        server.model.set_script(Script::replies(script));
    }
    let path = world.path("/npcs/innkeeper_bob/turns");
    let posts = (0..32).map(|n| {
        let (client, path) = (if n % 2 == 0 { &tenant } else { &there }, &path);
        async move {
            loop {
                let answer = client.post_with_key(path, "k", body("I pay.")).await;
                if answer.status == 200 {
                    return answer;
                }
                answer.problem(409, "idempotency_in_flight");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    });
    let answers = join_all(posts).await;
    let fresh = answers.iter().filter(|a| a.header("idempotency-replayed") != "true").count();
    assert_eq!(fresh, 1);
    assert!(answers.iter().all(|a| a.body == answers[0].body));
    assert_eq!(turns(&world).await.len(), 1);
    assert_eq!(learnt(&world).await, ["Once."]);
    assert_eq!(server.model.request_count() + replica.model.request_count(), 2);
    // Other replicas know who is busy, and queue.
    server.model.set_script(always(Reply::text("Hm.").held()));
    replica.model.set_script(always(Reply::text("Hm.")));
    let elsewhere = async {
        until("the first", || async { turns(&world).await.iter().any(|t| t["status"] == "running") }).await;
        there.npc_turn(&world.slug, "innkeeper_bob", "player_alice", "Me!").await.problem(409, "turn_in_progress");
        let queued = json!({ "player_id": "player_alice", "action": "Me, later!", "on_busy": "queue" });
        let queued = there.post(&path, queued);
        let let_go = async {
            until("who waits", || async { replica.app.running.in_line() == 1 }).await;
            server.model.let_go(1);
        };
        tokio::join!(queued, let_go).0.expect(200);
    };
    tokio::join!(world.bob("player_alice", "Hello"), elsewhere).0.expect(200);
    let last = replica.model.requests().pop().unwrap();
    assert_eq!(last["messages"].as_array().unwrap().len(), 6, "it waited for the answer before it");
}

/// A queued turn whose client leaves gives its place up.
#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_the_queue_is_not_served() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([Reply::text("Hm.").held()]));
    let leaver = async {
        only_turn(&world, "running").await;
        let body = json!({ "player_id": "player_alice", "action": "Never mind", "on_busy": "queue" });
        let request = tenant.request(reqwest::Method::POST, &world.path("/npcs/innkeeper_bob/turns")).json(&body);
        let sent = tokio::spawn(request.send());
        until("who waits", || async { server.app.running.in_line() == 1 }).await;
        sent.abort();
        assert!(sent.await.unwrap_err().is_cancelled());
        until("nobody waits", || async { server.app.running.in_line() == 0 }).await;
        server.model.let_go(1);
    };
    let (first, ()) = tokio::join!(world.bob("player_alice", "Hello"), leaver);
    first.expect(200);
    until("a free entity", || async { world.bob("player_alice", "Again").await.status == 200 }).await;
    assert!(turns(&world).await.iter().all(|t| t["status"] == "succeeded"));
    assert!(!server.model.requests().iter().any(|r| r.to_string().contains("Never mind")));
}

/// A turn that is not waited for is known at once, also while another has its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_queued_turn_is_a_turn() {
    let server = Server::start().await;
    let replica = Server::on(server.db.clone(), &[]).await;
    let tenant = server.tenant("acme").await;
    let there = tenant.at(&replica);
    let world = tenant.world().await;
    let session = world.post("/sessions", json!({ "client_id": "vtt", "role": "gm" })).await.expect(201).id();
    for (path, more) in [
        ("/npcs/innkeeper_bob/turns".to_owned(), json!({ "player_id": "player_alice", "action": "I wave." })),
        (format!("/sessions/{session}/turns"), json!({ "instruction": "Go on." })),
    ] {
        for server in [&server, &replica] {
            server.model.set_script(always(Reply::text("Hm.").held()));
        }
        let path = world.path(&path);
        let asked = || server.model.request_count() + replica.model.request_count();
        let before = asked();
        let later = async |client: &Client<'_>, key: &str, on_busy: &str| {
            let mut body = more.clone();
            body["on_busy"] = json!(on_busy);
            let request = client.request(reqwest::Method::POST, &path).header("prefer", "respond-async");
            client.send(request.header("idempotency-key", key).json(&body)).await
        };
        let first = later(&tenant, "first", "reject").await.expect(202).body;
        assert_eq!(first["status"], "running");
        let second = later(&tenant, "second", "queue").await.expect(202).body;
        let third = later(&tenant, "third", "queue").await.expect(202).body;
        let elsewhere = later(&there, "elsewhere", "queue").await.expect(202).body;
        let turn = |answer: &serde_json::Value| answer["turn_id"].as_str().unwrap().to_owned();
        let status = async |answer: &serde_json::Value| {
            world.get(&format!("/turns/{}", turn(answer))).await.expect(200).body["status"].as_str().unwrap().to_owned()
        };
        assert_eq!(status(&first).await, "running", "the others did not wait for it");
        for waiting in [&second, &third, &elsewhere] {
            assert_eq!((waiting["status"].as_str(), status(waiting).await.as_str()), (Some("queued"), "queued"));
        }
        assert_eq!(world.get("/turns?status=queued").await.expect(200).items().len(), 3);
        // Who asks again hears of the same turn; a key is one turn also while it waits.
        let again = later(&tenant, "second", "queue").await.expect(202);
        assert_eq!((turn(&again.body), again.header("idempotency-replayed")), (turn(&second), "true"));
        // One that waits can be cancelled, here or elsewhere, and listened to.
        world.post(&format!("/turns/{}/cancel", turn(&third)), json!({})).await.expect(202);
        until("the cancelled", || async { status(&third).await == "cancelled" }).await;
        let request = there.request(reqwest::Method::GET, &world.path(&format!("/turns/{}/events", turn(&second))));
        let events = crate::support::sse::Events::open(request, None).await;
        server.model.let_go(2);
        replica.model.let_go(1);
        let heard = events.rest().await;
        let names: Vec<_> = heard.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["turn.started", "text.delta", "turn.completed"]);
        until("the last", || async { status(&elsewhere).await == "succeeded" }).await;
        assert_eq!(status(&first).await, "succeeded");
        assert_eq!(asked() - before, 3, "the cancelled one was never asked");
    }
}

/// What is deleted while it answers has not answered.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_deleted_says_nothing_more() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = world.post("/sessions", json!({ "client_id": "vtt", "role": "gm" })).await.expect(201).id();
    for (path, body) in [
        (format!("/sessions/{session}"), json!({})),
        ("/npcs/innkeeper_bob".to_owned(), json!({ "player_id": "player_alice", "action": "I wave." })),
    ] {
        server.model.set_script(always(Reply::text("Hm.").held()));
        let post = tenant.request(reqwest::Method::POST, &world.path(&format!("{path}/turns")));
        let asked = server.model.request_count();
        let begun = tenant.send(post.header("prefer", "respond-async").json(&body)).await.expect(202).body;
        until("the question", || async { server.model.request_count() > asked }).await;
        world.delete(&path).await.expect(204);
        server.model.let_go(1);
        let turn = format!("/turns/{}", begun["turn_id"].as_str().unwrap());
        until(&path, || async { world.get(&turn).await.expect(200).body["status"] != "running" }).await;
        let ended = world.get(&turn).await.expect(200).body;
        assert_eq!(ended["status"], "cancelled", "{path}: {ended}");
    }
    assert!(world.get("/messages").await.expect(200).items().is_empty());
}
