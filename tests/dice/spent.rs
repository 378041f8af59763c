//! A draw that was looked at is spent, however its request ends: no failure tells what is rolled next.

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::values;
use crate::support::{Client, Server};

const SEEDS: &str = "/v1/campaigns/port-town/dice/seeds";

/// Fails when the first d20 shows 1 to 10.
const TELLING: &str = "1/floor(1d20/11)";

async fn counter(client: &Client<'_>) -> i64 {
    client.get(&format!("{SEEDS}?sort=-created_at")).await.expect(200).items()[0]["counter"].as_i64().unwrap()
}

/// A command of a player's; the counter of its roll, or none if it failed.
async fn command(client: &Client<'_>, formula: &str) -> Option<i64> {
    let body = json!({ "player_id": "player_alice", "arguments": { "expr": formula } });
    let answer = client.post("/v1/campaigns/port-town/commands/roll", body).await;
    match answer.status {
        200 => answer.body["result"]["counter"].as_i64(),
        422 => None,
        other => panic!("{other}: {}", answer.text),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_roll_does_not_tell_the_next() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut failures = 0;
    for _ in 0..60 {
        let before = counter(&tenant).await;
        let rolled = command(&tenant, TELLING).await;
        assert_eq!(counter(&tenant).await, before + 1, "looked at, and so spent");
        failures += usize::from(rolled.is_none());
        // This was foretold before.
        assert_eq!(command(&tenant, "1d20").await, Some(before + 2));
    }
    assert!(failures > 0, "none of sixty fell below 11");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_rolled_at_all_draws_nothing_and_tells_why() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    command(&tenant, "1d20").await.unwrap();
    for formula in
        ["1d20 + 1/0", "1/floor(1d20/11)+(0-5)d6", "1d20 % 0", "1d20 + @nobody", "2d6 + 1d(0)", "1000d6", "1d20 +"]
    {
        let body = json!({ "player_id": "player_alice", "arguments": { "expr": formula } });
        tenant.post("/v1/campaigns/port-town/commands/roll", body).await.expect(422);
        let body = json!({ "rolls": [{ "formula": formula }], "campaign": "port-town" });
        let rolled = tenant.post("/v1/dice/roll", body).await.expect(200).body;
        assert_eq!((&rolled["results"][0]["success"], rolled.get("counter")), (&json!(false), None), "{formula}");
        assert_eq!(counter(&tenant).await, 1, "{formula}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_error_shows_what_fell() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    for formula in [
        "(0-1d1000000-1000)d6",
        "(1d1000000+1000)d6",
        "1d(0-1d1000000-1000)",
        "1d(1d1000000/7+0.01)",
        "{1d6,1d6}k(1d1000000/7+0.01)",
        "5d6kh(0-1d1000000-1000)",
        "1/(1d1000000-1d1000000*0-1d1000000*0)+(0-1d1000000-1000)d6",
    ] {
        for _ in 0..3 {
            let body = json!({ "rolls": [{ "formula": formula }], "campaign": "port-town" });
            let rolled = tenant.post("/v1/dice/roll", body).await.expect(200).body;
            let result = &rolled["results"][0];
            assert_eq!(
                (&result["success"], result["dice"].as_array().map(Vec::len)),
                (&json!(false), Some(0)),
                "{formula}"
            );
            let told: String =
                ["message", "expected", "hint"].iter().filter_map(|m| result["error"][*m].as_str()).collect();
            let digits = told.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() > 3);
            assert_eq!(digits.count(), 0, "{formula}: {told}");
        }
    }
}

/// Where a roll that fails is taken back with everything else: each door, and how it fails there.
#[tokio::test(flavor = "multi_thread")]
async fn every_door_spends_what_it_looked_at() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    command(&tenant, "1d20").await.unwrap();
    // Whatever the dice show, these fail after the draw.
    let always = "1/(1d20*0)";
    let actor = json!({ "type": "gm" });
    let tool = |name: &str, arguments: Value| {
        (format!("/v1/campaigns/port-town/tools/{name}"), json!({ "actor": actor, "arguments": arguments }))
    };
    let doors = [
        (
            "/v1/campaigns/port-town/commands/roll".to_owned(),
            json!({ "player_id": "player_alice", "arguments": { "expr": always } }),
            422,
        ),
        tool_expecting(tool("roll_dice", json!({ "rolls": [{ "formula": always }] })), 200),
        ("/v1/dice/roll".to_owned(), json!({ "rolls": [{ "formula": always }], "campaign": "port-town" }), 200),
        (
            "/v1/campaigns/port-town/act".to_owned(),
            json!({ "player_id": "player_alice", "message": "I roll badly." }),
            0,
        ),
    ];
    let plan = json!({ "command": "roll", "args": { "expr": always } });
    server.model.set_script(Script::always(Reply::text(plan.to_string())));
    for (path, body, status) in doors {
        let before = counter(&tenant).await;
        let answer = tenant.post(&path, body).await;
        assert!(status == 0 || answer.status == status, "{path}: {}", answer.text);
        assert_eq!(counter(&tenant).await, before + 1, "{path}: {}", answer.text);
    }
}

fn tool_expecting((path, body): (String, Value), status: u16) -> (String, Value, u16) {
    (path, body, status)
}

/// Formulas that may fail after a draw, among good ones, as a player and as a game master.
fn formulas() -> impl Strategy<Value = Vec<&'static str>> {
    let one = prop::sample::select(vec![
        "1d20",
        "4d6kh3",
        "2d20kl+5",
        TELLING,
        "1/(1d4-2)",
        "(1d4-2)d6",
        "1d(1d4-2)",
        "1/floor(1d20/15)+(1d6-3)d8",
        "1d6/0",
        "(0-5)d6",
    ]);
    prop::collection::vec(one, 1..25)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_rolled_next_lies_beyond_what_a_failure_looked_at() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut runner = TestRunner::new(Config::default());
    for _ in 0..6 {
        let sequence = formulas().new_tree(&mut runner).unwrap().current();
        let first = tenant.post(&format!("{SEEDS}/rotate"), json!({})).await.expect(200);
        drop(first);
        let mut log = Vec::new();
        for formula in &sequence {
            let before = counter(&tenant).await;
            let rolled = command(&tenant, formula).await;
            let after = counter(&tenant).await;
            let drew = !matches!(*formula, "1d6/0" | "(0-5)d6");
            assert_eq!(after - before, i64::from(drew), "{formula} in {sequence:?}");
            assert!(rolled.is_none_or(|used| used == after), "{formula} in {sequence:?}");
            log.push((*formula, after, rolled.is_some(), drew));
        }
        // What was spent is what the stream says, so that nobody can have chosen.
        let seed = tenant.post(&format!("{SEEDS}/rotate"), json!({})).await.expect(200).body["revealed"].clone();
        for (formula, counter, good, drew) in log.into_iter().filter(|(.., drew)| *drew) {
            let named = json!({ "seed_id": seed["id"], "counter": counter, "formula": formula });
            let verified = tenant.post("/v1/dice/verify", named).await.expect(200).body;
            assert_eq!((&verified["results"][0]["success"], drew), (&json!(good), true), "{formula} at {counter}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dice_of_a_turn_that_fails_are_spent() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let session = json!({ "client_id": "table", "role": "gm", "dice": "server" });
    let session = tenant.post("/v1/campaigns/port-town/sessions", session).await.expect(201).id();
    let turns = format!("/v1/campaigns/port-town/sessions/{session}/turns");
    let roll = json!({ "rolls": [{ "formula": TELLING }] });
    server.model.set_script(Script::replies([Reply::tool("roll_dice", roll), Reply::text("Hm.")]));
    tenant.post(&turns, json!({})).await.expect(200);
    let before = counter(&tenant).await;
    assert_eq!(before, 1);
    let roll = json!({ "rolls": [{ "formula": "1d20" }] });
    server.model.set_script(Script::replies([Reply::tool("roll_dice", roll), Reply::status(403)]));
    let failed = tenant.post(&turns, json!({})).await;
    assert!(failed.status >= 500, "{}", failed.text);
    assert_eq!(counter(&tenant).await, before + 1);
    let next = tenant
        .post("/v1/dice/roll", json!({ "rolls": [{ "formula": "1d20" }], "campaign": "port-town" }))
        .await
        .expect(200);
    assert_eq!((&next.body["counter"], values(&next.body["results"][0]).len()), (&json!(before + 2), 1));
}
