//! `get_encounter` with a frontend that keeps the fights.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Socket, fight};
use crate::support::{Server, World, until};

/// How long a frontend is waited for, or a little less.
const PATIENCE: Duration = Duration::from_millis(1900);

async fn look(world: &World<'_>, session: &str) -> Value {
    let body = json!({ "arguments": {}, "session_id": session });
    world.post("/tools/get_encounter", body).await.expect(200).body["result"].take()
}

/// What a frontend's answer made of a look; again while the machine is too busy for an answer in time.
pub async fn in_time(mut look: impl AsyncFnMut() -> Value) -> Value {
    for _ in 0..20 {
        let seen = look().await;
        if seen.get("stale").is_none() {
            return seen;
        }
    }
    panic!("no answer was in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_is_told_of_anew_when_the_ai_looks() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut socket, connected) = Socket::connect(&server.url, &tenant.credential, json!({})).await;
    let session = connected["session_id"].as_str().unwrap();
    // Without a fight the frontend is not asked: what it hears next is of the fight.
    assert_eq!(look(&world, session).await, json!({ "in_combat": false, "message": "No active encounter" }));
    // With one it is asked, and what it tells is what the tool answers.
    socket.send(json!({ "type": "combat_state", "request_id": "1", "data": fight(1) })).await;
    assert_eq!(socket.next().await["type"], "ack");
    let seen = in_time(async || {
        let tells = async {
            let asked = socket.next_of("combat_state_refresh").await;
            socket.send(json!({ "type": "combat_state", "request_id": asked["request_id"], "data": fight(3) })).await;
        };
        tokio::join!(look(&world, session), tells).0
    });
    assert_eq!(seen.await["round"], 3);
    // It tells nonsense: the last state, marked, and the frontend hears why.
    let lies = async {
        let asked = socket.next_of("combat_state_refresh").await;
        let data = json!({ "combat_state": { "round": 9 } });
        socket.send(json!({ "type": "combat_state", "request_id": asked["request_id"], "data": data })).await;
        socket.next_of("error").await
    };
    let (seen, error) = tokio::join!(look(&world, session), lies);
    assert_eq!((&seen["round"], &seen["stale"]), (&json!(3), &json!(true)));
    assert_eq!(error["data"]["code"], "validation_failed");
    // It is silent: two seconds, and the same.
    let started = Instant::now();
    let seen = look(&world, session).await;
    assert_eq!((&seen["round"], &seen["stale"]), (&json!(3), &json!(true)));
    assert!(started.elapsed() >= PATIENCE, "{:?}", started.elapsed());
    // The fight is over by the time it answers.
    socket.next_of("combat_state_refresh").await;
    let seen = in_time(async || {
        let ends = async {
            let asked = socket.next_of("combat_state_refresh").await;
            let data = json!({ "combat_state": { "in_combat": false, "combat_id": "c1" } });
            socket.send(json!({ "type": "combat_state", "request_id": asked["request_id"], "data": data })).await;
        };
        tokio::select! {
            seen = look(&world, session) => seen,
            () = async { ends.await; std::future::pending().await } => unreachable!(),
        }
    });
    assert_eq!(seen.await["in_combat"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frontend_that_left_leaves_a_stale_fight() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    // One that never was connected tells by REST, and is believed.
    let rest = world.post("/sessions", json!({ "client_id": "rest" })).await.expect(201).id();
    let events = json!({ "events": [{ "type": "combat_state", "data": fight(5) }] });
    world.post(&format!("/sessions/{rest}/events"), events).await.expect(200);
    let seen = look(&world, &rest).await;
    assert_eq!((&seen["round"], seen.get("stale")), (&json!(5), None));
    let (mut socket, connected) = Socket::connect(&server.url, &tenant.credential, json!({})).await;
    let session = connected["session_id"].as_str().unwrap();
    socket.send(json!({ "type": "combat_state", "request_id": "1", "data": fight(1) })).await;
    socket.next_of("ack").await;
    drop(socket.0.close(None).await);
    socket.closed().await;
    until("the stale fight", async || look(&world, session).await["stale"] == true).await;
    assert_eq!(look(&world, session).await["round"], 1);
    // It is not waited for any more; a busy machine may take as long once, and not each time.
    until("an answer at once", async || {
        let started = Instant::now();
        look(&world, session).await;
        started.elapsed() < PATIENCE
    })
    .await;
}
