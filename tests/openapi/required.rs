//! What the server always answers is required: of each view that clients read most, every member that is there whatever the row holds is
//! one that the document requires, and every required one is there.

use std::collections::BTreeSet;

use edge::users::Role;
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

/// Compares rows with their schemas, and keeps what is not as the document says.
struct Compared {
    document: Value,
    wrong: Vec<String>,
}

impl Compared {
    fn new() -> Self {
        Self { document: routes::published().unwrap(), wrong: Vec::new() }
    }

    /// Of all rows of a schema: the members that all have are required, but for those that are there only `sometimes`.
    fn rows(&mut self, name: &str, rows: &[Value], sometimes: &[&str]) {
        assert!(!rows.is_empty(), "{name}");
        let required = members(&self.document, name, "required");
        let always: BTreeSet<String> =
            always(rows).into_iter().filter(|member| !sometimes.contains(&member.as_str())).collect();
        let known = members(&self.document, name, "properties");
        let missing: Vec<_> = always.difference(&required).collect();
        if !missing.is_empty() {
            self.wrong.push(format!("{name}: not required: {missing:?}"));
        }
        let absent: Vec<_> = required.difference(&always).filter(|m| !sometimes.contains(&m.as_str())).collect();
        if !absent.is_empty() {
            self.wrong.push(format!("{name}: required and not there: {absent:?}"));
        }
        let strangers: Vec<_> = always.difference(&known).collect();
        if !strangers.is_empty() {
            self.wrong.push(format!("{name}: not described: {strangers:?}"));
        }
    }

    /// The same for a single answer.
    fn one(&mut self, name: &str, row: &Value, sometimes: &[&str]) {
        self.rows(name, std::slice::from_ref(row), sometimes);
    }

    fn check(self) {
        let wrong = self.wrong;
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_always_answered_is_required() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    bare(&world).await;
    let player =
        tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice", "scopes": ["read", "play"] })).await;
    world.bob("player_alice", "I wave.").await.expect(200);
    let mut compared = Compared::new();
    for (name, path, sometimes) in VIEWS {
        let page = world.get(path).await.expect(200);
        compared.one(&format!("{name}Page"), &page.body, &[]);
        let mut rows = page.items().clone();
        // What a player's token is not shown need not be there.
        let theirs = player.get(&world.path(path)).await;
        if theirs.status == 200 {
            rows.extend(theirs.items().clone());
        }
        compared.rows(name, &rows, sometimes);
    }
    let mut campaigns = tenant.get("/v1/campaigns").await.expect(200).items().clone();
    campaigns.extend(player.get("/v1/campaigns").await.expect(200).items().clone());
    compared.rows("Campaign", &campaigns, &[]);
    compared.rows("ApiKey", tenant.get("/v1/api-keys").await.expect(200).items(), &[]);
    compared.one("Tenant", &tenant.get("/v1/tenant").await.expect(200).body, &[]);
    let fights = world.get("/encounters").await.expect(200);
    let fight = world.get(&format!("/encounters/{}", fights.items()[0]["id"].as_str().unwrap())).await.expect(200);
    let sometimes = ["turn", "warnings", "provoked", "notes", "name", "lighting", "participants", "terrain"];
    compared.one("Encounter", &fight.body, &sometimes);
    compared.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_always_answered_of_changes_people_and_turns_is_required() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut compared = Compared::new();
    // A change by a key, and one by a turn.
    world.patch("/npcs/innkeeper_bob", json!({ "name": "Bob" })).await.expect(200);
    let turn = world.bob("player_alice", "I wave.").await.expect(200);
    compared.one("Turn", &turn.body, &["prompt"]);
    let turn = world.get(&format!("/turns/{}", turn.id())).await.expect(200).body;
    compared.one("TurnRecord", &turn, &["prompt", "revert_conflicts", "trace", "journal"]);
    compared.one("JournalStretch", &turn["journal"], &[]);
    let changes = world.get("/changes?limit=200").await.expect(200);
    compared.one("JournalPage", &changes.body, &[]);
    compared.rows("JournalChange", changes.items(), &[]);
    let revisions = world.get("/npcs/innkeeper_bob/revisions").await.expect(200);
    compared.one("Revisions", &revisions.body, &[]);
    compared.rows("Revision", revisions.items(), &[]);
    server.user(tenant.tenant, "maya@example.org", Role::Viewer).await;
    tenant.post("/v1/users", json!({ "email": "noah@example.org", "role": "viewer" })).await.expect(201);
    let users = tenant.get("/v1/users").await.expect(200);
    compared.one("UserPage", &users.body, &[]);
    compared.rows("User", users.items(), &[]);
    compared.rows("UsageRow", tenant.get("/v1/usage").await.expect(200).items(), &["day"]);
    let mallory = world.get("/characters/player_mallory").await.expect(200).id();
    world.delete(&format!("/characters/{mallory}?erase=true")).await;
    let erasure = server.erasure_of(&mallory).await;
    compared.one("Erasure", &tenant.get(&format!("/v1/erasures/{erasure}")).await.expect(200).body, &[]);
    compared.check();
}

/// The cursor of a page is there even where it is null.
#[test]
fn pages_require_all_their_members() {
    let document = routes::published().unwrap();
    let names: Vec<_> = document["components"]["schemas"].as_object().unwrap().keys().collect();
    let pages: Vec<_> = names.iter().filter(|name| name.ends_with("Page") || **name == "Revisions").collect();
    assert!(pages.len() > 15, "{pages:?}");
    for name in pages {
        assert_eq!(members(&document, name, "required"), members(&document, name, "properties"), "{name}");
    }
}
