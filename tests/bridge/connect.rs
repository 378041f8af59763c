//! Who may connect, as what, and what ends a connection.

use std::time::Duration;

use edge::caller::Scope;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::Socket;
use crate::support::{Rows, Server, counts, until};

/// What the server says to a `connect`, and the code it closes with.
async fn refused(server: &Server, connect: Value) -> (String, u16) {
    let mut socket = Socket::open(&server.url).await;
    socket.send(connect).await;
    let error = socket.next().await;
    assert_eq!(error["type"], "error", "{error}");
    (error["data"]["code"].as_str().unwrap().to_owned(), socket.closed().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_finds_or_makes_its_session() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let about =
        json!({ "world_info": { "id": "w", "title": "Keel" }, "user_info": { "name": "Maya" }, "dice": "frontend" });
    let (mut socket, first) = Socket::connect(&server.url, &tenant.credential, about).await;
    assert_eq!(
        (&first["client_id"], &first["role"], &first["dice"]),
        (&json!("vtt"), &json!("gm"), &json!("frontend"))
    );
    assert_eq!((&first["protocol_version"], &first["ping_seconds"]), (&json!("1.0"), &json!(20)));
    let id = first["session_id"].as_str().unwrap();
    let session = world.get(&format!("/sessions/{id}")).await.expect(200).body;
    assert_eq!(session["extensions"]["world_info"]["title"], "Keel");
    socket.send(json!({ "type": "ping", "request_id": "p" })).await;
    let pong = socket.next().await;
    assert_eq!((&pong["type"], &pong["request_id"]), (&json!("pong"), &json!("p")));
    assert!(pong["timestamp"].is_string());

    // Again, under the same name and by the session's id: the same one, as it was; the older connection has to go.
    let more = json!({ "session_id": id });
    let (mut newer, second) = Socket::connect(&server.url, &tenant.credential, more).await;
    assert_eq!((&second["session_id"], &second["dice"]), (&first["session_id"], &json!("frontend")));
    assert_eq!(socket.closed().await, 4409);
    newer.send(json!({ "type": "ping" })).await;
    assert_eq!(newer.next().await["type"], "pong");
    let unchanged = world.get(&format!("/sessions/{id}")).await.expect(200).body;
    assert_eq!(unchanged["version"], session["version"]);
    // Another name is another session; the members may stand in `data` as well.
    let mut other = Socket::open(&server.url).await;
    let data = json!({ "client_id": "other", "token": tenant.credential, "role": "assistant" });
    other.send(json!({ "type": "connect", "data": data })).await;
    let other = other.next().await;
    assert_ne!(other["data"]["session_id"], first["session_id"]);
    assert_eq!(other["data"]["role"], "assistant");
    assert_eq!(world.get("/sessions").await.expect(200).items().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_do_not_fit_are_told_so_and_change_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let other = server.tenant("other").await;
    let reader = tenant.with_scopes(&[Scope::Read, Scope::Write, Scope::Tools, Scope::Admin]).await;
    tenant.post("/v1/campaigns", json!({ "slug": "inland", "name": "Inland" })).await.expect(201);
    let inland = tenant.token(json!({ "campaign": "inland" })).await;
    let alice = tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice" })).await;
    let player = tenant.with_scopes(&[Scope::Play]).await;
    let before = counts(&server).await;
    let connect = |token: &str| json!({ "type": "connect", "client_id": "vtt", "token": token });
    let with = |token: &str, more: Value| {
        let mut connect = connect(token);
        connect.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        connect
    };
    for (frame, code, close) in [
        (connect(""), "AUTH_REQUIRED", 4401),
        (connect("tk_abcdefgh_nonsense"), "AUTH_REQUIRED", 4401),
        (connect(&format!("tk_abcdefgh_{}", "x".repeat(43))), "AUTH_REQUIRED", 4401),
        (connect("a.b.c"), "AUTH_REQUIRED", 4401),
        (json!({ "type": "connect", "token": tenant.credential }), "AUTH_REQUIRED", 4401),
        (json!({ "type": "connect", "client_id": "vtt" }), "AUTH_REQUIRED", 4401),
        (connect(&reader.credential), "forbidden", 4403),
        (connect(&other.credential), "not_found", 4404),
        (connect(&inland.credential), "not_found", 4404),
        (with(&player.credential, json!({ "role": "gm" })), "forbidden", 4403),
        (with(&player.credential, json!({ "dice": "frontend" })), "forbidden", 4403),
        (with(&alice.credential, json!({ "player_id": "player_mallory" })), "forbidden", 4403),
        (with(&alice.credential, json!({ "role": "gm" })), "forbidden", 4403),
        (with(&tenant.credential, json!({ "role": "king" })), "validation_failed", 1008),
        (with(&tenant.credential, json!({ "session_id": "s" })), "validation_failed", 1008),
        (with(&tenant.credential, json!({ "session_id": uuid::Uuid::nil() })), "validation_failed", 1008),
        (with(&tenant.credential, json!({ "client_id": "x".repeat(65) })), "validation_failed", 1008),
        (with(&tenant.credential, json!({ "client_id": 7 })), "validation_failed", 1008),
        (with(&tenant.credential, json!({ "player_id": "nobody" })), "validation_failed", 1008),
        (with(&tenant.credential, json!({ "world_info": "x".repeat(5000) })), "validation_failed", 1008),
    ] {
        assert_eq!(refused(&server, frame.clone()).await, (code.to_owned(), close), "{frame}");
    }
    assert_eq!(counts(&server).await, before);
    // Without `gm` one is a player's frontend; a player's token its own character's.
    let (_, joined) = Socket::connect(&server.url, &player.credential, json!({ "client_id": "phone" })).await;
    assert_eq!((&joined["role"], &joined["dice"]), (&json!("player"), &json!("server")));
    let own = json!({ "client_id": "alice", "player_id": "player_alice" });
    let (_, joined) = Socket::connect(&server.url, &alice.credential, own.clone()).await;
    assert!(joined["player_id"].is_string());
    Socket::connect(&server.url, &alice.credential, own).await;
    // And never the game master's, nor another's.
    Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "table" })).await;
    for session in ["table", "phone"] {
        let frame = with(&alice.credential, json!({ "client_id": session }));
        assert_eq!(refused(&server, frame).await, ("forbidden".to_owned(), 4403), "{session}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_frame_is_a_connect_and_comes_soon() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    for first in [
        json!({ "type": "ping" }).to_string(),
        json!({ "type": "chat_message", "data": { "content": "x" } }).to_string(),
        "not json".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
    ] {
        let mut socket = Socket::open(&server.url).await;
        futures_util::SinkExt::send(&mut socket.0, Message::text(first.clone())).await.unwrap();
        assert_eq!(socket.next().await["type"], "error", "{first}");
        assert_eq!(socket.closed().await, 1008, "{first}");
    }
    // Who says nothing is waited for a while, and no longer.
    let started = std::time::Instant::now();
    let mut silent = Socket::open(&server.url).await;
    assert_eq!(silent.next().await["type"], "error");
    assert_eq!(silent.closed().await, 1008);
    assert!(started.elapsed() >= Duration::from_secs(4), "{:?}", started.elapsed());
    // What is no WebSocket is told so.
    tenant.get("/v1/campaigns/port-town/bridge").await.problem(400, "bad_request");
    server.anonymous().get("/v1/campaigns/port-town/bridge").await.problem(400, "bad_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_connect_from_the_tenants_origins_only() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    tenant.patch("/v1/tenant", json!({ "origins": ["https://vtt.example"] })).await.expect(200);
    let connect = json!({ "type": "connect", "client_id": "vtt", "token": tenant.credential });
    until("what is known of the tenant to be new", async || {
        let mut socket = Socket::open_from(&server.url, "port-town", Some("https://vtt.example")).await;
        socket.send(connect.clone()).await;
        socket.next().await["type"] == "connected"
    })
    .await;
    for (origin, kind) in [
        ("https://vtt.example", "connected"),
        ("https://evil.example", "error"),
        ("null", "error"),
        // A page of the server's own; some clients that are no browsers send it, too.
        (server.url.as_str(), "connected"),
    ] {
        let mut socket = Socket::open_from(&server.url, "port-town", Some(origin)).await;
        socket.send(connect.clone()).await;
        assert_eq!(socket.next().await["type"], kind, "{origin}");
        if kind == "error" {
            assert_eq!(socket.closed().await, 4403);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_so_many_connections_and_a_server_stops_with_a_word() {
    let server = Server::start_with(&[("TAVERNKEEP_BRIDGE_CONNECTIONS_MAX", "2")]).await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let (mut a, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "a" })).await;
    let (mut b, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "b" })).await;
    let third = json!({ "type": "connect", "client_id": "c", "token": tenant.credential });
    assert_eq!(refused(&server, third.clone()).await, ("rate_limited".to_owned(), 4429));
    // One's own place can always be taken over.
    let (mut again, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "b" })).await;
    assert_eq!(b.closed().await, 4409);
    drop(a.0.close(None).await);
    a.closed().await;
    let (mut c, _) = loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut socket = Socket::open(&server.url).await;
        socket.send(third.clone()).await;
        let first = socket.next().await;
        if first["type"] == "connected" {
            break (socket, first);
        }
    };
    server.app.stop();
    assert_eq!((again.closed().await, c.closed().await), (1001, 1001));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_silent_revoked_or_expired_is_let_go() {
    let server = Server::start_with(&[("TAVERNKEEP_BRIDGE_PING_SECONDS", "3")]).await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let doomed = tenant.with_scopes(&[Scope::Play]).await;
    let narrowed = tenant.with_scopes(&[Scope::Play]).await;
    let (mut kept, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "kept" })).await;
    let (mut revoked, _) = Socket::connect(&server.url, &doomed.credential, json!({ "client_id": "revoked" })).await;
    let (mut changed, _) = Socket::connect(&server.url, &narrowed.credential, json!({ "client_id": "changed" })).await;
    let (mut deleted, gone) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "deleted" })).await;
    let (silent, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "silent" })).await;
    let prefix = |key: &str| key[3..11].to_owned();
    tenant.delete(&format!("/v1/api-keys/{}", prefix(&doomed.credential))).await.expect(204);
    tenant
        .patch(&format!("/v1/api-keys/{}", prefix(&narrowed.credential)), json!({ "scopes": ["read"] }))
        .await
        .expect(200);
    tenant
        .delete(&format!("/v1/campaigns/port-town/sessions/{}", gone["session_id"].as_str().unwrap()))
        .await
        .expect(204);
    let told = revoked.next().await;
    assert_eq!(told["data"]["code"], "AUTH_REQUIRED");
    assert_eq!(revoked.closed().await, 4401);
    assert_eq!(changed.closed().await, 4403);
    assert_eq!(deleted.closed().await, 4409);
    // Nobody reads `silent`, so nobody answers the pings it gets; those who read on stay.
    until("the silent one to be let go", async || {
        kept.send(json!({ "type": "ping" })).await;
        assert_eq!(kept.next().await["type"], "pong");
        let scrape = server.anonymous().get("/metrics").await.text;
        scrape.contains("tavernkeep_bridge_closed_total{reason=\"silent\"}")
    })
    .await;
    // It reads pings that it can no longer answer, and may not get as far as the close.
    let mut silent = silent;
    assert!(matches!(silent.closed().await, 4408 | 1006));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_route_needs_no_credential_to_be_asked_for_one() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "canary").await;
    let mut socket = Socket::open_from(&server.url, &rows.campaign, None).await;
    socket.send(json!({ "type": "connect", "client_id": "vtt", "token": "x" })).await;
    let error = socket.next().await;
    assert!(!error.to_string().contains("canary"));
    for campaign in ["nowhere", "%00", "%FF"] {
        let mut socket = Socket::open_from(&server.url, campaign, None).await;
        socket.send(json!({ "type": "connect", "client_id": "vtt", "token": tenant.credential })).await;
        assert_eq!(socket.next().await["type"], "error");
        assert!(matches!(socket.closed().await, 4404 | 1008), "{campaign}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_writes_nothing_more() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let doomed = tenant.with_scopes(&[Scope::Play]).await;
    let (mut socket, _) = Socket::connect(&server.url, &doomed.credential, json!({ "client_id": "doomed" })).await;
    tenant.delete(&format!("/v1/api-keys/{}", &doomed.credential[3..11])).await.expect(204);
    socket.send(json!({ "type": "chat_message", "data": { "content": "One more thing." } })).await;
    assert_eq!(socket.next().await["data"]["code"], "AUTH_REQUIRED");
    assert_eq!(socket.closed().await, 4401);
    assert!(world.get("/messages").await.expect(200).items().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_cannot_take_every_place() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let silent = futures_util::future::join_all((0..128).map(|_| Socket::open(&server.url))).await;
    let url = format!("{}/v1/campaigns/port-town/bridge", server.url.replacen("http", "ws", 1));
    let refused = tokio_tungstenite::connect_async(url).await.unwrap_err();
    assert!(refused.to_string().contains("503"), "{refused}");
    drop(silent);
    // Places that are left are free again.
    let (mut socket, _) = loop {
        if let Ok((socket, _)) = tokio_tungstenite::connect_async(format!(
            "{}/v1/campaigns/port-town/bridge",
            server.url.replacen("http", "ws", 1)
        ))
        .await
        {
            let mut socket = Socket(socket);
            socket.send(json!({ "type": "connect", "client_id": "vtt", "token": tenant.credential })).await;
            break (socket, ());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(socket.next().await["type"], "connected");
}

/// A session that a game master made is theirs: a key without `gm` does not play it.
#[tokio::test(flavor = "multi_thread")]
async fn a_game_masters_session_is_not_joined_by_others() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (_masters, connected) = Socket::connect(&server.url, &tenant.credential, json!({})).await;
    let bot = tenant.with_scopes(&[Scope::Play]).await;
    let connect = json!({ "type": "connect", "client_id": "vtt", "token": bot.credential });
    assert_eq!(refused(&server, connect).await, ("forbidden".to_owned(), 4403));
    // What is not a player's words is not reported by it either, over REST as little as here.
    let session = connected["session_id"].as_str().unwrap();
    let path = world.path(&format!("/sessions/{session}/events"));
    for (kind, data, status) in [
        ("chat_message", json!({ "content": "Hello." }), 200),
        ("combat_state", super::fight(1), 403),
        ("world_state", json!({ "session_info": { "gm_name": "Me" } }), 403),
    ] {
        bot.post(&path, json!({ "events": [{ "type": kind, "data": data }] })).await.expect(status);
    }
}
