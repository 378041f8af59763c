//! What a copy holds: everything that is or was, under new ids, and nothing of sessions and dice.

use base::clock;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use sqlx::Row;

use super::{
    fork, fork_at,
    picture::{assert_same, feed, now, picture, replayed},
    undo,
};
use crate::support::{Server, World};

const BOB: &str = "npcs/innkeeper_bob";

fn remember(words: &str) -> Reply {
    Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": words }))
}

/// Bob notes something and answers.
async fn noted(world: &World<'_>, words: &str) -> String {
    let script = [remember(words), Reply::text(format!("Noted: {words}"))];
    world.client.server.model.set_script(Script::replies(script));
    world.bob("player_alice", &format!("Action: {words}")).await.expect(200).id()
}

/// A row of every kind, each with an id of another in it.
async fn furnished(world: &World<'_>) {
    let id = async |path: &str| world.get(path).await.expect(200).id();
    let (alice, bob) = (id("/characters/player_alice").await, id("/npcs/innkeeper_bob").await);
    let ilse = id("/npcs/harbour_ilse").await;
    let lore = json!({ "slug": "a_secret", "title": "A secret", "scope": "global", "content": bob, "secret": true,
        "known_by": ["innkeeper_bob", "harbour_ilse"], "external_ref": "secret" });
    world.post("/lore", lore).await.expect(201);
    let scene = json!({ "name": "Quay", "channel": "quay", "tokens": [{ "id": "t", "name": "Alice", "actor_id": alice }],
        "notes": [{ "about": bob }] });
    let scene = world.post("/scenes", scene).await.expect(201).id();
    let whisper = json!({ "content": "Psst.", "whisper_to": ["player_alice", "gm"], "player_id": "player_mallory", "scene_id": scene });
    world.post("/messages", whisper).await.expect(201);
    let blessed = json!({ "effects": [{ "name": "Bless", "source": ilse }], "extensions": { "friend": bob, "sheet": clock::id() } });
    world.patch("/characters/player_alice", blessed).await.expect(200);
    let call = json!({ "arguments": { "player_id": "player_alice", "memory_string": "An ally." },
        "actor": { "type": "owner", "id": "town_council_owner" } });
    world.post("/tools/OWNER_memorize_dependables", call).await.expect(200);
    let fight = json!({ "name": "Brawl", "participants": [
        { "id": "alice", "character_id": "player_alice", "initiative": 20 }, { "npc_id": "innkeeper_bob", "initiative": 5 },
        { "id": "orc", "hp": 15, "max_hp": 15, "is_enemy": true, "initiative": 10 }] });
    let fight = world.post("/encounters", fight).await.expect(201).id();
    let hurt = json!({ "action": "damage", "target_id": "alice", "amount": 3 });
    world.post(&format!("/encounters/{fight}/actions"), hurt).await.expect(200);
    let session =
        json!({ "client_id": "vtt", "role": "gm", "world_state": { "active_scene": { "id": "s", "name": "Quay" } } });
    let session = world.post("/sessions", session).await.expect(201).id();
    world.client.server.model.set_script(Script::replies([Reply::text("The bell rings.")]));
    world.post(&format!("/sessions/{session}/turns"), json!({ "instruction": "Begin." })).await.expect(200);
    world.post("/dice/seeds/rotate", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_present_is_copied_whole() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    furnished(&world).await;
    noted(&world, "one").await;
    let original = now(&world).await;
    let answer = world.post("/fork", json!({ "slug": "what-if", "name": "What if" })).await.expect(201);
    let copy = World { client: &tenant, slug: "what-if".to_owned() };
    assert_eq!(answer.body, copy.get("").await.expect(200).body);
    assert_eq!(answer.header("location"), format!("/v1/campaigns/{}", answer.id()));
    assert_eq!((answer.header("etag"), &answer.body["version"]), ("\"v1\"", &json!(1)));
    let source = world.get("").await.expect(200);
    assert_eq!(answer.body["forked_from"], json!({ "campaign_id": source.id() }));
    assert_eq!(source.body["forked_from"], Value::Null);
    copy.patch("", json!({ "forked_from": null })).await.problem(422, "validation_failed");
    assert_same(&now(&copy).await, &original, "the copy");
    assert_same(&now(&world).await, &original, "the original");

    // Nothing of the original is named in the copy, but in prose, which is as it was written.
    let mut db = server.owner().await;
    let text: String = sqlx::query(
        "SELECT concat((SELECT string_agg((j.after - '{content,prompt_text,search,text}'::text[])::text, '') FROM journal j WHERE j.campaign_id = $1 AND j.table_name <> 'campaign'), \
         (SELECT string_agg(concat(to_jsonb(s), to_jsonb(l), to_jsonb(m)), '') FROM encounter e JOIN encounter_state s ON s.encounter_id = e.id \
          LEFT JOIN encounter_log l ON l.encounter_id = e.id LEFT JOIN encounter_member m ON m.encounter_id = e.id WHERE e.campaign_id = $1)) AS text",
    )
    .bind(answer.id().parse::<uuid::Uuid>().unwrap())
    .fetch_one(&mut db)
    .await
    .unwrap()
    .get("text");
    for change in feed(&world).await {
        let id = change["id"].as_str().unwrap();
        assert!(!text.contains(id), "{} {id} is named in the copy", change["table"]);
    }
    assert!(copy.get("/sessions").await.expect(200).items().is_empty());
    assert!(copy.get("/turns").await.expect(200).items().is_empty());
    // The clients' own ids stay.
    let mine = |world: Value| world["extensions"]["sheet"].clone();
    let alice = async |world: &World<'_>| world.get("/characters/player_alice").await.expect(200).body;
    assert_eq!(mine(alice(&copy).await), mine(alice(&world).await));
    assert_eq!(alice(&copy).await["extensions"]["friend"], copy.get("/npcs/innkeeper_bob").await.body["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_of_a_copy_begins_with_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    furnished(&world).await;
    let before = feed(&world).await;
    let copy = fork(&world, json!({})).await;
    assert_eq!(feed(&world).await, before, "the original has not changed");
    let changes = feed(&copy).await;
    assert_eq!(changes[0]["table"], "campaign");
    let key = tenant.get("/v1/api-keys").await.expect(200).items()[0]["id"].clone();
    for (n, change) in changes.iter().enumerate() {
        assert_eq!(change["seq"], n as u64 + 1);
        assert_eq!((&change["op"], &change["origin"], &change["actor"]), (&json!("insert"), &json!("fork"), &key));
        assert_eq!(change["after"]["version"], 1, "{change}");
    }
    assert_same(&picture(replayed(changes.iter())), &picture(replayed(before.iter())), "the copy's journal");
    // Names that others have are counted on.
    assert_eq!(copy.get("").await.expect(200).body["slug"], "port-town-2");
    assert_eq!(fork(&copy, json!({})).await.get("").await.expect(200).body["slug"], "port-town-3");
    let dice = async |world: &World<'_>| world.get("/dice/seeds").await.expect(200).items()[0]["commitment"].clone();
    assert_ne!(dice(&copy).await, dice(&world).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_where_it_had_ended() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    furnished(&world).await;
    let first = noted(&world, "one").await;
    let (after_first, length) = (now(&world).await, feed(&world).await.len());
    // What comes after a turn is not of it, whatever happens to the rows.
    world.patch("", json!({ "name": "Renamed", "description": "Later." })).await.expect(200);
    world
        .patch("/npcs/innkeeper_bob", json!({ "owner_ids": [], "slug": "bob", "location": "cellar" }))
        .await
        .expect(200);
    world.delete("/lore/the_reach").await.expect(204);
    world.delete("/scenes/quay").await.expect(204);
    world.delete("/characters/player_mallory").await.expect(204);
    world.post("/npcs", json!({ "slug": "innkeeper_bob", "name": "A usurper" })).await.expect(201);
    world.patch("/npcs/bob", json!({ "slug": "bob_2" })).await.expect(200);
    let bob = json!({ "player_id": "player_alice", "action": "Hello again." });
    server.model.set_script(Script::replies([Reply::text("Hm.")]));
    let second = world.post("/npcs/bob_2/turns", bob).await.expect(200).id();
    let after_second = now(&world).await;
    undo(&world, &second).await.expect(200);
    undo(&world, &first).await.expect(200);
    for fight in world.get("/encounters").await.expect(200).items() {
        world.delete(&format!("/encounters/{}", fight["id"].as_str().unwrap())).await.expect(204);
    }
    let copy = fork_at(&world, &first).await;
    assert_same(&now(&copy).await, &after_first, "after the first turn");
    let told = copy.get("").await.expect(200).body;
    assert_eq!((&told["name"], &told["forked_from"]["turn_id"]), (&json!("port-town"), &json!(first)));
    let changes = feed(&world).await;
    assert_same(
        &picture(replayed(feed(&copy).await.iter())),
        &picture(replayed(changes[..length].iter())),
        "the journal forwards is the journal backwards",
    );
    let copy = fork_at(&world, &second).await;
    assert_same(&now(&copy).await, &after_second, "after the second turn");
    assert_eq!(copy.get("").await.expect(200).body["name"], "Renamed");
}

/// The messages of the prompt of an NPC.
async fn told(world: &World<'_>) -> Value {
    world.prompt("innkeeper_bob", "player_alice", "And now?").await["messages"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn npcs_remember_what_was_said() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut turns = Vec::new();
    for words in ["one", "two", "three"] {
        turns.push((noted(&world, words).await, told(&world).await));
    }
    undo(&world, &turns[2].0).await.expect(200);
    for (turn, prompt) in &turns {
        let copy = fork_at(&world, turn).await;
        assert_eq!(told(&copy).await, *prompt);
        // What the model is sent is what the preview showed, and the conversation goes on from there.
        server.model.set_script(Script::replies([Reply::text("As I said.")]));
        copy.bob("player_alice", "And now?").await.expect(200);
        let sent = server.model.requests().pop().unwrap();
        assert_eq!(sent["messages"].as_array().unwrap().len(), prompt.as_array().unwrap().len());
        assert!(sent["messages"].to_string().contains("Noted: one"));
        assert!(told(&copy).await.to_string().contains("As I said."));
        assert!(!told(&world).await.to_string().contains("As I said."));
    }
    assert_eq!(world.memories(BOB, "player_alice").await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_needs_the_other() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    furnished(&world).await;
    let turn = noted(&world, "one").await;
    let original = now(&world).await;
    let (copy, other) = (fork(&world, json!({})).await, fork_at(&world, &turn).await);
    // They go their own ways.
    noted(&copy, "two").await;
    copy.patch("/npcs/innkeeper_bob", json!({ "location": "cellar" })).await.expect(200);
    copy.delete("/lore/the_reach").await.expect(204);
    assert_same(&now(&world).await, &original, "the original after changes of the copy");
    copy.delete("").await.expect(204);
    assert_same(&now(&world).await, &original, "the original without the copy");
    world.delete("").await.expect(204);
    assert_same(&now(&other).await, &original, "the copy without the original");
    noted(&other, "two").await;
    let again = fork(&other, json!({})).await;
    assert_same(&now(&again).await, &now(&other).await, "a copy of a copy");
    assert_eq!(other.get("").await.expect(200).body["forked_from"]["turn_id"], turn.as_str());
}

/// What regenerates with time stands still between the turn and the copy.
#[tokio::test(flavor = "multi_thread")]
async fn time_that_passed_since_is_no_time_in_the_copy() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let influence = json!({ "influence": { "current": 10, "max": 100, "regen_per_hour": 5 } });
    world.patch("/owners/town_council_owner", influence).await.expect(200);
    let turn = noted(&world, "one").await;
    let back = "ALTER TABLE owner DISABLE TRIGGER USER; UPDATE owner SET influence_at = now() - interval '3 hours'; \
                ALTER TABLE owner ENABLE TRIGGER USER; UPDATE turn SET finished_at = now() - interval '1 hour'";
    sqlx::raw_sql(back).execute(&mut server.owner().await).await.unwrap();
    let has = async |world: World<'_>| {
        let owner = world.get("/owners/town_council_owner").await.expect(200).body;
        owner["influence"]["current"].as_f64().unwrap().round()
    };
    assert_eq!(has(fork_at(&world, &turn).await).await, 20.0);
    assert_eq!(has(fork(&world, json!({})).await).await, 25.0);
}

/// A column that a later release added is not in the journal's older rows.
#[tokio::test(flavor = "multi_thread")]
async fn older_rows_of_the_journal_get_defaults() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let turn = noted(&world, "one").await;
    let original = now(&world).await;
    world.patch("/characters/player_alice", json!({ "location": "cellar" })).await.expect(200);
    world.delete("/characters/player_mallory").await.expect(204);
    let older = "UPDATE journal SET before = before - 'turn_flags' WHERE table_name = 'character'";
    sqlx::raw_sql(older).execute(&mut server.owner().await).await.unwrap();
    assert_same(&now(&fork_at(&world, &turn).await).await, &original, "as of the turn");
}
