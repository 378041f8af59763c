//! Lore of creatures and items: it wakes when they are here or spoken of.

use serde_json::{Value, json};

use crate::support::{DEMO_KEY, Server, World};

/// Why an entry is in or out of a prompt of Bob for Alice, and whether it is in.
async fn why(world: &World<'_>, action: &str, slug: &str) -> (bool, String) {
    let prompt = world.prompt("innkeeper_bob", "player_alice", action).await;
    let lore = prompt["lore"].as_array().unwrap().iter().find(|entry| entry["slug"] == slug).unwrap().clone();
    let is_in = lore["included"] == true;
    let text = prompt["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert_eq!(text.contains(&format!("<lore entry=\"{slug}\"")), is_in, "{text}");
    (is_in, lore["reason"].as_str().unwrap().to_owned())
}

async fn lore(world: &World<'_>, slug: &str, more: Value) {
    let mut entry = json!({ "slug": slug, "title": slug, "content": format!("About {slug}.") });
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.post("/lore", entry).await.expect(201);
}

async fn ready(world: &World<'_>) {
    let ogres = json!({ "title": "Reef ogres", "scope": "creature", "associated_id": "Reef Ogre" });
    lore(world, "ogres", ogres).await;
    let lamp = json!({ "title": "The keeper's lamp", "scope": "item", "associated_id": "keepers_lamp" });
    lore(world, "lamp", lamp).await;
    for who in ["/characters/player_alice", "/npcs/innkeeper_bob"] {
        world.patch(who, json!({ "location": "The Gilded Gull" })).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lore_of_a_creature_follows_the_creature() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    ready(&world).await;
    let (is_in, reason) = why(&world, "Hello.", "ogres").await;
    assert!(!is_in && reason.contains("is not here, and nobody speaks of it"), "{reason}");
    for ogre in [
        json!({ "slug": "reef_ogre", "name": "Grub" }),
        json!({ "slug": "grub", "name": "reef ogre" }),
        json!({ "slug": "grub", "name": "Grub", "race": "Reef-Ogre" }),
        json!({ "slug": "grub", "name": "Grub", "stats": { "creature_type": "reef ogre" } }),
    ] {
        let path = format!("/npcs/{}", ogre["slug"].as_str().unwrap());
        world.post("/npcs", ogre.clone()).await.expect(201);
        assert!(!why(&world, "Hello.", "ogres").await.0, "{ogre} is nowhere");
        world.patch(&path, json!({ "location": "the-gilded-gull" })).await.expect(200);
        let (is_in, reason) = why(&world, "Hello.", "ogres").await;
        assert!(is_in && reason.starts_with("creature is here"), "{ogre}: {reason}");
        world.patch(&path, json!({ "location": "sea caves" })).await.expect(200);
        assert!(!why(&world, "Hello.", "ogres").await.0, "{ogre} left");
        // The player goes there alone.
        world.patch("/characters/player_alice", json!({ "location": "Sea Caves" })).await.expect(200);
        assert!(why(&world, "Hello.", "ogres").await.0, "{ogre}");
        world.patch("/characters/player_alice", json!({ "location": "the gilded gull" })).await.expect(200);
        world.delete(&path).await.expect(204);
    }
    assert!(!why(&world, "Hello.", "ogres").await.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lore_wakes_when_its_subject_is_spoken_of() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    ready(&world).await;
    let woken =
        json!({ "scope": "creature", "associated_id": "kraken", "activation": "keyword", "keys": ["the deep one"] });
    lore(&world, "kraken", woken).await;
    for (action, slug, is_spoken_of) in [
        ("Have you seen a REEF OGRE?", "ogres", true),
        ("I fear reef ogres.", "ogres", true),
        ("I fear ogres.", "ogres", false),
        ("Where is the keeper's lamp?", "lamp", true),
        ("Where is the keepers lamp?", "lamp", true),
        ("Where is the lamp?", "lamp", false),
        ("What of the Deep One?", "kraken", true),
        ("What of the kraken?", "kraken", true),
        ("What of krakens?", "kraken", false),
    ] {
        let (is_in, reason) = why(&world, action, slug).await;
        assert_eq!(is_in, is_spoken_of, "{action}: {reason}");
        assert_eq!(reason.contains("is spoken of"), is_spoken_of, "{action}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lore_of_an_item_follows_whoever_carries_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    ready(&world).await;
    for who in ["/characters/player_alice", "/npcs/innkeeper_bob"] {
        for item in [
            json!("Keepers Lamp"),
            json!({ "item_id": "keepers_lamp", "quantity": 1 }),
            json!({ "name": "keepers-lamp" }),
        ] {
            world.patch(who, json!({ "inventory": ["rope", item] })).await.expect(200);
            let (is_in, reason) = why(&world, "Hello.", "lamp").await;
            assert!(is_in && reason.starts_with("item is here"), "{who} {item}: {reason}");
        }
        world.patch(who, json!({ "inventory": ["rope"] })).await.expect(200);
        assert!(!why(&world, "Hello.", "lamp").await.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_and_budgets_hold_and_cached_prompts_follow() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    ready(&world).await;
    world
        .post("/npcs", json!({ "slug": "reef_ogre", "name": "Grub", "location": "The Gilded Gull" }))
        .await
        .expect(201);
    let asked = async || {
        let before = server.model.requests().len();
        let turn = world.bob("player_alice", "Hello.").await.expect(200);
        let words = server.model.requests()[before]["messages"].as_array().unwrap().last().unwrap().to_string();
        (turn.body["prompt"]["cache"].clone(), words.contains("<lore entry=\\\"ogres\\\""))
    };
    assert!(asked().await.1);
    // It can still be read in the conversation, so it is not repeated.
    assert_eq!(asked().await, (json!("hit"), false));
    world.patch("/lore/ogres", json!({ "content": "They fear bells." })).await.expect(200);
    assert_eq!(asked().await, (json!("hit"), true), "the base stays, the turn tells it");
    world.patch("/lore/ogres", json!({ "secret": true, "content": "They fear drums." })).await.expect(200);
    let (is_in, reason) = why(&world, "Hello.", "ogres").await;
    assert!(!is_in && reason.starts_with("secret: "), "{reason}");
    assert!(!asked().await.1);
    world.patch("/lore/ogres", json!({ "known_by": ["innkeeper_bob"] })).await.expect(200);
    assert!(asked().await.1);
    world.patch("", json!({ "settings": { "prompt_budgets": { "turn": 10 } } })).await.expect(200);
    world.patch("/lore/ogres", json!({ "content": "They fear gongs." })).await.expect(200);
    let (is_in, reason) = why(&world, "Hello.", "ogres").await;
    assert!(!is_in, "{reason}");
    world.delete("/lore/ogres").await.expect(204);
    assert!(!asked().await.1);
}

/// A session's AI knows the whole world: lore of a creature comes when it is spoken of or stands in the world state, once.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_hear_of_creatures_too() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    ready(&world).await;
    let keyed = json!({ "scope": "creature", "associated_id": "Cave bear", "activation": "keyword", "keys": ["bear"] });
    lore(&world, "bears", keyed).await;
    let open = json!({ "client_id": "vtt", "role": "gm" });
    let session = world.post("/sessions", open).await.expect(201).id();
    let included = async |instruction: &str| -> Vec<String> {
        let body = json!({ "instruction": instruction });
        let prompt = world.post(&format!("/sessions/{session}/prompt"), body).await.expect(200).body;
        let text = prompt["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        let all = prompt["lore"].as_array().unwrap().iter();
        let all: Vec<String> = all
            .filter(|l| l["included"] == true && l["slug"] != "the_reach")
            .map(|l| l["slug"].as_str().unwrap().to_owned())
            .collect();
        for slug in &all {
            assert_eq!(text.matches(&format!("<lore entry=\"{slug}\"")).count(), 1, "{text}");
        }
        all
    };
    assert_eq!(included("What now?").await, [""; 0]);
    assert_eq!(included("A reef ogre climbs out of the water.").await, ["ogres"]);
    assert_eq!(included("A bear, a cave bear!").await, ["bears"]);
    let scene =
        json!({ "name": "Caves", "active": true, "tokens": [{ "id": "t1", "name": "Reef Ogre", "x": 1, "y": 1 }] });
    world.post("/scenes", scene).await.expect(201);
    assert_eq!(included("What now?").await, ["ogres"], "its token is in the world state");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demos_ogres_and_lamp_reach_a_prompt() {
    let server = Server::with_demo().await;
    let client = server.anonymous().with_credential(DEMO_KEY);
    let world = World { client: &client, slug: "port-town".to_owned() };
    assert!(!why(&world, "Hello.", "reef_ogres").await.0);
    assert!(why(&world, "Do reef ogres come here?", "reef_ogres").await.0);
    assert!(why(&world, "Who has the keeper's lamp?", "the_keepers_lamp").await.0);
    // At the caves it needs no words.
    world
        .patch("/characters/player_alice", json!({ "location": "Sea Caves", "inventory": ["keepers lamp"] }))
        .await
        .expect(200);
    for slug in ["reef_ogres", "the_keepers_lamp"] {
        let (is_in, reason) = why(&world, "Hello.", slug).await;
        assert!(is_in && reason.contains("is here"), "{slug}: {reason}");
    }
}
