//! A character, and what its player wrote.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{CONFESSION, NAME, PLAYER, SLUG, STORY, assert_gone, erased, found, person, until};
use crate::support::{Server, World};

/// Leaves words of hers in every place that there is.
async fn lived(world: &World<'_>, id: &str) -> Lived {
    let client = world.client;
    let model = &client.server.model;
    // She talks with Bob, who remembers, under a key.
    model.set_script(Script::replies([
        Reply::tool(
            "NPC_memorize",
            json!({ "player_id": SLUG, "memory_string": format!("{NAME} said: {CONFESSION}.") }),
        ),
        Reply::text(format!("{NAME}, nobody shall hear that {CONFESSION}.")),
    ]));
    let turn = json!({ "player_id": SLUG, "action": format!("{CONFESSION}.") });
    let path = world.path("/npcs/innkeeper_bob/turns");
    let talk = client.post_with_key(&path, "talk-1", turn).await.expect(200).id();
    // As a stream of it leaves it.
    sqlx::query("INSERT INTO turn_event (tenant_id, turn_id, seq, name, data) SELECT tenant_id, id, 900, 'narrative', $2 FROM turn WHERE id::text = $1")
        .bind(&talk)
        .bind(NAME)
        .execute(&mut client.server.owner().await)
        .await
        .unwrap();
    // Others write of her.
    let lore = json!({ "slug": "the_theft", "title": format!("What {NAME} did"), "scope": "global",
        "content": format!("Some say {SLUG} took it. {STORY}."), "tags": [NAME], "known_by": [SLUG], "secret": true });
    let lore = world.post("/lore", lore).await.expect(201).id();
    world
        .patch(&format!("/lore/{lore}"), json!({ "content": format!("Now all say that {NAME} took it.") }))
        .await
        .expect(200);
    world.patch("/npcs/harbour_ilse", json!({ "description": format!("Owes {NAME} money.") })).await.expect(200);
    world.patch("/npcs/harbour_ilse", json!({ "description": "Owes nobody." })).await.expect(200);
    let memory =
        json!({ "player_id": "player_mallory", "text": "Paid.", "game_time": format!("The day after {NAME} left") });
    world.post("/npcs/harbour_ilse/memories", memory).await.expect(201);
    let said = json!({ "type": "chat", "content": format!("And she said: \"{CONFESSION}!\""), "speaker": { "name": "Ann" }, "author": "gm" });
    world.post("/messages", said).await.expect(201);
    let request = client
        .request(reqwest::Method::PATCH, &world.path("/npcs/harbour_ilse"))
        .header("x-request-id", format!("for-{SLUG}"));
    client.send(request.json(&json!({ "description": "Owes." }))).await.expect(200);
    // A table: events, the world as its frontend sees it, a turn of its AI.
    let session =
        world.post("/sessions", json!({ "client_id": format!("tablet-{SLUG}"), "role": "gm" })).await.expect(201).id();
    let event = json!({ "events": [{ "type": "chat_message", "data": { "content": CONFESSION, "speaker": { "name": NAME } } }] });
    world.post(&format!("/sessions/{session}/events"), event).await.expect(200);
    let event = json!({ "events": [{ "type": "item_acquired", "data": { "actor_id": "a1", "item_name": format!("The locket of {NAME}") } }] });
    world.post(&format!("/sessions/{session}/events"), event).await.expect(200);
    let seen = json!({ "active_scene": { "id": "s", "name": format!("The house of {NAME}") } });
    let told = client.request(reqwest::Method::PUT, &world.path(&format!("/sessions/{session}/world-state")));
    client.send(told.json(&seen)).await.expect(200);
    model.set_script(Script::always(Reply::text(format!("{NAME} whispers that {CONFESSION}."))));
    world.post(&format!("/sessions/{session}/turns"), json!({})).await.expect(200);
    // A fight, with an action of hers.
    let fight = json!({ "name": format!("{NAME} against all"), "participants": [
        { "id": SLUG, "character_id": SLUG, "initiative": 20 },
        { "id": "orc", "name": "Orc", "hp": 15, "max_hp": 15, "armor_class": 13, "is_enemy": true, "initiative": 10 },
    ] });
    let fight = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    let hurt = json!({ "action": "damage", "target_id": SLUG, "amount": 3 });
    world.post(&format!("/encounters/{fight}/actions"), hurt).await.expect(200);
    // One that was deleted, of which forks know still.
    let past = json!({ "name": "Long ago", "participants": [{ "id": SLUG, "character_id": SLUG, "initiative": 20 }] });
    let past = world.post("/encounters", past).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    world.delete(&format!("/encounters/{past}")).await.expect(204);
    // A file that waits to be imported.
    sqlx::query(
        "INSERT INTO pending_import (tenant_id, user_id, id, campaign_id, name, bytes) \
         SELECT tenant_id, uuid7(), uuid7(), id, $2, convert_to($2, 'UTF8') FROM campaign WHERE slug = $1",
    )
    .bind(&world.slug)
    .bind(NAME)
    .execute(&mut client.server.owner().await)
    .await
    .unwrap();
    // A copy of it all, and what she did later.
    world.post("/fork", json!({ "slug": "copy" })).await.expect(201);
    world.patch(&format!("/characters/{id}"), json!({ "hp": 12 })).await.expect(200);
    Lived { talk, lore, fight }
}

/// How many events of turns are kept.
async fn told(server: &Server) -> i64 {
    let row = sqlx::query("SELECT count(*) FROM turn_event").fetch_one(&mut server.owner().await).await.unwrap();
    sqlx::Row::get(&row, 0)
}

struct Lived {
    talk: String,
    lore: String,
    fight: String,
}

const WORDS: [&str; 5] = [NAME, SLUG, PLAYER, CONFESSION, STORY];

#[tokio::test(flavor = "multi_thread")]
async fn no_word_is_left_anywhere() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = person(&world).await;
    let lived = lived(&world, &id).await;
    let places = found(&server, &WORDS).await;
    for table in [
        "message",
        "turn",
        "memory",
        "character",
        "lore",
        "journal",
        "idempotency",
        "session",
        "session_event",
        "session_state",
        "encounter",
        "encounter_state",
        "encounter_log",
        "encounter_member",
        "encounter_past",
        "pending_import",
    ] {
        assert!(places.iter().any(|place| place.contains(&format!(" in {table}: "))), "nothing of her was in {table}");
    }
    assert_ne!(told(&server).await, 0);
    erased(&world, SLUG, "&forks=true").await;
    assert_gone(&server, &WORDS).await;
    // A word may be cut in two between two events: all of them go.
    assert_eq!(told(&server).await, 0);

    // What others have stays, without her.
    world.get(&format!("/characters/{id}")).await.problem(404, "not_found");
    let lore = world.get(&format!("/lore/{}", lived.lore)).await.expect(200);
    assert_eq!(lore.body["content"], "Now all say that [erased] took it.");
    assert_eq!(lore.body["known_by"], json!([]));
    let fight = world.get(&format!("/encounters/{}", lived.fight)).await.expect(200);
    assert_eq!(fight.body["name"], "[erased] against all");
    let hurt = json!({ "action": "damage", "target_id": "orc", "amount": 1 });
    world.post(&format!("/encounters/{}/actions", lived.fight), hurt).await.expect(200);
    // A repeated request does nothing anew, and is not answered as it was.
    let turn = json!({ "player_id": SLUG, "action": format!("{CONFESSION}.") });
    tenant
        .post_with_key(&world.path("/npcs/innkeeper_bob/turns"), "talk-1", turn)
        .await
        .problem(422, "validation_failed");
    // Alice has her own as before.
    world.bob("player_alice", "Hello").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_stays_dense_and_says_what_was_redacted() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = person(&world).await;
    let lived = lived(&world, &id).await;
    // Somebody else's turn, which wrote her name.
    server.model.set_script(Script::replies([
        Reply::tool(
            "NPC_memorize",
            json!({ "player_id": "player_alice", "memory_string": format!("Alice knows {NAME}.") }),
        ),
        Reply::text("I see."),
    ]));
    let other = world.bob("player_alice", "Whom do I know?").await.expect(200).id();
    let before = all_changes(&world).await;
    erased(&world, &id, "").await;
    let after = all_changes(&world).await;
    let seqs: Vec<i64> = after.iter().map(|change| change["seq"].as_i64().unwrap()).collect();
    assert_eq!(seqs, (1..=i64::try_from(after.len()).unwrap()).collect::<Vec<_>>(), "a number is missing");
    assert!(after.len() > before.len());
    for (old, new) in before.iter().zip(&after) {
        for member in ["seq", "table", "id", "op", "at"] {
            assert_eq!(old[member], new[member]);
        }
        let (text, is_hers) = (old.to_string(), new["table"] == "character" && new["id"] == id.as_str());
        let is_redacted = WORDS.iter().any(|word| text.contains(word)) || is_hers;
        assert!(!is_redacted || new["redacted_at"].is_string(), "{new}");
        assert!(WORDS.iter().all(|word| !new.to_string().contains(word)), "{new}");
    }
    // Revisions say so, and cannot be restored.
    let revisions = world.get(&format!("/lore/{}/revisions", lived.lore)).await.expect(200);
    let first = revisions.items().last().unwrap();
    assert!(first["redacted_at"].is_string(), "{first}");
    world
        .post(&format!("/lore/{}/revisions/{}/restore", lived.lore, first["seq"]), json!({}))
        .await
        .problem(410, "gone");
    let hers = after.iter().find(|change| change["table"] == "character" && change["id"] == id.as_str()).unwrap();
    world.post(&format!("/characters/{id}/revisions/{}/restore", hers["seq"]), json!({})).await.problem(410, "gone");
    // What touched it cannot be undone; what did not can.
    world.post(&format!("/turns/{}/undo", lived.talk), json!({})).await.problem(410, "gone");
    world.post(&format!("/turns/{other}/undo"), json!({})).await.problem(410, "gone");
    let turn = world.get(&format!("/turns/{}", lived.talk)).await.expect(200);
    assert!(
        turn.body["redacted_at"].is_string() && turn.body["narrative"] == "" && turn.body["trace"].is_null(),
        "{}",
        turn.text
    );
    server.model.set_script(Script::always(Reply::text("Welcome.")));
    let harmless = world.bob("player_alice", "Hello").await.expect(200).id();
    world.post(&format!("/turns/{harmless}/undo"), json!({})).await.expect(200);
    // A copy of the time before has everybody else.
    let fork = world.post("/fork", json!({ "slug": "then", "at_turn": other })).await.expect(201);
    assert_eq!(fork.body["slug"], "then");
    let characters = tenant.get("/v1/campaigns/then/characters").await.expect(200);
    let slugs: Vec<&str> = characters.items().iter().map(|c| c["slug"].as_str().unwrap()).collect();
    assert_eq!(slugs.len(), 2, "{slugs:?}");
    // The first copy was not to be reached into.
    assert!(found(&server, &[NAME]).await.iter().any(|place| place.contains(" in character: ")));
}

async fn all_changes(world: &World<'_>) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = world.get(&format!("/changes?after={after}&limit=200")).await.expect(200);
        all.extend(page.items().iter().cloned());
        after = page.body["next_after"].as_i64().unwrap();
        if page.body["has_more"] == false {
            return all;
        }
    }
}

/// A prompt that another player gets from what this server keeps has no word of hers.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_keeps_in_memory_does_not_tell_it_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let replica = Server::on(server.db.clone(), &[]).await;
    let there = tenant.at(&replica);
    let elsewhere = World { client: &there, slug: world.slug.clone() };
    person(&world).await;
    world.patch("/npcs/innkeeper_bob", json!({ "description": format!("He fears {NAME}.") })).await.expect(200);
    for place in [&world, &elsewhere] {
        place.bob("player_alice", "Hello").await.expect(200);
        assert!(place.client.server.model.requests().iter().any(|request| request.to_string().contains(NAME)));
    }
    erased(&world, SLUG, "").await;
    for place in [&world, &elsewhere] {
        place.bob("player_alice", "And now?").await.expect(200);
        let request = place.client.server.model.requests().pop().unwrap().to_string();
        assert!(!request.contains(NAME) && request.contains("He fears [erased]."), "{request}");
    }
}

/// A turn that runs for her is cancelled before anything else, and what it would have written is nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_runs_for_her_writes_nothing_afterwards() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    person(&world).await;
    let memory = json!({ "player_id": SLUG, "memory_string": format!("{NAME} came back.") });
    server
        .model
        .set_script(Script::replies([Reply::tool("NPC_memorize", memory), Reply::text(format!("{NAME}!")).held()]));
    let turn = world.bob(SLUG, CONFESSION);
    let erasing = async {
        until("the second call", || async { server.model.request_count() == 2 }).await;
        erased(&world, SLUG, "").await;
    };
    let (turn, ()) = tokio::join!(turn, erasing);
    assert_ne!(turn.body["status"], "succeeded", "{}", turn.text);
    assert_gone(&server, &WORDS).await;
    world.bob(SLUG, "Hello?").await.problem(422, "validation_failed");
}

/// More than one portion of everything, and a name that is a word of the rules.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_life_goes_in_portions_and_a_name_like_a_rule_breaks_no_fight() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = world
        .post("/characters", json!({ "slug": "fire", "name": "Fire", "player_name": PLAYER }))
        .await
        .expect(201)
        .id();
    let fight = json!({ "name": "Fire against the orc", "participants": [
        { "id": "fire", "character_id": "fire", "initiative": 20 },
        { "id": "orc", "name": "Orc", "hp": 15, "max_hp": 15, "armor_class": 13, "is_enemy": true, "initiative": 10 },
    ] });
    let fight = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    let burn = json!({ "action": "damage", "target_id": "orc", "amount": 2, "damage_type": "fire" });
    world.post(&format!("/encounters/{fight}/actions"), burn.clone()).await.expect(200);
    sqlx::query(
        "INSERT INTO message (tenant_id, campaign_id, id, type, speaker, content, author, player_id, whisper_to, blind) \
         SELECT c.tenant_id, c.campaign_id, uuid7(), 'chat', '{\"name\": \"Fire\"}', 'Line ' || n || ' of the epic of Fire', 'player', c.id, '[]', false \
         FROM character c, generate_series(1, 950) AS n WHERE c.id::text = $1",
    )
    .bind(&id)
    .execute(&mut server.owner().await)
    .await
    .unwrap();
    erased(&world, &id, "").await;
    assert_gone(&server, &[PLAYER, "epic of"]).await;
    // What the log tells of the fight stays, without the name.
    let left = world.get("/messages").await.expect(200);
    assert!(left.items().iter().all(|m| m["flavor"] == "fight"), "{}", left.text);
    assert!(left.text.contains("[erased] against Orc") && !left.text.contains("Fire"), "{}", left.text);
    world.post(&format!("/encounters/{fight}/actions"), burn).await.expect(200);
    assert!(world.get(&format!("/encounters/{fight}")).await.expect(200).text.contains("[erased] against the orc"));
}

/// One that was deleted without being erased is erased by its id.
#[tokio::test(flavor = "multi_thread")]
async fn who_was_deleted_before_can_still_be_erased() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = person(&world).await;
    server.model.set_script(Script::always(Reply::text(format!("Well, {CONFESSION}?"))));
    world.bob(SLUG, CONFESSION).await.expect(200);
    world.delete(&format!("/characters/{id}")).await.expect(204);
    assert!(!found(&server, &[NAME, CONFESSION]).await.is_empty());
    erased(&world, &id, "").await;
    assert_gone(&server, &WORDS).await;
}
