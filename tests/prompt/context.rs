//! A model's context window is a promise: prompt and answer fit into it, or nobody is asked.

use std::{collections::HashSet, sync::Arc};

use ai::prompt::pieces::{Piece, Pieces};
use base::tokens;
use proptest::prelude::*;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Client, Server, World, until};

/// A word that occurs once in the world, for each of its texts.
fn mark(name: &str, n: usize) -> String {
    format!("{name}-{n}-{name}")
}

/// A text of about `tokens` tokens with a mark.
fn text(name: &str, n: usize, tokens: usize) -> String {
    format!("{} {}", mark(name, n), "the sea is cold and grey ".repeat(tokens.div_ceil(6)).trim())
}

/// A world in which everything has a text that is cut if the context is small. The second lore entry of each scope has the lowest priority.
async fn crowded<'a>(acme: &'a Client<'a>) -> World<'a> {
    let world = acme.world().await;
    for n in 0..3 {
        let priority = [200, 50, 100][n];
        for (scope, key) in [("global", None), ("zone", Some("town_square")), ("profession", Some("adventurer"))] {
            let mut entry = json!({ "title": format!("{scope} {n}"), "scope": scope, "content": text(scope, n, 120), "priority": priority });
            if let Some(key) = key {
                entry["associated_id"] = json!(key);
            }
            world.post("/lore", entry).await.expect(201);
        }
        let keyword = json!({ "title": format!("Woken {n}"), "scope": "global", "activation": "keyword", "keys": ["lighthouse"],
            "content": text("woken", n, 120), "priority": priority });
        world.post("/lore", keyword).await.expect(201);
        let memory = json!({ "player_id": "player_alice", "text": text("memory", n, 60) });
        world.post("/npcs/innkeeper_bob/memories", memory).await.expect(201);
    }
    let lines = |name| (0..3).map(|n| text(name, n, 40)).collect::<Vec<_>>().join("\n");
    let own = json!({ "location": "town_square", "scenario": lines("scenario"), "example_dialogue": lines("dialogue"), "model": "small" });
    profile(acme, json!({})).await;
    world.patch("/npcs/innkeeper_bob", own).await.expect(200);
    world.patch("/characters/player_alice", json!({ "location": "town_square" })).await.expect(200);
    world
}

async fn profile(acme: &Client<'_>, more: Value) {
    let mut body = json!({ "slug": "small", "name": "Small" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    acme.post("/v1/models", body).await.expect(201);
}

async fn context(acme: &Client<'_>, tokens: u64) {
    acme.patch("/v1/models/small", json!({ "context_tokens": tokens })).await.expect(200);
}

/// The tokens of a request's texts and tools, without what surrounds the messages.
fn size(request: &Value) -> u64 {
    let messages = request["messages"].as_array().unwrap().iter();
    let of = |message: &Value| -> u32 {
        let members = ["tool_calls", "reasoning_content"]
            .map(|name| message.get(name).map_or_else(String::new, Value::to_string));
        members.iter().map(|text| tokens::count(text)).sum::<u32>()
            + tokens::count(message["content"].as_str().unwrap_or_default())
    };
    u64::from(messages.map(of).sum::<u32>() + request.get("tools").map_or(0, |tools| tokens::count(&tools.to_string())))
}

fn assert_fits(request: &Value, context: u64) {
    let (prompt, answer) = (size(request), request["max_tokens"].as_u64().unwrap());
    assert!(
        prompt + answer <= context && (256..=context / 2).contains(&answer),
        "{prompt} + {answer} in {context}: {request:#}"
    );
}

fn sent(request: &Value) -> String {
    request["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap_or_default()).collect()
}

/// The marks that can be read in a request.
fn marks(text: &str, name: &str) -> Vec<usize> {
    (0..12).filter(|n| text.contains(&mark(name, *n))).collect()
}

async fn exchanges(server: &Server, world: &World<'_>, count: usize) {
    for n in 0..count {
        server.model.set_script(Script::always(Reply::text(text("answer", n, 60))));
        world.bob("player_alice", &text("question", n, 40)).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_context_holds_the_prompt_and_the_answer() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = crowded(&acme).await;
    exchanges(&server, &world, 6).await;
    let last = "I ask about the lighthouse.";
    for (context_tokens, limit) in
        [(4096, 32_768), (2048, 32_768), (3000, 300), (2600, 4096), (6000, 700), (1500, 100_000)]
    {
        let small = json!({ "context_tokens": context_tokens, "parameters": { "max_output_tokens": limit } });
        acme.patch("/v1/models/small", small).await.expect(200);
        let turn = world.bob("player_alice", last).await.expect(200).id();
        let request = server.model.requests().pop().unwrap();
        assert_fits(&request, context_tokens);
        let text = sent(&request);
        for kept in ["You play one character of a tabletop", "You are Innkeeper Bob. You love gossip.", last] {
            assert!(text.contains(kept), "{context_tokens}: {kept}");
        }
        let shown = marks(&text, "question");
        assert!(shown.is_empty() || shown.ends_with(&[5]) && shown.windows(2).all(|w| w[0] + 1 == w[1]), "{shown:?}");
        let cut = world.get(&format!("/turns/{turn}")).await.expect(200).body["trace"]["cut"].clone();
        assert_eq!(cut.to_string().contains("older exchange"), shown != [0, 1, 2, 3, 4, 5], "{cut}");
        world.post(&format!("/turns/{turn}/undo"), json!({})).await.expect(200);
    }
    // A model with room for it reads all that the small ones did not.
    context(&acme, 100_000).await;
    world.bob("player_alice", last).await.expect(200);
    assert_eq!(marks(&sent(&server.model.requests().pop().unwrap()), "question"), [0, 1, 2, 3, 4, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_gives_way_in_order_and_one_by_one() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = crowded(&acme).await;
    exchanges(&server, &world, 3).await;
    let action = "I look at the lighthouse.";
    let groups = ["question", "woken", "zone", "profession", "global", "memory", "scenario", "dialogue"];
    let seen = |prompt: &Value| -> Vec<String> {
        let text: String =
            prompt["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
        groups
            .iter()
            .flat_map(|name| marks(&text, name).into_iter().map(|n| mark(name, n)).collect::<Vec<_>>())
            .collect()
    };
    let (mut order, mut last, mut tokens): (Vec<String>, HashSet<String>, u64) = (Vec::new(), HashSet::new(), 9000);
    acme.patch("/v1/models/small", json!({ "parameters": { "max_output_tokens": 300 } })).await.expect(200);
    let smallest = loop {
        context(&acme, tokens).await;
        let prompt = world.prompt("innkeeper_bob", "player_alice", action).await;
        if prompt.get("too_large").is_some() {
            break prompt;
        }
        let shown: HashSet<String> = seen(&prompt).into_iter().collect();
        // When the last exchange goes, lore that was told in it may enter again for a moment.
        let is_back = order.contains(&mark("question", 2));
        let gone = last.difference(&shown).filter(|mark| !(is_back && mark.starts_with("woken")));
        let gone: Vec<String> = gone.cloned().collect();
        order.extend(gone);
        last = shown;
        tokens -= 40;
    };
    let wanted: Vec<String> = [
        ("question", [0, 1].as_slice()),
        ("woken", &[1, 2, 0]),
        ("zone", &[1, 2, 0]),
        ("profession", &[1, 2, 0]),
        ("global", &[1, 2, 0]),
        ("memory", &[0, 1, 2]),
        ("question", &[2]),
        ("scenario", &[2, 1, 0]),
        ("dialogue", &[2, 1, 0]),
    ]
    .iter()
    .flat_map(|(name, numbers)| numbers.iter().map(|n| mark(name, *n)))
    .collect();
    assert_eq!(order, wanted, "everything went, in this order");
    // What is left cannot give way. The preview says how much it needs, and with that the turn runs.
    let (needed, size) =
        (smallest["too_large"]["needed"].as_u64().unwrap(), smallest["too_large"]["context"].as_u64().unwrap());
    assert!(needed > size && needed < size + 60, "{}", smallest["too_large"]);
    let lore = smallest["lore"].as_array().unwrap().iter().find(|entry| entry["slug"] == "global_0").unwrap();
    assert_eq!(lore["included"], false);
    assert_eq!(lore["reason"], format!("budget: it does not fit into the model's context of {size} tokens"));
    let asked = server.model.requests().len();
    let refused = world.bob("player_alice", action).await.problem(422, "prompt_too_large");
    assert_eq!((&refused.body["needed"], &refused.body["context"]), (&json!(needed), &json!(size)));
    let record = world.get(&format!("/turns/{}", refused.body["turn_id"].as_str().unwrap())).await.expect(200).body;
    assert_eq!(
        (&record["status"], &record["error"]["code"]),
        (&json!("failed"), &json!("prompt_too_large")),
        "{record}"
    );
    assert_eq!(server.model.requests().len(), asked, "nobody was asked");
    context(&acme, needed).await;
    world.bob("player_alice", action).await.expect(200);
    let request = server.model.requests().pop().unwrap();
    assert_fits(&request, needed);
    assert_eq!(request["max_tokens"], 256);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_says_what_gives_way_first() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = crowded(&acme).await;
    exchanges(&server, &world, 2).await;
    let whole = world.prompt("innkeeper_bob", "player_alice", "I knock.").await["total_tokens"].as_u64().unwrap();
    let section = |name: &str| json!({ "name": name });
    let sections = json!([section("personality"), { "name": "scenario", "cut": 1 }, { "name": "memories", "cut": 2 }, section("global_lore"),
        section("history"), section("turn")]);
    world
        .patch("", json!({ "settings": { "prompt_templates": { "npc": { "sections": sections } } } }))
        .await
        .expect(200);
    acme.patch("/v1/models/small", json!({ "parameters": { "max_output_tokens": 256 } })).await.expect(200);
    let mut gone = Vec::new();
    for tokens in (512..whole + 500).rev().step_by(60) {
        context(&acme, tokens).await;
        let prompt = world.prompt("innkeeper_bob", "player_alice", "I knock.").await;
        let text = prompt["messages"].to_string();
        for name in ["scenario", "memory", "question", "global"] {
            if marks(&text, name).len() <= usize::from(name == "question") && !gone.contains(&name) {
                gone.push(name);
            }
        }
    }
    assert_eq!(gone, ["scenario", "memory", "question", "global"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_tells_its_overview_again_rather_than_not_at_all() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = crowded(&acme).await;
    world.patch("", json!({ "settings": { "models": { "gm": "small" } } })).await.expect(200);
    let scene = json!({ "slug": "square", "name": "The square", "location": "town_square" });
    world.post("/scenes", scene).await.expect(201);
    let session = json!({ "client_id": "table", "role": "gm", "dice": "server", "scene_id": "square" });
    let session = world.post("/sessions", session).await.expect(201).id();
    let play = async |n: usize| {
        server.model.set_script(Script::always(Reply::text(text("answer", n, 120))));
        let turn = world
            .post(&format!("/sessions/{session}/turns"), json!({ "instruction": text("question", n, 60) }))
            .await
            .expect(200);
        (turn, server.model.requests().pop().unwrap())
    };
    let look = async || {
        world
            .post(&format!("/sessions/{session}/prompt"), json!({ "instruction": "Tell of the lighthouse." }))
            .await
            .expect(200)
            .body
    };
    context(&acme, 50_000).await;
    for n in 0..6 {
        let (turn, request) = play(n).await;
        assert_eq!(turn.body["context"], if n == 0 { "overview" } else { "delta" });
        assert_fits(&request, 50_000);
    }
    acme.patch("/v1/models/small", json!({ "parameters": { "max_output_tokens": 300 } })).await.expect(200);
    let mut wanted = look().await["total_tokens"].as_u64().unwrap() + 3000;
    let (mut contexts, mut last) = (HashSet::new(), String::new());
    // Whatever the size, the prompt fits, has an overview that can be read, and ends with the newest exchanges.
    let needed = loop {
        context(&acme, wanted).await;
        let prompt = look().await;
        if let Some(size) = prompt.get("too_large") {
            break size["needed"].as_u64().unwrap();
        }
        let text: String =
            prompt["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
        let overviews = text.matches("World State Overview:").count();
        assert_eq!(overviews, 1, "{wanted}");
        let shown = marks(&text, "answer");
        assert!(shown.is_empty() || shown.ends_with(&[5]) && shown.windows(2).all(|w| w[0] + 1 == w[1]), "{shown:?}");
        last = text;
        contexts.insert(prompt["context"].as_str().unwrap().to_owned());
        wanted -= 90;
    };
    assert!(marks(&last, "zone").is_empty(), "lore that came back without the conversation gave way again");
    assert_eq!(contexts.len(), 2, "the overview was told again when it was forgotten");
    let refused = world.post(&format!("/sessions/{session}/turns"), json!({ "instruction": "Go on." })).await;
    refused.problem(422, "prompt_too_large");
    context(&acme, needed + 200).await;
    let (turn, request) = play(6).await;
    assert_eq!(turn.body["context"], "overview");
    assert_fits(&request, needed + 200);
    context(&acme, 50_000).await;
    let (turn, request) = play(7).await;
    assert_eq!(
        (turn.body["context"].as_str(), marks(&sent(&request), "question").len()),
        (Some("delta"), 8),
        "a larger model reads all"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_fill_the_context_end_a_turn_with_what_it_has() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = crowded(&acme).await;
    world.patch("", json!({ "settings": { "models": { "gm": "small" } } })).await.expect(200);
    let session =
        world.post("/sessions", json!({ "client_id": "table", "role": "gm", "dice": "server" })).await.expect(201).id();
    let room = 5000;
    context(&acme, room).await;
    let search = Reply::tool("search_lore", json!({ "query": "sea" })).with_text("I think.");
    server.model.set_script(Script::always(search));
    let turn = world.post(&format!("/sessions/{session}/turns"), json!({})).await.expect(200).body;
    assert_eq!(
        (&turn["status"], &turn["tool_calls"][0]["status"]),
        (&json!("limit_reached"), &json!("succeeded")),
        "{turn}"
    );
    let requests = server.model.requests();
    assert!(
        requests.len() > 1 && requests.len() < 8,
        "{} {turn} {room} {}",
        requests.len(),
        size(requests.last().unwrap())
    );
    requests.iter().for_each(|request| assert_fits(request, room));
    // Thoughts that go back to the model with its call take room, too.
    let before = requests.len();
    let thought = json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": { "role": "assistant", "content": "I think.",
        "reasoning_content": "the tide is high and ".repeat(160),
        "tool_calls": [{ "id": "call_1", "type": "function", "function": { "name": "get_current_scene", "arguments": "{}" } }] } }] });
    server.model.set_script(Script::always(Reply::raw_body(thought.to_string())));
    let turn = world.post(&format!("/sessions/{session}/turns"), json!({})).await.expect(200).body;
    assert_eq!(turn["status"], "limit_reached", "{turn}");
    let requests = server.model.requests();
    assert!(requests[before + 1..].iter().any(|request| request.to_string().contains("the tide is high")));
    requests[before..].iter().for_each(|request| assert_fits(request, room));
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_of_all_kinds_keep_the_promise() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = crowded(&acme).await;
    let all = json!({ "classify": "small", "narrate": "small", "plan": "small", "npc": "small" });
    world.patch("", json!({ "settings": { "models": all } })).await.expect(200);
    acme.patch("/v1/models/small", json!({ "context_tokens": 512 })).await.expect(200);
    let asked = server.model.requests().len();
    let attempt = json!({ "player_id": "player_alice", "action": "I climb the wall." });
    let refused = world.post("/rules/resolve", attempt.clone()).await.problem(422, "prompt_too_large");
    let needed = refused.body["needed"].as_u64().unwrap();
    let act = json!({ "player_id": "player_alice", "message": "I climb the wall." });
    let answer = world.post("/act", act.clone()).await.expect(200).body;
    assert_eq!(answer["outcome"], "unavailable", "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("context"), "{answer}");
    assert_eq!(server.model.requests().len(), asked, "nobody was asked");
    // With the room that was named, the rules decide.
    context(&acme, needed).await;
    world.post("/rules/resolve", attempt).await.expect(200);
    assert_fits(&server.model.requests().pop().unwrap(), needed);
    context(&acme, 4096).await;
    world.post("/act", act).await.expect(200);
    server.model.requests().iter().skip(asked + 1).for_each(|request| assert_fits(request, 4096));
    // A reaction is dead at once: another attempt would be as large.
    context(&acme, 512).await;
    world.patch("/npcs/innkeeper_bob", json!({ "reaction_threshold": 1 })).await.expect(200);
    let action = json!({ "player_id": "player_alice", "type": "attack", "targets": ["innkeeper_bob"] });
    world.post("/actions", action).await.expect(202);
    until("the reaction is dead", async || {
        let reactions = world.get("/reactions").await.expect(200);
        reactions.items().iter().any(|r| r["status"] == "dead" && r["tries"] == 1)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fallback_that_cannot_hold_the_prompt_is_not_asked() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let acme = server.tenant("acme").await;
    let world = crowded(&acme).await;
    acme.post("/v1/models", json!({ "slug": "tiny", "name": "Tiny", "context_tokens": 512 })).await.expect(201);
    acme.post("/v1/models", json!({ "slug": "last", "name": "Last", "context_tokens": 3000 })).await.expect(201);
    acme.patch("/v1/models/small", json!({ "context_tokens": 8000, "fallbacks": ["tiny", "last"] })).await.expect(200);
    server.model.set_script(Script::replies([Reply::status(500), Reply::text("Here.")]));
    let turn = world.bob("player_alice", "Hello.").await.expect(200);
    let record = world.get(&format!("/turns/{}", turn.id())).await.expect(200).body;
    assert_eq!(record["trace"]["llm_calls"][0]["profile"], "last", "{record}");
    assert_fits(&server.model.requests().pop().unwrap(), 3000);
}

proptest! {
    /// What is left of a text is the text without its first pieces, however often it is made shorter.
    #[test]
    fn a_text_loses_whole_pieces_in_order(
        lines in proptest::collection::vec("[a-zé ]{0,40}", 1..12), excesses in proptest::collection::vec(1u32..80, 1..4), last_first: bool,
    ) {
        let fenced = |lines: &[String]| format!("<box>\n{}</box>\n", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
        let whole = fenced(&lines);
        let what = ("line", "lines");
        let mut at = "<box>\n".len();
        let listed = lines.iter().map(|line| {
            let place = at..at + line.len() + 1;
            at = place.end;
            Piece { tokens: tokens::count(&whole[place.clone()]), place, id: None }
        });
        let mut pieces = match last_first {
            true => Pieces::of_lines(&whole, what),
            false => Pieces::listed_as(0..whole.len(), listed.collect(), what),
        };
        let mut text: Arc<str> = whole.into();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for excess in excesses {
            let has = tokens::count(&text);
            let Some(less) = runtime.block_on(pieces.lessen(&text, has, excess, 4096)).unwrap() else {
                prop_assert_eq!(&*text, "");
                break;
            };
            prop_assert!(less.text.is_empty() || less.tokens + excess <= has, "{} of {has} without {excess}", less.tokens);
            let kept = less.text.lines().count().saturating_sub(2);
            let rest = if last_first { &lines[..kept] } else { &lines[lines.len() - kept..] };
            prop_assert!(less.text.is_empty() || *less.text == *fenced(rest), "{:?}", less.text);
            (text, pieces) = (less.text, less.pieces);
        }
    }
}
