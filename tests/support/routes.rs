//! Every route of the access table as a request that could succeed: a path with the ids of one campaign, and a body.
//!
//! A new kind of row gets its id in [`Rows::make`], a new route its body in [`Rows::body`].

use base::clock;
use std::collections::BTreeMap;

use edge::{caller::access::Access, users::Role};
use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Row};

use super::{Client, Server, World};

/// The ids of a campaign that has a row of every kind. Texts that only its tenant may read hold `canary`.
pub struct Rows {
    pub campaign: String,
    pub alice: String,
    pub mallory: String,
    ids: BTreeMap<&'static str, String>,
    /// The last revision of a row of each kind.
    revisions: BTreeMap<&'static str, i64>,
}

impl Rows {
    /// Makes the campaign `port-town` of the world with a row of each kind.
    pub async fn make(client: &Client<'_>, canary: &str) -> Self {
        let world = World::make(client, "port-town").await;
        client.patch("/v1/tenant", json!({ "name": format!("House {canary}") })).await.expect(200);
        let gone = world
            .post("/characters", json!({ "slug": "somebody_gone", "name": "Somebody Gone" }))
            .await
            .expect(201)
            .id();
        world.delete(&format!("/characters/{gone}?erase=true")).await;
        let campaign = world.patch("", json!({ "description": canary })).await.expect(200).id();
        let mut ids = BTreeMap::new();
        ids.insert("erasures", client.server.erasure_of(&gone).await);
        for (kind, slug, member) in [
            ("characters", "player_alice", "race"),
            ("npcs", "innkeeper_bob", "personality_prompt"),
            ("owners", "town_council_owner", "personality_prompt"),
            ("lore", "the_reach", "content"),
        ] {
            ids.insert(kind, world.patch(&format!("/{kind}/{slug}"), json!({ member: canary })).await.expect(200).id());
        }
        let alice = ids["characters"].clone();
        let mallory = world.get("/characters/player_mallory").await.expect(200).id();
        ids.insert("scenes", world.post("/scenes", json!({ "name": canary })).await.expect(201).id());
        ids.insert("messages", world.post("/messages", json!({ "content": canary })).await.expect(201).id());
        let memory = json!({ "player_id": alice, "text": canary });
        ids.insert("memories", world.post("/npcs/innkeeper_bob/memories", memory).await.expect(201).id());
        let call = json!({
            "arguments": { "player_id": "player_alice", "memory_string": canary },
            "actor": { "type": "owner", "id": "town_council_owner" },
        });
        let called = world.post("/tools/OWNER_memorize_dependables", call).await.expect(200);
        ids.insert("broadcasts", called.body["result"]["broadcast_id"].as_str().unwrap().to_owned());
        ids.insert("tools", "NPC_memorize".to_owned());
        ids.insert("locations", "town_square".to_owned());
        ids.insert("commands", "roll".to_owned());
        ids.insert("srd", "weapons".to_owned());
        client.server.model.set_script(Script::replies([Reply::text(canary)]));
        ids.insert("turns", world.bob("player_alice", &format!("Have you heard of {canary}?")).await.expect(200).id());
        let (reaction, reply) = reacted(client, &world, canary).await;
        ids.insert("reactions", reaction);
        ids.insert("replies", reply);
        ids.insert("players", alice.clone());
        let link = json!({ "player_id": alice, "name": canary });
        let link = world.post("/player-links", link).await.expect(201).id();
        ids.insert("player-links", link.clone());
        // The same in the editor.
        ids.insert("invite", link);
        let session = json!({ "client_id": canary, "world_state": { "active_scene": { "id": "s", "name": canary } } });
        ids.insert("sessions", world.post("/sessions", session).await.expect(201).id());
        let fight =
            json!({ "participants": [{ "id": "goblin", "hp": 7, "max_hp": 7, "is_enemy": true }], "name": canary });
        ids.insert("encounters", world.post("/encounters", fight).await.expect(201).id());
        let edit = json!({ "ids": ["the_square"], "changes": { "tags": { "add": [canary] } } });
        ids.insert(
            "bulk",
            world.post("/lore/bulk", edit).await.expect(200).body["step_id"].as_str().unwrap().to_owned(),
        );
        let mut revisions = BTreeMap::new();
        for kind in ["characters", "npcs", "owners", "lore", "scenes"] {
            let newest = world.get(&format!("/{kind}/{}/revisions", ids[kind])).await.expect(200);
            revisions.insert(kind, newest.items()[0]["seq"].as_i64().unwrap());
        }
        revisions.insert("memories", 1);
        // The first look begins fair dice; later ones write nothing.
        world.get("/dice/seeds").await.expect(200);
        client.get("/v1/dice/seeds").await.expect(200);
        let address = || format!("{}@example.org", clock::id());
        let email = address();
        client.server.user(client.tenant, &email, Role::Viewer).await;
        let path = format!("/v1/users/{email}");
        ids.insert("users", client.patch(&path, json!({ "name": canary })).await.expect(200).id());
        let secret =
            |answer: super::Answer| answer.body["link"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        ids.insert("reset", secret(client.post(&format!("{path}/reset"), json!({})).await.expect(200)));
        let invited = json!({ "email": address(), "name": canary, "role": "viewer" });
        ids.insert("invitation", secret(client.post("/v1/users", invited).await.expect(201)));
        ids.insert("models", client.post("/v1/models", json!({ "name": canary })).await.expect(201).id());
        let key = json!({ "name": canary, "scopes": ["read"] });
        let key = client.post("/v1/api-keys", key).await.expect(201).id();
        ids.insert("keys", key.clone());
        ids.insert("api-keys", key);
        Self { campaign, alice, mallory, ids, revisions }
    }

    /// The path of a route's pattern.
    pub fn path(&self, pattern: &str) -> String {
        let (mut kind, mut held) = ("", "");
        let mut path = String::new();
        for part in pattern.split('/').skip(1) {
            path.push('/');
            if part == "{x}" {
                held = kind;
            }
            let seq = self.revisions.get(held).map(ToString::to_string).unwrap_or_default();
            path.push_str(match part {
                "{c}" => &self.campaign,
                "{seq}" => &seq,
                "{participant}" => "goblin",
                "{x}" | "{reply}" => self.ids.get(kind).unwrap_or_else(|| panic!("Rows::make makes no row of {kind}")),
                part => part,
            });
            kind = part;
        }
        path.push_str(match pattern {
            _ if pattern.ends_with("/memories/search") => "?q=canary",
            _ if pattern.ends_with("/table/change") => "?who=characters/player_alice",
            _ if pattern.ends_with("/table/live") => "?after=0",
            _ if pattern.ends_with("/table/lines") => "?before=1",
            _ => "",
        });
        path
    }

    /// A body that the route takes.
    pub fn body(&self, route: &Access) -> Value {
        let last = route.path.rsplit('/').find(|part| !part.starts_with('{')).unwrap_or_default();
        match (route.method, last) {
            ("GET" | "DELETE", _) | ("POST", "cancel" | "undo" | "token" | "rotate" | "restore" | "reset") => json!({}),
            ("POST", "ack" | "retry" | "test" | "regenerate" | "continue" | "choose" | "accept" | "discard") => {
                json!({})
            }
            ("POST", "greet") => json!({ "player_id": self.alice }),
            ("PATCH", "turns") => json!({ "narrative": "Changed." }),
            ("PATCH", "messages") => json!({ "content": "Changed." }),
            ("POST", "end") if route.path.contains("/reactions/") => json!({}),
            ("POST", "actions") if !route.path.contains("/encounters/") => {
                json!({ "player_id": self.alice, "type": "say", "text": "New." })
            }
            ("POST", "pray") => json!({ "player_id": self.alice, "message": "New." }),
            ("POST", "rehearse") => json!({ "actions": [{ "player_id": self.alice, "type": "say" }] }),
            ("POST", "encounters") => json!({ "participants": [{ "id": "new", "hp": 5, "max_hp": 5 }] }),
            ("POST", "fork") => json!({ "name": "New" }),
            ("POST", "actions") => json!({ "action": "damage", "target_id": "goblin", "amount": 1 }),
            ("POST", "participants") => json!({ "id": "new", "hp": 5, "max_hp": 5 }),
            ("POST", "end") => json!({ "outcome": "victory" }),
            ("POST", "commit") => json!({}),
            ("POST", "rest") => json!({ "type": "long" }),
            ("POST", "users") => {
                json!({ "email": format!("new-{}@example.org", clock::id()), "role": "viewer" })
            }
            ("POST", "api-keys") => json!({ "name": "new", "scopes": ["read"] }),
            ("POST", "campaigns" | "characters" | "npcs" | "scenes" | "models") => json!({ "name": "New" }),
            ("POST", "owners") => json!({ "name": "New", "monitored_aspect": "race", "associated_id": "elf" }),
            ("POST", "lore") => json!({ "title": "New", "scope": "global", "content": "New." }),
            ("POST", "bulk") => json!({ "ids": ["the_harbour"], "changes": { "tags": { "add": ["New"] } } }),
            ("POST", "duplicate") => json!({ "title": "New" }),
            ("POST", "mend-links") => json!({ "from": "New" }),
            ("POST", "move") => json!({ "player_id": self.mallory }),
            ("POST", "memories") => json!({ "player_id": self.alice, "text": "New." }),
            ("POST", "messages") => json!({ "content": "New." }),
            ("POST", "seed") => {
                json!({ "Lore": [{ "ID": "new", "Title": "New", "Scope": "global", "Content": "New." }] })
            }
            ("POST", "act") => json!({ "player_id": self.alice, "message": "I wave." }),
            ("POST", "commands") => json!({ "player_id": self.alice, "arguments": { "expr": "1d20[New]" } }),
            ("POST", "import") => {
                json!({ "format": "tavernkeep.campaign", "version": 1, "campaign": { "slug": "new", "name": "New" } })
            }
            ("POST", "character-card") => json!({
                "spec": "chara_card_v2", "spec_version": "2.0", "data": { "name": "New", "description": "New." },
            }),
            ("POST", "lorebook") => json!({ "entries": { "0": { "uid": 0, "key": ["New"], "content": "New." } } }),
            ("POST", "roll") => json!({ "rolls": [{ "formula": "1d20 + 3", "flavor": "New" }] }),
            ("POST", "analyze") => json!({ "formula": "1d20 + 3" }),
            ("POST", "verify") => {
                json!({ "server_seed": "00".repeat(32), "client_seed": "New", "counter": 1, "formula": "1d20" })
            }
            ("POST", "player-links") => json!({ "player_id": self.alice }),
            ("POST", "sessions") => json!({ "client_id": "new" }),
            ("PATCH", "sessions") => json!({ "dice": "frontend" }),
            ("PUT", "world-state") => json!({ "session_info": { "gm_name": "New" } }),
            ("POST", "events") => json!({ "events": [{ "type": "chat_message", "data": { "content": "New." } }] }),
            ("POST", "turns") if route.path.contains("/sessions/") => json!({ "instruction": "Go on." }),
            ("POST", "prompt" | "turns" | "resolve") => json!({ "player_id": self.alice, "action": "I wave." }),
            ("POST", "tools") => json!({
                "arguments": { "player_id": self.alice, "memory_string": "New." },
                "actor": { "type": "npc", "id": "innkeeper_bob" },
            }),
            ("PATCH", "lore") => json!({ "title": "Changed" }),
            ("PATCH", "memories") => json!({ "text": "Changed." }),
            (
                "PATCH",
                "tenant" | "api-keys" | "campaigns" | "characters" | "encounters" | "models" | "npcs" | "owners"
                | "scenes" | "users",
            ) => {
                json!({ "name": "Changed" })
            }
            _ => panic!("Rows::body has no body for {} {}", route.method, route.path),
        }
    }

    /// Sends the route's request as `client`.
    pub async fn send(&self, client: &Client<'_>, route: &Access) -> super::Answer {
        let request = client.request(route.method.parse().unwrap(), &self.path(route.path));
        let request = if matches!(route.method, "GET" | "DELETE") { request } else { request.json(&self.body(route)) };
        client.send(request).await
    }
}

/// A reaction that failed too often, and a reply that waits.
async fn reacted(client: &Client<'_>, world: &World<'_>, canary: &str) -> (String, String) {
    client.server.model.set_script(Script::always(Reply::text(canary)));
    let there = json!({ "location": "town_square" });
    world.patch("/characters/player_alice", there).await.expect(200);
    world.patch("/npcs/innkeeper_bob", json!({ "reaction_threshold": 10 })).await.expect(200);
    let act = json!({ "player_id": "player_alice", "type": "attack", "targets": ["innkeeper_bob"], "text": canary });
    world.post("/actions", act).await.expect(202);
    world.post("/pray", json!({ "player_id": "player_alice", "message": canary })).await.expect(202);
    super::until("the reactions", async || world.get("/reactions?status=done").await.expect(200).items().len() == 2)
        .await;
    // The answer to a prayer is heard everywhere.
    let replies = world.get("/players/player_alice/replies").await.expect(200);
    let of_owner = replies.items().iter().find(|reply| reply["entity"]["type"] == "owner").unwrap();
    let reply = of_owner["id"].as_str().unwrap().to_owned();
    // Where she is now, nobody notices her, nobody hears her prayers, and she does not hear the innkeeper: his reply is dropped here.
    world.patch("/characters/player_alice", json!({ "location": "starting_room" })).await.expect(200);
    let replies = world.get("/players/player_alice/replies").await.expect(200);
    assert_eq!(replies.items().len(), 1);
    let mut db = client.server.owner().await;
    let dead = "UPDATE reaction SET state = 'dead', error = '{\"code\": \"lost\", \"message\": \"Gone.\"}' WHERE tenant_id = $1 AND entity_kind = 'npc' RETURNING id::text";
    let row = sqlx::query(dead).bind(client.tenant).fetch_one(&mut db).await.unwrap();
    // Nothing reacts by itself from here on.
    let rest = "UPDATE significance SET cooldown_until = now() + interval '1 day' WHERE tenant_id = $1";
    sqlx::query(rest).bind(client.tenant).execute(&mut db).await.unwrap();
    (row.get(0), reply)
}

/// How many rows each tenant table holds. The journal is among them: no change of the world leaves the counts as they
/// were.
pub async fn counts(server: &Server) -> BTreeMap<String, i64> {
    let mut db = server.owner().await;
    let tables = sqlx::query(
        "SELECT table_name FROM information_schema.columns WHERE column_name = 'tenant_id' AND table_schema = 'public'",
    )
    .fetch_all(&mut db)
    .await
    .unwrap();
    let mut counts = BTreeMap::new();
    for table in tables {
        let name: String = table.get("table_name");
        let sql = AssertSqlSafe(format!("SELECT count(*) AS n FROM {name}"));
        counts.insert(name, sqlx::query(sql).fetch_one(&mut db).await.unwrap().get("n"));
    }
    counts
}
