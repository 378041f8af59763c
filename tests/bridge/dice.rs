//! The AI's dice, rolled by a frontend: honest, lying, slow, silent, gone, back again.

use std::time::{Duration, Instant};

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{Socket, fight};
use crate::support::{Server, World, until};

async fn frontend(world: &World<'_>) -> (Socket, String) {
    let dice = json!({ "dice": "frontend" });
    let (socket, connected) = Socket::connect(&world.client.server.url, &world.client.credential, dice).await;
    (socket, connected["session_id"].as_str().unwrap().to_owned())
}

async fn roll(world: &World<'_>, session: &str, formula: &str) -> crate::support::Answer {
    let arguments = json!({ "rolls": [{ "formula": formula, "flavor": "Attack" }] });
    world.post("/tools/roll_dice", json!({ "arguments": arguments, "session_id": session })).await
}

async fn turn(world: &World<'_>, session: &str, body: Value) -> crate::support::Answer {
    world.post(&format!("/sessions/{session}/turns"), body).await
}

fn script(server: &Server, replies: Vec<Reply>) {
    server.model.set_script(Script::replies(replies));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turns_dice_are_rolled_by_the_frontend() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut socket, session) = frontend(&world).await;
    // One batch: a post, a roll, a post, a roll, and what the server has to find wrong itself.
    let rolls =
        json!({ "rolls": [{ "formula": "1d20+5", "flavor": "Attack" }, { "formula": "1d" }, { "formula": "2d6" }] });
    let replies = vec![
        Reply::tool("post_message", json!({ "content": "Swords out!" }))
            .with_tool("roll_dice", rolls)
            .with_tool("post_message", json!({ "content": "And now?" }))
            .with_tool("roll_dice", json!({ "rolls": [{ "formula": "4d6kh3" }] })),
        Reply::text("The blade bites."),
    ];
    script(&server, replies);
    let taking = turn(&world, &session, json!({}));
    let table = async {
        // What came before the roll is said before it is asked for.
        let mut said = Vec::new();
        let asked = loop {
            let frame = socket.next().await;
            match frame["type"].as_str().unwrap() {
                "execute_roll" => break frame,
                _ => said.push(frame),
            }
        };
        let rolls = asked["data"]["rolls"].as_array().unwrap();
        let formulas: Vec<_> = rolls.iter().map(|r| (r["formula"].as_str().unwrap(), &r["flavor"])).collect();
        assert_eq!(formulas, [("1d20+5", &json!("Attack")), ("2d6", &Value::Null)]);
        let before = world.get("/messages").await.expect(200);
        assert_eq!(before.items().iter().map(|m| &m["content"]).collect::<Vec<_>>(), ["Swords out!"]);
        let results = json!([
            { "formula": "1d20 + 5", "total": 19, "dice": [{ "faces": 20, "value": 14 }] },
            { "formula": "2d6", "result": 7, "details": { "dice": [{ "number": 2, "results": [{ "result": 3 }, { "result": 4 }] }] } },
        ]);
        socket
            .send(json!({ "type": "roll_result", "request_id": asked["request_id"], "data": { "results": results } }))
            .await;
        let best = json!([{ "total": 14, "dice": [{ "faces": 6, "results": [6, 1, 5, 3] }] }]);
        socket.roll(best).await;
        said
    };
    let (turn, _) = tokio::join!(taking, table);
    let turn = turn.expect(200).body;
    let calls = turn["tool_calls"].as_array().unwrap();
    assert_eq!(calls.iter().map(|c| &c["status"]).collect::<Vec<_>>(), ["succeeded"; 4]);
    let first = &calls[1]["result"];
    assert_eq!((&first["source"], &first["count"]), (&json!("frontend"), &json!(3)));
    let totals: Vec<_> = first["results"].as_array().unwrap().iter().map(|r| (&r["success"], &r["total"])).collect();
    assert_eq!(totals, [(&json!(true), &json!(19)), (&json!(false), &Value::Null), (&json!(true), &json!(7))]);
    assert_eq!(calls[3]["result"]["results"][0]["dice"][1]["kept"], json!(false));
    assert_eq!(turn["narrative"], "The blade bites.");
    // The rolls are on the record; the frontend that rolled them is not told of them, but of all else.
    let messages = world.get("/messages").await.expect(200);
    assert_eq!(messages.items().iter().filter(|m| m["type"] == "roll").count(), 2);
    let told = loop {
        let message = socket.next_of("chat_response").await["data"]["message"].clone();
        assert_ne!(message["type"], "roll");
        if message["content"] == "The blade bites." {
            break message;
        }
    };
    assert_eq!(told["speaker"]["name"], "Game Master");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frontend_is_believed_only_what_can_be() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut socket, session) = frontend(&world).await;
    let die = |faces: u32, value: i64| json!({ "faces": faces, "value": value });
    for (formula, result, why) in [
        ("1d20", json!({ "total": 21, "dice": [die(20, 21)] }), "a face too many"),
        ("1d20", json!({ "total": 20, "dice": [die(20, 0)] }), "no such face"),
        ("1d20", json!({ "total": 20, "dice": [die(20, 19)] }), "another total"),
        ("1d20", json!({ "total": 20, "dice": [die(100, 20)] }), "another die"),
        ("1d20", json!({ "total": 20 }), "no dice"),
        ("1d20", json!({ "total": 20, "dice": [die(20, 20), die(20, 1)] }), "a die too many"),
        ("2d20kh", json!({ "total": 20, "dice": [die(20, 20)] }), "a die too few"),
        ("2d6", json!({ "total": 7, "dice": [die(6, i64::MAX), die(6, i64::MIN)] }), "numbers beyond numbers"),
        ("1d6x6", json!({ "total": 6, "dice": [die(6, 6)] }), "an explosion left out"),
        ("1d20", json!({ "dice": [die(20, 20)] }), "no total"),
        ("1d20", json!({ "total": "20", "dice": [die(20, 20)] }), "a text"),
        ("1d20", json!({ "formula": "1d20+10", "total": 30, "dice": [die(20, 20)] }), "another formula"),
        ("1d20", json!({ "total": 20, "dice": (0..2000).map(|_| die(20, 20)).collect::<Vec<_>>() }), "too many"),
    ] {
        let (answer, _) = tokio::join!(roll(&world, &session, formula), socket.roll(json!([result])));
        assert_eq!((answer.status, &answer.body["code"]), (502, &json!("frontend_failed")), "{why}: {}", answer.text);
    }
    for results in [json!([]), json!([{}, {}]), json!({}), json!(7), Value::Null] {
        let (answer, _) = tokio::join!(roll(&world, &session, "1d20"), socket.roll(results.clone()));
        answer.problem(502, "frontend_failed");
    }
    // Nothing of it was said at the table.
    assert!(world.get("/messages").await.expect(200).items().is_empty());
    // What can be is taken, in any of the shapes.
    for (formula, result, total) in [
        ("1d20", json!({ "total": 20, "dice": [die(20, 20)] }), json!(20)),
        ("1d6x6", json!({ "total": 9, "dice": [die(6, 6), die(6, 3)] }), json!(9)),
        ("2d6r1", json!({ "total": 9, "dice": [{ "faces": 6, "results": [1, 5, 4] }] }), json!(9)),
        (
            "1d8 + (1d4)d6",
            json!({ "total": 12, "dice": [
            { "faces": 4, "results": [{ "result": 2 }] }, { "faces": 8, "results": [8] }, { "faces": 6, "results": [1, 3] }] }),
            json!(12),
        ),
        ("2dF", json!({ "total": 0, "dice": [{ "faces": 3, "results": [-1, 1] }] }), json!(0)),
        ("1dc", json!({ "total": 1, "dice": [{ "faces": "c", "value": 1 }] }), json!(1)),
        ("7", json!({ "total": 7, "dice": [] }), json!(7)),
    ] {
        let (answer, _) = tokio::join!(roll(&world, &session, formula), socket.roll(json!([result])));
        assert_eq!(answer.expect(200).body["result"]["results"][0]["total"], total, "{formula}");
    }
    // It may say that it could not.
    let failed = json!([{ "formula": "1d20", "success": false, "error": "The dice fell off the table." }]);
    let (answer, _) = tokio::join!(roll(&world, &session, "1d20"), socket.roll(failed));
    let result = answer.expect(200).body["result"]["results"][0].clone();
    assert_eq!((&result["success"], &result["error"]["code"]), (&json!(false), &json!("frontend_failed")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_a_silent_and_a_refusing_frontend() {
    let server = Server::start_with(&[("TAVERNKEEP_BRIDGE_ROLL_TIMEOUT_MS", "10000")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut socket, session) = frontend(&world).await;
    // Slow, but in time.
    let slow = async {
        let asked = socket.next_of("execute_roll").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let results = json!([{ "total": 3, "dice": [{ "faces": 6, "value": 3 }] }]);
        socket
            .send(json!({ "type": "roll_result", "request_id": asked["request_id"], "data": { "results": results } }))
            .await;
        asked["request_id"].clone()
    };
    let (answer, old) = tokio::join!(roll(&world, &session, "1d6"), slow);
    assert_eq!(answer.expect(200).body["result"]["source"], "frontend");
    // Silent: an error, soon. What comes late, or to another's question, counts for nothing.
    let (mut stranger, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "stranger" })).await;
    let started = Instant::now();
    let lies = async {
        let asked = socket.next_of("execute_roll").await;
        let id = asked["request_id"].clone();
        let results = json!([{ "total": 6, "dice": [{ "faces": 6, "value": 6 }] }]);
        let reply = |id: &Value| json!({ "type": "roll_result", "request_id": id, "data": { "results": results } });
        stranger.send(reply(&id)).await;
        for other in [&old, &json!(null), &json!("nonsense"), &json!(uuid::Uuid::nil())] {
            socket.send(reply(other)).await;
        }
        // A reply of another kind is none either.
        socket.send(json!({ "type": "combat_state", "request_id": id, "data": fight(1) })).await;
        socket.next_of("ack").await;
        id
    };
    let (answer, late) = tokio::join!(roll(&world, &session, "1d6"), lies);
    answer.problem(504, "frontend_timeout");
    assert!(started.elapsed() >= Duration::from_millis(9900), "{:?}", started.elapsed());
    let results = json!([{ "total": 6, "dice": [{ "faces": 6, "value": 6 }] }]);
    socket.send(json!({ "type": "roll_result", "request_id": late, "data": { "results": results } })).await;
    // It says no: its own words reach the caller.
    let refuses = async {
        let asked = socket.next_of("execute_roll").await;
        let data = json!({ "error": "No dice\u{7} today", "error_code": "X" });
        socket.send(json!({ "type": "error", "request_id": asked["request_id"], "data": data })).await;
    };
    let (answer, ()) = tokio::join!(roll(&world, &session, "1d6"), refuses);
    let answer = answer.problem(502, "frontend_failed");
    assert!(answer.body["detail"].as_str().unwrap().contains("No dice today"), "{}", answer.text);
    // A model reads the error and goes on.
    let roll = Reply::tool("roll_dice", json!({ "rolls": [{ "formula": "1d6" }] }));
    script(&server, vec![roll, Reply::text("No dice, then.")]);
    let turn = turn(&world, &session, json!({})).await.expect(200).body;
    assert_eq!(turn["status"], "succeeded");
    assert_eq!(
        (&turn["tool_calls"][0]["status"], &turn["tool_calls"][0]["error"]["code"]),
        (&json!("failed"), &json!("frontend_timeout"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frontend_that_goes_and_one_that_comes_back() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut socket, session) = frontend(&world).await;
    // It goes in the middle of a roll: an error, and not that of one that says nothing.
    let goes = async {
        socket.next_of("execute_roll").await;
        drop(socket);
    };
    let (answer, ()) = tokio::join!(roll(&world, &session, "1d6"), goes);
    answer.problem(502, "frontend_failed");
    // Not there: the server rolls, at once.
    let answer = roll(&world, &session, "1d6").await.expect(200);
    assert_eq!(answer.body["result"]["source"], "server");
    assert!(answer.body["result"]["seed_id"].is_string());
    // Back, it rolls again; taken over in the middle of a roll, the newer one is not asked the older one's question.
    let (mut old, _) = frontend(&world).await;
    let newer = async {
        let asked = old.next_of("execute_roll").await;
        let (mut newer, _) = frontend(&world).await;
        let results = json!([{ "total": 6, "dice": [{ "faces": 6, "value": 6 }] }]);
        newer
            .send(json!({ "type": "roll_result", "request_id": asked["request_id"], "data": { "results": results } }))
            .await;
        newer
    };
    let (answer, mut newer) = tokio::join!(roll(&world, &session, "1d6"), newer);
    answer.problem(502, "frontend_failed");
    let results = json!([{ "total": 2, "dice": [{ "faces": 6, "value": 2 }] }]);
    let (answer, _) = tokio::join!(roll(&world, &session, "1d6"), newer.roll(results));
    assert_eq!(answer.expect(200).body["result"]["source"], "frontend");
}

#[tokio::test(flavor = "multi_thread")]
async fn dice_that_are_there_are_not_asked_for() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut socket, session) = frontend(&world).await;
    let call = |more: Value| {
        let mut call = json!({ "arguments": { "rolls": [{ "formula": "1d6" }] }, "session_id": session });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    for (more, source) in [(json!({ "dice": [4] }), "manual"), (json!({ "preview": true }), "server")] {
        let answer = world.post("/tools/roll_dice", call(more)).await.expect(200);
        assert_eq!(answer.body["result"]["source"], source);
    }
    // Dice given for a turn come first; the frontend is asked when they are used up.
    let one = || Reply::tool("roll_dice", json!({ "rolls": [{ "formula": "1d6" }] }));
    script(&server, vec![one(), one(), Reply::text("Done.")]);
    let results = json!([{ "total": 2, "dice": [{ "faces": 6, "value": 2 }] }]);
    let taking = turn(&world, &session, json!({ "dice": [5] }));
    let (turn, _) = tokio::join!(taking, socket.roll(results.clone()));
    let sources: Vec<_> =
        turn.expect(200).body["tool_calls"].as_array().unwrap().iter().map(|c| c["result"]["source"].clone()).collect();
    assert_eq!(sources, ["manual", "frontend"]);
    // The same request again is the same answer, and no second roll.
    let path = "/v1/campaigns/port-town/tools/roll_dice";
    let (first, _) = tokio::join!(tenant.post_with_key(path, "k", call(json!({}))), socket.roll(results));
    let again = tenant.post_with_key(path, "k", call(json!({}))).await.expect(200);
    assert_eq!((again.header("idempotency-replayed"), &again.text), ("true", &first.expect(200).text));
    // A session whose dice are the server's is not asked either.
    world.patch(&format!("/sessions/{session}"), json!({ "dice": "server" })).await.expect(200);
    let answer = world.post("/tools/roll_dice", call(json!({}))).await.expect(200);
    assert_eq!(answer.body["result"]["source"], "server");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_transaction_waits_for_a_frontend() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut socket, session) = frontend(&world).await;
    let roll = Reply::tool("post_message", json!({ "content": "Roll!" }))
        .with_tool("roll_dice", json!({ "rolls": [{ "formula": "1d6" }] }));
    script(&server, vec![roll, Reply::text("Done.")]);
    let looks = async {
        let asked = socket.next_of("execute_roll").await;
        let open = || {
            sqlx::query_scalar::<_, i64>(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'tavernkeep' \
             AND state LIKE 'idle in transaction%'",
            )
        };
        let mut db = server.owner().await;
        until("no open transaction", async || open().fetch_one(&mut db).await.unwrap() == 0).await;
        let results = json!([{ "total": 2, "dice": [{ "faces": 6, "value": 2 }] }]);
        socket
            .send(json!({ "type": "roll_result", "request_id": asked["request_id"], "data": { "results": results } }))
            .await;
    };
    let (done, ()) = tokio::join!(turn(&world, &session, json!({})), looks);
    done.expect(200);
    // A turn that is cancelled while it waits takes back what it had committed.
    let roll = Reply::tool("post_message", json!({ "content": "Again!" }))
        .with_tool("roll_dice", json!({ "rolls": [{ "formula": "1d6" }] }));
    script(&server, vec![roll]);
    let cancels = async {
        socket.next_of("execute_roll").await;
        let running = world.get("/turns?limit=1&sort=-created_at").await.expect(200).items()[0]["id"].clone();
        world.post(&format!("/turns/{}/cancel", running.as_str().unwrap()), json!({})).await
    };
    let (turn, cancelled) = tokio::join!(turn(&world, &session, json!({})), cancels);
    assert!(cancelled.status < 300, "{}", cancelled.text);
    assert_eq!(turn.expect(200).body["status"], "cancelled");
    let said = world.get("/messages").await.expect(200);
    assert!(said.items().iter().all(|m| m["content"] != "Again!"));
    // And the frontend, which had been told, is told that it is gone.
    let told = loop {
        let frame = socket.next_of("chat_response").await;
        if frame["data"]["message"]["content"] == "Again!" {
            break frame["data"]["message"]["id"].clone();
        }
    };
    assert_eq!(socket.next_of("message_deleted").await["data"]["id"], told);
}
