//! A fight fought by words: rules turns, `/act`, the command `do` and the table in a browser all act in the fight that the character
//! stands in, by the encounter engine.

mod doors;
mod hidden;
mod log;
mod people;
mod table;
mod targets;

use edge::{tenant_settings::service::set_limits, tenants::TenantLimits};
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Answer, Client, Server, World};

/// A tenant whose players may plan as much as they like.
async fn tenant<'a>(server: &'a Server, slug: &str) -> Client<'a> {
    let client = server.tenant(slug).await;
    let limits = TenantLimits { planner_per_player_per_minute: 0, ..TenantLimits::unlimited() };
    set_limits(&mut server.owner().await, client.tenant, &limits).await.unwrap();
    client
}

/// The town, where Alice has a sword.
async fn town<'a>(client: &'a Client<'a>) -> World<'a> {
    let world = client.world().await;
    let armed = json!({ "weapons": [{ "name": "Longsword" }], "weapon_proficiencies": ["martial weapons"] });
    world.patch("/characters/player_alice", armed).await.expect(200);
    world
}

fn foe(id: &str, name: &str, initiative: i64) -> Value {
    json!({ "id": id, "name": name, "hp": 932_177, "max_hp": 932_177, "armor_class": 1, "is_enemy": true, "initiative": initiative,
        "attacks": [{ "name": "Club", "bonus": 5, "damage": "1d4+1", "damage_type": "bludgeoning" }] })
}

/// Alice, then Mallory, then two thugs and a dog; and a killer whom nobody knows of.
fn brawl() -> Value {
    let mut killer = foe("zz_killer", "Night Killer", 5);
    killer["hidden"] = json!(true);
    json!({ "name": "Brawl", "participants": [
        { "id": "alice", "character_id": "player_alice", "initiative": 20 },
        { "id": "mallory", "character_id": "player_mallory", "initiative": 15 },
        foe("thug-1", "Thug 1", 10), foe("thug-2", "Thug 2", 9), foe("dog", "Dog", 8), killer,
    ] })
}

async fn begin(world: &World<'_>, body: Value) -> String {
    world.post("/encounters", body).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned()
}

async fn brawling(world: &World<'_>) -> String {
    begin(world, brawl()).await
}

/// A participant as the game master sees it.
async fn participant(world: &World<'_>, id: &str, who: &str) -> Value {
    let view = world.get(&format!("/encounters/{id}?verbosity=detailed")).await.expect(200).body;
    view["participants"].as_array().unwrap().iter().find(|p| p["id"] == who).unwrap().clone()
}

/// Whose turn it is.
async fn turn_of(world: &World<'_>, id: &str) -> String {
    let view = world.get(&format!("/encounters/{id}")).await.expect(200).body;
    view["current_participant_id"].as_str().unwrap_or_default().to_owned()
}

async fn advance(world: &World<'_>, id: &str) {
    world.post(&format!("/encounters/{id}/actions"), json!({ "action": "advance_turn" })).await.expect(200);
}

/// What the log says to a reader, oldest first.
async fn log_of(reader: &Client<'_>) -> Vec<String> {
    let list = reader.get("/v1/campaigns/port-town/messages?limit=200").await.expect(200);
    let mut all: Vec<_> = list.items().iter().map(|m| (m["id"].to_string(), m["content"].clone())).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all.into_iter().map(|(_, content)| content.as_str().unwrap().to_owned()).collect()
}

/// A token that can only play one character.
async fn player<'a>(client: &Client<'a>, slug: &str) -> Client<'a> {
    client.token(json!({ "campaign": "port-town", "player_id": slug, "scopes": ["read", "play"] })).await
}

/// A door that words come in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Rules,
    Act,
    Do,
    /// A check by name: as a command, as a skill that is used, and planned.
    Check,
    UseSkill,
    PlannedCheck,
}

/// The doors for words.
const DOORS: [Door; 3] = [Door::Rules, Door::Act, Door::Do];
/// The doors for a check by name, whatever the words.
const CHECKS: [Door; 3] = [Door::Check, Door::UseSkill, Door::PlannedCheck];

/// Every door.
fn all_doors() -> impl Iterator<Item = Door> {
    DOORS.into_iter().chain(CHECKS)
}

/// Somebody says by a door what their character does.
async fn says(door: Door, client: &Client<'_>, who: &str, text: &str) -> Answer {
    let (path, body) = match door {
        Door::Rules => ("/rules/resolve", json!({ "player_id": who, "action": text })),
        Door::Act => ("/act", json!({ "player_id": who, "message": text })),
        Door::Do => ("/commands/do", json!({ "player_id": who, "arguments": { "message": text } })),
        Door::Check => ("/commands/check", json!({ "player_id": who, "arguments": { "skill": "stealth", "dc": 15 } })),
        Door::UseSkill => ("/commands/use_skill", json!({ "player_id": who, "arguments": { "skill": "stealth" } })),
        Door::PlannedCheck => ("/act", json!({ "player_id": who, "message": "I make a stealth check against DC 15" })),
    };
    client.post(&format!("/v1/campaigns/port-town{path}"), body).await
}

/// The turn that an answer is of.
fn turn_id(answer: &Value) -> String {
    answer["turn_id"].as_str().unwrap().to_owned()
}

/// That a fight refuses something, and with which words.
fn refused(door: Door, answer: &Answer, code: &str, words: &str) {
    assert!(answer.text.contains(words), "{door:?}: {words:?} is not in {}", answer.text);
    if matches!(door, Door::Act | Door::PlannedCheck) {
        assert_eq!((answer.status, &answer.body["outcome"]), (200, &json!("rejected")), "{}", answer.text);
        assert_eq!(answer.body["failed_predicates"][0]["code"], code, "{}", answer.text);
        assert_eq!(answer.body["visibility"], "ephemeral");
    } else {
        assert_eq!((answer.status, &answer.body["code"]), (409, &json!(code)), "{}", answer.text);
    }
}

/// The model proposes this, whatever is said: a deed of the planner first.
fn proposes(server: &Server, door: Door, tool: &str, arguments: Value) {
    let proposal = Reply::tool(tool, arguments);
    let plan = json!({ "command": "do", "args": { "message": "what I said" }, "confidence": 0.9 }).to_string();
    server.model.set_script(match door {
        Door::Act => Script::replies([Reply::text(plan), proposal, Reply::text("So it goes.")]),
        Door::Check | Door::UseSkill | Door::PlannedCheck => panic!("{door:?} is not for words"),
        Door::Do => Script::replies([proposal, Reply::text("So it goes.")]),
        Door::Rules => Script::replies([proposal]),
    });
}
