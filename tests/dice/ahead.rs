//! Dice that are used before their counters are taken: by servers that do not know of each other.

use std::{collections::BTreeSet, sync::Arc};

use rehearsal::{Rehearsal, Reply, Script};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::support::{Child, Prepared};

/// Two servers on one world, whose model plans a roll of whatever is said.
async fn two() -> (Prepared, Rehearsal, [Arc<Child>; 2]) {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    model.set_script(Script::always(Reply::text(json!({ "command": "roll", "args": { "expr": "2d20" } }).to_string())));
    sqlx::query("UPDATE tenant SET limits = limits || '{\"planner_per_player_per_minute\": 0}'")
        .execute(&mut <sqlx::PgConnection as sqlx::Connection>::connect(&prepared.db.url).await.unwrap())
        .await
        .unwrap();
    let servers = [Arc::new(prepared.start(&model).await), Arc::new(prepared.start(&model).await)];
    (prepared, model, servers)
}

/// The result of a roll that is planned.
async fn roll(child: &Child, text: &str) -> Value {
    let body = json!({ "player_id": "player_alice", "message": text });
    let answer = child.post("/act", body).await.unwrap().expect(200);
    assert_eq!(answer.body["outcome"], "executed", "{}", answer.text);
    answer.body["result"].clone()
}

fn counter(result: &Value) -> i64 {
    result["counter"].as_i64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_roll_in_turn_share_a_stream() {
    let (_prepared, _model, [one, two]) = two().await;
    let mut counters = Vec::new();
    for (n, child) in [&one, &one, &two, &one, &two, &two, &one].into_iter().enumerate() {
        counters.push(counter(&roll(child, &format!("roll {n}")).await));
    }
    assert_eq!(counters, (1..=7).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_roll_at_once_take_each_counter_once() {
    let (_prepared, _model, servers) = two().await;
    // Each knows where the stream stands, and is wrong once the other rolls.
    for (n, child) in servers.iter().chain(&servers).enumerate() {
        roll(child, &format!("warm {n}")).await;
    }
    let barrier = Arc::new(Barrier::new(16));
    let rolls = (0..16).map(|n| {
        let (child, barrier) = (servers[n % 2].clone(), barrier.clone());
        tokio::spawn(async move {
            barrier.wait().await;
            counter(&roll(&child, &format!("at once {n}")).await)
        })
    });
    let mut counters = BTreeSet::new();
    for roll in rolls.collect::<Vec<_>>() {
        assert!(counters.insert(roll.await.unwrap()), "a counter was used twice");
    }
    assert_eq!(counters, (5..=20).collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revealed_seed_rolls_no_more() {
    let (_prepared, _model, [one, two]) = two().await;
    let old = roll(&one, "first").await;
    let second = roll(&one, "second").await;
    assert_eq!((&old["seed_id"], counter(&second)), (&second["seed_id"], 2));
    let rotated = two.post("/dice/seeds/rotate", json!({})).await.unwrap().expect(200).body;
    assert_eq!((&rotated["revealed"]["id"], &rotated["revealed"]["counter"]), (&old["seed_id"], &json!(2)));
    let new = roll(&one, "third").await;
    assert_eq!((&new["seed_id"], counter(&new)), (&rotated["current"]["id"], 1), "{rotated}");
    // What was rolled ahead is what its counter says.
    let named = json!({ "seed_id": old["seed_id"], "counter": 2, "formula": "2d20" });
    let verified = two.post("//v1/dice/verify", named).await.unwrap().expect(200).body;
    assert_eq!(verified["results"][0]["dice"], second["results"][0]["dice"]);
}
