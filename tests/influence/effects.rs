//! What owners' tools change: it is stored, later prompts tell it, and an undo takes it back.

use serde_json::{Value, json};

use super::{COUNCIL, call, done, outcomes, prepare, told, turn, undo};
use crate::support::{Server, World, until};

const BOB: &str = "npcs/innkeeper_bob";

/// The council and its square, with one campaign in which everything is free.
async fn free(world: &World<'_>) {
    prepare(world, 100.0).await;
    let free: serde_json::Map<String, Value> = super::TOOLS.iter().map(|name| ((*name).to_owned(), json!(0))).collect();
    world.patch("", json!({ "settings": { "tool_prices": free } })).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_reaches_its_player_alone() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let own = ("send_message", json!({ "target_id": "player_alice", "message": "We see you." }));
    let via = (
        "send_message",
        json!({ "target_id": "player_alice", "message": "Mind the step.", "via_npc_id": "innkeeper_bob" }),
    );
    let sent = turn(&world, &[own, via]).await;
    assert_eq!(outcomes(&sent), done(2), "{}", sent.text);
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
    undo(&world, &sent).await;
    assert!(!world.get("/messages").await.expect(200).text.contains("We see you."));
}

/// The text of a section of Bob's prompt for a player.
async fn section(world: &World<'_>, name: &str, player: &str) -> String {
    let prompt = world.prompt("innkeeper_bob", player, "Hello.").await;
    let found = prompt["sections"].as_array().unwrap().iter().find(|section| section["name"] == name).cloned();
    found.unwrap()["text"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_npc_behaves_as_its_owner_says_towards_all_or_towards_one() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let behave = |text: &str| ("change_npc_behavior", json!({ "npc_id": "innkeeper_bob", "behavior": text }));
    let mut to_alice = behave("Charges double.");
    to_alice.1["player_id"] = json!("player_alice");
    let first = turn(&world, &[behave("Sells no ale."), to_alice]).await;
    assert_eq!(outcomes(&first), done(2), "{}", first.text);
    let personality = section(&world, "personality", "player_alice").await;
    assert!(personality.contains("- Sells no ale.\n- to this player: Charges double."), "{personality}");
    let other = section(&world, "personality", "player_mallory").await;
    assert!(other.contains("Sells no ale.") && !other.contains("Charges double."), "{other}");
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    let behaviors = async || world.get("/npcs/innkeeper_bob").await.expect(200).body["behaviors"].clone();
    let stored = behaviors().await;
    assert_eq!((&stored[0]["text"], &stored[1]["player_id"]), (&json!("Sells no ale."), &json!(alice)), "{stored}");
    assert!(stored[0].get("player_id").is_none() && stored[0]["created_at"].is_string(), "{stored}");
    // Nobody writes them, and players do not read them.
    let refused =
        world.patch("/npcs/innkeeper_bob", json!({ "behaviors": [] })).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/behaviors"]);
    let token =
        tenant.token(json!({ "scopes": ["read", "play"], "campaign": world.slug, "player_id": "player_alice" })).await;
    assert!(!token.get(&world.path("/npcs/innkeeper_bob")).await.expect(200).text.contains("behaviors"));
    // What came after an undone turn stays.
    let second = turn(&world, &[behave("Hums.")]).await;
    assert_eq!(outcomes(&second), done(1));
    undo(&world, &first).await;
    let left = behaviors().await;
    assert_eq!((left.as_array().unwrap().len(), &left[0]["text"]), (1, &json!("Hums.")), "{left}");
    // Only the newest twenty are kept.
    for n in 0..4 {
        let calls: Vec<_> = (0..6).map(|i| behave(&format!("Whistles {}.", n * 6 + i))).collect();
        assert_eq!(outcomes(&turn(&world, &calls).await), done(6));
    }
    let kept = behaviors().await;
    assert_eq!((kept.as_array().unwrap().len(), &kept[0]["text"]), (20, &json!("Whistles 4.")), "{kept}");
    // Those towards a player go with the player.
    let mut to_mallory = behave("Spits.");
    to_mallory.1["player_id"] = json!("player_mallory");
    assert_eq!(outcomes(&turn(&world, &[to_mallory]).await), done(1));
    assert!(behaviors().await.to_string().contains("Spits."));
    world.delete("/characters/player_mallory").await.expect(204);
    assert!(!behaviors().await.to_string().contains("Spits."));
    // An exported world has them, by slug, and an imported one keeps them.
    let file = world.get("/export").await.expect(200).body;
    let npc = file["npcs"].as_array().unwrap().iter().find(|npc| npc["slug"] == "innkeeper_bob").unwrap().clone();
    assert_eq!(npc["behaviors"].as_array().unwrap().len(), 19, "{npc}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stats_and_disposition_change_and_the_next_prompt_tells_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let before = world.get("/npcs/innkeeper_bob").await.expect(200).body;
    assert!(!told(&world, BOB).await.contains("your body"));
    let changes = json!({ "armor_class": 14, "max_hp": 20, "hp": 9, "speed": 20, "disposition": "afraid of Alice" });
    let call = ("change_npc_stats", json!({ "npc_id": "innkeeper_bob", "changes": changes }));
    let changed = turn(&world, &[call]).await;
    assert_eq!(outcomes(&changed), done(1), "{}", changed.text);
    let heard = told(&world, BOB).await;
    assert!(heard.contains("your disposition: afraid of Alice"), "{heard}");
    assert!(heard.contains("9 of 20 hit points, armor class 14, speed 20 feet"), "{heard}");
    undo(&world, &changed).await;
    let after = world.get("/npcs/innkeeper_bob").await.expect(200).body;
    assert_eq!((&after["stats"], &after["disposition"]), (&before["stats"], &before["disposition"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_told_in_the_log_and_to_those_whom_it_concerns_for_a_day() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let flood = json!({ "title": "Flood", "description": "The square is under water." });
    let first = turn(&world, &[("trigger_world_event", flood.clone())]).await;
    assert_eq!(outcomes(&first), done(1), "{}", first.text);
    let messages = world.get("/messages").await.expect(200);
    let id = &first.body["tool_calls"][0]["result"]["message_id"];
    let message = messages.items().iter().find(|message| &message["id"] == id).unwrap().clone();
    assert_eq!((&message["type"], &message["author"]), (&json!("system"), &json!("system")));
    assert_eq!(message["content"], "Flood: The square is under water.");
    assert_eq!((&message["whisper_to"], message.get("event")), (&json!([]), None));
    // Bob answers to the council, so what happens there concerns him; Ilse does not.
    let line = "<events>\n- Flood: The square is under water.\n</events>";
    for (who, knows) in [("owners/town_council_owner", true), (BOB, true), ("npcs/harbour_ilse", false)] {
        let heard = told(&world, who).await;
        assert_eq!(heard.contains(line), knows, "{who}: {heard}");
    }
    // Whoever comes to the square sees it.
    world.patch("/npcs/harbour_ilse", json!({ "location": "town-square" })).await.expect(200);
    assert!(told(&world, "npcs/harbour_ilse").await.contains(line));
    undo(&world, &first).await;
    assert!(!told(&world, BOB).await.contains("<events>"));
    // At one place of a domain that is larger.
    world.patch(COUNCIL, json!({ "monitored_aspect": "faction", "associated_id": "watch" })).await.expect(200);
    world.patch("/npcs/innkeeper_bob", json!({ "location": "The Gilded Gull" })).await.expect(200);
    let mut there = flood.clone();
    there["location"] = json!("the gilded gull");
    let second = turn(&world, &[("trigger_world_event", there)]).await;
    assert_eq!(outcomes(&second), done(1), "{}", second.text);
    assert!(told(&world, BOB).await.contains(line));
    world.patch("/npcs/innkeeper_bob", json!({ "location": "harbour" })).await.expect(200);
    world.patch("/characters/player_alice", json!({ "location": "harbour" })).await.expect(200);
    assert!(!told(&world, BOB).await.contains("<events>"));
    assert!(told(&world, "owners/town_council_owner").await.contains(line));
    // It ends by time, also in a prompt that is cached.
    let over = "UPDATE message SET event = jsonb_set(event, '{until}', to_jsonb(now() + interval '2 seconds')) WHERE event IS NOT NULL";
    sqlx::query(over).execute(&mut server.owner().await).await.unwrap();
    until("the end of the event", async || !told(&world, "owners/town_council_owner").await.contains(line)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_locked_stays_as_it_is() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    for path in [COUNCIL, "/npcs/innkeeper_bob", "/characters/player_alice"] {
        assert_eq!(world.patch(path, json!({ "ai_lock": true })).await.expect(200).body["ai_lock"], true);
    }
    let before = world.get("/changes?limit=200").await.expect(200).items().len();
    let calls = [
        ("change_npc_behavior", json!({ "npc_id": "innkeeper_bob", "behavior": "Hums." })),
        ("change_npc_stats", json!({ "npc_id": "innkeeper_bob", "changes": { "speed": 10 } })),
        ("modify_resource", json!({ "name": "grain", "change": 5 })),
        ("grant_passive_skill", json!({ "player_id": "player_alice", "name": "keen eyes" })),
    ];
    let refused = turn(&world, &calls).await;
    assert_eq!(outcomes(&refused), vec![("failed".to_owned(), "locked".to_owned()); 4], "{}", refused.text);
    for (tool, given) in calls {
        let body = json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "arguments": given });
        let told = world.post(&format!("/tools/{tool}"), body).await.expect(200).body;
        assert_eq!((&told["status"], &told["error"]["code"]), (&json!("failed"), &json!("locked")), "{told}");
    }
    // So does a sheet that a rule would change; a memory is not the row.
    let hurt = json!({ "actor": { "type": "gm" }, "arguments": { "target": "player_alice", "parts": [{ "amount": 1, "type": "fire" }] } });
    let told = world.post("/tools/apply_damage", hurt.clone()).await.expect(200).body;
    assert_eq!((&told["status"], &told["error"]["code"]), (&json!("failed"), &json!("locked")), "{told}");
    assert_eq!(world.get("/changes?limit=200").await.expect(200).items().len(), before + 2, "the turn's two messages");
    let remembered = turn(&world, &[super::remember("She pays.")]).await;
    assert_eq!(outcomes(&remembered), done(1));
    // People change it all the same, and without the lock tools do.
    world.patch("/characters/player_alice", json!({ "ai_lock": false })).await.expect(200);
    assert_eq!(world.post("/tools/apply_damage", hurt).await.expect(200).body["status"], "succeeded");
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
            ("spawn_entity", json!({ "kind": "npc", "name": "guard", "location": "town_square", "quantity": 3 })),
            ("spawn_entity", json!({ "kind": "npc", "name": "Ghost of the Well", "description": "It drips.", "location": "Town Square" })),
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
    assert_eq!(ghost["description"], "It drips.");
    // They are the owner's own: it can change them at once.
    let tamed =
        call(&world, "change_npc_behavior", json!({ "npc_id": "ghost_of_the_well", "behavior": "Weeps." })).await;
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
        call(&world, "spawn_entity", json!({ "kind": "npc", "name": "Rat", "location": "town_square", "quantity": 3 }))
            .await;
    assert_eq!(full["error"]["code"], "quota_exceeded", "{full}");
    assert_eq!(world.get("/npcs").await.expect(200).items().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_rise_and_fall_and_prompts_tell_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let refused = world.patch(COUNCIL, json!({ "resources": [] })).await.problem(422, "validation_failed");
    assert_eq!(
        (refused.pointers(), refused.body["errors"][0]["code"].as_str()),
        (vec!["/resources"], Some("read_only"))
    );
    let change = |name: &str, by: f64| ("modify_resource", json!({ "name": name, "change": by }));
    let mut at_square = change("grain", 3.0);
    at_square.1["location"] = json!("Town Square");
    let first = turn(&world, &[change("Grain", 40.0), change("silver", 5.0), at_square]).await;
    assert_eq!(outcomes(&first), done(3), "{}", first.text);
    let all = "Grain 40, silver 5, grain 3 at Town Square";
    assert!(told(&world, "owners/town_council_owner").await.contains(&format!("your resources: {all}")));
    assert!(told(&world, BOB).await.contains(&format!("resources of The Town Council: {all}")));
    assert!(!told(&world, "npcs/harbour_ilse").await.contains("silver"));
    let taken = turn(&world, &[change("grain", -15.5)]).await;
    assert_eq!(taken.body["tool_calls"][0]["result"], json!({ "name": "Grain", "amount": 24.5 }), "{}", taken.text);
    // There is never less than nothing.
    let short = call(&world, "modify_resource", change("grain", -25.0).1).await;
    assert_eq!((&short["status"], &short["error"]["code"]), (&json!("failed"), &json!("not_enough")), "{short}");
    let none = call(&world, "modify_resource", change("gold", -1.0).1).await;
    assert_eq!(none["error"]["code"], "not_enough", "{none}");
    // An undo takes back what its turn did, whatever came after.
    undo(&world, &first).await;
    let left = world.get(COUNCIL).await.expect(200).body["resources"].clone();
    assert_eq!(left, json!([]), "40 given and 15.5 taken leave less than nothing");
    undo(&world, &taken).await;
    let left = world.get(COUNCIL).await.expect(200).body["resources"].clone();
    assert_eq!(left, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_takes_back_a_part_of_a_resource() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let change = |by: f64| ("modify_resource", json!({ "name": "grain", "change": by }));
    let mut turns = Vec::new();
    for by in [40.0, -10.0, 2.0] {
        turns.push(turn(&world, &[change(by)]).await);
    }
    let has = async || world.get(COUNCIL).await.expect(200).body["resources"].clone();
    undo(&world, &turns[1]).await;
    assert_eq!(has().await, json!([{ "name": "grain", "amount": 42.0 }]));
    undo(&world, &turns[0]).await;
    assert_eq!(has().await, json!([{ "name": "grain", "amount": 2.0 }]));
    // What is used up is gone, and comes back with an undo, whatever else came meanwhile.
    let all = turn(&world, &[change(-2.0)]).await;
    assert_eq!(has().await, json!([]));
    let silver = turn(&world, &[("modify_resource", json!({ "name": "silver", "change": 0.3 }))]).await;
    for by in [-0.1, -0.1] {
        turn(&world, &[("modify_resource", json!({ "name": "silver", "change": by }))]).await;
    }
    undo(&world, &all).await;
    let both = json!([{ "name": "silver", "amount": 0.1 }, { "name": "grain", "amount": 2.0 }]);
    assert_eq!(has().await, both, "{}", silver.text);
    turn(&world, &[("modify_resource", json!({ "name": "silver", "change": -0.1 }))]).await;
    // A document of the world keeps it.
    let file = world.get("/export").await.expect(200).body;
    assert_eq!(file["owners"][0]["resources"], json!([{ "name": "grain", "amount": 2.0 }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_skill_shows_in_prompts_about_the_player() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    free(&world).await;
    let given = json!({ "player_id": "player_alice", "name": "noble bearing", "description": "People step aside." });
    let granted = turn(&world, &[("grant_passive_skill", given.clone())]).await;
    assert_eq!(outcomes(&granted), done(1), "{}", granted.text);
    let alice = world.get("/characters/player_alice").await.expect(200).body;
    let feature = json!({ "name": "noble bearing", "description": "People step aside.", "source": "The Town Council" });
    assert_eq!(alice["features"], json!([feature]));
    assert!(told(&world, BOB).await.contains("the player's passive skills: noble bearing (People step aside.)"));
    let twice = call(&world, "grant_passive_skill", given).await;
    assert_eq!(twice["error"]["code"], "validation_failed", "{twice}");
    undo(&world, &granted).await;
    assert!(!told(&world, BOB).await.contains("noble bearing"));
    assert_eq!(world.get("/characters/player_alice").await.expect(200).body["features"], json!([]));
}
