//! The tables of the System Reference Document 5.1: numbers and names as data, for resolvers and for `GET
//! /v1/rules/srd/…`.
//!
//! This module must never contain the document's prose, or anything that is not in SRD 5.1. Players who use other
//! sources write them on their own sheets. The attribution that the SRD's licence requires is in `NOTICE`.
//!
//! - `ability`, `skills`: the six abilities and the 18 skills.
//! - `weapons`, `armor`: equipment.
//! - `creatures`: stat blocks.
//! - `conditions`, `effects`: what can be active on a creature, and what it does to rolls.
//! - `classes`, `slots`: numbers that grow with a class.
//! - `spells`: the spells that resolvers know by name.
//! - `objects`: difficulties, and armor classes of objects.
//! - `dice`: sums of dice in these tables and on sheets; `lookup`: how names are matched.
//!
//! To add a row, add a line to its table and a case to `rules/tests/srd.rs`.

#![warn(missing_docs)]

mod ability;
mod advantage;
mod armor;
mod casting_times;
mod classes;
mod conditions;
mod creatures;
mod damage;
mod dice;
mod effects;
mod lookup;
mod objects;
mod skills;
mod slots;
mod spell_table;
mod spells;
mod weapons;

pub use ability::Ability;
pub use advantage::Advantage;
pub use armor::{ARMOR, Armor, ArmorCategory, SHIELD_BONUS, armor};
pub use casting_times::{CASTING_TIMES, CastingTime};
pub use classes::{
    CLASSES, Class, ClassRule, action_surges, bardic_inspiration_die, brutal_critical_dice, extra_attacks,
    indomitable_uses, lay_on_hands_pool, martial_arts_die, points, rage_damage, rage_uses, sneak_attack_dice,
};
pub use conditions::{CONDITIONS, ConditionRule, Sense, condition};
pub use creatures::{CREATURES, CreatureAttack, CreatureRange, CreatureRule, creature};
pub use damage::{DAMAGE_TYPES, damage_type};
pub(crate) use dice::format_pools;
pub use dice::{DICE_MAX, DamageDice, DicePool, FACES_MAX};
pub use effects::{EFFECTS, EffectRule, effect};
pub(crate) use lookup::holds;
pub use lookup::{Found, find, same};
pub use objects::{DIFFICULTIES, OBJECT_ARMOR_CLASSES, Rated};
pub(crate) use skills::names_skill;
pub use skills::{SKILLS, Skill, skill};
pub use slots::{Slots, spell_slots};
pub use spell_table::{SPELLS, spell};
pub use spells::{OnSave, Scaling, SpellDamage, SpellKind, SpellRule};
pub use weapons::{WEAPONS, WeaponCategory, WeaponRule, base_weapon, magic_prefix, weapon};
