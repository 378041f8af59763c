//! `examples/foundry-bridge.js`, run by Node: it rolls the AI's dice, keeps a fight, and hears what is said.

use std::{path::Path, process::Stdio, time::Duration};

use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{ChildStdout, Command},
};

use crate::support::Server;

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Value {
    let line = tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await.expect("it says something");
    serde_json::from_str(&line.unwrap().expect("it goes on")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_client_plays() {
    let version = std::process::Command::new("node").arg("--version").output();
    let Ok(version) = version else {
        println!("not run: there is no node; ./dev test installs it");
        return;
    };
    println!("node {}", String::from_utf8_lossy(&version.stdout).trim());
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let url = format!("{}/v1/campaigns/port-town/bridge", server.url.replacen("http", "ws", 1));
    let mut node = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/foundry-bridge.js").canonicalize().unwrap())
        .arg(url)
        .env("TAVERNKEEP_KEY", &tenant.credential)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines();
    let connected = next(&mut lines).await;
    let session = connected["session_id"].as_str().unwrap();
    let said = world.get("/messages").await.expect(200);
    assert_eq!(said.items()[0]["content"], "Is anyone there?");
    server.model.set_script(Script::replies([
        Reply::tool(
            "roll_dice",
            json!({ "rolls": [{ "formula": "2d6 + 3" }, { "formula": "1d20-1" }, { "formula": "4d6kh3" }] }),
        )
        .with_tool("get_encounter", json!({})),
        Reply::text("The goblin grins."),
    ]));
    let turn = world.post(&format!("/sessions/{session}/turns"), json!({})).await.expect(200).body;
    let rolled = &turn["tool_calls"][0]["result"];
    assert_eq!(rolled["source"], "frontend", "{turn}");
    let success: Vec<_> = rolled["results"].as_array().unwrap().iter().map(|r| &r["success"]).collect();
    assert_eq!(success, [&json!(true), &json!(true), &json!(false)], "{rolled}");
    let fight = &turn["tool_calls"][1]["result"];
    assert_eq!((&fight["round"], fight.get("stale")), (&json!(2), None));
    assert_eq!(
        next(&mut lines).await,
        json!({ "kind": "chat", "speaker": "Game Master", "content": "The goblin grins." })
    );
    // The server stops: it says so, and would come back.
    server.app.stop();
    assert_eq!(next(&mut lines).await["code"], 1001);
}
