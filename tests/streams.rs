//! Turns that are heard while they run: streamed, asynchronous, resumed, on another server, cancelled, broken.

use base::clock;
use edge::caller::Scope;
use futures_util::future::join_all;
use rehearsal::{Reply, Script, UsageOverride};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Child, Client, Prepared, Server, World,
    sse::{Event, Events},
};

const BOB: &str = "/npcs/innkeeper_bob/turns";

fn ask(more: Value) -> Value {
    let mut body = json!({ "player_id": "player_alice", "action": "I ask about the harbour.", "stream": true });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn stream(client: &Client<'_>, path: &str, body: Value) -> Events {
    Events::open(client.request(Method::POST, &format!("/v1/campaigns/port-town{path}")).json(&body), None).await
}

async fn listen(client: &Client<'_>, turn: &str, last: Option<&str>) -> Events {
    Events::open(client.request(Method::GET, &format!("/v1/campaigns/port-town/turns/{turn}/events")), last).await
}

/// All text, in order.
fn text(events: &[Event]) -> String {
    events.iter().filter(|e| e.name == "text.delta").map(|e| e.data["text"].as_str().unwrap()).collect()
}

/// Everything but text, by name.
fn names(events: &[Event]) -> Vec<&str> {
    let mut names: Vec<&str> = events.iter().map(|e| e.name.as_str()).collect();
    names.dedup();
    names
}

fn turn_id(events: &[Event]) -> String {
    events[0].data["turn_id"].as_str().unwrap().to_owned()
}

fn remember() -> Reply {
    let arguments = json!({ "player_id": "player_alice", "memory_string": "Asked about the harbour." });
    Reply::tool("NPC_memorize", arguments).with_text("Bob leans closer.")
}

const TALE: &str = "The harbour? “Nobody goes there after dark,” says Bob – not since the *Seagull* sank.";

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_told_while_it_runs() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([
        remember().delta_chars(3),
        Reply::text(TALE).delta_chars(7).chunk_bytes(7).chunk_delay_ms(1),
    ]));
    let events = stream(&tenant, BOB, ask(json!({}))).await.rest().await;
    assert_eq!(
        names(&events),
        ["turn.started", "text.delta", "tool.call", "tool.result", "text.delta", "turn.completed"]
    );
    let turn = &events.last().unwrap().data["turn"];
    assert_eq!(turn["narrative"], format!("Bob leans closer.\n\n{TALE}"));
    assert_eq!(text(&events), turn["narrative"].as_str().unwrap());
    assert!(events.len() > 8, "the text comes in pieces");
    let (call, result) = (&events[names_at(&events, "tool.call")].data, &events[names_at(&events, "tool.result")].data);
    let recorded = &turn["tool_calls"][0];
    assert_eq!(call, &json!({ "id": recorded["id"], "name": "NPC_memorize", "arguments": recorded["arguments"] }));
    assert_eq!(result, &json!({ "id": recorded["id"], "status": "succeeded", "result": recorded["result"] }));
    let id = turn_id(&events);
    assert!(events.iter().all(|e| e.id.starts_with(&format!("{id}:"))), "{events:?}");
    let kept = world.get(&format!("/turns/{id}")).await.expect(200).body;
    for member in
        ["id", "status", "narrative", "tool_calls", "usage", "prompt", "timings_ms", "entity_id", "created_at"]
    {
        assert_eq!(kept[member], turn[member], "{member}");
    }
    assert!(kept["usage"]["prompt_tokens"].as_u64().unwrap() > 100, "a stream says what it cost");
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.last().unwrap(), "Asked about the harbour.");
    let sent = server.model.requests();
    assert!(sent.iter().all(|r| r["stream"] == true && r["stream_options"]["include_usage"] == true));
}

fn names_at(events: &[Event], name: &str) -> usize {
    events.iter().position(|e| e.name == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_back_hears_the_rest_and_no_more() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    server
        .model
        .set_script(Script::replies([remember(), Reply::text(TALE).delta_chars(5).chunk_bytes(40).chunk_delay_ms(5)]));
    let heard = stream(&tenant, BOB, ask(json!({}))).await.rest().await;
    let id = turn_id(&heard);
    let whole = text(&heard);
    for (n, event) in heard.iter().enumerate() {
        let path = format!("/v1/campaigns/port-town/turns/{id}/events");
        let request = tenant.request(Method::GET, &path).header("last-event-id", &event.id);
        if n + 1 == heard.len() {
            tenant.send(request).await.expect(204);
            continue;
        }
        let rest = listen(&tenant, &id, Some(&event.id)).await.rest().await;
        assert_eq!(format!("{}{}", text(&heard[..=n]), text(&rest)), whole, "after {}", event.id);
        let (before, after) = (&heard[..=n], &rest[..]);
        let calls = |events: &[Event]| events.iter().filter(|e| e.name.starts_with("tool.")).count();
        assert_eq!(calls(before) + calls(after), 2, "after {}", event.id);
        assert_eq!(rest.last(), heard.last());
    }
    // Somebody who was never there hears it from the beginning.
    let all = listen(&tenant, &id, None).await.rest().await;
    assert_eq!((text(&all), names(&all)), (whole, names(&heard)));
    for strange in ["7", "turn:7", &format!("{id}:x"), &format!("{id}:1.x"), &format!("{}:1", clock::id())] {
        let path = format!("/v1/campaigns/port-town/turns/{id}/events");
        let request = tenant.request(Method::GET, &path).header("last-event-id", strange);
        tenant.send(request).await.problem(400, "bad_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_when_its_listener_leaves() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let slow = Reply::text(TALE).delta_chars(2).chunk_bytes(60).chunk_delay_ms(20);
    server.model.set_script(Script::replies([slow]));
    let mut events = stream(&tenant, BOB, ask(json!({}))).await;
    let started = events.next().await.unwrap();
    let piece = events.next().await.unwrap();
    drop(events);
    let id = started.data["turn_id"].as_str().unwrap();
    let second = listen(&tenant, id, None).await;
    let rest = listen(&tenant, id, Some(&piece.id)).await.rest().await;
    assert_eq!(format!("{}{}", piece.data["text"].as_str().unwrap(), text(&rest)), TALE);
    assert_eq!(text(&second.rest().await), TALE, "many may listen");
    assert_eq!(world.get(&format!("/turns/{id}")).await.expect(200).body["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asynchronous_turn_is_heard_later() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::always(Reply::text(TALE).held()));
    let later = async |key: Option<&str>| {
        let mut body = ask(json!({}));
        body["stream"] = json!(false);
        let mut request = tenant.request(Method::POST, &world.path(BOB)).json(&body);
        request = request.header("prefer", "wait=1, respond-async");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        tenant.send(request).await
    };
    let answer = later(None).await.expect(202);
    assert_eq!(answer.header("preference-applied"), "respond-async");
    let id = answer.body["turn_id"].as_str().unwrap().to_owned();
    assert_eq!(answer.body, json!({ "turn_id": id, "status": "running" }));
    assert_eq!(answer.header("location"), format!("/v1/campaigns/port-town/turns/{id}"));
    assert_eq!(world.get(&format!("/turns/{id}")).await.expect(200).body["status"], "running");
    later(None).await.problem(409, "turn_in_progress");
    let events = listen(&tenant, &id, None).await;
    server.model.let_go(1);
    let events = events.rest().await;
    assert_eq!((text(&events).as_str(), names(&events)), (TALE, vec!["turn.started", "text.delta", "turn.completed"]));

    // The same key starts nothing again.
    let first = later(Some("tale")).await.expect(202).body["turn_id"].clone();
    let joined = later(Some("tale")).await.expect(202);
    assert_eq!((&joined.body["turn_id"], &joined.body["status"]), (&first, &json!("running")));
    let whole = tenant.post_with_key(&world.path(BOB), "tale", ask(json!({ "stream": false }))).await;
    assert_eq!(whole.problem(409, "idempotency_in_flight").body["turn_id"], first, "who wants the whole waits");
    let events = listen(&tenant, first.as_str().unwrap(), None).await;
    server.model.let_go(1);
    events.rest().await;
    let again = later(Some("tale")).await.expect(202);
    assert_eq!((&again.body["turn_id"], &again.body["status"]), (&first, &json!("succeeded")));
    assert_eq!(again.header("idempotency-replayed"), "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_turn_is_replayed_under_its_key() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let open = async || {
        let request = tenant.request(Method::POST, &world.path(BOB)).header("idempotency-key", "once");
        Events::open(request.json(&ask(json!({}))), None).await
    };
    let first = open().await;
    assert_eq!(first.header("idempotency-replayed"), None);
    let first = first.rest().await;
    let second = open().await;
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    let second = second.rest().await;
    assert_eq!((text(&second), names(&second)), (text(&first), names(&first)));
    assert_eq!(second.last(), first.last());
    assert_eq!(world.get("/turns").await.expect(200).items().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_turn_is_streamed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = world.post("/sessions", json!({ "client_id": "vtt", "role": "gm" })).await.expect(201).id();
    let owner = stream(&tenant, "/owners/town_council_owner/turns", ask(json!({}))).await.rest().await;
    let gm = stream(&tenant, &format!("/sessions/{session}/turns"), json!({ "stream": true })).await.rest().await;
    let xml = stream(&tenant, BOB, ask(json!({ "reply_mode": "xml" }))).await.rest().await;
    for (kind, events) in [("owner", owner), ("gm", gm), ("npc", xml)] {
        let turn = &events.last().unwrap().data["turn"];
        assert_eq!((&turn["kind"], &turn["status"]), (&json!(kind), &json!("succeeded")), "{events:?}");
        assert_eq!(text(&events), turn["narrative"].as_str().unwrap());
        assert!(!text(&events).is_empty());
        let heard = events.iter().filter(|e| e.name == "tool.result").count();
        assert_eq!(heard, turn["tool_calls"].as_array().unwrap().len());
    }
    server
        .model
        .set_script(Script::replies([Reply::tool("resolve_skill_check", json!({ "skill": "stealth", "dc": 12 }))]));
    let rules = stream(&tenant, "/rules/resolve", ask(json!({}))).await.rest().await;
    assert_eq!(names(&rules), ["turn.started", "tool.call", "tool.result", "text.delta", "turn.completed"]);
    let turn = &rules.last().unwrap().data["turn"];
    assert_eq!((&turn["kind"], &turn["narrative"]), (&json!("rules"), &json!(text(&rules))));
    // A turn that was answered whole tells the same afterwards.
    let whole = world.bob("player_alice", "I wave.").await.expect(200);
    let events = listen(&tenant, &whole.id(), None).await.rest().await;
    assert_eq!(text(&events), whole.body["narrative"].as_str().unwrap());
    assert_eq!(events.last().unwrap().data["turn"]["id"], whole.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_begin_is_a_problem_and_no_stream() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.post("/npcs/nobody/turns", ask(json!({}))).await.problem(404, "not_found");
    world.post(BOB, ask(json!({ "player_id": "nobody" }))).await.expect(422);
    world.post(BOB, ask(json!({ "action": " " }))).await.problem(422, "validation_failed");
    server.model.set_script(Script::replies([Reply::text(TALE).held()]));
    let mut running = stream(&tenant, BOB, ask(json!({}))).await;
    running.next().await.unwrap();
    world.post(BOB, ask(json!({}))).await.problem(409, "turn_in_progress");
    let queued = stream(&tenant, BOB, ask(json!({ "on_busy": "queue" }))).await;
    server.model.let_go(1);
    let queued = queued.rest().await;
    assert_eq!(queued.last().unwrap().name, "turn.completed");
    assert_eq!(running.rest().await.last().unwrap().name, "turn.completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_listen() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let turn = world.bob("player_alice", "I wave.").await.expect(200).id();
    let path = world.path(&format!("/turns/{turn}/events"));
    server.tenant("globex").await.get(&path).await.problem(404, "not_found");
    let token = async |player: &str| tenant.token(json!({ "campaign": world.slug, "player_id": player })).await;
    token("player_mallory").await.get(&path).await.problem(404, "not_found");
    let alice = token("player_alice").await;
    let events = listen(&alice, &turn, None).await.rest().await;
    assert!(events.last().unwrap().data["turn"].get("prompt").is_none(), "players see no prompt");
    let own = stream(&alice, BOB, ask(json!({}))).await.rest().await;
    assert!(own.last().unwrap().data["turn"].get("prompt").is_none());
    // A session's turn calls tools that tell secrets.
    let session = world.post("/sessions", json!({ "client_id": "vtt" })).await.expect(201).id();
    server
        .model
        .set_script(Script::replies([Reply::tool("get_message_history", json!({})), Reply::text("The fog lifts.")]));
    let turn = world.post(&format!("/sessions/{session}/turns"), json!({})).await.expect(200);
    assert_eq!(turn.body["tool_calls"][0]["name"], "get_message_history");
    let reader = tenant.with_scopes(&[Scope::Read, Scope::Play]).await;
    reader.get(&world.path(&format!("/turns/{}/events", turn.id()))).await.problem(403, "forbidden");
    let listed = reader.get(&world.path("/turns?kind=gm")).await.expect(200).items()[0].clone();
    for shown in [listed, reader.get(&world.path(&format!("/turns/{}", turn.id()))).await.expect(200).body] {
        assert_eq!((&shown["tool_calls"], &shown["narrative"]), (&json!([]), &json!("The fog lifts.")));
        assert!(shown.get("prompt").is_none() && shown.get("trace").is_none(), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_ends_with_its_key() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    server.model.set_script(Script::always(Reply::text("Much later.").held()));
    let doomed = tenant.with_scopes(&Scope::ALL).await;
    let mut events = stream(&doomed, BOB, ask(json!({}))).await;
    assert_eq!(events.next().await.unwrap().name, "turn.started");
    tenant.delete(&format!("/v1/api-keys/{}", &doomed.credential[3..11])).await.expect(204);
    // It ends before the turn does, which has no answer yet.
    let rest = events.rest().await;
    assert!(rest.is_empty(), "{rest:?}");
}

/// A turn that nobody streamed is heard as well: that it began while it runs, and all of it afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_not_streamed_is_heard() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember(), Reply::text(TALE).held()]));
    let hear = async {
        let turn = loop {
            if let Some(turn) = world.get("/turns?status=running").await.expect(200).items().first() {
                break turn["id"].as_str().unwrap().to_owned();
            }
        };
        let mut events = listen(&tenant, &turn, None).await;
        let first = events.next().await.unwrap();
        assert_eq!(first.name, "turn.started");
        assert_eq!(world.get(&format!("/turns/{turn}")).await.expect(200).body["status"], "running");
        server.model.let_go(1);
        let rest = events.rest().await;
        assert_eq!(rest.last().unwrap().name, "turn.completed");
        (first, rest)
    };
    let (answer, (first, rest)) = tokio::join!(world.bob("player_alice", "I ask about the harbour."), hear);
    let id = answer.expect(200).id();
    assert_eq!(text(&rest), format!("Bob leans closer.\n\n{TALE}"));
    let again = listen(&tenant, &id, Some(&first.id)).await.rest().await;
    assert_eq!(text(&again), text(&rest), "{again:?}");
    for strange in [".end", ":x.end", ":1.x", ":"] {
        let request = tenant.request(Method::GET, &world.path(&format!("/turns/{id}/events")));
        tenant.send(request.header("last-event-id", format!("{id}{strange}"))).await.problem(400, "bad_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_turn_says_so() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let slow = Reply::text(TALE).delta_chars(1).chunk_bytes(60).chunk_delay_ms(50);
    server.model.set_script(Script::replies([remember(), slow]));
    let mut events = stream(&tenant, BOB, ask(json!({}))).await;
    let id = events.next().await.unwrap().data["turn_id"].as_str().unwrap().to_owned();
    while events.next().await.unwrap().name != "tool.result" {}
    events.next().await.unwrap();
    let remembered = world.memories("npcs/innkeeper_bob", "player_alice").await.len();
    world.post(&format!("/turns/{id}/cancel"), json!({})).await.expect(202);
    let last = events.rest().await.pop().unwrap();
    assert_eq!((last.name.as_str(), last.data), ("turn.cancelled", json!({ "turn_id": id })));
    assert_eq!(
        world.memories("npcs/innkeeper_bob", "player_alice").await.len(),
        remembered - 1,
        "what it did is undone"
    );
    assert_eq!(listen(&tenant, &id, None).await.rest().await.last().unwrap().name, "turn.cancelled");

    // One whose campaign goes ends too, long before its model has said all.
    server.model.set_script(Script::always(
        Reply::text("And then? ".repeat(200)).delta_chars(1).chunk_bytes(60).chunk_delay_ms(50),
    ));
    let mut events = stream(&tenant, BOB, ask(json!({}))).await;
    let id = events.next().await.unwrap().data["turn_id"].as_str().unwrap().to_owned();
    events.next().await.unwrap();
    tenant.delete("/v1/campaigns/port-town").await.expect(204);
    let last = events.rest().await.pop().unwrap();
    assert_eq!((last.name.as_str(), last.data), ("turn.cancelled", json!({ "turn_id": id })));
}

/// How a turn whose model answers like this ends, with the text that was told and the requests that were made.
async fn ends(server: &Server, world: &World<'_>, client: &Client<'_>, replies: Vec<Reply>) -> (Event, String, usize) {
    server.model.clear();
    server.model.set_script(Script::replies(replies));
    let events = stream(client, BOB, ask(json!({}))).await.rest().await;
    let last = events.last().unwrap().clone();
    let kept = world.get(&format!("/turns/{}", turn_id(&events))).await.expect(200).body;
    if last.name == "turn.failed" {
        assert_eq!((&kept["status"], &kept["error"]), (&json!("failed"), &last.data["error"]));
    }
    (last, text(&events), server.model.requests().len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_stream_ends_with_a_failure() {
    let server = Server::start_with(&[("LLM_FIRST_TOKEN_TIMEOUT_MS", "4000"), ("LLM_TIMEOUT_MS", "60000")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let tale = || Reply::text(TALE).delta_chars(4);
    let code = |event: &Event| event.data["error"]["code"].as_str().unwrap_or_default().to_owned();
    let event =
        |delta: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{delta}\"}}}}]}}\n\n");
    let endings = [
        // After the first word nothing is tried again.
        ("a dropped connection", vec![tale().truncate_after_bytes(900)], "llm_unavailable", 1),
        ("an end without one", vec![Reply::raw_body(event("Half a"))], "llm_unavailable", 1),
        ("a stall", vec![tale().chunk_bytes(700).chunk_delay_ms(3_600_000)], "llm_timeout", 1),
        ("no JSON", vec![Reply::raw_body(format!("{}data: {{oops\n\n", event("Half a")))], "llm_unavailable", 1),
        (
            "an error in the stream",
            vec![Reply::raw_body(format!("{}data: {{\"error\":{{\"message\":\"overloaded\"}}}}\n\n", event("Half a")))],
            "llm_unavailable",
            1,
        ),
    ];
    for (what, replies, expected, requests) in endings {
        let (last, text, made) = ends(&server, &world, &tenant, replies).await;
        assert_eq!((last.name.as_str(), code(&last).as_str()), ("turn.failed", expected), "{what}: {last:?}");
        assert!(text.is_empty() || TALE.starts_with(&text) || text == "Half a", "{what}: {text}");
        assert_eq!(made, requests, "{what}");
    }
    // Before it, a passing failure is.
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (last, text, made) = ends(&server, &world, &tenant, vec![Reply::status(503), tale()]).await;
    assert_eq!((last.name.as_str(), text.as_str(), made), ("turn.completed", TALE, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_streams_are_understood() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    // Comments, other fields, carriage returns, a call in single letters, no usage, no [DONE].
    let piece = |delta: Value, reason: Value| {
        let data = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] });
        format!(": hello\r\nevent: message\r\nid: 7\r\ndata:{data}\r\n\r\n")
    };
    let arguments = r#"{"player_id":"player_alice","memory_string":"Ä 猫"}"#;
    let mut body = piece(json!({ "role": "assistant", "content": null }), json!(null));
    body += &piece(json!({ "content": "Bob\u{0}" }), json!(null));
    let call =
        json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": { "name": "NPC_memorize", "arguments": "" } }] });
    body += &piece(call, json!(null));
    for letter in arguments.chars() {
        let delta = json!({ "tool_calls": [{ "index": 0, "function": { "arguments": letter.to_string() } }] });
        body += &piece(delta, json!(null));
    }
    body += &piece(json!({}), json!("tool_calls"));
    let whole = json!({ "choices": [{ "message": { "content": " nods. " }, "finish_reason": "stop" }] });
    let plain = Reply::raw_body(whole.to_string());
    server.model.set_script(Script::replies([Reply::raw_body(body), plain]));
    let events = stream(&tenant, BOB, ask(json!({}))).await.rest().await;
    let turn = &events.last().unwrap().data["turn"];
    assert_eq!(turn["tool_calls"][0]["arguments"]["memory_string"], "Ä 猫", "{turn}");
    assert_eq!(turn["status"], "succeeded");
    assert_eq!(text(&events), turn["narrative"].as_str().unwrap());
    assert!(turn["usage"]["prompt_tokens"].as_u64().unwrap() > 100, "what it did not say is estimated: {turn}");
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.last().unwrap(), "Ä 猫");

    let unsaid = UsageOverride {
        prompt_tokens: Some(0),
        completion_tokens: Some(0),
        total_tokens: Some(0),
        ..Default::default()
    };
    server.model.set_script(Script::replies([Reply::text("Hm.").usage(unsaid), Reply::repeat_bytes(20_000_000)]));
    let turn = stream(&tenant, BOB, ask(json!({}))).await.rest().await.pop().unwrap().data["turn"].clone();
    assert!(turn["usage"]["total_tokens"].as_u64().unwrap() > 100, "{turn}");
    let endless = stream(&tenant, BOB, ask(json!({}))).await.rest().await;
    assert_eq!(endless.last().unwrap().name, "turn.failed", "a reply has a limit");
}

async fn told_by(child: &Child, turn: &str, last: Option<&str>) -> Events {
    Events::open(child.request(Method::GET, &format!("/turns/{turn}/events")), last).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_heard_on_another_server_also_after_its_own_died() {
    let prepared = Prepared::new().await;
    let slow = || Reply::text(TALE.repeat(3)).delta_chars(4).chunk_bytes(200).chunk_delay_ms(40);
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    model.set_script(Script::always(slow()));
    let (mut one, other) = (prepared.start(&model).await, prepared.start(&model).await);
    let mut here = Events::open(one.request(Method::POST, BOB).json(&ask(json!({}))), None).await;
    let id = here.next().await.unwrap().data["turn_id"].as_str().unwrap().to_owned();
    let mut elsewhere = told_by(&other, &id, None).await;
    assert_eq!(elsewhere.next().await.unwrap().name, "turn.started");
    let piece = elsewhere.next().await.unwrap();
    assert_eq!(piece.name, "text.delta");
    let running = other.get(&format!("/turns/{id}")).await.expect(200).body["status"].clone();
    assert_eq!(running, "running", "it is heard while it runs");
    let (here, rest) = (here.rest().await, elsewhere.rest().await);
    let heard = format!("{}{}", piece.data["text"].as_str().unwrap(), text(&rest));
    assert_eq!((text(&here), heard), (TALE.repeat(3), TALE.repeat(3)));
    assert_eq!(rest.last(), here.last());

    model.set_script(Script::always(slow().chunk_delay_ms(400)));
    let mut here = Events::open(one.request(Method::POST, BOB).json(&ask(json!({}))), None).await;
    let id = here.next().await.unwrap().data["turn_id"].as_str().unwrap().to_owned();
    let heard = here.next().await.unwrap();
    let mut told = heard.data["text"].as_str().unwrap().to_owned();
    let mut elsewhere = told_by(&other, &id, Some(&heard.id)).await;
    while told.len() <= 10 {
        told.push_str(elsewhere.next().await.unwrap().data["text"].as_str().unwrap());
    }
    one.kill().await;
    drop(here);
    let rest = elsewhere.rest().await;
    told.push_str(&text(&rest));
    assert!(TALE.repeat(3).starts_with(&told), "{told}");
    assert_eq!(rest.last().unwrap().name, "turn.failed");
    assert_eq!(rest.last().unwrap().data["error"]["code"], "internal");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_lets_its_streams_end() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    model.set_script(Script::always(Reply::text(TALE).delta_chars(4).chunk_bytes(100).chunk_delay_ms(30)));
    let mut child = prepared.start(&model).await;
    let mut events = Events::open(child.request(Method::POST, BOB).json(&ask(json!({}))), None).await;
    events.next().await.unwrap();
    child.terminate().await;
    let rest = events.rest().await;
    assert_eq!((text(&rest).as_str(), rest.last().unwrap().name.as_str()), (TALE, "turn.completed"));
    assert!(child.stopped().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_listen_to_one_turn() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    server.model.set_script(Script::always(Reply::text(TALE).held().delta_chars(3).chunk_bytes(50).chunk_delay_ms(5)));
    let mut events = stream(&tenant, BOB, ask(json!({}))).await;
    let id = events.next().await.unwrap().data["turn_id"].as_str().unwrap().to_owned();
    let listeners = join_all((0..200).map(|_| listen(&tenant, &id, None))).await;
    server.model.let_go(1);
    let heard = join_all(listeners.into_iter().map(Events::rest)).await;
    assert!(heard.iter().all(|events| text(events) == TALE && events.last().unwrap().name == "turn.completed"));
}
