//! Sessions over HTTP: what frontends report, what changed since the AI's last turn, and the turns of that AI.

mod channels;
mod deltas;
mod events;
mod fights;
mod frontends;
mod kept;
mod lore;
mod prompts;
mod roles;
mod tools;
mod turns;

use serde_json::{Value, json};

use crate::support::{Answer, World};

/// A session of a world.
struct Session<'a> {
    world: &'a World<'a>,
    id: String,
}

impl<'a> Session<'a> {
    async fn open(world: &'a World<'a>, client: &str) -> Self {
        Self::with(world, json!({ "client_id": client, "role": "gm" })).await
    }

    async fn with(world: &'a World<'a>, body: Value) -> Self {
        let id = world.post("/sessions", body).await.expect(201).id();
        Self { world, id }
    }

    fn path(&self, rest: &str) -> String {
        format!("/sessions/{}{rest}", self.id)
    }

    async fn post(&self, rest: &str, body: Value) -> Answer {
        self.world.post(&self.path(rest), body).await
    }

    async fn events(&self, events: Value) -> Answer {
        self.post("/events", json!({ "events": events })).await
    }

    async fn event(&self, kind: &str, data: Value) {
        self.events(json!([{ "type": kind, "data": data }])).await.expect(200);
    }

    async fn chat(&self, text: &str) {
        self.event("chat_message", json!({ "content": text, "speaker": { "name": "Ann" } })).await;
    }

    async fn turn(&self) -> Value {
        self.post("/turns", json!({})).await.expect(200).body
    }

    async fn delta(&self) -> Value {
        self.world.get(&self.path("/delta")).await.expect(200).body
    }

    /// A tool called by hand in this session.
    async fn tool(&self, name: &str, arguments: Value) -> Answer {
        self.world.post(&format!("/tools/{name}"), json!({ "arguments": arguments, "session_id": self.id })).await
    }

    async fn called(&self, name: &str, arguments: Value) -> Value {
        self.tool(name, arguments).await.expect(200).body["result"].take()
    }

    /// The text of the last message the model was sent.
    fn last_told(&self) -> String {
        let request = self.world.client.server.model.requests().pop().unwrap();
        let messages = request["messages"].as_array().unwrap();
        let last = messages.iter().rev().find(|m| m["role"] == "user").unwrap();
        last["content"].as_str().unwrap().to_owned()
    }
}

/// What is said when nothing changed.
fn no_changes() -> Value {
    json!({ "has_changes": false, "message": "No changes to game state since last AI turn" })
}

/// A fight as a frontend tells of it.
fn fight(round: i64, turn: i64, goblin_hp: i64, conditions: &[&str]) -> Value {
    json!({ "combat_state": {
        "in_combat": true, "combat_id": "c1", "name": "Ambush", "round": round, "turn": turn, "is_active": true,
        "combatants": [
            { "name": "Alice", "initiative": 17, "is_player": true, "is_current_turn": turn == 1, "token_id": "t1" },
            { "name": "Goblin", "initiative": 9.5, "is_player": false, "is_current_turn": turn == 2, "token_id": "t2",
              "hp": goblin_hp, "max_hp": 7, "conditions": conditions },
        ],
    }})
}
