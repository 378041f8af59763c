//! More than a server can do: what is too much is refused at once and in the contract's words, and what was begun ends.

use std::time::Duration;

use db::pool::{Need, with_need};
use futures_util::future::join_all;
use rehearsal::{Reply, Script};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::support::{Answer, Prepared, Server, until};

fn is_refusal(answer: &Answer) -> bool {
    if answer.status == 503 {
        assert_eq!(answer.body["code"], "unavailable", "{}", answer.text);
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert!(answer.header("retry-after").parse::<u64>().unwrap() > 0);
        assert!(!answer.header("x-request-id").is_empty());
    }
    answer.status == 503
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_ends_and_the_rest_is_refused() {
    let small = [("DATABASE_CONNECTIONS_MAX", "3"), ("TAVERNKEEP_REQUESTS_MAX", "4"), ("TAVERNKEEP_TURNS_MAX", "6")];
    let server = Server::start_with(&small).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..24 {
        let npc = json!({ "slug": format!("npc_{n}"), "name": "Keeper", "available_tools": ["NPC_memorize"] });
        world.post("/npcs", npc).await.expect(201);
    }
    server.model.set_script(Script::always(Reply::persona().delay_ms(1000)));
    let called = server.model.request_count();
    let names: Vec<String> = (0..24).map(|n| format!("npc_{n}")).collect();
    let turns = join_all(names.iter().map(|npc| tenant.npc_turn("port-town", npc, "player_alice", "I pay.")));
    let reads = join_all((0..60).map(|_| tenant.get("/v1/campaigns")));
    let (turns, reads) = tokio::join!(turns, reads);
    let refused = turns.iter().filter(|turn| is_refusal(turn)).count();
    assert!(refused > 0, "24 turns at once had room");
    for turn in turns.iter().filter(|turn| turn.status != 503) {
        assert_eq!((turn.status, turn.body["status"].as_str()), (200, Some("succeeded")), "{}", turn.text);
    }
    for read in &reads {
        assert!(is_refusal(read) || read.status == 200, "{}", read.text);
    }
    // Nothing was asked of the model for nothing: a turn with a memory is two calls.
    until("the last turn's end", async || server.app.running.count() == 0).await;
    let succeeded = turns.len() - refused;
    assert_eq!(server.model.request_count() - called, 2 * succeeded);
    let failed = tenant.get(&world.path("/turns?status=failed")).await.expect(200);
    assert!(failed.items().is_empty(), "{}", failed.text);
    for path in ["/healthz", "/readyz", "/metrics"] {
        server.anonymous().get(path).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn endings_have_connections_that_newcomers_do_not_take() {
    let server = Server::start_with(&[("DATABASE_CONNECTIONS_MAX", "4"), ("DATABASE_WAIT_MS", "3000")]).await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let remember = json!({ "player_id": "player_alice", "memory_string": "Pays." });
    server.model.set_script(Script::replies([Reply::tool("NPC_memorize", remember).held(), Reply::text("Thanks.")]));
    let called = server.model.request_count();
    let turn = async { tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", "I pay.").await };
    let newcomers = async {
        until("the model's call", async || server.model.request_count() > called).await;
        // All connections that are for beginners, and many who wait for one.
        let pool = server.pool();
        let held = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
        let waiting = join_all((0..10).map(|_| pool.acquire()));
        assert!(waiting.await.iter().all(Result::is_err));
        server.model.let_go(1);
        until("the turn's end", async || server.app.running.count() == 0).await;
        drop(held);
    };
    let (turn, ()) = tokio::join!(turn, newcomers);
    assert_eq!(turn.expect(200).body["status"], "succeeded");
    // Who ends something gets one that newcomers may not have; the last is for whoever comes first.
    let pool = server.pool();
    let _held = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
    let ending = with_need(Need::End, pool.acquire());
    assert!(timeout(Duration::from_secs(60), ending).await.unwrap().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_given_back_is_anybodys() {
    let server = Server::start_with(&[("DATABASE_CONNECTIONS_MAX", "4")]).await;
    let pool = server.pool().clone();
    let held = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
    // Waiters on threads of their own.
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let pool = pool.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async { pool.acquire().await.map(|lease| lease.give_back()).is_ok() })
            })
        })
        .collect();
    until("who waits", async || pool.waiting() >= 4).await;
    drop(held);
    for waiter in waiters {
        assert!(tokio::task::spawn_blocking(move || waiter.join().unwrap()).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_keep_us_waiting_keep_no_place() {
    let server = Server::start_with(&[("TAVERNKEEP_REQUESTS_MAX", "2")]).await;
    let tenant = server.tenant("acme").await;
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut socket = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).await.unwrap();
        let head = format!(
            "POST /v1/campaigns HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: 100\r\n\r\n{{",
            tenant.credential
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        slow.push(socket);
    }
    // Each had a place for a moment, and none has one now.
    for _ in 0..5 {
        until("a place", async || tenant.get("/v1/campaigns").await.status == 200).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_have_room_together() {
    let server = Server::start_with(&[("TAVERNKEEP_BODIES_MIB", "64")]).await;
    let (one, other) = (server.tenant("acme").await, server.tenant("other").await);
    let begun = async |credential: &str, mib: usize| {
        let mut socket = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).await.unwrap();
        let head = format!(
            "POST /v1/campaigns/import HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {credential}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{{",
            mib * 1024 * 1024
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        socket
    };
    let answer = async |socket: &mut TcpStream| {
        let mut bytes = vec![0; 4096];
        let n = timeout(Duration::from_secs(50), socket.read(&mut bytes)).await.expect("an answer").unwrap();
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    };
    let holds = async |mib: usize| server.app.admission.body_bytes() >= mib * 1024 * 1024;
    let _first = begun(&one.credential, 20).await;
    until("the first", async || holds(20).await).await;
    // A tenant gets half.
    let refused = answer(&mut begun(&one.credential, 20).await).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("\"unavailable\""), "{refused}");
    assert!(refused.to_ascii_lowercase().contains("retry-after: "), "{refused}");
    // Another has room beside it, and it for less.
    let _second = begun(&other.credential, 30).await;
    until("the second", async || holds(50).await).await;
    one.post("/v1/campaigns", json!({ "name": "Small" })).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_pair_costs_no_statement() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options { record_requests_max: 100, ..Default::default() }).await.unwrap();
    let child = prepared.start(&model).await;
    model.set_script(Script::always(Reply::text("Thanks.").held()));
    let first = tokio::spawn(child.turn("innkeeper_bob", "I pay.", None));
    until("the model's call", async || model.request_count() == 1).await;
    // Now and then the key is looked at as well, on a slow machine often.
    let mut free = 0;
    until("five refusals that cost nothing", async || {
        let before = child.counter("tavernkeep_db_statements_total").await;
        child.turn("innkeeper_bob", "And I.", None).await.unwrap().problem(409, "turn_in_progress");
        free += usize::from(child.counter("tavernkeep_db_statements_total").await == before);
        free >= 5
    })
    .await;
    model.let_go(1);
    first.await.unwrap().unwrap().expect(200);
}
