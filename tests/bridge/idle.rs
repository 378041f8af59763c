//! Many frontends that say little.

use futures_util::future::join_all;
use serde_json::json;

use super::Socket;
use crate::support::{Prepared, until};

const SOCKETS: usize = 500;

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_idle_frontends_are_cheap() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    let (first, _) = Socket::connect(child.url(), &prepared.credential, json!({ "client_id": "first" })).await;
    let before = child.memory_bytes();
    let mut sockets = vec![first];
    for chunk in (1..SOCKETS).collect::<Vec<_>>().chunks(50) {
        let opened = chunk.iter().map(|i| async move { format!("idle-{i}") });
        let opened = join_all(opened.map(|name| async {
            Socket::connect(child.url(), &prepared.credential, json!({ "client_id": name.await })).await.0
        }));
        sockets.extend(opened.await);
    }
    let bytes = child.memory_bytes().saturating_sub(before);
    println!("{SOCKETS} idle sockets: {} KiB more, {} KiB each", bytes / 1024, bytes / 1024 / SOCKETS as u64);
    assert_eq!(child.counter("tavernkeep_bridge_connections").await, SOCKETS as u64);
    assert!(bytes < 200 * 1024 * SOCKETS as u64, "{bytes}");
    // One word of the AI's reaches them all.
    let post = json!({ "arguments": { "content": "Last orders!" } });
    child.post("/tools/post_message", post).await.unwrap().expect(200);
    join_all(sockets.iter_mut().map(|s| s.next_of("chat_response"))).await;
    drop(sockets);
    until("all to be gone", async || child.counter("tavernkeep_bridge_connections").await == 0).await;
}
