//! How positions, light and other creatures affect a roll.

use super::{Encounter, Lighting, Participant, Position, position::SQUARE_FT};
use crate::{
    resolve::{Circumstances, Cover},
    sheet::Creature,
    srd::holds,
};

/// The distance of adjacent creatures in feet.
const BESIDE_FT: i32 = 5;
/// The range of darkvision in feet.
const DARKVISION_FT: i32 = 60;

impl Encounter {
    /// The distance between two participants in feet; `None` if one has no position.
    #[must_use]
    pub fn distance_ft(&self, a: &Participant, b: &Participant) -> Option<i32> {
        let (from, to) = (a.position?, b.position?);
        Some(from.squares_to(a.side(), to, b.side()).saturating_mul(SQUARE_FT))
    }

    /// The circumstances of an attack: those from the caller, completed with what the encounter knows.
    pub(super) fn circumstances(
        &self,
        actor: &Participant,
        target: &Participant,
        asked: &Circumstances,
        provoked_at: Option<Position>,
    ) -> Circumstances {
        let mut known = asked.clone();
        let context = &mut known.context;
        context.turn_key = Some(self.turn_key());
        if !target.can_react() {
            context.reactions.clear();
        }
        let distance = match (provoked_at, actor.position) {
            (Some(from), Some(own)) => {
                Some(own.squares_to(actor.side(), from, target.side()).saturating_mul(SQUARE_FT))
            }
            _ => self.distance_ft(actor, target),
        };
        context.distance_ft = distance.or(context.distance_ft);
        let beside = |a: &Participant, b: &Participant| self.distance_ft(a, b).is_some_and(|d| d <= BESIDE_FT);
        context.ally_adjacent |= self.participants.iter().any(|p| {
            p.id != actor.id && p.id != target.id && p.is_enemy != target.is_enemy && p.is_able() && beside(p, target)
        });
        context.hostile_adjacent |= self.participants.iter().any(|p| {
            p.is_enemy != actor.is_enemy && p.is_able() && !p.creature.has_condition("blinded") && beside(p, actor)
        });
        context.attacker_unseen |= !self.lets_see(&target.creature, distance);
        context.target_unseen |= !self.lets_see(&actor.creature, distance);
        if known.cover == Cover::None && self.is_behind(actor, target) {
            known.cover = Cover::Half;
        }
        known
    }

    /// Whether the light lets a creature see this far.
    fn lets_see(&self, viewer: &Creature, distance_ft: Option<i32>) -> bool {
        match self.lighting {
            Lighting::Bright | Lighting::Dim => true,
            Lighting::Darkness => has_darkvision(viewer) && distance_ft.is_none_or(|d| d <= DARKVISION_FT),
            Lighting::MagicalDarkness => false,
        }
    }

    /// Whether an obstacle lies on the line between the two.
    fn is_behind(&self, actor: &Participant, target: &Participant) -> bool {
        let (Some(from), Some(to)) = (actor.position, target.position) else { return false };
        if self.terrain.obstacles.is_empty() || from.z != 0 || to.z != 0 {
            return false;
        }
        line(from, to).any(|at| self.terrain.blocks(at, 1))
    }
}

/// The squares on the line between two squares' centres.
fn line(from: Position, to: Position) -> impl Iterator<Item = Position> {
    let (dx, dy) = (i64::from(to.x) - i64::from(from.x), i64::from(to.y) - i64::from(from.y));
    let steps = dx.abs().max(dy.abs()).min(1_000);
    (1..steps).map(move |step| {
        let along = |start: i32, delta: i64| {
            let moved = (2 * delta * step + steps).div_euclid(2 * steps);
            i32::try_from(i64::from(start) + moved).unwrap_or(start)
        };
        Position { x: along(from.x, dx), y: along(from.y, dy), z: 0 }
    })
}

/// Whether a creature has darkvision, by its race (SRD 5.1, "Races") or its sheet.
fn has_darkvision(creature: &Creature) -> bool {
    const RACES: [&str; 5] = ["dwarf", "elf", "gnome", "half-orc", "tiefling"];
    RACES.iter().any(|race| holds(&creature.race, race))
        || creature.features.iter().any(|f| holds(&f.name, "darkvision"))
}

impl Participant {
    /// The reach of its longest melee attack in feet.
    pub(super) fn reach_ft(&self) -> i32 {
        let long = |w: &crate::sheet::Weapon| {
            let listed = w.properties.iter().any(|p| holds(p, "reach"));
            listed || crate::srd::base_weapon(&w.name).is_some_and(|base| base.has("reach"))
        };
        let blocks = self.creature.attacks.iter().filter(|a| a.range.is_none()).filter_map(|a| a.reach_ft);
        let weapons = self.creature.weapons.iter().filter(|w| long(w)).map(|_| 10);
        blocks.chain(weapons).max().unwrap_or(BESIDE_FT).clamp(BESIDE_FT, 60)
    }
}
