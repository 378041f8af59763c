//! What a session's AI is sent, as people review it: the prompt of a first and of a later turn, and each role's tools.

use std::fmt::Write as _;

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::Session;
use crate::support::Server;

/// The newest request's messages as text.
fn sent(server: &Server) -> String {
    let request = server.model.requests().pop().unwrap();
    let mut out = String::new();
    for message in request["messages"].as_array().unwrap() {
        let text = message["content"].as_str().unwrap();
        writeln!(out, "──── {}\n{text}", message["role"].as_str().unwrap()).unwrap();
    }
    out
}

fn keep(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "../snapshots" }, { insta::assert_snapshot!(name, text) });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_and_a_later_turn() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let bell = json!({ "title": "The bell", "scope": "global", "content": "It rings under water.", "secret": true,
        "activation": "keyword", "keys": ["bell"] });
    world.post("/lore", bell).await.expect(201);
    let state = json!({
        "session_info": { "game_system": "dnd5e", "gm_name": "Maya", "players": ["Ann"] },
        "active_scene": { "id": "s1", "name": "The quay", "location": "harbour",
            "dimensions": { "width": 400, "height": 300, "grid": 50 },
            "tokens": [{ "id": "t1", "name": "Alice", "actor_id": "a1", "x": 3, "y": 4, "is_player": true }] },
        "party_compendium": [{ "id": "a1", "name": "Alice", "player": "Ann" }],
    });
    let session = Session::with(&world, json!({ "client_id": "vtt", "role": "gm", "world_state": state })).await;
    server.model.set_script(Script::replies([Reply::text("Fog rolls in.")]));
    session.post("/turns", json!({ "instruction": "Begin." })).await.expect(200);
    keep("gm_first_turn", &sent(&server));
    session.chat("Is that a bell?").await;
    session.event("token_moved", json!({ "token_id": "t1", "x": 5, "y": 4 })).await;
    server.model.set_script(Script::replies([Reply::text("It is.")]));
    session.post("/turns", json!({})).await.expect(200);
    keep("gm_later_turn", &sent(&server));
}

/// What a model reads of a tool: one line a parameter.
fn tool_text(tool: &Value) -> String {
    let function = &tool["function"];
    let mut out = format!("{}: {}\n", function["name"].as_str().unwrap(), function["description"].as_str().unwrap());
    let parameters = &function["parameters"];
    for (name, schema) in parameters["properties"].as_object().into_iter().flatten() {
        let mut schema = schema.clone();
        let says = schema.as_object_mut().and_then(|s| s.remove("description")).unwrap_or_default();
        let required = parameters["required"].as_array().is_some_and(|r| r.contains(&json!(name)));
        let mark = if required { "!" } else { "" };
        writeln!(out, "  {name}{mark} {} {schema}", says.as_str().unwrap_or_default()).unwrap();
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_each_role_is_offered() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("", json!({ "settings": { "gm_encounters": true } })).await.expect(200);
    for role in ["gm", "assistant", "player"] {
        let body = json!({ "client_id": role, "role": role, "player_id": "player_alice" });
        let session = Session::with(&world, body).await;
        session.turn().await;
        let requests = server.model.requests();
        let request = requests.last().unwrap();
        let tools: Vec<_> = request["tools"].as_array().unwrap().iter().map(tool_text).collect();
        keep(&format!("tools_of_{role}"), &tools.join("\n"));
    }
}
