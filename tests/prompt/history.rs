//! The conversation: append-only, cut to half in one step, the same on every replica.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{budgets, cut};
use crate::support::{Client, Server};

fn messages(request: &Value) -> &Vec<Value> {
    request["messages"].as_array().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_grows_at_its_end_and_is_cut_to_half_in_one_step() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    budgets(&world, json!({ "history": 1000 })).await;
    server.model.set_script(Script::always(Reply::text("word ".repeat(60))));
    let mut cuts = 0;
    for n in 0..30 {
        let preview = world.prompt("innkeeper_bob", "player_alice", &format!("Action number {n}.")).await;
        let turn = world.bob("player_alice", &format!("Action number {n}.")).await.expect(200);
        assert_eq!(preview["cache"], if n == 0 { "miss" } else { "hit" }, "a cut is no miss: {n}");
        assert_eq!(turn.body["prompt"]["cache"], "hit");
        let requests = server.model.requests();
        let now = messages(requests.last().unwrap());
        let history = turn.body["prompt"]["sections"][7]["tokens"].as_u64().unwrap();
        assert!(history <= 1000, "{history}");
        let roles: Vec<_> = now.iter().map(|m| m["role"].as_str().unwrap()).collect();
        assert_eq!(roles[0], "system");
        assert!(roles[1..].iter().enumerate().all(|(i, r)| *r == ["user", "assistant"][i % 2]), "{roles:?}");
        assert_eq!(roles.last(), Some(&"user"));
        if n == 0 {
            continue;
        }
        let before = messages(&requests[requests.len() - 2]);
        if now.len() > before.len() {
            assert_eq!(before[..], now[..before.len()], "turn {n} appends");
            continue;
        }
        // A cut: at most half is left, the base prompt before it is the same, and it is said.
        cuts += 1;
        assert!(history <= 500, "{history}");
        assert!(cut(&preview, "history").contains("older"), "{}", cut(&preview, "history"));
        let base = |m: &[Value]| {
            m[1]["content"]
                .as_str()
                .unwrap()
                .split("<situation>")
                .next()
                .unwrap()
                .split("<player_action")
                .next()
                .unwrap()
                .to_owned()
        };
        assert_eq!(before[0], now[0]);
        assert_eq!(base(before), base(now));
    }
    assert!((2..=6).contains(&cuts), "{cuts} cuts in 30 turns");
}

/// The bytes that a server would send next; the model refuses, so nothing is left of it.
async fn would_send(client: &Client<'_>, campaign: &str, mode: &str) -> Value {
    client.server.model.set_script(Script::always(Reply::status(400)));
    let body = json!({ "player_id": "player_alice", "action": "Hello, ale!", "reply_mode": mode });
    client
        .post(&format!("/v1/campaigns/{campaign}/npcs/innkeeper_bob/turns"), body)
        .await
        .problem(502, "llm_unavailable");
    client.server.model.requests().pop().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_send_the_same_bytes() {
    let one = Server::start().await;
    let two = Server::on(one.db.clone(), &[]).await;
    let tenant = one.tenant("acme").await;
    let same = tenant.at(&two);
    let world = tenant.world().await;
    budgets(&world, json!({ "history": 600 })).await;
    super::lore(&world, "ale", json!({ "activation": "keyword", "keys": ["ale"] })).await;
    let mut last = String::new();
    for n in 0..12 {
        let client = if n % 3 == 2 { &same } else { &tenant };
        client.server.model.set_script(Script::always(Reply::text(format!("Answer {n}. {}", "word ".repeat(40)))));
        let turn =
            client.npc_turn(&world.slug, "innkeeper_bob", "player_alice", &format!("Ale number {n}")).await.expect(200);
        last = turn.id();
        if n % 4 == 1 {
            let mode = if n == 5 { "xml" } else { "native" };
            assert_eq!(
                would_send(&tenant, &world.slug, mode).await,
                would_send(&same, &world.slug, mode).await,
                "turn {n}"
            );
        }
    }
    world.post(&format!("/turns/{last}/undo"), json!({})).await.expect(200);
    let (ours, theirs) =
        (would_send(&tenant, &world.slug, "native").await, would_send(&same, &world.slug, "native").await);
    assert_eq!(ours, theirs);
    assert!(ours.to_string().contains("Answer 10.") && !ours.to_string().contains("Answer 11."));
    // And a server that starts now, with nothing cached, sends the same again.
    let three = Server::on(one.db.clone(), &[]).await;
    let fresh = tenant.at(&three);
    assert_eq!(would_send(&fresh, &world.slug, "native").await, ours);
}

/// What an endpoint refuses costs nothing of the conversation, and the roles go on to alternate after every outcome.
#[tokio::test(flavor = "multi_thread")]
async fn roles_alternate_whatever_happened() {
    let server = Server::start_with(&[("LLM_RETRIES", "0"), ("TAVERNKEEP_TURN_STEPS_MAX", "2")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let remember = || Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "x" }));
    for script in [
        Script::replies([Reply::text("Fine.")]),
        Script::replies([Reply::status(500)]),
        Script::replies([remember(), remember()]),
        Script::replies([Reply::text("")]),
        Script::replies([remember(), Reply::text("Done.")]),
        Script::replies([Reply::refusal("I cannot.")]),
    ] {
        server.model.set_script(script);
        world.bob("player_alice", "Hello").await;
    }
    world.bob("player_alice", "Hello").await.expect(200);
    let request = server.model.requests().pop().unwrap();
    let roles: Vec<_> = messages(&request).iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles[0], "system");
    assert!(roles[1..].iter().enumerate().all(|(i, r)| *r == ["user", "assistant"][i % 2]), "{roles:?}");
    assert!(messages(&request).iter().all(|m| m["content"].as_str().is_some_and(|c| !c.is_empty())), "{request}");
}

/// Half an exchange is none: without the question its answer is not sent either, nor the other way round.
#[tokio::test(flavor = "multi_thread")]
async fn deleted_messages_take_their_exchange_along() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..3 {
        server.model.set_script(Script::always(Reply::text(format!("Answer {n}."))));
        world.bob("player_alice", &format!("Question {n}.")).await.expect(200);
    }
    let all = world.get("/messages?limit=200").await.expect(200);
    let id =
        |words: &str| all.items().iter().find(|m| m["content"] == words).unwrap()["id"].as_str().unwrap().to_owned();
    for words in ["Question 0.", "Answer 2."] {
        world.delete(&format!("/messages/{}", id(words))).await.expect(204);
    }
    let prompt = world.prompt("innkeeper_bob", "player_alice", "Hello").await;
    let text = prompt["messages"].to_string();
    for (n, there) in [(0, false), (1, true), (2, false)] {
        assert_eq!(
            (text.contains(&format!("Question {n}.")), text.contains(&format!("Answer {n}."))),
            (there, there),
            "{n}"
        );
    }
    assert_eq!(messages(&prompt).len(), 4);
}

/// Undoing turns after a cut brings nothing above the budget back and leaves no half exchange.
#[tokio::test(flavor = "multi_thread")]
async fn undo_reaches_behind_a_cut() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    budgets(&world, json!({ "history": 600 })).await;
    let mut turns = Vec::new();
    for n in 0..12 {
        server.model.set_script(Script::always(Reply::text(format!("Answer {n}. {}", "word ".repeat(60)))));
        turns.push(world.bob("player_alice", &format!("Question {n}.")).await.expect(200).id());
    }
    for n in (4..12).rev() {
        world.post(&format!("/turns/{}/undo", turns[n]), json!({})).await.expect(200);
        let prompt = world.prompt("innkeeper_bob", "player_alice", "Hello").await;
        let history = prompt["sections"][7].clone();
        assert!(history["tokens"].as_u64().unwrap() <= 600, "{history}");
        let text = prompt["messages"].to_string();
        assert!(!text.contains(&format!("Question {n}.")));
        assert!(text.contains(&format!("Answer {}.", n - 1)), "the newest that is left is there: {n}");
        let roles: Vec<_> = messages(&prompt).iter().map(|m| m["role"].as_str().unwrap()).collect();
        assert!(roles[1..].iter().enumerate().all(|(i, r)| *r == ["user", "assistant"][i % 2]), "{roles:?}");
    }
}
