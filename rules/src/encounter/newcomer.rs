//! A participant before it joins: a record, or fields that describe it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Lasting, Position, Refusal, Until,
    arguments::{find_condition, text, under},
    limits,
};
use crate::{
    SIZES,
    sheet::{Abilities, Condition, Creature, Feature, NpcAttack, Resource, SpellSlot},
    srd::{Ability, DAMAGE_TYPES, DamageDice, damage_type, holds, same},
};

/// A condition that a new participant has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewCondition {
    /// The condition.
    #[serde(flatten)]
    pub condition: Condition,
    /// The DC of the save that ends it.
    pub save_dc: Option<i32>,
    /// The ability of that save.
    pub save_ability: Option<Ability>,
    /// Its description.
    pub description: Option<String>,
}

/// A new participant. With a `record` it takes part with that sheet, otherwise as the fields say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewParticipant {
    /// The id in the encounter.
    pub id: String,
    /// The id of its character. It is stored, not looked up here.
    pub character_id: Option<String>,
    /// The id of its NPC.
    pub npc_id: Option<String>,
    /// Its sheet. It overrides every field below that describes one.
    #[serde(skip)]
    pub record: Option<Creature>,
    /// The name. Default: the record's name, or the id.
    pub name: Option<String>,
    /// Whether it is on the enemies' side.
    pub is_enemy: bool,
    /// Its initiative, if it was already rolled.
    pub initiative: Option<i32>,
    /// The bonus to its initiative. Default: the sheet's.
    pub initiative_bonus: Option<i32>,
    /// It cannot act before the end of its first turn.
    pub surprised: bool,
    /// Only the game master knows of it.
    pub hidden: bool,
    /// Where it stands.
    pub position: Option<Position>,
    /// Attacks per attack action. Default: as its class gives.
    pub attacks_per_action: Option<i32>,
    /// Whether it dies at 0 hit points instead of falling unconscious. Default: true for an enemy.
    pub is_npc: Option<bool>,
    /// Hit points. Default: `max_hp`.
    pub hp: Option<i32>,
    /// Maximum hit points. Default: `hp`, or 10.
    pub max_hp: Option<i32>,
    /// Temporary hit points.
    pub temp_hp: i32,
    /// Armor class. Default: 10.
    pub armor_class: Option<i32>,
    /// Speed in feet. Default: 30.
    pub speed: Option<i32>,
    /// One of [`SIZES`]. Default: medium.
    pub size: Option<String>,
    /// Creature type.
    pub creature_type: Option<String>,
    /// The six scores.
    pub abilities: Option<Abilities>,
    /// Saving throw bonuses, by ability.
    pub saving_throws: BTreeMap<String, i32>,
    /// Damage types it resists.
    pub resistances: Vec<String>,
    /// Damage types that it is immune to.
    pub immunities: Vec<String>,
    /// Damage types that it is vulnerable to.
    pub vulnerabilities: Vec<String>,
    /// Conditions that it is immune to.
    pub condition_immunities: Vec<String>,
    /// Conditions that it has when it joins.
    pub conditions: Vec<NewCondition>,
    /// Class resources.
    pub resources: Vec<Resource>,
    /// Spell slots by level.
    pub spell_slots: BTreeMap<String, SpellSlot>,
    /// Its attacks.
    pub attacks: Vec<NpcAttack>,
    /// Its features, such as `Darkvision`.
    pub features: Vec<String>,
}

impl NewParticipant {
    /// A sheet made from the fields.
    pub(super) fn sheet(&self, path: &str) -> Result<Creature, Refusal> {
        self.check(path)?;
        let max_hp = self.max_hp.or(self.hp.filter(|hp| *hp > 0)).unwrap_or(10);
        let plain = Creature::default();
        Ok(Creature {
            name: self.name.clone().filter(|n| !n.trim().is_empty()).unwrap_or_else(|| self.id.clone()),
            is_npc: self.is_npc.unwrap_or(self.is_enemy),
            hp: self.hp.unwrap_or(max_hp),
            max_hp,
            temp_hp: self.temp_hp,
            armor_class: self.armor_class.unwrap_or(plain.armor_class),
            speed: self.speed.unwrap_or(plain.speed),
            size: self.size.clone().unwrap_or_else(|| plain.size.clone()),
            creature_type: self.creature_type.clone().unwrap_or_else(|| plain.creature_type.clone()),
            abilities: self.abilities.unwrap_or_default(),
            saving_throws: self.saving_throws.clone(),
            resistances: self.resistances.clone(),
            immunities: self.immunities.clone(),
            vulnerabilities: self.vulnerabilities.clone(),
            condition_immunities: self.condition_immunities.clone(),
            conditions: self.conditions.iter().map(|c| c.condition.clone()).collect(),
            resources: self.resources.clone(),
            spell_slots: self.spell_slots.clone(),
            attacks: self.attacks.clone(),
            features: self.features.iter().map(|f| Feature { name: f.clone(), ..Feature::default() }).collect(),
            ..plain
        })
    }

    fn check(&self, path: &str) -> Result<(), Refusal> {
        let wrong = |field: &str, message: String| Err(Refusal::argument(under(path, field), message));
        let numbers = [
            ("hp", self.hp, 0),
            ("max_hp", self.max_hp, 1),
            ("temp_hp", Some(self.temp_hp), 0),
            ("armor_class", self.armor_class, 0),
            ("speed", self.speed, 0),
        ];
        for (field, value, least) in numbers {
            if value.is_some_and(|v| !(least..=limits::AMOUNT_MAX).contains(&v)) {
                return wrong(field, format!("must be {least} to {}", limits::AMOUNT_MAX));
            }
        }
        if let (Some(hp), Some(max)) = (self.hp, self.max_hp)
            && hp > max
        {
            return wrong("hp", format!("must be at most max_hp ({max}), not {hp}"));
        }
        if self.size.as_deref().is_some_and(|size| !SIZES.contains(&size)) {
            return wrong("size", format!("must be one of {}", SIZES.join(", ")));
        }
        let lists = [
            ("resistances", self.resistances.len()),
            ("immunities", self.immunities.len()),
            ("vulnerabilities", self.vulnerabilities.len()),
            ("condition_immunities", self.condition_immunities.len()),
            ("conditions", self.conditions.len()),
            ("resources", self.resources.len()),
            ("spell_slots", self.spell_slots.len()),
            ("saving_throws", self.saving_throws.len()),
            ("attacks", self.attacks.len()),
            ("features", self.features.len()),
        ];
        if let Some((field, _)) = lists.iter().find(|(_, length)| *length > limits::LIST_MAX) {
            return Err(Refusal::too_many(under(path, field), limits::LIST_MAX));
        }
        self.check_texts(path)?;
        self.check_names(path)?;
        self.check_values(path)?;
        self.check_conditions(path)
    }

    /// Checks that every text is short enough and that attacks are complete.
    fn check_texts(&self, path: &str) -> Result<(), Refusal> {
        let names = [
            ("resistances", &self.resistances),
            ("immunities", &self.immunities),
            ("vulnerabilities", &self.vulnerabilities),
            ("condition_immunities", &self.condition_immunities),
            ("features", &self.features),
        ];
        let most = limits::NAME_CHARS_MAX;
        for (field, list) in names {
            for (at, entry) in list.iter().enumerate() {
                text(&under(path, &format!("{field}/{at}")), entry, most)?;
            }
        }
        for (at, it) in self.conditions.iter().enumerate() {
            let texts = [("name", Some(&it.condition.name)), ("source", it.condition.source.as_ref())];
            for (field, value) in texts.into_iter().chain([("description", it.description.as_ref())]) {
                let field = under(path, &format!("conditions/{at}/{field}"));
                text(&field, value.map_or("", String::as_str), most)?;
            }
        }
        text(&under(path, "creature_type"), self.creature_type.as_deref().unwrap_or_default(), most)?;
        for (at, it) in self.resources.iter().enumerate() {
            text(&under(path, &format!("resources/{at}/name")), &it.name, most)?;
        }
        self.attacks
            .iter()
            .enumerate()
            .try_for_each(|(at, it)| check_attack(&under(path, &format!("attacks/{at}")), it))
    }

    /// Checks that every number is in its range.
    fn check_values(&self, path: &str) -> Result<(), Refusal> {
        let score = |ability| (1..=30).contains(&self.abilities.unwrap_or_default().score(ability));
        let save = |(name, bonus): (&String, &i32)| Ability::named(name).is_some() && (-20..=30).contains(bonus);
        let pool = |remaining: i32, max: i32, most: i32| 0 <= remaining && remaining <= max && max <= most;
        let slot = |(level, slot): (&String, &SpellSlot)| {
            matches!(level.as_str(), "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9")
                && pool(slot.remaining, slot.max, 99)
        };
        let resource = |(at, r): (usize, &Resource)| {
            let twice = self.resources.iter().take(at).any(|other| same(&other.name, &r.name));
            !r.name.trim().is_empty() && !twice && pool(r.remaining, r.max, limits::AMOUNT_MAX)
        };
        let checks = [
            ("abilities", Ability::ALL.into_iter().all(score), "scores must be from 1 to 30"),
            (
                "saving_throws",
                self.saving_throws.iter().all(save),
                "must be abilities, each with a bonus from -20 to 30",
            ),
            (
                "spell_slots",
                self.spell_slots.iter().all(slot),
                "must be levels 1 to 9, with 0 <= remaining <= max <= 99",
            ),
            (
                "resources",
                self.resources.iter().enumerate().all(resource),
                "must have different names, with 0 <= remaining <= max",
            ),
            ("attacks_per_action", self.attacks_per_action.is_none_or(|n| (1..=10).contains(&n)), "must be 1 to 10"),
        ];
        let wrong = checks.into_iter().find(|(_, right, _)| !right);
        wrong.map_or(Ok(()), |(field, _, message)| Err(Refusal::argument(under(path, field), message)))
    }

    /// Checks conditions as strictly as those that an action adds.
    fn check_conditions(&self, path: &str) -> Result<(), Refusal> {
        for (at, new) in self.conditions.iter().enumerate() {
            let it = &new.condition;
            let twice = self.conditions.iter().take(at).any(|c| same(&c.condition.name, &it.name));
            let level = it.level.is_none_or(|l| same(&it.name, "exhaustion") && (1..=6).contains(&l));
            let numbers =
                it.rounds_remaining.is_none_or(|r| r >= 1) && new.save_dc.is_none_or(|d| (1..=40).contains(&d));
            if twice || !level || !numbers {
                let message = "each must occur once; only exhaustion has a level (1 to 6); rounds are at least 1; save_dc is 1 to 40";
                return Err(Refusal::argument(under(path, "conditions"), message));
            }
        }
        Ok(())
    }

    /// Checks that the damage types and conditions exist in the rules.
    fn check_names(&self, path: &str) -> Result<(), Refusal> {
        let types = [
            ("resistances", &self.resistances),
            ("immunities", &self.immunities),
            ("vulnerabilities", &self.vulnerabilities),
        ];
        let unknown = |entry: &&String| !DAMAGE_TYPES.iter().any(|t| holds(entry, t)) && !same(entry, "all");
        for (field, list) in types {
            if let Some(entry) = list.iter().find(unknown) {
                let known = DAMAGE_TYPES.join(", ");
                return Err(Refusal::argument(under(path, field), format!("\"{entry}\" is not one of {known}")));
            }
        }
        let immune = self.condition_immunities.iter().map(|name| ("condition_immunities", name));
        let has = self.conditions.iter().map(|c| ("conditions", &c.condition.name));
        for (field, name) in immune.chain(has) {
            find_condition(&under(path, field), name)?;
        }
        Ok(())
    }

    pub(super) fn lasting(&self) -> Vec<Lasting> {
        let known = self.conditions.iter().filter_map(|c| {
            let until = match (c.save_dc, c.save_ability) {
                (Some(dc), Some(ability)) => Until::Save { dc, ability },
                _ if c.condition.rounds_remaining.is_some() => Until::Rounds,
                _ if c.condition.until_rest => Until::Rest,
                _ => Until::Dispelled,
            };
            let told = c.description.is_some() || matches!(until, Until::Save { .. });
            told.then(|| Lasting { condition: c.condition.name.clone(), until, description: c.description.clone() })
        });
        known.collect()
    }
}

/// Checks that an attack has a name, a possible bonus, and damage of a known type.
fn check_attack(path: &str, it: &NpcAttack) -> Result<(), Refusal> {
    let wrong = |field: &str, message: String| Err(Refusal::argument(under(path, field), message));
    text(&under(path, "name"), &it.name, limits::NAME_CHARS_MAX)?;
    text(&under(path, "damage"), &it.damage, limits::FORMULA_CHARS_MAX)?;
    text(&under(path, "damage_type"), &it.damage_type, limits::NAME_CHARS_MAX)?;
    if it.name.trim().is_empty() {
        return wrong("name", "must not be empty".to_owned());
    }
    if !(-20..=30).contains(&it.bonus) {
        return wrong("bonus", "must be -20 to 30".to_owned());
    }
    let Some(dice) = DamageDice::parse(&it.damage) else {
        return wrong("damage", "must be a sum of dice such as 2d6+1".to_owned());
    };
    let told = it.damage_type.is_empty() && dice.damage_type.is_some();
    if !told && damage_type(&it.damage_type).is_none() {
        return wrong("damage_type", format!("\"{}\" is not one of {}", it.damage_type, DAMAGE_TYPES.join(", ")));
    }
    Ok(())
}
