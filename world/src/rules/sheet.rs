//! Turns sheets into the rules' creatures, field by field, and changed creatures back into columns.
//!
//! Only free-form fields go through JSON: custom armor, shields and spells. NPCs have no columns for slots, resources,
//! concentration and death saves; those are not stored.

use entity::{Json, character, npc, shapes};
use rules::sheet::{
    Abilities, ActiveEffect, Concentration, Condition, Creature, DeathSaves, Feature, HitDice, Item, KnownSpell,
    NpcAttack, Range, Resource, SpellSlot, Weapon, WeaponAbility, Worn,
};
use serde::Serialize;
use serde_json::{Map, Value};

use base::error::{Error, Result};

/// A player character as a creature.
#[must_use]
pub fn of_character(row: character::Model) -> Creature {
    Creature {
        id: row.id.to_string(),
        slug: row.slug,
        name: row.name,
        is_npc: false,
        race: row.race,
        profession: row.profession,
        level: row.level,
        abilities: abilities(&row.abilities),
        max_hp: row.max_hp,
        hp: row.hp,
        temp_hp: row.temp_hp,
        armor_class: row.armor_class,
        speed: row.speed,
        size: row.size,
        skill_proficiencies: row.skill_proficiencies.0,
        saving_throw_proficiencies: row.saving_throw_proficiencies.0,
        weapon_proficiencies: row.weapon_proficiencies.0,
        features: row.features.0.into_iter().map(feature).collect(),
        weapons: row.weapons.0.into_iter().map(weapon).collect(),
        armor: row.armor.and_then(worn),
        shield: row.shield.and_then(worn),
        spellcasting_ability: row.spellcasting_ability,
        spells: row.spells.0.into_iter().map(spell).collect(),
        spell_slots: row.spell_slots.0.into_iter().map(|(level, slot)| (level, slot_of(slot))).collect(),
        resources: row.resources.0.into_iter().map(resource).collect(),
        conditions: row.conditions.0.into_iter().map(condition).collect(),
        effects: row.effects.0.into_iter().map(effect).collect(),
        concentration: row.concentration.map(|c| Concentration { spell: c.0.spell }),
        hit_dice: row.hit_dice.map(|d| HitDice { die: d.die, max: d.max, remaining: d.remaining }),
        death_saves: DeathSaves { successes: row.death_saves.successes, failures: row.death_saves.failures },
        resistances: row.resistances.0,
        immunities: row.immunities.0,
        vulnerabilities: row.vulnerabilities.0,
        inventory: row.inventory.0.into_iter().map(item).collect(),
        turn_flags: row.turn_flags.0,
        ..Creature::default()
    }
}

/// An NPC as a creature. An NPC that is unconscious at 0 hit points was knocked out, and is stable.
#[must_use]
pub fn of_npc(row: npc::Model) -> Creature {
    let stats = row.stats.0;
    let conditions: Vec<Condition> = row.conditions.0.into_iter().map(condition).collect();
    let out_cold = stats.hp <= 0 && conditions.iter().any(|c| rules::srd::same(&c.name, "unconscious"));
    Creature {
        id: row.id.to_string(),
        slug: row.slug,
        name: row.name,
        is_npc: true,
        race: row.race.unwrap_or_default(),
        profession: row.profession.unwrap_or_default(),
        abilities: stats.abilities.as_ref().map(abilities).unwrap_or_default(),
        max_hp: stats.max_hp,
        hp: stats.hp,
        temp_hp: stats.temp_hp,
        armor_class: stats.armor_class,
        speed: stats.speed,
        size: stats.size,
        creature_type: stats.creature_type,
        disposition: row.disposition,
        attacks: stats.attacks.into_iter().map(attack).collect(),
        saving_throws: stats.saving_throws,
        conditions,
        effects: row.effects.0.into_iter().map(effect).collect(),
        death_saves: DeathSaves { successes: if out_cold { 3 } else { 0 }, failures: 0 },
        resistances: stats.resistances,
        immunities: stats.immunities,
        vulnerabilities: stats.vulnerabilities,
        condition_immunities: stats.condition_immunities,
        inventory: row.inventory.0.into_iter().map(item).collect(),
        ..Creature::default()
    }
}

pub(crate) fn abilities(a: &shapes::Abilities) -> Abilities {
    Abilities {
        strength: a.strength,
        dexterity: a.dexterity,
        constitution: a.constitution,
        intelligence: a.intelligence,
        wisdom: a.wisdom,
        charisma: a.charisma,
    }
}

fn feature(f: shapes::Feature) -> Feature {
    Feature { name: f.name, level: f.level, chosen_option: f.chosen_option, scaling_formula: f.scaling_formula }
}

fn weapon(w: shapes::Weapon) -> Weapon {
    let ability = w.ability.map(|a| match a {
        shapes::WeaponAbility::Str => WeaponAbility::Str,
        shapes::WeaponAbility::Dex => WeaponAbility::Dex,
        shapes::WeaponAbility::Finesse => WeaponAbility::Finesse,
        shapes::WeaponAbility::None => WeaponAbility::None,
    });
    Weapon {
        name: w.name,
        dice: w.dice,
        versatile_dice: w.versatile_dice,
        damage_type: w.damage_type,
        ability,
        bonus: w.bonus,
        properties: w.properties,
        range: w.range.map(range),
    }
}

fn range(r: shapes::Range) -> Range {
    Range { normal: r.normal, long: r.long }
}

pub(crate) fn attack(a: shapes::NpcAttack) -> NpcAttack {
    NpcAttack {
        name: a.name,
        bonus: a.bonus,
        damage: a.damage,
        damage_type: a.damage_type,
        reach_ft: a.reach_ft,
        range: a.range.map(range),
    }
}

pub(crate) fn slot_of(s: shapes::SpellSlot) -> SpellSlot {
    SpellSlot { max: s.max, remaining: s.remaining }
}

pub(crate) fn resource(r: shapes::Resource) -> Resource {
    Resource { name: r.name, max: r.max, remaining: r.remaining }
}

pub(crate) fn condition(c: shapes::Condition) -> Condition {
    Condition {
        name: c.name,
        source: c.source,
        rounds_remaining: c.rounds_remaining,
        level: c.level,
        until_rest: c.until_rest,
    }
}

fn effect(e: shapes::Effect) -> ActiveEffect {
    ActiveEffect { name: e.name, source: e.source, rounds_remaining: e.rounds_remaining }
}

fn worn(value: Json<Value>) -> Option<Worn> {
    serde_json::from_value(value.0).ok()
}

fn spell(spell: shapes::Spell) -> KnownSpell {
    match spell {
        shapes::Spell::Name(name) => KnownSpell::Name(name),
        own @ shapes::Spell::Custom { .. } => serde_json::to_value(own)
            .and_then(serde_json::from_value)
            .unwrap_or_else(|_| KnownSpell::Name(String::new())),
    }
}

fn item(value: Value) -> Item {
    match value {
        Value::String(name) => Item { name },
        Value::Object(mut members) => match members.remove("name") {
            Some(Value::String(name)) => Item { name },
            _ => Item::default(),
        },
        _ => Item::default(),
    }
}

/// The changed columns of a character, in their stored form.
///
/// # Errors
/// `internal` if one cannot be written as JSON.
pub(super) fn character_columns(before: &Creature, now: &Creature) -> Result<Map<String, Value>> {
    let mut columns = Map::new();
    hit_points(&mut columns, before, now);
    if before.spell_slots != now.spell_slots {
        let slots = now.spell_slots.iter().map(|(l, s)| (l, shapes::SpellSlot { max: s.max, remaining: s.remaining }));
        put(&mut columns, "spell_slots", &slots.collect::<std::collections::BTreeMap<_, _>>())?;
    }
    if before.resources != now.resources {
        let to_resource = |r: &Resource| shapes::Resource { name: r.name.clone(), max: r.max, remaining: r.remaining };
        put(&mut columns, "resources", &now.resources.iter().map(to_resource).collect::<Vec<_>>())?;
    }
    afflictions(&mut columns, before, now)?;
    if before.concentration != now.concentration {
        let kept = now.concentration.as_ref().map(|c| shapes::Concentration { spell: c.spell.clone() });
        put(&mut columns, "concentration", &kept)?;
    }
    if before.hit_dice != now.hit_dice {
        let kept = now.hit_dice.map(|d| shapes::HitDice { die: d.die, max: d.max, remaining: d.remaining });
        put(&mut columns, "hit_dice", &kept)?;
    }
    if before.death_saves != now.death_saves {
        let DeathSaves { successes, failures } = now.death_saves;
        put(&mut columns, "death_saves", &shapes::DeathSaves { successes, failures })?;
    }
    if before.turn_flags != now.turn_flags {
        put(&mut columns, "turn_flags", &now.turn_flags)?;
    }
    Ok(columns)
}

/// The changes of an NPC in their stored form: members of its `stats`, and columns.
///
/// # Errors
/// `internal` if one cannot be written as JSON.
pub(super) fn npc_columns(before: &Creature, now: &Creature) -> Result<(Map<String, Value>, Map<String, Value>)> {
    let (mut stats, mut columns) = (Map::new(), Map::new());
    hit_points(&mut stats, before, now);
    afflictions(&mut columns, before, now)?;
    Ok((stats, columns))
}

fn hit_points(members: &mut Map<String, Value>, before: &Creature, now: &Creature) {
    if before.hp != now.hp {
        members.insert("hp".to_owned(), now.hp.into());
    }
    if before.temp_hp != now.temp_hp {
        members.insert("temp_hp".to_owned(), now.temp_hp.into());
    }
}

/// Conditions and effects, which characters and NPCs share.
fn afflictions(columns: &mut Map<String, Value>, before: &Creature, now: &Creature) -> Result<()> {
    if before.conditions != now.conditions {
        let to_condition = |c: &Condition| shapes::Condition {
            name: c.name.clone(),
            source: c.source.clone(),
            rounds_remaining: c.rounds_remaining,
            level: c.level,
            until_rest: c.until_rest,
        };
        put(columns, "conditions", &now.conditions.iter().map(to_condition).collect::<Vec<_>>())?;
    }
    if before.effects != now.effects {
        let to_effect = |e: &ActiveEffect| shapes::Effect {
            name: e.name.clone(),
            source: e.source.clone(),
            rounds_remaining: e.rounds_remaining,
        };
        put(columns, "effects", &now.effects.iter().map(to_effect).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn put(columns: &mut Map<String, Value>, name: &str, value: &impl Serialize) -> Result<()> {
    columns.insert(name.to_owned(), serde_json::to_value(value).map_err(Error::internal)?);
    Ok(())
}
