//! Hit points, dying and death.

use utoipa::ToSchema;

use super::{Creature, DeathSaves};
use crate::srd::same;

/// Whether a creature is alive (SRD 5.1, "Dropping to 0 Hit Points").
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Life {
    /// It has hit points.
    Alive,
    /// It is at 0 hit points and makes death saving throws.
    Dying,
    /// It is at 0 hit points and makes none.
    Stable,
    /// It is dead.
    Dead,
}

/// The numbers that damage and healing change. Resolvers work on a copy of them while they settle one roll after
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vitals {
    /// Maximum hit points, with exhaustion.
    pub max_hp: i32,
    /// Hit points.
    pub hp: i32,
    /// Temporary hit points.
    pub temp_hp: i32,
    /// Death saving throws.
    pub death_saves: DeathSaves,
    /// Whether it is dead.
    pub dead: bool,
    /// Whether it still concentrates.
    pub concentrating: bool,
    /// Whether Relentless Endurance is still available.
    pub endurance: bool,
}

impl Creature {
    /// Maximum hit points: half of the sheet's with at least four levels of exhaustion.
    #[must_use]
    pub fn max_hp_now(&self) -> i32 {
        if self.exhaustion() >= 4 { self.max_hp / 2 } else { self.max_hp }
    }

    /// Whether it is alive. An NPC at 0 hit points is dead, unless it is unconscious or stable.
    #[must_use]
    pub fn life(&self) -> Life {
        let out_cold = || self.conditions.iter().any(|c| same(&c.name, "unconscious"));
        if self.exhaustion() >= 6 || self.death_saves.failures >= 3 {
            Life::Dead
        } else if self.hp > 0 {
            Life::Alive
        } else if self.death_saves.successes >= 3 {
            Life::Stable
        } else if self.is_npc && !out_cold() {
            Life::Dead
        } else {
            Life::Dying
        }
    }

    /// A working copy of the numbers that damage and healing change.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        let spent = self.turn_flags.contains_key("relentless_endurance")
            || self.resources.iter().any(|r| same(&r.name, "Relentless Endurance") && r.remaining <= 0);
        Vitals {
            max_hp: self.max_hp_now(),
            hp: self.hp.max(0),
            temp_hp: self.temp_hp.max(0),
            death_saves: self.death_saves,
            dead: self.life() == Life::Dead,
            concentrating: self.concentration.is_some(),
            endurance: !spent && self.has_trait("half-orc", "Relentless Endurance"),
        }
    }
}
