//! A campaign as one document: nothing of the world is lost, and the same twice is once.

use serde_json::{Value, json};
use tavernkeep::auth::Scope;

use super::send;
use crate::support::{Rows, Server, World, counts};

/// A world with something of everything.
async fn full<'a>(world: &World<'a>) {
    world
        .patch(
            "",
            json!({ "description": "Cold.", "game_time": "dusk", "settings": { "prompt_budgets": { "memories": 900 } },
        "extensions": { "mine": [1, null, "ü"] }, "external_ref": "w-1" }),
        )
        .await
        .expect(200);
    let secret = json!({ "title": "A secret", "scope": "global", "content": "Only Bob.", "secret": true,
        "known_by": ["innkeeper_bob"], "activation": "keyword", "keys": ["hush"], "secondary_keys": ["now"], "logic": "not_any",
        "tags": ["a"], "priority": -3, "extensions": { "k": { "v": [] } }, "external_ref": "l-1" });
    world.post("/lore", secret).await.expect(201);
    let scene = json!({ "name": "The inn", "tokens": [{ "id": "t", "name": "Bob", "actor_id": "innkeeper_bob", "x": 1, "y": 2 }],
        "notes": [{ "text": "n" }], "channel": "c-1" });
    let scene = world.post("/scenes", scene).await.expect(201);
    let message = json!({ "content": "Psst.", "scene_id": scene.body["slug"], "player_id": "player_alice", "whisper_to": ["gm", "player_mallory"],
        "speaker": { "name": "Alice" }, "roll": { "total": 3 }, "extensions": { "m": 1 } });
    world.post("/messages", message).await.expect(201);
    let call = json!({ "arguments": { "player_id": "player_alice", "memory_string": "Pays." },
        "actor": { "type": "owner", "id": "town_council_owner" } });
    world.post("/tools/OWNER_memorize_dependables", call).await.expect(200);
    world.bob("player_alice", "Good evening!").await.expect(200);
    world.bob("player_alice", "A beer, please.").await.expect(200);
    world
        .patch(
            "/owners/town_council_owner",
            json!({ "influence": { "current": 40.5, "max": 100.0, "regen_per_hour": 2.0 } }),
        )
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn written_read_and_written_again_it_is_the_same() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    full(&world).await;
    let document = world.get("/export").await.expect(200);
    assert!(document.header("content-disposition").contains("port-town.tavernkeep.json"));
    let other = server.tenant("other").await;
    let answer =
        send(&other, "/v1/campaigns/import", "application/json", document.text.clone().into_bytes()).await.expect(200);
    assert_eq!(
        (answer.body["counts"]["updated"].as_u64(), answer.body["counts"]["unchanged"].as_u64()),
        (Some(0), Some(0))
    );
    let copy = World { client: &other, slug: "port-town".to_owned() };
    assert_eq!(copy.get("/export").await.expect(200).text, document.text);
    // What a model is told is the same as well: lore, memories, and the conversation.
    let (was, is) = (
        world.prompt("innkeeper_bob", "player_alice", "hush").await,
        copy.prompt("innkeeper_bob", "player_alice", "hush").await,
    );
    assert_eq!(was["messages"], is["messages"]);
    // A second time, nothing happens.
    let before = counts(&server).await;
    let again =
        send(&other, "/v1/campaigns/import", "application/json", document.text.clone().into_bytes()).await.expect(200);
    assert_eq!(
        (again.body["counts"]["created"].as_u64(), again.body["counts"]["updated"].as_u64()),
        (Some(0), Some(0)),
        "{}",
        again.text
    );
    assert_eq!(counts(&server).await, before);
    // Beside the original, under another slug.
    send(&acme, "/v1/campaigns/import?slug=twin", "application/json", document.text.clone().into_bytes())
        .await
        .expect(200);
    let twin = acme.get("/v1/campaigns/twin/export").await;
    let (mut was, mut is) = (document.body, twin.body);
    assert_eq!((was["campaign"]["external_ref"].take(), is["campaign"]["slug"].take()), (json!("w-1"), json!("twin")));
    was["campaign"]["slug"].take();
    assert_eq!(is, was);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_holds_no_secret_of_the_server() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    full(&world).await;
    world.get("/dice/seeds").await.expect(200);
    let text = world.get("/export").await.expect(200).text;
    for word in ["tenant_id", "seed", "hash", "tk_", "campaign_id", "player_user", "created_by", "\"id\":\"0"] {
        assert!(!text.contains(word), "{word}");
    }
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        document["lore"].as_array().unwrap().iter().find(|l| l["secret"] == true).unwrap()["known_by"],
        json!(["innkeeper_bob"])
    );
    assert_eq!(document["scenes"][0]["tokens"][0]["actor_id"], "innkeeper_bob");
    // It holds secrets of the world: those who may not see them do not get it.
    let reader = acme.with_scopes(&[Scope::Read, Scope::Write]).await;
    reader.get("/v1/campaigns/port-town/export").await.problem(403, "forbidden");
    send(&reader, "/v1/campaigns/import", "application/json", text.clone().into_bytes())
        .await
        .problem(403, "forbidden");
    // A token of one campaign takes no other and makes none.
    acme.post("/v1/campaigns", json!({ "slug": "second", "name": "Second" })).await.expect(201);
    let narrow = acme.token(json!({ "campaign": "second" })).await;
    send(&narrow, "/v1/campaigns/import", "application/json", text.clone().into_bytes())
        .await
        .problem(403, "forbidden");
    send(&narrow, "/v1/campaigns/import?slug=third", "application/json", text.into_bytes())
        .await
        .problem(403, "forbidden");
    narrow.get("/v1/campaigns/port-town/export").await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_what_would_be_and_writes_nothing() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let mut document = world.get("/export").await.expect(200).body;
    document["npcs"][0]["description"] = json!("Changed.");
    document["lore"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "slug": "new", "title": "New", "scope": "global", "content": "New." }));
    let before = counts(&server).await;
    let bytes = document.to_string().into_bytes();
    let answer = send(&acme, "/v1/campaigns/import?dry_run=true", "application/json", bytes.clone()).await.expect(200);
    assert_eq!(answer.body["counts"], json!({ "created": 1, "updated": 1, "unchanged": 11 }), "{}", answer.text);
    assert_eq!(counts(&server).await, before);
    let done = send(&acme, "/v1/campaigns/import", "application/json", bytes).await.expect(200);
    assert_eq!(done.body["counts"], answer.body["counts"]);
    assert_eq!(world.get("/lore/new").await.expect(200).body["content"], "New.");
    // What the file does not name stays.
    world.get("/lore/the_reach").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_said_with_its_place() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let document = world.get("/export").await.expect(200).body;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut document = document.clone();
        change(&mut document);
        document.to_string().into_bytes()
    };
    for (bytes, status, pointer) in [
        (with(&|d| d["format"] = json!("x")), 422, "/format"),
        (with(&|d| d["version"] = json!(2)), 422, "/version"),
        (with(&|d| d["surprise"] = json!([])), 422, ""),
        (with(&|d| d["npcs"][0]["slug"] = Value::Null), 422, "/npcs/0/slug"),
        (with(&|d| d["npcs"][0]["nam"] = json!("x")), 422, "/npcs/0/nam"),
        (with(&|d| d["npcs"][0]["owner_ids"] = json!(["nobody"])), 422, "/npcs/0/owner_ids/0"),
        (with(&|d| d["npcs"][1]["slug"] = d["npcs"][0]["slug"].clone()), 422, "/npcs/1/slug"),
        (with(&|d| d["memories"][0]["player"] = json!("nobody")), 422, "/memories/0/player"),
        (with(&|d| d["lore"] = json!([[]])), 422, "/lore/0"),
        (with(&|d| d["campaign"]["slug"] = json!("Not A Slug")), 422, "/campaign/slug"),
        (b"{\"format\":\"tavernkeep.campaign\",\"format\":\"x\"}".to_vec(), 400, ""),
    ] {
        let answer = send(&acme, "/v1/campaigns/import", "application/json", bytes).await;
        assert_eq!(
            (answer.status, answer.pointers().first().copied().unwrap_or_default()),
            (status, pointer),
            "{}",
            answer.text
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_campaign_comes_in_pieces() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let lore: Vec<_> = (0..3000)
        .map(|n| json!({ "slug": format!("entry_{n}"), "title": format!("Entry {n}"), "scope": "global", "content": "Words. ".repeat(50) }))
        .collect();
    let document = json!({ "format": "tavernkeep.campaign", "version": 1, "campaign": { "slug": "big", "name": "Big" }, "lore": lore });
    let answer =
        send(&acme, "/v1/campaigns/import", "application/json", document.to_string().into_bytes()).await.expect(200);
    assert_eq!(answer.body["counts"]["created"], 3001);
    let written = acme.get("/v1/campaigns/big/export").await.expect(200);
    assert_eq!(written.body["lore"].as_array().unwrap().len(), 3000);
    assert_eq!(written.header("transfer-encoding"), "chunked");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_tenants_have_nothing_of_it() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    Rows::make(&acme, "canary").await;
    let other = server.tenant("other").await;
    for path in ["export", "lorebook.json", "npcs/innkeeper_bob/card.json", "npcs/innkeeper_bob/card.png"] {
        other.get(&format!("/v1/campaigns/port-town/{path}")).await.problem(404, "not_found");
    }
    let before = acme.get("/v1/campaigns/port-town/export").await.text;
    let document =
        json!({ "format": "tavernkeep.campaign", "version": 1, "campaign": { "slug": "port-town", "name": "Mine" } });
    send(&other, "/v1/campaigns/import", "application/json", document.to_string().into_bytes()).await.expect(200);
    assert_eq!(acme.get("/v1/campaigns/port-town/export").await.text, before);
}
