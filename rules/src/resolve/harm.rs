//! Damage to a creature: reductions, resistances, temporary hit points, and what happens at 0 hit points.

use serde::{Deserialize, Serialize};

use super::{
    DamageTaken, Outcome, RuleError, StateChange,
    outcome::{Damage, DamageRow, Text},
};
use crate::{
    sheet::{ActiveEffect, Condition, Creature, DeathSaves, Vitals},
    srd::{ArmorCategory, holds, same},
};

/// Damage of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DamagePart {
    /// The amount; below 0 counts as 0.
    pub amount: i32,
    /// Damage type; empty for damage that nothing resists.
    #[serde(rename = "type", alias = "damage_type")]
    pub damage_type: String,
}

/// Damage from one source (tool `apply_damage`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DamageArgs {
    /// The damage by type.
    pub parts: Vec<DamagePart>,
    /// Subtracted before resistances.
    pub flat_reduction: i32,
    /// Whether it is magical. Some creatures only resist nonmagical damage.
    pub magical: bool,
    /// Whether it comes from a silvered weapon, or from one of adamantine, which some creatures do not resist either.
    pub silvered: bool,
    /// See `silvered`.
    pub adamantine: bool,
    /// Whether it comes from a critical hit, which causes two failures for a creature at 0 hit points.
    pub critical: bool,
    /// Whether a creature that drops to 0 hit points is knocked out instead of killed.
    pub knock_out: bool,
    /// Whether this happens under water, where fire is resisted.
    pub underwater: bool,
}

/// Applies damage (SRD 5.1, "Damage and Healing"): flat reduction, then resistance (half, rounded down), then
/// vulnerability (double), by type and each once. Temporary hit points absorb the rest first.
///
/// # Errors
/// None at present; all resolvers have the same signature.
pub fn apply_damage(target: &Creature, args: &DamageArgs) -> Result<Outcome, RuleError> {
    let mut outcome = Outcome::without_roll("Damage".to_owned(), &[target]);
    let mut vitals = target.vitals();
    let taken = settle(target, &mut vitals, args, &mut outcome.reasons, &mut outcome.effects);
    let breakdown = args.parts.iter().map(|part| DamageRow {
        label: "Damage".to_owned(),
        flat_bonus: part.amount,
        subtotal: part.amount,
        damage_type: (!part.damage_type.is_empty()).then(|| Text::Owned(part.damage_type.clone())),
        ..DamageRow::default()
    });
    let total = args.parts.iter().fold(0_i32, |sum, p| sum.saturating_add(p.amount.max(0)));
    outcome.damage = Some(Damage {
        breakdown: breakdown.collect(),
        total_damage: total,
        is_crit: args.critical,
        taken: Some(taken),
    });
    outcome.success = true;
    outcome.outcome = format!("{taken} damage");
    outcome.notes = format!("{} takes {taken} damage. {}", target.name, standing(target, &vitals));
    Ok(outcome.finished())
}

/// A sentence about the creature's state afterwards.
pub(crate) fn standing(target: &Creature, vitals: &Vitals) -> String {
    if vitals.dead {
        format!("{} is dead.", target.name)
    } else if vitals.hp == 0 {
        format!("{} is at 0 hit points.", target.name)
    } else {
        format!("{} has {} of {} hit points.", target.name, vitals.hp, vitals.max_hp)
    }
}

/// Applies damage to `vitals`, adds the reasons and changes, and returns the damage taken.
pub(crate) fn settle(
    target: &Creature,
    vitals: &mut Vitals,
    args: &DamageArgs,
    reasons: &mut Vec<Text>,
    changes: &mut Vec<StateChange>,
) -> i32 {
    let parts = reduced(target, args, reasons);
    let total = parts.iter().fold(0_i32, |sum, p| sum.saturating_add(p.taken));
    let absorbed = total.min(vitals.temp_hp);
    let rest = total - absorbed;
    let before = vitals.hp;
    vitals.temp_hp -= absorbed;
    vitals.hp = (before - rest.min(before)).max(0);
    let fate = fate(target, vitals, args, before, rest);
    if fate == Fate::Endures {
        vitals.hp = 1;
        vitals.endurance = false;
    }
    let creature = target.key().to_owned();
    changes.push(StateChange::Damage {
        creature,
        parts,
        total,
        absorbed_by_temp: absorbed,
        hp: vitals.hp,
        temp_hp: vitals.temp_hp,
    });
    if total > 0 {
        follow(target, vitals, fate, total, reasons, changes);
    }
    total
}

/// What damage does besides reducing hit points (SRD 5.1, "Dropping to 0 Hit Points").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Stands,
    Endures,
    Falls,
    KnockedOut,
    Fails(i32),
    Dies,
}

fn fate(target: &Creature, vitals: &Vitals, args: &DamageArgs, before: i32, rest: i32) -> Fate {
    if vitals.dead || rest <= 0 || vitals.hp > 0 {
        return Fate::Stands;
    }
    let over = rest - before.min(rest);
    let massive = over >= vitals.max_hp;
    if before == 0 {
        return if massive { Fate::Dies } else { Fate::Fails(if args.critical { 2 } else { 1 }) };
    }
    if args.knock_out {
        return Fate::KnockedOut;
    }
    if massive {
        return Fate::Dies;
    }
    match (vitals.endurance, target.is_npc) {
        (true, _) => Fate::Endures,
        (false, true) => Fate::Dies,
        (false, false) => Fate::Falls,
    }
}

fn follow(
    target: &Creature,
    vitals: &mut Vitals,
    fate: Fate,
    total: i32,
    reasons: &mut Vec<Text>,
    changes: &mut Vec<StateChange>,
) {
    let creature = || target.key().to_owned();
    let mut saves = None;
    match fate {
        Fate::Stands => {
            if vitals.concentrating && vitals.hp > 0 {
                let dc = concentration_dc(total);
                changes.push(StateChange::ConcentrationCheck { creature: creature(), dc, damage: total });
            }
            return;
        }
        Fate::Endures => {
            reasons.push("Relentless Endurance: 1 hit point instead of 0".into());
            changes.push(endurance_spent(target));
            if vitals.concentrating {
                let dc = concentration_dc(total);
                changes.push(StateChange::ConcentrationCheck { creature: creature(), dc, damage: total });
            }
            return;
        }
        Fate::Falls => saves = Some(DeathSaves::default()),
        Fate::KnockedOut => saves = Some(DeathSaves { successes: 3, failures: 0 }),
        Fate::Fails(count) => {
            let was = vitals.death_saves;
            let failures = was.failures.saturating_add(count).min(3);
            reasons.push(format!("damage at 0 hit points: {count} failed death saving throw(s)").into());
            // A stable creature is dying again.
            let successes = if was.successes >= 3 { 0 } else { was.successes };
            if failures >= 3 {
                vitals.dead = true;
            } else {
                saves = Some(DeathSaves { successes, failures });
            }
        }
        Fate::Dies => {
            let massive = "dies: the damage left at 0 hit points is at least the hit point maximum";
            reasons.push(if target.is_npc { "dies: an NPC at 0 hit points" } else { massive }.into());
            vitals.dead = true;
        }
    }
    if let Some(now) = saves {
        vitals.death_saves = now;
        let DeathSaves { successes, failures } = now;
        changes.push(StateChange::DeathSaves { creature: creature(), successes, failures });
    }
    if vitals.dead {
        changes.push(StateChange::Dies { creature: creature() });
    } else {
        begin(target, "unconscious", changes);
        lay_prone(target, changes);
        for rage in target.effects.iter().filter(|e| same(&e.name, "Rage")) {
            changes.push(StateChange::RemoveEffect { creature: creature(), name: rage.name.clone() });
        }
    }
    end_concentration(target, vitals, changes);
}

/// Begins a condition, unless the creature already has it.
fn begin(target: &Creature, name: &str, changes: &mut Vec<StateChange>) {
    let is = |known: &str| same(known, name);
    let begun = changes.iter().any(|c| {
        matches!(c, StateChange::AddCondition { creature, condition } if creature == target.key() && is(&condition.name))
    });
    if begun || target.conditions.iter().any(|c| is(&c.name)) || target.is_immune_to_condition(name) {
        return;
    }
    let condition = Condition { name: name.to_owned(), ..Condition::default() };
    changes.push(StateChange::AddCondition { creature: target.key().to_owned(), condition });
}

/// Makes the creature prone.
pub(crate) fn lay_prone(target: &Creature, changes: &mut Vec<StateChange>) {
    begin(target, "prone", changes);
}

/// Ends concentration, if the creature concentrates.
pub(crate) fn end_concentration(target: &Creature, vitals: &mut Vitals, changes: &mut Vec<StateChange>) {
    if let Some(on) = target.concentration.as_ref().filter(|_| vitals.concentrating) {
        vitals.concentrating = false;
        changes.push(StateChange::EndConcentration { creature: target.key().to_owned(), spell: on.spell.clone() });
    }
}

fn endurance_spent(target: &Creature) -> StateChange {
    let creature = target.key().to_owned();
    match target.resources.iter().find(|r| same(&r.name, "Relentless Endurance")) {
        Some(pool) => StateChange::SpendResource { creature, name: pool.name.clone(), amount: 1 },
        None => StateChange::SetFlag { creature, flag: "relentless_endurance".to_owned(), turn_key: "rest".to_owned() },
    }
}

/// The damage by type, before and after reductions.
fn reduced(target: &Creature, args: &DamageArgs, reasons: &mut Vec<Text>) -> Vec<DamageTaken> {
    let mut parts: Vec<DamageTaken> = Vec::with_capacity(args.parts.len());
    for part in &args.parts {
        match parts.iter_mut().find(|p| same(&p.damage_type, &part.damage_type)) {
            Some(known) => known.amount = known.amount.saturating_add(part.amount),
            None => parts.push(DamageTaken {
                damage_type: part.damage_type.trim().to_owned(),
                amount: part.amount,
                taken: 0,
            }),
        }
    }
    let petrified = target.has_condition("petrified");
    let mut reduction = args.flat_reduction.max(0);
    for part in &mut parts {
        part.amount = part.amount.max(0);
        let off = reduction.min(part.amount);
        reduction -= off;
        part.taken = by_type(target, args, petrified, part.amount - off, &part.damage_type, reasons);
    }
    parts
}

fn by_type(
    target: &Creature,
    args: &DamageArgs,
    petrified: bool,
    amount: i32,
    kind: &str,
    reasons: &mut Vec<Text>,
) -> i32 {
    let listed = |list: &[String]| list.iter().any(|entry| covers(entry, kind, args));
    if listed(&target.immunities) || (petrified && same(kind, "poison")) {
        reasons.push(format!("immune to {kind}").into());
        return 0;
    }
    let mut amount = amount;
    let by_effect = target
        .effect_rules()
        .find(|rule| rule.resistances.iter().any(|r| same(r, kind)) && (rule.name != "Rage" || rage_works(target)));
    let because = if petrified {
        Some("petrified")
    } else if listed(&target.resistances) {
        Some("resistance")
    } else if let Some(rule) = by_effect {
        Some(rule.name)
    } else if args.underwater && same(kind, "fire") {
        Some("under water")
    } else {
        None
    };
    if let Some(because) = because {
        amount /= 2;
        let kind = if kind.is_empty() { "damage" } else { kind };
        reasons.push(format!("resists {kind}: {because}").into());
    }
    if listed(&target.vulnerabilities) {
        amount = amount.saturating_mul(2);
        reasons.push(format!("vulnerable to {kind}").into());
    }
    amount
}

/// Whether an entry in a list of resistances covers this damage. Examples: `fire`, `all`, `bludgeoning, piercing and
/// slashing from nonmagical attacks`, `… not made with silvered weapons`.
fn covers(entry: &str, kind: &str, args: &DamageArgs) -> bool {
    let excepts = |words: &[&str]| words.iter().any(|word| holds(entry, word));
    let is_exception = excepts(&["nonmagical", "non-magical", " not ", "n't", "except"]);
    if (args.magical && excepts(&["nonmagical", "non-magical"]))
        || (args.silvered && is_exception && excepts(&["silver"]))
        || (args.adamantine && is_exception && excepts(&["adamantine"]))
    {
        return false;
    }
    !kind.is_empty() && (same(entry, kind) || same(entry, "all") || same(entry, "all damage") || holds(entry, kind))
}

/// Whether rage works, which it does not in heavy armor.
pub(crate) fn rage_works(creature: &Creature) -> bool {
    creature.worn_armor().is_none_or(|a| a.category != ArmorCategory::Heavy)
}

/// Halves the damage and rounds the sum down. Odd parts are rounded down and up in turn.
pub(crate) fn halve(parts: &mut [DamagePart]) {
    let mut carry = 0;
    for part in parts {
        let amount = part.amount.max(0);
        let odd = amount % 2 + carry;
        part.amount = amount / 2 + odd / 2;
        carry = odd % 2;
    }
}

/// The change that puts an effect on a creature.
pub(crate) fn effect_on(target: &Creature, name: &str, source: &str, rounds: Option<i32>) -> StateChange {
    let effect = ActiveEffect { name: name.to_owned(), source: Some(source.to_owned()), rounds_remaining: rounds };
    StateChange::AddEffect { creature: target.key().to_owned(), effect }
}

/// The DC for keeping concentration: 10, or half the damage if that is more (SRD 5.1, "Concentration").
#[must_use]
pub const fn concentration_dc(damage: i32) -> i32 {
    if damage / 2 > 10 { damage / 2 } else { 10 }
}
