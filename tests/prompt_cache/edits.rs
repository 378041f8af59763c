//! What is a miss and what stays a hit, entity by entity and player by player.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Server, World, until};

/// Entity and player of every prompt that is watched.
const WATCHED: [(&str, &str); 5] = [
    ("npcs/innkeeper_bob", "player_alice"),
    ("npcs/innkeeper_bob", "player_mallory"),
    ("npcs/harbour_ilse", "player_alice"),
    ("owners/town_council_owner", "player_alice"),
    ("owners/harbour_owner", "player_mallory"),
];

async fn preview(world: &World<'_>, (entity, player): (&str, &str)) -> Value {
    world.post(&format!("/{entity}/prompt"), json!({ "player_id": player, "action": "Hello" })).await.expect(200).body
}

/// Which of the watched prompts are a miss now; afterwards none is.
async fn misses(world: &World<'_>) -> Vec<usize> {
    let mut found = Vec::new();
    for (n, watched) in WATCHED.into_iter().enumerate() {
        if preview(world, watched).await["cache"] == "miss" {
            found.push(n);
        }
    }
    for watched in WATCHED {
        assert_eq!(preview(world, watched).await["cache"], "hit", "{watched:?} twice");
    }
    found
}

async fn prepared<'a>(client: &'a crate::support::Client<'a>) -> World<'a> {
    let world = client.world().await;
    let owner = json!({ "slug": "harbour_owner", "name": "Harbour", "monitored_aspect": "location", "associated_id": "harbour" });
    world.post("/owners", owner).await.expect(201);
    for (slug, scope, about) in [("elves", "race", "elf"), ("moor", "zone", "moor"), ("guild", "faction", "guild")] {
        let lore = json!({ "slug": slug, "title": slug, "scope": scope, "associated_id": about, "content": "Canary." });
        world.post("/lore", lore).await.expect(201);
    }
    misses(&world).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_a_miss_for_exactly_those_concerned() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = prepared(&tenant).await;
    let (bob, ilse, council, alice) = ([0, 1], [2], [3], [0, 2, 3]);
    let lore = |slug: &str| format!("/lore/{slug}");
    let edits: Vec<(&str, String, Value, &[usize])> = vec![
        // What an entity is.
        ("personality", "/npcs/innkeeper_bob".into(), json!({ "personality_prompt": "You are sour now." }), &bob),
        ("description", "/npcs/innkeeper_bob".into(), json!({ "description": "Thin." }), &bob),
        ("name", "/npcs/innkeeper_bob".into(), json!({ "name": "Old Bob" }), &bob),
        ("tools", "/npcs/harbour_ilse".into(), json!({ "available_tools": [] }), &ilse),
        (
            "tool words",
            "/npcs/innkeeper_bob".into(),
            json!({ "available_tools": [{ "name": "NPC_memorize", "description": "Note it." }] }),
            &bob,
        ),
        ("moved", "/npcs/innkeeper_bob".into(), json!({ "location": "moor" }), &bob),
        ("race", "/npcs/innkeeper_bob".into(), json!({ "race": "elf" }), &bob),
        ("faction", "/npcs/innkeeper_bob".into(), json!({ "faction": "guild" }), &bob),
        ("owner's words", "/owners/town_council_owner".into(), json!({ "personality_prompt": "Stern." }), &council),
        // Lore, by who is concerned.
        ("global lore", lore("the_reach"), json!({ "content": "The Reach is warm." }), &[0, 1, 2, 3, 4]),
        ("zone lore", lore("the_harbour"), json!({ "content": "The chain is broken." }), &[2, 4]),
        ("zone lore through an owner", lore("the_square"), json!({ "content": "Blades are fine." }), &[0, 1, 3]),
        ("the player's profession", lore("the_adventurers"), json!({ "content": "They sign nothing." }), &alice),
        ("race of NPC and player", lore("elves"), json!({ "content": "Ears." }), &[0, 1, 4]),
        (
            "moved between scopes",
            lore("the_harbour"),
            json!({ "scope": "zone", "associated_id": "town_square" }),
            &[0, 1, 2, 3, 4],
        ),
        ("switched off", lore("the_square"), json!({ "enabled": false }), &[0, 1, 3]),
        ("switched on", lore("the_square"), json!({ "enabled": true }), &[0, 1, 3]),
        ("made a secret", lore("the_square"), json!({ "secret": true }), &[0, 1, 3]),
        // Who the player is.
        ("the player's race", "/characters/player_alice".into(), json!({ "race": "elf" }), &alice),
        (
            "the player's profession",
            "/characters/player_mallory".into(),
            json!({ "profession": "adventurer" }),
            &[1, 4],
        ),
        ("the player's name", "/characters/player_alice".into(), json!({ "name": "Alyce" }), &alice),
        // What the campaign says of prompts.
        ("budgets", String::new(), json!({ "settings": { "prompt_budgets": { "memories": 500 } } }), &[0, 1, 2, 3, 4]),
    ];
    for (what, path, body, expected) in edits {
        world.patch(&path, body).await.expect(200);
        assert_eq!(misses(&world).await, expected, "{what}");
    }
    // Entries that come and go.
    let new =
        json!({ "slug": "new", "title": "New", "scope": "zone", "associated_id": "Harbour", "content": "A whale." });
    world.post("/lore", new).await.expect(201);
    assert_eq!(misses(&world).await, [2, 4]);
    world.delete("/lore/new").await.expect(204);
    assert_eq!(misses(&world).await, [2, 4]);
    // An NPC gets another owner, and an owner another place.
    world.patch("/npcs/innkeeper_bob", json!({ "owner_ids": [] })).await.expect(200);
    assert_eq!(misses(&world).await, bob);
    world.patch("/npcs/harbour_ilse", json!({ "owner_ids": ["harbour_owner"] })).await.expect(200);
    assert_eq!(misses(&world).await, ilse);
    world.patch("/owners/harbour_owner", json!({ "associated_id": "moor" })).await.expect(200);
    assert_eq!(misses(&world).await, [2, 4], "what an owner watches over is known to its NPCs");
}

/// The server evicts prompts whose sections are outdated. Those that only look at the same head stay.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_evicted_would_be_a_miss() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = prepared(&tenant).await;
    let council = world.get("/owners/town_council_owner").await.expect(200).id();
    let kept = || server.app.prompts.base.keys().iter().any(|(_, key)| key.entity.to_string() == council);
    // Changes evict nothing until the server follows this campaign's journal.
    let mut n = 0;
    until("the eviction", async || {
        n += 1;
        let words = json!({ "personality_prompt": format!("Stern, {n} times.") });
        world.patch("/owners/town_council_owner", words).await.expect(200);
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        !kept()
    })
    .await;
    assert_eq!(misses(&world).await, [3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_concern_a_prompt_leaves_it_a_hit() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = prepared(&tenant).await;
    let rival = server.tenant("rival").await;
    let theirs = rival.world().await;
    let elsewhere = World::make(&tenant, "elsewhere").await;
    for (what, path, body) in [
        ("another zone", "/lore/moor", json!({ "content": "It is foggy." })),
        ("a faction of nobody", "/lore/guild", json!({ "content": "It is poor." })),
        ("hp", "/characters/player_alice", json!({ "hp": 3, "temp_hp": 2 })),
        ("conditions", "/characters/player_alice", json!({ "conditions": [{ "name": "poisoned" }] })),
        ("what a player carries", "/characters/player_alice", json!({ "inventory": [{ "name": "rope" }] })),
        ("an NPC's stat block", "/npcs/innkeeper_bob", json!({ "stats": { "hp": 4, "max_hp": 9, "armor_class": 12 } })),
        ("an NPC's inventory", "/npcs/innkeeper_bob", json!({ "inventory": ["mug"], "reaction_threshold": 9 })),
        ("clients' own keys", "/npcs/innkeeper_bob", json!({ "extensions": { "acme": 1 } })),
    ] {
        world.patch(path, body).await.expect(200);
        assert_eq!(misses(&world).await, [0; 0], "{what}");
    }
    // Others' worlds, in which everything is called the same.
    for other in [&theirs, &elsewhere] {
        other.patch("/lore/the_reach", json!({ "content": "Elsewhere." })).await.expect(200);
        other.patch("/npcs/innkeeper_bob", json!({ "personality_prompt": "Elsewhere." })).await.expect(200);
        other
            .post("/npcs/innkeeper_bob/memories", json!({ "player_id": "player_alice", "text": "Elsewhere." }))
            .await
            .expect(201);
    }
    assert_eq!(misses(&world).await, [0; 0]);
    // Where things stand is said in the turn's message: it changes that, not the base prompt.
    let bases: Vec<_> = [preview(&world, WATCHED[0]).await["base_hash"].clone()].into();
    world.patch("/npcs/innkeeper_bob", json!({ "disposition": "furious" })).await.expect(200);
    world.patch("/characters/player_alice", json!({ "location": "the cellar" })).await.expect(200);
    world.patch("", json!({ "game_time": "midnight" })).await.expect(200);
    assert_eq!(misses(&world).await, [0; 0]);
    let prompt = preview(&world, WATCHED[0]).await;
    assert_eq!(prompt["base_hash"], bases[0]);
    let text = prompt["messages"].to_string();
    for said in ["furious", "the cellar", "midnight"] {
        assert!(text.contains(said), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_concern_their_holder_and_player() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = prepared(&tenant).await;
    let about = |player: &str, text: &str| json!({ "player_id": player, "text": text });
    let id = world.post("/npcs/innkeeper_bob/memories", about("player_alice", "One.")).await.expect(201).id();
    assert_eq!(misses(&world).await, [0]);
    world.patch(&format!("/memories/{id}"), json!({ "text": "Two." })).await.expect(200);
    assert_eq!(misses(&world).await, [0]);
    world.delete(&format!("/memories/{id}")).await.expect(204);
    assert_eq!(misses(&world).await, [0]);
    world.post("/owners/town_council_owner/memories", about("player_alice", "Private.")).await.expect(201);
    assert_eq!(misses(&world).await, [3]);
    world.post("/npcs/innkeeper_bob/memories", about("player_mallory", "Theirs.")).await.expect(201);
    assert_eq!(misses(&world).await, [1]);
    // By a tool in a turn.
    server.model.set_script(Script::replies([
        Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "Tool." })),
        Reply::text("Noted."),
    ]));
    world.bob("player_alice", "I pay.").await.expect(200);
    assert_eq!(misses(&world).await, [0]);
    // A broadcast: for the owner's NPCs about that player, for nobody else.
    world.patch("/npcs/harbour_ilse", json!({ "owner_ids": ["town_council_owner"] })).await.expect(200);
    misses(&world).await;
    let call = json!({ "actor": { "type": "owner", "id": "town_council_owner" },
        "arguments": { "player_id": "player_alice", "memory_string": "An ally." } });
    let told = world.post("/tools/OWNER_memorize_dependables", call).await.expect(200);
    assert_eq!(misses(&world).await, [0, 2]);
    let broadcast = told.body["result"]["broadcast_id"].as_str().unwrap();
    world.delete(&format!("/broadcasts/{broadcast}")).await.expect(204);
    assert_eq!(misses(&world).await, [0, 2]);
    // A turn without a memory leaves its own base prompt and all others as they are.
    server.model.set_script(Script::always(Reply::text("Hm.")));
    world.bob("player_alice", "Hello.").await.expect(200);
    assert_eq!(misses(&world).await, [0; 0]);
}

/// A key by entity alone would give one player's memories to the next.
#[tokio::test(flavor = "multi_thread")]
async fn one_players_memories_never_reach_another() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for player in ["alice", "mallory"] {
        let body = json!({ "player_id": format!("player_{player}"), "text": format!("Canary of {player}.") });
        world.post("/npcs/innkeeper_bob/memories", body).await.expect(201);
    }
    server.model.set_script(Script::always(Reply::text("Hm.")));
    for n in 0..6 {
        let (me, other) = if n % 2 == 0 { ("alice", "mallory") } else { ("mallory", "alice") };
        let turn = world.bob(&format!("player_{me}"), &format!("I am {me}.")).await.expect(200);
        assert_eq!(turn.body["prompt"]["cache"], if n < 2 { "miss" } else { "hit" });
        let sent = server.model.requests().pop().unwrap().to_string();
        assert!(sent.contains(&format!("Canary of {me}.")) && !sent.contains(&format!("Canary of {other}.")));
        assert!(!sent.contains(&format!("I am {other}.")));
    }
}

/// Versions outlive what they stand for, so that nothing deleted, made again or undone meets an old stamp.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_again_is_not_taken_for_what_was() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = prepared(&tenant).await;
    let text = async || preview(&world, WATCHED[0]).await["messages"].to_string();
    for n in 0..3 {
        let entry = json!({ "slug": "it", "title": "It", "scope": "global", "content": format!("Canary {n}.") });
        world.post("/lore", entry).await.expect(201);
        assert!(text().await.contains(&format!("Canary {n}.")));
        world.delete("/lore/it").await.expect(204);
        assert!(!text().await.contains("Canary"));
    }
    // Undone and done again, in turns.
    for n in 0..3 {
        server.model.set_script(Script::replies([
            Reply::tool(
                "NPC_memorize",
                json!({ "player_id": "player_alice", "memory_string": format!("Canary {n}.") }),
            ),
            Reply::text("Noted."),
        ]));
        let turn = world.bob("player_alice", &format!("Try {n}")).await.expect(200);
        assert!(text().await.contains(&format!("Canary {n}.")));
        world.post(&format!("/turns/{}/undo", turn.id()), json!({})).await.expect(200);
        let now = text().await;
        assert!(!now.contains("Canary") && !now.contains("Try"), "{now}");
    }
    // Another entity, campaign or player under a name that is known.
    world
        .post("/npcs/innkeeper_bob/memories", json!({ "player_id": "player_alice", "text": "Canary." }))
        .await
        .expect(201);
    assert!(text().await.contains("Canary."));
    world.delete("/npcs/innkeeper_bob").await.expect(204);
    world.post("/npcs/innkeeper_bob/prompt", json!({ "player_id": "player_alice" })).await.problem(404, "not_found");
    world.post("/npcs", json!({ "slug": "innkeeper_bob", "name": "Robert" })).await.expect(201);
    assert!(text().await.contains("Robert") && !text().await.contains("Canary"));
    world.patch("/npcs/innkeeper_bob", json!({ "slug": "robert" })).await.expect(200);
    world.post("/npcs", json!({ "slug": "innkeeper_bob", "name": "Bobby" })).await.expect(201);
    assert!(text().await.contains("Bobby"));
    world.patch("", json!({ "slug": "old-town" })).await.expect(200);
    let new = World::make(&tenant, "port-town").await;
    assert!(preview(&new, WATCHED[0]).await["messages"].to_string().contains("You love gossip."));
}
