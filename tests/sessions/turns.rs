//! Turns of a session's AI.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{Session, fight, no_changes};
use crate::support::{Server, until};

const OVERVIEW: &str = "World State Overview:";
const CHANGES: &str = "Recent changes to the game:";

/// The JSON in a fence of a text.
fn fenced(text: &str, name: &str) -> Value {
    let (_, rest) = text.split_once(&format!("<{name}>\n")).unwrap_or_else(|| panic!("no {name} in {text}"));
    serde_json::from_str(rest.split_once(&format!("</{name}>")).unwrap().0).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_turn_gets_an_overview_and_later_ones_what_changed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let state = json!({
        "session_info": { "game_system": "dnd5e", "gm_name": "Maya", "players": ["Ann", "Ben"] },
        "active_scene": { "id": "s1", "name": "Crypt", "dimensions": { "width": 4000, "height": 3000, "grid": 50 },
            "tokens": [{ "id": "t1", "name": "Alice", "actor_id": "a1", "x": 3, "y": 4, "is_player": true, "hidden": false }],
            "notes": [{ "id": "n1", "entry_name": "Altar", "x": 1, "y": 1, "is_journal_entry": true }],
            "light_sources": [{ "id": "l1", "x": 0, "y": 0, "radius": 20, "color": "#ffcc00" }] },
        "party_compendium": [{ "id": "a1", "name": "Alice", "player": "Ann", "actor_id": "a1" }],
        "compendium_index": [{ "pack_name": "dnd5e.monsters", "type": "Actor", "label": "Monsters" }],
        "timestamp": 5,
    });
    let body = json!({ "client_id": "vtt", "role": "gm", "dice": "server", "world_state": state });
    let session = Session::with(&world, body).await;
    session.event("combat_state", fight(1, 1, 7, &[])).await;
    session.chat("This is part of how things stand.").await;

    let first = session.turn().await;
    assert_eq!(
        (&first["kind"], &first["status"], &first["context"]),
        (&json!("gm"), &json!("succeeded"), &json!("overview"))
    );
    assert_eq!(
        (&first["entity_id"], &first["player_id"], &first["role"]),
        (&json!(session.id), &json!(null), &json!("gm"))
    );
    let told = session.last_told();
    assert!(told.contains(OVERVIEW) && !told.contains(CHANGES), "{told}");
    assert!(told.trim_end().ends_with("Take your turn as Game Master."), "{told}");
    let overview = fenced(&told, "world_state");
    assert_eq!(
        overview["session_info"],
        json!({ "game_system": "dnd5e", "gm_name": "Maya", "players": ["Ann", "Ben"] })
    );
    assert_eq!(overview["active_scene"]["dimensions"], json!({ "width": 4000, "height": 3000, "grid": 50 }));
    assert_eq!(
        overview["active_scene"]["tokens"],
        json!([{ "id": "t1", "name": "Alice", "actor_id": "a1", "x": 3, "y": 4, "is_player": true }])
    );
    assert_eq!(overview["active_scene"]["notes"][0]["entry_name"], "Altar");
    assert_eq!(overview["active_scene"]["light_sources"][0]["color"], "#ffcc00");
    assert_eq!(overview["party_compendium"], json!([{ "id": "a1", "name": "Alice", "player": "Ann" }]));
    assert_eq!(overview["compendium_index"], json!([{ "pack_name": "dnd5e.monsters", "type": "Actor" }]));
    assert_eq!(overview["active_encounter"]["combat_id"], "c1");

    session.chat("Hello!").await;
    let second = session.turn().await;
    assert_eq!(second["context"], "delta");
    let told = session.last_told();
    assert!(told.contains(CHANGES) && !told.contains(OVERVIEW), "{told}");
    assert_eq!(fenced(&told, "recent_changes"), json!({ "has_changes": true, "NewMessages": 1 }));
    let names: Vec<_> = second["prompt"]["sections"].as_array().unwrap().iter().map(|s| s["name"].clone()).collect();
    assert_eq!(
        names,
        ["engine_rules", "campaign", "global_lore", "tools", "history", "recent_changes", "scoped_lore", "turn"]
    );

    let third = session.turn().await;
    assert_eq!(third["context"], "delta");
    let told = session.last_told();
    assert!(told.starts_with("No changes to game state since last AI turn\n"), "{told}");
    assert!(!told.contains(CHANGES), "{told}");
}

/// What is sent grows at its end only, so that a provider's cache is of use.
#[tokio::test(flavor = "multi_thread")]
async fn the_transcript_is_sent_and_its_prefix_is_stable() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    for n in 0..3 {
        server.model.set_script(Script::replies([Reply::text(format!("Answer {n}."))]));
        session.post("/turns", json!({ "instruction": format!("Scene {n}.") })).await.expect(200);
    }
    let requests = server.model.requests();
    let sent: Vec<_> = requests.iter().map(|r| r["messages"].as_array().unwrap().clone()).collect();
    for pair in sent.windows(2) {
        assert_eq!(pair[0][..], pair[1][..pair[0].len()]);
        assert_eq!(pair[1].len(), pair[0].len() + 2);
    }
    assert_eq!(sent[2][2]["content"], "Answer 0.");
    assert!(sent[2][1]["content"].as_str().unwrap().contains("Scene 0."));
    // What stands in the history is the table's narration; what the model was told is nobody's to read there.
    let history = session.called("get_message_history", json!({})).await;
    assert_eq!(history["count"], 3);
    assert!(!history.to_string().contains("Scene 0."));
}

/// When the overview falls out of what the model still reads, it gets another.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_is_cut_begins_with_an_overview_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let budgets = json!({ "settings": { "prompt_budgets": { "history": 600, "world_state_overview": 200 } } });
    world.patch("", budgets).await.expect(200);
    let session = Session::open(&world, "vtt").await;
    let mut contexts = Vec::new();
    for _ in 0..8 {
        server.model.set_script(Script::replies([Reply::text("word ".repeat(150))]));
        contexts.push(session.turn().await["context"].as_str().unwrap().to_owned());
    }
    assert_eq!(contexts[..2], ["overview", "delta"]);
    let again = contexts.iter().skip(1).filter(|c| *c == "overview").count();
    assert!((1..=3).contains(&again), "{contexts:?}");
    let last = server.model.requests().pop().unwrap();
    assert!(last["messages"].to_string().contains(OVERVIEW));
    // A world too big for its budget is cut, and says so.
    let tokens: Vec<_> =
        (0..500).map(|n| json!({ "id": n.to_string(), "name": "Goblin", "is_player": n == 499 })).collect();
    let big = json!({ "client_id": "big", "world_state": { "active_scene": { "id": "s", "tokens": tokens } } });
    let big = Session::with(&world, big).await;
    let preview = big.post("/prompt", json!({})).await.expect(200).body;
    let part = preview["sections"].as_array().unwrap().iter().find(|s| s["name"] == "world_state_overview").unwrap();
    assert!(part["tokens"].as_u64().unwrap() < 250 && part["cut"].as_str().unwrap().contains("tokens"), "{part}");
    assert!(part["text"].as_str().unwrap().contains("\"id\":\"499\""), "players' tokens go last");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_turn_consumes_nothing() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    let fail = || server.model.set_script(Script::replies([Reply::status(500)]));
    fail();
    let failed = session.post("/turns", json!({})).await;
    assert_eq!(failed.status, 502, "{}", failed.text);
    assert!(failed.body["turn_id"].is_string());
    server.model.set_script(Script::default());
    assert_eq!(session.turn().await["context"], "overview", "a failed first turn stays first");
    session.chat("Hello!").await;
    fail();
    assert_eq!(session.post("/turns", json!({})).await.status, 502);
    assert_eq!(session.delta().await["NewMessages"], 1);
    // What a failed turn did is taken back, and is no news.
    let post = Reply::tool("post_message", json!({ "content": "Never said." }));
    server.model.set_script(Script::replies([post, Reply::status(500)]));
    assert_eq!(session.post("/turns", json!({})).await.status, 502);
    assert_eq!(session.delta().await, json!({ "has_changes": true, "NewMessages": 1 }));
    assert!(!world.get("/messages").await.expect(200).text.contains("Never said."));
    server.model.set_script(Script::default());
    assert_eq!(session.turn().await["context"], "delta");
    assert!(session.last_told().contains("\"NewMessages\": 1"));
    assert_eq!(session.delta().await, no_changes());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undone_turn_has_seen_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    session.turn().await;
    session.chat("Hello!").await;
    let post = Reply::tool("post_message", json!({ "content": "A bell rings.", "speaker_name": "Bell" }));
    let roll = Reply::tool("roll_dice", json!({ "rolls": [{ "formula": "1d20" }] }));
    server.model.set_script(Script::replies([post, roll, Reply::text("All fall silent.")]));
    let turn = session.turn().await;
    assert_eq!(turn["narrative"], "All fall silent.");
    assert_eq!(world.get("/messages?author=ai").await.status, 400);
    let said = |text: &str| text.contains("A bell rings.") && text.contains("All fall silent.");
    assert!(said(&world.get("/messages").await.expect(200).text));
    assert_eq!(session.delta().await, no_changes());
    let id = turn["id"].as_str().unwrap();
    world.post(&format!("/turns/{id}/undo"), json!({})).await.expect(200);
    assert!(!said(&world.get("/messages").await.expect(200).text));
    assert_eq!(
        session.delta().await,
        json!({ "has_changes": true, "NewMessages": 1 }),
        "what it had seen is news again"
    );
    // Undone turns are not in the conversation; an undone first turn is first again.
    assert_eq!(session.turn().await["context"], "delta");
    let last = server.model.requests().pop().unwrap();
    assert!(!last.to_string().contains("All fall silent."));
    let turns = world.get("/turns?kind=gm&status=succeeded").await.expect(200);
    let first = turns.items()[0]["id"].as_str().unwrap().to_owned();
    world.post(&format!("/turns/{first}/undo"), json!({})).await.expect(200);
    assert_eq!(session.turn().await["context"], "overview");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_turn_at_a_time_and_one_turn_per_key() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    let other = Session::open(&world, "other").await;
    server.model.set_script(Script::replies([Reply::text("Hm.").held()]));
    let second = async {
        until("the question", async || server.model.request_count() == 1).await;
        session.post("/turns", json!({})).await.problem(409, "turn_in_progress");
        server.model.let_go(1);
        let (theirs, queued) = tokio::join!(other.turn(), session.post("/turns", json!({ "on_busy": "queue" })));
        assert_eq!(theirs["status"], "succeeded");
        assert_eq!(queued.expect(200).body["context"], "delta");
    };
    let (first, ()) = tokio::join!(session.turn(), second);
    assert_eq!(first["context"], "overview");
    server.model.set_script(Script::default());
    let path = world.path(&session.path("/turns"));
    let first = tenant.post_with_key(&path, "k", json!({})).await.expect(200);
    let count = server.model.request_count();
    let again = tenant.post_with_key(&path, "k", json!({})).await.expect(200);
    assert_eq!((again.header("idempotency-replayed"), &again.body), ("true", &first.body));
    assert_eq!(server.model.request_count(), count);
    // A provider's failure is not kept: the same key starts the same turn anew.
    server.model.set_script(Script::replies([Reply::status(500), Reply::status(500), Reply::status(500)]));
    let failed = tenant.post_with_key(&path, "f", json!({})).await;
    assert_eq!(failed.status, 502);
    server.model.set_script(Script::default());
    let anew = tenant.post_with_key(&path, "f", json!({})).await.expect(200);
    assert_eq!(anew.body["id"], failed.body["turn_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_cancelled_and_traced() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    let post = Reply::tool("post_message", json!({ "content": "Never mind." }));
    server.model.set_script(Script::replies([post, Reply::text("Too late.").held()]));
    let cancel = async {
        loop {
            let running = world.get("/turns?kind=gm&status=running").await.expect(200);
            let said = world.get("/messages").await.expect(200).text.contains("Never mind.");
            if let (Some(turn), true) = (running.items().first(), said) {
                let id = turn["id"].as_str().unwrap();
                world.post(&format!("/turns/{id}/cancel"), json!({})).await.expect(202);
                break id.to_owned();
            }
        }
    };
    let (turn, id) = tokio::join!(session.turn(), cancel);
    assert_eq!((&turn["status"], &turn["id"]), (&json!("cancelled"), &json!(id)));
    assert!(world.get("/messages").await.expect(200).items().is_empty());
    server.model.set_script(Script::default());
    let turn = session.post("/turns", json!({ "instruction": "Describe the inn." })).await.expect(200);
    assert_eq!(turn.body["context"], "overview");
    let trace = world.get(&format!("/turns/{}", turn.id())).await.expect(200).body;
    assert!(trace["trace"]["turn_text"].as_str().unwrap().contains(OVERVIEW));
    assert_eq!((&trace["trace"]["action"], &trace["context"]), (&json!("Describe the inn."), &json!("overview")));
    assert_eq!(trace["usage"]["llm_calls"], 1);
    let usage = tenant.get("/v1/usage?group_by=kind").await.expect(200);
    assert!(usage.text.contains("gm"), "{}", usage.text);
}

/// The rehearsal model plays a whole turn by itself, in both reply modes.
#[tokio::test(flavor = "multi_thread")]
async fn the_rehearsal_model_plays_game_master() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for mode in ["native", "xml"] {
        let session = Session::open(&world, mode).await;
        let turn = |instruction: &str| json!({ "instruction": instruction, "reply_mode": mode });
        let posted = session.post("/turns", turn("Post: The bell rings.")).await.expect(200).body;
        assert_eq!(posted["tool_calls"][0]["name"], "post_message", "{posted}");
        assert_eq!(posted["tool_calls"][0]["result"]["sent_count"], 1);
        let rolled = session.post("/turns", turn("Roll 2d6+3 for the guard.")).await.expect(200).body;
        assert_eq!(rolled["tool_calls"][0]["result"]["results"][0]["formula"], "2d6+3", "{rolled}");
        assert!(!rolled["narrative"].as_str().unwrap().is_empty());
        session.chat("What was that?").await;
        let read = session.post("/turns", json!({ "reply_mode": mode })).await.expect(200).body;
        assert_eq!(read["tool_calls"][0]["name"], "get_message_history", "{read}");
        assert_eq!(read["status"], "succeeded");
        assert_eq!(session.delta().await, no_changes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_have_their_words_and_their_tools() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    for (role, sentence) in [
        ("gm", "Take your turn as Game Master."),
        ("assistant", "Take your turn as GM's Assistant."),
        ("player", "Take your turn as Player."),
    ] {
        let preview = session.post("/prompt", json!({ "role": role, "instruction": "Hurry." })).await.expect(200).body;
        let last = preview["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
        assert!(last.contains(sentence) && last.contains("<instruction>\nHurry.\n</instruction>"), "{last}");
        assert_eq!(preview["context"], "overview");
    }
    // An assistant speaks to its game master alone, and does not post.
    let post = Reply::tool("post_message", json!({ "content": "Hear ye." }));
    server.model.set_script(Script::replies([post, Reply::text("The goblins will ambush them.")]));
    let turn = session.post("/turns", json!({ "role": "assistant" })).await.expect(200).body;
    assert_eq!((&turn["role"], &turn["tool_calls"][0]["status"]), (&json!("assistant"), &json!("rejected")));
    let request = server.model.requests().pop().unwrap();
    let names: Vec<_> = request["tools"].as_array().unwrap().iter().map(|t| t["function"]["name"].clone()).collect();
    assert!(names.contains(&json!("get_message_history")) && !names.contains(&json!("post_message")), "{names:?}");
    assert!(!names.contains(&json!("get_messages")));
    let alice = tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice" })).await;
    let seen = alice.get(&world.path("/messages")).await.expect(200);
    assert!(!seen.text.contains("ambush") && !seen.text.contains("Take your turn"), "{}", seen.text);
    // Old names work in turns too; a name nobody has does not stop them.
    let old = Reply::tool("get_messages", json!({ "limit": 3 }));
    let none = Reply::tool("summon_dragon", json!({}));
    server.model.set_script(Script::replies([old, none, Reply::text("Well.")]));
    let turn = session.turn().await;
    let statuses: Vec<_> = turn["tool_calls"].as_array().unwrap().iter().map(|c| &c["status"]).collect();
    assert_eq!(statuses, ["succeeded", "rejected"]);
    assert_eq!(turn["narrative"], "Well.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_has_bounds_and_takes_what_the_rules_decided() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    let roll = Reply::tool("roll_dice", json!({ "rolls": [{ "formula": "1d6" }] }));
    server.model.set_script(Script::always(roll));
    let turn = session.post("/turns", json!({ "max_steps": 2 })).await.expect(200).body;
    assert_eq!((&turn["status"], turn["tool_calls"].as_array().unwrap().len()), (&json!("limit_reached"), 2));
    // Dice from the table are used up in order, over all calls; then the server rolls its own.
    let rolls = |formula: &str| Reply::tool("roll_dice", json!({ "rolls": [{ "formula": formula }] }));
    let script = [rolls("1d20"), rolls("2d6"), rolls("1d4"), Reply::text("Well rolled.")];
    server.model.set_script(Script::replies(script.clone()));
    let turn = session.post("/turns", json!({ "dice": [17, 3, 4] })).await.expect(200).body;
    let of = |n: usize| &turn["tool_calls"][n]["result"];
    assert_eq!((&of(0)["source"], &of(0)["results"][0]["total"]), (&json!("manual"), &json!(17)));
    assert_eq!((&of(1)["results"][0]["total"], &of(2)["source"]), (&json!(7), &json!("server")));
    assert_eq!(turn["dice_unused"], json!([]));
    server.model.set_script(Script::replies(script));
    let turn = session.post("/turns", json!({ "dice": [17, 9, 4, 2, 1] })).await.expect(200).body;
    let failed = &turn["tool_calls"][1];
    assert_eq!(
        (&failed["status"], &failed["error"]["code"]),
        (&json!("failed"), &json!("invalid_dice")),
        "no d6 shows 9"
    );
    assert_eq!(turn["dice_unused"], json!([9, 4, 2, 1]), "{turn}");
    server.model.set_script(Script::default());
    let resolved = json!({ "player_id": "player_alice", "action": "I sneak past the guard." });
    let rules = world.post("/rules/resolve", resolved).await.expect(200).body;
    let mechanics = json!({ "mechanics_turn_id": rules["turn_id"], "instruction": "Tell how it went." });
    let turn = session.post("/turns", mechanics).await.expect(200).body;
    assert_eq!(turn["mechanics"]["raw"], rules["raw"]);
    assert!(session.last_told().contains("<mechanics>"));
    for (body, pointer) in [
        (json!({ "instruction": " " }), "/instruction"),
        (json!({ "instruction": "x".repeat(4001) }), "/instruction"),
        (json!({ "role": "god" }), "/role"),
        (json!({ "max_steps": 0 }), "/max_steps"),
        (json!({ "dice": vec![1; 1001] }), "/dice"),
        (json!({ "steps": 2 }), "/steps"),
        (json!({ "mechanics_turn_id": session.id }), "/mechanics_turn_id"),
    ] {
        let answer = session.post("/turns", body.clone()).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers()[..1], [pointer], "{body}");
    }
}
