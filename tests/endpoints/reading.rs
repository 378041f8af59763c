//! Replies in every form, and half ones.

use serde_json::{Value, json};

use super::{DONE, answered, asking, chunk, event, head, heard, memory, replies, says, stream, whole};
use crate::support::{
    World,
    scripted::{Act, Scripted},
};

/// A reply that is complete stays so, whatever its stream looks like and however it ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_complete_reply_is_read_however_it_is_sent() {
    let endpoint = Scripted::start(vec![Act::Hang]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let pieces = [says("Wel"), says("come."), chunk(json!({}), json!("stop"))].concat();
    let message = json!({ "role": "assistant", "content": "Welcome." });
    let repeated = |delta: &str, so_far: &str, reason: Value| {
        let choice = json!({ "index": 0, "delta": { "role": "assistant", "content": delta }, "finish_reason": reason,
            "message": { "role": "assistant", "content": so_far } });
        event(json!({ "object": "chat.completion.chunk", "model": "m", "choices": [choice] }))
    };
    let redundant = [
        repeated("Wel", "Wel", Value::Null),
        repeated("come.", "Welcome.", Value::Null),
        repeated("", "Welcome.", json!("stop")),
    ]
    .concat();
    let only_messages = [("Wel", Value::Null), ("Welcome.", json!("stop"))].map(|(text, reason)| {
        let choice = json!({ "index": 0, "delta": {}, "message": { "content": text }, "finish_reason": reason });
        event(json!({ "object": "chat.completion.chunk", "choices": [choice] }))
    });
    let with_delta =
        json!({ "choices": [{ "index": 0, "delta": {}, "message": message.clone(), "finish_reason": "stop" }] });
    let body = whole(message, "stop");
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{pieces}\r\n",
        pieces.len()
    );
    let lying = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n{body}");
    let unending = pieces.trim_end();
    let lines = pieces.replace("data: ", "").replace("\n\n", "\n");
    let events = "text/event-stream";
    for (name, act) in [
        ("with the end that is usual", Act::Raw(format!("{}{pieces}{DONE}", head(events)).into())),
        ("without [DONE]", Act::Raw(format!("{}{pieces}", head(events)).into())),
        ("without the last newline", Act::Raw(format!("{}{unending}", head(events)).into())),
        ("[DONE] without the last newline", Act::Raw(format!("{}{pieces}{}", head(events), DONE.trim()).into())),
        (
            "with carriage returns",
            Act::Raw(format!("{}{pieces}{DONE}", head(events)).replace("\n\n", "\r\n\r\n").into()),
        ),
        ("on a connection that stays open", Act::Open(format!("{}{pieces}", head(events)).into())),
        ("on one that breaks after the end", Act::Raw(chunked.into())),
        ("cut within what comes after the end", Act::Raw(format!("{}{pieces}data: {{\"choi", head(events)).into())),
        ("with a message beside the pieces", Act::Raw(format!("{}{redundant}", head(events)).into())),
        ("the same with [DONE]", Act::Raw(format!("{}{redundant}{DONE}", head(events)).into())),
        ("with messages alone", Act::Raw(format!("{}{}", head(events), only_messages.concat()).into())),
        ("as plain text", Act::Raw(format!("{}{pieces}{DONE}", head("text/plain; charset=utf-8")).into())),
        ("as JSON", Act::Raw(format!("{}{pieces}{DONE}", head("application/json")).into())),
        ("as lines without `data:`", Act::Raw(format!("{}{lines}", head("application/x-ndjson")).into())),
        ("as a list", Act::Raw(format!("{}[{body}]", head("application/json")).into())),
        ("whole", Act::Raw(format!("{}{body}", head("application/json")).into())),
        ("whole and printed in lines", Act::Raw(format!("{}{body:#}", head("application/json")).into())),
        ("whole, after a mark", Act::Raw(format!("{}\u{feff}{body}", head("application/json")).into())),
        ("whole, as a stream", Act::Raw(format!("{}{body}\n\n{DONE}", head(events)).into())),
        ("whole, as an event", Act::Raw(format!("{}{}{DONE}", head(events), event(body.clone())).into())),
        ("whole, with an empty delta", Act::Raw(format!("{}{with_delta}", head("application/json")).into())),
        ("whole, with a length that is wrong", Act::Open(lying.into())),
    ] {
        endpoint.follow(vec![act]);
        assert_eq!(heard(&world).await.as_deref(), Ok("Welcome."), "{name}, asked for a stream");
        assert_eq!(answered(&world).await.as_deref(), Ok("Welcome."), "{name}, asked for a whole reply");
        assert_eq!(endpoint.seen().len(), 2, "{name}: asked once each time");
    }
}

/// Half a reply is no reply.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_did_not_end_is_not_kept() {
    let endpoint = Scripted::start(vec![Act::Hang]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let begun = |reason: Value| {
        let chunks =
            ["The bridge is ", "out, but the ferry"].map(|text| chunk(json!({ "content": text }), reason.clone()));
        stream(&chunks)
    };
    let failed = json!({ "code": 502, "message": "Provider disconnected" });
    let mut choice = whole(json!({ "content": "The bridge is" }), "error");
    choice["choices"][0]["error"] = failed.clone();
    let mut top = whole(json!({ "content": "" }), "stop");
    top["error"] = failed;
    let call =
        json!([{ "index": 0, "id": "a", "function": { "name": "NPC_memorize", "arguments": "{\"player_id\":" } }]);
    for (name, bytes) in [
        ("the reason null", begun(Value::Null)),
        ("an empty reason", begun(json!(""))),
        ("the word null", begun(json!("null"))),
        ("cut within a chunk", begun(Value::Null) + "data: {\"choices\":[{\"delta\":{\"content\":\" to"),
        ("an error for a reason", stream(&[says("The bridge is"), chunk(json!({}), json!("error")), DONE.to_owned()])),
        (
            "an error event",
            stream(&[says("The bridge is"), event(json!({ "error": { "message": "gone" } })), DONE.to_owned()]),
        ),
        ("an error object", stream(&[says("The bridge is"), event(json!({ "object": "error", "message": "gone" }))])),
        ("an error in the choice", head("application/json") + &choice.to_string()),
        ("an error beside the choices", head("application/json") + &top.to_string()),
        ("cut within the JSON", head("application/json") + "{\"choices\":[{\"message\":{\"content\":\"The"),
        ("a call that is cut", stream(&[chunk(json!({ "tool_calls": call }), Value::Null)])),
        ("nothing", head("text/event-stream")),
        ("nothing but an end", head("text/event-stream") + DONE),
    ] {
        endpoint.follow(vec![Act::Raw(bytes.clone().into())]);
        assert_eq!(heard(&world).await, Err("llm_unavailable".to_owned()), "{name}, asked for a stream");
        endpoint.follow(vec![Act::Raw(bytes.into())]);
        assert_eq!(answered(&world).await, Err("llm_unavailable".to_owned()), "{name}, asked for a whole reply");
        // The next one is no worse off for it.
        endpoint.follow(vec![replies(json!({ "content": "Aye." }), "stop")]);
        assert_eq!(answered(&world).await.as_deref(), Ok("Aye."), "{name}");
    }
    let messages = world.get("/messages?entity_id=innkeeper_bob&player_id=player_alice&limit=200").await.expect(200);
    assert!(!messages.text.contains("bridge"), "{}", messages.text);
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await, ["Initial impression: Seems friendly."]);
}

/// Pieces of calls belong together by what they say.
#[tokio::test(flavor = "multi_thread")]
async fn calls_in_pieces_are_put_together() {
    let endpoint = Scripted::start(vec![Act::Hang]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let (cider, dog) = (memory("Alice likes cider."), memory("Alice has a dog."));
    let call = |index: Value, id: Value, name: Value, arguments: &str| json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let (name, none) = (json!("NPC_memorize"), Value::Null);
    let (begin, end) = cider.split_at(20);
    let two = |first: Value, second: Value| vec![vec![first], vec![second]];
    for (n, (why, deltas)) in [
        (
            "all numbered 0",
            two(call(json!(0), json!("a"), name.clone(), &cider), call(json!(0), json!("b"), name.clone(), &dog)),
        ),
        (
            "not numbered",
            two(
                call(none.clone(), json!("a"), name.clone(), &cider),
                call(none.clone(), json!("b"), name.clone(), &dog),
            ),
        ),
        (
            "without ids",
            two(call(json!(0), none.clone(), name.clone(), &cider), call(json!(1), none.clone(), name.clone(), &dog)),
        ),
        (
            "without ids, all 0",
            two(call(json!(0), json!(""), name.clone(), &cider), call(json!(0), json!(""), name.clone(), &dog)),
        ),
        (
            "neither",
            two(
                call(none.clone(), none.clone(), name.clone(), &cider),
                call(none.clone(), none.clone(), name.clone(), &dog),
            ),
        ),
        (
            "two in one delta",
            vec![vec![
                call(json!(0), none.clone(), name.clone(), &cider),
                call(json!(0), none.clone(), name.clone(), &dog),
            ]],
        ),
        (
            "in fragments, the second without a number",
            vec![
                vec![call(json!(0), json!("a"), name.clone(), begin)],
                vec![call(json!(0), none.clone(), none.clone(), end)],
                vec![call(none.clone(), json!("b"), name.clone(), "")],
                vec![call(none.clone(), none.clone(), none.clone(), &dog)],
            ],
        ),
        (
            "in fragments that repeat id and name",
            vec![
                vec![call(json!(0), json!("a"), name.clone(), begin)],
                vec![call(json!(0), json!("a"), name.clone(), end)],
                vec![call(json!(1), json!("b"), name.clone(), &dog)],
            ],
        ),
        (
            "in fragments with an id each",
            vec![
                vec![call(json!(0), json!("a"), name.clone(), begin)],
                vec![call(json!(0), json!("x7"), none.clone(), end)],
                vec![call(json!(1), json!("b"), name.clone(), &dog)],
            ],
        ),
        (
            "in fragments by turns",
            vec![
                vec![call(json!(0), json!("a"), name.clone(), begin), call(json!(1), json!("b"), name.clone(), "")],
                vec![call(json!(1), none.clone(), none.clone(), &dog)],
                vec![call(json!(0), none.clone(), none.clone(), end)],
            ],
        ),
        (
            "after a placeholder, and repeated at the end",
            vec![
                vec![call(json!(0), json!("a"), name.clone(), "{}")],
                vec![call(json!(0), json!("a"), none.clone(), &cider)],
                vec![call(json!(1), json!("b"), name.clone(), &dog)],
                vec![call(json!(1), json!("b"), name.clone(), &dog)],
            ],
        ),
        (
            "encoded twice",
            two(
                call(json!(0), json!("a"), name.clone(), &json!(cider).to_string()),
                call(json!(1), json!("b"), name.clone(), &json!(dog).to_string()),
            ),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let world = World::make(&tenant, &format!("town-{n}")).await;
        let deltas = deltas.into_iter().map(|calls| chunk(json!({ "tool_calls": calls }), Value::Null));
        let calls = deltas.chain([chunk(json!({}), json!("tool_calls")), DONE.to_owned()]).collect::<String>();
        let noted = replies(json!({ "content": "Noted." }), "stop");
        endpoint.follow(vec![Act::Raw((head("text/event-stream") + &calls).into()), noted]);
        assert_eq!(heard(&world).await.as_deref(), Ok("Noted."), "{why}");
        let remembered = world.memories("npcs/innkeeper_bob", "player_alice").await;
        assert_eq!(remembered[1..], ["Alice likes cider.", "Alice has a dog."], "{why}");
        let seen = endpoint.bodies();
        let messages = seen[1]["messages"].as_array().unwrap();
        let answers: Vec<&Value> = messages.iter().filter(|message| message["role"] == "tool").collect();
        let asked: Vec<&Value> =
            messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten().collect();
        assert_eq!((asked.len(), answers.len()), (2, 2), "{why}");
        for (asked, answer) in asked.iter().zip(&answers) {
            assert_eq!(asked["id"], answer["tool_call_id"], "{why}");
        }
    }
}

/// Gateways cut texts where they like: between the two halves of a character in UTF-16, or within its bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_character_that_was_cut_in_two_is_whole() {
    let endpoint = Scripted::start(vec![Act::Hang]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let text = "Welcome friend \u{1f37a} to you.";
    let sent = |delta: &str| chunk(json!({ "content": "DELTA" }), Value::Null).replace("DELTA", delta).into_bytes();
    let end = chunk(json!({}), json!("stop")).into_bytes();
    let as_stream = |chunks: &[Vec<u8>]| {
        let head = head("text/event-stream").into_bytes();
        Act::Raw([head, chunks.concat(), end.clone(), DONE.as_bytes().to_vec()].concat())
    };
    let halves = [sent("Welcome "), sent(r"friend \ud83c"), sent(r"\udf7a to you.")];
    let empty_between = [sent(r"Welcome friend \ud83c"), sent(""), sent(r"\udf7a to you.")];
    let chunk_of_bytes = |content: &[u8]| {
        let whole = String::from_utf8(sent("|")).unwrap();
        let (before, after) = whole.split_once('|').unwrap();
        [before.as_bytes(), content, after.as_bytes()].concat()
    };
    let in_bytes: Vec<Vec<u8>> = text.as_bytes().chunks(3).map(chunk_of_bytes).collect();
    for chunks in [&halves[..], &empty_between, &in_bytes] {
        endpoint.follow(vec![as_stream(chunks)]);
        assert_eq!(heard(&world).await.as_deref(), Ok(text));
        assert_eq!(answered(&world).await.as_deref(), Ok(text));
    }
    // A half that stays alone costs nothing else.
    for (chunks, text) in [
        ([sent(r"Half \ud83c"), sent(" and whole")], "Half \u{fffd} and whole"),
        ([sent("Half "), sent(r"\udf7a and whole")], "Half \u{fffd} and whole"),
        ([sent("Half"), sent(r" \ud83c")], "Half \u{fffd}"),
    ] {
        endpoint.follow(vec![as_stream(&chunks)]);
        assert_eq!(heard(&world).await.as_deref(), Ok(text));
    }
    // What the model remembers and thinks is cut in the same places.
    let call = |arguments: &str, thought: &str| {
        let function = json!({ "name": "NPC_memorize", "arguments": "ARGUMENTS" });
        let calls = json!([{ "index": 0, "id": "c1", "function": function }]);
        let chunk = chunk(json!({ "tool_calls": calls, "reasoning_content": "THOUGHT" }), Value::Null);
        chunk.replace("ARGUMENTS", arguments).replace("THOUGHT", thought).into_bytes()
    };
    let called = [
        call(r#"{\"player_id\": \"player_alice\", \"memory_string\": \"A beer \ud83c"#, r"Beer \ud83c"),
        call(r#"\udf7a please.\"}"#, r"\udf7a?"),
    ];
    endpoint.follow(vec![as_stream(&called), as_stream(&halves)]);
    let turn = world.bob("player_alice", "A beer.").await.expect(200);
    assert_eq!(turn.body["tool_calls"][0]["arguments"]["memory_string"], "A beer \u{1f37a} please.", "{}", turn.text);
    let memories = world.memories("npcs/innkeeper_bob", "player_alice").await;
    assert!(memories.contains(&"A beer \u{1f37a} please.".to_owned()), "{memories:?}");
    let trace = world.get(&format!("/turns/{}", turn.id())).await.expect(200).body;
    assert_eq!(trace["trace"]["llm_calls"][0]["reasoning"], "Beer \u{1f37a}?", "{trace}");
}
