//! Order and names of sections, and two whole prompts as snapshots.

use rehearsal::{Reply, Script};
use serde_json::json;

use super::{all, lore, section, sections};
use crate::support::Server;

const ORDER: [&str; 9] = [
    "engine_rules",
    "global_lore",
    "scoped_lore",
    "personality",
    "tools",
    "player_lore",
    "memories",
    "history",
    "turn",
];

#[tokio::test(flavor = "multi_thread")]
async fn sections_have_names_and_an_order() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.bob("player_alice", "Good evening.").await.expect(200);
    let prompt = world.prompt("innkeeper_bob", "player_alice", "I order an ale.").await;
    assert_eq!(sections(&prompt).map(|s| s["name"].as_str().unwrap()).collect::<Vec<_>>(), ORDER);
    // The sections, in this order and nothing else, are what the model reads.
    let sent = all(&prompt);
    let joined: String = sections(&prompt).map(|s| s["text"].as_str().unwrap()).collect();
    assert_eq!(sent.replace('\n', ""), joined.replace('\n', ""));
    for section in sections(&prompt) {
        let empty = section["text"].as_str().unwrap().is_empty();
        assert_eq!(section["tokens"].as_u64().unwrap() == 0, empty, "{section}");
    }
    // Each has a hash, the empty ones too.
    for prompt in [&prompt, &world.prompt("innkeeper_bob", "player_mallory", "Hello.").await] {
        for section in sections(prompt) {
            let hash = section["hash"].as_str().unwrap();
            assert!(hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{section}");
        }
    }
    let total: u64 = sections(&prompt).map(|s| s["tokens"].as_u64().unwrap()).sum();
    assert_eq!(prompt["total_tokens"], total);
    // What is known generally, what concerns the entity, and what is known of the player are apart.
    assert!(section(&prompt, "global_lore").contains("The Reach is a cold sea."));
    assert!(section(&prompt, "scoped_lore").contains("No blades in the square."));
    assert!(section(&prompt, "player_lore").contains("They sign the book."));
    assert!(section(&prompt, "player_lore").contains("name=\"Alice\""));
    assert!(section(&prompt, "memories").contains("Seems friendly."));
    assert!(section(&prompt, "turn").contains("I order an ale."));
    assert_eq!(server.model.request_count(), 1, "a preview calls no model");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_is_what_was_previewed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for action in ["Good evening.", "I order an ale.", "Farewell."] {
        let prompt = world.prompt("innkeeper_bob", "player_alice", action).await;
        let turn = world.bob("player_alice", action).await.expect(200);
        let sent = server.model.requests().pop().unwrap();
        assert_eq!(sent["messages"], prompt["messages"]);
        assert_eq!(turn.body["prompt"]["base_hash"], prompt["base_hash"]);
        let hash = |s: &serde_json::Value| (s["name"].clone(), s["hash"].clone(), s["tokens"].clone());
        let recorded: Vec<_> = turn.body["prompt"]["sections"].as_array().unwrap().iter().map(hash).collect();
        assert_eq!(recorded, sections(&prompt).map(hash).collect::<Vec<_>>());
        let names: Vec<_> = sent["tools"].as_array().unwrap().iter().map(|t| t["function"]["name"].clone()).collect();
        assert_eq!(names, ["NPC_memorize"]);
    }
}

/// Read these when they change: a model will.
#[tokio::test(flavor = "multi_thread")]
async fn whole_prompts() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    lore(
        &world,
        "the_ale",
        json!({ "activation": "keyword", "keys": ["ale"], "content": "The ale is brewed with seawater." }),
    )
    .await;
    world
        .patch(
            "/npcs/innkeeper_bob",
            json!({ "race": "Halfling", "disposition": "cheerful", "location": "The Salty Cat" }),
        )
        .await
        .expect(200);
    world.patch("", json!({ "game_time": "the evening of the first day" })).await.expect(200);
    let council = json!({ "actor": { "type": "owner", "id": "town_council_owner" },
        "arguments": { "player_id": "player_alice", "memory_string": "Has proven to be a reliable ally." } });
    world.post("/tools/OWNER_memorize_dependables", council).await.expect(200);
    server.model.set_script(Script::replies([Reply::text("Good evening to you, Alice!")]));
    world.bob("player_alice", "Good evening.").await.expect(200);
    for (name, mode, entity) in
        [("native_npc", "native", "npcs/innkeeper_bob"), ("xml_owner", "xml", "owners/town_council_owner")]
    {
        let body = json!({ "player_id": "player_alice", "action": "I order an ale.", "reply_mode": mode });
        let prompt = world.post(&format!("/{entity}/prompt"), body).await.expect(200).body;
        let mut text = String::new();
        for message in prompt["messages"].as_array().unwrap() {
            text.push_str(&format!(
                "=== {}\n{}\n",
                message["role"].as_str().unwrap(),
                message["content"].as_str().unwrap()
            ));
        }
        insta::with_settings!({ snapshot_path => "../snapshots" }, { insta::assert_snapshot!(name, text) });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_without_anything_has_a_sound_prompt() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.post("/v1/campaigns", json!({ "slug": "bare", "name": "Bare" })).await.expect(201);
    tenant.post("/v1/campaigns/bare/npcs", json!({ "slug": "nobody", "name": "Nobody" })).await.expect(201);
    tenant.post("/v1/campaigns/bare/characters", json!({ "slug": "someone", "name": "Someone" })).await.expect(201);
    let turn = tenant.npc_turn("bare", "nobody", "someone", "Hello?").await.expect(200);
    assert_eq!(turn.body["status"], "succeeded");
    let sent = server.model.requests().pop().unwrap();
    assert_eq!(sent.get("tools"), None, "providers refuse an empty list");
    assert!(!sent["messages"][1]["content"].as_str().unwrap().contains("<memories"));
}
