//! Who reads the words of a turn: every door, every kind of reader.

use edge::{caller::Scope, users::Role};
use rehearsal::{Reply, Script};
use reqwest::Method;
use serde_json::json;

use crate::{
    admin::Visitor,
    support::{Client, Server, World},
};

/// What an assistant said, was asked, called and found, for the game master alone.
const SECRETS: [&str; 5] = ["ambush-7c1", "instruction-7c1", "query-7c1", "secretlore-7c1", "provider-7c1"];
/// What a game master's AI said at the table.
const OPEN: &str = "bell-7c1";

/// The turns that are looked at.
struct Turns {
    session: String,
    assistant: String,
    failed: String,
    table: String,
    npc: String,
}

const KEY: &str = "once";

async fn told(world: &World<'_>) -> Turns {
    let server = world.client.server;
    let secret = json!({ "title": "The plan", "scope": "global", "content": "secretlore-7c1", "secret": true });
    world.post("/lore", secret).await.expect(201);
    let session = json!({ "client_id": "table", "role": "gm", "dice": "server" });
    let session = format!("/sessions/{}", world.post("/sessions", session).await.expect(201).id());
    let turns = world.path(&format!("{session}/turns"));
    let looks = |query: &str| Reply::tool("search_lore", json!({ "query": query }));

    server.model.set_script(Script::replies([looks("query-7c1 plan"), Reply::text("They wait in ambush-7c1.")]));
    let asked = json!({ "role": "assistant", "instruction": "instruction-7c1" });
    let assistant = world.client.post_with_key(&turns, KEY, asked.clone()).await.expect(200);
    assert!(assistant.text.contains("ambush-7c1") && assistant.text.contains("query-7c1"), "{}", assistant.text);
    let unread = Reply::status(400).with_body(json!({ "error": { "message": "provider-7c1" } }));
    server.model.set_script(Script::replies([
        looks("query-7c1").with_text("They wait in ambush-7c1."),
        unread.clone(),
        unread,
    ]));
    let failed = world.client.post(&turns, asked).await;
    let failed = failed.body["turn_id"].as_str().unwrap().to_owned();
    server.model.set_script(Script::always(Reply::text("The bell-7c1 rings.")));
    let table = world.client.post(&turns, json!({ "instruction": "instruction-7c1" })).await.expect(200).id();
    server.model.set_script(Script::always(Reply::text("Nothing there, I promise.")));
    let npc = world.bob("player_alice", "What is below?").await.expect(200);
    Turns { session, assistant: assistant.id(), failed, table, npc: npc.id() }
}

/// Everything that can be asked for about these turns, as one text.
async fn heard(reader: &Client<'_>, world: &World<'_>, turns: &Turns) -> String {
    let mut all = String::new();
    let mut paths: Vec<String> = [
        "/turns",
        "/turns?sort=-created_at",
        "/turns?kind=gm",
        "/turns?q=ambush",
        "/turns?q=instruction",
        "/messages",
        "/messages?q=ambush",
        "/changes?after=0&limit=200",
        "/export",
        "/lore?q=secretlore",
        "/lore",
        "/memories",
        "/characters/player_alice/revisions",
    ]
    .map(str::to_owned)
    .into();
    for turn in [&turns.assistant, &turns.failed, &turns.table, &turns.npc] {
        paths.push(format!("/turns/{turn}"));
        paths.push(format!("/turns/{turn}/events"));
    }
    paths.push(turns.session.clone());
    paths.push(format!("{}/delta", turns.session));
    for path in paths {
        let request = reader.request(Method::GET, &world.path(&path));
        let answer = request.send().await.unwrap();
        let status = answer.status();
        assert!(status.as_u16() < 500, "{path}: {status}");
        all.push_str(&format!("\n== {path} {status}\n{}", answer.text().await.unwrap()));
    }
    // The same key, and the same question, of somebody who may do less.
    let asked = json!({ "role": "assistant", "instruction": "instruction-7c1" });
    for key in [KEY, "another"] {
        if key == "another" && reader.credential == world.client.credential {
            continue;
        }
        let answer = reader.post_with_key(&world.path(&format!("{}/turns", turns.session)), key, asked.clone()).await;
        all.push_str(&format!("\n== again {key}\n{}", answer.text));
    }
    for turn in [&turns.assistant, &turns.failed] {
        let answer = reader.post(&world.path(&format!("/turns/{turn}/cancel")), json!({})).await;
        all.push_str(&format!("\n== cancel\n{}", answer.text));
    }
    let preview = json!({ "role": "assistant" });
    let preview = reader.post(&world.path(&format!("{}/prompt", turns.session)), preview).await;
    all.push_str(&format!("\n== prompt\n{}", preview.text));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_for_the_game_master_reaches_nobody_else() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let turns = told(&world).await;

    let gm = heard(&tenant, &world, &turns).await;
    for words in SECRETS.iter().filter(|words| **words != "provider-7c1").chain([&OPEN]) {
        assert!(gm.contains(words), "the game master reads {words}: {gm}");
    }
    let player =
        |player: &str, scopes: &[&str]| json!({ "campaign": "port-town", "player_id": player, "scopes": scopes });
    let readers = [
        ("a read key", tenant.with_scopes(&[Scope::Read]).await),
        ("a play key", tenant.with_scopes(&[Scope::Play]).await),
        ("a key that reads and plays", tenant.with_scopes(&[Scope::Read, Scope::Play]).await),
        (
            "a key of all but gm",
            tenant.with_scopes(&[Scope::Read, Scope::Write, Scope::Play, Scope::Tools, Scope::Admin]).await,
        ),
        ("Alice's token", tenant.token(player("player_alice", &["read", "play"])).await),
        ("Mallory's token", tenant.token(player("player_mallory", &["read", "play"])).await),
        ("Mallory's token with gm", tenant.token(player("player_mallory", &["read", "play", "gm"])).await),
        ("a token of the campaign", tenant.token(json!({ "campaign": "port-town", "scopes": ["read", "play"] })).await),
    ];
    for (who, reader) in &readers {
        let all = heard(reader, &world, &turns).await;
        for words in SECRETS {
            let at = all.find(words).map(|at| &all[all.floor_char_boundary(at.saturating_sub(600))..at + words.len()]);
            assert_eq!(at, None, "{who} reads {words}");
        }
    }
    // What was said at the table is everybody's who reads the campaign.
    let read = &readers[0].1;
    assert!(read.get(&world.path(&format!("/turns/{}", turns.table))).await.expect(200).text.contains(OPEN));
    assert!(read.get(&world.path("/turns")).await.expect(200).text.contains(OPEN));
    // A player reads what was said to it, and nobody else's.
    let (alice, mallory) = (&readers[4].1, &readers[5].1);
    let npc = world.path(&format!("/turns/{}", turns.npc));
    assert!(alice.get(&npc).await.expect(200).text.contains("I promise"));
    mallory.get(&npc).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_shows_a_viewer_what_a_read_key_reads() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let turns = told(&world).await;
    for (role, is_told) in [(Role::Editor, true), (Role::Viewer, false)] {
        let mut visitor = Visitor::signed_in(&server, tenant.tenant, role).await;
        let mut all = String::new();
        let ids = [&turns.assistant, &turns.failed, &turns.table, &turns.npc];
        let pages = ids.map(|id| format!("turns/{id}"));
        for page in ["turns", "turns?q=ambush", "audit", "memories", "lore", "lab", "messages"]
            .into_iter()
            .chain(pages.iter().map(String::as_str))
        {
            let answer = visitor.get(&format!("/admin/c/port-town/{page}")).await;
            assert!(answer.status < 500, "{page}: {}", answer.text);
            all.push_str(&answer.text);
        }
        for words in ["ambush-7c1", "query-7c1", "instruction-7c1"] {
            assert_eq!(all.contains(words), is_told, "{role:?} and {words}");
        }
        assert!(all.contains(OPEN), "{role:?} reads what was said at the table");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_hear_a_turn_may_not_stop_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = json!({ "client_id": "table", "role": "gm", "dice": "server" });
    let session = world.post("/sessions", session).await.expect(201).id();
    server.model.set_script(Script::always(Reply::hang()));
    let request = tenant.request(Method::POST, &world.path(&format!("/sessions/{session}/turns")));
    let begun = tenant.send(request.header("prefer", "respond-async").json(&json!({}))).await.expect(202);
    let turn = begun.body["turn_id"].as_str().unwrap();
    let cancel = world.path(&format!("/turns/{turn}/cancel"));
    let plays = tenant.with_scopes(&[Scope::Read, Scope::Play]).await;
    plays.post(&cancel, json!({})).await.problem(403, "forbidden");
    let token = json!({ "campaign": "port-town", "player_id": "player_alice", "scopes": ["read", "play"] });
    tenant.token(token).await.post(&cancel, json!({})).await.problem(404, "not_found");
    assert_eq!(world.get(&format!("/turns/{turn}")).await.expect(200).body["status"], "running");
    world.post(&format!("/turns/{turn}/cancel"), json!({})).await.expect(202);
}
