//! Hit points, and what lies below them.

use utoipa::ToSchema;

use super::{Creature, DeathSaves};
use crate::srd::same;

/// Whether a creature lives (SRD 5.1, "Dropping to 0 Hit Points").
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Life {
    /// It has hit points.
    Alive,
    /// It is at 0 and makes death saving throws.
    Dying,
    /// It is at 0 and makes none.
    Stable,
    /// It is dead.
    Dead,
}

/// The numbers damage and healing change; a working copy while one roll after another is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vitals {
    /// Hit points at most, exhaustion counted.
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
    /// Whether Relentless Endurance is still to be had.
    pub endurance: bool,
}

impl Creature {
    /// Hit points at most: half of the sheet's with four levels of exhaustion or more.
    #[must_use]
    pub fn max_hp_now(&self) -> i32 {
        if self.exhaustion() >= 4 { self.max_hp / 2 } else { self.max_hp }
    }

    /// Whether it lives. An NPC at 0 hit points is dead, unless it is unconscious or stable.
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

    /// A working copy of what damage and healing change.
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
