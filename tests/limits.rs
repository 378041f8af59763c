//! A tenant's limits, each reached on purpose.

use std::pin::pin;

use edge::{tenant_settings::service::set_limits, tenants::TenantLimits};
use futures_util::future::{join, join_all, select};
use rehearsal::{Reply, Script};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Server, until};

/// Sets limits before the tenant's first request, while no server has them in memory.
async fn limited<'a>(server: &'a Server, slug: &str, limits: TenantLimits) -> Client<'a> {
    let client = server.tenant(slug).await;
    set_limits(&mut server.owner().await, client.tenant, &limits).await.unwrap();
    client
}

/// The refusal says how long to wait.
fn refused(answer: Answer, code: &str, seconds_max: u64) -> Answer {
    let answer = answer.problem(429, code);
    let seconds: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1..=seconds_max).contains(&seconds), "{seconds}");
    assert!(!answer.header("ratelimit").is_empty() && !answer.header("ratelimit-policy").is_empty());
    answer
}

/// The headers name the limit of requests, and the one that refused.
fn named(answer: &Answer, policy: &str, state: &str) {
    assert_eq!(answer.header("ratelimit-policy"), format!("\"requests\";q=999999999;w=60, {policy}"));
    assert_eq!(answer.header("ratelimit"), format!("\"requests\";r=999999999;t=0, {state}"));
}

fn memorize() -> Value {
    memorize_that("x")
}

fn memorize_that(text: &str) -> Value {
    json!({
        "arguments": { "player_id": "player_alice", "memory_string": text },
        "actor": { "type": "npc", "id": "innkeeper_bob" },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_a_minute() {
    let server = Server::start().await;
    let acme = limited(&server, "acme", TenantLimits { requests_per_minute: 3, ..TenantLimits::unlimited() }).await;
    let other = limited(&server, "other", TenantLimits { requests_per_minute: 3, ..TenantLimits::unlimited() }).await;
    for left in [2, 1, 0] {
        let answer = acme.get("/v1/campaigns").await.expect(200);
        assert_eq!(answer.header("ratelimit-policy"), "\"requests\";q=3;w=60");
        assert!(
            answer.header("ratelimit").starts_with(&format!("\"requests\";r={left};t=")),
            "{}",
            answer.header("ratelimit")
        );
    }
    let answer = refused(acme.get("/v1/campaigns").await, "rate_limited", 20);
    assert_eq!(answer.header("ratelimit"), "\"requests\";r=0;t=60");
    // All of a tenant's credentials count together; another tenant's do not.
    refused(acme.with_scopes(&[edge::caller::Scope::Read]).await.get("/v1/campaigns").await, "rate_limited", 20);
    refused(acme.post("/v1/campaigns", json!({ "name": "x" })).await, "rate_limited", 20);
    let theirs = other.get("/v1/campaigns").await.expect(200);
    assert!(theirs.header("ratelimit").starts_with("\"requests\";r=2;"));
    // Without `/v1` nothing is counted.
    acme.get("/healthz").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_limit() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    for _ in 0..20 {
        let answer = acme.get("/v1/campaigns").await.expect(200);
        assert_eq!(answer.header("ratelimit-policy"), "\"requests\";q=999999999;w=60");
        assert_eq!(answer.header("ratelimit"), "\"requests\";r=999999999;t=0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_calls_a_minute() {
    let server = Server::start().await;
    let acme = limited(&server, "acme", TenantLimits { tools_per_minute: 2, ..TenantLimits::unlimited() }).await;
    let other = limited(&server, "other", TenantLimits { tools_per_minute: 2, ..TenantLimits::unlimited() }).await;
    let (world, theirs) = (acme.world().await, other.world().await);
    for text in ["x", "y"] {
        world.post("/tools/NPC_memorize", memorize_that(text)).await.expect(200);
    }
    let answer = refused(world.post("/tools/NPC_memorize", memorize()).await, "rate_limited", 30);
    named(&answer, "\"tools\";q=2;w=60", "\"tools\";r=0;t=60");
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.len(), 3);
    theirs.post("/tools/NPC_memorize", memorize()).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_a_minute() {
    let server = Server::start().await;
    let acme = limited(&server, "acme", TenantLimits { turns_per_minute: 1, ..TenantLimits::unlimited() }).await;
    let other = limited(&server, "other", TenantLimits { turns_per_minute: 1, ..TenantLimits::unlimited() }).await;
    let (world, theirs) = (acme.world().await, other.world().await);
    server.model.set_script(Script::replies((0..2).map(|_| Reply::text("Aye."))));
    // What starts no turn is not counted: an unknown player, an unknown NPC, a text that is no action.
    for _ in 0..3 {
        world.bob("nobody", "Hello.").await.problem(422, "validation_failed");
        acme.npc_turn("port-town", "nobody", "player_alice", "Hello.").await.problem(404, "not_found");
        let unknown = json!({ "player_id": "nobody", "message": "I wave." });
        world.post("/act", unknown.clone()).await.problem(422, "validation_failed");
        let unknown = json!({ "player_id": "nobody", "action": "I wave." });
        world.post("/rules/resolve", unknown).await.problem(422, "validation_failed");
    }
    let (path, hello) =
        (world.path("/npcs/innkeeper_bob/turns"), json!({ "player_id": "player_alice", "action": "Hello." }));
    let first = acme.post_with_key(&path, "k", hello.clone()).await.expect(200);
    let answer = refused(world.bob("player_alice", "Hello again.").await, "rate_limited", 60);
    named(&answer, "\"turns\";q=1;w=60", "\"turns\";r=0;t=60");
    // An answer that was lost is no turn, and is not limited; it is told as it is asked for.
    let again = acme.post_with_key(&path, "k", hello.clone()).await.expect(200);
    assert_eq!((again.header("idempotency-replayed"), &again.text), ("true", &first.text));
    let later = acme.request(Method::POST, &path).header("idempotency-key", "k").header("prefer", "respond-async");
    let later = acme.send(later.json(&hello)).await.expect(202);
    assert_eq!((&later.body["turn_id"], &later.body["status"]), (&first.body["id"], &json!("succeeded")));
    let other = json!({ "player_id": "player_alice", "action": "Bye." });
    acme.post_with_key(&path, "k", other).await.problem(422, "idempotency_key_reused");
    let of_owner = acme.owner_turn("port-town", "town_council_owner", "player_alice", "Hello.").await;
    refused(of_owner, "rate_limited", 60);
    theirs.bob("player_alice", "Hello.").await.expect(200);
    assert_eq!(world.get("/turns").await.expect(200).items().len(), 1);
}

/// A limit holds for those who come at once, and replays take nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn turns_that_come_at_once_are_counted_before_they_begin() {
    let server = Server::start().await;
    let acme = limited(&server, "acme", TenantLimits { turns_per_minute: 3, ..TenantLimits::unlimited() }).await;
    let world = acme.world().await;
    server.model.set_script(Script::always(Reply::text("Aye.").delay_ms(200)));
    let path = world.path("/npcs/innkeeper_bob/turns");
    let ask = |key: &'static str, player: &'static str| {
        acme.post_with_key(&path, key, json!({ "player_id": player, "action": "Hello." }))
    };
    ask("first", "player_alice").await.expect(200);
    let replays = join_all((0..8).map(|_| ask("first", "player_alice")));
    let unknown = join_all((0..8).map(|_| ask("none", "nobody")));
    let (replays, unknown) = join(replays, unknown).await;
    assert!(replays.iter().all(|answer| answer.status == 200 && answer.header("idempotency-replayed") == "true"));
    assert!(unknown.iter().all(|answer| matches!(answer.status, 422 | 429)));
    for n in 0..8 {
        world.post("/characters", json!({ "slug": format!("guest_{n}"), "name": "Guest" })).await.expect(201);
    }
    let rules = |n: u32| {
        let body = json!({ "player_id": format!("guest_{n}"), "action": "I wave." });
        let world = &world;
        async move { world.post("/rules/resolve", body).await.status }
    };
    let answers = join_all((0..8).map(rules)).await;
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 2, "{answers:?}");
    assert_eq!(answers.iter().filter(|status| **status == 429).count(), 6, "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_at_a_time() {
    let server = Server::start().await;
    let acme = limited(&server, "acme", TenantLimits { concurrent_turns: 1, ..TenantLimits::unlimited() }).await;
    let other = limited(&server, "other", TenantLimits { concurrent_turns: 1, ..TenantLimits::unlimited() }).await;
    let (world, theirs) = (acme.world().await, other.world().await);
    server.model.set_script(Script::replies((0..3).map(|_| Reply::text("Aye.").held())));
    let both = async {
        let (first, second) = (pin!(world.bob("player_alice", "Hello.")), pin!(world.bob("player_mallory", "Hello.")));
        let (refused, runs) = select(first, second).await.factor_first();
        server.model.let_go(3);
        (refused, runs.await)
    };
    let ((not, done), elsewhere) = join(both, theirs.bob("player_alice", "Hello.")).await;
    elsewhere.expect(200);
    done.expect(200);
    let answer = refused(not, "rate_limited", 60);
    named(&answer, "\"concurrent-turns\";q=1;qu=\"concurrent-requests\"", "\"concurrent-turns\";r=0;t=1");
    server.model.set_script(Script::replies([Reply::text("Aye.")]));
    world.bob("player_mallory", "Now?").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_a_day() {
    let server = Server::start().await;
    let acme = limited(&server, "acme", TenantLimits { tokens_per_day: 1, ..TenantLimits::unlimited() }).await;
    let world = acme.world().await;
    server.model.set_script(Script::replies([Reply::text("Aye."), Reply::text("Aye.")]));
    world.bob("player_alice", "Hello.").await.expect(200);
    refused(world.bob("player_alice", "Hello again.").await, "quota_exceeded", 86_400);
    // Yesterday's tokens do not count.
    let yesterday = "UPDATE usage_entry SET created_at = created_at - interval '1 day'";
    sqlx::query(yesterday).execute(&mut server.owner().await).await.unwrap();
    world.bob("player_alice", "Good morning.").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_kind() {
    let server = Server::start().await;
    let acme = limited(&server, "acme", TenantLimits { rows_per_kind: 2, ..TenantLimits::unlimited() }).await;
    let campaign = |slug: &str| json!({ "slug": slug, "name": slug });
    acme.post("/v1/campaigns", campaign("a")).await.expect(201);
    acme.post("/v1/campaigns", campaign("b")).await.expect(201);
    refused(acme.post("/v1/campaigns", campaign("c")).await, "quota_exceeded", 60);
    // Counted over all campaigns of the tenant, each kind for itself.
    for (kind, body) in [
        ("characters", json!({ "name": "x" })),
        ("npcs", json!({ "name": "x" })),
        ("owners", json!({ "name": "x", "monitored_aspect": "race", "associated_id": "elf" })),
        ("lore", json!({ "title": "x", "scope": "global", "content": "x" })),
        ("scenes", json!({ "name": "x" })),
        ("messages", json!({ "content": "x" })),
        ("npcs/x/memories", json!({ "player_id": "x_2", "text": "x" })),
    ] {
        let mut body = body;
        let at_a = format!("/v1/campaigns/a/{kind}");
        if kind == "characters" {
            body["slug"] = json!("x_2");
        }
        let first = acme.post(&at_a, body.clone()).await.expect(201);
        let second = if kind.ends_with("memories") { at_a.clone() } else { format!("/v1/campaigns/b/{kind}") };
        acme.post(&second, body.clone()).await.expect(201);
        refused(
            acme.post(&at_a, {
                body["slug"] = Value::Null;
                without_null(body.clone())
            })
            .await,
            "quota_exceeded",
            60,
        );
        if kind == "messages" {
            acme.delete(first.header("location")).await.expect(204);
            acme.post(&at_a, without_null(body)).await.expect(201);
        }
    }
    let other = server.tenant("other").await;
    other.post("/v1/campaigns", campaign("a")).await.expect(201);
}

/// What an AI remembers is a row like any other: the model is told when there is no room.
#[tokio::test(flavor = "multi_thread")]
async fn memories_of_tools_are_rows_too() {
    let server = Server::start().await;
    let acme = limited(&server, "acme", TenantLimits { rows_per_kind: 4, ..TenantLimits::unlimited() }).await;
    // Two memories come with the documents; the council has one NPC.
    let world = acme.world().await;
    world.post("/tools/NPC_memorize", memorize()).await.expect(200);
    let as_council = |tool: &str, text: &str| {
        let path = format!("/tools/{tool}");
        let arguments = memorize_that(text)["arguments"].clone();
        let body = json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "arguments": arguments });
        let world = &world;
        async move { world.post(&path, body).await }
    };
    world.patch("/npcs/harbour_ilse", json!({ "owner_ids": ["town_council_owner"] })).await.expect(200);
    let refused = as_council("OWNER_memorize_dependables", "x").await.problem(429, "quota_exceeded");
    assert!(refused.text.contains("4 rows of memory"), "{}", refused.text);
    let known = as_council("OWNER_memorize", "x").await.expect(200).body["result"].clone();
    as_council("OWNER_memorize", "y").await.problem(429, "quota_exceeded");
    assert_eq!(as_council("OWNER_memorize", "x").await.expect(200).body["result"], known, "this needs no room");
    server.model.set_script(Script::replies([
        Reply::text("").with_tool("NPC_memorize", memorize_that("y")["arguments"].clone()),
        Reply::text("My head is full."),
    ]));
    let turn = world.bob("player_alice", "Remember this.").await.expect(200).body;
    assert_eq!((&turn["narrative"], &turn["tool_calls"][0]["status"]), (&json!("My head is full."), &json!("failed")));
    assert_eq!(turn["tool_calls"][0]["error"]["code"], "quota_exceeded");
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.len(), 2);
}

/// A body without the members that are null.
fn without_null(mut body: Value) -> Value {
    if let Value::Object(members) = &mut body {
        members.retain(|_, value| !value.is_null());
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_the_operators() {
    let server = Server::start().await;
    let acme = limited(&server, "acme", TenantLimits { rows_per_kind: 7, ..TenantLimits::unlimited() }).await;
    let shown = acme.get("/v1/tenant").await.expect(200);
    assert_eq!(shown.body["limits"]["rows_per_kind"], 7);
    let refused = acme.patch("/v1/tenant", json!({ "limits": { "rows_per_kind": 0 } })).await;
    assert_eq!(refused.problem(422, "validation_failed").pointers(), ["/limits"]);
    // A change by the operator holds soon, for keys in use, too.
    let tight = TenantLimits { rows_per_kind: 1, ..TenantLimits::unlimited() };
    acme.post("/v1/campaigns", json!({ "name": "a" })).await.expect(201);
    set_limits(&mut server.owner().await, acme.tenant, &tight).await.unwrap();
    until("the new limit", async || acme.get("/v1/tenant").await.expect(200).body["limits"]["rows_per_kind"] == 1)
        .await;
    until("the quota", async || acme.post("/v1/campaigns", json!({ "name": "b" })).await.status == 429).await;
    acme.post("/v1/campaigns", json!({ "name": "b" })).await.problem(429, "quota_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_credentials_is_slowed_down() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let guess = acme.with_credential(&format!("tk_abcdefgh_{}", "x".repeat(43)));
    let mut answers = 0;
    let limited = loop {
        let answer = guess.get("/v1/campaigns").await;
        if answer.status == 429 {
            break answer;
        }
        answer.problem(401, "unauthenticated");
        answers += 1;
        assert!(answers < 400, "guessing goes on for ever");
    };
    refused(limited, "rate_limited", 60);
    assert!(answers >= 300, "{answers}");
    // Who has a credential is not held up by those who guess.
    acme.get("/v1/campaigns").await.expect(200);
}
