//! How an answer ended, and what it cost.

use edge::{tenant_settings::service::set_limits, tenants::TenantLimits};
use serde_json::{Value, json};

use super::{DONE, answered, asking, chunk, event, head, heard, replies, says, stream, whole};
use crate::support::{
    World,
    scripted::{Act, Scripted},
};

/// A whole answer with a document of its own.
fn sends(document: &Value) -> Act {
    Act::Raw((head("application/json") + &document.to_string()).into())
}

/// The last turn, as a game master reads it.
async fn last_turn(world: &World<'_>) -> Value {
    let turn =
        world.get("/turns?limit=1&sort=-created_at").await.expect(200).items()[0]["id"].as_str().unwrap().to_owned();
    world.get(&format!("/turns/{turn}")).await.expect(200).body
}

/// A front end can tell whether the text is whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_says_how_its_answer_ended() {
    let endpoint = Scripted::start(vec![Act::Hang]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let text = "The bridge was built in the year of the";
    for (reason, ending) in [
        ("stop", "complete"),
        ("end_turn", "complete"),
        ("a new word", "complete"),
        ("length", "truncated"),
        ("MAX_TOKENS", "truncated"),
        ("model_length", "truncated"),
        ("content_filter", "content_filtered"),
        ("SAFETY", "content_filtered"),
    ] {
        endpoint.follow(vec![replies(json!({ "content": text }), reason)]);
        let turn = world.bob("player_alice", "Hello.").await.expect(200).body;
        assert_eq!((&turn["narrative"], &turn["ending"]), (&json!(text), &json!(ending)), "{reason}");
        let stored = world.get(&format!("/turns/{}", turn["id"].as_str().unwrap())).await.expect(200).body;
        assert_eq!(stored["ending"], ending, "{reason}");
        assert_eq!(stored["trace"]["llm_calls"][0]["finish_reason"], reason);
        endpoint.follow(vec![Act::Raw(stream(&[says(text), chunk(json!({}), json!(reason)), DONE.to_owned()]).into())]);
        assert_eq!(heard(&world).await.as_deref(), Ok(text), "{reason}");
        assert_eq!(last_turn(&world).await["ending"], ending, "{reason}, in pieces");
    }
}

/// An answer that says and does nothing is none, but it was paid for.
#[tokio::test(flavor = "multi_thread")]
async fn silence_is_no_answer() {
    let endpoint = Scripted::start(vec![Act::Hang]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let thinks = json!({ "content": "", "reasoning_content": "Hmm, let me think about the harbour …" });
    let limit = "The model reached its output limit before it had thought to the end.";
    for (n, (message, reason, why)) in [
        (thinks.clone(), "length", limit),
        (json!({ "content": "<think>Hmm" }), "length", limit),
        (json!({ "content": "<think>Hmm" }), "stop", "The model thought, and then said nothing."),
        (thinks, "stop", "The model thought, and then said nothing."),
        (json!({ "content": "<think>Hmm</think>\n\n" }), "stop", "The model thought, and then said nothing."),
        (json!({ "content": "" }), "stop", "The model's answer was empty."),
        (json!({ "content": null }), "length", "The model reached its output limit before it said anything."),
        (json!({ "content": " \n" }), "content_filter", "The provider's filter withheld the model's answer."),
    ]
    .into_iter()
    .enumerate()
    {
        endpoint.follow(vec![replies(message.clone(), reason)]);
        let problem = world.bob("player_alice", "Hello.").await.problem(502, "llm_unavailable").body;
        assert!(problem["detail"].as_str().unwrap().starts_with(why), "{message}: {problem}");
        assert!(!problem.to_string().contains("Hmm"), "{problem}");
        let turn = last_turn(&world).await;
        assert_eq!((&turn["status"], &turn["usage"]["total_tokens"]), (&json!("failed"), &json!(55)), "{message}");
        assert_eq!(endpoint.seen().len(), 1, "{message}: the endpoint is not asked again");
        let used = tenant.get("/v1/usage?group_by=campaign").await.expect(200);
        assert_eq!(used.items()[0]["llm_calls"], json!(n + 1), "{message}: it was paid for");
    }
    let messages = world.get("/messages?entity_id=innkeeper_bob&player_id=player_alice").await.expect(200);
    assert!(messages.items().is_empty(), "{}", messages.text);
}

/// What an endpoint does not count is counted here.
#[tokio::test(flavor = "multi_thread")]
async fn usage_that_is_not_told_is_estimated() {
    let endpoint = Scripted::start(vec![Act::Hang]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let answer = |usage: Value| {
        let mut document = whole(json!({ "content": "Welcome, traveller, to the port." }), "stop");
        document["usage"] = usage;
        sends(&document)
    };
    let pieces = [says("Welcome, traveller, to the port."), chunk(json!({}), json!("stop"))];
    let told =
        event(json!({ "choices": [], "usage": { "prompt_tokens": 50, "completion_tokens": 8, "total_tokens": 58 } }));
    for (name, act, estimated, completion) in [
        ("told", answer(json!({ "prompt_tokens": 50, "completion_tokens": 8, "total_tokens": 58 })), false, 8),
        ("none", answer(Value::Null), true, 8),
        ("zeros", answer(json!({ "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0 })), true, 8),
        ("a total alone", answer(json!({ "prompt_tokens": null, "total_tokens": 9 })), true, 8),
        ("the prompt alone", answer(json!({ "prompt_tokens": 50 })), true, 8),
        ("pieces, told", Act::Raw((stream(&pieces) + &told + DONE).into()), false, 8),
        ("pieces", Act::Raw(stream(&pieces).into()), true, 8),
    ] {
        endpoint.follow(vec![act]);
        let turn = world.bob("player_alice", "Hello.").await.expect(200).body;
        let usage = &turn["usage"];
        assert_eq!(usage.get("estimated").is_some(), estimated, "{name}: {usage}");
        assert_eq!(usage["completion_tokens"], completion, "{name}: {usage}");
        let prompt = usage["prompt_tokens"].as_u64().unwrap();
        assert!(prompt == 50 || (estimated && prompt > 200), "{name}: {usage}");
        assert!(usage["total_tokens"].as_u64().unwrap() >= prompt + 8, "{name}: {usage}");
    }
}

/// Choosing an endpoint that counts nothing gets nobody past a limit.
#[tokio::test(flavor = "multi_thread")]
async fn estimates_count_against_limits() {
    let mut document = whole(json!({ "content": "Welcome." }), "stop");
    document.as_object_mut().unwrap().remove("usage");
    let endpoint = Scripted::start(vec![sends(&document)]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let limits = TenantLimits { tokens_per_day: 1, ..TenantLimits::unlimited() };
    set_limits(&mut server.owner().await, tenant.tenant, &limits).await.unwrap();
    let world = tenant.world().await;
    assert_eq!(answered(&world).await.as_deref(), Ok("Welcome."));
    world.bob("player_alice", "Hello again.").await.problem(429, "quota_exceeded");
}
