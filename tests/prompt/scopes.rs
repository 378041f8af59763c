//! Whose lore reaches whom.

use serde_json::{Value, json};

use super::{all, included, lore, reason, section};
use crate::support::{Server, World};

const SCOPES: [(&str, &str); 15] = [
    ("global", ""),
    ("zone", "Town Square"),
    ("zone", "Docks"),
    ("zone", "Moor"),
    ("race", "Dwarf"),
    ("race", "Human"),
    ("race", "Elf"),
    ("profession", "Guard"),
    ("profession", "Adventurer"),
    ("profession", "Thief"),
    ("faction", "Watch"),
    ("faction", "Smugglers"),
    ("faction", "Guild"),
    ("creature", "Dwarf"),
    ("item", "Docks"),
];

fn slug(scope: &str, about: &str) -> String {
    format!("{scope}_{}", about.to_lowercase().replace(' ', "_")).trim_end_matches('_').to_owned()
}

/// A campaign with one entry for each scope, and nobody in it yet but two players.
async fn matrix<'a>(client: &'a crate::support::Client<'a>, campaign: &str) -> World<'a> {
    client.post("/v1/campaigns", json!({ "slug": campaign, "name": campaign })).await.expect(201);
    let world = World { client, slug: campaign.to_owned() };
    for (scope, about) in SCOPES {
        let about = if about.is_empty() { Value::Null } else { json!(about) };
        let slug = slug(scope, about.as_str().unwrap_or_default());
        lore(
            &world,
            &slug,
            json!({ "scope": scope, "associated_id": about, "content": format!("Canary {campaign} {slug}.") }),
        )
        .await;
    }
    for (slug, race, profession) in [("alice", "human", "ADVENTURER"), ("mallory", "Elf", "Thief")] {
        let body = json!({ "slug": slug, "name": slug, "race": race, "profession": profession });
        world.post("/characters", body).await.expect(201);
    }
    world
}

async fn owner(world: &World<'_>, slug: &str, aspect: &str, about: &str) {
    let body = json!({ "slug": slug, "name": slug, "monitored_aspect": aspect, "associated_id": about });
    world.post("/owners", body).await.expect(201);
}

async fn prompt(world: &World<'_>, entity: &str, player: &str) -> Value {
    world.post(&format!("/{entity}/prompt"), json!({ "player_id": player, "action": "Hello" })).await.expect(200).body
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scoping_matrix() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = matrix(&tenant, "here").await;
    owner(&world, "harbour", "location", "docks").await;
    owner(&world, "elders", "race", "ELF").await;
    owner(&world, "school", "profession", "thief").await;
    owner(&world, "ring", "faction", "smugglers").await;
    let npcs = [
        ("plain", json!({})),
        ("placed", json!({ "location": "town square" })),
        ("born", json!({ "race": "DWARF", "profession": "guard", "faction": "Watch" })),
        ("human", json!({ "race": "Human" })),
        ("owned", json!({ "location": "Moor", "owner_ids": ["harbour", "elders", "school", "ring"] })),
    ];
    for (slug, more) in npcs {
        let mut body = json!({ "slug": slug, "name": slug });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.post("/npcs", body).await.expect(201);
    }
    let alice = ["profession_adventurer", "race_human"];
    let mallory = ["profession_thief", "race_elf"];
    for (entity, player, own, about) in [
        ("npcs/plain", "alice", &[][..], &alice[..]),
        ("npcs/plain", "mallory", &[], &mallory),
        ("npcs/placed", "alice", &["zone_town_square"], &alice),
        ("npcs/born", "alice", &["faction_watch", "profession_guard", "race_dwarf"], &alice),
        // Each entry once: what the entity knows anyway is not repeated as common knowledge of the player.
        ("npcs/human", "alice", &["race_human"], &["profession_adventurer"]),
        (
            "npcs/owned",
            "alice",
            &["faction_smugglers", "profession_thief", "race_elf", "zone_docks", "zone_moor"],
            &alice,
        ),
        (
            "npcs/owned",
            "mallory",
            &["faction_smugglers", "profession_thief", "race_elf", "zone_docks", "zone_moor"],
            &[],
        ),
        ("owners/harbour", "alice", &["zone_docks"], &alice),
        ("owners/elders", "alice", &["race_elf"], &alice),
        ("owners/elders", "mallory", &["race_elf"], &["profession_thief"]),
        ("owners/school", "alice", &["profession_thief"], &alice),
        ("owners/ring", "alice", &["faction_smugglers"], &alice),
    ] {
        let prompt = prompt(&world, entity, player).await;
        let mut expected: Vec<&str> = [&["global"][..], own, about].concat();
        expected.sort_unstable();
        assert_eq!(included(&prompt), expected, "{entity} {player}");
        // The decisions tell the truth about the text, group by group.
        for (scope, subject) in SCOPES {
            let slug = slug(scope, subject);
            let group = if slug == "global" {
                "global_lore"
            } else if own.contains(&&*slug) {
                "scoped_lore"
            } else {
                "player_lore"
            };
            let count = all(&prompt).matches(&format!("Canary here {slug}.")).count();
            assert_eq!(count, usize::from(expected.contains(&&*slug)), "{slug} for {entity} {player}");
            assert_eq!(
                section(&prompt, group).contains(&format!("Canary here {slug}.")),
                count == 1,
                "{slug} in {group}"
            );
        }
        // Every entry of the campaign is explained.
        assert_eq!(prompt["lore"].as_array().unwrap().len(), SCOPES.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_campaigns_and_tenants_stay_out() {
    let server = Server::start().await;
    let (acme, rival) = (server.tenant("acme").await, server.tenant("rival").await);
    let here = matrix(&acme, "here").await;
    for world in [&here, &matrix(&acme, "there").await, &matrix(&rival, "here").await, &matrix(&rival, "foreign").await]
    {
        world
            .post("/npcs", json!({ "slug": "guard", "name": "Guard", "location": "Docks", "race": "Dwarf" }))
            .await
            .expect(201);
        // Fill the cache with each in turn, so that a key that forgets something would show.
        let prompt = prompt(world, "npcs/guard", "alice").await;
        let text = all(&prompt);
        assert_eq!(text.matches("Canary").count(), 5, "{text}");
        assert_eq!(text.matches(&format!("Canary {} ", world.slug)).count(), 5);
    }
    // The tenants' campaigns `here` are apart although everything in them is called the same.
    rival.patch("/v1/campaigns/here/lore/global", json!({ "content": "Rival canary." })).await.expect(200);
    assert!(!all(&prompt(&here, "npcs/guard", "alice").await).contains("Rival"));
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_reach_those_who_know_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let secret = json!({ "secret": true, "known_by": ["harbour_ilse"], "content": "The mayor is a vampire." });
    lore(&world, "the_mayor", secret).await;
    let mut woken =
        json!({ "secret": true, "known_by": ["town_council_owner"], "content": "The crypt is below the well." });
    woken
        .as_object_mut()
        .unwrap()
        .extend(json!({ "activation": "keyword", "keys": ["well"] }).as_object().unwrap().clone());
    lore(&world, "the_crypt", woken).await;
    let ask = "Tell me of the mayor and the well.";
    let bob = world.prompt("innkeeper_bob", "player_alice", ask).await;
    assert!(!all(&bob).contains("vampire") && !all(&bob).contains("crypt"));
    assert!(reason(&bob, "the_mayor").starts_with("secret"));
    let ilse = world.prompt("harbour_ilse", "player_alice", ask).await;
    assert!(all(&ilse).contains("vampire") && !all(&ilse).contains("crypt"));
    let body = json!({ "player_id": "player_alice", "action": ask });
    let council = world.post("/owners/town_council_owner/prompt", body).await.expect(200).body;
    assert!(!all(&council).contains("vampire") && all(&council).contains("crypt"));
    // Knowing can be taken back, and given; the next prompt shows it.
    world.patch("/lore/the_mayor", json!({ "known_by": ["innkeeper_bob"] })).await.expect(200);
    assert!(!all(&world.prompt("harbour_ilse", "player_alice", ask).await).contains("vampire"));
    assert!(all(&world.prompt("innkeeper_bob", "player_alice", ask).await).contains("vampire"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_entry_has_its_reason() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    lore(&world, "off", json!({ "enabled": false })).await;
    lore(&world, "asleep", json!({ "activation": "keyword", "keys": ["dragon"] })).await;
    lore(&world, "awake", json!({ "activation": "keyword", "keys": ["ale"] })).await;
    lore(&world, "hidden", json!({ "secret": true })).await;
    lore(&world, "vast", json!({ "content": "word ".repeat(3500) })).await;
    let prompt = world.prompt("innkeeper_bob", "player_alice", "An ale!").await;
    for (slug, why) in [
        ("the_reach", "scope global"),
        ("the_square", "scope zone town_square"),
        ("the_adventurers", "scope profession adventurer"),
        ("the_harbour", "scope: zone harbour does not concern"),
        ("off", "disabled"),
        ("asleep", "keyword: none of its keys"),
        ("awake", "keyword: activated this turn"),
        ("hidden", "secret"),
        ("vast", "budget"),
    ] {
        assert!(reason(&prompt, slug).starts_with(why), "{slug}: {}", reason(&prompt, slug));
    }
    assert_eq!(included(&prompt), ["awake", "the_adventurers", "the_reach", "the_square"]);
    // A keyword entry that waits for the player's race is as much concerned as one that waits for the NPC's.
    lore(
        &world,
        "humans",
        json!({ "scope": "race", "associated_id": "human", "activation": "keyword", "keys": ["dragon"] }),
    )
    .await;
    let prompt = world.prompt("innkeeper_bob", "player_alice", "An ale!").await;
    assert!(reason(&prompt, "humans").starts_with("keyword"), "{}", reason(&prompt, "humans"));
}
