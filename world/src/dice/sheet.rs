//! Variables from a sheet, such as `@abilities.dex.mod`, `@prof` or `@hp`.
//!
//! The names are those of Foundry's 5e sheets. The prefixes `attributes.` and `details.` can be left out. A value that a
//! sheet does not have is unknown, never 0. To add a name, add an arm to [`value`] and a row to `docs/dice.md`.

use entity::{character, npc, shapes};
use rules::{
    sheet::{Abilities, Creature},
    srd::{Ability, CLASSES},
};

/// The parts of a character that variables need.
#[must_use]
pub fn of_character(model: &character::Model) -> Creature {
    Creature {
        profession: model.profession.clone(),
        level: model.level,
        abilities: scores(&model.abilities.0),
        max_hp: model.max_hp,
        hp: model.hp,
        temp_hp: model.temp_hp,
        armor_class: model.armor_class,
        speed: model.speed,
        ..Creature::default()
    }
}

/// The parts of an NPC's stat block that variables need.
#[must_use]
pub fn of_npc(model: &npc::Model) -> Creature {
    let stats = &model.stats.0;
    Creature {
        is_npc: true,
        abilities: stats.abilities.as_ref().map(scores).unwrap_or_default(),
        max_hp: stats.max_hp,
        hp: stats.hp,
        temp_hp: stats.temp_hp,
        armor_class: stats.armor_class,
        speed: stats.speed,
        ..Creature::default()
    }
}

fn scores(a: &shapes::Abilities) -> Abilities {
    Abilities {
        strength: a.strength,
        dexterity: a.dexterity,
        constitution: a.constitution,
        intelligence: a.intelligence,
        wisdom: a.wisdom,
        charisma: a.charisma,
    }
}

/// The value of a name on a sheet. A stat block has neither a level nor a proficiency bonus.
#[must_use]
pub fn value(sheet: &Creature, name: &str) -> Option<f64> {
    let name = name.strip_prefix("attributes.").or_else(|| name.strip_prefix("details.")).unwrap_or(name);
    let number = match name {
        "level" if !sheet.is_npc => sheet.level,
        "prof" if !sheet.is_npc => sheet.proficiency_bonus(),
        "hp" | "hp.value" => sheet.hp,
        "max_hp" | "hp.max" => sheet.max_hp,
        "temp_hp" | "hp.temp" => sheet.temp_hp,
        "armor_class" | "ac" | "ac.value" => sheet.armor_class,
        "speed" => sheet.speed,
        _ => part(sheet, name)?,
    };
    Some(f64::from(number))
}

fn part(sheet: &Creature, name: &str) -> Option<i32> {
    let mut parts = name.split('.');
    match (parts.next()?, parts.next()?, parts.next()?, parts.next()) {
        ("abilities", ability, "value", None) => Some(sheet.abilities.score(Ability::named(ability)?)),
        ("abilities", ability, "mod", None) => Some(sheet.modifier(Ability::named(ability)?)),
        ("classes", class, "levels", None) => {
            let rule = CLASSES.iter().find(|rule| rule.name == class)?;
            Some(sheet.class_level(rule.class)).filter(|level| *level > 0)
        }
        _ => None,
    }
}
