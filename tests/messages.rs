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
