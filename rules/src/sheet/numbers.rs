//! Numbers computed from a sheet: modifiers, proficiency, class levels, spellcasting.

use super::Creature;
use crate::{
    ability_modifier,
    srd::{self, Ability, Class, WeaponRule, holds, names_skill, same},
};

/// How much of the proficiency bonus counts (SRD 5.1, "Proficiency Bonus").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Training {
    None,
    /// Jack of All Trades, rounded down.
    HalfDown,
    /// Remarkable Athlete, rounded up.
    HalfUp,
    Full,
    Double,
}

impl Creature {
    /// The modifier of an ability.
    #[must_use]
    pub const fn modifier(&self, ability: Ability) -> i32 {
        ability_modifier(self.abilities.score(ability))
    }

    /// The proficiency bonus, from 2 at level 1 to 6 at level 20. Levels outside of that count as the nearest one.
    #[must_use]
    pub fn proficiency_bonus(&self) -> i32 {
        (self.level.clamp(1, 20) + 3) / 4 + 1
    }

    /// Its level in a class; 0 if it does not have the class. If the profession contains no numbers, each class in it
    /// has the whole level.
    #[must_use]
    pub fn class_level(&self, class: Class) -> i32 {
        Class::of_profession(&self.profession)
            .find(|(c, _)| *c == class)
            .map_or(0, |(_, level)| level.unwrap_or(self.level).min(self.level))
    }

    /// The level that a class feature grows with: the level in that class, or the whole level if the creature does not
    /// have the class (such as a custom class with another class's feature).
    #[must_use]
    pub(crate) fn feature_level(&self, class: Class) -> i32 {
        match self.class_level(class) {
            0 => self.level,
            level => level,
        }
    }

    /// Its training in a skill, or in the ability if no skill is given.
    pub(crate) fn training(&self, skill: Option<&str>, ability: Ability) -> Training {
        let proficient = skill.is_some_and(|s| self.skill_proficiencies.iter().any(|p| names_skill(p, s)));
        if let Some(skill) = skill.filter(|_| proficient) {
            return if self.has_expertise(skill) { Training::Double } else { Training::Full };
        }
        let bodily = matches!(ability, Ability::Strength | Ability::Dexterity | Ability::Constitution);
        if bodily && self.has_feature("Remarkable Athlete") {
            Training::HalfUp
        } else if self.has_feature("Jack of All Trades") {
            Training::HalfDown
        } else {
            Training::None
        }
    }

    fn has_expertise(&self, skill: &str) -> bool {
        self.features.iter().filter(|f| holds(&f.name, "expertise")).any(|f| {
            let chosen = f.chosen_option.as_deref().unwrap_or_default();
            holds(chosen, skill) || chosen.split([',', ';']).any(|one| names_skill(one, skill)) || holds(&f.name, skill)
        })
    }

    /// Whether it is proficient in the ability's saving throw.
    #[must_use]
    pub fn saves_with(&self, ability: Ability) -> bool {
        self.saving_throw_proficiencies.iter().any(|p| Ability::named(p) == Some(ability))
    }

    /// An NPC's bonus for a saving throw, if its stat block has one.
    #[must_use]
    pub(crate) fn npc_save(&self, ability: Ability) -> Option<i32> {
        self.saving_throws.iter().find(|(name, _)| Ability::named(name) == Some(ability)).map(|(_, bonus)| *bonus)
    }

    /// Whether it is proficient with a weapon, because its name, kind or category is listed.
    #[must_use]
    pub fn wields(&self, name: &str, base: Option<&WeaponRule>) -> bool {
        let name = srd::magic_prefix(name).1;
        let category = base.map(|b| match b.category {
            srd::WeaponCategory::Simple => "simple",
            srd::WeaponCategory::Martial => "martial",
        });
        self.weapon_proficiencies.iter().map(|p| p.trim()).filter(|p| !p.is_empty()).any(|listed| {
            if holds(listed, "weapon") || same(listed, "simple") || same(listed, "martial") {
                return holds(listed, "all weapons")
                    || category.is_some_and(|c| holds(listed, c)) && !only_some(listed, base);
            }
            same(listed, name)
                || holds(listed, name)
                || base.is_some_and(|b| same(b.name, listed) || holds(listed, b.name) || turned(listed, b.name))
                || (listed.len() > 3 && base.is_none() && holds(name, listed))
        })
    }

    /// The ability that it casts with. An NPC without one uses its best.
    #[must_use]
    pub fn casting_ability(&self) -> Ability {
        let named = self.spellcasting_ability.as_deref().and_then(Ability::named);
        let of_class = || Class::of_profession(&self.profession).find_map(|(class, _)| class.rule().casting);
        named.or_else(of_class).unwrap_or_else(|| {
            if !self.is_npc {
                return Ability::Intelligence;
            }
            let minds = [Ability::Wisdom, Ability::Charisma, Ability::Intelligence];
            minds.into_iter().max_by_key(|a| self.modifier(*a)).unwrap_or(Ability::Intelligence)
        })
    }

    /// The DC of saving throws against its spells.
    #[must_use]
    pub fn spell_save_dc(&self) -> i32 {
        self.modifier(self.casting_ability()).saturating_add(8 + self.proficiency_bonus())
    }

    /// Whether it is small or tiny, and so has disadvantage with heavy weapons.
    #[must_use]
    pub fn is_small(&self) -> bool {
        matches!(self.size_step(), Some(0 | 1))
    }

    /// The index of its size; 0 for tiny.
    #[must_use]
    pub fn size_step(&self) -> Option<usize> {
        crate::SIZES.iter().position(|s| same(s, &self.size))
    }

    /// Pounds it can carry: 15 for each point of Strength (SRD 5.1, "Lifting and Carrying").
    #[must_use]
    pub const fn carrying_capacity_lb(&self) -> i32 {
        self.abilities.strength.saturating_mul(15)
    }

    /// Pounds it can push, drag or lift.
    #[must_use]
    pub const fn push_drag_lift_lb(&self) -> i32 {
        self.abilities.strength.saturating_mul(30)
    }
}

/// Whether a listed half of a category covers the weapon, such as `simple melee weapons` or `martial ranged weapons`.
fn only_some(listed: &str, base: Option<&WeaponRule>) -> bool {
    base.is_some_and(|b| (holds(listed, "melee") && b.ranged) || (holds(listed, "ranged") && !b.ranged))
}

/// Whether `listed` is a name in reversed order, as in `crossbow, light`.
fn turned(listed: &str, name: &str) -> bool {
    let Some((kind, which)) = listed.split_once(", ") else { return false };
    name.split_once(' ').is_some_and(|(first, last)| holds(which, first) && holds(kind, last))
}

impl Creature {
    /// The number of slots of a level that are left.
    #[must_use]
    pub fn slots_left(&self, level: i32) -> i32 {
        let slot = self.spell_slots.iter().find(|(key, _)| key.trim().parse() == Ok(level));
        slot.map_or(0, |(_, slot)| slot.remaining)
    }
}
