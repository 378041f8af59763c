//! A server that dies while it plans: the same key does it once, says the words once, and finds nothing half done.

use std::time::Duration;

use rehearsal::{Options, Reply, Script};
use serde_json::json;

use crate::support::{Child, Prepared, until};

async fn contents(child: &Child) -> Vec<String> {
    let list = child.get("/messages?limit=200").await.expect(200);
    list.items().iter().map(|m| m["content"].as_str().unwrap().to_owned()).collect()
}

async fn asked(model: &rehearsal::Rehearsal, times: usize) {
    until(&format!("question {times}"), async || model.request_count() >= times).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_was_lost_is_made_again_under_its_key() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(Options::default()).await.unwrap();
    let deed = json!({ "command": "do", "args": { "message": "I climb" } }).to_string();
    let check = json!({ "skill": "athletics", "dc": 10 });
    // It dies while the model plans; then while the narrator speaks, when the mechanics are written.
    for (n, lost) in [
        vec![Reply::text(deed.clone()).held()],
        vec![Reply::text(deed.clone()), Reply::tool("resolve_skill_check", check.clone()), Reply::text("Up!").held()],
    ]
    .into_iter()
    .enumerate()
    {
        let text = format!("I climb the wall {n}");
        let mut child = prepared.start(&model).await;
        let (calls, steps) = (model.request_count(), lost.len());
        model.set_script(Script::replies(lost));
        let act = |child: &Child| {
            let body = json!({ "player_id": "player_alice", "message": text });
            child.request(reqwest::Method::POST, "/act").header("idempotency-key", format!("k{n}")).json(&body)
        };
        let first = tokio::spawn(act(&child).send());
        asked(&model, calls + steps).await;
        child.kill().await;
        assert!(first.await.unwrap().is_err());
        model.set_script(Script::replies([
            Reply::text(deed.clone()),
            Reply::tool("resolve_skill_check", check.clone()),
            Reply::text("Up she goes."),
        ]));
        let child = prepared.start(&model).await;
        // The key is in flight until it is sure that the server is gone that had it.
        let mut done = json!({});
        for _ in 0..2400 {
            done = act(&child).send().await.unwrap().json().await.unwrap();
            if done["code"] != "idempotency_in_flight" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(
            (&done["outcome"], &done["result"]["narration"]),
            (&json!("executed"), &json!("Up she goes.")),
            "{done}"
        );
        let again: serde_json::Value = act(&child).send().await.unwrap().json().await.unwrap();
        assert_eq!(again, done);
        let said = contents(&child).await;
        assert_eq!(said.iter().filter(|line| **line == text).count(), 1, "{said:?}");
        assert_eq!(said.iter().filter(|line| line.contains("Athletics Check")).count(), n + 1, "{said:?}");
        let turns = child.get("/turns?kind=planner").await.expect(200);
        assert_eq!(turns.items().iter().filter(|t| t["status"] == "succeeded").count(), n + 1);
    }
}
