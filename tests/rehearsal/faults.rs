//! Delays, breaks and streams: how an answer is delivered.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::rehearsal::{Options, Rehearsal, Reply, Script, start};
use serde_json::{Value, json};

use super::{Outcome, ask, events, joined, model, post, text, turn};
use crate::support::until;

#[tokio::test(flavor = "multi_thread")]
async fn scripted_faults_happen() -> Outcome {
    let model = model(Script::replies([
        Reply::close(),
        Reply::text("x".repeat(500)).truncate_after_bytes(300),
        Reply::persona().delay_ms(150),
        Reply::text("late").body_delay_ms(150),
        Reply::text("too late").body_delay_ms(3_600_000),
        Reply::hang(),
        Reply::repeat_bytes(100_000).truncate_after_bytes(40_000),
    ]))
    .await?;
    let body = turn("s", "hello");
    assert_eq!(raw(&model, &body)?.len(), 0);
    let cut = raw(&model, &body)?;
    let (head, sent) = cut.split_once("\r\n\r\n").unwrap_or_default();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("content-length: "), "{head}");
    assert_eq!(sent.len(), 300);

    let start = Instant::now();
    let response = post(&model, &body).await?;
    assert!(start.elapsed() >= Duration::from_millis(150));
    assert!(text(&response.json().await?).contains("Alice"));
    let start = Instant::now();
    assert_eq!(text(&post(&model, &body).await?.json().await?), "late");
    assert!(start.elapsed() >= Duration::from_millis(150));
    // The headers come before such a body, or nothing would have come for an hour.
    assert_eq!(post(&model, &body).await?.status(), 200);

    let hung = tokio::time::timeout(Duration::from_millis(200), post(&model, &body)).await;
    assert!(hung.is_err());
    assert!(post(&model, &body).await?.bytes().await.is_err());
    model.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn held_replies_are_let_go_one_by_one() -> Outcome {
    let model = Arc::new(model(Script::replies([Reply::text("one").held(), Reply::text("two")])).await?);
    let asks = || {
        let model = model.clone();
        tokio::spawn(async move { text(&ask(&model, &turn("s", "hello")).await.unwrap()).to_owned() })
    };
    let first = asks();
    until("the first", async || model.request_count() == 1).await;
    // What is not held passes by.
    assert_eq!(asks().await?, "two");
    assert!(!first.is_finished());
    model.let_go(1);
    assert_eq!(first.await?, "one");
    // One may be let go before it is asked for.
    model.set_script(Script::always(Reply::text("three").held()));
    model.let_go(1);
    assert_eq!(asks().await?, "three");
    Ok(())
}

/// What comes back on a connection of its own until it ends.
fn raw(model: &Rehearsal, body: &Value) -> Result<String, Box<dyn Error>> {
    let mut socket = TcpStream::connect(model.addr())?;
    let body = body.to_string();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length";
    write!(socket, "{head}: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_add_up_to_the_answer() -> Outcome {
    let said = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.";
    let reply = Reply::text(said).with_tool("NPC_memorize", json!({"player_id": "ä"}));
    let model = model(Script::replies([
        reply.clone(),
        reply.clone().delta_chars(1).chunk_bytes(7),
        reply.chunk_delay_ms(5),
        Reply::repeat_bytes(50_000),
        Reply::repeat_bytes(50_000).chunk_delay_ms(1),
        Reply::text("x").truncate_after_bytes(250),
    ]))
    .await?;
    let mut body = turn("s", "hello");
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    for _ in 0..3 {
        let response = post(&model, &body).await?;
        assert!(response.headers()["content-type"].to_str()?.starts_with("text/event-stream"));
        let events = events(&response.text().await?);
        assert_eq!(events.last(), Some(&json!("[DONE]")));
        assert_eq!(joined(&events, "/choices/0/delta/content"), said);
        let arguments = joined(&events, "/choices/0/delta/tool_calls/0/function/arguments");
        assert_eq!(arguments, "{\"player_id\":\"ä\"}");
        assert_eq!(joined(&events, "/choices/0/delta/tool_calls/0/function/name"), "NPC_memorize");
        assert_eq!(joined(&events, "/choices/0/finish_reason"), "tool_calls");
        let usage = events.iter().rev().nth(1).map(|event| &event["usage"]["completion_tokens"]);
        assert!(usage.is_some_and(Value::is_u64));
    }
    for _ in 0..2 {
        let events = events(&post(&model, &body).await?.text().await?);
        assert_eq!(joined(&events, "/choices/0/delta/content").len(), 50_000);
    }
    assert!(post(&model, &body).await?.text().await.is_err());

    if let Some(body) = body.as_object_mut() {
        body.remove("stream_options");
    }
    let events = events(&post(&model, &body).await?.text().await?);
    assert!(joined(&events, "/choices/0/delta/content").contains("Alice"));
    assert!(events.iter().all(|event| event.get("usage").is_none()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_or_dropped_server_is_gone() -> Outcome {
    let stopped = model(Script::always(Reply::hang())).await?;
    let addr = stopped.addr();
    stopped.stop().await;
    assert!(TcpStream::connect(addr).is_err());
    let again = start(Options { bind: addr, ..Options::default() }).await?;
    assert!(start(Options { bind: addr, ..Options::default() }).await.is_err());
    drop(again);
    let deadline = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(addr).is_ok() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(TcpStream::connect(addr).is_err());
    Ok(())
}
