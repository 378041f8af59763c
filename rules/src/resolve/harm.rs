//! Damage arriving at a creature: reductions, resistances, temporary hit points, and what happens at 0.

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
    /// How much; below 0 counts as 0.
    pub amount: i32,
    /// Damage type; empty for damage that nothing resists.
    #[serde(rename = "type", alias = "damage_type")]
    pub damage_type: String,
}

/// Damage from one source (tool `apply_damage`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DamageArgs {
    /// By type.
    pub parts: Vec<DamagePart>,
    /// Taken off before resistances.
    pub flat_reduction: i32,
    /// Whether it is magical: some resist only what is not.
    pub magical: bool,
    /// Whether it comes from a critical hit: two failures for who lies at 0.
    pub critical: bool,
    /// Whether who drops to 0 is knocked out instead of killed.
    pub knock_out: bool,
    /// Under water fire is resisted.
    pub underwater: bool,
}

/// Applies damage (SRD 5.1, "Damage and Healing"): flat reduction, then resistance (half, rounded down), then
/// vulnerability (double), by type and each once; temporary hit points absorb what is left.
///
/// # Errors
/// None today; the signature is that of every resolver.
pub fn apply_damage(target: &Creature, args: &DamageArgs) -> Result<Outcome, RuleError> {
    let mut outcome = Outcome::without_roll("Damage".to_owned());
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

/// How it stands after.
pub(crate) fn standing(target: &Creature, vitals: &Vitals) -> String {
    if vitals.dead {
        format!("{} is dead.", target.name)
    } else if vitals.hp == 0 {
        format!("{} is at 0 hit points.", target.name)
    } else {
        format!("{} has {} of {} hit points.", target.name, vitals.hp, vitals.max_hp)
    }
}

/// Settles damage: changes `vitals`, says why and what has to be changed, and returns what was taken.
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

/// What damage does beside taking hit points (SRD 5.1, "Dropping to 0 Hit Points").
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
                let dc = super::concentration_dc(total);
                changes.push(StateChange::ConcentrationCheck { creature: creature(), dc, damage: total });
            }
            return;
        }
        Fate::Endures => {
            reasons.push("Relentless Endurance: 1 hit point instead of 0".into());
            changes.push(endurance_spent(target));
            if vitals.concentrating {
                let dc = super::concentration_dc(total);
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
            // Who was stable is dying again.
            let successes = if was.successes >= 3 { 0 } else { was.successes };
            if failures >= 3 {
                vitals.dead = true;
            } else {
                saves = Some(DeathSaves { successes, failures });
            }
        }
        Fate::Dies => {
            let massive = "dies: what is left of the damage at 0 hit points reaches the hit point maximum";
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

/// Begins a condition that is not in force yet.
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

/// It lies on the ground.
pub(crate) fn lay_prone(target: &Creature, changes: &mut Vec<StateChange>) {
    begin(target, "prone", changes);
}

/// Ends concentration, if there is any left.
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
    let listed = |list: &[String]| list.iter().any(|entry| covers(entry, kind, args.magical));
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

/// Whether an entry of a list of resistances is about this damage: `fire`, `all`,
/// `bludgeoning, piercing and slashing from nonmagical attacks`.
fn covers(entry: &str, kind: &str, magical: bool) -> bool {
    if magical && (holds(entry, "nonmagical") || holds(entry, "non-magical")) {
        return false;
    }
    !kind.is_empty() && (same(entry, kind) || same(entry, "all") || same(entry, "all damage") || holds(entry, kind))
}

/// Rage does nothing in heavy armor.
pub(crate) fn rage_works(creature: &Creature) -> bool {
    creature.worn_armor().is_none_or(|a| a.category != ArmorCategory::Heavy)
}

/// Halves damage, rounding the sum down: odd parts lose their half in turn.
pub(crate) fn halve(parts: &mut [DamagePart]) {
    let mut carry = 0;
    for part in parts {
        let amount = part.amount.max(0);
        let odd = amount % 2 + carry;
        part.amount = amount / 2 + odd / 2;
        carry = odd % 2;
    }
}

/// An effect put on a creature.
pub(crate) fn effect_on(target: &Creature, name: &str, source: &str, rounds: Option<i32>) -> StateChange {
    let effect = ActiveEffect { name: name.to_owned(), source: Some(source.to_owned()), rounds_remaining: rounds };
    StateChange::AddEffect { creature: target.key().to_owned(), effect }
}
