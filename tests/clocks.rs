//! Several servers on one database, on machines whose clocks are wrong: order and time are the database's. The clocks are those of real
//! programs under libfaketime; without it these tests do nothing, and say so.

use std::path::Path;

use base::clock;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};
use tokio::process::Command;
use uuid::Uuid;

use crate::support::{Child, Prepared, SECRET, program, until};

const LIBRARIES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
];

/// The environment of a program whose clock is off. `by` is as libfaketime reads it, such as `-3600`.
fn off(by: &str) -> Option<Vec<(&str, &str)>> {
    let library = LIBRARIES.into_iter().find(|path| Path::new(path).exists());
    if library.is_none() {
        eprintln!("libfaketime is not installed: nothing is tested");
    }
    let monotonic = [("DONT_FAKE_MONOTONIC", "1"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
    Some([("LD_PRELOAD", library?), ("FAKETIME", by), ("RUST_LOG", "warn")].into_iter().chain(monotonic).collect())
}

async fn model() -> rehearsal::Rehearsal {
    rehearsal::start(rehearsal::Options { record_requests_max: 100, ..Default::default() }).await.unwrap()
}

/// The values of a member in a list, page by page.
async fn paged(child: &Child, list: &str, member: &str) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = child.get(&format!("/{list}?sort=-created_at&limit=3{cursor}")).await.expect(200);
        found.extend(page.items().iter().map(|item| item[member].clone()));
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    found.reverse();
    found
}

/// The time of an id, which is its beginning.
fn time_of(id: &Value) -> OffsetDateTime {
    let (seconds, _) = Uuid::try_parse(id.as_str().unwrap()).unwrap().get_timestamp().unwrap().to_unix();
    OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_an_hour_apart_play_one_conversation_in_order() {
    let Some(behind) = off("-3600") else { return };
    let (prepared, model) = (Prepared::new().await, model().await);
    let servers = [prepared.start(&model).await, prepared.start_with(&model, &behind).await];
    model.set_script(Script::replies((0..8).map(|n| Reply::text(format!("Answer {n}.")))));
    for n in 0..8 {
        servers[n % 2].turn("innkeeper_bob", &format!("Question {n}."), None).await.unwrap().expect(200);
    }
    // Each prompt has what was said before, in order.
    let prompt = model.requests().pop().unwrap()["messages"].to_string();
    let said = (0..8).flat_map(|n| [format!("Question {n}."), format!("Answer {n}.")]).collect::<Vec<_>>();
    let places: Vec<Option<usize>> = said.iter().take(15).map(|line| prompt.find(line)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {prompt}");
    let hour = Duration::hours(1);
    for server in &servers {
        assert_eq!(paged(server, "messages", "content").await, said, "as everybody reads it, by pages");
        let actions = paged(server, "turns", "id").await;
        assert_eq!(actions.len(), 8);
        let times: Vec<OffsetDateTime> = actions.iter().map(time_of).collect();
        assert!(times.is_sorted(), "ids have the database's time: {times:?}");
        assert!(times.iter().all(|time| (*time - clock::now()).abs() < hour / 2), "{times:?}");
    }
    assert!(servers[1].log().contains("clock is ahead"), "{}", servers[1].log());
    assert!(!servers[0].log().contains("clock is ahead"), "{}", servers[0].log());
    let metrics = servers[1].get("//metrics").await.expect(200).text;
    let ahead = metrics.lines().find_map(|line| line.strip_prefix("tavernkeep_clock_ahead_seconds ")).unwrap();
    assert!((-3700.0..-3500.0).contains(&ahead.parse::<f64>().unwrap()), "{ahead}");
}

/// A key ends everywhere when it ends, and a token lasts as long as it was made for.
#[tokio::test(flavor = "multi_thread")]
async fn keys_and_tokens_end_at_the_databases_time() {
    let Some(behind) = off("-3600") else { return };
    let Some(ahead) = off("+365d") else { return };
    let (prepared, model) = (Prepared::new().await, model().await);
    let servers = [prepared.start_with(&model, &behind).await, prepared.start_with(&model, &ahead).await];
    let begun = clock::now();
    let key = json!({ "name": "short", "scopes": ["read"], "expires_in_seconds": 20 });
    let key = servers[0].post("//v1/api-keys", key).await.unwrap().expect(201).body["key"].clone();
    let token = servers[1].post("//v1/auth/token", json!({})).await.unwrap().expect(200);
    let token = token.body["access_token"].clone();
    let http = reqwest::Client::new();
    let status = async |server: &Child, credential: &Value| {
        let request = http.get(format!("{}/v1/campaigns", server.url())).bearer_auth(credential.as_str().unwrap());
        request.send().await.unwrap().status().as_u16()
    };
    for server in &servers {
        assert_eq!((status(server, &key).await, status(server, &token).await), (200, 200));
    }
    for server in &servers {
        until("the key to end", async || status(server, &key).await == 401).await;
        assert_eq!(status(server, &token).await, 200);
    }
    let lasted = clock::now() - begun;
    assert!(lasted >= Duration::seconds(19), "{lasted}");
}

/// A machine's clock that is set in the middle of a turn changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_in_the_middle_of_a_turn_changes_nothing() {
    let file = std::env::temp_dir().join(format!("clock-{}", clock::id()));
    let Some(mut env) = off("+0") else { return };
    env.retain(|(name, _)| *name != "FAKETIME");
    env.extend([("FAKETIME_TIMESTAMP_FILE", file.to_str().unwrap()), ("FAKETIME_NO_CACHE", "1")]);
    std::fs::write(&file, "+0").unwrap();
    let (prepared, model) = (Prepared::new().await, model().await);
    let server = prepared.start_with(&model, &env).await;
    for (n, by) in ["-3600", "+365d"].into_iter().enumerate() {
        model.set_script(Script::always(Reply::text(format!("Answer {n}.")).held()));
        let turn = tokio::spawn(server.turn("innkeeper_bob", &format!("Question {n}."), None));
        until("the call", async || model.request_count() == n + 1).await;
        std::fs::write(&file, by).unwrap();
        until("the sign of life", async || server.log().matches("clock is ahead").count() == n + 1).await;
        model.let_go(1);
        assert_eq!(turn.await.unwrap().unwrap().expect(200).body["status"], "succeeded");
        std::fs::write(&file, "+0").unwrap();
        let right = async || {
            let metrics = server.get("//metrics").await.expect(200).text;
            let ahead = metrics.lines().find_map(|line| line.strip_prefix("tavernkeep_clock_ahead_seconds ")).unwrap();
            ahead.parse::<f64>().unwrap().abs() < 5.0
        };
        until("the clock to be right", right).await;
    }
    std::fs::remove_file(&file).unwrap();
    let said = paged(&server, "messages", "content").await;
    assert_eq!(said, ["Question 0.", "Answer 0.", "Question 1.", "Answer 1."]);
    let times: Vec<OffsetDateTime> = paged(&server, "messages", "id").await.iter().map(time_of).collect();
    assert!(times.is_sorted() && times.iter().all(|time| (*time - clock::now()).abs() < Duration::minutes(30)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_tells_a_wrong_clock() {
    let Some(behind) = off("-3600") else { return };
    let prepared = Prepared::new().await;
    for (env, is_wrong) in [(Vec::new(), false), (behind, true)] {
        let done = Command::new(program("tavernkeep"))
            .args(["doctor", "--json"])
            .env_clear()
            .env("DATABASE_URL", &prepared.db.url)
            .env("TAVERNKEEP_SECRET_KEY", SECRET)
            .envs(env)
            .output();
        let told: Value = serde_json::from_slice(&done.await.unwrap().stdout).unwrap();
        let clock = told["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == "clock").unwrap();
        assert_eq!(clock["needs_a_person"], is_wrong, "{clock}");
        assert_eq!(clock["says"].as_str().unwrap().contains("seconds behind the database's"), is_wrong, "{clock}");
    }
}
