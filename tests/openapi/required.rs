//! What the server always answers is required: of each view that clients read most, every member that is there whatever the row holds is
//! one that the document requires, and every required one is there.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tavernkeep::routes;

use crate::support::{Server, World};

/// Views with the path of a list, and members that are left out of some rows: they are there only when there is something to say.
const VIEWS: &[(&str, &str, &[&str])] = &[
    ("Character", "/characters", &[]),
    ("Npc", "/npcs", &[]),
    ("Owner", "/owners", &[]),
    ("LoreEntry", "/lore", &[]),
    ("Memory", "/memories", &[]),
    ("Message", "/messages", &[]),
    ("Scene", "/scenes", &[]),
    ("Session", "/sessions", &[]),
    ("TurnRecord", "/turns", &["prompt", "revert_conflicts"]),
    ("EncounterRecord", "/encounters", &[]),
];

fn members(document: &Value, name: &str, word: &str) -> BTreeSet<String> {
    let schema = &document["components"]["schemas"][name];
    let mut all = BTreeSet::new();
    for part in schema["allOf"].as_array().into_iter().flatten().chain([schema]) {
        let part = match part["$ref"].as_str() {
            Some(place) => document.pointer(place.trim_start_matches('#')).unwrap(),
            None => part,
        };
        match &part[word] {
            Value::Array(names) => all.extend(names.iter().filter_map(Value::as_str).map(ToOwned::to_owned)),
            Value::Object(names) => all.extend(names.keys().cloned()),
            _ => {}
        }
    }
    all
}

/// The members that all of some rows have.
fn always(rows: &[Value]) -> BTreeSet<String> {
    let names = |row: &Value| -> BTreeSet<String> { row.as_object().unwrap().keys().cloned().collect() };
    let mut rows = rows.iter().map(names);
    let first = rows.next().unwrap();
    rows.fold(first, |all, own| all.intersection(&own).cloned().collect())
}

/// A row of each kind that says as little as it can.
async fn bare(world: &World<'_>) {
    for (kind, row) in [
        ("characters", json!({ "name": "A" })),
        ("npcs", json!({ "name": "B" })),
        ("owners", json!({ "name": "C", "monitored_aspect": "race", "associated_id": "elf" })),
        ("lore", json!({ "title": "D", "scope": "global", "content": "E" })),
        ("scenes", json!({ "name": "F" })),
        ("messages", json!({ "content": "G" })),
        ("sessions", json!({ "client_id": "vtt" })),
        ("encounters", json!({ "participants": [{ "id": "goblin", "name": "Goblin", "hp": 7, "max_hp": 7 }] })),
        ("npcs/b/memories", json!({ "player_id": "a", "text": "H" })),
        ("npcs/b/turns", json!({ "player_id": "a", "action": "I wave." })),
    ] {
        let made = world.post(&format!("/{kind}"), row).await;
        assert!(made.status < 300, "{kind}: {}", made.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_always_answered_is_required() {
    let document = routes::published().unwrap();
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    bare(&world).await;
    let player =
        tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice", "scopes": ["read", "play"] })).await;
    world.bob("player_alice", "I wave.").await.expect(200);
    let mut wrong = Vec::new();
    let mut compare = |name: &str, rows: &[Value], sometimes: &[&str]| {
        assert!(!rows.is_empty(), "{name}");
        let required = members(&document, name, "required");
        let always: BTreeSet<String> =
            always(rows).into_iter().filter(|member| !sometimes.contains(&member.as_str())).collect();
        let known = members(&document, name, "properties");
        let missing: Vec<_> = always.difference(&required).collect();
        if !missing.is_empty() {
            wrong.push(format!("{name}: not required: {missing:?}"));
        }
        let absent: Vec<_> = required.difference(&always).filter(|m| !sometimes.contains(&m.as_str())).collect();
        if !absent.is_empty() {
            wrong.push(format!("{name}: required and not there: {absent:?}"));
        }
        let strangers: Vec<_> = always.difference(&known).collect();
        if !strangers.is_empty() {
            wrong.push(format!("{name}: not described: {strangers:?}"));
        }
    };
    for (name, path, sometimes) in VIEWS {
        let mut rows = world.get(path).await.expect(200).items().clone();
        // What a player's token is not shown need not be there.
        let theirs = player.get(&world.path(path)).await;
        if theirs.status == 200 {
            rows.extend(theirs.items().clone());
        }
        compare(name, &rows, sometimes);
    }
    let mut campaigns = tenant.get("/v1/campaigns").await.expect(200).items().clone();
    campaigns.extend(player.get("/v1/campaigns").await.expect(200).items().clone());
    compare("Campaign", &campaigns, &[]);
    compare("ApiKey", tenant.get("/v1/api-keys").await.expect(200).items(), &[]);
    compare("Tenant", &[tenant.get("/v1/tenant").await.expect(200).body], &[]);
    let fights = world.get("/encounters").await.expect(200);
    let fight = world.get(&format!("/encounters/{}", fights.items()[0]["id"].as_str().unwrap())).await.expect(200);
    compare(
        "Encounter",
        &[fight.body],
        &["turn", "warnings", "provoked", "notes", "name", "lighting", "participants", "terrain"],
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}
