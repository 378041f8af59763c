//! What no client should send: each is told what is wrong, nothing is written, and the server never fails.

use std::collections::BTreeMap;

use base::error::Code;
use edge::{
    caller::access::BODY_BYTES_MAX,
    caller::access::{Access, TABLE},
};
use futures_util::stream;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use reqwest::{Body, Method};
use serde_json::{Value, json};

use crate::support::{Answer, Client, Rows, Server, counts};

/// Routes that read a body.
fn writes() -> impl Iterator<Item = &'static Access> {
    TABLE.iter().filter(|r| matches!(r.method, "POST" | "PATCH"))
}

async fn send(client: &Client<'_>, rows: &Rows, route: &Access, body: impl Into<Body>) -> Answer {
    let request = client.request(route.method.parse().unwrap(), &rows.path(route.path));
    client.send_odd(request.header("content-type", "application/json").body(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_json_is_refused_everywhere() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "x").await;
    let before = counts(&server).await;
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(200), close.repeat(200)).into_bytes();
    let bad: Vec<(&str, Vec<u8>)> = vec![
        ("no JSON", b"hello".to_vec()),
        ("truncated", b"{\"name\": \"x".to_vec()),
        ("two values", b"{} {}".to_vec()),
        ("a comment", b"{} // x".to_vec()),
        ("single quotes", b"{'name': 'x'}".to_vec()),
        ("a trailing comma", b"{\"name\": \"x\",}".to_vec()),
        ("two byte order marks", b"\xef\xbb\xbf\xef\xbb\xbf{}".to_vec()),
        ("invalid UTF-8", b"{\"name\": \"\xff\xfe\"}".to_vec()),
        ("an overlong encoding", b"{\"name\": \"\xc0\xaf\"}".to_vec()),
        ("UTF-16", b"\xff\xfe{\0}\0".to_vec()),
        ("a raw NUL", b"{\"name\": \"a\0b\"}".to_vec()),
        ("a raw newline", b"{\"name\": \"a\nb\"}".to_vec()),
        ("only white space", b"  \n".to_vec()),
        ("deep arrays", deep("[", "]")),
        ("deep objects", deep("{\"a\":", "}")),
        ("a huge number", b"{\"extensions\": {\"n\": 1e999}}".to_vec()),
        ("NaN", b"{\"extensions\": {\"n\": NaN}}".to_vec()),
        ("a lone high surrogate", b"{\"name\": \"\\ud800\"}".to_vec()),
        ("a lone low surrogate", b"{\"name\": \"\\udc00\"}".to_vec()),
        ("surrogates in the wrong order", b"{\"name\": \"\\udc00\\ud800\"}".to_vec()),
    ];
    for route in writes() {
        let is_file = route.path.contains("/import");
        for (what, body) in &bad {
            let answer = send(&tenant, &rows, route, body.clone()).await;
            assert_eq!(
                (answer.status, answer.body["code"].as_str()),
                (400, Some("bad_request")),
                "{} {}: {what}: {}",
                route.method,
                route.path,
                answer.text
            );
        }
        // A formula with NUL fails alone, so `/dice/roll` looks at texts one by one. Files lose their control characters instead.
        let looks_itself = is_file || route.path == "/v1/dice/roll";
        for nul in
            ["{\"name\": \"a\\u0000b\"}", "{\"extensions\": {\"a\\u0000\": 1}}", "{\"a\": [{\"b\": \"\\u0000\"}]}"]
        {
            if !looks_itself {
                let answer = send(&tenant, &rows, route, nul).await.problem(422, "validation_failed");
                assert_eq!(answer.body["errors"][0]["code"], "invalid_text", "{}", answer.text);
            }
        }
        if !route.path.ends_with("/seed") {
            for other in ["[]", "null", "1", "\"x\"", "true", "[null, \"x\", \"y\", \"z\"]"] {
                send(&tenant, &rows, route, other).await.problem(422, "validation_failed");
            }
        }
    }
    assert_eq!(counts(&server).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_media_types_and_encodings_are_refused() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "x").await;
    let before = counts(&server).await;
    for route in writes() {
        let body = rows.body(route).to_string();
        let request = || tenant.request(route.method.parse().unwrap(), &rows.path(route.path)).body(body.clone());
        for media in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonp",
            "json",
            "text/json",
            "",
        ] {
            tenant.send(request().header("content-type", media)).await.problem(415, "unsupported_media_type");
        }
        tenant.send(request()).await.problem(415, "unsupported_media_type");
        for encoding in ["gzip", "deflate", "br", "zstd", "gzip, identity", "x"] {
            let request = request().header("content-type", "application/json").header("content-encoding", encoding);
            tenant.send(request).await.problem(415, "unsupported_media_type");
        }
    }
    assert_eq!(counts(&server).await, before);
    let charset =
        tenant.request(Method::POST, "/v1/campaigns").header("content-type", "Application/JSON; charset=utf-8");
    tenant.send(charset.body("{\"name\": \"x\"}")).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_have_at_most_a_mebibyte() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "x").await;
    let before = counts(&server).await;
    let padded = |bytes: usize| format!("{{\"nonsense\": \"{}\"}}", "x".repeat(bytes - 16));
    assert_eq!(padded(BODY_BYTES_MAX).len(), BODY_BYTES_MAX);
    for path in ["/v1/campaigns".to_owned(), rows.path("/v1/campaigns/{c}/npcs")] {
        let request = || tenant.request(Method::POST, &path).header("content-type", "application/json");
        let fits = tenant.send(request().body(padded(BODY_BYTES_MAX))).await.problem(422, "validation_failed");
        assert_eq!(fits.pointers(), ["/nonsense", "/name"]);
        tenant.send(request().body(padded(BODY_BYTES_MAX + 1))).await.problem(413, "payload_too_large");
        // Without a length announced, too.
        let text = padded(BODY_BYTES_MAX + 1);
        let chunks: Vec<_> = text.as_bytes().chunks(64 * 1024).map(|c| Ok::<_, std::io::Error>(c.to_vec())).collect();
        let streamed = request().body(Body::wrap_stream(stream::iter(chunks)));
        tenant.send(streamed).await.problem(413, "payload_too_large");
    }
    assert_eq!(counts(&server).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_paths_are_refused_not_failed_on() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "x").await;
    let before = counts(&server).await;
    let long = "k".repeat(256);
    let bytes = reqwest::header::HeaderValue::from_bytes(b"\xff\xfe").unwrap();
    for route in TABLE.iter().filter(|r| r.method == "POST") {
        let request = || tenant.request(Method::POST, &rows.path(route.path)).json(&rows.body(route));
        for key in ["", "\"\"", " ", &long, "tab\tkey", "ä"] {
            tenant.send(request().header("idempotency-key", key)).await.problem(400, "bad_request");
        }
        tenant.send(request().header("idempotency-key", bytes.clone())).await.problem(400, "bad_request");
    }
    for route in TABLE.iter().filter(|r| r.path.contains('{')) {
        let missing = [
            "%00",
            "a%00b",
            "%FF",
            "%C3%28",
            "%ED%A0%80",
            "..%2f",
            "%20",
            "'",
            "%22",
            "*",
            &"x".repeat(4000),
            "🍺",
            "null",
        ];
        for name in missing {
            for hole in ["{c}", "{x}"] {
                if route.path.contains(hole) {
                    let path = rows.path(&route.path.replace(hole, name));
                    let request = tenant.request(route.method.parse().unwrap(), &path).json(&rows.body(route));
                    let answer = tenant.send(request).await;
                    assert!(matches!(answer.status, 400 | 404), "{} {path}: {}", route.method, answer.text);
                    assert_eq!(answer.header("content-type"), "application/problem+json", "{path}");
                }
            }
        }
    }
    for route in TABLE
        .iter()
        .filter(|r| matches!(r.method, "PATCH" | "DELETE") && r.path.contains("{x}") && !r.path.contains("broadcasts"))
    {
        for tag in ["", "nonsense", "\"v0\"", "\"v1", "W/\"v1\"", "\"v99999999999999999999\""] {
            let request = tenant.request(route.method.parse().unwrap(), &rows.path(route.path));
            tenant
                .send(request.header("if-match", tag).json(&rows.body(route)))
                .await
                .problem(412, "precondition_failed");
        }
    }
    assert_eq!(counts(&server).await, before);
    let longest = tenant.post_with_key("/v1/campaigns", &long[1..], json!({ "name": "x" })).await;
    longest.expect(201);
}

/// Any JSON: mostly small, sometimes extreme.
fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        4 => "[a-z_]{0,12}".prop_map(Value::from),
        2 => "\\PC{0,40}".prop_map(Value::from),
        1 => any::<String>().prop_map(Value::from),
        1 => Just(json!("x".repeat(5000))),
        1 => Just(json!("player_alice")),
        1 => Just(json!("018f3c5e-0000-7000-8000-000000000000")),
        1 => Just(json!("global")),
    ];
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-3i64..30).prop_map(Value::from),
        Just(json!(i32::MAX)),
        Just(json!(1e308)),
        Just(json!(-0.0)),
    ];
    let leaf = prop_oneof![2 => text, 2 => number, 1 => any::<bool>().prop_map(Value::from), 1 => Just(Value::Null)];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map("[a-z_/~]{0,8}", inner, 0..5)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

/// The members that requests of a route may have, by the committed description of the API.
fn members(route: &Access, api: &Value) -> Vec<String> {
    let operation = &api["paths"][route.path][route.method.to_lowercase()];
    let content =
        operation["requestBody"]["content"].as_object().and_then(|c| c.values().next()).cloned().unwrap_or_default();
    let name = content["schema"]["$ref"].as_str().and_then(|r| r.rsplit('/').next()).unwrap_or_default().to_owned();
    let properties = api["components"]["schemas"][name]["properties"].as_object().cloned().unwrap_or_default();
    properties.keys().cloned().collect()
}

/// Words of Rust, which nobody should read who writes JSON.
const RUSTY: [&str; 14] = [
    "expected",
    "missing field",
    "unknown field",
    "invalid type",
    "invalid value",
    "variant",
    "struct",
    "untagged",
    "u32",
    "i32",
    "u8",
    "u64",
    "f64",
    "`Option",
];

/// A message has no word of Rust, unless the body that it is about has it.
fn is_plain(words: &str, body: &Value) {
    let body = body.to_string();
    // `instruction` is not `struct`.
    let has = |rusty: &str| {
        words.match_indices(rusty).any(|(at, _)| {
            let (before, after) = (&words[..at], &words[at + rusty.len()..]);
            !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
        })
    };
    for rusty in RUSTY.iter().filter(|rusty| !body.contains(**rusty)) {
        assert!(!has(rusty), "{words}: {body:.500}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_json_makes_the_server_fail() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "x").await;
    let api = serde_json::to_value(tavernkeep::routes::document()).unwrap();
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRunner::deterministic().new_rng());
    let mut draw = || any_json().new_tree(&mut runner).unwrap().current();
    let mut taken = 0;
    for route in writes() {
        let members = members(route, &api);
        let mut bodies: Vec<Value> = (0..6).map(|_| draw()).collect();
        // Every member of a valid body, one at a time, with anything in it; and two members at a time.
        for member in &members {
            for _ in 0..3 {
                let mut body = rows.body(route);
                body[member.as_str()] = draw();
                bodies.push(body);
            }
        }
        for body in bodies {
            let answer = send(&tenant, &rows, route, body.to_string()).await;
            assert!(answer.status < 500, "{} {}: {body}\n{}", route.method, route.path, answer.text);
            if answer.status >= 400 {
                for words in
                    answer.body["errors"].as_array().into_iter().flatten().filter_map(|e| e["message"].as_str())
                {
                    is_plain(words, &body);
                }
                let code = answer.body["code"].as_str().unwrap_or_default();
                assert!(Code::ALL.iter().any(|c| c.as_str() == code && c.status() == answer.status), "{}", answer.text);
            } else {
                taken += 1;
            }
        }
    }
    assert!(taken > 30, "only {taken} bodies were taken: the bodies are no longer near to valid ones");
    server.anonymous().get("/readyz").await.expect(200);
}

/// What members with words are called.
const WORDS: [&str; 5] = ["message", "action", "content", "text", "instruction"];

/// Whether nobody is spoken to: descriptions that may be left out, kinds of actions, what is written down, previews of prompts.
fn is_not_spoken(route: &Access) -> bool {
    let ends = ["/actions", "/lore", "/lore/{x}", "/memories", "/memories/{x}", "/messages/{x}", "/prompt"];
    ends.iter().any(|end| route.path.ends_with(end))
}

#[tokio::test(flavor = "multi_thread")]
async fn blank_messages_are_refused_everywhere() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "x").await;
    let api = serde_json::to_value(tavernkeep::routes::document()).unwrap();
    let mut spoken: Vec<(String, Value, String)> = Vec::new();
    for route in writes().filter(|route| !is_not_spoken(route)) {
        for member in members(route, &api).into_iter().filter(|member| WORDS.contains(&member.as_str())) {
            let mut body = rows.body(route);
            body[member.as_str()] = Value::Null;
            spoken.push((rows.path(route.path), body, format!("/{member}")));
        }
    }
    assert_eq!(spoken.len(), 7, "new words are spoken, or some are no longer: {spoken:#?}");
    for command in ["do", "ooc"] {
        let body = json!({ "player_id": "player_alice", "arguments": { "message": null } });
        let path = rows.path(&format!("/v1/campaigns/{{c}}/commands/{command}"));
        spoken.push((path, body, "/arguments/message".to_owned()));
    }
    let before = counts(&server).await;
    for blank in ["", " ", "\n\t\u{2003}\r\n"] {
        for (path, body, pointer) in &spoken {
            let mut body = body.clone();
            *body.pointer_mut(pointer).unwrap() = json!(blank);
            let answer = tenant.post(path, body).await.problem(422, "validation_failed");
            assert_eq!(answer.pointers(), [pointer.as_str()], "{path}: {}", answer.text);
        }
    }
    assert_eq!(counts(&server).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_does_not_fit_is_told_at_once_in_plain_words() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let told = |answer: Answer| -> BTreeMap<String, String> {
        let errors = answer.problem(422, "validation_failed").body["errors"].as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        errors.iter().map(|error| (text(&error["pointer"]), text(&error["message"]))).collect()
    };
    let entry =
        json!({ "title": 5, "scope": "galaxy", "keys": ["a", 7], "priority": 1.5, "activation": {}, "colour": "red" });
    let errors = told(world.post("/lore", entry).await);
    let scopes = "`global`, `zone`, `race`, `profession`, `faction`, `creature` or `item`";
    for (pointer, message) in [
        ("/title", "must be a string"),
        ("/keys/1", "must be a string"),
        ("/priority", "must be a whole number"),
        ("/activation", "must be a string"),
        ("/content", "is required"),
    ] {
        assert_eq!(errors.get(pointer).map(String::as_str), Some(message), "{pointer} in {errors:?}");
    }
    assert_eq!(errors["/scope"], format!("must be {scopes}"));
    assert!(errors["/colour"].starts_with("is not a known name here; use `activation`, "), "{errors:?}");
    assert_eq!(errors.len(), 7, "{errors:?}");

    let change = json!({ "title": [], "enabled": "yes", "colour": "red" });
    let errors = told(world.patch("/lore/the_square", change).await);
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["/colour", "/enabled", "/title"]);

    // In an object within an object, and in one that has several shapes.
    let character =
        json!({ "name": "Zoe", "level": 21, "abilities": { "strength": "high", "luck": 3 }, "spell_slots": [1] });
    let errors = told(world.post("/characters", character).await);
    assert!(errors.len() >= 3, "{errors:?}");
    errors.values().for_each(|words| is_plain(words, &Value::Null));
    // Arguments of tools and of commands are read apart from the body that holds them.
    let arguments = json!({ "target": 7, "weapon": [], "cover": "wall", "colour": "red" });
    let call = json!({ "actor": { "type": "character", "id": "player_alice" }, "arguments": arguments });
    let errors = told(world.post("/tools/resolve_attack", call).await);
    for (pointer, message) in [
        ("/arguments/target", "must be a string"),
        ("/arguments/weapon", "must be a string"),
        ("/arguments/cover", "must be `none`, `half`, `three_quarters` or `total`"),
    ] {
        assert_eq!(errors.get(pointer).map(String::as_str), Some(message), "{pointer} in {errors:?}");
    }
    assert!(errors["/arguments/colour"].starts_with("is not a known name here"), "{errors:?}");
    let given = json!({ "player_id": "player_alice", "arguments": { "skill": 7, "dc": "high" } });
    let errors = told(world.post("/commands/use_skill", given).await);
    assert_eq!(errors.keys().filter(|pointer| pointer.starts_with("/arguments/")).count(), errors.len(), "{errors:?}");
    assert!(errors.len() >= 2, "{errors:?}");
    let refused = world.get("/lore?scope=galaxy").await.problem(400, "bad_request").body;
    assert_eq!(refused["errors"][0]["message"], format!("The query parameter `scope` must be {scopes}."));
    let refused = world.get("/lore?colour=red").await.problem(400, "bad_request").body;
    assert_eq!(refused["errors"][0]["pointer"], "colour");
}
