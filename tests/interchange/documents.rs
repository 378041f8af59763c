//! A campaign as one document: nothing of the world is lost, and the same twice is once.

use edge::caller::Scope;
use serde_json::{Value, json};

use super::send;
use crate::support::{Rows, Server, World, counts, operator};

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

/// What changes while an import waits for it stays.
#[tokio::test(flavor = "multi_thread")]
async fn what_happens_meanwhile_is_not_overwritten() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let lore = json!([{ "slug": "the_reach", "title": "The Reach", "scope": "global", "content": "New." }]);
    let document = json!({ "format": "tavernkeep.campaign", "version": 1, "campaign": { "slug": "port-town", "name": "Port Town" }, "lore": lore });
    for (path, body) in
        [("/v1/campaigns/import", document), ("/v1/campaigns/port-town/import/seed", json!({ "lore": lore }))]
    {
        world.patch("/lore/the_reach", json!({ "content": "Old.", "priority": 0 })).await.expect(200);
        let mut db = server.owner().await;
        sqlx::query("BEGIN").execute(&mut db).await.unwrap();
        let change = "UPDATE lore SET priority = 77 WHERE tenant_id = $1 AND slug = 'the_reach'";
        sqlx::query(change).bind(acme.tenant).execute(&mut db).await.unwrap();
        let (answer, ()) = tokio::join!(acme.post(path, body), async {
            let mut waits = server.owner().await;
            let query =
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            while sqlx::query_scalar::<_, i64>(query).fetch_one(&mut waits).await.unwrap() == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            sqlx::query("COMMIT").execute(&mut db).await.unwrap();
        });
        answer.expect(200);
        let now = world.get("/lore/the_reach").await.expect(200).body;
        assert_eq!((&now["content"], &now["priority"]), (&json!("New."), &json!(77)), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_that_no_document_holds_is_refused_before_it_begins() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let campaign: uuid::Uuid = world.get("").await.expect(200).id().parse().unwrap();
    let mut db = server.owner().await;
    sqlx::query("ALTER TABLE message DISABLE TRIGGER USER").execute(&mut db).await.unwrap();
    let messages = "INSERT INTO message (tenant_id, campaign_id, id, type, speaker, content, author, whisper_to, blind) \
                    SELECT $1, $2, uuid7(), 'chat', '{}', 'x', 'player', '[]', false FROM generate_series(1, 200001)";
    sqlx::query(messages).bind(acme.tenant).bind(campaign).execute(&mut db).await.unwrap();
    let answer = world.get("/export").await.problem(413, "payload_too_large");
    assert!(answer.text.contains("200000 rows of a kind; this campaign has more of message"), "{}", answer.text);
    let actors = "INSERT INTO actor_slug (tenant_id, campaign_id, slug, kind, actor_id) \
                  SELECT $1, $2, 'a' || n, 'npc', uuid7() FROM generate_series(1, 200001) n";
    sqlx::query(actors).bind(acme.tenant).bind(campaign).execute(&mut db).await.unwrap();
    world.get("/lorebook.json").await.problem(413, "payload_too_large");
    world.get("/npcs/innkeeper_bob/card.json").await.problem(413, "payload_too_large");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_for_a_request_is_read_by_the_command_line() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let content = "Salt. ".repeat(16_000);
    let lore: Vec<Value> = (0..360)
        .map(|n| json!({ "slug": format!("salt-{n}"), "title": "Salt", "scope": "global", "content": content }))
        .collect();
    let document = json!({ "format": "tavernkeep.campaign", "version": 1, "campaign": { "slug": "salt", "name": "Salt" }, "lore": lore });
    let text = document.to_string();
    assert!(text.len() > 32 * 1024 * 1024);
    let refused = send(&acme, "/v1/campaigns/import", "application/json", text.clone().into_bytes()).await;
    refused.problem(413, "payload_too_large");
    let file = std::env::temp_dir().join(format!("salt-{}.json", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let (is_read, told) = operator(&server.db.url, &["import", file.to_str().unwrap(), "--tenant", "acme"]).await;
    std::fs::remove_file(&file).unwrap();
    assert!(is_read, "{told}");
    // Nothing else may be as large: it is refused before all of it is read.
    let endless = ["import", "/dev/zero", "--tenant", "acme", "--campaign", "salt"];
    let (is_read, told) = operator(&server.db.url, &endless).await;
    assert!(!is_read && told.to_string().contains("it is not a campaign document"), "{told}");
    assert_eq!(acme.get("/v1/campaigns/salt/export").await.expect(200).body["lore"].as_array().unwrap().len(), 360);
}

/// Words that are there are compared by the database: two that are alike in all but one thing are two.
#[tokio::test(flavor = "multi_thread")]
async fn memories_and_messages_are_told_apart_by_all_that_they_are() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let at = "2026-01-01T00:00:00Z";
    let say = |author: &str, speaker: &str, content: &str| json!({ "author": author, "speaker": { "name": speaker }, "content": content, "created_at": at });
    let remember = |player: &str, source: &str, text: &str| json!({ "holder": { "type": "npc", "slug": "bob" }, "player": player, "source": source, "text": text, "created_at": at });
    let document = json!({ "format": "tavernkeep.campaign", "version": 1, "campaign": { "slug": "c", "name": "C" },
        "characters": [{ "slug": "ann", "name": "Ann" }, { "slug": "cid", "name": "Cid" }], "npcs": [{ "slug": "bob", "name": "Bob" }],
        "memories": [remember("ann", "personal", "ä|b"), remember("cid", "personal", "ä|b"), remember("ann", "editor", "ä|b")],
        "messages": [say("player", "a|1", "b"), say("player", "a", "1|b"), say("gm", "a", "1|b"), say("player", "", "ü")] });
    let first = acme.post("/v1/campaigns/import", document.clone()).await.expect(200).body;
    assert_eq!((&first["memories_created"], &first["messages_created"]), (&json!(3), &json!(4)));
    let again = acme.post("/v1/campaigns/import", document).await.expect(200).body;
    assert_eq!(again["counts"], json!({ "created": 0, "updated": 0, "unchanged": 11 }), "{again:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_whispered_to_somebody_who_is_gone_comes_back_as_the_game_masters() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let gone = world.post("/characters", json!({ "slug": "gone", "name": "Gone" })).await.expect(201);
    let message = json!({ "content": "Psst.", "whisper_to": ["gone"], "speaker": { "name": "Bob" } });
    world.post("/messages", message).await.expect(201);
    let both = json!({ "content": "Psst, you two.", "whisper_to": ["gm", "gone", "player_alice"] });
    world.post("/messages", both).await.expect(201);
    // As many dice as no client sends by itself, which the server wrote.
    let dice: Vec<Value> = (0..3000).map(|_| json!({ "faces": 1_000_000, "value": 999_999, "kept": true })).collect();
    sqlx::query("UPDATE message SET roll = $1 WHERE content = 'Psst.'")
        .bind(json!({ "rolls": [{ "formula": "3000d1000000", "dice": dice }] }))
        .execute(&mut server.owner().await)
        .await
        .unwrap();
    world.delete("/characters/gone").await.expect(204);
    let document = world.get("/export").await.expect(200);
    assert!(!document.text.contains(gone.body["id"].as_str().unwrap()));
    let told = |content: &str| {
        let all = document.body["messages"].as_array().unwrap();
        all.iter().find(|m| m["content"] == content).unwrap()["whisper_to"].clone()
    };
    assert_eq!(told("Psst."), json!(["gm"]), "it is never everybody's");
    assert_eq!(told("Psst, you two."), json!(["gm", "player_alice"]));
    let other = server.tenant("other").await;
    let bytes = document.text.clone().into_bytes();
    send(&other, "/v1/campaigns/import", "application/json", bytes.clone()).await.expect(200);
    let copy = World { client: &other, slug: "port-town".to_owned() };
    assert_eq!(copy.get("/export").await.expect(200).text, document.text);
    // A fork is whole as well, and so is a document that was written when ids still stood in it.
    world.post("/fork", json!({ "slug": "fork", "name": "Fork" })).await;
    let third = server.tenant("third").await;
    let older = document.text.replace("[\"gm\"]", "[\"00000000-0000-7000-8000-000000000001\"]");
    send(&third, "/v1/campaigns/import", "application/json", older.into_bytes()).await.expect(200);
    let copy = World { client: &third, slug: "port-town".to_owned() };
    assert_eq!(copy.get("/export").await.expect(200).text, document.text);
}

#[test]
fn our_own_documents_are_known_by_any_order_of_keys() {
    use world::interchange::service::{ImportFormat, guess};
    let long = "x".repeat(100_000);
    for text in [
        r#"{"format":"tavernkeep.campaign","version":1,"campaign":{}}"#.to_owned(),
        format!(r#"{{"campaign":{{"description":"{long}"}},"version":1,"format":"tavernkeep.campaign"}}"#),
        format!(
            "\u{feff} \n{{\"lore\":[{{\"format\":\"x\"}}],\"campaign\":{{\"a\":\"{long}\"}},\"format\" : \"tavernkeep.campaign\"}}"
        ),
    ] {
        assert!(matches!(guess("c", None, text.as_bytes()), Ok(ImportFormat::Campaign { .. })), "{:.60}", text);
    }
    // One that only speaks of it is none.
    let book = br#"{"entries":{"0":{"content":"\"format\":\"tavernkeep.campaign\""}}}"#;
    assert!(matches!(guess("c", None, book), Ok(ImportFormat::Lorebook { .. })));
}
