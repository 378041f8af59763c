//! Channels: a frontend's own name for a place to talk, which has one scene of the campaign.

use edge::{tenant_settings::service::set_limits, tenants::TenantLimits};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::Session;
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_message_gets_or_makes_the_scene_of_its_channel() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let quay = world.post("/scenes", json!({ "name": "The quay", "channel": "#quay" })).await.expect(201).id();
    let said = async |body: Value| world.post("/messages", body).await;
    let known = said(json!({ "content": "Ahoy!", "channel": "#quay" })).await.expect(201).body;
    assert_eq!(known["scene_id"], json!(quay));
    assert_eq!(known.get("channel"), None);

    let made =
        said(json!({ "content": "Anyone?", "channel": "Discord 42" })).await.expect(201).body["scene_id"].clone();
    let scene = world.get("/scenes/discord_42").await.expect(200).body;
    assert_eq!((&scene["id"], &scene["channel"], &scene["name"]), (&made, &json!("Discord 42"), &json!("Discord 42")));
    assert_eq!(scene["active"], false);
    let again = said(json!({ "content": "Hm.", "channel": "Discord 42" })).await.expect(201).body;
    assert_eq!(again["scene_id"], made);
    // A channel is its exact name; a slug that is taken gets a number.
    let other = said(json!({ "content": "Hm.", "channel": "discord-42" })).await.expect(201).body["scene_id"].clone();
    assert_ne!(other, made);

    // Both, if they agree; nothing is made if they do not.
    said(json!({ "content": "x", "scene_id": "the_quay", "channel": "#quay" })).await.expect(201);
    for (body, pointer, code) in [
        (json!({ "scene_id": quay, "channel": "Discord 42" }), "/channel", "invalid_value"),
        (json!({ "scene_id": quay, "channel": "new" }), "/channel", "invalid_value"),
        (json!({ "scene_id": "nowhere", "channel": "new" }), "/scene_id", "unknown_reference"),
        (json!({ "channel": "" }), "/channel", "invalid_value"),
        (json!({ "channel": "x".repeat(201) }), "/channel", "invalid_value"),
        (json!({ "channel": 7 }), "/channel", ""),
    ] {
        let mut body = body;
        body["content"] = json!("x");
        let refused = said(body).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), [pointer], "{}", refused.text);
        assert!(code.is_empty() || refused.body["errors"][0]["code"] == code, "{}", refused.text);
    }
    assert_eq!(world.get("/scenes").await.expect(200).items().len(), 3);
    world.post("/scenes", json!({ "name": "Second", "channel": "#quay" })).await.problem(409, "conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_name_a_channel_at_once_all_get_one_scene() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    // Two names that read as one slug, by messages and by sessions.
    let named = |n: usize| if n.is_multiple_of(2) { "Den 7" } else { "den-7" };
    let one = async |n: usize| {
        let made = if n.is_multiple_of(3) {
            world.post("/sessions", json!({ "client_id": format!("bot-{n}"), "channel": named(n) })).await
        } else {
            world.post("/messages", json!({ "content": "Hello", "channel": named(n) })).await
        };
        made.expect(201).body["scene_id"].as_str().unwrap().to_owned()
    };
    let scenes = join_all((0..24).map(one)).await;
    for (n, scene) in scenes.iter().enumerate() {
        assert_eq!(*scene, scenes[n % 2]);
    }
    assert_ne!(scenes[0], scenes[1]);
    assert_eq!(world.get("/scenes").await.expect(200).items().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_in_a_session_is_said_in_its_scene() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.post("/scenes", json!({ "name": "Elsewhere", "active": true })).await.expect(201);
    let token = json!([{ "id": "t1", "name": "Alice", "x": 1, "y": 2, "is_player": true }]);
    let den =
        world.post("/scenes", json!({ "name": "The den", "channel": "den", "tokens": token })).await.expect(201).id();
    let session = Session::with(&world, json!({ "client_id": "bot", "channel": "den" })).await;
    let shown = world.get(&session.path("")).await.expect(200).body;
    assert_eq!(shown["scene_id"], json!(den));

    assert_eq!(session.called("get_current_scene", json!({})).await["name"], "The den");
    session.chat("Who is there?").await;
    session.called("post_message", json!({ "content": "A cough." })).await;
    session.called("roll_dice", json!({ "rolls": [{ "formula": "1d6" }] })).await;
    session.turn().await;
    assert!(session.last_told().contains("\"name\":\"The den\""), "{}", session.last_told());
    world.post("/messages", json!({ "content": "By hand.", "session_id": session.id })).await.expect(201);
    let listed = world.get(&format!("/messages?session_id={}", session.id)).await.expect(200);
    let said = listed.items();
    assert_eq!(said.len(), 6);
    assert!(said.iter().all(|m| m["scene_id"] == json!(den)), "{said:?}");

    // Its scene's changes are its news, those of the active scene are not; another channel is another scene.
    world.patch("/scenes/elsewhere", json!({ "tokens": token })).await.expect(200);
    let moved = json!([{ "id": "t1", "name": "Alice", "x": 5, "y": 2, "is_player": true }]);
    world.patch("/scenes/the_den", json!({ "tokens": moved })).await.expect(200);
    let delta = session.delta().await;
    assert_eq!((&delta["TokenMoved"][0]["x"], delta.get("TokenCreated")), (&json!(5.0), None));
    assert_eq!(delta.get("SceneChanged"), None);
    let gone = world.patch(&session.path(""), json!({ "channel": "attic" })).await.expect(200).body;
    let changed = session.delta().await;
    assert_eq!(changed["SceneChanged"], json!({ "new_scene_id": gone["scene_id"], "new_scene_name": "attic" }));

    // Who comes again plays on where it was; without its scene the session is where the campaign is.
    let again = world.post("/sessions", json!({ "client_id": "bot" })).await.expect(200).body;
    assert_eq!(again["scene_id"], gone["scene_id"]);
    let back = world.post("/sessions", json!({ "client_id": "bot", "scene_id": "the_den" })).await.expect(200).body;
    assert_eq!(back["scene_id"], json!(den));
    let both = json!({ "client_id": "bot", "scene_id": "the_den", "channel": "attic" });
    assert_eq!(world.post("/sessions", both).await.problem(422, "validation_failed").pointers(), ["/channel"]);
    world.delete("/scenes/the_den").await.expect(204);
    assert_eq!(world.get(&session.path("")).await.expect(200).body["scene_id"], json!(null));
    assert_eq!(session.called("get_current_scene", json!({})).await["name"], "Elsewhere");
    session.chat("Still there?").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scene_that_is_made_counts_as_one() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let limits = TenantLimits { rows_per_kind: 4, ..TenantLimits::unlimited() };
    set_limits(&mut server.owner().await, tenant.tenant, &limits).await.unwrap();
    let world = tenant.world().await;
    world.post("/scenes", json!({ "name": "One", "channel": "one" })).await.expect(201);
    for name in ["a", "b", "c"] {
        world.post("/messages", json!({ "content": "x", "channel": name })).await.expect(201);
    }
    let refused = world.post("/sessions", json!({ "client_id": "bot", "channel": "two" })).await;
    refused.problem(429, "quota_exceeded");
    world.post("/sessions", json!({ "client_id": "bot", "channel": "one" })).await.expect(201);
}
