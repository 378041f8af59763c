//! What endpoints take, want back and refuse.

use serde_json::{Value, json};

use super::{answered, asking, event, head, heard, memory, refuses, replies, stream, whole};
use crate::support::{
    World,
    scripted::{Act, Scripted},
};

/// A reply with one call, with further members of the message and of the call.
fn remembers(message: Value, call: Value) -> Act {
    let mut wanted = json!({ "role": "assistant", "content": "", "tool_calls": [{ "id": "call_a", "type": "function",
        "function": { "name": "NPC_memorize", "arguments": memory("Alice likes cider.") } }] });
    wanted.as_object_mut().unwrap().extend(message.as_object().unwrap().clone());
    wanted["tool_calls"][0].as_object_mut().unwrap().extend(call.as_object().unwrap().clone());
    replies(wanted, "tool_calls")
}

/// The assistant's message of a request.
fn said(request: &Value) -> &Value {
    request["messages"].as_array().unwrap().iter().find(|message| message["role"] == "assistant").unwrap()
}

/// What came with a call goes back with it, within its turn.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_endpoint_wants_back_goes_back() {
    let endpoint = Scripted::start(vec![Act::Hang]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let signature = json!({ "google": { "thought_signature": "c2lnLTEyMw==" } });
    let blocks = json!([{ "type": "reasoning.text", "text": "Hm.", "signature": "abc", "index": 0 }]);
    for (n, (message, call)) in [
        (json!({}), json!({ "extra_content": signature })),
        (json!({ "reasoning_content": "She greets me; remember that." }), json!({})),
        (json!({ "reasoning_details": blocks }), json!({})),
        (json!({ "extra_content": signature, "refusal": null, "annotations": [] }), json!({})),
        (json!({}), json!({})),
    ]
    .into_iter()
    .enumerate()
    {
        let world = World::make(&tenant, &format!("town-{n}")).await;
        endpoint
            .follow(vec![remembers(message.clone(), call.clone()), replies(json!({ "content": "Noted." }), "stop")]);
        assert_eq!(answered(&world).await.as_deref(), Ok("Noted."));
        let bodies = endpoint.bodies();
        let back = said(&bodies[1]);
        for name in ["reasoning_content", "reasoning_details", "extra_content"] {
            assert_eq!(back.get(name), message.get(name), "{message}");
            assert_eq!(back["tool_calls"][0].get(name), call.get(name), "{call}");
        }
        for name in ["refusal", "annotations"] {
            assert_eq!(back.get(name), None);
        }
        // Not in the next turn.
        endpoint.follow(vec![replies(json!({ "content": "Aye." }), "stop")]);
        assert_eq!(answered(&world).await.as_deref(), Ok("Aye."));
        let next = endpoint.seen().concat();
        assert!(!next.contains("c2lnLTEyMw") && !next.contains("remember that") && !next.contains("Hm."), "{next}");
    }
    // In pieces as well.
    let world = World::make(&tenant, "pieces").await;
    let delta = |delta: Value| event(json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }));
    let begin = json!([{ "type": "reasoning.text", "text": "She greets", "index": 0 }]);
    let end = json!([{ "type": "reasoning.text", "text": " me.", "signature": "s", "index": 0 }]);
    let call = json!([{ "index": 0, "id": "call_a", "extra_content": signature,
        "function": { "name": "NPC_memorize", "arguments": memory("Alice likes cider.") } }]);
    let calling = stream(&[
        delta(json!({ "reasoning_content": "She greets", "reasoning_details": begin })),
        delta(json!({ "reasoning_content": " me.", "reasoning_details": end })),
        delta(json!({ "tool_calls": call })),
        event(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] })),
    ]);
    endpoint.follow(vec![Act::Raw(calling.into()), replies(json!({ "content": "Noted." }), "stop")]);
    assert_eq!(heard(&world).await.as_deref(), Ok("Noted."));
    let bodies = endpoint.bodies();
    let back = said(&bodies[1]);
    let whole = json!([{ "type": "reasoning.text", "text": "She greets me.", "signature": "s", "index": 0 }]);
    assert_eq!((&back["reasoning_content"], &back["reasoning_details"]), (&json!("She greets me."), &whole));
    assert_eq!(back["tool_calls"][0]["extra_content"], signature);
}

/// Answers, unless the request has a member.
fn unless(request: &Value, members: &[&str], status: u16, body: &Value) -> String {
    if members.iter().any(|member| request.get(member).is_some()) {
        return refuses(status, body);
    }
    head("application/json") + &whole(json!({ "content": "Welcome." }), "stop").to_string()
}

/// A member that the request is complete without is left out once it was refused.
#[tokio::test(flavor = "multi_thread")]
async fn optional_members_that_are_refused_are_left_out() {
    const KEY: &str = "prompt_cache_key";
    const USAGE: &str = "stream_options";
    let gemini: fn(&Value) -> String = |request| {
        let message = "Invalid JSON payload received. Unknown name \"prompt_cache_key\": Cannot find field.";
        unless(
            request,
            &[KEY],
            400,
            &json!([{ "error": { "code": 400, "message": message, "status": "INVALID_ARGUMENT" } }]),
        )
    };
    let nvidia: fn(&Value) -> String = |request| {
        let detail =
            json!([{ "type": "extra_forbidden", "loc": ["body", KEY], "msg": "Extra inputs are not permitted" }]);
        unless(request, &[KEY], 422, &json!({ "object": "error", "message": { "detail": detail } }))
    };
    let mistral: fn(&Value) -> String = |request| {
        let detail =
            json!([{ "type": "extra_forbidden", "loc": ["body", USAGE], "msg": "Extra inputs are not permitted" }]);
        unless(request, &[USAGE], 422, &json!({ "detail": detail }))
    };
    let silent: fn(&Value) -> String =
        |request| unless(request, &[KEY, USAGE], 400, &json!({ "error": "bad request" }));
    let one_by_one: fn(&Value) -> String = |request| {
        let named = [KEY, USAGE].into_iter().find(|member| request.get(member).is_some()).unwrap_or_default();
        unless(request, &[KEY, USAGE], 400, &json!({ "error": { "message": format!("Unsupported: {named}") } }))
    };
    let limit: fn(&Value) -> String = |request| {
        let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        unless(request, &["max_tokens"], 400, &json!({ "error": { "message": message } }))
    };
    for (name, rule, tries) in [
        ("Gemini", gemini, 2),
        ("NVIDIA", nvidia, 2),
        ("Mistral", mistral, 2),
        ("one that does not say why", silent, 2),
        ("one that says it bit by bit", one_by_one, 3),
        ("a reasoning model", limit, 2),
    ] {
        let endpoint = Scripted::start(vec![Act::By(rule)]).await;
        let server = asking(&endpoint).await;
        let tenant = server.tenant("acme").await;
        let world = tenant.world().await;
        assert_eq!(heard(&world).await.as_deref(), Ok("Welcome."), "{name}");
        assert_eq!(endpoint.seen().len(), tries, "{name}");
        assert_eq!(heard(&world).await.as_deref(), Ok("Welcome."), "{name}");
        assert_eq!(answered(&world).await.as_deref(), Ok("Welcome."), "{name}");
        assert_eq!(endpoint.seen().len(), tries + 2, "{name}: it is remembered");
        let last = endpoint.bodies().pop().unwrap();
        assert!(last.get("max_tokens").is_some() || last.get("max_completion_tokens").is_some());
    }
    // What is wrong for another reason stays wrong, and is soon told.
    let endpoint =
        Scripted::start(vec![Act::By(|_| refuses(400, &json!({ "error": { "message": "too long" } })))]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    assert_eq!(answered(&world).await, Err("llm_unavailable".to_owned()));
    assert_eq!(endpoint.seen().len(), 2);
    endpoint.follow(vec![replies(json!({ "content": "Aye." }), "stop")]);
    assert_eq!(answered(&world).await.as_deref(), Ok("Aye."));
    assert!(endpoint.bodies()[0].get(KEY).is_some(), "nothing was learned from it");
}

/// Thoughts that an endpoint wants back are left out if it refuses them after all.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_refuses_its_own_thoughts_gets_none() {
    let endpoint = Scripted::start(vec![Act::Hang]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let strict: fn(&Value) -> String = |request| {
        let detail =
            json!([{ "type": "extra_forbidden", "loc": ["body", "messages", 2, "assistant", "reasoning_content"] }]);
        match said(request).get("reasoning_content") {
            Some(_) => refuses(422, &json!({ "detail": detail })),
            None => head("application/json") + &whole(json!({ "content": "Noted." }), "stop").to_string(),
        }
    };
    let call = remembers(json!({ "reasoning_content": "She greets me." }), json!({}));
    endpoint.follow(vec![call, Act::By(strict), Act::By(strict)]);
    assert_eq!(answered(&world).await.as_deref(), Ok("Noted."));
    assert_eq!(endpoint.seen().len(), 3);
}

/// No schema of a tool has a keyword that some endpoint refuses.
#[tokio::test(flavor = "multi_thread")]
async fn schemas_of_tools_are_plain() {
    fn walk(schema: &Value, path: &str) {
        let Some(members) = schema.as_object() else { panic!("{path}: {schema}") };
        for keyword in [
            "const",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "$ref",
            "$defs",
            "uniqueItems",
            "anyOf",
            "oneOf",
            "allOf",
            "format",
        ] {
            assert!(!members.contains_key(keyword), "{path}: {keyword}");
        }
        assert!(members.get("type").is_some_and(Value::is_string), "{path}: {schema}");
        assert!(members["type"] != "array" || members.contains_key("items"), "{path}: {schema}");
        assert!(!members.get("enum").is_some_and(|values| values.as_array().unwrap().contains(&Value::Null)), "{path}");
        for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            walk(property, &format!("{path}/{name}"));
        }
        if let Some(items) = members.get("items") {
            walk(items, &format!("{path}/items"));
        }
    }
    for tool in ai::tools::REGISTRY {
        walk(tool.schema(), tool.name);
    }
}
