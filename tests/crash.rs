//! `kill -9` at the worst moments: what was acknowledged stays, what was not finished leaves nothing, and the same key
//! then does it exactly once.

use std::time::Duration;

use futures_util::future::join_all;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Answer, Child, Prepared, SWEEPS, until};

async fn model() -> rehearsal::Rehearsal {
    rehearsal::start(rehearsal::Options { record_requests_max: 100, ..Default::default() }).await.unwrap()
}

fn remember(words: &str) -> Reply {
    Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": words }))
}

/// The same request until it is answered; while the sweeper has not yet seen that the first try died, it is in flight.
async fn again(child: &Child, npc: &str, action: &str, key: &str) -> Answer {
    for _ in 0..2400 {
        let answer = child.turn(npc, action, Some(key)).await.unwrap();
        if answer.status == 200 {
            return answer;
        }
        assert!(
            ["idempotency_in_flight", "turn_in_progress"].contains(&answer.body["code"].as_str().unwrap()),
            "{}",
            answer.text
        );
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the key stayed in flight");
}

async fn only_turn(child: &Child) -> Value {
    let turns = child.get("/turns").await.expect(200);
    assert_eq!(turns.items().len(), 1, "{}", turns.text);
    turns.items()[0].clone()
}

/// After the restart: the turn failed and left nothing, and its key succeeds once under the same id.
async fn recovers(prepared: &Prepared, model: &rehearsal::Rehearsal) {
    let child = prepared.start_with(model, &SWEEPS).await;
    until("the failed turn", || async { only_turn(&child).await["status"] == "failed" }).await;
    let failed = only_turn(&child).await;
    assert_eq!(failed["error"]["code"], "internal");
    assert_eq!(child.memories("innkeeper_bob").await.len(), 1, "nothing half done remains");
    assert!(child.get("/messages").await.expect(200).items().is_empty());
    model.set_script(Script::replies([remember("Once."), Reply::text("Thanks.")]));
    let done = again(&child, "innkeeper_bob", "I pay.", "k").await;
    assert_eq!(done.body["id"], failed["id"]);
    assert_eq!(done.header("idempotency-replayed"), "");
    let replay = again(&child, "innkeeper_bob", "I pay.", "k").await;
    assert_eq!((replay.header("idempotency-replayed"), &replay.body), ("true", &done.body));
    assert_eq!(child.memories("innkeeper_bob").await[1..], ["Once."]);
    assert_eq!(only_turn(&child).await["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_model_is_called() {
    let (prepared, model) = (Prepared::new().await, model().await);
    let mut child = prepared.start_with(&model, &SWEEPS).await;
    model.set_script(Script::always(Reply::hang()));
    let turn = tokio::spawn(child.turn("innkeeper_bob", "I pay.", Some("k")));
    until("the call", || async { model.request_count() == 1 }).await;
    child.kill().await;
    turn.await.unwrap().unwrap_err();
    recovers(&prepared, &model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_tools_and_the_last_words() {
    let (prepared, model) = (Prepared::new().await, model().await);
    let mut child = prepared.start_with(&model, &SWEEPS).await;
    model.set_script(Script::replies([remember("Half done."), Reply::hang()]));
    let turn = tokio::spawn(child.turn("innkeeper_bob", "I pay.", Some("k")));
    until("the second call", || async { model.request_count() == 2 }).await;
    assert_eq!(child.memories("innkeeper_bob").await[1..], ["Half done."], "its tools are committed");
    child.kill().await;
    turn.await.unwrap().unwrap_err();
    recovers(&prepared, &model).await;
}

/// Another replica needs no restart to clear up.
#[tokio::test(flavor = "multi_thread")]
async fn a_surviving_replica_clears_up() {
    let (prepared, model) = (Prepared::new().await, model().await);
    let (mut victim, survivor) =
        (prepared.start_with(&model, &SWEEPS).await, prepared.start_with(&model, &SWEEPS).await);
    model.set_script(Script::replies([remember("Half done."), Reply::hang()]));
    let turn = tokio::spawn(victim.turn("innkeeper_bob", "I pay.", Some("k")));
    until("the second call", || async { model.request_count() == 2 }).await;
    let next = json!({ "player_id": "player_alice", "action": "And I?", "on_busy": "queue" });
    let next = victim
        .request(reqwest::Method::POST, "/npcs/innkeeper_bob/turns")
        .header("prefer", "respond-async")
        .json(&next);
    assert_eq!(next.send().await.unwrap().json::<Value>().await.unwrap()["status"], "queued");
    victim.kill().await;
    turn.await.unwrap().unwrap_err();
    let failed = async || survivor.get("/turns?status=failed").await.expect(200).items().len();
    until("the sweeper", || async { failed().await == 2 }).await;
    assert_eq!(survivor.memories("innkeeper_bob").await.len(), 1);
    model.set_script(Script::default());
    assert_eq!(again(&survivor, "innkeeper_bob", "I pay.", "k").await.body["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment() {
    // Two servers with databases of their own.
    tokio::join!(killed(0..10), killed(10..20));
}

/// Rounds: turns of two NPCs under load, killed at some moment, tried again with their keys.
async fn killed(rounds: std::ops::Range<u64>) {
    let (prepared, model) = (Prepared::new().await, model().await);
    // The rehearsal model remembers who pays, and answers; each of its two calls takes a while.
    model.set_script(Script::always(Reply::persona().delay_ms(25)));
    let mut child = prepared.start_with(&model, &SWEEPS).await;
    let mut acknowledged = Vec::new();
    for round in rounds {
        let posts: Vec<_> = ["innkeeper_bob", "harbour_ilse"]
            .into_iter()
            .map(|npc| {
                let (action, key) = (format!("I pay {round} coins to {npc}."), format!("{npc}-{round}"));
                (npc, tokio::spawn(child.turn(npc, &action, Some(&key))), action, key)
            })
            .collect();
        // From before the first statement to after the last one.
        tokio::time::sleep(Duration::from_millis((round * 37) % 190)).await;
        child.kill().await;
        child = prepared.start_with(&model, &SWEEPS).await;
        let child = &child;
        let retried = join_all(posts.into_iter().map(|(npc, post, action, key)| async move {
            let first = post.await.unwrap().ok().filter(|a| a.status == 200);
            let second = again(child, npc, &action, &key).await;
            if let Some(first) = first {
                assert_eq!(first.body, second.body, "what was acknowledged is what is replayed");
            }
            (npc, action, second.body["id"].clone())
        }))
        .await;
        acknowledged.extend(retried);
    }
    let turns = child.get("/turns?limit=200").await.expect(200);
    assert_eq!(turns.items().len(), acknowledged.len(), "one turn for each key");
    assert!(turns.items().iter().all(|t| t["status"] == "succeeded"));
    for (npc, action, id) in &acknowledged {
        assert_eq!(turns.items().iter().filter(|t| t["id"] == *id).count(), 1);
        let memories = child.memories(npc).await;
        let about = action.trim_end_matches('.');
        assert_eq!(memories.iter().filter(|m| m.contains(about)).count(), 1, "{action}: {memories:?}");
    }
    let messages = child.get("/messages?limit=200").await.expect(200);
    assert_eq!(messages.items().len(), 2 * acknowledged.len());
    let usage = child.get("//v1/usage").await.expect(200);
    // A day of usage ends at midnight, whatever runs then.
    let counted: u64 = usage.items().iter().map(|day| day["turns"].as_u64().unwrap()).sum();
    assert_eq!(counted, acknowledged.len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_stop_lets_turns_end() {
    let (prepared, model) = (Prepared::new().await, model().await);
    let mut child = prepared.start_with(&model, &SWEEPS).await;
    model.set_script(Script::replies([remember("Kept.").held(), Reply::text("Thanks.")]));
    let turn = tokio::spawn(child.turn("innkeeper_bob", "I pay.", None));
    until("the call", || async { model.request_count() == 1 }).await;
    child.terminate().await;
    let ready = format!("{}/readyz", child.url());
    until("the server to stop", || async { reqwest::get(&ready).await.map_or(0, |a| a.status().as_u16()) != 200 })
        .await;
    model.let_go(1);
    let answer = turn.await.unwrap().unwrap().expect(200);
    assert_eq!(
        (answer.body["status"].as_str(), answer.body["narrative"].as_str()),
        (Some("succeeded"), Some("Thanks."))
    );
    assert!(child.stopped().await);
    let child = prepared.start_with(&model, &SWEEPS).await;
    assert_eq!(child.memories("innkeeper_bob").await[1..], ["Kept."]);
    assert_eq!(only_turn(&child).await["status"], "succeeded");
}
