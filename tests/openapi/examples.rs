//! Every operation has an example: each is sent to a server with the world that tests begin with, is taken, and its answer is of the schema
//! that the document gives it.

use std::collections::BTreeMap;

use edge::users::Role;
use reqwest::Method;
use serde_json::{Value, json};
use tavernkeep::routes;

use crate::support::{Client, Server, until};

/// Operations that are not sent as the others are, with the reason.
pub const OTHERWISE: &[(&str, &str)] = &[
    ("connect_bridge", "a WebSocket: tests/bridge plays the examples of docs/bridge.md"),
    ("follow_changes", "a stream without an end: sent below"),
    ("follow_replies", "a stream without an end: tests/reactions follows it"),
];

pub struct Operation {
    pub id: String,
    pub method: Method,
    pub path: String,
    /// Names of the path with their examples.
    names: BTreeMap<String, Value>,
    /// The query's parameters that are required, with their examples.
    query: String,
    /// Media type and example of the body.
    pub body: Option<(String, Value)>,
}

pub fn operations(document: &Value) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let (in_path, others): (Vec<&Value>, Vec<&Value>) =
                parameters.partition(|parameter| parameter["in"] == "path");
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            for asked in others.iter().filter(|parameter| parameter["in"] == "query" && parameter["required"] == true) {
                query.append_pair(asked["name"].as_str().unwrap(), asked["example"].as_str().unwrap());
            }
            let name = |of: &Value| (of["name"].as_str().unwrap().to_owned(), of["example"].clone());
            let content = operation["requestBody"]["content"].as_object().into_iter().flatten();
            let mut body = content.map(|(kind, of)| (kind.clone(), of["example"].clone()));
            found.push(Operation {
                id: operation["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                names: in_path.into_iter().map(name).collect(),
                query: query.finish(),
                body: body.rfind(|(kind, _)| kind.contains("json")),
            });
        }
    }
    found
}

/// Makes by other operations what an operation needs that the world has not: `made` are the names of its path instead of its examples.
async fn prepare(server: &Server, tenant: &Client<'_>, operation: &Operation, made: &mut BTreeMap<String, Value>) {
    let campaign = "/v1/campaigns/port-town";
    let at = |rest: &str| format!("{campaign}{rest}");
    if operation.id == "delete_owner" {
        tenant.patch(&at("/npcs/innkeeper_bob"), json!({ "owner_ids": [] })).await.expect(200);
    }
    if operation.id.ends_with("_npc_instructions") {
        let draft = json!({ "pending_instructions": { "instructions": "Be brief." } });
        tenant.patch(&at("/npcs/innkeeper_bob"), draft).await.expect(200);
    }
    if operation.id.starts_with("greet_as_") {
        for actor in ["/npcs/innkeeper_bob", "/owners/town_council_owner"] {
            tenant.patch(&at(actor), json!({ "greetings": ["Welcome, {{user}}."] })).await.expect(200);
        }
    }
    for name in operation.names.keys() {
        if made.contains_key(name) {
            continue;
        }
        let id: Value = match name.as_str() {
            "scene" => {
                tenant.post(&at("/scenes"), json!({ "slug": "quay", "name": "The Quay" })).await.expect(201);
                "quay".into()
            }
            "session" => tenant.post(&at("/sessions"), json!({ "client_id": "vtt" })).await.expect(201).id().into(),
            "encounter" => encounter(tenant, operation).await,
            "participant" => "goblin".into(),
            "player_link" => {
                tenant.post(&at("/player-links"), json!({ "player_id": "player_alice" })).await.expect(201).id().into()
            }
            "memory" => {
                let memory = json!({ "player_id": "player_alice", "text": "She pays." });
                tenant.post(&at("/npcs/innkeeper_bob/memories"), memory).await.expect(201).id().into()
            }
            "reaction" | "reply" => reacted(server, tenant, operation, name).await,
            "message" => tenant.post(&at("/messages"), json!({ "content": "Ahoy." })).await.expect(201).id().into(),
            "turn" => turn(server, tenant, operation).await,
            "broadcast" => {
                let call = json!({ "actor": { "type": "owner", "id": "town_council_owner" },
                    "arguments": { "player_id": "player_alice", "memory_string": "She is back." } });
                let told = tenant.post(&at("/tools/OWNER_memorize_dependables"), call).await.expect(200);
                told.body["result"]["broadcast_id"].clone()
            }
            "bulk_edit" => {
                let edit = json!({ "ids": ["the_harbour"], "changes": { "tags": { "add": ["old"] } } });
                tenant.post(&at("/lore/bulk"), edit).await.expect(200).body["step_id"].clone()
            }
            "model" => {
                let profile = json!({ "slug": "storyteller", "name": "Storyteller" });
                tenant.post("/v1/models", profile).await.expect(201).body["slug"].clone()
            }
            "api_key" => {
                let key = json!({ "name": "Another", "scopes": ["read"] });
                tenant.post("/v1/api-keys", key).await.expect(201).id().into()
            }
            "user" => {
                // Who belongs to several tenants is changed by none of them.
                let email = format!("maya@{}.example.org", tenant.tenant);
                server.user(tenant.tenant, &email, Role::Viewer).await;
                email.into()
            }
            "erasure" => {
                let id = tenant.get(&at("/characters/player_mallory")).await.expect(200).id();
                tenant.delete(&at(&format!("/characters/{id}?erase=true"))).await;
                server.erasure_of(&id).await.into()
            }
            "seq" => seq(tenant, operation).await,
            _ => continue,
        };
        made.insert(name.clone(), id);
    }
}

/// A reaction, dead or not, or the reply of one.
async fn reacted(server: &Server, tenant: &Client<'_>, operation: &Operation, name: &str) -> Value {
    let at = |rest: &str| format!("/v1/campaigns/port-town{rest}");
    let act = json!({ "player_id": "player_alice", "type": "attack", "targets": ["innkeeper_bob"] });
    tenant.patch(&at("/npcs/innkeeper_bob"), json!({ "reaction_threshold": 10 })).await.expect(200);
    tenant.post(&at("/actions"), act).await.expect(202);
    until("the reaction", async || tenant.get(&at("/reactions?status=done")).await.expect(200).items().len() == 1)
        .await;
    if name != "reaction" {
        let replies = tenant.get(&at("/players/player_alice/replies")).await.expect(200);
        return replies.items()[0]["id"].clone();
    }
    if operation.id != "get_reaction" {
        let mut db = server.owner().await;
        sqlx::query("UPDATE reaction SET state = 'dead' WHERE tenant_id = $1")
            .bind(tenant.tenant)
            .execute(&mut db)
            .await
            .unwrap();
    }
    tenant.get(&at("/reactions")).await.expect(200).items()[0]["id"].clone()
}

async fn encounter(tenant: &Client<'_>, operation: &Operation) -> Value {
    let path = "/v1/campaigns/port-town/encounters";
    let fight = json!({ "participants": [{ "id": "alice", "character_id": "player_alice", "initiative": 20 },
        { "id": "goblin", "name": "Goblin", "hp": 7, "max_hp": 7, "armor_class": 15, "is_enemy": true, "initiative": 12 }] });
    let id = tenant.post(path, fight).await.expect(201).id();
    if operation.id == "undo_in_encounter" {
        let hurt = json!({ "action": "damage", "target_id": "goblin", "amount": 1 });
        tenant.post(&format!("{path}/{id}/actions"), hurt).await.expect(200);
    }
    if operation.id == "commit_encounter" {
        tenant.post(&format!("{path}/{id}/end"), json!({ "outcome": "victory" })).await.expect(200);
    }
    id.into()
}

/// A turn that is over, or one that goes on if it is to be cancelled.
async fn turn(server: &Server, tenant: &Client<'_>, operation: &Operation) -> Value {
    let path = "/v1/campaigns/port-town/npcs/innkeeper_bob/turns";
    let body = json!({ "player_id": "player_alice", "action": "I wave.", "stream": false });
    if operation.id != "cancel_turn" {
        return tenant.post(path, body).await.expect(200).id().into();
    }
    server.model.set_script(rehearsal::Script::always(rehearsal::Reply::hang()));
    let request = tenant.request(Method::POST, path).json(&body).header("Prefer", "respond-async");
    tenant.send(request).await.expect(202).body["turn_id"].clone()
}

/// The number of a change that can be taken back.
async fn seq(tenant: &Client<'_>, operation: &Operation) -> Value {
    let row = operation.path.split("/revisions").next().unwrap().to_owned();
    let row = operation
        .names
        .iter()
        .fold(row, |row, (name, example)| row.replace(&format!("{{{name}}}"), example.as_str().unwrap_or_default()));
    let changed = if row.contains("/lore/") { json!({ "title": "New" }) } else { json!({ "name": "New" }) };
    tenant.patch(&row, changed).await.expect(200);
    let revisions = tenant.get(&format!("{row}/revisions")).await.expect(200);
    revisions.items().last().unwrap()["seq"].clone()
}

pub fn filled(operation: &Operation, made: &BTreeMap<String, Value>) -> String {
    let path = operation.names.iter().fold(operation.path.clone(), |path, (name, example)| {
        let value = made.get(name).unwrap_or(example);
        let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        path.replace(&format!("{{{name}}}"), &value)
    });
    if operation.query.is_empty() { path } else { format!("{path}?{}", operation.query) }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_is_taken_and_answered_as_the_document_says() {
    let document = routes::published().unwrap();
    let operations = operations(&document);
    assert!(operations.len() > 120, "{}", operations.len());
    let mut wrong = Vec::new();
    let server = Server::start().await;
    // What only reads shares a world.
    let readers = server.tenant("readers").await;
    readers.world().await;
    let mut read = BTreeMap::new();
    for (n, operation) in operations.iter().enumerate() {
        if OTHERWISE.iter().any(|(id, _)| *id == operation.id) {
            continue;
        }
        if let Some((kind, Value::Null)) = &operation.body {
            wrong.push(format!("{}: no example of {kind}", operation.id));
            continue;
        }
        server.model.set_script(rehearsal::Script::always(rehearsal::Reply::persona()));
        let is_read = operation.method == Method::GET;
        let (tenant, mut made) = if is_read {
            (readers.with_credential(&readers.credential), std::mem::take(&mut read))
        } else {
            let tenant = server.tenant(&format!("tenant-{n}")).await;
            tenant.world().await;
            (tenant, BTreeMap::new())
        };
        prepare(&server, &tenant, operation, &mut made).await;
        let mut request = tenant.request(operation.method.clone(), &filled(operation, &made));
        if let Some((kind, body)) = &operation.body {
            request = request.header("Content-Type", kind).body(body.to_string());
        }
        // What is answered is held to the document by `send`.
        let answer = tenant.send(request).await;
        if is_read {
            read = made;
        }
        if !(200..300).contains(&answer.status) {
            wrong.push(format!("{}: {} {:.300}", operation.id, answer.status, answer.text));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_followed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let answer = tenant.request(Method::GET, "/v1/campaigns/port-town/events").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
}
