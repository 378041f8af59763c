//! The examples in Python, run as they are: `table.py`, also over a connection that breaks, and `play_check.py`.

use std::{path::Path, process::Output, sync::Arc, time::Duration};

use rehearsal::{Reply, Script};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::Mutex,
};

use crate::support::Server;

const TALE: &str = "The harbour? “Nobody goes there after dark,” says Bob – not since the *Seagull* sank.";

/// Runs an example of Python; none without Python.
async fn python(example: &str, arguments: &[&str], env: &[(&str, &str)]) -> Option<Output> {
    let Ok(version) = std::process::Command::new("python3").arg("--version").output() else {
        println!("not run: there is no python3; ./dev test installs it");
        return None;
    };
    println!("{}", String::from_utf8_lossy(&version.stdout).trim());
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(example).canonicalize().unwrap();
    let mut command = Command::new("python3");
    command.arg(example).args(arguments).env("PYTHONIOENCODING", "utf-8").envs(env.iter().copied()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(180), command.output()).await.expect("it ends").unwrap();
    println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Some(output)
}

fn printed(output: &Output) -> String {
    assert!(output.status.success());
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Where a connection breaks.
#[derive(Clone, Copy)]
enum Cut {
    /// When the answer begins: the request was heard, and nothing of the answer is.
    BeforeTheAnswer,
    /// In the middle of the event in which this stands.
    After(&'static str),
}

/// A proxy that breaks connections, each cut once and in their order, and leaves all others alone.
async fn breaking_proxy(to: &str, cuts: &[Cut]) -> (String, Arc<Mutex<Vec<Cut>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let to = to.strip_prefix("http://").unwrap().to_owned();
    let left = Arc::new(Mutex::new(cuts.iter().rev().copied().collect::<Vec<_>>()));
    let cuts = left.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&to).await.unwrap();
            tokio::spawn(carry(client, server, cuts.clone()));
        }
    });
    (url, left)
}

async fn carry(client: TcpStream, server: TcpStream, cuts: Arc<Mutex<Vec<Cut>>>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let (mut bytes, mut told) = ([0; 64], Vec::new());
    while let Ok(n @ 1..) = from_server.read(&mut bytes).await {
        told.extend_from_slice(&bytes[..n]);
        let mut cuts = cuts.lock().await;
        let is_cut = match cuts.last() {
            Some(Cut::BeforeTheAnswer) => true,
            Some(Cut::After(text)) => told.windows(text.len()).any(|window| window == text.as_bytes()),
            None => false,
        };
        if is_cut {
            cuts.pop();
            return;
        }
        drop(cuts);
        if to_client.write_all(&bytes[..n]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_in_a_terminal_talks_to_an_npc() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let remember = json!({ "player_id": "player_alice", "memory_string": "Asked about the harbour." });
    let script = || {
        let called = Reply::tool("NPC_memorize", remember.clone()).with_text("Bob leans closer.");
        Script::replies([called, Reply::text(TALE).delta_chars(7)])
    };
    let alice = json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": "player_alice" });
    let player = tenant.token(alice).await.credential;
    for credential in [&tenant.credential, &player] {
        server.model.set_script(script());
        let env = [("TAVERNKEEP_URL", server.url.as_str()), ("TAVERNKEEP_KEY", credential)];
        let Some(output) = python("table.py", &["I ask about the harbour."], &env).await else { return };
        let printed = printed(&output);
        let (spoken, kept) = printed.split_once("\n-- kept:\n").unwrap();
        assert!(spoken.starts_with("Bob leans closer.\n[{\"") && spoken.contains("\"NPC_memorize\""), "{spoken}");
        assert!(spoken.contains("\"succeeded\"") && spoken.ends_with(&format!("]\n\n\n{TALE}")), "{spoken}");
        assert!(kept.starts_with("Alice: I ask about the harbour.\nInnkeeper Bob: Bob leans closer."), "{kept}");
        assert!(kept.trim_end().ends_with(TALE), "{kept}");
    }
    let env = [("TAVERNKEEP_URL", server.url.as_str()), ("TAVERNKEEP_KEY", player.as_str())];
    let refused = python("table.py", &["--npc", "nobody", "Hello?"], &env).await.unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).starts_with("404: "), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_in_a_terminal_has_a_game_master() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    server.model.set_script(Script::replies([
        Reply::tool("roll_dice", json!({ "rolls": [{ "formula": "2d6+3" }] })),
        Reply::text("The door gives way."),
    ]));
    let env = [("TAVERNKEEP_URL", server.url.as_str()), ("TAVERNKEEP_KEY", tenant.credential.as_str())];
    let Some(output) = python("table.py", &["--npc", "", "I open the cellar door."], &env).await else { return };
    let printed = printed(&output);
    assert!(printed.contains("\"roll_dice\"") && printed.contains("\"total\": "), "{printed}");
    assert!(printed.contains("The door gives way.\n-- kept:\n"), "{printed}");
    assert!(printed.trim_end().ends_with("Game Master: The door gives way."), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_prints_is_whole_over_a_connection_that_breaks() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let tale = TALE.repeat(3);
    let slow = Reply::text(&tale).delta_chars(5).chunk_bytes(120).chunk_delay_ms(10);
    server.model.set_script(Script::always(slow));
    for cuts in [
        &[Cut::After("event: text.delta")][..],
        &[Cut::BeforeTheAnswer, Cut::After("turn.started"), Cut::After("Seagull")],
        &[Cut::After("turn.started"), Cut::After("Nobody"), Cut::After("event: turn.completed")],
    ] {
        let (url, left) = breaking_proxy(&server.url, cuts).await;
        let env = [("TAVERNKEEP_URL", url.as_str()), ("TAVERNKEEP_KEY", tenant.credential.as_str())];
        let Some(output) = python("table.py", &["I ask about the harbour."], &env).await else { return };
        let printed = printed(&output);
        assert!(printed.starts_with(&format!("{tale}\n-- kept:\n")), "{printed}");
        assert!(left.lock().await.is_empty(), "the connection broke");
    }
    assert_eq!(world.get("/turns").await.expect(200).items().len(), 3, "none was asked for twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_through_one_turn_finds_all_as_documented() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let env = [("TAVERNKEEP_URL", server.url.as_str()), ("TAVERNKEEP_KEY", tenant.credential.as_str())];
    let Some(output) = python("play_check.py", &[], &env).await else { return };
    let printed = printed(&output);
    assert!(printed.ends_with("play-check: all is as documented\n"), "{printed}");
    assert!(!printed.contains("WRONG"), "{printed}");
    // It fails where something is otherwise.
    let player = json!({ "scopes": ["read", "play"] });
    let weak = tenant.token(player).await.credential;
    let env = [("TAVERNKEEP_URL", server.url.as_str()), ("TAVERNKEEP_KEY", weak.as_str())];
    assert_eq!(python("play_check.py", &[], &env).await.unwrap().status.code(), Some(1));
}
