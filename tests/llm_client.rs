//! The model client against endpoints that answer well, badly, slowly or never.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use llm::{
    BreakerState, CancellationToken, ChatRequest, Completion, Endpoint, EndpointRefused, LlmClient, LlmError,
    LlmSettings, Message, Role, Secret, TimeoutPhase, UnavailableKind, Usage, WireToolCall, breaker::TRACKED_MAX,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::support::{
    scripted::{Act, KEY, Scripted as Server},
    until,
};

/// How long anything may take that has a limit of its own.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a breaker stays open here: longer than a machine needs to ask once more.
const BREAK: Duration = Duration::from_secs(3);

fn said(text: &str) -> String {
    json!({"model": "gpt-real", "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
           "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 8}}})
    .to_string()
}

fn settings() -> LlmSettings {
    LlmSettings {
        first_token_timeout: Duration::from_secs(60),
        total_timeout: Duration::from_secs(120),
        reply_bytes_max: 100_000,
        ..LlmSettings::default()
    }
}

async fn ask_with(settings: LlmSettings, endpoint: &Endpoint) -> Result<Completion, LlmError> {
    ask(&LlmClient::new(settings).unwrap(), endpoint).await
}

async fn ask(client: &LlmClient, endpoint: &Endpoint) -> Result<Completion, LlmError> {
    let messages = [Message::text(Role::User, "Hello")];
    let request = ChatRequest { messages: &messages, ..ChatRequest::default() };
    client.complete(endpoint, &request, &CancellationToken::new()).await
}

/// One call answered by `body`.
async fn answered(body: impl Into<String>) -> Result<Completion, LlmError> {
    let server = Server::answering(body).await;
    ask_with(settings(), &server.endpoint()).await
}

fn body_of(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_written_as_the_api_wants_it() {
    let server = Server::answering(said("Hi")).await;
    let client = LlmClient::new(settings()).unwrap();
    let call = |id: &str, name: &str, arguments: &str| WireToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
        ..WireToolCall::default()
    };
    let prefix = [Message { content: vec!["Rules \"1\"\n".into(), "é<&>".into()], ..Message::text(Role::System, "") }];
    let messages = [
        Message::text(Role::User, "I wave."),
        Message::assistant("", vec![call("a", "roll_dice", r#"{"formula":"1d20"}"#), call("b", "", "{\"cut")]),
        Message::tool_result("a", "20"),
        Message::assistant("Done.", vec![]),
    ];
    let tools =
        serde_json::value::RawValue::from_string(r#"[{"type":"function","function":{"name":"roll_dice"}}]"#.into())
            .unwrap();
    let request = ChatRequest {
        prefix: &prefix,
        messages: &messages,
        tools: Some(&tools),
        tool_choice: Some(llm::ToolChoice::Function("roll_dice")),
        prompt_cache_key: Some("k"),
        sink: None,
        prompt_tokens: None,
    };
    let completion = client.complete(&server.endpoint(), &request, &CancellationToken::new()).await.unwrap();
    assert_eq!((completion.text.as_str(), completion.model.as_str(), completion.attempts), ("Hi", "gpt-real", 1));
    assert_eq!(completion.finish_reason.as_deref(), Some("stop"));
    let expected = Usage {
        llm_calls: 1,
        prompt_tokens: 10,
        cached_tokens: 8,
        completion_tokens: 5,
        total_tokens: 15,
        estimated: false,
    };
    assert_eq!(completion.usage, expected);
    let seen = server.seen();
    assert!(seen[0].starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", seen[0]);
    assert!(
        seen[0].contains(&format!("authorization: Bearer {KEY}\r\n"))
            && seen[0].contains("content-type: application/json\r\n")
    );
    assert!(seen[0].contains("accept-encoding: identity\r\n"));
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    assert_eq!(
        body_of(&seen[0]),
        json!({"max_tokens": 4096, "model": "gpt-test", "prompt_cache_key": "k",
            "tools": [{"type": "function", "function": {"name": "roll_dice"}}],
            "tool_choice": {"type": "function", "function": {"name": "roll_dice"}},
            "messages": [
                {"role": "system", "content": "Rules \"1\"\né<&>"},
                {"role": "user", "content": "I wave."},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "a", "type": "function", "function": function("roll_dice", "{\"formula\":\"1d20\"}")},
                    {"id": "b", "type": "function", "function": function("unknown", "{}")}]},
                {"role": "tool", "content": "20", "tool_call_id": "a"},
                {"role": "assistant", "content": "Done."}]})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn both_spellings_of_an_endpoint_are_one() {
    let server = Server::answering(said("Hi")).await;
    let client = LlmClient::new(settings()).unwrap();
    for (tail, path) in [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/chat/completions", "/v1/chat/completions"),
        ("/chat/completions/", "/v1/chat/completions"),
        ("/chat/completions?api-version=1&x=%20", "/v1/chat/completions?api-version=1&x=%20"),
    ] {
        let url = format!("{}{tail}", server.url);
        let endpoint = Endpoint::trusted(&url, None, "m").unwrap();
        ask(&client, &endpoint).await.unwrap();
        ask(&client, &Endpoint { base_url: url.parse().unwrap(), ..endpoint }).await.unwrap();
        for request in server.seen().iter().rev().take(2) {
            assert!(request.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{request}");
            assert!(!request.to_lowercase().contains("authorization"), "{request}");
        }
    }
    // A connection goes back to the pool in a task of its own, so now and then the next call is quicker than it.
    let connections = server.connections.load(Ordering::SeqCst);
    assert!(connections < server.seen().len() / 2, "connections are kept: {connections}");
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_replies_are_understood() {
    let message = |message: Value| json!({"choices": [{"message": message}]}).to_string();
    for (body, text) in [
        (message(json!({"content": null})), ""),
        (message(json!({"content": null, "refusal": "No."})), "No."),
        (
            message(
                json!({"content": [{"type": "text", "text": "a"}, "b", {"text": "c"}, {"type": "thinking", "text": "x"}, 7, {"type": "refusal", "refusal": "d"}]}),
            ),
            "abcd",
        ),
        (message(json!({"content": 7, "tool_calls": null})), ""),
        (format!("\u{feff} {}", said("Hi")), "Hi"),
        (r#"{"choices":[{"message":{"content":"a \ud83d b"}}],"error":null}"#.to_owned(), "a \u{fffd} b"),
        (r#"{"choices":[{"message":{"content":"a"}}],"model":7,"usage":"many","id":{"x":[1e999]}}"#.to_owned(), "a"),
    ] {
        let completion = answered(&body).await.unwrap_or_else(|error| panic!("{body}: {error}"));
        assert_eq!(completion.text, text, "{body}");
        assert_eq!(completion.usage.llm_calls, 1);
    }
    let mut bytes = said("Hi #!").into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'#').unwrap();
    bytes[at] = 0xff;
    let raw = [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", bytes.len()).into_bytes(), bytes].concat();
    let server = Server::start(vec![Act::Raw(raw)]).await;
    assert_eq!(ask_with(settings(), &server.endpoint()).await.unwrap().text, "Hi \u{fffd}!");
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_calls_of_any_shape() {
    let calls = json!([
        {"id": "a", "type": "function", "function": {"name": "one", "arguments": "{\"x\":1}"}},
        {"id": "a", "function": {"name": "two", "arguments": {"x": 1}}},
        {"function": {"name": "three", "arguments": null}},
        {"id": null, "name": "four"},
        {"id": 7},
        8,
    ]);
    let body = json!({"choices": [{"message": {"content": "", "tool_calls": calls}}]}).to_string();
    let completion = answered(body).await.unwrap();
    let got: Vec<(&str, &str)> =
        completion.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(got, [("one", "{\"x\":1}"), ("two", "{\"x\":1}"), ("three", ""), ("four", ""), ("", ""), ("", "")]);
    let mut ids: Vec<&str> = completion.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert!(ids[0] == "a" && ids.iter().all(|id| !id.is_empty()));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6);
    let old = json!({"choices": [{"message": {"content": null, "function_call": {"name": "one", "arguments": "{}"}}}]})
        .to_string();
    assert_eq!(answered(old).await.unwrap().tool_calls[0].name, "one");
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_never_absurd() {
    // "Hello" has five bytes, and a token about four.
    const ASKED: u64 = 2;
    let usage = |usage: Value| json!({"choices": [{"message": {"content": ""}}], "usage": usage}).to_string();
    let expect = |prompt_tokens, cached_tokens, completion_tokens, total_tokens| Usage {
        llm_calls: 1,
        prompt_tokens,
        cached_tokens,
        completion_tokens,
        total_tokens,
        estimated: prompt_tokens == ASKED,
    };
    for (given, expected) in [
        (json!({"prompt_tokens": -5, "completion_tokens": 7}), expect(ASKED, 0, 7, ASKED + 7)),
        (
            json!({"prompt_tokens": 1e30, "completion_tokens": u64::MAX, "total_tokens": -1}),
            expect(100_000_000, 0, 100_000_000, 100_000_000),
        ),
        (
            json!({"prompt_tokens": "12", "completion_tokens": 2.9, "prompt_tokens_details": {"cached_tokens": 50}}),
            expect(12, 12, 2, 14),
        ),
        (json!({"input_tokens": 3, "output_tokens": 4, "prompt_cache_hit_tokens": 2}), expect(3, 2, 4, 7)),
        (json!({"prompt_tokens": [], "prompt_tokens_details": null}), expect(ASKED, 0, 0, ASKED)),
        (json!({"prompt_tokens": null, "total_tokens": 90}), expect(ASKED, 0, 0, 90)),
        (json!([1]), expect(ASKED, 0, 0, ASKED)),
    ] {
        assert_eq!(answered(usage(given.clone())).await.unwrap().usage, expected, "{given}");
    }
    let most = Usage {
        llm_calls: u32::MAX,
        prompt_tokens: u64::MAX,
        cached_tokens: 1,
        completion_tokens: u64::MAX,
        total_tokens: u64::MAX,
        estimated: false,
    };
    assert_eq!([most, most].into_iter().sum::<Usage>(), Usage { cached_tokens: 2, ..most });
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_replies_are_errors() {
    for body in [
        "",
        "   ",
        "nonsense",
        "[]",
        "{}",
        "7",
        "{\"choices\":[]}",
        "{\"choices\":{}}",
        "{\"choices\":[7]}",
        "{\"choices\":[{}]}",
        "{\"choices\":[{\"message\":7}]}",
        "{\"choices\":[{\"message\":",
        "data: {\"choices\":[]}\n\n",
        "<html>sk-canary-0123456789</html>",
    ] {
        let error = answered(body).await.unwrap_err();
        assert!(matches!(error, LlmError::BadReply { .. }), "{body}: {error:?}");
        assert_eq!((error.code(), error.metric_label()), ("llm_unavailable", "bad_reply"));
        assert!(!error.to_string().contains("canary"));
    }
    let error = answered(
        json!({"error": {"message": format!("bad\n\u{1b}[31m {KEY} {}", "x".repeat(5_000)), "code": 400}}).to_string(),
    )
    .await
    .unwrap_err();
    assert!(matches!(error, LlmError::Unavailable { kind: UnavailableKind::Provider, .. }), "{error:?}");
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("bad [31m ***") && !shown.contains(KEY) && !shown.contains('\u{1b}'), "{shown}");
    assert!(error.to_string().chars().count() < 320);
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_failures_are_tried_again_with_the_same_bytes() {
    for first in [
        Act::Answer("500 Oops", "{}".into()),
        Act::Answer("408 Timeout", String::new()),
        Act::Answer("529 Overloaded", "busy".into()),
        Act::Answer("429 Slow down\r\nretry-after: 0", "{\"error\":{\"message\":\"slow\"}}".into()),
        Act::Answer("200 OK", "{\"error\":{\"message\":\"upstream\",\"code\":502}}".into()),
        Act::Close,
        Act::CloseInBody,
    ] {
        let server = Server::start(vec![first.clone(), first, Act::Answer("200 OK", said("Hi"))]).await;
        let completion = ask_with(settings(), &server.endpoint()).await.unwrap();
        assert_eq!((completion.text.as_str(), completion.attempts), ("Hi", 3));
        let bodies: Vec<Value> = server.seen().iter().map(|request| body_of(request)).collect();
        assert!(bodies.len() == 3 && bodies.iter().all(|body| body == &bodies[0]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lasting_failures_are_not() {
    let elsewhere = Server::answering(said("stolen")).await;
    let moved: &'static str =
        Box::leak(format!("302 Found\r\nlocation: {}/chat/completions", elsewhere.url).into_boxed_str());
    for (act, kind) in [
        (Act::Answer("400 Bad", "{\"error\":{\"message\":\"too long\"}}".into()), UnavailableKind::Rejected),
        (Act::Answer("401 No", format!("wrong key {KEY}")), UnavailableKind::Rejected),
        (Act::Answer("404 No", "gone".into()), UnavailableKind::Rejected),
        (Act::Answer("501 No", "gone".into()), UnavailableKind::Server),
        (
            Act::Answer("429 No", "{\"error\":{\"message\":\"pay\",\"type\":\"insufficient_quota\"}}".into()),
            UnavailableKind::RateLimited,
        ),
        (Act::Answer(moved, String::new()), UnavailableKind::Rejected),
    ] {
        let server = Server::start(vec![act]).await;
        let error = ask_with(settings(), &server.endpoint()).await.unwrap_err();
        assert!(matches!(&error, LlmError::Unavailable { kind: found, .. } if *found == kind), "{error:?}");
        assert_eq!((server.seen().len(), error.code()), (1, "llm_unavailable"));
        assert!(!format!("{error}{error:?}").contains(KEY));
    }
    assert_eq!(elsewhere.connections.load(Ordering::SeqCst), 0, "redirects are not followed");
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_honoured_within_the_deadline() {
    let dated = "503 Later\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:49:38 GMT";
    for status in ["503 Later\r\nretry-after: 1", dated] {
        let server = Server::start(vec![Act::Answer(status, String::new()), Act::Answer("200 OK", said("Hi"))]).await;
        let started = Instant::now();
        assert_eq!(ask_with(settings(), &server.endpoint()).await.unwrap().attempts, 2);
        assert!(started.elapsed() >= Duration::from_millis(990), "{:?}", started.elapsed());
    }
    let server =
        Server::start(vec![Act::Answer("429 Later\r\nretry-after: 99999999999999999999", String::new())]).await;
    // Not waited for, and not tried again.
    let error = timeout(PATIENCE, ask_with(settings(), &server.endpoint())).await.unwrap().unwrap_err();
    assert_eq!(server.seen().len(), 1);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(24 * 60 * 60)));
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_end() {
    let server = Server::start(vec![Act::Answer("503 Later", String::new())]).await;
    let error = ask_with(settings(), &server.endpoint()).await.unwrap_err();
    assert!(matches!(error, LlmError::Unavailable { status: Some(503), .. }) && server.seen().len() == 3, "{error:?}");
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let endpoint = Endpoint::trusted(&format!("http://{unused}"), None, "m").unwrap();
    let error = ask_with(settings(), &endpoint).await.unwrap_err();
    assert_eq!(error.metric_label(), "connect", "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn time_is_bounded() {
    let forever = LlmSettings {
        connect_timeout: Duration::MAX,
        first_token_timeout: Duration::MAX,
        total_timeout: Duration::MAX,
        ..settings()
    };
    assert!(ask_with(forever, &Server::answering(said("Hi")).await.endpoint()).await.is_ok());
    for (act, phase) in [
        (Act::Hang, TimeoutPhase::FirstToken),
        (Act::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n".to_vec()), TimeoutPhase::FirstToken),
        (Act::Later(Duration::from_secs(3600), said("late")), TimeoutPhase::FirstToken),
        (Act::Drip(Duration::from_millis(50), 1), TimeoutPhase::Total),
    ] {
        let raw = matches!(act, Act::Raw(_));
        let server = Server::start(vec![act]).await;
        let (first, total) = (Duration::from_millis(1_000), Duration::from_millis(3_000));
        let settings = LlmSettings { first_token_timeout: first, total_timeout: total, ..settings() };
        let error = timeout(PATIENCE, ask_with(settings, &server.endpoint())).await.unwrap().unwrap_err();
        // The raw one closes after its headers, which is a broken connection instead.
        assert!(error == LlmError::Timeout { phase } || (raw && error.metric_label() == "dropped"), "{error:?}");
        assert!(raw || error.code() == "llm_timeout");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn size_is_bounded() {
    let long = said(&"x".repeat(200_000));
    let announced = Act::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999\r\n\r\n{".to_vec());
    for act in [Act::Answer("200 OK", long), announced, Act::Drip(Duration::ZERO, 10_000)] {
        let server = Server::start(vec![act]).await;
        let error = ask_with(settings(), &server.endpoint()).await.unwrap_err();
        assert_eq!(error, LlmError::TooLarge { limit_bytes: 100_000 });
        assert_eq!(server.seen().len(), 1);
    }
    let just = said(&"x".repeat(90_000));
    assert_eq!(answered(just).await.unwrap().text.len(), 90_000);
    let flood = [b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'a'; 5_000_000]].concat();
    let server = Server::start(vec![Act::Raw(flood)]).await;
    assert_eq!(ask_with(settings(), &server.endpoint()).await.unwrap_err().metric_label(), "dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_can_be_cancelled_at_any_time() {
    let busy = Act::Answer("503 Later\r\nretry-after: 30", String::new());
    for act in [Act::Hang, Act::Drip(Duration::from_millis(20), 1), busy] {
        let server = Server::start(vec![act]).await;
        let client = LlmClient::new(settings()).unwrap();
        let cancel = CancellationToken::new();
        let endpoint = server.endpoint();
        let trigger = async {
            until("the request", async || server.seen().len() == 1).await;
            cancel.cancel();
        };
        let request = ChatRequest::default();
        let (ended, ()) = tokio::join!(client.complete(&endpoint, &request, &cancel), trigger);
        let error = ended.unwrap_err();
        assert_eq!((error.code(), error), ("cancelled", LlmError::Cancelled));
        assert_eq!(
            client.complete(&endpoint, &ChatRequest::default(), &cancel).await.unwrap_err(),
            LlmError::Cancelled
        );
        assert_eq!(server.seen().len(), 1);
        assert!(client.breaker_states().is_empty(), "a cancelled call says nothing about the endpoint");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_breaker_opens_probes_and_closes() {
    let failing = vec![Act::Answer("500 Oops", String::new()); 3];
    let slow = Act::Later(Duration::from_secs(3), said("Hi"));
    let server = Server::start([failing, vec![slow]].concat()).await;
    let settings = LlmSettings { retries: 0, breaker_failures: 2, breaker_open: BREAK, ..settings() };
    let client = LlmClient::new(settings).unwrap();
    let endpoint = server.endpoint();
    for _ in 0..2 {
        assert_eq!(ask(&client, &endpoint).await.unwrap_err().metric_label(), "server_error");
    }
    let error = ask(&client, &endpoint).await.unwrap_err();
    assert!(matches!(error, LlmError::BreakerOpen { retry_after } if retry_after <= BREAK), "{error:?}");
    assert_eq!((server.seen().len(), client.breaker_states()[0].state), (2, BreakerState::Open));
    let other_key = Endpoint { api_key: Some(Secret::new("another")), ..endpoint.clone() };
    assert_eq!(
        ask(&client, &other_key).await.unwrap_err().metric_label(),
        "server_error",
        "another tenant is not shut out"
    );

    assert_eq!(client.breaker_states().len(), 2);

    until("the breaker's end", async || client.breaker_counts().half_open == 1).await;
    let calls = (0..8).map(|_| {
        let (client, endpoint) = (client.clone(), endpoint.clone());
        tokio::spawn(async move { ask(&client, &endpoint).await.map_err(|error| error.metric_label()) })
    });
    let calls: Vec<_> = calls.collect();
    let mut outcomes = Vec::new();
    for call in calls {
        outcomes.push(call.await.unwrap().map(|completion| completion.text));
    }
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "one probe at a time: {outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Err("breaker_open")).count(), 7);
    assert!(ask(&client, &endpoint).await.is_ok());
    assert_eq!(client.breaker_states().len(), 1, "only the other key's endpoint failed last");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_models_failures_are_no_other_models_and_the_oldest_are_forgotten() {
    let server = Server::start(vec![Act::Answer("500 Oops", String::new())]).await;
    let settings =
        LlmSettings { retries: 0, breaker_failures: 1, breaker_open: Duration::from_secs(600), ..settings() };
    let client = LlmClient::new(settings).unwrap();
    let named = |model: String| Endpoint { model, ..server.endpoint() };
    assert_eq!(ask(&client, &named("a".to_owned())).await.unwrap_err().metric_label(), "server_error");
    assert_eq!(ask(&client, &named("a".to_owned())).await.unwrap_err().metric_label(), "breaker_open");
    assert_eq!(ask(&client, &named("b".to_owned())).await.unwrap_err().metric_label(), "server_error");
    for n in 0..TRACKED_MAX {
        ask(&client, &named(format!("m{n}"))).await.unwrap_err();
    }
    // As many as may be are kept, and they are the last.
    assert_eq!(client.breaker_states().len(), TRACKED_MAX);
    assert_eq!(ask(&client, &named("a".to_owned())).await.unwrap_err().metric_label(), "server_error");
    let last = named(format!("m{}", TRACKED_MAX - 1));
    assert_eq!(ask(&client, &last).await.unwrap_err().metric_label(), "breaker_open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_or_failed_probe_leaves_the_breaker_in_order() {
    let server = Server::start(vec![
        Act::Answer("500 Oops", String::new()),
        Act::Hang,
        Act::Answer("500 Oops", String::new()),
        Act::Answer("400 Bad", String::new()),
    ])
    .await;
    let settings = LlmSettings { retries: 0, breaker_failures: 1, breaker_open: BREAK, ..settings() };
    let client = LlmClient::new(settings).unwrap();
    let endpoint = server.endpoint();
    let rest = || until("the breaker's end", async || client.breaker_counts().half_open == 1);
    assert!(ask(&client, &endpoint).await.is_err());
    rest().await;
    {
        let mut dropped = pin!(ask(&client, &endpoint));
        let asked = pin!(until("the probe", async || server.seen().len() == 2));
        tokio::select! {
            answer = &mut dropped => panic!("{answer:?}"),
            () = asked => {}
        }
    }
    assert_eq!(
        ask(&client, &endpoint).await.unwrap_err().metric_label(),
        "server_error",
        "the probe's place is free again"
    );
    assert_eq!(ask(&client, &endpoint).await.unwrap_err().metric_label(), "breaker_open");
    rest().await;
    assert_eq!(ask(&client, &endpoint).await.unwrap_err().metric_label(), "rejected");
    assert!(client.breaker_states().is_empty(), "an endpoint that rejects requests is alive");
}

#[test]
fn addresses_tenants_may_not_use() {
    let client = LlmClient::new(LlmSettings::default()).unwrap();
    use EndpointRefused::{Fragment, InvalidUrl, Port, PrivateAddress, Scheme, UserInfo};
    for (url, refused) in [
        ("http://api.example.com/v1", Scheme),
        ("ftp://api.example.com", Scheme),
        ("file:///etc/passwd", Scheme),
        ("https://user@api.example.com", UserInfo),
        ("https://:pw@api.example.com", UserInfo),
        ("https://api.example.com/#x", Fragment),
        ("https://api.example.com:22", Port(22)),
        ("https://api.example.com:0", InvalidUrl),
        ("https://", InvalidUrl),
        ("api.example.com", InvalidUrl),
        ("https://api.exam\tple.com", InvalidUrl),
        ("https://api.exam ple.com", InvalidUrl),
        ("https://localhost", PrivateAddress),
        ("https://LOCALHOST.:443", PrivateAddress),
        ("https://a.localhost", PrivateAddress),
        ("https://redis", PrivateAddress),
        ("https://metadata.google.internal", PrivateAddress),
        ("https://printer.local", PrivateAddress),
        ("https://127.0.0.1", PrivateAddress),
        ("https://127.1", PrivateAddress),
        ("https://2130706433", PrivateAddress),
        ("https://0x7f000001", PrivateAddress),
        ("https://0177.0.0.1", PrivateAddress),
        ("https://①②⑦.0.0.1", PrivateAddress),
        ("https://%31%32%37.0.0.1", PrivateAddress),
        ("https://0.0.0.0", PrivateAddress),
        ("https://0.1.2.3", PrivateAddress),
        ("https://10.1.2.3", PrivateAddress),
        ("https://172.31.0.1", PrivateAddress),
        ("https://192.168.1.1", PrivateAddress),
        ("https://169.254.169.254", PrivateAddress),
        ("https://100.64.0.1", PrivateAddress),
        ("https://198.19.0.1", PrivateAddress),
        ("https://224.0.0.1", PrivateAddress),
        ("https://255.255.255.255", PrivateAddress),
        ("https://[::1]", PrivateAddress),
        ("https://[::]", PrivateAddress),
        ("https://[::ffff:127.0.0.1]", PrivateAddress),
        ("https://[::ffff:8.8.8.8]", PrivateAddress),
        ("https://[::7f00:1]", PrivateAddress),
        ("https://[64:ff9b::7f00:1]", PrivateAddress),
        ("https://[2002:7f00:1::]", PrivateAddress),
        ("https://[2001:0:1::]", PrivateAddress),
        ("https://[fc00::1]", PrivateAddress),
        ("https://[fe80::1]", PrivateAddress),
        ("https://[ff02::1]", PrivateAddress),
    ] {
        assert_eq!(client.check_endpoint(url), Err(refused), "{url}");
    }
    let long = format!("https://api.example.com/{}", "x".repeat(3_000));
    assert_eq!(client.check_endpoint(&long), Err(InvalidUrl));
    for (url, base) in [
        ("https://api.example.com/v1/", "https://api.example.com/v1"),
        ("https://api.example.com:8443/v1/chat/completions", "https://api.example.com:8443/v1"),
        (" https://8.8.8.8 ", "https://8.8.8.8/"),
        ("https://[2606:4700::1111]/v1?x=1", "https://[2606:4700::1111]/v1?x=1"),
        ("https://172.32.0.1", "https://172.32.0.1/"),
    ] {
        assert_eq!(client.check_endpoint(url).unwrap().as_str(), base);
    }
}

#[test]
fn what_the_operator_lists() {
    let client = |entries: &[&str], allow_private| {
        let allowed_hosts = entries.iter().map(|entry| entry.parse().unwrap()).collect();
        LlmClient::new(LlmSettings { allowed_hosts, allow_private, ..LlmSettings::default() }).unwrap()
    };
    let listed = client(
        &[
            "api.example.com",
            "llm.lan:8000",
            "https://10.0.0.7",
            "*.models.example",
            "[fd00::1]:9",
            "*.ports.example:444",
        ],
        false,
    );
    for url in [
        "https://api.example.com",
        "http://api.example.com:99",
        "http://llm.lan:8000/v1",
        "https://10.0.0.7:1",
        "https://x.models.example",
        "http://[fd00::1]:9",
        "https://a.ports.example:444",
    ] {
        assert!(listed.check_endpoint(url).is_ok(), "{url}");
    }
    for url in [
        "https://api.example.org",
        "https://xapi.example.com",
        "http://llm.lan",
        "http://10.0.0.7",
        "http://x.models.example",
        "https://models.example",
        "https://x.models.example:99",
        "https://x.models.example.evil.com",
        "http://[fd00::1]",
        "https://10.0.0.8",
        "https://a.ports.example",
    ] {
        assert!(listed.check_endpoint(url).is_err(), "{url}");
    }
    assert_eq!(listed.check_endpoint("https://other.example.org"), Err(EndpointRefused::NotAllowed));
    let one_port = client(&["*", "llm.example.com:8000"], false);
    assert!(
        one_port.check_endpoint("http://llm.example.com:8000").is_ok()
            && one_port.check_endpoint("https://llm.example.com").is_err()
    );
    let any = client(&["*", "127.0.0.1"], false);
    assert!(
        any.check_endpoint("https://other.example.org").is_ok() && any.check_endpoint("http://127.0.0.1:8000").is_ok()
    );
    assert!(
        any.check_endpoint("https://127.0.0.2").is_err() && any.check_endpoint("http://other.example.org").is_err()
    );
    let open = client(&[], true);
    assert!(
        open.check_endpoint("http://localhost:11434/v1").is_ok() && open.check_endpoint("http://192.168.0.9").is_ok()
    );
    assert!(open.check_endpoint("http://user@localhost").is_err());
    for entry in ["", "ftp://x", "a b", "x:y", "*.*", "a*b", "x:99999"] {
        assert!(entry.parse::<llm::AllowedHost>().is_err(), "{entry}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_endpoint_is_checked_at_each_call() {
    let server = Server::answering(said("Hi")).await;
    let endpoint = Endpoint { trusted: false, ..server.endpoint() };
    let error = ask_with(settings(), &endpoint).await.unwrap_err();
    assert_eq!(error, LlmError::Refused(EndpointRefused::Scheme));
    let named = Endpoint::untrusted(&server.url.replace("http", "https"), None, "m").unwrap();
    assert_eq!(ask_with(settings(), &named).await.unwrap_err(), LlmError::Refused(EndpointRefused::PrivateAddress));
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    let allowed_hosts = vec!["127.0.0.1".parse().unwrap()];
    assert!(ask_with(LlmSettings { allowed_hosts, ..settings() }, &endpoint).await.is_ok());
    assert!(ask_with(LlmSettings { allow_private: true, ..settings() }, &endpoint).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_never_shown() {
    let server = Server::answering(said("Hi")).await;
    let endpoint = server.endpoint();
    let client = LlmClient::new(settings()).unwrap();
    assert!(!format!("{endpoint:?} {client:?} {:?}", Secret::new(KEY)).contains("canary"));
    let padded = Endpoint { api_key: Some(Secret::new(format!(" {KEY}\n"))), ..endpoint.clone() };
    assert!(ask(&client, &padded).await.is_ok());
    for key in ["two\nlines canary", "null\0canary"] {
        let error = ask(&client, &Endpoint { api_key: Some(Secret::new(key)), ..endpoint.clone() }).await.unwrap_err();
        assert_eq!(error, LlmError::Refused(EndpointRefused::Key));
    }
    let blank = Endpoint { api_key: Some(Secret::new(" ")), ..endpoint };
    assert!(ask(&client, &blank).await.is_ok());
    assert!(!server.seen().last().unwrap().to_lowercase().contains("authorization"));
}
