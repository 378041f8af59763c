//! A tenant's own model: its switch, its endpoint, its key.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use sqlx::Row;

use super::{body, turns};
use crate::support::{Prepared, Server, World};

#[tokio::test(flavor = "multi_thread")]
async fn ai_can_be_switched_off() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.bob("player_alice", "Hello").await.expect(200);
    tenant.patch("/v1/tenant", json!({ "settings": { "features": { "llm": false } } })).await.expect(200);
    let off = world.bob("player_alice", "Hello").await.problem(503, "feature_disabled");
    assert!(off.body.get("turn_id").is_none());
    // The preview calls no model, so it stays; other tenants are not concerned.
    world.prompt("innkeeper_bob", "player_alice", "Hello").await;
    let rival = server.tenant("rival").await;
    rival.world().await.bob("player_alice", "Hello").await.expect(200);
    tenant.patch("/v1/tenant", json!({ "settings": { "features": { "llm": true } } })).await.expect(200);
    // Beside `settings` they are read as well, and twice they are refused.
    tenant.patch("/v1/tenant", json!({ "features": { "llm": true } })).await.expect(200);
    for (name, settings) in
        [("features", json!({ "features": null })), ("llm", json!({ "llm": {} })), ("llm", json!(null))]
    {
        let twice = json!({ "settings": settings, name: [null] });
        assert_eq!(
            tenant.patch("/v1/tenant", twice).await.problem(422, "validation_failed").pointers(),
            [format!("/{name}")]
        );
    }
    world.bob("player_alice", "Hello").await.expect(200);
    assert_eq!(turns(&world).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_endpoint_must_be_public() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    for endpoint in [
        server.model.base_url().as_str(),
        "http://api.example.com/v1",
        "https://127.0.0.1/v1",
        "https://localhost/v1",
        "https://10.0.0.8/v1",
        "https://192.168.1.1/v1",
        "https://169.254.169.254/latest",
        "https://[::1]/v1",
        "https://[fd00::1]/v1",
        "https://[::ffff:127.0.0.1]/v1",
        "https://0x7f.1/v1",
        "https://2130706433/v1",
        "https://user:pass@api.example.com/v1",
        "https://api.example.com:22/v1",
        "file:///etc/passwd",
        "not a url",
    ] {
        let refused = tenant.patch("/v1/tenant", json!({ "settings": { "llm": { "endpoint": endpoint } } })).await;
        assert_eq!(refused.problem(422, "validation_failed").pointers(), ["/settings/llm/endpoint"], "{endpoint}");
    }
    let settings = tenant.get("/v1/tenant").await.expect(200);
    assert_eq!(settings.body["settings"]["llm"]["endpoint"], Value::Null);
    tenant
        .patch("/v1/tenant", json!({ "settings": { "llm": { "endpoint": "https://api.example.com/v1" } } }))
        .await
        .expect(200);
}

const KEY: &str = "sk-canary-55512345678901234567890";

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_key_goes_to_its_endpoint_and_nowhere_else() {
    let server = Server::start_with(&[("LLM_TENANT_PRIVATE_ALLOWED", "true"), ("LLM_RETRIES", "0")]).await;
    let model = rehearsal::start(rehearsal::Options { record_requests_max: 10, ..Default::default() }).await.unwrap();
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let llm = json!({ "endpoint": model.base_url(), "model": "acme-7b", "api_key": KEY });
    let patched = tenant.patch("/v1/tenant", json!({ "settings": { "llm": llm } })).await.expect(200);
    assert_eq!(patched.body["has_llm_api_key"], true);
    assert!(!patched.text.contains("canary"), "{}", patched.text);
    let turn = world.bob("player_alice", "Hello").await.expect(200);
    assert_eq!(turn.body["model"], "acme-7b");
    assert_eq!(model.request_headers()[0]["authorization"], format!("Bearer {KEY}"));
    assert_eq!(model.requests()[0]["model"], "acme-7b");
    assert_eq!(server.model.request_count(), 0);

    // It never comes back: not from the API, not from a record, not from the database.
    for path in [
        "/v1/tenant".to_owned(),
        "/v1/usage".to_owned(),
        world.path(&format!("/turns/{}", turn.id())),
        "/metrics".to_owned(),
    ] {
        assert!(!tenant.get(&path).await.expect(200).text.contains("canary"), "{path}");
    }
    let mut db = server.owner().await;
    let row = sqlx::query("SELECT llm_api_key, settings::text AS settings FROM tenant WHERE tenant_id = $1")
        .bind(tenant.tenant);
    let row = row.fetch_one(&mut db).await.unwrap();
    let sealed: Vec<u8> = row.get("llm_api_key");
    assert!(sealed.len() > KEY.len() && !sealed.windows(6).any(|w| w == b"canary"));
    assert!(!row.get::<String, _>("settings").contains("canary"));

    // A provider's error that repeats it is cleaned before anybody reads it.
    let echo = Reply::status(401).with_body(json!({ "error": { "message": format!("Incorrect API key: {KEY}") } }));
    model.set_script(Script::always(echo));
    let failed = world.bob("player_alice", "Hello").await.problem(502, "llm_unavailable");
    assert!(!failed.text.contains(KEY), "{}", failed.text);
    let id = failed.body["turn_id"].as_str().unwrap();
    assert!(!world.get(&format!("/turns/{id}")).await.expect(200).text.contains(KEY));

    // Another setting leaves the key; null removes it.
    let kept = tenant.patch("/v1/tenant", json!({ "settings": { "llm": { "model": "acme-8b" } } })).await.expect(200);
    assert_eq!(kept.body["has_llm_api_key"], true);
    let gone = tenant.patch("/v1/tenant", json!({ "settings": { "llm": { "api_key": null } } })).await.expect(200);
    assert_eq!(gone.body["has_llm_api_key"], false);
    model.set_script(Script::default());
    world.bob("player_alice", "Hello").await.expect(200);
    let last = model.request_headers().pop().unwrap();
    assert_eq!(last.get("authorization"), None, "no key of the operator's goes to a tenant's endpoint");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tenant_has_its_model() {
    let server = Server::start_with(&[("LLM_MODELS_ALLOWED", "small, big")]).await;
    let (acme, rival) = (server.tenant("acme").await, server.tenant("rival").await);
    let (ours, theirs) = (World::make(&acme, "inn").await, World::make(&rival, "inn").await);
    acme.patch("/v1/tenant", json!({ "settings": { "llm": { "model": "big" } } })).await.expect(200);
    assert_eq!(ours.bob("player_alice", "Hello").await.expect(200).body["model"], "big");
    assert_eq!(theirs.bob("player_alice", "Hello").await.expect(200).body["model"], "rehearsal");
    let asked: Vec<_> = server.model.requests().iter().map(|r| r["model"].as_str().unwrap().to_owned()).collect();
    assert_eq!(asked, ["big", "rehearsal"]);
    // Providers keep tenants' prompts apart by the key they are cached under.
    let keys: Vec<_> = server.model.requests().iter().map(|r| r["prompt_cache_key"].clone()).collect();
    assert_ne!(keys[0], keys[1]);
    let models = acme.get("/v1/usage?group_by=model").await.expect(200);
    assert_eq!(models.items()[0]["model"], "big");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_checked_and_limits_are_the_operators() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    for (bad, pointer) in [
        (json!({ "limits": { "turns_per_minute": 1 } }), "/limits"),
        (json!({ "settings": { "llm": { "reply_mode": "yaml" } } }), "/settings/llm/reply_mode"),
        (json!({ "settings": { "llm": { "temperature": 1 } } }), "/settings/llm/temperature"),
        (
            json!({ "settings": { "llm": { "prices": { "prompt": -1, "cached": 0, "completion": 0 } } } }),
            "/settings/llm/prices/prompt",
        ),
    ] {
        assert_eq!(tenant.patch("/v1/tenant", bad).await.problem(422, "validation_failed").pointers(), [pointer]);
    }
    let reader = tenant.with_scopes(&[edge::caller::Scope::Read, edge::caller::Scope::Write]).await;
    reader.patch("/v1/tenant", json!({ "settings": {} })).await.problem(403, "forbidden");
    // A turn needs the scope to play, nothing less and nothing more.
    let world = tenant.world().await;
    let path = world.path("/npcs/innkeeper_bob/turns");
    reader.post(&path, body("Hello")).await.problem(403, "forbidden");
    tenant.with_scopes(&[edge::caller::Scope::Play]).await.post(&path, body("Hello")).await.expect(200);
    server.anonymous().post(&path, body("Hello")).await.problem(401, "unauthenticated");
}

/// Whatever the log's level, no key is in it; at `info` no word of players or models either.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_keeps_keys_and_words_to_itself() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    for level in ["info", "trace"] {
        let child =
            prepared.start_with(&model, &[("RUST_LOG", level), ("LLM_API_KEY", KEY), ("LLM_RETRIES", "0")]).await;
        let echo = json!({ "error": { "message": format!("Incorrect API key: {KEY}. Blue walrus.") } });
        model.set_script(Script::replies([
            Reply::text("A red walrus."),
            Reply::status(401).with_body(echo),
            Reply::raw_body(format!("no json, but {KEY}")),
            Reply::tool("NPC_memorize", format!("{{broken {KEY} walrus")),
            Reply::text("A red walrus."),
        ]));
        for expected in [200, 502, 502, 200] {
            child.turn("innkeeper_bob", "I pay a green walrus.", None).await.unwrap().expect(expected);
        }
        let log = child.log();
        assert!(!log.contains("canary"), "{level}: {log}");
        assert!(!log.contains(&prepared.credential), "{level}");
        if level == "info" {
            assert!(!log.contains("walrus"), "{log}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_endpoint_answers_with_the_operators_models_alone() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let named = |model: &str| json!({ "settings": { "llm": { "model": model } } });
    let refused = tenant.patch("/v1/tenant", named("the-dearest")).await.problem(422, "validation_failed");
    assert_eq!(
        (refused.pointers(), &refused.body["errors"][0]["code"]),
        (vec!["/settings/llm/model"], &json!("model_not_allowed"))
    );
    assert!(refused.body["detail"].as_str().unwrap().contains("rehearsal"), "{}", refused.text);
    tenant.patch("/v1/tenant", named("rehearsal")).await.expect(200);
    world.bob("player_alice", "Hello").await.expect(200);
    // An endpoint of one's own has models of its own; without it the name is the operator's to allow again.
    let own = json!({ "settings": { "llm": { "endpoint": "https://api.example.com/v1", "model": "the-dearest" } } });
    tenant.patch("/v1/tenant", own).await.expect(200);
    let back = json!({ "settings": { "llm": { "endpoint": null } } });
    tenant.patch("/v1/tenant", back).await.problem(422, "validation_failed");
    // What was allowed once is asked again when it is used, and does not keep other settings from being changed.
    let stored = "UPDATE tenant SET settings = jsonb_set(settings, '{llm}', '{\"model\": \"the-dearest\"}')";
    sqlx::query(stored).execute(&mut server.owner().await).await.unwrap();
    server.app.keys.forget();
    let asked = server.model.request_count();
    world.bob("player_alice", "Hello").await.problem(502, "llm_unavailable");
    assert_eq!(server.model.request_count(), asked);
    tenant.patch("/v1/tenant", json!({ "name": "Acme & Co" })).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_does_not_go_to_another_endpoint() {
    let server = Server::start_with(&[("LLM_TENANT_PRIVATE_ALLOWED", "true"), ("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let theirs = rehearsal::start(rehearsal::Options { record_requests_max: 10, ..Default::default() }).await.unwrap();
    let mine = rehearsal::start(rehearsal::Options { record_requests_max: 10, ..Default::default() }).await.unwrap();
    let llm =
        async |llm: Value| tenant.patch("/v1/tenant", json!({ "settings": { "llm": llm } })).await.expect(200).body;
    let has_key = |answer: &Value| answer["has_llm_api_key"] == true;
    let set = json!({ "endpoint": theirs.base_url(), "api_key": KEY });
    // The same endpoint, however it is spelled, keeps its key; host, port, scheme and path make another.
    let spelled = format!("{}/chat/completions", theirs.base_url());
    assert!(has_key(&llm(set.clone()).await) && has_key(&llm(json!({ "endpoint": spelled })).await));
    let of_theirs = theirs.base_url();
    for other in [
        mine.base_url(),
        of_theirs.replace("127.0.0.1", "localhost"),
        of_theirs.replace("http://", "https://"),
        of_theirs.replace("/v1", "/v2"),
    ] {
        assert!(has_key(&llm(set.clone()).await));
        assert!(!has_key(&llm(json!({ "endpoint": other })).await), "{other}");
    }
    llm(set.clone()).await;
    assert!(!has_key(&llm(json!({ "endpoint": null })).await));
    llm(set.clone()).await;
    llm(json!({ "endpoint": mine.base_url() })).await;
    world.bob("player_alice", "Hello").await.expect(200);
    assert_eq!(mine.request_headers()[0].get("authorization"), None, "the key went where it was not given to");
    // With the endpoint comes its own key, in one change.
    assert!(has_key(&llm(json!({ "endpoint": theirs.base_url(), "api_key": "sk-another-one" })).await));
}
