//! What a client that says nothing, or too slowly, can hold of the server: byte by byte, over sockets.

use std::{net::SocketAddr, time::Duration};

use rehearsal::{Reply, Script};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::support::{Server, sse::Events};

/// Longer than any deadline of the server's, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);
const HASTY: (&str, &str) = ("TAVERNKEEP_HEAD_TIMEOUT_MS", "3000");

/// A socket from one of this machine's addresses.
async fn from(server: &Server, own: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(own.parse().unwrap(), 0)).unwrap();
    socket.connect(server.url.strip_prefix("http://").unwrap().parse().unwrap()).await.unwrap()
}

/// All that comes until the server closes the connection.
async fn rest(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is taken away is an end as well.
    let _ = timeout(PATIENCE, socket.read_to_end(&mut bytes)).await.expect("the connection is held for ever");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What comes until a text has come.
async fn until(socket: &mut TcpStream, text: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(text) {
        let mut bytes = [0; 4096];
        let n = timeout(PATIENCE, socket.read(&mut bytes)).await.expect("an answer").unwrap();
        assert!(n > 0, "closed after {seen:?}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
    seen
}

/// A connection whose first request was answered with this text. On a slow machine a hasty server may be done with it before it came.
async fn answered(server: &Server, request: &str, text: &str) -> TcpStream {
    for _ in 0..100 {
        let mut socket = from(server, "127.0.0.1").await;
        let mut seen = String::new();
        let _ = socket.write_all(request.as_bytes()).await;
        loop {
            let mut bytes = [0; 4096];
            let n = timeout(PATIENCE, socket.read(&mut bytes)).await.expect("an answer").unwrap_or(0);
            seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
            if seen.contains(text) {
                return socket;
            }
            if n == 0 {
                break;
            }
        }
    }
    panic!("never answered with {text}");
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_not_waited_for() {
    let server = Server::start_with(&[HASTY]).await;
    let mut nothing = from(&server, "127.0.0.1").await;
    let mut half = from(&server, "127.0.0.1").await;
    let _ = half.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ").await;
    // After an answer, the next head.
    let mut second = answered(&server, HEALTH, "HTTP/1.1 200").await;
    let _ = second.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n").await;
    // After a refusal, a body that does not end.
    let head = "POST /v1/campaigns HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{   \r\n";
    let mut body = answered(&server, head, "unauthenticated").await;
    let ((), (), (), ()) = tokio::join!(
        async { drop(rest(&mut nothing).await) },
        async { drop(rest(&mut half).await) },
        async { drop(rest(&mut second).await) },
        async { drop(rest(&mut body).await) },
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_waits_for_the_next_request_longer_than_for_its_head() {
    let hasty =
        [("TAVERNKEEP_HEAD_TIMEOUT_MS", "500"), ("TAVERNKEEP_KEEP_ALIVE_MS", "600000"), ("TAVERNKEEP_TURNS_MAX", "1")];
    let server = Server::start_with(&hasty).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::always(Reply::text("Aye.").held()));
    let turn = world.path("/npcs/innkeeper_bob/turns");
    let body = json!({ "player_id": "player_alice", "action": "Hello." });
    let first = tenant.request(reqwest::Method::POST, &turn).json(&body).send();
    let first = tokio::spawn(first);
    crate::support::until("the model's call", async || server.model.request_count() == 1).await;
    let second = format!("POST {turn} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{{}}");
    let mut refused = answered(&server, &second, "HTTP/1.1 503").await;
    let mut kept = answered(&server, HEALTH, "HTTP/1.1 200").await;
    // As long as it takes until heads that began later, and did not end, are taken away one after the other.
    for _ in 0..3 {
        let mut half = answered(&server, HEALTH, "HTTP/1.1 200").await;
        half.write_all(b"GET").await.unwrap();
        rest(&mut half).await;
    }
    kept.write_all(HEALTH.as_bytes()).await.unwrap();
    until(&mut kept, "HTTP/1.1 200").await;
    // So does the connection of a request that found no room.
    refused.write_all(HEALTH.as_bytes()).await.unwrap();
    until(&mut refused, "HTTP/1.1 200").await;
    server.model.let_go(1);
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    let server = Server::start_with(&[("TAVERNKEEP_KEEP_ALIVE_MS", "1000")]).await;
    let mut left = answered(&server, HEALTH, "HTTP/1.1 200").await;
    rest(&mut left).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_takes_too_long_is_told_so() {
    let server = Server::start_with(&[("TAVERNKEEP_BODY_TIMEOUT_MS", "300")]).await;
    let tenant = server.tenant("acme").await;
    for length in ["content-length: 500", "transfer-encoding: chunked"] {
        let mut socket = from(&server, "127.0.0.1").await;
        let head = format!(
            "POST /v1/campaigns HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n{length}\r\n\r\n",
            tenant.credential
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let answer = until(&mut socket, "request_timeout").await;
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("application/problem+json"), "{answer}");
        rest(&mut socket).await;
    }
    // So is a form's.
    let mut socket = from(&server, "127.0.0.1").await;
    socket.write_all(b"POST /play/x/enter HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 50\r\n\r\nt").await.unwrap();
    assert!(rest(&mut socket).await.starts_with("HTTP/1.1 4"));
    tenant.post("/v1/campaigns", json!({ "name": "In time" })).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_may_be_silent() {
    let server = Server::start_with(&[HASTY]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut events = Events::open(tenant.request(reqwest::Method::GET, &world.path("/events")), None).await;
    // As long as it takes until a connection without a stream is taken away.
    let mut idle = answered(&server, HEALTH, "HTTP/1.1 200").await;
    let _ = idle.write_all(b"GET").await;
    rest(&mut idle).await;
    // A server in such haste may find any client late on a busy machine.
    for _ in 0..50 {
        if world.post("/scenes", json!({ "name": "Cellar" })).await.status != 408 {
            break;
        }
    }
    loop {
        let event = timeout(PATIENCE, events.next()).await.expect("the stream goes on").expect("the stream goes on");
        if event.data.to_string().contains("Cellar") {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_holds_only_so_many() {
    let server = Server::start_with(&[("TAVERNKEEP_CONNECTIONS_PER_ADDRESS_MAX", "4")]).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut socket = from(&server, "127.0.0.2").await;
        socket.write_all(HEALTH.as_bytes()).await.unwrap();
        until(&mut socket, "HTTP/1.1 200").await;
        held.push(socket);
    }
    let mut fifth = from(&server, "127.0.0.2").await;
    let _ = fifth.write_all(HEALTH.as_bytes()).await;
    assert_eq!(rest(&mut fifth).await, "");
    // Others have room, and so has the address once it lets go of one.
    server.anonymous().get("/healthz").await.expect(200);
    held.pop();
    for _ in 0..200 {
        let mut again = from(&server, "127.0.0.2").await;
        let _ = again.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        if rest(&mut again).await.starts_with("HTTP/1.1 200") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("its place is never free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxys_connections_are_not_counted() {
    let limits = [("TAVERNKEEP_CONNECTIONS_PER_ADDRESS_MAX", "2"), ("TAVERNKEEP_TRUSTED_PROXIES", "127.0.0.2")];
    let server = Server::start_with(&limits).await;
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut socket = from(&server, "127.0.0.2").await;
        socket.write_all(HEALTH.as_bytes()).await.unwrap();
        until(&mut socket, "HTTP/1.1 200").await;
        held.push(socket);
    }
}
