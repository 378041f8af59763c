//! What a script makes it answer, in Rust and over HTTP.

use ::rehearsal::{Reply, Script, Step, Then, UsageOverride};
use reqwest::Client;
use serde_json::{Value, json};

use super::{Outcome, ask, call, model, post, text, turn};

#[tokio::test(flavor = "multi_thread")]
async fn a_script_goes_step_by_step() -> Outcome {
    let script = Script::replies([
        Step::from(Reply::text("to Bob")).when_contains("Bob"),
        Step::from(Reply::text("for x")).when_model("x"),
        Step::from(Reply::text("one")),
        Step::from(Reply::text("two").finish_reason("length").usage(UsageOverride {
            prompt_tokens: Some(7),
            cached_tokens: Some(3),
            ..UsageOverride::default()
        })),
    ]);
    let model = model(script.clone().then(Then::Error)).await?;
    let body = turn("s", "hello");
    assert_eq!(text(&ask(&model, &body).await?), "one");
    let two = ask(&model, &body).await?;
    assert_eq!((text(&two), &two["choices"][0]["finish_reason"]), ("two", &json!("length")));
    assert_eq!(two["usage"]["prompt_tokens"], 7);
    assert_eq!(two["usage"]["prompt_tokens_details"]["cached_tokens"], 3);
    assert_eq!(post(&model, &body).await?.status(), 500);
    assert_eq!(text(&ask(&model, &turn("s", "I call Bob")).await?), "to Bob");

    model.set_script(script.then(Then::RepeatLast));
    for expected in ["one", "two", "two", "two"] {
        assert_eq!(text(&ask(&model, &body).await?), expected);
    }
    model.set_script(Script::replies([Step::from(Reply::text("ever")).sticky(), Reply::text("no").into()]));
    for _ in 0..3 {
        assert_eq!(text(&ask(&model, &body).await?), "ever");
    }
    assert_eq!(model.request_count(), 11);
    assert_eq!(model.requests().len(), 4);
    assert_eq!(model.requests().last(), Some(&body));
    assert!(model.request_headers().iter().all(|headers| headers.contains_key("content-type")));
    model.clear();
    assert_eq!((model.requests().len(), model.request_count()), (0, 11));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn scripted_answers_arrive_as_written() -> Outcome {
    let big = 10 * 1_024 * 1_024 + 1;
    let model = model(Script::replies([
        Reply::tool("NPC_memorize", json!({"a": 1})).with_text("hm").with_tool("b", "{broken"),
        Reply::refusal("I will not."),
        Reply::status(429).retry_after(3),
        Reply::status(500).with_body(json!({"oops": true})),
        Reply::raw_body("<html>no json"),
        Reply::repeat_bytes(big).with_text("é \"q\" "),
    ]))
    .await?;
    let body = turn("s", "hello");
    let tools = ask(&model, &body).await?;
    assert_eq!((text(&tools), call(&tools)), ("hm", ("NPC_memorize", json!({"a": 1}))));
    let calls = &tools["choices"][0]["message"]["tool_calls"];
    assert_eq!(calls[1]["function"]["arguments"], "{broken");
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    let refused = ask(&model, &body).await?;
    assert_eq!(refused["choices"][0]["message"]["refusal"], "I will not.");
    assert!(refused["choices"][0]["message"]["content"].is_null());
    let limited = post(&model, &body).await?;
    assert_eq!((limited.status().as_u16(), &limited.headers()["retry-after"]), (429, &"3".parse()?));
    assert_eq!(limited.json::<Value>().await?["error"]["type"], "rate_limit_error");
    let failed = post(&model, &body).await?;
    assert_eq!((failed.status().as_u16(), failed.json::<Value>().await?), (500, json!({"oops": true})));
    assert_eq!(post(&model, &body).await?.text().await?, "<html>no json");
    let huge = ask(&model, &body).await?;
    assert_eq!(text(&huge).len() as u64, big);
    assert_eq!(huge["usage"]["completion_tokens"].as_u64(), Some(big.div_ceil(4)));
    assert!(text(&ask(&model, &body).await?).contains("Alice"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_scripted_over_http() -> Outcome {
    let model = model(Script::default()).await?;
    let root = format!("http://{}", model.addr());
    let client = Client::new();
    let put = async |body: Value| client.put(format!("{root}/rehearsal/script")).json(&body).send().await;
    let script = json!({"steps": [{"when": {"contains": "hello"}, "reply": {"text": "scripted"}}], "then": "error"});
    assert_eq!(put(script).await?.status(), 204);
    let body = turn("s", "hello");
    assert_eq!(text(&ask(&model, &body).await?), "scripted");
    for bad in [
        json!({"step": []}),
        json!({"steps": [{"reply": {"texts": "typo"}}]}),
        json!({"steps": [{"reply": {"text": "a", "status": 500}}]}),
        json!({"steps": [{"reply": {"status": 42}}]}),
    ] {
        assert!(Script::from_json(&bad.to_string()).is_err());
        assert_eq!(put(bad).await?.status(), 400);
    }
    assert_eq!(post(&model, &body).await?.status(), 500, "a refused script changes nothing");

    let requests = format!("{root}/rehearsal/requests");
    let listed: Value = client.get(&requests).send().await?.json().await?;
    assert_eq!(listed, json!({"count": 2, "items": [body, body]}));
    assert_eq!(client.delete(&requests).send().await?.status(), 204);
    assert_eq!(model.requests().len(), 0);
    let models: Value = client.get(format!("{root}/v1/models")).send().await?.json().await?;
    assert_eq!(models["data"][0]["id"], "rehearsal");
    assert_eq!(client.get(format!("{root}/v1/nothing")).send().await?.status(), 404);
    Ok(())
}
