//! The log on standard error, whose reader may end, stall, or have no room.

use std::{
    fs::OpenOptions,
    io::{Read, pipe},
    process::{Command, Stdio},
    time::Duration,
};

use rehearsal::{Options, Rehearsal, Reply, Script, start};
use reqwest::{Method, header::HeaderValue};
use serde_json::{Value, json};

use crate::support::{Child, Prepared, SECRET, program, until};

const LOGS: [(&str, &str); 1] = [("RUST_LOG", "debug")];

async fn model() -> Rehearsal {
    start(Options::default()).await.unwrap()
}

/// A place on a disk that is full.
fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

/// Makes campaigns, and stops the server. Each is answered, and it stops in order.
async fn goes_on(mut child: Child, requests: usize) {
    for n in 0..requests {
        let body = json!({ "name": format!("Campaign {n}"), "slug": format!("campaign-{n}") });
        let answer = child.post("//v1/campaigns", body).await.expect("an answer");
        assert_eq!(answer.status, 201, "{}", answer.text);
    }
    assert_eq!(child.get("//readyz").await.status, 200);
    assert_eq!(child.counter("tavernkeep_panics_total").await, 0);
    child.terminate().await;
    assert!(child.stopped().await, "it stops in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_reader_has_ended_costs_no_answer() {
    let (prepared, model) = (Prepared::new().await, model().await);
    let (reader, writer) = pipe().unwrap();
    let child = prepared.start_logging(&model, writer.into(), &LOGS).await;
    drop(reader);
    child.get("//v1/campaigns").await.expect(200);
    until("a line is lost", || async { child.counter("tavernkeep_log_lines_lost_total").await > 0 }).await;
    goes_on(child, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_costs_no_answer() {
    let (prepared, model) = (Prepared::new().await, model().await);
    let child = prepared.start_logging(&model, full(), &LOGS).await;
    until("a line is lost", || async { child.counter("tavernkeep_log_lines_lost_total").await > 0 }).await;
    goes_on(child, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stalls_costs_no_answer() {
    let (prepared, model) = (Prepared::new().await, model().await);
    let (reader, writer) = pipe().unwrap();
    let child = prepared.start_logging(&model, writer.into(), &LOGS).await;
    // Far more lines than a pipe holds.
    for _ in 0..600 {
        child.get("//v1/campaigns").await.expect(200);
    }
    goes_on(child, 6).await;
    drop(reader);
}

/// A reader that comes back finds each line whole, with one end for every reader of lines.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_one_line_of_json() {
    let (prepared, model) = (Prepared::new().await, model().await);
    let (mut reader, writer) = pipe().unwrap();
    let read = std::thread::spawn(move || {
        let mut log = String::new();
        reader.read_to_string(&mut log).unwrap();
        log
    });
    let mut child = prepared.start_logging(&model, writer.into(), &LOGS).await;
    let agent = HeaderValue::from_bytes("a\u{2028}b\u{85}c".as_bytes()).unwrap();
    for path in ["/nowhere/%E2%80%A8%C2%85%0A%0D", "/npcs?q=%E2%80%A8%C2%85%0A%0D"] {
        child.request(Method::GET, path).header("user-agent", agent.clone()).send().await.unwrap();
    }
    child.terminate().await;
    assert!(child.stopped().await);
    let log = read.join().unwrap();
    assert!(log.lines().count() > 10, "{log}");
    assert!(!log.contains(['\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{b}', '\u{c}', '\u{1e}']), "{log:?}");
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(line["level"].is_string(), "{line}");
    }
}

/// At `debug`, a line tells the request, the turn, and the call of the model or the tool during which it was written.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_tells_during_what_it_was_written() {
    let (prepared, model) = (Prepared::new().await, model().await);
    let child = prepared.start_with(&model, &LOGS).await;
    let call = Reply::tool(
        "NPC_memorize",
        json!({ "player_id": "player_alice", "memory_string": "Alice asked about the storm." }),
    );
    model.set_script(Script::replies([call, Reply::text("Aye.")]));
    let said = json!({ "player_id": "player_alice", "action": "I ask about the storm." });
    let turn = child.post("/npcs/innkeeper_bob/turns", said).await.expect("an answer").expect(200).body;
    assert_eq!(turn["tool_calls"][0]["status"], "succeeded", "{turn}");
    let log = child.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let spans: Vec<Vec<Value>> = lines.filter_map(|line| Some(line["spans"].as_array()?.clone())).collect();
    let name_of = |span: &Value| span["name"].as_str().unwrap_or_default().to_owned();
    for innermost in ["model_call", "tool_call"] {
        let named = spans.iter().find(|spans| spans.last().is_some_and(|span| span["name"] == innermost));
        let named = named.unwrap_or_else(|| panic!("no line of a {innermost}"));
        assert_eq!(named.iter().map(name_of).collect::<Vec<_>>(), ["request", "turn", innermost], "{named:?}");
        assert_eq!(named[0]["method"], "POST");
        assert!(named[0]["request_id"].is_string() && named[1]["turn_id"] == turn["id"], "{named:?}");
    }
    let tools = spans.iter().flatten().filter(|span| span["name"] == "tool_call");
    assert!(tools.clone().count() > 0 && tools.clone().all(|span| span["tool"].is_string()), "{spans:?}");
}

/// Standard output may be full too. A server goes on, and a command fails without a panic, because its result is lost.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_printed_may_be_lost_too() {
    let (prepared, model) = (Prepared::new().await, model().await);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new(program("tavernkeep"))
        .arg("serve")
        .env_clear()
        .env("DATABASE_URL", &prepared.db.url)
        .env("TAVERNKEEP_SECRET_KEY", SECRET)
        .env("TAVERNKEEP_BIND", format!("127.0.0.1:{port}"))
        .env("LLM_API_ENDPOINT", model.base_url())
        .env("LLM_MODEL_NAME", "rehearsal")
        .stdin(Stdio::null())
        .stdout(full())
        .stderr(full())
        .spawn()
        .unwrap();
    let url = format!("http://127.0.0.1:{port}/readyz");
    until("it is ready", || async { reqwest::get(&url).await.is_ok_and(|answer| answer.status() == 200) }).await;
    let killed = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert!(killed.success() && server.wait().unwrap().success());
    let command = |arguments: &[&str], out: Stdio| {
        let mut command = Command::new(program("tavernkeep"));
        command.args(arguments).env("DATABASE_URL", &prepared.db.url).env("TAVERNKEEP_SECRET_KEY", SECRET);
        command.stdin(Stdio::null()).stdout(out).output().unwrap()
    };
    let made = ["key", "create", "--tenant", "acme", "--scopes", "read"];
    assert!(command(&made, Stdio::piped()).status.success());
    for arguments in [&made[..], &["openapi"]] {
        let output = command(arguments, full());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), errors.contains("panicked")), (Some(1), false), "{arguments:?}: {errors}");
    }
    tokio::time::timeout(Duration::from_secs(30), model.stop()).await.unwrap();
}
