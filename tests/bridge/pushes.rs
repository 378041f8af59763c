//! What the AI says reaches the frontends, those it is for.

use edge::caller::Scope;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::Socket;
use crate::support::Server;

/// The texts a socket is told until one says `end`.
async fn told(socket: &mut Socket) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        let message = socket.next_of("chat_response").await["data"]["message"].clone();
        assert!(message["created_at"].as_str().is_some_and(|time| time.ends_with('Z')), "{message}");
        match message["content"].as_str().unwrap() {
            "The end." => return told,
            text => told.push(text.to_owned()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everyone_is_told_what_is_for_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let token = |player: &str| json!({ "campaign": "port-town", "player_id": player });
    let alice = tenant.token(token("player_alice")).await;
    let mallory = tenant.token(token("player_mallory")).await;
    let bot = tenant.with_scopes(&[Scope::Play]).await;
    let (mut gm, connected) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "gm" })).await;
    let as_player = json!({ "client_id": "ai-alice", "role": "player", "player_id": "player_alice" });
    let (mut ai, _) = Socket::connect(&server.url, &tenant.credential, as_player).await;
    let (mut alice, _) = Socket::connect(&server.url, &alice.credential, json!({ "client_id": "alice" })).await;
    let (mut mallory, _) = Socket::connect(&server.url, &mallory.credential, json!({ "client_id": "mallory" })).await;
    let (mut bot, _) = Socket::connect(&server.url, &bot.credential, json!({ "client_id": "bot" })).await;
    tenant.post("/v1/campaigns", json!({ "slug": "inland", "name": "Inland" })).await.expect(201);
    let mut elsewhere = Socket::open_from(&server.url, "inland", None).await;
    elsewhere.send(json!({ "type": "connect", "client_id": "x", "token": tenant.credential })).await;
    elsewhere.next_of("connected").await;

    let session = connected["session_id"].as_str().unwrap();
    let posts = json!({ "messages": [
        { "content": "For all." }, { "content": "For Alice.", "whisper_to": ["player_alice"] },
        { "content": "For Mallory.", "whisper_to": ["player_mallory"] }, { "content": "For the GM.", "whisper_to": ["gm"] },
    ]});
    server.model.set_script(Script::replies([Reply::tool("post_message", posts), Reply::text("The end.")]));
    world.post(&format!("/sessions/{session}/turns"), json!({})).await.expect(200);
    // The AI's whispers are all the game master's to know.
    assert_eq!(told(&mut gm).await, ["For all.", "For Alice.", "For Mallory.", "For the GM."]);
    assert_eq!(told(&mut ai).await, ["For all.", "For Alice."]);
    assert_eq!(told(&mut alice).await, ["For all.", "For Alice."]);
    assert_eq!(told(&mut mallory).await, ["For all.", "For Mallory."]);
    assert_eq!(told(&mut bot).await, ["For all."]);
    let there = json!({ "arguments": { "content": "There." } });
    tenant.post("/v1/campaigns/inland/tools/post_message", there).await.expect(200);
    assert_eq!(
        elsewhere.next().await["data"]["message"]["content"],
        "There.",
        "nothing of another campaign came before"
    );

    // A frontend's own words are not sent back; what another client posts for the AI is.
    for data in [json!({ "content": "I speak.", "author": "ai" }), json!({ "content": "I ask." })] {
        gm.send(json!({ "type": "chat_message", "request_id": "own", "data": data })).await;
        gm.next_of("ack").await;
    }
    let posted = json!({ "arguments": { "content": "By hand." }, "session_id": session });
    world.post("/tools/post_message", posted).await.expect(200);
    let next = alice.next_of("chat_response").await["data"]["message"].clone();
    assert_eq!(next["content"], "I speak.");
    assert!(next.get("prompt_text").is_none() && next.get("tenant_id").is_none(), "{next}");
    assert_eq!(alice.next_of("chat_response").await["data"]["message"]["content"], "By hand.");
    // What is undone is taken back.
    let turn = world.get("/turns?limit=1").await.expect(200).items()[0]["id"].as_str().unwrap().to_owned();
    world.post(&format!("/turns/{turn}/undo"), json!({})).await.expect(200);
    alice.next_of("message_deleted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_npcs_words_and_another_clients_world_state_are_told() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut socket, connected) = Socket::connect(&server.url, &tenant.credential, json!({})).await;
    server.model.set_script(Script::always(Reply::text("What'll it be?")));
    world.bob("player_alice", "Hello!").await.expect(200);
    let message = socket.next_of("chat_response").await["data"]["message"].clone();
    assert_eq!(message["content"], "What'll it be?");

    let session = connected["session_id"].as_str().unwrap();
    let path = format!("/v1/campaigns/port-town/sessions/{session}/world-state");
    let state = json!({ "session_info": { "game_system": "dnd5e", "gm_name": "Maya", "players": [] } });
    tenant.send(tenant.request(reqwest::Method::PUT, &path).json(&state)).await.expect(200);
    assert_eq!(socket.next_of("world_state").await["data"], state);
    let event =
        |name: &str| json!({ "events": [{ "type": "world_state", "data": { "session_info": { "gm_name": name } } }] });
    world.post(&format!("/sessions/{session}/events"), event("Ben")).await.expect(200);
    assert_eq!(socket.next_of("world_state").await["data"]["session_info"]["gm_name"], "Ben");
    // A player's frontend is not told what its AI may not know.
    let token = tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice" })).await;
    let (mut alice, own) = Socket::connect(&server.url, &token.credential, json!({ "client_id": "alice" })).await;
    let scene = json!({ "active_scene": { "id": "s", "notes": [{ "id": "n", "entry_name": "Ambush here" }] }, "more": "x".repeat(70_000) });
    let path = format!("/sessions/{}/events", own["session_id"].as_str().unwrap());
    let events = json!({ "events": [{ "type": "world_state", "data": scene }] });
    world.post(&path, events).await.expect(200);
    let told = alice.next_of("world_state").await;
    assert_eq!((&told["data"]["active_scene"]["notes"], told["data"].get("more")), (&json!([]), None));
    // What it tells itself does not come back.
    let own: Value =
        json!({ "type": "world_state", "request_id": "w", "data": { "session_info": { "gm_name": "Own" } } });
    socket.send(own).await;
    assert_eq!(socket.next().await["type"], "ack");
    world.post(&format!("/sessions/{session}/events"), event("Later")).await.expect(200);
    assert_eq!(socket.next().await["data"]["session_info"]["gm_name"], "Later");
}

/// What people say in one frontend is told in the others; a deleted session or campaign closes its frontends at once.
#[tokio::test(flavor = "multi_thread")]
async fn frontends_hear_each_other() {
    // Nobody waits for the next beat.
    let server = Server::start_with(&[("TAVERNKEEP_BRIDGE_PING_SECONDS", "3600")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut vtt, connected) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "vtt" })).await;
    let (mut chat, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "chat" })).await;
    let token = tenant.token(json!({ "campaign": "port-town", "player_id": "player_mallory" })).await;
    let (mut mallory, _) = Socket::connect(&server.url, &token.credential, json!({ "client_id": "mallory" })).await;
    for data in [
        json!({ "content": "For Alice.", "whisper_to": ["player_alice", "gm"], "player_id": "player_alice" }),
        json!({ "content": "For all.", "player_id": "player_alice" }),
    ] {
        vtt.send(json!({ "type": "chat_message", "data": data })).await;
    }
    for words in ["For Alice.", "For all."] {
        assert_eq!(chat.next_of("chat_message").await["data"]["message"]["content"], words);
    }
    assert_eq!(mallory.next_of("chat_message").await["data"]["message"]["content"], "For all.");
    chat.send(json!({ "type": "chat_message", "data": { "content": "Of another.", "player_id": "player_alice" } }))
        .await;
    assert_eq!(vtt.next().await["data"]["message"]["content"], "Of another.", "nobody hears themselves");
    let session = connected["session_id"].as_str().unwrap();
    world.delete(&format!("/sessions/{session}")).await.expect(204);
    assert_eq!(vtt.closed().await, 4409);
    tenant.delete("/v1/campaigns/port-town").await.expect(204);
    assert!([4404, 4409].contains(&chat.closed().await));
}

/// A session that becomes another than its frontend was told has its frontend connect again; what it takes over by itself, and what
/// it was not told, does not end its connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_changed_is_connected_to_again() {
    // Nobody waits for the next beat.
    let server = Server::start_with(&[("TAVERNKEEP_BRIDGE_PING_SECONDS", "3600")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (_, first) = Socket::connect(&server.url, &tenant.credential, json!({ "dice": "server" })).await;
    let (mut socket, again) = Socket::connect(&server.url, &tenant.credential, json!({ "role": "assistant" })).await;
    assert_eq!(first["session_id"], again["session_id"]);
    let path = format!("/sessions/{}", first["session_id"].as_str().unwrap());
    world.patch(&path, json!({ "extensions": { "colour": "red" } })).await.expect(200);
    world.post("/tools/post_message", json!({ "arguments": { "content": "Still here?" } })).await.expect(200);
    socket.next_of("chat_response").await;
    world.patch(&path, json!({ "role": "gm" })).await.expect(200);
    assert_eq!(socket.closed().await, 4412);
    let (_, last) = Socket::connect(&server.url, &tenant.credential, json!({})).await;
    assert_eq!(last["role"], "gm");
}

/// Words that change later are told to everybody who may read them, the frontend that reported them too: it did not change them.
#[tokio::test(flavor = "multi_thread")]
async fn changed_words_reach_those_who_may_read_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let token = tenant.token(json!({ "campaign": "port-town", "player_id": "player_mallory" })).await;
    let (mut vtt, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "vtt" })).await;
    let (mut chat, _) = Socket::connect(&server.url, &tenant.credential, json!({ "client_id": "chat" })).await;
    let (mut mallory, _) = Socket::connect(&server.url, &token.credential, json!({ "client_id": "mallory" })).await;
    server.model.set_script(Script::always(Reply::text("What'll it be?")));
    let turn = world.bob("player_alice", "Hello!").await.expect(200).id();
    let told = mallory.next_of("chat_response").await["data"]["message"].clone();
    // An answer that is corrected.
    world.patch(&format!("/turns/{turn}"), json!({ "narrative": "What'll you have?" })).await.expect(200);
    let mut changed = told.clone();
    changed["content"] = json!("What'll you have?");
    for socket in [&mut vtt, &mut chat, &mut mallory] {
        assert_eq!(socket.next_of("message_changed").await["data"]["message"], changed, "all else is as it was");
    }
    // A message whose player is deleted says what it said.
    world.post("/characters", json!({ "slug": "dora", "name": "Dora" })).await.expect(201);
    world.post("/messages", json!({ "content": "I am here.", "player_id": "dora" })).await.expect(201);
    world.delete("/characters/dora").await.expect(204);
    // Words that are erased, also in what a frontend reported, and in a whisper.
    let report = json!({ "content": "Mallory, come!", "speaker": { "name": "Maya" } });
    vtt.send(json!({ "type": "chat_message", "request_id": "a", "data": report })).await;
    let own = vtt.next_of("ack").await["data"]["results"][0]["message_id"].as_str().unwrap().to_owned();
    world.post("/messages", json!({ "content": "Mallory is late.", "whisper_to": ["gm"] })).await.expect(201);
    world.post("/messages", json!({ "content": "Who comes?" })).await.expect(201);
    let token = tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice" })).await;
    let (mut alice, _) = Socket::connect(&server.url, &token.credential, json!({ "client_id": "alice" })).await;
    // 202 if it is not done at once.
    let erased = world.delete("/characters/player_mallory?erase=true").await;
    assert!(matches!(erased.status, 202 | 204), "{}", erased.text);
    for socket in [&mut vtt, &mut chat, &mut alice] {
        let message = socket.next_of("message_changed").await["data"]["message"].clone();
        assert_eq!((&message["id"], &message["content"]), (&json!(own), &json!("[erased], come!")));
    }
    for socket in [&mut vtt, &mut chat] {
        let message = socket.next_of("message_changed").await["data"]["message"].clone();
        assert_eq!(message["content"], "[erased] is late.");
    }
    world.post("/messages", json!({ "content": "The end." })).await.expect(201);
    loop {
        let frame = alice.next().await;
        assert_ne!(frame["type"], "message_changed", "a whisper to the game master, or a message that is as it was");
        if frame["data"]["message"]["content"] == "The end." {
            break;
        }
    }
}
