//! Two server processes: the socket on one, the turn on the other.

use rehearsal::{Reply, Script};
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::{Socket, fight, fights::in_time};
use crate::support::{Child, Prepared};

fn one_roll() -> Reply {
    Reply::tool("roll_dice", json!({ "rolls": [{ "formula": "1d20" }] }))
}

async fn turn(child: &Child, session: &str) -> serde_json::Value {
    child.post(&format!("/sessions/{session}/turns"), json!({})).await.unwrap().expect(200).body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_on_one_server_asks_the_frontend_of_another() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let mut here = prepared.start(&model).await;
    let there = prepared.start(&model).await;
    let dice = json!({ "dice": "frontend" });
    let (mut socket, connected) = Socket::connect(here.url(), &prepared.credential, dice.clone()).await;
    let session = connected["session_id"].as_str().unwrap().to_owned();

    // Dice, and what the AI says, cross over.
    let lit = json!([{ "total": 17, "dice": [{ "faces": 20, "value": 17 }] }]);
    for _ in 0..2 {
        model.set_script(Script::replies([one_roll(), Reply::text("It hits.")]));
        let (done, _) = tokio::join!(turn(&there, &session), socket.roll(lit.clone()));
        assert_eq!(done["tool_calls"][0]["result"]["source"], "frontend", "{done}");
    }
    assert_eq!(socket.next_of("chat_response").await["data"]["message"]["content"], "It hits.");
    // So do fights, refusals, and a world state that was stored there.
    socket.send(json!({ "type": "combat_state", "request_id": "1", "data": fight(1) })).await;
    socket.next_of("ack").await;
    let seen = in_time(async || {
        let tells = async {
            let asked = socket.next_of("combat_state_refresh").await;
            socket.send(json!({ "type": "combat_state", "request_id": asked["request_id"], "data": fight(4) })).await;
        };
        let look = there.post("/tools/get_encounter", json!({ "arguments": {}, "session_id": session }));
        tokio::join!(look, tells).0.unwrap().expect(200).body["result"].take()
    });
    assert_eq!(seen.await["round"], 4);
    let refuses = async {
        let asked = socket.next_of("execute_roll").await;
        socket
            .send(json!({ "type": "error", "request_id": asked["request_id"], "data": { "error": "Not now" } }))
            .await;
    };
    let roll = json!({ "arguments": { "rolls": [{ "formula": "1d6" }] }, "session_id": session });
    let (refused, ()) = tokio::join!(there.post("/tools/roll_dice", roll.clone()), refuses);
    refused.unwrap().problem(502, "frontend_failed");
    let event = json!({ "events": [{ "type": "world_state", "data": { "session_info": { "gm_name": "Ben" } } }] });
    there.post(&format!("/sessions/{session}/events"), event).await.unwrap().expect(200);
    assert_eq!(socket.next_of("world_state").await["data"]["session_info"]["gm_name"], "Ben");

    // The newest connection counts, wherever it is.
    let (mut newer, _) = Socket::connect(there.url(), &prepared.credential, dice).await;
    assert_eq!(socket.closed().await, 4409);
    let (rolled, _) = tokio::join!(
        here.post("/tools/roll_dice", roll.clone()),
        newer.roll(json!([{ "total": 2, "dice": [{ "faces": 6, "value": 2 }] }]))
    );
    assert_eq!(rolled.unwrap().expect(200).body["result"]["source"], "frontend");
    // A frontend that goes while another server waits for it: an error, and not that of one that says nothing. Then the server rolls.
    let goes = async {
        newer.next_of("execute_roll").await;
        drop(newer);
    };
    let (answer, ()) = tokio::join!(here.post("/tools/roll_dice", roll.clone()), goes);
    answer.unwrap().problem(502, "frontend_failed");
    let rolled = here.post("/tools/roll_dice", roll).await.unwrap().expect(200);
    assert_eq!(rolled.body["result"]["source"], "server");
    assert!(here.log().lines().all(|line| line.contains("frontend_failed")), "{}", here.log());
    here.terminate().await;
    assert!(here.stopped().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_or_goes_deaf_does_not_hold_up_the_others() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let mut here = prepared.start(&model).await;
    let there = prepared.start(&model).await;
    let (mut socket, connected) =
        Socket::connect(here.url(), &prepared.credential, json!({ "dice": "frontend" })).await;
    let session = connected["session_id"].as_str().unwrap();
    let roll = json!({ "arguments": { "rolls": [{ "formula": "1d6" }] }, "session_id": session });
    // The listening connections are cut: the mail is fetched all the same.
    let mut db = PgConnection::connect(&prepared.db.url).await.unwrap();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    for _ in 0..3 {
        sqlx::query(cut).execute(&mut db).await.unwrap();
        let results = json!([{ "total": 2, "dice": [{ "faces": 6, "value": 2 }] }]);
        let (answer, _) = tokio::join!(there.post("/tools/roll_dice", roll.clone()), socket.roll(results));
        assert_eq!(answer.unwrap().expect(200).body["result"]["source"], "frontend");
    }
    // kill -9 while it is waited for: an error, and not that of a frontend that says nothing.
    let dies = async {
        socket.next_of("execute_roll").await;
        here.kill().await;
    };
    let (answer, ()) = tokio::join!(there.post("/tools/roll_dice", roll.clone()), dies);
    answer.unwrap().problem(502, "frontend_failed");
    let rolled = there.post("/tools/roll_dice", roll).await.unwrap().expect(200);
    assert_eq!(rolled.body["result"]["source"], "server");
    // What is left behind is forgotten.
    sqlx::query("UPDATE bridge_mail SET created_at = now() - interval '1 hour'").execute(&mut db).await.unwrap();
    sqlx::query("SELECT prune_bridge()").execute(&mut db).await.unwrap();
    let left: (i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM bridge_mail), (SELECT count(*) FROM bridge_connection WHERE left_at IS NULL)",
    )
    .fetch_one(&mut db)
    .await
    .unwrap();
    assert_eq!(left, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_says_goodbye() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    // It does not use up the time it has for work that is under way.
    let mut child = prepared.start_with(&model, &[("TAVERNKEEP_SHUTDOWN_SECONDS", "3600")]).await;
    let (mut socket, _) = Socket::connect(child.url(), &prepared.credential, json!({})).await;
    child.terminate().await;
    assert_eq!(socket.closed().await, 1001);
    assert!(child.stopped().await);
}
