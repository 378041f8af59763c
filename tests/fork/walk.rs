//! A random walk over everything that can be done to a world, and forks at each of its turns. The seed is fixed: a failure comes
//! again.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{
    fork_at,
    picture::{assert_same, feed, now, picture, replayed},
    undo,
};
use crate::support::{Server, World};

/// A small generator (SplitMix64), the same on every machine.
struct Walk(u64);

impl Walk {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % below as u64).unwrap()
    }

    fn of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() { None } else { Some(&items[self.next(items.len())]) }
    }
}

/// A turn, what the world was after it, and how long the journal was.
struct Told {
    id: String,
    picture: String,
    seq: usize,
}

struct Walker<'a> {
    world: &'a World<'a>,
    walk: Walk,
    session: String,
    turns: Vec<Told>,
    step: usize,
}

impl Walker<'_> {
    /// The id of any row of a list.
    async fn any(&mut self, list: &str) -> Option<String> {
        let rows =
            self.world.get(&format!("{list}{}limit=200", if list.contains('?') { '&' } else { '?' })).await.expect(200);
        self.walk.of(rows.items()).map(|row| row["id"].as_str().unwrap().to_owned())
    }

    /// Sends a write; what is refused by rights changes nothing.
    async fn send(&mut self, method: &str, path: &str, body: Value) -> Option<Value> {
        let client = self.world.client;
        let request = client.request(method.parse().unwrap(), &self.world.path(path));
        let answer = client.send(if method == "DELETE" { request } else { request.json(&body) }).await;
        assert!(answer.status < 500, "{method} {path}: {}", answer.text);
        (answer.status < 300).then_some(answer.body)
    }

    async fn edit(&mut self) {
        let (n, step) = (self.walk.next(100), self.step);
        let npc = *self.walk.of(&["innkeeper_bob", "harbour_ilse", "cook"]).unwrap();
        match self.walk.next(14) {
            0 => drop(self.send("PATCH", &format!("/npcs/{npc}"), json!({ "location": format!("room {n}") })).await),
            1 => {
                let owners = if n % 2 == 0 { json!(["town_council_owner"]) } else { json!([]) };
                self.send("PATCH", &format!("/npcs/{npc}"), json!({ "owner_ids": owners })).await;
            }
            2 => drop(
                self.send(
                    "POST",
                    "/npcs",
                    json!({ "slug": "cook", "name": "Cook", "owner_ids": ["town_council_owner"] }),
                )
                .await,
            ),
            3 => drop(self.send("DELETE", "/npcs/cook", json!({})).await),
            4 => {
                let lore = json!({ "title": format!("Lore {n}"), "scope": "global", "content": "x", "secret": true, "known_by": [npc] });
                self.send("POST", "/lore", lore).await;
            }
            5 | 6 => {
                if let Some(lore) = self.any("/lore").await {
                    let method = if n % 3 == 0 { "DELETE" } else { "PATCH" };
                    self.send(method, &format!("/lore/{lore}"), json!({ "content": format!("At {step}.") })).await;
                }
            }
            7 | 8 => {
                if let Some(memory) = self.any("/memories").await {
                    let method = if n % 3 == 0 { "DELETE" } else { "PATCH" };
                    self.send(method, &format!("/memories/{memory}"), json!({ "text": format!("At {step}.") })).await;
                }
            }
            9 => {
                if let Some(message) = self.any("/messages").await {
                    self.send("DELETE", &format!("/messages/{message}"), json!({})).await;
                }
            }
            10 => drop(
                self.send("PATCH", "/characters/player_alice", json!({ "hp": n, "location": format!("room {n}") }))
                    .await,
            ),
            11 => {
                let alice = self.world.get("/characters/player_alice").await.expect(200).id();
                let scene = json!({ "name": format!("Scene {n}"), "tokens": [{ "id": "t", "actor_id": alice }] });
                self.send("POST", "/scenes", scene).await;
            }
            12 => {
                if let Some(scene) = self.any("/scenes").await {
                    self.send(
                        "POST",
                        "/messages",
                        json!({ "content": "Here.", "scene_id": scene, "whisper_to": ["player_alice"] }),
                    )
                    .await;
                    if n % 2 == 0 {
                        self.send("DELETE", &format!("/scenes/{scene}"), json!({})).await;
                    }
                }
            }
            _ => drop(
                self.send(
                    "PATCH",
                    "",
                    json!({ "description": format!("At {step}."), "game_time": format!("Day {n}") }),
                )
                .await,
            ),
        }
    }

    /// What somebody does in fights, by hand or as the arguments of a tool.
    async fn in_fight(&mut self, id: &str) -> (&'static str, Value) {
        if self.world.get(&format!("/encounters/{id}")).await.body["status"] == "ended" {
            return ("commit", json!({}));
        }
        let (n, amount) = (self.walk.next(9), self.walk.next(5) + 1);
        let target = *self.walk.of(&["alice", "orc", "innkeeper_bob"]).unwrap();
        match n {
            0..=3 => ("actions", json!({ "action": "damage", "target_id": target, "amount": amount })),
            4 => ("actions", json!({ "action": "add_condition", "target_id": target, "condition": "poisoned" })),
            5 | 6 => ("actions", json!({ "action": "advance_turn" })),
            7 => ("participants", json!({ "id": format!("rat{}", self.step), "hp": 2, "max_hp": 2 })),
            _ => ("end", json!({ "outcome": "victory" })),
        }
    }

    async fn fight(&mut self) {
        let Some(id) = self.any("/encounters?include_ended=true").await else {
            let fight = json!({ "name": "Brawl", "participants": [
                { "id": "alice", "character_id": "player_alice", "initiative": 20 }, { "npc_id": "innkeeper_bob", "initiative": 5 },
                { "id": "orc", "hp": 50, "max_hp": 50, "is_enemy": true, "initiative": 10 }] });
            self.send("POST", "/encounters", fight).await;
            return;
        };
        match self.walk.next(16) {
            0 => drop(self.send("DELETE", &format!("/encounters/{id}"), json!({})).await),
            1 => drop(
                self.send("PATCH", &format!("/encounters/{id}"), json!({ "notes": format!("At {}.", self.step) }))
                    .await,
            ),
            2 => {
                let fight = json!({ "participants": [{ "id": "alice", "character_id": "player_alice", "initiative": 2 },
                    { "id": "orc", "hp": 9, "max_hp": 9, "initiative": 1 }] });
                self.send("POST", "/encounters", fight).await;
            }
            _ => {
                let (what, body) = self.in_fight(&id).await;
                self.send("POST", &format!("/encounters/{id}/{what}"), body).await;
            }
        }
    }

    async fn turn(&mut self) {
        let model = &self.world.client.server.model;
        let note = |tool: &str, n: usize| {
            Reply::tool(tool, json!({ "player_id": "player_alice", "memory_string": format!("Note {n}.") }))
        };
        let client = self.world.client;
        let done = match self.walk.next(4) {
            0 | 1 => {
                model.set_script(Script::replies([note("NPC_memorize", self.step), Reply::text("Noted.")]));
                self.world.bob("player_alice", &format!("Action {}.", self.step)).await
            }
            2 => {
                let broadcast = note("OWNER_memorize_dependables", self.step);
                model.set_script(Script::replies([broadcast, Reply::text("So be it.")]));
                client.owner_turn(&self.world.slug, "town_council_owner", "player_alice", "I help.").await
            }
            _ => {
                let mut calls = Vec::new();
                if let Some(id) = self.any("/encounters?include_ended=true").await {
                    for _ in 0..2 {
                        let (what, mut body) = self.in_fight(&id).await;
                        body["encounter_id"] = json!(id);
                        if what == "actions" {
                            calls.push(Reply::tool("encounter_action", body));
                        } else if what != "participants" {
                            body["operation"] = json!(what);
                            calls.push(Reply::tool("manage_encounter", body));
                        }
                    }
                }
                calls.push(Reply::text("It goes on."));
                self.world.client.server.model.set_script(Script::replies(calls));
                self.world.post(&format!("/sessions/{}/turns", self.session), json!({})).await
            }
        };
        let id = done.expect(200).id();
        let (picture, seq) = (now(self.world).await, feed(self.world).await.len());
        self.turns.push(Told { id, picture, seq });
    }

    async fn step(&mut self) {
        self.step += 1;
        match self.walk.next(10) {
            0..=3 => self.edit().await,
            4..=6 => self.fight().await,
            7 | 8 => self.turn().await,
            _ => {
                // The last one more often: what came since stands in the way.
                let ids: Vec<String> = self.turns.iter().map(|t| t.id.clone()).collect();
                let any = self.walk.of(&ids).cloned();
                let last = ids.last().cloned().filter(|_| self.step.is_multiple_of(2));
                if let Some(turn) = last.or(any) {
                    let undone = undo(self.world, &turn).await;
                    assert!(matches!(undone.status, 200 | 409), "{}", undone.text);
                }
            }
        }
    }
}

/// Gives what was taken out of fights on the way.
async fn walk(seed: u64, steps: usize) -> Vec<String> {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = world.post("/sessions", json!({ "client_id": "vtt", "role": "gm" })).await.expect(201).id();
    let mut walker = Walker { world: &world, walk: Walk(seed), session, turns: Vec::new(), step: 0 };
    for _ in 0..steps {
        walker.step().await;
    }
    let past = "SELECT DISTINCT kind FROM encounter_past";
    let past: Vec<String> = sqlx::query_scalar(past).fetch_all(&mut server.owner().await).await.unwrap();
    let changes = feed(&world).await;
    for told in &walker.turns {
        let when = format!("seed {seed}, turn {} at {}", told.id, told.seq);
        let copy = fork_at(&world, &told.id).await;
        assert_same(&now(&copy).await, &told.picture, &when);
        let forwards = picture(replayed(changes[..told.seq].iter()));
        assert_same(&picture(replayed(feed(&copy).await.iter())), &forwards, &when);
    }
    let copy = super::fork(&world, json!({})).await;
    assert_same(&now(&copy).await, &now(&world).await, "the present");
    past
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_is_found_again_at_each_of_its_turns() {
    let past: BTreeSet<String> = join_all((1..=3).map(|seed| walk(seed, 120))).await.into_iter().flatten().collect();
    // The walks have been everywhere: fights went as a whole, and actions and members were taken back.
    assert_eq!(past, ["log", "member", "state"].map(str::to_owned).into());
}
