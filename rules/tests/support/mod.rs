//! Sheets and shorthands for all tests.

#![expect(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    reason = "each test file uses some of them; tests fail loudly"
)]

use rules::{
    dice::Given,
    resolve::{AttackArgs, Circumstances, Context, Outcome, RuleError, StateChange, apply, resolve_attack},
    sheet::{ActiveEffect, Condition, Creature, Feature, KnownSpell, NpcAttack, SpellSlot, Weapon},
};

/// A character of a class and level with these scores: STR, DEX, CON, INT, WIS, CHA.
pub fn hero(profession: &str, level: i32, scores: [i32; 6]) -> Creature {
    let [strength, dexterity, constitution, intelligence, wisdom, charisma] = scores;
    Creature {
        id: "hero".to_owned(),
        name: "Hero".to_owned(),
        profession: profession.to_owned(),
        level,
        abilities: rules::sheet::Abilities { strength, dexterity, constitution, intelligence, wisdom, charisma },
        weapon_proficiencies: vec!["simple weapons".to_owned(), "martial weapons".to_owned()],
        max_hp: 40,
        hp: 40,
        ..Creature::default()
    }
}

/// An NPC with this armor class and these hit points.
pub fn foe(armor_class: i32, hp: i32) -> Creature {
    Creature {
        id: "foe".to_owned(),
        name: "Foe".to_owned(),
        is_npc: true,
        armor_class,
        hp,
        max_hp: hp,
        ..Creature::default()
    }
}

pub fn armed(mut creature: Creature, weapons: &[&str]) -> Creature {
    creature.weapons.extend(weapons.iter().map(|w| Weapon { name: (*w).to_owned(), ..Weapon::default() }));
    creature
}

pub fn with_features(mut creature: Creature, features: &[&str]) -> Creature {
    creature.features.extend(features.iter().map(|f| match f.split_once('=') {
        Some((name, option)) => {
            Feature { name: name.to_owned(), chosen_option: Some(option.to_owned()), ..Feature::default() }
        }
        None => Feature { name: (*f).to_owned(), ..Feature::default() },
    }));
    creature
}

pub fn with_effects(mut creature: Creature, effects: &[&str]) -> Creature {
    creature.effects.extend(effects.iter().map(|e| ActiveEffect { name: (*e).to_owned(), ..ActiveEffect::default() }));
    creature
}

pub fn with_conditions(mut creature: Creature, conditions: &[&str]) -> Creature {
    creature.conditions.extend(conditions.iter().map(|c| match c.split_once(' ') {
        Some((name, level)) => Condition { name: name.to_owned(), level: level.parse().ok(), ..Condition::default() },
        None => Condition { name: (*c).to_owned(), ..Condition::default() },
    }));
    creature
}

pub fn with_spells(mut creature: Creature, spells: &[&str], slots: &[(i32, i32)]) -> Creature {
    creature.spells.extend(spells.iter().map(|s| KnownSpell::Name((*s).to_owned())));
    for (level, count) in slots {
        creature.spell_slots.insert(level.to_string(), SpellSlot { max: *count, remaining: *count });
    }
    creature
}

pub fn with_attack(mut creature: Creature, name: &str, bonus: i32, damage: &str, kind: &str) -> Creature {
    creature.attacks.push(NpcAttack {
        name: name.to_owned(),
        bonus,
        damage: damage.to_owned(),
        damage_type: kind.to_owned(),
        ..NpcAttack::default()
    });
    creature
}

pub fn with(weapon: &str) -> AttackArgs {
    AttackArgs { weapon: Some(weapon.to_owned()), ..AttackArgs::default() }
}

pub fn using(weapon: &str, sources: &[&str]) -> AttackArgs {
    AttackArgs { extra_damage_sources: sources.iter().map(|s| (*s).to_owned()).collect(), ..with(weapon) }
}

pub fn casting(spell: &str, slot_level: Option<i32>) -> AttackArgs {
    AttackArgs { spell_name: Some(spell.to_owned()), slot_level, ..AttackArgs::default() }
}

/// Circumstances with this context.
pub fn when(change: impl FnOnce(&mut Context)) -> Circumstances {
    let mut circumstances = Circumstances::default();
    change(&mut circumstances.context);
    circumstances
}

pub fn plain() -> Circumstances {
    Circumstances::default()
}

/// An attack with given dice, all of which must be used.
pub fn attack(
    actor: &Creature,
    target: &Creature,
    args: &AttackArgs,
    circumstances: &Circumstances,
    dice: &[u32],
) -> Outcome {
    let mut given = Given::new(dice);
    let outcome = resolve_attack(actor, target, args, circumstances, &mut given).expect("enough dice");
    assert_eq!(given.unused(), &[] as &[u32], "dice left over: {outcome:#?}");
    outcome
}

/// Runs a resolver with given dice, all of which must be used.
pub fn rolled(dice: &[u32], run: impl FnOnce(&mut Given<'_>) -> Result<Outcome, RuleError>) -> Outcome {
    let mut given = Given::new(dice);
    let outcome = run(&mut given).expect("enough dice");
    assert_eq!(given.unused(), &[] as &[u32], "dice left over: {outcome:#?}");
    outcome
}

pub fn after(creature: &Creature, outcome: &Outcome) -> Creature {
    let mut creature = creature.clone();
    apply(&mut creature, &outcome.effects);
    creature
}

/// The damage that the target took; 0 if there was none.
pub fn taken(outcome: &Outcome) -> i32 {
    outcome.damage.as_ref().and_then(|d| d.taken).unwrap_or(0)
}

pub fn total_damage(outcome: &Outcome) -> i32 {
    outcome.damage.as_ref().map_or(0, |d| d.total_damage)
}

/// The dice of a breakdown row, as written.
pub fn row<'a>(outcome: &'a Outcome, label: &str) -> &'a rules::resolve::DamageRow {
    let damage = outcome.damage.as_ref().expect("damage");
    damage.breakdown.iter().find(|r| r.label == label).unwrap_or_else(|| panic!("no row {label}: {damage:#?}"))
}

pub fn has_reason(outcome: &Outcome, part: &str) -> bool {
    outcome.reasons.iter().any(|r| r.contains(part))
}

pub fn spends(outcome: &Outcome, level: i32) -> bool {
    outcome.effects.iter().any(|c| matches!(c, StateChange::SpendSlot { level: l, .. } if *l == level))
}
