//! The rules over HTTP: resolver tools with given dice, what they change and what they leave alone, rests, the SRD's
//! tables. What the rules decide is tested in `rules/tests`.

mod attacks;
mod changes;
mod checks;
mod dice;
mod refusals;
mod vitality;

use serde_json::{Value, json};

use crate::support::{Answer, Client, World};

/// A campaign with a table of adventurers and what they meet.
async fn table<'a>(client: &'a Client<'a>) -> World<'a> {
    client.post("/v1/campaigns", json!({ "slug": "dungeon", "name": "Dungeon" })).await.expect(201);
    let world = World { client, slug: "dungeon".to_owned() };
    for sheet in [rogue(), paladin(), wizard(), barbarian()] {
        world.post("/characters", sheet).await.expect(201);
    }
    for (slug, name, stats) in [
        (
            "goblin",
            "Goblin",
            json!({ "armor_class": 15, "hp": 7, "max_hp": 7, "attacks": [
            { "name": "Scimitar", "bonus": 4, "damage": "1d6+2", "damage_type": "slashing" },
            { "name": "Shortbow", "bonus": 4, "damage": "1d6+2", "damage_type": "piercing", "range": { "normal": 80, "long": 320 } } ] }),
        ),
        (
            "ogre",
            "Ogre",
            json!({ "armor_class": 11, "hp": 59, "max_hp": 59, "size": "large", "attacks": [
            { "name": "Greatclub", "bonus": 6, "damage": "2d8+4", "damage_type": "bludgeoning" } ] }),
        ),
        (
            "zombie",
            "Zombie",
            json!({ "armor_class": 8, "hp": 22, "max_hp": 22, "creature_type": "undead", "immunities": ["poison"] }),
        ),
        ("guard_east", "East Guard", json!({ "armor_class": 16, "hp": 11, "max_hp": 11 })),
        ("guard_west", "West Guard", json!({ "armor_class": 16, "hp": 11, "max_hp": 11 })),
    ] {
        let npc = json!({ "slug": slug, "name": name, "stats": stats, "disposition": "hostile" });
        world.post("/npcs", npc).await.expect(201);
    }
    world
}

fn rogue() -> Value {
    json!({ "slug": "shade", "name": "Shade", "race": "human", "profession": "Rogue", "level": 5,
        "abilities": { "strength": 10, "dexterity": 16, "constitution": 14, "intelligence": 12, "wisdom": 13, "charisma": 14 },
        "max_hp": 33, "armor_class": 15,
        "skill_proficiencies": ["stealth", "perception", "deception"], "saving_throw_proficiencies": ["dexterity", "intelligence"],
        "weapon_proficiencies": ["simple weapons", "rapier", "shortsword", "longsword", "hand crossbow"],
        "features": [{ "name": "Sneak Attack", "scaling_formula": "3d6" },
            { "name": "Expertise", "chosen_option": "stealth, perception" }],
        "weapons": [{ "name": "Shortsword +1", "dice": "1d6", "damage_type": "piercing", "ability": "finesse", "bonus": 1,
            "properties": ["finesse", "light"] }, { "name": "Dagger" }],
        "hit_dice": { "die": 8, "max": 5, "remaining": 5 } })
}

fn paladin() -> Value {
    json!({ "slug": "vera", "name": "Vera", "profession": "Paladin", "level": 5,
        "abilities": { "strength": 18, "dexterity": 10, "constitution": 14, "intelligence": 8, "wisdom": 12, "charisma": 16 },
        "max_hp": 44, "armor_class": 18, "weapon_proficiencies": ["simple weapons", "martial weapons"],
        "saving_throw_proficiencies": ["wisdom", "charisma"], "features": [{ "name": "Divine Smite" }],
        "weapons": [{ "name": "Longsword" }], "spells": ["Bless", "Cure Wounds"],
        "spell_slots": { "1": { "max": 4, "remaining": 1 }, "2": { "max": 2, "remaining": 2 } } })
}

fn wizard() -> Value {
    json!({ "slug": "ilmar", "name": "Ilmar", "profession": "Wizard", "level": 5,
        "abilities": { "strength": 8, "dexterity": 14, "constitution": 14, "intelligence": 18, "wisdom": 12, "charisma": 10 },
        "max_hp": 27, "armor_class": 12, "saving_throw_proficiencies": ["intelligence", "wisdom"],
        "features": [{ "name": "Arcane Recovery" }], "weapons": [{ "name": "Quarterstaff" }],
        "spells": ["Fire Bolt", "Hold Person", "Fireball", "Magic Missile"], "hit_dice": { "die": 6, "max": 5, "remaining": 3 },
        "spell_slots": { "1": { "max": 4, "remaining": 4 }, "2": { "max": 3, "remaining": 3 }, "3": { "max": 2, "remaining": 2 } } })
}

fn barbarian() -> Value {
    json!({ "slug": "korga", "name": "Korga", "race": "half-orc", "profession": "Barbarian", "level": 9,
        "abilities": { "strength": 18, "dexterity": 14, "constitution": 16, "intelligence": 8, "wisdom": 10, "charisma": 10 },
        "max_hp": 95, "armor_class": 15, "weapon_proficiencies": ["simple weapons", "martial weapons"],
        "features": [{ "name": "Rage" }], "weapons": [{ "name": "Greataxe" }], "effects": [{ "name": "Rage" }] })
}

/// Compares a text with what it was when somebody last looked at it.
fn snapshot(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "snapshots" }, { insta::assert_snapshot!(name, text) });
}

/// A call of a tool with given dice.
async fn roll(world: &World<'_>, tool: &str, actor: &str, arguments: Value, dice: &[u32]) -> Answer {
    let mut body = call(actor, arguments);
    body["dice"] = json!(dice);
    world.post(&format!("/tools/{tool}"), body).await
}

/// What a call with given dice comes to.
async fn result(world: &World<'_>, tool: &str, actor: &str, arguments: Value, dice: &[u32]) -> Value {
    roll(world, tool, actor, arguments, dice).await.expect(200).body["result"].clone()
}

/// A call as a character, or as an NPC with `npc:`.
fn call(actor: &str, arguments: Value) -> Value {
    let (kind, id) = match actor.strip_prefix("npc:") {
        Some(id) => ("npc", id),
        None => ("character", actor),
    };
    json!({ "actor": { "type": kind, "id": id }, "arguments": arguments })
}

/// A row as it stands.
async fn row(world: &World<'_>, path: &str) -> Value {
    world.get(path).await.expect(200).body
}

/// Whether one of the reasons holds these words.
fn says(result: &Value, words: &str) -> bool {
    result["reasons"].as_array().unwrap().iter().any(|r| r.as_str().unwrap().contains(words))
}
