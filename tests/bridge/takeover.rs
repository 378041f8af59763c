//! Many frontends of one session at once: one of them has it in the end, and nobody is told that they lost what they have.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use sqlx::{Executor, Row};

use super::Socket;
use crate::support::Server;

/// A frontend that connects is not taken for one that was taken over while its connection is being written, though the server
/// compares its connections with the database meanwhile; and one whose session is not taken in the end keeps it.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_written_connection_takes_a_session() {
    let server = Server::start_with(&[("TAVERNKEEP_BRIDGE_PING_SECONDS", "1")]).await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let (mut old, first) = Socket::connect(&server.url, &tenant.credential, json!({})).await;
    let alive = async |socket: &mut Socket| {
        socket.send(json!({ "type": "ping" })).await;
        assert_eq!(socket.next_of("pong").await["type"], "pong");
    };
    let connect = json!({ "type": "connect", "client_id": "vtt", "token": tenant.credential });
    // What is written of the session's connection is held: the new one waits, while the next beat comes.
    let mut db = server.owner().await;
    let hold = "BEGIN; SELECT FROM bridge_connection FOR UPDATE";
    db.execute(hold).await.unwrap();
    let mut new = Socket::open(&server.url).await;
    new.send(connect.clone()).await;
    server.db.somebody_waits().await;
    old.beat().await;
    alive(&mut old).await;
    db.execute("COMMIT").await.unwrap();
    let connected = new.next().await;
    assert_eq!((&connected["type"], &connected["data"]["session_id"]), (&json!("connected"), &first["session_id"]));
    assert_eq!(old.closed().await, 4409);
    alive(&mut new).await;
    // Held for good: the newest gives up, and the one before it goes on.
    db.execute(hold).await.unwrap();
    let mut newest = Socket::open(&server.url).await;
    newest.send(connect).await;
    {
        let mut gives_up = std::pin::pin!(newest.closed());
        let code = loop {
            tokio::select! {
                code = &mut gives_up => break code,
                () = tokio::time::sleep(Duration::from_millis(250)) => alive(&mut new).await,
            }
        };
        assert_ne!(code, 4409);
    }
    alive(&mut new).await;
    db.execute("COMMIT").await.unwrap();
    alive(&mut new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_connect_at_once_one_stays() {
    let server = Server::start_with(&[("TAVERNKEEP_BRIDGE_PING_SECONDS", "1")]).await;
    let replica = Server::on(server.db.clone(), &[("TAVERNKEEP_BRIDGE_PING_SECONDS", "1")]).await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut db = server.owner().await;
    for _ in 0..3 {
        let all = (0..12).map(|n| {
            let (url, token) = (if n % 2 == 0 { &server.url } else { &replica.url }, &tenant.credential);
            async move { Socket::connect(url, token, json!({})).await }
        });
        let mut lost = 0;
        let mut stays = None;
        let written = async |db: &mut sqlx::PgConnection| -> String {
            sqlx::query("SELECT connection_id::text FROM bridge_connection").fetch_one(db).await.unwrap().get(0)
        };
        let connected = join_all(all).await;
        let last = written(&mut db).await;
        for (mut socket, data) in connected {
            if data["connection_id"] == last.as_str() {
                stays = Some(socket);
            } else {
                assert_eq!(socket.closed().await, 4409);
                lost += 1;
            }
        }
        assert_eq!(lost, 11);
        let mut stays = stays.expect("the one that the database has");
        // Also after the next beats.
        for _ in 0..2 {
            stays.beat().await;
            stays.send(json!({ "type": "ping" })).await;
            stays.next_of("pong").await;
        }
    }
}
