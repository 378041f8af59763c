//! Frames that do not fit: told so, and the connection stays, within bounds.

use futures_util::SinkExt;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::Socket;
use crate::support::{Server, patiently, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_does_not_fit_is_an_error_and_the_connection_stays() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let (mut socket, _) = Socket::connect(&server.url, &tenant.credential, json!({})).await;
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (text, code) in [
        ("{".to_owned(), "bad_request"),
        ("null".to_owned(), "bad_request"),
        (deep, "bad_request"),
        (json!({ "data": {} }).to_string(), "bad_request"),
        (json!({ "type": 7 }).to_string(), "bad_request"),
        (json!({ "type": "ping", "request_id": 7 }).to_string(), "bad_request"),
        (json!({ "type": "ping", "request_id": "x".repeat(101) }).to_string(), "bad_request"),
        (json!({ "type": "dance" }).to_string(), "bad_request"),
        (json!({ "type": "connect", "client_id": "vtt", "token": tenant.credential }).to_string(), "bad_request"),
        (json!({ "type": "chat_message" }).to_string(), "validation_failed"),
        (json!({ "type": "chat_message", "data": 7 }).to_string(), "validation_failed"),
        (json!({ "type": "chat_message", "data": { "content": "x".repeat(20_001) } }).to_string(), "validation_failed"),
        (json!({ "type": "chat_message", "data": { "content": "x".repeat(66_000) } }).to_string(), "payload_too_large"),
        (json!({ "type": "turn_request", "data": { "steps": 2 } }).to_string(), "validation_failed"),
        (json!({ "type": "turn_request", "data": { "instruction": " " } }).to_string(), "validation_failed"),
    ] {
        socket.0.send(Message::text(text.clone())).await.unwrap();
        let error = socket.next().await;
        assert_eq!((&error["type"], &error["data"]["code"]), (&json!("error"), &json!(code)), "{text:.200} {error}");
    }
    let bad = json!({ "type": "dice_roll", "request_id": "r1", "data": { "formula": "1d20" } });
    socket.send(bad).await;
    let error = socket.next().await;
    assert_eq!((&error["request_id"], &error["data"]["errors"][0]["pointer"]), (&json!("r1"), &json!("/data/total")));
    // Who asked is told, whatever is wrong with the rest of the frame.
    for (data, pointer) in [
        (json!({ "type": "chat_message", "request_id": "r2", "data": { "content": 7 } }), json!("/data/content")),
        (json!({ "type": "chat_message", "request_id": "r2", "data": { "content": "x".repeat(66_000) } }), json!(null)),
        (json!({ "request_id": "r2", "data": {} }), json!(null)),
        (json!({ "type": "turn_request", "request_id": "r2", "data": { "steps": 2 } }), json!("/data/steps")),
        (
            json!({ "type": "turn_request", "request_id": "r2", "data": { "instruction": " " } }),
            json!("/data/instruction"),
        ),
    ] {
        socket.send(data).await;
        let error = socket.next().await;
        assert_eq!((&error["request_id"], &error["data"]["errors"][0]["pointer"]), (&json!("r2"), &pointer), "{error}");
    }
    socket.0.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    assert_eq!(socket.next().await["type"], "error");
    // Pings of the protocol are answered; a message may come in pieces.
    socket.0.send(Message::Ping(vec![7].into())).await.unwrap();
    socket.send(json!({ "type": "ping" })).await;
    assert_eq!(socket.next().await["type"], "pong");
    // A world state may be larger than everything else.
    let tokens: Vec<_> =
        (0..900).map(|i| json!({ "id": format!("t{i}"), "name": "x".repeat(100), "x": i, "y": i })).collect();
    let state = json!({ "active_scene": { "id": "s", "name": "Crowd", "tokens": tokens } });
    socket.send(json!({ "type": "world_state", "request_id": "w", "data": state })).await;
    let ack = socket.next().await;
    assert_eq!((&ack["type"], &ack["request_id"]), (&json!("ack"), &json!("w")), "{ack}");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_big_too_broken_and_too_many_end_the_connection() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let (mut big, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "big" })).await;
    let _ = big.0.send(Message::text("x".repeat(400 * 1024))).await;
    assert_eq!(big.closed().await, 1009);
    let mut first = Socket::open(&server.url).await;
    let _ = first.0.send(Message::text("x".repeat(400 * 1024))).await;
    assert_eq!(first.closed().await, 1009);
    let (mut broken, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "broken" })).await;
    for _ in 0..40 {
        if broken.0.send(Message::text("{")).await.is_err() {
            break;
        }
    }
    let mut errors = 0;
    let code = loop {
        match broken.maybe().await {
            Ok(frame) => errors += i32::from(frame["type"] == "error"),
            Err((code, _)) => break code,
        }
    };
    assert_eq!((code, errors), (1008, 31));
    // A flood of sound frames is slowed down, then ended.
    let (mut flood, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "flood" })).await;
    let (mut sink, mut stream) =
        futures_util::StreamExt::split(std::mem::replace(&mut flood.0, Socket::open(&server.url).await.0));
    let sending = tokio::spawn(async move {
        for _ in 0..600 {
            if sink.send(Message::text(json!({ "type": "ping" }).to_string())).await.is_err() {
                break;
            }
        }
        sink
    });
    let mut limited = false;
    while let Some(Ok(message)) = futures_util::StreamExt::next(&mut stream).await {
        limited |= message.to_text().is_ok_and(|t| t.contains("rate_limited"));
    }
    assert!(limited);
    drop(sending.await);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_is_left() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (deaf, connected) = Socket::connect(&server.url, &tenant.credential, json!({})).await;
    let session = connected["session_id"].as_str().unwrap();
    let state = json!({ "session_info": { "gm_name": "Maya", "game_system": "dnd5e" }, "active_scene": { "id": "s", "name": "x",
        "tokens": (0..900).map(|i| json!({ "id": format!("t{i}"), "name": "x".repeat(150) })).collect::<Vec<_>>() } });
    let closed = || async {
        let scrape = server.anonymous().get("/metrics").await.text;
        scrape.lines().any(|l| l.starts_with("tavernkeep_bridge_closed_total{reason=\"overflow\"}"))
    };
    let path = format!("/v1/campaigns/port-town/sessions/{session}/world-state");
    until("it to be left", async || {
        patiently(|| tenant.send(tenant.request(reqwest::Method::PUT, &path).json(&state))).await.expect(200);
        closed().await
    })
    .await;
    // Its session goes on without it.
    let rolled = world
        .post("/tools/roll_dice", json!({ "arguments": { "rolls": [{ "formula": "1d6" }] }, "session_id": session }))
        .await;
    assert_eq!(rolled.expect(200).body["result"]["source"], "server");
    drop(deaf);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_waited_for_is_taken_in_a_flood() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut socket, connected) = Socket::connect(&server.url, &tenant.credential, json!({ "dice": "frontend" })).await;
    let session = connected["session_id"].as_str().unwrap();
    let roll = json!({ "arguments": { "rolls": [{ "formula": "1d6" }] }, "session_id": session });
    let answer = async {
        let asked = socket.next_of("execute_roll").await;
        let mut limited = false;
        while !limited {
            socket.send(json!({ "type": "ping", "request_id": "p" })).await;
            let frame = socket.next().await;
            assert_eq!(frame["request_id"], "p");
            limited = frame["data"]["code"] == "rate_limited";
        }
        let results = json!([{ "formula": "1d6", "success": true, "total": 4, "dice": [{ "faces": 6, "value": 4, "kept": true }] }]);
        let data = json!({ "results": results });
        socket.send(json!({ "type": "roll_result", "request_id": asked["request_id"], "data": data })).await;
    };
    let (rolled, ()) = tokio::join!(world.post("/tools/roll_dice", roll), answer);
    assert_eq!(rolled.expect(200).body["result"]["results"][0]["total"], 4);
}
