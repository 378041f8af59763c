//! What owners' tools change: it is stored, later prompts tell it, and an undo takes it back.

use serde_json::{Value, json};

use super::{COUNCIL, call, done, fund, has, outcomes, prepare, rejected, told, turn, undo};
use crate::support::{Server, World};

const BOB: &str = "npcs/innkeeper_bob";

/// The council and its square, with one campaign in which everything is free.
async fn free(world: &World<'_>) {
    prepare(world, 100.0).await;
    let free: serde_json::Map<String, Value> = super::TOOLS.iter().map(|name| ((*name).to_owned(), json!(0))).collect();
    world.patch("", json!({ "settings": { "tool_prices": free } })).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_reaches_its_player_alone_or_an_npc_that_remembers_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let own = ("send_message", json!({ "target_id": "player_alice", "message": "We see you." }));
    let via = (
        "send_message",
        json!({ "target_id": "player_alice", "message": "Mind the step.", "via_npc_id": "innkeeper_bob" }),
    );
    let npc = ("send_message", json!({ "target_id": "innkeeper_bob", "message": "She is a friend." }));
    let sent = turn(&world, &[own, via, npc]).await;
    assert_eq!(outcomes(&sent), done(3), "{}", sent.text);
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    let heard: Vec<_> = world
        .get("/messages")
        .await
        .expect(200)
        .items()
        .iter()
        .filter(|m| m["whisper_to"] == json!([alice]))
        .map(|m| (m["speaker"]["name"].as_str().unwrap().to_owned(), m["content"].as_str().unwrap().to_owned()))
        .collect();
    let pair = |who: &str, what: &str| (who.to_owned(), what.to_owned());
    assert_eq!(heard, [pair("The Town Council", "We see you."), pair("Innkeeper Bob", "Mind the step.")]);
    for (player, hears) in [("player_alice", true), ("player_mallory", false)] {
        let token =
            tenant.token(json!({ "scopes": ["read", "play"], "campaign": world.slug, "player_id": player })).await;
        let read = token.get(&world.path("/messages")).await.expect(200);
        assert_eq!(read.text.contains("We see you."), hears, "{player}");
    }
    let prompt = world.prompt("innkeeper_bob", "player_alice", "Hello.").await.to_string();
    assert!(prompt.contains("[told by those you answer to] She is a friend."), "{prompt}");
    undo(&world, &sent).await;
    assert_eq!(world.memories(BOB, "player_alice").await.len(), 1);
    assert!(!world.get("/messages").await.expect(200).text.contains("We see you."));
    // Outside of a turn, somebody has to say about whom the NPC remembers it.
    let body = json!({ "actor": { "type": "owner", "id": "town_council_owner" },
        "arguments": { "target_id": "innkeeper_bob", "message": "Listen." } });
    let nobody = world.post("/tools/send_message", body).await.problem(422, "validation_failed");
    assert_eq!(nobody.pointers(), ["/arguments/target_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn behavior_and_stats_change_and_the_next_prompt_tells_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let before = world.get("/npcs/innkeeper_bob").await.expect(200).body;
    assert!(!told(&world, BOB).await.contains("your body"));
    let changed = turn(
        &world,
        &[
            (
                "change_npc_behavior",
                json!({ "npc_id": "innkeeper_bob", "behavior_type": "afraid of Alice",
            "player_id": "player_alice", "memory_entry": "She broke a chair." }),
            ),
            (
                "change_npc_stats",
                json!({ "npc_id": "innkeeper_bob",
            "stat_changes": { "armor_class": 14, "max_hp": 20, "hp": 9, "strength": 18 } }),
            ),
        ],
    )
    .await;
    assert_eq!(outcomes(&changed), done(2), "{}", changed.text);
    let heard = told(&world, BOB).await;
    assert!(heard.contains("your disposition: afraid of Alice"), "{heard}");
    assert!(heard.contains("9 of 20 hit points, armor class 14"), "{heard}");
    assert!(world.memories(BOB, "player_alice").await.contains(&"She broke a chair.".to_owned()));
    let now = world.get("/npcs/innkeeper_bob").await.expect(200).body;
    assert_eq!(
        (&now["stats"]["abilities"]["strength"], &now["stats"]["abilities"]["wisdom"]),
        (&json!(18), &json!(10))
    );
    undo(&world, &changed).await;
    let after = world.get("/npcs/innkeeper_bob").await.expect(200).body;
    assert_eq!((&after["stats"], &after["disposition"]), (&before["stats"], &before["disposition"]));
    assert_eq!(world.memories(BOB, "player_alice").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_lore_of_the_owners_scope_unless_it_is_locked() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let flood = |details: &str| json!({ "event_type": "Flood", "details": details });
    let first = turn(&world, &[("trigger_world_event", flood("The square is under water."))]).await;
    assert_eq!(outcomes(&first), done(1), "{}", first.text);
    let entry = world.get("/lore/flood").await.expect(200).body;
    assert_eq!((&entry["scope"], &entry["associated_id"]), (&json!("zone"), &json!("town_square")));
    assert_eq!((&entry["activation"], &entry["tags"]), (&json!("always"), &json!(["world-event"])));
    // Bob answers to the council, so what happens there concerns him; Ilse does not.
    let knows = async |npc: &str| world.prompt(npc, "player_alice", "Hello.").await["messages"].to_string();
    assert!(knows("innkeeper_bob").await.contains("The square is under water."));
    assert!(!knows("harbour_ilse").await.contains("The square is under water."));
    let again = turn(&world, &[("trigger_world_event", flood("The water falls."))]).await;
    assert_eq!(again.body["tool_calls"][0]["result"]["rewritten"], true, "{}", again.text);
    assert_eq!(world.get("/lore?tag=world-event").await.expect(200).items().len(), 1);
    assert!(knows("innkeeper_bob").await.contains("The water falls."));
    undo(&world, &again).await;
    assert!(knows("innkeeper_bob").await.contains("The square is under water."));
    // A locked entry stays, and the call costs nothing.
    world.patch("/lore/flood", json!({ "ai_lock": true })).await.expect(200);
    world.patch("", json!({ "settings": { "tool_prices": { "trigger_world_event": 30 } } })).await.expect(200);
    fund(&world, 40.0).await;
    let locked = turn(&world, &[("trigger_world_event", flood("It burns."))]).await;
    assert_eq!(outcomes(&locked), [rejected("locked")], "{}", locked.text);
    assert_eq!(has(&world).await, 40.0);
    assert_eq!(world.get("/lore/flood").await.expect(200).body["content"], "The square is under water.");
    let body = json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "arguments": flood("It burns.") });
    world.post("/tools/trigger_world_event", body).await.problem(409, "locked");
}

#[tokio::test(flavor = "multi_thread")]
async fn npcs_appear_at_a_place_and_disappear_with_an_undo() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let hurt = json!({ "stats": { "armor_class": 13, "hp": 2, "max_hp": 11 }, "race": "orc", "inventory": ["club"] });
    world.post("/npcs", json!({ "slug": "guard", "name": "Guard", "location": "harbour" })).await.expect(201);
    world.patch("/npcs/guard", hurt).await.expect(200);
    let made = turn(
        &world,
        &[
            ("spawn_entity", json!({ "entity_type": "guard", "location": "town_square", "quantity": 3 })),
            ("spawn_entity", json!({ "entity_type": "Ghost of the Well", "location": "Town Square" })),
        ],
    )
    .await;
    assert_eq!(outcomes(&made), done(2), "{}", made.text);
    let guards = made.body["tool_calls"][0]["result"]["npcs"].as_array().unwrap().clone();
    let slugs: Vec<_> = guards.iter().map(|npc| npc["slug"].as_str().unwrap()).collect();
    assert_eq!(slugs, ["guard_2", "guard_3", "guard_4"]);
    let council = world.get(COUNCIL).await.expect(200).id();
    for slug in slugs {
        let npc = world.get(&format!("/npcs/{slug}")).await.expect(200).body;
        assert_eq!(
            (&npc["name"], &npc["race"], &npc["location"]),
            (&json!("Guard"), &json!("orc"), &json!("town_square"))
        );
        assert_eq!(
            (&npc["stats"]["hp"], &npc["owner_ids"], &npc["inventory"]),
            (&json!(11), &json!([council]), &json!(["club"]))
        );
    }
    let ghost = world.get("/npcs/ghost_of_the_well").await.expect(200).body;
    assert_eq!(ghost["available_tools"], json!(["NPC_memorize"]));
    // They are the owner's own: it can change them at once.
    let tamed =
        call(&world, "change_npc_behavior", json!({ "npc_id": "ghost_of_the_well", "behavior_type": "sad" })).await;
    assert_eq!(tamed["status"], "succeeded", "{tamed}");
    let turns = world.get("/turns?limit=200").await.expect(200).items().clone();
    let last = turns.iter().rfind(|turn| turn["id"] != made.body["id"]).unwrap()["id"].clone();
    world.post(&format!("/turns/{}/undo", last.as_str().unwrap()), json!({})).await.expect(200);
    undo(&world, &made).await;
    assert_eq!(world.get("/npcs?owner_id=town_council_owner").await.expect(200).items().len(), 1);
    world.get("/npcs/ghost_of_the_well").await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_limited() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let mut db = server.owner().await;
    let limited = "UPDATE tenant SET limits = limits || '{\"rows_per_kind\": 4}' WHERE slug = 'acme'";
    sqlx::query(limited).execute(&mut db).await.unwrap();
    let tenant = tenant.with_scopes(&edge::caller::Scope::ALL).await;
    let world = World { client: &tenant, slug: world.slug.clone() };
    let full =
        call(&world, "spawn_entity", json!({ "entity_type": "Rat", "location": "town_square", "quantity": 3 })).await;
    assert_eq!(full["error"]["code"], "quota_exceeded", "{full}");
    assert_eq!(world.get("/npcs").await.expect(200).items().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_rise_and_fall_between_their_bounds_and_prompts_tell_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    for (wrong, pointer) in [
        (json!([{ "name": "grain", "amount": -1 }]), "/resources"),
        (json!([{ "name": "grain", "amount": 5, "max": 4 }]), "/resources"),
        (json!([{ "name": "grain", "amount": 5 }, { "name": "Grain", "amount": 1 }]), "/resources"),
    ] {
        let refused = world.patch(COUNCIL, json!({ "resources": wrong })).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), [pointer]);
    }
    let stores =
        json!({ "resources": [{ "name": "Grain", "amount": 40, "max": 100 }, { "name": "silver", "amount": 5 }] });
    world.patch(COUNCIL, stores).await.expect(200);
    assert!(told(&world, "owners/town_council_owner").await.contains("your resources: Grain 40 of 100, silver 5"));
    assert!(told(&world, BOB).await.contains("resources of The Town Council: Grain 40 of 100, silver 5"));
    assert!(!told(&world, "npcs/harbour_ilse").await.contains("silver"));
    for (by, left) in [(-15, 25), (-100, 0), (7, 7), (500, 100)] {
        let changed = call(&world, "modify_resource", json!({ "resource_id": "grain", "change_amount": by })).await;
        assert_eq!(changed["result"]["amount"].as_f64(), Some(f64::from(left)), "{changed}");
        assert!(told(&world, BOB).await.contains(&format!("Grain {left} of 100")), "{by}");
    }
    let taken = turn(&world, &[("modify_resource", json!({ "resource_id": "grain", "change_amount": -99.5 }))]).await;
    assert!(told(&world, BOB).await.contains("Grain 0.5 of 100"));
    undo(&world, &taken).await;
    assert!(told(&world, BOB).await.contains("Grain 100 of 100"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_skill_shows_in_prompts_about_the_player() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let given = json!({ "player_id": "player_alice", "skill_id": "noble bearing", "initial_percentage": 25 });
    let granted = turn(&world, &[("grant_passive_skill", given.clone())]).await;
    assert_eq!(outcomes(&granted), done(1), "{}", granted.text);
    let alice = world.get("/characters/player_alice").await.expect(200).body;
    assert_eq!(alice["features"], json!([{ "name": "noble bearing", "percentage": 25 }]));
    assert!(told(&world, BOB).await.contains("the player's passive skills: noble bearing 25 %"));
    let twice = call(&world, "grant_passive_skill", given).await;
    assert_eq!(twice["error"]["code"], "validation_failed", "{twice}");
    undo(&world, &granted).await;
    assert!(!told(&world, BOB).await.contains("noble bearing"));
    assert_eq!(world.get("/characters/player_alice").await.expect(200).body["features"], json!([]));
}
