//! Encounters from outside: a simulation beside the records, committed once. What the rules decide is tested in
//! `rules/tests/encounter`.

mod commit;
mod fights;
mod players;
mod refusals;
mod roster;
mod seen;
mod together;
mod tools;
mod turns;

use serde_json::{Value, json};

use crate::support::{Answer, Client, World, patiently};

/// A campaign with Fenric, who has 28 hit points, two slots and a resource, and a goblin.
async fn dungeon<'a>(client: &'a Client<'a>) -> World<'a> {
    client.post("/v1/campaigns", json!({ "slug": "dungeon", "name": "Dungeon" })).await.expect(201);
    let world = World { client, slug: "dungeon".to_owned() };
    world.post("/characters", fenric()).await.expect(201);
    let goblin = json!({ "slug": "goblin", "name": "Goblin", "disposition": "hostile", "stats": {
        "armor_class": 13, "hp": 12, "max_hp": 12,
        "attacks": [{ "name": "Scimitar", "bonus": 4, "damage": "1d6+2", "damage_type": "slashing" }] } });
    world.post("/npcs", goblin).await.expect(201);
    world
}

fn fenric() -> Value {
    json!({ "slug": "fenric", "name": "Fenric", "race": "human", "profession": "Paladin", "level": 3,
        "abilities": { "strength": 16, "dexterity": 10, "constitution": 14, "intelligence": 10, "wisdom": 10, "charisma": 14 },
        "max_hp": 28, "hp": 28, "armor_class": 16, "weapon_proficiencies": ["martial weapons"],
        "weapons": [{ "name": "Longsword" }], "spell_slots": { "1": { "max": 3, "remaining": 3 } },
        "features": [{ "name": "Divine Smite" }],
        "resources": [{ "name": "Lay on Hands", "max": 15, "remaining": 15 }] })
}

/// Fenric, who begins, against an orc that exists in the fight alone.
fn duel() -> Value {
    json!({ "name": "At the bridge", "participants": [
        { "id": "fenric", "character_id": "fenric", "initiative": 20 },
        { "id": "orc", "name": "Orc", "hp": 15, "max_hp": 15, "armor_class": 13, "is_enemy": true, "initiative": 10,
          "attacks": [{ "name": "Axe", "bonus": 5, "damage": "1d12+3", "damage_type": "slashing" }] },
    ] })
}

async fn begin(world: &World<'_>, body: Value) -> String {
    world.post("/encounters", body).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned()
}

async fn act(world: &World<'_>, id: &str, action: Value) -> Answer {
    world.post(&format!("/encounters/{id}/actions"), action).await
}

/// Hurts somebody, with a game master's word.
async fn hurt(world: &World<'_>, id: &str, target: &str, amount: i32) -> Value {
    let damage = json!({ "action": "damage", "target_id": target, "amount": amount });
    patiently(|| act(world, id, damage.clone())).await.expect(200).body
}

async fn end(world: &World<'_>, id: &str) -> Value {
    world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "victory" })).await.expect(200).body
}

async fn commit(world: &World<'_>, id: &str, body: Value) -> Value {
    let path = format!("/encounters/{id}/commit");
    patiently(|| world.post(&path, body.clone())).await.expect(200).body
}

async fn hp(world: &World<'_>, character: &str) -> i64 {
    world.get(&format!("/characters/{character}")).await.expect(200).body["hp"].as_i64().unwrap()
}

/// A participant as the encounter has it.
async fn participant(world: &World<'_>, id: &str, who: &str) -> Value {
    let view = world.get(&format!("/encounters/{id}?verbosity=detailed")).await.expect(200).body;
    view["participants"].as_array().unwrap().iter().find(|p| p["id"] == who).unwrap().clone()
}
