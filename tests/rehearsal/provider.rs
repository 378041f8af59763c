//! What a provider does beside answering: prompt caching, and refusing bad requests.

use std::error::Error;

use ::rehearsal::Script;
use reqwest::Client;
use serde_json::{Value, json};

use super::{Outcome, ask, model, post, turn, with_tools};

#[tokio::test(flavor = "multi_thread")]
async fn prompts_are_cached_by_prefix() -> Outcome {
    let model = model(Script::default()).await?;
    let cached = async |body: Value| -> Result<u64, Box<dyn Error>> {
        let usage = ask(&model, &body).await?["usage"].clone();
        assert!(usage["prompt_tokens_details"]["cached_tokens"].as_u64() <= usage["prompt_tokens"].as_u64());
        Ok(usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(u64::MAX))
    };
    let base: String = (0..1_500).map(|word| format!("{word:04} ")).collect();
    assert_eq!(cached(turn(&base, "one")).await?, 0);
    let second = cached(turn(&base, "two")).await?;
    assert_eq!((second, second % 128), (1_792, 0));
    assert_eq!(cached(turn(&base, "two")).await?, second);

    let mut changed = base.clone();
    changed.replace_range(5_000..5_004, "!!!!");
    assert_eq!(cached(turn(&changed, "two")).await?, 1_152);
    changed.replace_range(3_000..3_004, "!!!!");
    assert_eq!(cached(turn(&changed, "two")).await?, 0);
    let with = |field: &str, value: &str| {
        let mut body = turn(&base, "two");
        body[field] = json!(value);
        body
    };
    assert_eq!(cached(with("model", "other")).await?, 0);
    assert_eq!(cached(with("prompt_cache_key", "k")).await?, 0);
    assert_eq!(cached(with("prompt_cache_key", "k")).await?, second);
    assert_eq!(cached(with_tools(turn(&base, "two"), &["roll_dice"])).await?, 0);

    let short: String = base.chars().take(4_000).collect();
    assert_eq!(cached(turn(&short, "one")).await?, 0, "under the threshold");
    assert_eq!(cached(turn(&short, "one")).await?, 0, "under the threshold");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_in_openai_shape() -> Outcome {
    let model = model(Script::default()).await?;
    let user = json!({"role": "user", "content": "hi"});
    let asks = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}}]});
    let answer = |id| json!({"role": "tool", "tool_call_id": id, "content": "{}"});
    let bad = [
        json!([]),
        json!({}),
        json!({"messages": "x"}),
        json!({"messages": []}),
        json!({"messages": [{"role": "wizard", "content": "x"}]}),
        json!({"messages": [{"role": "user", "content": null}]}),
        json!({"messages": [user, asks]}),
        json!({"messages": [user, asks, user]}),
        json!({"messages": [user, asks, answer("c2")]}),
        json!({"messages": [user, answer("c1")]}),
        json!({"messages": [user], "tools": []}),
        json!({"messages": [user], "n": 2}),
        json!({"messages": [user], "tool_choice": "auto"}),
        json!({"messages": [user], "stream_options": {"include_usage": true}}),
        with_tools(json!({"messages": [user]}), &["not a name"]),
    ];
    for body in &bad {
        let response = post(&model, body).await?;
        assert_eq!(response.status(), 400, "{body}");
        let error = response.json::<Value>().await?["error"].clone();
        assert_eq!(error["type"], "invalid_request_error");
        assert!(error["message"].is_string() && error.get("param").is_some() && error.get("code").is_some());
    }
    ask(&model, &json!({"messages": [user, asks, answer("c1")]})).await?;
    let url = format!("{}/chat/completions", model.base_url());
    for body in ["", "{", "\u{0}", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]} trailing"] {
        assert_eq!(Client::new().post(&url).body(body).send().await?.status(), 400);
    }
    let huge = vec![b' '; 16 * 1_024 * 1_024 + 1];
    assert_eq!(Client::new().post(&url).body(huge).send().await?.status(), 413);
    assert_eq!(model.request_count(), bad.len() + 6);
    Ok(())
}
