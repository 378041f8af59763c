//! What one tenant asks for at once, and that the others do not notice it.

use std::time::Duration;

use edge::{tenant_settings::service::set_limits, tenants::TenantLimits};
use futures_util::{
    future::join_all,
    stream::{FuturesUnordered, StreamExt},
};
use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection, Row};

use crate::{
    bridge::Socket,
    support::{
        Answer, Client, Server,
        scripted::{Act, Scripted},
        until,
    },
};

/// Tenants may use the endpoints that tests start on loopback.
const PRIVATE: (&str, &str) = ("LLM_TENANT_PRIVATE_ALLOWED", "true");

async fn profile(tenant: &Client<'_>, endpoint: &Scripted) {
    let body = json!({ "slug": "far", "name": "Far", "endpoint": endpoint.url, "model": "m" });
    tenant.post("/v1/models", body).await.expect(201);
}

/// A tenant reads as if it were alone.
async fn reads(tenant: &Client<'_>) {
    for _ in 0..30 {
        tenant.get("/v1/campaigns").await.expect(200);
    }
}

/// A rejection that says by which of the tenant's own limits.
fn is_own_limit(answer: &Answer, policy: &str) -> bool {
    let is = answer.status == 429 && answer.header("ratelimit-policy").contains(policy);
    if is {
        assert_eq!(answer.body["code"], "rate_limited", "{}", answer.text);
        assert!(answer.header("retry-after").parse::<u64>().unwrap() > 0);
    }
    is
}

fn report(actions: usize) -> Value {
    let one = json!({ "type": "talk", "targets": ["innkeeper_bob"] });
    json!({ "player_id": "player_alice", "actions": vec![one; actions] })
}

/// Requests that wait for a model's endpoint have places of their own, and no tenant has all of them.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_never_answers_is_its_tenants_alone() {
    let patience = ("LLM_FIRST_TOKEN_TIMEOUT_MS", "120000");
    let small =
        [PRIVATE, ("TAVERNKEEP_REQUESTS_MAX", "8"), patience, ("LLM_TIMEOUT_MS", "120000"), ("LLM_RETRIES", "0")];
    let server = Server::start_with(&small).await;
    let (bad, good) = (server.tenant("bad").await, server.tenant("good").await);
    let endpoint = Scripted::start(vec![Act::Hold]).await;
    profile(&bad, &endpoint).await;
    // Each begins when the one before it waits: so many at once would not get through the door.
    let waits = join_all((0..64).map(async |n: usize| {
        until("its turn", async || endpoint.seen().len() >= n).await;
        match n % 3 {
            0 => bad.post("/v1/models/far/test", json!({})).await,
            _ => bad.get("/v1/models/far/available").await,
        }
    }));
    let others = async {
        until("more to wait than there are places", async || endpoint.seen().len() >= 64).await;
        reads(&good).await;
        bad.get("/v1/campaigns").await.expect(200);
        for more in [bad.get("/v1/models/far/available").await, bad.post("/v1/models/far/test", json!({})).await] {
            assert!(is_own_limit(&more, "waiting-requests"), "{}", more.text);
        }
        endpoint.let_go();
    };
    let (waits, ()) = tokio::join!(waits, others);
    for answer in waits {
        let failed = answer.body["works"] == false;
        assert!(answer.status == 502 || answer.status == 200 && failed, "{}", answer.text);
    }
    // When they have ended there is room again.
    endpoint.follow(vec![Act::Answer("200 OK", json!({ "data": [{ "id": "m" }] }).to_string())]);
    bad.get("/v1/models/far/available").await.expect(200);
}

/// A test of a model, and a list of an endpoint's models, count as turns.
#[tokio::test(flavor = "multi_thread")]
async fn asking_an_endpoint_is_a_turn_in_the_limits() {
    let server = Server::start_with(&[PRIVATE, ("LLM_RETRIES", "0")]).await;
    let list = Act::Answer("200 OK", json!({ "data": [{ "id": "m" }] }).to_string());
    let endpoint = Scripted::start(vec![list.clone()]).await;
    let limits = TenantLimits { turns_per_minute: 2, ..TenantLimits::unlimited() };
    let minute = server.tenant("minute").await;
    set_limits(&mut server.owner().await, minute.tenant, &limits).await.unwrap();
    profile(&minute, &endpoint).await;
    minute.get("/v1/models/far/available").await.expect(200);
    minute.post("/v1/models/far/test", json!({})).await.expect(200);
    assert!(is_own_limit(&minute.get("/v1/models/far/available").await, "turns"));
    assert!(is_own_limit(&minute.post("/v1/models/far/test", json!({})).await, "turns"));

    let limits = TenantLimits { concurrent_turns: 1, ..TenantLimits::unlimited() };
    let one = server.tenant("one").await;
    set_limits(&mut server.owner().await, one.tenant, &limits).await.unwrap();
    profile(&one, &endpoint).await;
    endpoint.follow(vec![Act::Later(Duration::from_secs(1), json!({ "data": [] }).to_string()), list]);
    let second = async {
        until("the first", async || !endpoint.seen().is_empty()).await;
        assert!(is_own_limit(&one.get("/v1/models/far/available").await, "concurrent-turns"));
    };
    let (first, ()) = tokio::join!(one.get("/v1/models/far/available"), second);
    first.expect(200);
    one.get("/v1/models/far/available").await.expect(200);
}

/// However slowly an endpoint answers each question, a test ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_test_takes_no_longer_than_a_call() {
    let server = Server::start_with(&[PRIVATE, ("LLM_RETRIES", "0"), ("LLM_TIMEOUT_MS", "2000")]).await;
    let tenant = server.tenant("acme").await;
    let message = json!({ "role": "assistant", "content": "One, two." });
    let answer = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }], "model": "m" });
    let endpoint = Scripted::start(vec![Act::Later(Duration::from_millis(800), answer.to_string())]).await;
    profile(&tenant, &endpoint).await;
    let tested = tenant.post("/v1/models/far/test", json!({})).await.expect(200).body;
    assert_eq!(tested["works"], true, "{tested}");
    let seen = endpoint.seen().len();
    assert!((2..=4).contains(&seen), "it asked {seen} times");
    let checks = tested["checks"].as_array().unwrap();
    let last = checks.iter().find(|check| check["name"] == "cached_tokens").unwrap();
    assert_eq!(last["works"], Value::Null, "{tested}");
}

/// A frontend that answers no question holds up nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_frontend_that_never_answers_is_its_tenants_alone() {
    let server = Server::start_with(&[("TAVERNKEEP_REQUESTS_MAX", "4")]).await;
    let (bad, good) = (server.tenant("bad").await, server.tenant("good").await);
    let world = bad.world().await;
    let (mut socket, connected) = Socket::connect(&server.url, &bad.credential, json!({ "dice": "frontend" })).await;
    let roll = json!({ "arguments": { "rolls": [{ "formula": "1d20" }] }, "session_id": connected["session_id"] });
    // Asked again if the door was too busy for a moment.
    let rolls = join_all((0..12).map(|_| async {
        loop {
            let answer = world.post("/tools/roll_dice", roll.clone()).await;
            if answer.status != 503 {
                return answer;
            }
        }
    }));
    let others = async {
        let mut asked = Vec::new();
        while asked.len() < 12 {
            asked.push(socket.next_of("execute_roll").await["request_id"].clone());
        }
        reads(&good).await;
        for id in asked {
            let results =
                json!([{ "formula": "1d20", "success": true, "total": 7, "dice": [{ "faces": 20, "value": 7 }] }]);
            socket.send(json!({ "type": "roll_result", "request_id": id, "data": { "results": results } })).await;
        }
    };
    let (rolls, ()) = tokio::join!(rolls, others);
    for answer in rolls {
        assert_eq!(answer.expect(200).body["result"]["results"][0]["total"], 7);
    }
}

/// Fifty actions are fifty requests.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_counts_for_what_it_contains() {
    let server = Server::start().await;
    let limits = TenantLimits { requests_per_minute: 110, ..TenantLimits::unlimited() };
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    // A world takes more requests than this.
    set_limits(&mut server.owner().await, tenant.tenant, &limits).await.unwrap();
    server.app.keys.forget();
    let path = world.path("/actions");
    let first = tenant.post_with_key(&path, "a", report(50)).await.expect(202);
    assert!(first.header("ratelimit").starts_with("\"requests\";r=6"), "{}", first.header("ratelimit"));
    let rehearsal = json!({ "actions": vec![json!({ "player_id": "player_alice", "type": "talk" }); 50] });
    tenant.post(&world.path("/significance/rehearse"), rehearsal).await.expect(200);
    let refused = tenant.post_with_key(&path, "b", report(50)).await;
    assert!(is_own_limit(&refused, "requests"), "{}", refused.text);
    assert!(refused.header("retry-after").parse::<u64>().unwrap() <= 60);
    assert!(refused.header("ratelimit").starts_with("\"requests\";r=0;"), "{}", refused.header("ratelimit"));
    // A smaller one has room, and so has an answer that is stored.
    tenant.post(&path, report(5)).await.expect(202);
    let again = tenant.post_with_key(&path, "a", report(50)).await.expect(202);
    assert_eq!(again.header("idempotency-replayed"), "true");
    // What was rejected counts nothing.
    let stored = "SELECT count(*) FROM player_action";
    let stored: i64 = sqlx::query_scalar(stored).fetch_one(&mut server.owner().await).await.unwrap();
    assert_eq!(stored, 55);
    // A request that is larger than the limit can still be made, when nothing else was.
    let limits = TenantLimits { requests_per_minute: 2, ..TenantLimits::unlimited() };
    set_limits(&mut server.owner().await, tenant.tenant, &limits).await.unwrap();
    server.app.keys.forget();
    tenant.post(&path, report(50)).await.expect(202);
    assert!(is_own_limit(&tenant.get("/v1/campaigns").await, "requests"));
}

/// How many connections wait for a lock.
async fn waiting(db: &mut PgConnection) -> i64 {
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    sqlx::query(waiting).fetch_one(db).await.unwrap().get(0)
}

/// The large requests of a tenant are done one after another. The small ones, and the others', go on beside them.
#[tokio::test(flavor = "multi_thread")]
async fn large_requests_wait_for_each_other() {
    let server = Server::start().await;
    let (bad, good) = (server.tenant("bad").await, server.tenant("good").await);
    let world = bad.world().await;
    let (mut aside, mut db) = (server.owner().await, server.owner().await);
    let mut held = aside.begin().await.unwrap();
    held.execute("SELECT FROM character WHERE slug = 'player_alice' FOR UPDATE").await.unwrap();
    let large = join_all((0..8).map(|_| world.post("/actions", report(20))));
    let others = async {
        until("the first", async || waiting(&mut db).await == 1).await;
        good.get("/v1/campaigns").await.expect(200);
        world.get("/characters/player_alice").await.expect(200);
        assert!(waiting(&mut db).await <= 1);
        held.rollback().await.unwrap();
        reads(&good).await;
    };
    let (large, ()) = tokio::join!(large, others);
    for answer in large {
        answer.expect(202);
    }
}

/// A tenant whose requests are stuck has its share of the places and of the connections, and no more.
#[tokio::test(flavor = "multi_thread")]
async fn no_tenant_has_all_places_or_connections() {
    // Of six connections for work that begins one tenant gets five, and of ten places eight.
    let small = [("DATABASE_CONNECTIONS_MAX", "8"), ("TAVERNKEEP_REQUESTS_MAX", "10"), ("DATABASE_WAIT_MS", "120000")];
    let server = Server::start_with(&small).await;
    let (bad, good) = (server.tenant("bad").await, server.tenant("good").await);
    bad.get("/v1/campaigns").await.expect(200);
    let pool = server.pool();
    // A PostgreSQL that many tests use may have no connection left at the moment. Without all five nobody would be stuck.
    let mut share = Vec::new();
    until("a share of connections", async || {
        share.extend(pool.acquire_for(Some(bad.tenant)).await.ok());
        share.len() == 5
    })
    .await;
    // Each begins when the one before it is stuck: so many at once would not get through the door. The server's own work may wait for a
    // moment too, so nobody knows which of them are refused.
    let mut asked: FuturesUnordered<_> = (0..8 + 5)
        .map(async |n: usize| {
            until("its turn", async || pool.waiting() >= n.min(8)).await;
            bad.get("/v1/campaigns").await
        })
        .collect();
    for _ in 0..5 {
        asked.next().await.unwrap().problem(503, "unavailable");
    }
    reads(&good).await;
    drop(share);
    for _ in 0..8 {
        asked.next().await.unwrap().expect(200);
    }
    bad.get("/v1/campaigns").await.expect(200);
}
