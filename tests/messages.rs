//! Messages that are corrected.

use rehearsal::{Reply, Script};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, Server, World};

const ALICE: &str = "player_alice";

/// The messages of a turn: what the player said, and the answer.
async fn of_turn(world: &World<'_>, turn: &str) -> (Value, Value) {
    let said = world.get(&format!("/messages?turn_id={turn}")).await.expect(200);
    let by = |author: &str| said.items().iter().find(|m| m["author"] == author).cloned().unwrap();
    (by("player"), by("ai"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrected_line_is_what_everybody_reads_from_then_on() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::always(Reply::text("Of course.")));
    let turn = world.bob(ALICE, "Have you seen my catt?").await.expect(200).id();
    let (asked, _) = of_turn(&world, &turn).await;
    let path = format!("/messages/{}", asked["id"].as_str().unwrap());
    let changed = world.patch(&path, json!({ "content": "Have you seen my <cat>?" })).await.expect(200);
    assert_eq!((&changed.body["content"], &changed.body["version"]), (&json!("Have you seen my <cat>?"), &json!(2)));
    assert_eq!(changed.header("etag"), "\"v2\"");
    assert_eq!(world.get(&path).await.expect(200).body, changed.body);
    // The next prompt has it where the other was, in its fence.
    world.bob(ALICE, "And where?").await.expect(200);
    let prompt = server.model.requests().last().unwrap().to_string();
    assert!(prompt.contains("Have you seen my &lt;cat>?") && !prompt.contains("catt"), "{prompt}");
}

/// A correction belongs to the turn whose words it corrects, so undoing that turn does not stop at it.
#[tokio::test(flavor = "multi_thread")]
async fn undoing_a_turn_undoes_the_correction_of_its_words() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let turn = world.bob(ALICE, "I knock.").await.expect(200).id();
    let (asked, _) = of_turn(&world, &turn).await;
    let path = format!("/messages/{}", asked["id"].as_str().unwrap());
    world.patch(&path, json!({ "content": "I knock twice." })).await.expect(200);
    world.post(&format!("/turns/{turn}/undo"), json!({})).await.expect(200);
    world.get(&path).await.expect(404);
    assert!(world.get(&format!("/messages?turn_id={turn}")).await.expect(200).items().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_words_of_a_message_change_and_only_as_they_are_known() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let said =
        json!({ "content": "A seagull.", "author": "gm", "speaker": { "name": "Narrator" }, "whisper_to": [ALICE] });
    let message = world.post("/messages", said).await.expect(201);
    let path = format!("/messages/{}", message.id());
    for (body, pointer) in [
        (json!({ "content": "" }), "/content"),
        (json!({ "content": "  " }), "/content"),
        (json!({ "content": "x".repeat(20_001) }), "/content"),
        (json!({ "content": null }), "/content"),
        (json!({ "content": "A gull.", "author": "player" }), "/author"),
        (json!({}), "/content"),
    ] {
        let refused = world.patch(&path, body.clone()).await.expect(422);
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{body}: {}", refused.text);
    }
    let whole = world.path(&path);
    let stale =
        tenant.request(Method::PATCH, &whole).header("if-match", "\"v7\"").json(&json!({ "content": "A gull." }));
    tenant.send(stale).await.expect(412);
    assert_eq!(world.get(&path).await.expect(200).body, message.body);
    // The answer of an NPC is also the answer of its turn, which is corrected there.
    let turn = world.bob(ALICE, "I knock.").await.expect(200).id();
    let (_, answer) = of_turn(&world, &turn).await;
    let answered = format!("/messages/{}", answer["id"].as_str().unwrap());
    let refused = world.patch(&answered, json!({ "content": "No." })).await.expect(409);
    assert!(refused.body["detail"].as_str().unwrap().contains(&format!("/turns/{turn}")), "{}", refused.text);
    // Who may not read a message cannot correct it either.
    let key = json!({ "name": "writer", "scopes": ["read", "write"] });
    let key = tenant.post("/v1/api-keys", key).await.expect(201).body["key"].as_str().unwrap().to_owned();
    let writer = Client { server: &server, tenant: tenant.tenant, credential: key };
    writer.patch(&whole, json!({ "content": "Mine." })).await.expect(404);
    let open = world.post("/messages", json!({ "content": "A bell." })).await.expect(201).id();
    writer.patch(&world.path(&format!("/messages/{open}")), json!({ "content": "Two bells." })).await.expect(200);
}

/// What a player said to everybody.
async fn said(world: &World<'_>, words: &str) -> String {
    let said = json!({ "content": words, "author": "player", "player_id": ALICE, "speaker": { "name": "Alice" } });
    world.post("/messages", said).await.expect(201).id()
}

/// The messages of the campaign with these words.
async fn with_words(world: &World<'_>, words: &str) -> Vec<Value> {
    let all = world.get("/messages?limit=200").await.expect(200);
    all.items().iter().filter(|message| message["content"] == words).cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_npc_answers_what_was_said_already_and_nothing_is_said_twice() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::always(Reply::text("The bell of the harbour.")));
    let id = said(&world, "What was that bell?").await;
    // Something is asked and answered in between.
    world.bob(ALICE, "I order an ale.").await.expect(200);
    let turns = "/npcs/innkeeper_bob/turns";
    let asked = json!({ "player_id": ALICE, "message_id": id });
    let keyed = || {
        let request = tenant.request(Method::POST, &world.path(turns)).header("idempotency-key", "bell");
        tenant.send(request.json(&asked))
    };
    let turn = keyed().await.expect(200);
    assert_eq!(turn.body["narrative"], "The bell of the harbour.");
    assert_eq!(keyed().await.expect(200).id(), turn.id(), "a repeated request finds its answer");
    let [message] = with_words(&world, "What was that bell?").await.try_into().unwrap();
    assert_eq!(
        (&message["id"], &message["turn_id"], &message["author"]),
        (&json!(id), &turn.body["id"], &json!("player"))
    );
    world.post(turns, asked.clone()).await.problem(409, "conflict");
    // Both exchanges are in the conversation, in the order in which they were answered, also for a server that has nothing cached.
    let second = Server::on(server.db.clone(), &[]).await;
    for place in [&server, &second] {
        place.model.set_script(Script::always(Reply::text("Go on.")));
        let there = tenant.at(place);
        let told = there.npc_turn("port-town", "innkeeper_bob", ALICE, "I nod.").await.expect(200).id();
        let prompt = place.model.requests().last().unwrap().to_string();
        assert_eq!(prompt.matches("What was that bell?").count(), 1, "{prompt}");
        let at = |words: &str| prompt.find(words).unwrap_or_else(|| panic!("{words}: {prompt}"));
        assert!(
            at("I order an ale.") < at("What was that bell?") && at("What was that bell?") < at("I nod."),
            "{prompt}"
        );
        there.post(&world.path(&format!("/turns/{told}/undo")), json!({})).await.expect(200);
    }
    // Another attempt has it, and the undo leaves it, open for another answer.
    let again = world.post(&format!("/turns/{}/regenerate", turn.id()), json!({})).await.expect(200).id();
    assert_eq!(with_words(&world, "What was that bell?").await[0]["turn_id"], json!(again));
    world.post(&format!("/turns/{}/choose", turn.id()), json!({})).await.expect(200);
    assert_eq!(with_words(&world, "What was that bell?").await[0]["turn_id"], turn.body["id"]);
    world.post(&format!("/turns/{}/undo", turn.id()), json!({})).await.expect(200);
    let [message] = with_words(&world, "What was that bell?").await.try_into().unwrap();
    assert_eq!((&message["id"], &message["turn_id"], &message["entity_id"]), (&json!(id), &Value::Null, &Value::Null));
    let left = world.get(&format!("/messages?turn_id={}", turn.id())).await.expect(200);
    assert!(left.items().is_empty(), "{}", left.text);
    world.post("/owners/town_council_owner/turns", asked).await.expect(200);
    second.stop().await;
}

/// A turn that fails leaves the message open.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_could_answer_stays_open() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = said(&world, "Who is there?").await;
    server.model.set_script(Script::always(Reply::status(500)));
    let asked = json!({ "player_id": ALICE, "message_id": id });
    let failed = world.post("/npcs/innkeeper_bob/turns", asked.clone()).await;
    assert!(failed.status >= 500, "{}", failed.text);
    assert_eq!(with_words(&world, "Who is there?").await[0]["turn_id"], Value::Null);
    server.model.set_script(Script::always(Reply::text("Only me.")));
    world.post("/npcs/innkeeper_bob/turns", asked).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_this_player_said_can_be_answered() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = said(&world, "Hello?").await;
    let of_gm = world.post("/messages", json!({ "content": "It rains.", "author": "gm" })).await.expect(201).id();
    let whisper = json!({ "content": "Psst.", "author": "player", "player_id": ALICE, "whisper_to": ["gm"] });
    let whispered = world.post("/messages", whisper).await.expect(201).id();
    let long = said(&world, &"x".repeat(4_001)).await;
    let path = "/npcs/innkeeper_bob/turns";
    for (body, pointer) in [
        (json!({ "player_id": ALICE }), "/action"),
        (json!({ "player_id": ALICE, "action": "Hello?", "message_id": id }), "/action"),
        (json!({ "player_id": "player_mallory", "message_id": id }), "/message_id"),
        (json!({ "player_id": ALICE, "message_id": of_gm }), "/message_id"),
        (json!({ "player_id": ALICE, "message_id": whispered }), "/message_id"),
        (json!({ "player_id": ALICE, "message_id": long }), "/message_id"),
        (json!({ "player_id": ALICE, "message_id": world.slug }), "/message_id"),
    ] {
        let refused = world.post(path, body.clone()).await;
        assert!(matches!(refused.status, 400 | 422), "{body}: {}", refused.text);
        assert_eq!(refused.pointers(), [pointer], "{body}: {}", refused.text);
    }
    let key = json!({ "name": "frontend", "scopes": ["read", "write", "play"] });
    let credential = tenant.post("/v1/api-keys", key).await.expect(201).body["key"].as_str().unwrap().to_owned();
    let frontend = Client { server: &server, tenant: tenant.tenant, credential };
    frontend.post(&world.path(path), json!({ "player_id": ALICE, "message_id": id })).await.problem(403, "forbidden");
}

/// Several game masters let several NPCs answer the same line at once: one does.
#[tokio::test(flavor = "multi_thread")]
async fn one_answer_to_one_line() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::always(Reply::text("Aye.")));
    for slug in ["ada", "cleo", "dora", "emil"] {
        world.post("/npcs", json!({ "slug": slug, "name": slug })).await.expect(201);
    }
    let id = said(&world, "Anybody?").await;
    let asked = json!({ "player_id": ALICE, "message_id": id });
    let paths = ["ada", "cleo", "dora", "emil"].map(|slug| world.path(&format!("/npcs/{slug}/turns")));
    let answers = futures_util::future::join_all(paths.iter().map(|path| tenant.post(path, asked.clone()))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409]);
    assert_eq!(with_words(&world, "Aye.").await.len(), 1);
}
