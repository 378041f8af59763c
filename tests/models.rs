//! `/v1/models`: profiles, which of them answers, and what is sent to its endpoint.

use base::clock;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Client, Server, World, until};

/// Tenants may use the models that tests start on loopback.
const PRIVATE: [(&str, &str); 2] = [("LLM_TENANT_PRIVATE_ALLOWED", "true"), ("LLM_RETRIES", "0")];

async fn another_model() -> rehearsal::Rehearsal {
    rehearsal::start(rehearsal::Options { record_requests_max: 100, ..Default::default() }).await.unwrap()
}

async fn profile(tenant: &Client<'_>, slug: &str, more: Value) -> Value {
    let mut body = json!({ "slug": slug, "name": slug });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tenant.post("/v1/models", body).await.expect(201).body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaigns_npcs_speak_through_the_profile_that_it_names() {
    let server = Server::start_with(&PRIVATE).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let other = another_model().await;
    other.set_script(Script::always(Reply::text("Another voice.")));
    server.model.set_script(Script::always(Reply::text("The usual voice.")));
    let parameters = json!({ "temperature": 0.3, "top_p": 0.9, "max_output_tokens": 321, "stop": ["###"], "seed": 7,
        "presence_penalty": 0.5, "frequency_penalty": -0.5, "reasoning_effort": "low", "extra": { "min_p": 0.05, "provider": { "order": ["a"] } } });
    let more = json!({ "endpoint": other.base_url(), "model": "bard", "parameters": parameters,
        "prices": { "prompt": 1_000_000, "cached": 0, "completion": 1_000_000 } });
    profile(&tenant, "bard", more).await;
    let turn = world.bob("player_alice", "Hello.").await.expect(200);
    assert_eq!((turn.body["narrative"].as_str(), other.requests().len()), (Some("The usual voice."), 0));
    let sent = server.model.requests().pop().unwrap();
    assert_eq!((&sent["max_tokens"], sent.get("temperature")), (&json!(4096), None), "an output limit is always sent");

    world.patch("", json!({ "settings": { "models": { "npc": "bard" } } })).await.expect(200);
    let turn = world.bob("player_alice", "Hello again.").await.expect(200);
    assert_eq!((turn.body["narrative"].as_str(), turn.body["model"].as_str()), (Some("Another voice."), Some("bard")));
    let sent = other.requests().pop().unwrap();
    for (name, value) in [
        ("model", json!("bard")),
        ("max_tokens", json!(321)),
        ("temperature", json!(0.3)),
        ("top_p", json!(0.9)),
        ("stop", json!(["###"])),
        ("seed", json!(7)),
        ("presence_penalty", json!(0.5)),
        ("frequency_penalty", json!(-0.5)),
        ("reasoning_effort", json!("low")),
        ("min_p", json!(0.05)),
        ("provider", json!({ "order": ["a"] })),
    ] {
        assert_eq!(sent[name], value, "{name}");
    }
    let record = world.get(&format!("/turns/{}", turn.id())).await.expect(200).body;
    let call = &record["trace"]["llm_calls"][0];
    assert_eq!((&call["profile"], &call["parameters"]["temperature"]), (&json!("bard"), &json!(0.3)), "{record}");
    assert!(call["cost_micros"].as_u64().is_some_and(|cost| cost > 0), "{call}");
    // Other tasks keep the tenant's model, until the tenant names another for them.
    world.client.owner_turn(&world.slug, "town_council_owner", "player_alice", "I ask.").await.expect(200);
    assert_eq!((other.requests().len(), server.model.requests().len()), (1, 2));
    tenant
        .patch("/v1/tenant", json!({ "settings": { "models": { "owner": "bard", "npc": "bard" } } }))
        .await
        .expect(200);
    world.client.owner_turn(&world.slug, "town_council_owner", "player_alice", "I ask again.").await.expect(200);
    assert_eq!((other.requests().len(), server.model.requests().len()), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_planner_the_rules_and_the_narrator_have_models_of_their_own() {
    let server = Server::start_with(&PRIVATE).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for task in ["plan", "classify", "narrate", "gm"] {
        let extra =
            json!({ "parameters": { "extra": { "task": task } }, "endpoint": server.model.base_url(), "model": task });
        profile(&tenant, task, extra).await;
    }
    let models = json!({ "plan": "plan", "classify": "classify", "narrate": "narrate", "gm": "gm" });
    world.patch("", json!({ "settings": { "models": models } })).await.expect(200);
    server.model.set_script(Script::replies([
        Reply::text(
            json!({ "command": "do", "args": { "message": "I climb the wall." }, "confidence": 1.0 }).to_string(),
        ),
        Reply::tool("mark_no_check", json!({ "reason": "It is low." })),
        Reply::text("Up she goes."),
        Reply::text("The fog rolls in."),
    ]));
    let act =
        world.post("/act", json!({ "player_id": "player_alice", "message": "I climb the wall." })).await.expect(200);
    assert_eq!(act.body["outcome"], "executed", "{}", act.text);
    let session = world.post("/sessions", json!({ "client_id": "vtt" })).await.expect(201).id();
    world.post(&format!("/sessions/{session}/turns"), json!({ "instruction": "Go on." })).await.expect(200);
    let tasks: Vec<_> = server.model.requests().iter().map(|sent| sent["task"].clone()).collect();
    assert_eq!(tasks, ["plan", "classify", "narrate", "gm"]);
    // Each is counted for itself, and a turn that asked two of them is one turn.
    let used = tenant.get("/v1/usage?group_by=profile,task").await.expect(200);
    let rows: Vec<_> = used.items().iter().map(|row| [&row["profile"], &row["task"], &row["llm_calls"]]).collect();
    let one = json!(1);
    let [classify, gm, narrate, plan] = ["classify", "gm", "narrate", "plan"].map(|task| json!(task));
    let each = [&classify, &gm, &narrate, &plan].map(|task| [task, task, &one]);
    assert_eq!(rows, each, "{}", used.text);
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    let players = tenant.get("/v1/usage?group_by=player").await.expect(200);
    let hers = players.items().iter().find(|row| row["player_id"] == alice.as_str()).unwrap();
    let turns = world.get("/turns").await.expect(200);
    let by_her =
        turns.items().iter().filter(|turn| turn["player_id"] == alice.as_str() && turn["usage"]["llm_calls"] != 0);
    assert_eq!((&hers["llm_calls"], &hers["turns"]), (&json!(3), &json!(by_her.count())), "{}", players.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_npc_and_an_owner_answer_through_models_of_their_own() {
    let server = Server::start_with(&PRIVATE).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::always(Reply::text("The usual voice.")));
    let said = "<response><narrative>Another voice.</narrative><tools>[]</tools></response>";
    let other = another_model().await;
    other.set_script(Script::always(Reply::text(said)));
    profile(&tenant, "campaigns", json!({})).await;
    profile(&tenant, "own", json!({ "endpoint": other.base_url(), "supports": { "tools": false } })).await;
    let models = json!({ "npc": "campaigns", "owner": "campaigns" });
    world.patch("", json!({ "settings": { "models": models } })).await.expect(200);
    let profile_of = async |turn: &crate::support::Answer| {
        let record = world.get(&format!("/turns/{}", turn.id())).await.expect(200).body;
        record["trace"]["llm_calls"][0]["profile"].clone()
    };
    let ask_owner =
        async || world.client.owner_turn(&world.slug, "town_council_owner", "player_alice", "I ask.").await.expect(200);
    // From the next turn on, also where the prompt is cached and the model replies in another way.
    for (model, narrative, by) in [
        (json!(null), "The usual voice.", "campaigns"),
        (json!("own"), "Another voice.", "own"),
        (json!(null), "The usual voice.", "campaigns"),
    ] {
        world.patch("/npcs/innkeeper_bob", json!({ "model": model })).await.expect(200);
        world.patch("/owners/town_council_owner", json!({ "model": model })).await.expect(200);
        for _ in 0..2 {
            for turn in [world.bob("player_alice", "Hello.").await.expect(200), ask_owner().await] {
                assert_eq!(
                    (&turn.body["narrative"], profile_of(&turn).await),
                    (&json!(narrative), json!(by)),
                    "{model}"
                );
            }
        }
    }
    world.patch("/npcs/innkeeper_bob", json!({ "model": "own" })).await.expect(200);
    world.patch("/owners/town_council_owner", json!({ "model": "own" })).await.expect(200);
    let refused = tenant.delete("/v1/models/own").await.problem(409, "referenced");
    let named =
        ["/campaigns/port-town/npcs/innkeeper_bob/model", "/campaigns/port-town/owners/town_council_owner/model"];
    assert_eq!(refused.pointers(), named);
    for path in ["/npcs/innkeeper_bob", "/owners/town_council_owner"] {
        let unknown = world.patch(path, json!({ "model": "nobody" })).await;
        assert_eq!(unknown.problem(422, "validation_failed").pointers(), ["/model"]);
    }
    // One that cannot be asked is forgotten with the next choice.
    let mut db = server.owner().await;
    sqlx::query("UPDATE model_profile SET api_key = '\\x00' WHERE slug = 'own'").execute(&mut db).await.unwrap();
    sqlx::query("UPDATE tenant SET name = name").execute(&mut db).await.unwrap();
    until("the tenant's new version", async || world.bob("player_alice", "Hello.").await.status == 502).await;
    world.patch("/npcs/innkeeper_bob", json!({ "model": "campaigns" })).await.expect(200);
    world.bob("player_alice", "Hello.").await.expect(200);
    tenant.patch("/v1/models/own", json!({ "api_key": null })).await.expect(200);
    world.patch("/npcs/innkeeper_bob", json!({ "model": "own" })).await.expect(200);
    // Players do not see it.
    let player = tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice" })).await;
    assert_eq!(player.get(&world.path("/npcs/innkeeper_bob")).await.expect(200).body.get("model"), None);
    // Where no profile has that slug, the campaign's choice answers, and the row can be changed.
    let document = world.get("/export").await.expect(200).body;
    let rival = server.tenant("rival").await;
    rival.post("/v1/campaigns/import", document).await.expect(200);
    let town = "/v1/campaigns/port-town";
    let bob = rival.patch(&format!("{town}/npcs/innkeeper_bob"), json!({ "disposition": "wary" })).await.expect(200);
    assert_eq!(bob.body["model"], "own");
    let turn = rival.npc_turn("port-town", "innkeeper_bob", "player_alice", "Hello.").await.expect(200);
    assert_eq!(turn.body["narrative"], "The usual voice.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_decides_how_its_model_replies() {
    let server = Server::start_with(&PRIVATE).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    profile(&tenant, "plain", json!({ "supports": { "tools": false } })).await;
    let said = "<response><narrative>Aye.</narrative><tools>[]</tools></response>";
    server.model.set_script(Script::always(Reply::text(said)));
    world.patch("", json!({ "settings": { "models": { "npc": "plain", "gm": "plain" } } })).await.expect(200);
    for _ in 0..2 {
        let turn = world.bob("player_alice", "Hello.").await.expect(200);
        assert_eq!(turn.body["narrative"], "Aye.");
        assert_eq!(world.get(&format!("/turns/{}", turn.id())).await.expect(200).body["reply_mode"], "xml");
        assert_eq!(server.model.requests().pop().unwrap().get("tools"), None);
    }
    let session = world.post("/sessions", json!({ "client_id": "vtt" })).await.expect(201).id();
    for _ in 0..2 {
        let turn =
            world.post(&format!("/sessions/{session}/turns"), json!({ "instruction": "Go on." })).await.expect(200);
        assert_eq!(turn.body["narrative"], "Aye.");
        assert_eq!(world.get(&format!("/turns/{}", turn.id())).await.expect(200).body["reply_mode"], "xml");
    }
    // One that cannot stream is asked for whole answers, and its client still hears a stream.
    for (supports, streams, counts) in [
        (json!({ "streaming": false }), false, false),
        (json!({ "streaming": null, "stream_usage": false }), true, false),
    ] {
        tenant.patch("/v1/models/plain", json!({ "supports": supports })).await.expect(200);
        let body = json!({ "player_id": "player_alice", "action": "Hello.", "stream": true });
        let asked = tenant.request(reqwest::Method::POST, &world.path("/npcs/innkeeper_bob/turns")).json(&body);
        let heard = crate::support::sse::Events::open(asked, None).await.rest().await;
        assert_eq!(heard.last().unwrap().name, "turn.completed");
        let sent = server.model.requests().pop().unwrap();
        assert_eq!((sent["stream"] == true, sent.get("stream_options").is_some()), (streams, counts));
    }
    // A change of the profile counts from the next turn on, and what a request asks for counts most.
    tenant.patch("/v1/models/plain", json!({ "supports": { "tools": true } })).await.expect(200);
    world.bob("player_alice", "Hello.").await.expect(200);
    assert!(server.model.requests().pop().unwrap()["tools"].is_array());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_written_read_and_deleted_and_its_secrets_are_never_shown() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let secret = "sk-quite-secret";
    let more = json!({ "endpoint": "https://api.example.com/v1", "api_key": secret, "model": "large",
        "headers": { "X-Title": "Port Town", "X-Tenant-Ref": secret, "api-key": secret } });
    let made = profile(&tenant, "large", more).await;
    assert_eq!(
        (&made["has_api_key"], &made["headers"]),
        (&json!(true), &json!({ "X-Title": "***", "X-Tenant-Ref": "***", "api-key": "***" })),
        "any value may be a secret"
    );
    let read = tenant.get("/v1/models/large").await.expect(200);
    assert_eq!(read.body, made);
    assert!(!read.text.contains(secret) && !tenant.get("/v1/models").await.expect(200).text.contains(secret));
    let mut db = server.owner().await;
    let stored: String =
        sqlx::query_scalar("SELECT to_jsonb(m)::text FROM model_profile m").fetch_one(&mut db).await.unwrap();
    assert!(!stored.contains(secret), "it is encrypted");
    // A patch keeps what it does not name. The key goes with its endpoint.
    let path = "/v1/models/large";
    let patched = tenant
        .patch(path, json!({ "parameters": { "temperature": 1.5 }, "headers": { "X-Title": null } }))
        .await
        .expect(200);
    let kept = json!({ "X-Tenant-Ref": "***", "api-key": "***" });
    assert_eq!((&patched.body["has_api_key"], &patched.body["headers"]), (&json!(true), &kept));
    let elsewhere = tenant.patch(path, json!({ "endpoint": "https://other.example.com/v1" })).await.expect(200);
    assert_eq!(elsewhere.body["has_api_key"], false);
    // Who is named is not deleted.
    profile(&tenant, "small", json!({ "fallbacks": ["large"] })).await;
    world.patch("", json!({ "settings": { "models": { "gm": "large" } } })).await.expect(200);
    let refused = tenant.delete(path).await.problem(409, "referenced");
    assert_eq!(refused.pointers(), ["/models/small", "/campaigns/port-town/settings/models/gm"]);
    tenant.patch("/v1/models/small", json!({ "fallbacks": [] })).await.expect(200);
    world.patch("", json!({ "settings": { "models": null } })).await.expect(200);
    tenant.delete(path).await.expect(204);
    tenant.get(path).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_is_refused() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let cases = [
        (json!({ "endpoint": "http://127.0.0.1:9/v1" }), "/endpoint"),
        (json!({ "endpoint": "https://10.0.0.7/v1" }), "/endpoint"),
        (json!({ "api_key": "sk" }), "/api_key"),
        (json!({ "model": "a model that the operator does not offer" }), "/model"),
        (json!({ "parameters": { "temperature": 2.5 } }), "/parameters/temperature"),
        (json!({ "parameters": { "max_output_tokens": 0 } }), "/parameters/max_output_tokens"),
        (json!({ "parameters": { "hotness": 1 } }), "/parameters/hotness"),
        (json!({ "parameters": { "extra": null } }), "/parameters/extra"),
        (json!({ "parameters": { "extra": { "messages": [] } } }), "/parameters/extra"),
        (json!({ "parameters": { "extra": { "Stream": false } } }), "/parameters/extra"),
        (json!({ "parameters": { "extra": { "temperature": 1 } } }), "/parameters/extra"),
        (json!({ "headers": { "Authorization": "Bearer x" } }), "/headers/Authorization"),
        (json!({ "headers": { "X-A": "a\r\nHost: evil" } }), "/headers/X-A"),
        (json!({ "timeouts": { "first_token_ms": 1 } }), "/timeouts/first_token_ms"),
        (
            json!({ "prices": { "prompt": 1, "cached": 1, "completion": 9_000_000_000_000_000_000_u64 } }),
            "/prices/completion",
        ),
        (json!({ "context_tokens": 5 }), "/context_tokens"),
        (json!({ "fallbacks": ["nobody"] }), "/fallbacks/0"),
        (json!({ "fallbacks": ["new"] }), "/fallbacks/0"),
    ];
    for (more, pointer) in cases {
        let mut body = json!({ "slug": "new", "name": "New" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let refused = tenant.post("/v1/models", body).await.problem(422, "validation_failed");
        assert!(refused.pointers().contains(&pointer), "{more}: {}", refused.text);
    }
    assert!(tenant.get("/v1/models").await.expect(200).items().is_empty());
    let unknown = json!({ "settings": { "models": { "npc": "nobody" } } });
    assert_eq!(
        world.patch("", unknown.clone()).await.problem(422, "validation_failed").pointers(),
        ["/settings/models/npc"]
    );
    assert_eq!(
        tenant.patch("/v1/tenant", unknown).await.problem(422, "validation_failed").pointers(),
        ["/settings/models/npc"]
    );
    let unknown = json!({ "settings": { "models": { "bard": "nobody" } } });
    world.patch("", unknown).await.problem(422, "validation_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_says_what_it_offers_and_is_tried() {
    let server = Server::start_with(&PRIVATE).await;
    let tenant = server.tenant("acme").await;
    let other = another_model().await;
    profile(&tenant, "other", json!({ "endpoint": other.base_url(), "model": "rehearsal" })).await;
    let offered = tenant.get("/v1/models/other/available").await.expect(200);
    assert!(offered.items().iter().any(|model| model["id"] == "rehearsal"), "{}", offered.text);
    let both = Reply::tool("report_colour", json!({ "value": "blue" }))
        .with_tool("report_number", json!({ "value": "seven" }));
    other.set_script(Script::replies([
        Reply::text("one two three four five six seven eight nine ten"),
        both,
        Reply::text("{\"colour\": \"blue\"}"),
        Reply::text("Nine."),
        Reply::text("Nine."),
    ]));
    let tested = tenant.post("/v1/models/other/test", json!({})).await.expect(200).body;
    let works = |name: &str| {
        let checks = tested["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {tested}"))["works"].clone()
    };
    assert_eq!(tested["works"], true, "{tested}");
    for name in ["answer", "streaming", "stream_usage", "tools", "parallel_tools", "json_schema", "cached_tokens"] {
        assert_eq!(works(name), true, "{name}: {tested}");
    }
    assert_eq!(works("reasoning"), false);
    assert_eq!(tested["supports"]["output_limit"], "max_tokens");
    tenant.patch("/v1/models/other", json!({ "supports": tested["supports"] })).await.expect(200);
    // Who cannot be reached is a finding.
    profile(&tenant, "nowhere", json!({ "endpoint": "http://127.0.0.1:1/v1" })).await;
    let tested = tenant.post("/v1/models/nowhere/test", json!({})).await.expect(200).body;
    assert_eq!((&tested["works"], tested["checks"].as_array().unwrap().len()), (&json!(false), 1));
    tenant.get("/v1/models/nowhere/available").await.problem(502, "llm_unavailable");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fallback_answers_when_a_profile_cannot() {
    let server = Server::start_with(&PRIVATE).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let broken = another_model().await;
    profile(&tenant, "plan-b", json!({ "parameters": { "temperature": 0.1 } })).await;
    let more = json!({ "endpoint": broken.base_url(), "model": "first", "fallbacks": ["plan-b"] });
    profile(&tenant, "first", more).await;
    profile(&tenant, "nowhere", json!({ "endpoint": "http://127.0.0.1:1/v1", "fallbacks": ["first", "plan-b"] })).await;
    world.patch("", json!({ "settings": { "models": { "npc": "first", "owner": "nowhere" } } })).await.expect(200);
    server.model.set_script(Script::always(Reply::text("I am here.")));
    for (reply, reason) in [
        (Reply::status(500), "server_error"),
        (Reply::status(429), "rate_limited"),
        (Reply::close(), "dropped"),
        (Reply::text(""), "empty"),
    ] {
        broken.set_script(Script::always(reply));
        let turn = world.bob("player_alice", "Hello.").await.expect(200);
        assert_eq!(turn.body["narrative"], "I am here.", "{reason}");
        let record = world.get(&format!("/turns/{}", turn.id())).await.expect(200).body;
        let call = &record["trace"]["llm_calls"][0];
        let tried = &call["tried"][0];
        let named = json!([tried["profile"], tried["model"], tried["reason"]]);
        assert_eq!((named, call["tried"].as_array().unwrap().len()), (json!(["first", "first", reason]), 1), "{call}");
        // Only an answer that says nothing was paid for.
        assert_eq!(tried["usage"].is_object(), reason == "empty", "{call}");
        assert_eq!((&call["profile"], &call["parameters"]["temperature"]), (&json!("plan-b"), &json!(0.1)));
    }
    let used = tenant.get("/v1/usage?group_by=profile").await.expect(200);
    let calls: Vec<_> = used.items().iter().map(|row| (row["profile"].clone(), row["llm_calls"].clone())).collect();
    assert_eq!(calls, [(json!("first"), json!(1)), (json!("plan-b"), json!(4))], "each pays for its own");
    // One after the other, in their order.
    broken.set_script(Script::always(Reply::status(503)));
    let turn = world.client.owner_turn(&world.slug, "town_council_owner", "player_alice", "I ask.").await.expect(200);
    let record = world.get(&format!("/turns/{}", turn.id())).await.expect(200).body;
    let tried = record["trace"]["llm_calls"][0]["tried"].as_array().unwrap().clone();
    let profiles: Vec<_> = tried.iter().map(|tried| tried["profile"].as_str().unwrap()).collect();
    assert_eq!(profiles, ["nowhere", "first"]);
    // A request that is rejected would be rejected again, and what was passed on cannot be withdrawn.
    let other = World::make(&tenant, "other-town").await;
    let rejecting = another_model().await;
    rejecting.set_script(Script::always(Reply::status(400)));
    profile(&tenant, "strict", json!({ "endpoint": rejecting.base_url(), "fallbacks": ["plan-b"] })).await;
    other.patch("", json!({ "settings": { "models": { "npc": "strict" } } })).await.expect(200);
    other.bob("player_alice", "Hello.").await.problem(502, "llm_unavailable");
    rejecting
        .set_script(Script::always(Reply::text("It begins and never ends. ".repeat(200)).truncate_after_bytes(4000)));
    let before = server.model.request_count();
    let events = other.client.request(reqwest::Method::POST, &other.path("/npcs/innkeeper_bob/turns"));
    let body = json!({ "player_id": "player_alice", "action": "Hello.", "stream": true });
    let heard = crate::support::sse::Events::open(events.json(&body), None).await.rest().await;
    let names: Vec<_> = heard.iter().map(|event| event.name.as_str()).collect();
    assert!(names.contains(&"text.delta"), "{names:?}");
    assert_eq!((names.last(), server.model.request_count()), (Some(&"turn.failed"), before), "{names:?}");
}

/// The operator's key pays at the operator's endpoint.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_at_the_operators_endpoint_raises_no_limit() {
    let server = Server::start_with(&[("LLM_OUTPUT_TOKENS_MAX", "500")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (more, pointer) in [
        (json!({ "headers": { "OpenAI-Organization": "theirs" } }), "/headers"),
        (json!({ "parameters": { "extra": { "models": ["gpt-5"] } } }), "/parameters/extra"),
        (json!({ "parameters": { "extra": { "api_base": "https://evil.example.com" } } }), "/parameters/extra"),
    ] {
        let mut body = json!({ "slug": "new", "name": "New" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(tenant.post("/v1/models", body).await.problem(422, "validation_failed").pointers(), [pointer]);
    }
    let parameters = json!({ "max_output_tokens": 100_000, "extra": { "min_p": 0.1 } });
    profile(&tenant, "greedy", json!({ "parameters": parameters })).await;
    world.patch("", json!({ "settings": { "models": { "npc": "greedy" } } })).await.expect(200);
    world.bob("player_alice", "Hello.").await.expect(200);
    let sent = server.model.requests().pop().unwrap();
    assert_eq!((&sent["max_tokens"], &sent["min_p"]), (&json!(500), &json!(0.1)));
    // What the operator's endpoint offers to others is not shown.
    let offered = tenant.get("/v1/models/greedy/available").await.expect(200);
    assert_eq!(offered.items().len(), 1, "{}", offered.text);
    // A tenant without AI turns tests none, and a test counts.
    tenant.post("/v1/models/greedy/test", json!({})).await.expect(200);
    let used = tenant.get("/v1/usage?group_by=kind").await.expect(200);
    assert!(
        used.items().iter().any(|row| row["kind"] == "test" && row["llm_calls"].as_i64() > Some(2)),
        "{}",
        used.text
    );
    tenant.patch("/v1/tenant", json!({ "features": { "llm": false } })).await.expect(200);
    tenant.post("/v1/models/greedy/test", json!({})).await.problem(503, "feature_disabled");
}

/// A key of one endpoint is not sent to another, in whatever header it is.
#[tokio::test(flavor = "multi_thread")]
async fn secret_headers_go_with_their_endpoint() {
    let server = Server::start_with(&PRIVATE).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (ours, theirs) = (another_model().await, another_model().await);
    for model in [&ours, &theirs] {
        model.set_script(Script::always(
            Reply::status(400).with_body(json!({ "error": { "message": "no key very-secret-value" } })),
        ));
    }
    let headers = json!({ "api-key": "very-secret-value", "X-Title": "Port Town" });
    let made = profile(&tenant, "ours", json!({ "endpoint": ours.base_url(), "headers": headers })).await;
    assert_eq!(made["headers"]["api-key"], "***");
    let tested = tenant.post("/v1/models/ours/test", json!({})).await.expect(200);
    assert!(!tested.text.contains("very-secret-value"), "{}", tested.text);
    let patched =
        tenant.patch("/v1/models/ours", json!({ "name": "Ours", "headers": { "api-key": "***" } })).await.expect(200);
    assert_eq!(patched.body["headers"], json!({ "X-Title": "***", "api-key": "***" }));
    let move_to = json!({ "endpoint": theirs.base_url(), "headers": { "X-Title": "Another Town" } });
    let moved = tenant.patch("/v1/models/ours", move_to).await.expect(200);
    assert_eq!(moved.body["headers"], json!({ "X-Title": "***" }), "only what was written for the new endpoint");
    drop(world);
}

/// A profile that cannot be read is no other's error, and can be deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_cannot_be_read_answers_nothing_and_hides_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    profile(&tenant, "good", json!({})).await;
    profile(&tenant, "bad", json!({})).await;
    let mut db = server.owner().await;
    sqlx::query("UPDATE model_profile SET api_key = '\\x00' WHERE slug = 'bad'").execute(&mut db).await.unwrap();
    world.patch("", json!({ "settings": { "models": { "npc": "bad", "owner": "good" } } })).await.expect(200);
    world.bob("player_alice", "Hello.").await.problem(502, "llm_unavailable");
    world.client.owner_turn(&world.slug, "town_council_owner", "player_alice", "I ask.").await.expect(200);
    let listed = tenant.get("/v1/models").await.expect(200);
    let lost: Vec<_> = listed.items().iter().map(|row| (row["slug"].clone(), row["secrets_lost"].clone())).collect();
    assert_eq!(lost, [(json!("good"), json!(false)), (json!("bad"), json!(true))]);
    // It is whole again when somebody writes its key, or that it has none.
    let refused = tenant.patch("/v1/models/bad", json!({ "name": "Bad" })).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/api_key"]);
    let mended = tenant.patch("/v1/models/bad", json!({ "api_key": null })).await.expect(200);
    assert_eq!((&mended.body["has_api_key"], &mended.body["secrets_lost"]), (&json!(false), &json!(false)));
    world.bob("player_alice", "Hello.").await.expect(200);
    // One whose settings do not fit is not shown, and can be deleted.
    sqlx::query("UPDATE model_profile SET settings = '7' WHERE slug = 'bad'").execute(&mut db).await.unwrap();
    assert_eq!(tenant.get("/v1/models").await.expect(200).items().len(), 1);
    world.patch("", json!({ "settings": { "models": null } })).await.expect(200);
    tenant.delete("/v1/models/bad").await.expect(204);
}

/// A world of another tenant knows nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn profiles_are_their_tenants() {
    let server = Server::start().await;
    let (ours, theirs) = (server.tenant("ours").await, server.tenant("theirs").await);
    let made = profile(&ours, "bard", json!({})).await;
    for name in ["bard", made["id"].as_str().unwrap()] {
        theirs.get(&format!("/v1/models/{name}")).await.problem(404, "not_found");
    }
    profile(&theirs, "bard", json!({})).await;
    let world = World::make(&theirs, "their-town").await;
    world.patch("", json!({ "settings": { "models": { "npc": "bard" } } })).await.expect(200);
    ours.delete("/v1/models/bard").await.expect(204);
}

/// The same from the command line, beside a server on the same database.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_makes_tries_and_deletes_a_profile() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let file = std::env::temp_dir().join(format!("profile-{}.json", clock::id()));
    let path = file.to_str().unwrap().to_owned();
    let model = async |arguments: &[&str]| {
        crate::support::operator(&server.db.url, &[&["model", "--tenant", "acme"], arguments].concat()).await
    };
    let write = |profile: Value| std::fs::write(&file, profile.to_string()).unwrap();
    write(json!({ "parameters": { "temperature": 9 } }));
    let (is_done, refused) = model(&["set", "warm", &path]).await;
    assert_eq!((is_done, &refused["errors"][0]["pointer"]), (false, &json!("/parameters/temperature")), "{refused}");
    write(json!({ "parameters": { "temperature": 0.9 } }));
    let (is_done, made) = model(&["set", "warm", &path]).await;
    assert!(is_done && made["name"] == "warm" && made["parameters"]["temperature"] == 0.9, "{made}");
    write(json!({ "name": "Warm", "parameters": { "top_p": 0.5 } }));
    assert!(model(&["set", "warm", &path]).await.0);
    std::fs::remove_file(&file).unwrap();
    let (_, shown) = model(&["show", "warm"]).await;
    assert_eq!((&shown, &shown["name"]), (&tenant.get("/v1/models/warm").await.expect(200).body, &json!("Warm")));
    assert_eq!(shown["parameters"], json!({ "temperature": 0.9, "top_p": 0.5 }), "members that are not given stay");
    let (_, listed) = model(&["list"]).await;
    assert_eq!(listed["items"], json!([shown]));
    let (is_done, offered) = model(&["available", "warm"]).await;
    assert!(is_done && !offered["items"].as_array().unwrap().is_empty(), "{offered}");
    let (is_done, tested) = model(&["test", "warm"]).await;
    assert!(is_done && tested["works"] == true, "{tested}");
    // The server heard of it.
    world.patch("/npcs/innkeeper_bob", json!({ "model": "warm" })).await.expect(200);
    world.bob("player_alice", "Hello.").await.expect(200);
    assert_eq!(server.model.requests().pop().unwrap()["top_p"], 0.5);
    let (is_done, refused) = model(&["delete", "warm"]).await;
    assert_eq!((is_done, &refused["code"]), (false, &json!("referenced")), "{refused}");
    world.patch("/npcs/innkeeper_bob", json!({ "model": null })).await.expect(200);
    assert!(model(&["delete", "warm"]).await.0);
    assert_eq!(model(&["show", "warm"]).await.1["code"], "not_found");
}
