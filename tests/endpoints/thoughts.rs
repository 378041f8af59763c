//! What a model writes beside its speech: thoughts, and calls in a notation of its own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use llm::{CancellationToken, ChatRequest, LlmClient, LlmSettings, Message, Role, Sink};
use proptest::prelude::*;
use serde_json::json;

use super::{DONE, answered, asking, chunk, heard, memory, replies, says, stream, told};
use crate::support::{
    World,
    scripted::{Act, Scripted},
};

/// A text with thoughts, and what of it is speech.
const THOUGHTS: [(&str, &str); 13] = [
    ("<think>She is a stranger.</think>\n\nWelcome, traveller.", "Welcome, traveller."),
    ("<THINK>She is a stranger.</THINK>Welcome, traveller.", "Welcome, traveller."),
    ("<thinking>A < b.</thinking>Welcome, traveller.", "Welcome, traveller."),
    ("<thought>\nHm.\n</thought>\nWelcome, traveller.", "Welcome, traveller."),
    ("[THINK]She is a stranger.[/THINK]Welcome, traveller.", "Welcome, traveller."),
    ("◁think▷Hm.◁/think▷Welcome, traveller.", "Welcome, traveller."),
    ("<seed:think>Hm.</seed:think>Welcome, traveller.", "Welcome, traveller."),
    ("<|begin_of_thought|>Hm.<|end_of_thought|>Welcome, traveller.", "Welcome, traveller."),
    (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Welcome, traveller.",
        "Welcome, traveller.",
    ),
    ("<|channel>thought\nHm.<channel|>Welcome, traveller.", "Welcome, traveller."),
    ("Welcome,<think>She is a stranger.</think> traveller.", "Welcome, traveller."),
    ("Welcome, traveller.<think>She is", "Welcome, traveller."),
    ("She is a stranger, I should be polite.\n</think>\n\nWelcome, traveller.", "Welcome, traveller."),
];

/// What is no thought.
const SPEECH: [&str; 6] = [
    "I think, therefore I am.",
    "He draws <a line> in the [sand].",
    "2 < 3, and [1] is a footnote.",
    "<thin ice>",
    "A pipe: <|",
    "The end of it: <thi",
];

#[tokio::test(flavor = "multi_thread")]
async fn thoughts_are_never_spoken() {
    for (text, speech) in THOUGHTS {
        // An endpoint of its own: what is learned from one text must not help another.
        let endpoint = Scripted::start(vec![replies(json!({ "content": text }), "stop")]).await;
        let server = asking(&endpoint).await;
        let tenant = server.tenant("acme").await;
        let world = tenant.world().await;
        assert_eq!(answered(&world).await.as_deref(), Ok(speech), "{text}");
        let pieces: Vec<String> =
            text.chars().collect::<Vec<_>>().chunks(3).map(|piece| says(&piece.iter().collect::<String>())).collect();
        let end = [chunk(json!({}), json!("stop")), DONE.to_owned()];
        endpoint.follow(vec![Act::Raw(stream(&[pieces, end.to_vec()].concat()).into())]);
        assert_eq!(heard(&world).await.as_deref(), Ok(speech), "{text}");
        // The next prompt has none either.
        endpoint.follow(vec![replies(json!({ "content": "Aye." }), "stop")]);
        answered(&world).await.unwrap();
        let seen = endpoint.seen().concat();
        assert!(seen.contains("Welcome, traveller.") && !seen.contains("stranger") && !seen.contains("Hm."), "{seen}");
    }
}

/// The first time, nobody knows that a stream begins within a thought. What is kept is clean, and later streams are.
#[tokio::test(flavor = "multi_thread")]
async fn a_thought_without_a_beginning_is_told_at_most_once() {
    let endpoint = Scripted::start(vec![Act::Hang]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let pieces = ["She is a stranger, ", "I should be polite.\n</thi", "nk>\n\nWelcome, ", "traveller."].map(says);
    let streamed = Act::Raw((stream(&pieces) + &chunk(json!({}), json!("stop")) + DONE).into());
    endpoint.follow(vec![streamed.clone()]);
    let (told, narrative) = told(&world).await;
    assert_eq!(narrative.as_deref(), Ok("Welcome, traveller."));
    assert!(told.starts_with("She is a stranger") && told.ends_with("Welcome, traveller."), "{told}");
    endpoint.follow(vec![streamed]);
    assert_eq!(heard(&world).await.as_deref(), Ok("Welcome, traveller."), "and nothing else is told");
    // Without thoughts all of it is speech, only later.
    endpoint.follow(vec![Act::Raw((stream(&[says("Sit "), says("down.")]) + &chunk(json!({}), json!("stop"))).into())]);
    assert_eq!(heard(&world).await.as_deref(), Ok("Sit down."));
    // The last of several ends counts.
    endpoint.follow(vec![replies(json!({ "content": "One.</think>Two.</think>Welcome, traveller." }), "stop")]);
    assert_eq!(answered(&world).await.as_deref(), Ok("Welcome, traveller."));
    // Somebody may have talked the model into it. After ten replies without such a thought, pieces are told as they come again.
    endpoint.follow(vec![replies(json!({ "content": "Aye." }), "stop")]);
    for _ in 0..9 {
        answered(&world).await.unwrap();
    }
    assert!(!endpoint.seen().concat().contains("stranger"));
    let client = LlmClient::new(LlmSettings::default()).unwrap();
    let pieces = Act::Raw((stream(&[says("Sit "), says("down.")]) + &chunk(json!({}), json!("stop"))).into());
    endpoint.follow(vec![replies(json!({ "content": "One.</think>Two." }), "stop"), pieces]);
    let heard = async || {
        let told = Arc::new(AtomicUsize::new(0));
        let count = told.clone();
        let sink = Sink::new(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let messages = [Message::text(Role::User, "Hello")];
        let request = ChatRequest { messages: &messages, sink: Some(&sink), ..ChatRequest::default() };
        client.complete(&endpoint.endpoint(), &request, &CancellationToken::new()).await.unwrap();
        told.load(Ordering::Relaxed)
    };
    heard().await;
    for _ in 0..10 {
        assert_eq!(heard().await, 1, "all at once, at its end");
    }
    assert_eq!(heard().await, 2);
}

proptest! {
    /// However a text is cut, the same of it is speech, and nothing that is told is taken back unless a thought had no beginning.
    #[test]
    fn pieces_make_no_difference(text in "([a-z <>/\\[\\]|]|<think>|</think>|\\[THINK\\]|\\[/THINK\\]|<tool_call>|</tool_call>|<\\|end\\|>|◁think▷|é){0,30}", size in 1..9_usize) {
        let mut whole = llm::reply::Aside::new(true, false);
        let mut told_whole = whole.push(&text);
        told_whole.push_str(&whole.finish());
        let mut aside = llm::reply::Aside::new(true, false);
        let mut told = String::new();
        for piece in text.chars().collect::<Vec<_>>().chunks(size) {
            told.push_str(&aside.push(&piece.iter().collect::<String>()));
        }
        told.push_str(&aside.finish());
        prop_assert_eq!(aside.spoken(), whole.spoken());
        prop_assert_eq!(aside.thoughts(), whole.thoughts());
        prop_assert_eq!(aside.calls(), whole.calls());
        prop_assert!(aside.has_lone_ending() || told == aside.spoken());
        // Where thoughts are known to have no beginning, all that is told is speech.
        let mut careful = llm::reply::Aside::new(true, true);
        let mut told = String::new();
        for piece in text.chars().collect::<Vec<_>>().chunks(size) {
            told.push_str(&careful.push(&piece.iter().collect::<String>()));
        }
        told.push_str(&careful.finish());
        prop_assert!(careful.spoken().ends_with(&told) || told.ends_with(careful.spoken()));
    }
}

#[test]
fn speech_is_not_taken_for_a_thought() {
    for text in SPEECH {
        let mut aside = llm::reply::Aside::new(true, false);
        aside.push(text);
        aside.finish();
        assert_eq!((aside.spoken(), aside.thoughts()), (text, ""));
    }
}

/// A call in a model's own notation runs like any other.
#[tokio::test(flavor = "multi_thread")]
async fn calls_written_as_text_are_calls() {
    let endpoint = Scripted::start(vec![Act::Hang]).await;
    let server = asking(&endpoint).await;
    let tenant = server.tenant("acme").await;
    let arguments = memory("Alice likes cider.");
    let object = format!("{{\"name\": \"NPC_memorize\", \"arguments\": {arguments}}}");
    for (n, call) in [
        format!("<tool_call>\n{object}\n</tool_call>"),
        format!("<tool_call>{object}"),
        "<tool_call>\n<function=NPC_memorize>\n<parameter=player_id>\nplayer_alice\n</parameter>\n<parameter=memory_string>\nAlice likes cider.\n</parameter>\n</function>\n</tool_call>".to_owned(),
        "<tool_call>NPC_memorize\n<arg_key>player_id</arg_key>\n<arg_value>player_alice</arg_value>\n<arg_key>memory_string</arg_key>\n<arg_value>Alice likes cider.</arg_value>\n</tool_call>".to_owned(),
        format!("<function=NPC_memorize>{arguments}</function>"),
        format!("[TOOL_CALLS][{object}]"),
        format!("[TOOL_CALLS]NPC_memorize[ARGS]{arguments}"),
        format!("<|python_tag|>{object}<|eom_id|>"),
        "<function_calls>\n<invoke name=\"NPC_memorize\">\n<parameter name=\"player_id\">player_alice</parameter>\n<parameter name=\"memory_string\">Alice likes cider.</parameter>\n</invoke>\n</function_calls>".to_owned(),
        format!("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NPC_memorize\n```json\n{arguments}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
        format!("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NPC_memorize<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
        format!("<|tool_calls_section_begin|><|tool_call_begin|>functions.NPC_memorize:0<|tool_call_argument_begin|>{arguments}<|tool_call_end|><|tool_calls_section_end|>"),
        format!("<|channel|>commentary to=functions.NPC_memorize <|constrain|>json<|message|>{arguments}<|call|>"),
    ]
    .into_iter()
    .enumerate()
    {
        let text = format!("Noted, friend.\n{call}");
        let silence = replies(json!({ "content": "" }), "stop");
        for streamed in [false, true] {
            let world = World::make(&tenant, &format!("town-{n}-{streamed}")).await;
            let pieces: Vec<String> = text.chars().collect::<Vec<_>>().chunks(5).map(|piece| says(&piece.iter().collect::<String>())).collect();
            let pieces = stream(&[pieces, vec![chunk(json!({}), json!("stop"))]].concat());
            let first = if streamed { Act::Raw(pieces.into()) } else { replies(json!({ "content": text, "tool_calls": [] }), "stop") };
            endpoint.follow(vec![first, silence.clone()]);
            let narrative = if streamed { heard(&world).await } else { answered(&world).await };
            assert_eq!(narrative.as_deref(), Ok("Noted, friend."), "{call}");
            assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.last().unwrap(), "Alice likes cider.", "{call}");
            let second = endpoint.seen().pop().unwrap();
            assert!(!second.contains("tool_call>") && !second.contains("TOOL_CALLS") && !second.contains("<function"), "{second}");
        }
    }
    // What nobody can read does not run, and says so.
    let world = World::make(&tenant, "unreadable").await;
    endpoint.follow(vec![
        replies(json!({ "content": "Noted.<tool_call>remember the cider, please</tool_call>" }), "stop"),
        replies(json!({ "content": "" }), "stop"),
    ]);
    let turn = world.bob("player_alice", "Hello.").await.expect(200).body;
    assert_eq!(
        (&turn["narrative"], &turn["tool_calls"][0]["status"]),
        (&json!("Noted."), &json!("rejected")),
        "{turn}"
    );
    // Without tools it is a text like any other.
    let mut aside = llm::reply::Aside::new(false, false);
    aside.push("Write <tool_call> in front of it.");
    aside.finish();
    assert_eq!(aside.spoken(), "Write <tool_call> in front of it.");
}
