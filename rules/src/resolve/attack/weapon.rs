//! The roll and the damage of an attack with a weapon.

use super::{
    args::AttackArgs,
    arm::{Arm, arm},
    choose::Choice,
    circumstances::{able, helpless, in_reach, lean, lean_of_arm},
    sources::{Extra, Strike, plan},
};
use crate::{
    dice::Dice,
    resolve::{
        Circumstances, Context, DamageArgs, Outcome, StateChange,
        d20::D20Test,
        error::Stop,
        harm::{halve, standing},
        hit::{Verdict, judge, land, note, uncanny_dodge},
        outcome::Text,
        rows::{self, Row},
    },
    sheet::{Condition, Creature, Range},
    srd::{Ability, base_weapon, same},
};

pub(crate) fn attack(
    actor: &Creature,
    target: &Creature,
    choice: &Choice<'_>,
    args: &AttackArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, Stop> {
    able(actor, target, circumstances)?;
    let arm = arm(actor, choice, args.two_handed, &circumstances.context)?;
    in_reach(&arm, circumstances)?;
    two_weapons(&arm, circumstances)?;
    let mut test = prepare(actor, target, &arm, circumstances);
    test.roll(dice)?;
    test.roll_bonus(dice)?;

    let ac = target.armor_class_now();
    let reach = ac.total.saturating_add(circumstances.cover.bonus());
    test.reasons.extend(ac.reasons);
    if circumstances.cover.bonus() > 0 {
        test.reasons.push(format!("AC +{}: cover", circumstances.cover.bonus()).into());
    }
    let shape = shape(&arm);
    let beside = shape.is_near(circumstances) && helpless(target);
    let hit = judge(&test, reach, critical_from(actor, &arm), beside);
    let strike = Strike {
        actor,
        target,
        arm: &arm,
        test: &test,
        crit: hit == Verdict::Critical,
        slot_level: args.slot_level,
        circumstances,
    };
    let extra = plan(&strike, &args.extra_damage_sources);
    let notes = note(&test, hit, target, reach);
    let mut outcome = Outcome::of(format!("{} Attack", arm.name), test);
    outcome.with(target);
    outcome.dc_or_ac = reach.to_string();
    outcome.success = hit != Verdict::Miss;
    outcome.outcome = hit.word().to_owned();
    outcome.notes = notes;
    if hit == Verdict::Miss {
        outcome.reasons.extend(extra.reasons.into_iter().filter(|r| r.starts_with("refused")));
    } else {
        strike_home(&mut outcome, (actor, target), &arm, extra, circumstances, dice)?;
    }
    Ok(outcome.finished())
}

/// Checks that the bonus attack of two-weapon fighting uses two light melee weapons.
fn two_weapons(arm: &Arm<'_>, circumstances: &Circumstances) -> Result<(), Stop> {
    let context = &circumstances.context;
    if !context.off_hand {
        return Ok(());
    }
    if !arm.is_weapon || arm.ranged_weapon || !arm.has("light") {
        return Err(Stop::Impossible(format!("{} is not a light melee weapon for the other hand", arm.name)));
    }
    if let Some(super::super::OtherWeapon::Named(name)) = &context.other_weapon
        && let Some(other) = base_weapon(name)
        && (other.ranged || !other.has("light"))
    {
        return Err(Stop::Impossible(format!("{name} is not a light melee weapon, so the other hand gets no attack")));
    }
    Ok(())
}

fn shape(arm: &Arm<'_>) -> super::Shape {
    super::Shape { ranged: arm.ranged, weapon: true, ability: arm.ability, range: arm.range }
}

/// Prepares the roll, with its modifiers and sources of advantage and disadvantage.
fn prepare(actor: &Creature, target: &Creature, arm: &Arm<'_>, circumstances: &Circumstances) -> D20Test {
    let mut test = D20Test::by(actor);
    add_bonuses(&mut test, actor, arm);
    test.reasons.extend(arm.notes.iter().cloned());
    lean(&mut test, actor, target, shape(arm), circumstances);
    lean_of_arm(&mut test, actor, arm, circumstances);
    test
}

/// Adds what every roll with this weapon gets.
fn add_bonuses(test: &mut D20Test, actor: &Creature, arm: &Arm<'_>) {
    if let Some(bonus) = arm.npc_bonus {
        test.add("Bonus", bonus);
        return;
    }
    test.add(arm.ability.map_or("NONE", Ability::label), arm.modifier);
    if arm.proficient {
        test.add("Prof", actor.proficiency_bonus());
    }
    if arm.magic != 0 {
        test.add("Bonus", arm.magic);
    }
    if arm.ranged_weapon && arm.is_weapon && actor.has_style("Archery") {
        test.add("Archery", 2);
        test.reasons.push("applied: Archery".into());
    }
}

/// An attack with the numbers that its roll would have, without what a target or a moment adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetAttack {
    /// The name of the weapon or of the attack.
    pub name: String,
    /// What is added to the d20.
    pub bonus: i32,
    /// The damage as a sum, such as `1d8+3`. Empty for none, as with a net.
    pub damage: String,
    /// The damage type.
    pub damage_type: String,
    /// Reach in feet; 0 if it is only shot.
    pub reach_ft: i32,
    /// Normal and long range in feet, if it can be shot or thrown.
    pub range: Option<Range>,
    /// Why it cannot be used as it is written, such as damage that is not a sum of dice.
    pub problem: Option<String>,
}

/// The attacks that a sheet names, in its order: weapons, then those of a stat block. Uses no dice.
#[must_use]
pub fn sheet_attacks(actor: &Creature) -> Vec<SheetAttack> {
    let weapons = actor.weapons.iter().map(|weapon| (weapon.name.as_str(), Choice::Weapon(weapon)));
    let attacks = actor.attacks.iter().map(|attack| (attack.name.as_str(), Choice::Npc(attack)));
    weapons.chain(attacks).map(|(name, choice)| sheet_attack(actor, name, &choice)).collect()
}

fn sheet_attack(actor: &Creature, name: &str, choice: &Choice<'_>) -> SheetAttack {
    let mut shown = SheetAttack {
        name: name.to_owned(),
        bonus: 0,
        damage: String::new(),
        damage_type: String::new(),
        reach_ft: 0,
        range: None,
        problem: None,
    };
    let arm = match arm(actor, choice, false, &Context::default()) {
        Ok(arm) => arm,
        Err(stop) => {
            shown.problem = Some(match stop {
                Stop::Impossible(why) => why,
                Stop::Error(error) => error.to_string(),
            });
            return shown;
        }
    };
    let mut test = D20Test::by(actor);
    add_bonuses(&mut test, actor, &arm);
    let row = own_row(actor, &arm, false, &mut Vec::new());
    let is_net = arm.base.is_some_and(|base| same(base.name, "net"));
    shown.bonus = test.modifier();
    shown.damage = if is_net { String::new() } else { row.sum() };
    shown.damage_type = if shown.damage.is_empty() { String::new() } else { row.damage_type.into_owned() };
    shown.range = arm.range;
    shown.reach_ft = if arm.ranged { 0 } else { arm.reach };
    shown
}

/// The lowest d20 for a critical hit, which champions have lower.
fn critical_from(actor: &Creature, arm: &Arm<'_>) -> u32 {
    if arm.npc_bonus.is_some() {
        20
    } else if actor.has_feature("Superior Critical") {
        18
    } else if actor.has_feature("Improved Critical") {
        19
    } else {
        20
    }
}

/// Deals the damage of a hit, and its other effects.
fn strike_home(
    outcome: &mut Outcome,
    (actor, target): (&Creature, &Creature),
    arm: &Arm<'_>,
    extra: Extra,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<(), Stop> {
    let crit = outcome.outcome == Verdict::Critical.word();
    let context = &circumstances.context;
    outcome.reasons.extend(extra.reasons);
    outcome.effects.extend(extra.changes);
    if arm.base.is_some_and(|b| same(b.name, "net")) {
        entangle(outcome, actor, target);
        return Ok(());
    }
    let mut rows = Vec::with_capacity(1 + extra.rows.len());
    rows.push(own_row(actor, arm, context.off_hand, &mut outcome.reasons));
    rows.extend(extra.rows);
    let mut damage = rows::roll(&rows, crit, dice, &mut outcome.dice)?;
    let mut blow = DamageArgs {
        parts: rows::parts(&damage.breakdown),
        magical: arm.is_magical(),
        silvered: arm.is_of("silver"),
        adamantine: arm.is_of("adamantine"),
        critical: crit,
        knock_out: context.knock_out && !arm.ranged,
        underwater: context.underwater,
        ..DamageArgs::default()
    };
    if uncanny_dodge(target, circumstances, &mut outcome.reasons) {
        halve(&mut blow.parts);
    }
    let mut vitals = target.vitals();
    land(target, &mut vitals, &mut damage, blow, &mut outcome.reasons, &mut outcome.effects);
    outcome.notes.push_str(&format!(" {} damage.", damage.taken.unwrap_or_default()));
    if vitals.hp == 0 {
        outcome.notes.push(' ');
        outcome.notes.push_str(&standing(target, &vitals));
    }
    outcome.damage = Some(damage);
    Ok(())
}

/// The damage row of the weapon itself.
fn own_row(actor: &Creature, arm: &Arm<'_>, off_hand: bool, reasons: &mut Vec<Text>) -> Row {
    let mut row = Row::of(arm.name.to_owned(), arm.dice.clone(), Text::default());
    row.damage_type = arm.damage_type.clone();
    let mut ability = arm.modifier;
    if off_hand && ability > 0 {
        if actor.has_style("Two-Weapon Fighting") {
            reasons.push("applied: Two-Weapon Fighting".into());
        } else {
            ability = 0;
            reasons.push("off hand: the ability modifier is not added to damage".into());
        }
    }
    row.flat = row.flat.saturating_add(ability).saturating_add(arm.magic);
    if arm.is_great(actor) {
        row.rerolls_low = true;
        reasons.push("applied: Great Weapon Fighting".into());
    }
    row
}

/// A net restrains the target it hits, unless the target is huge or larger.
fn entangle(outcome: &mut Outcome, actor: &Creature, target: &Creature) {
    if target.size_step().is_some_and(|s| s > 3) || target.is_immune_to_condition("restrained") {
        outcome.reasons.push("the net cannot hold the target".into());
        return;
    }
    let condition =
        Condition { name: "restrained".to_owned(), source: Some(actor.key().to_owned()), ..Condition::default() };
    outcome.effects.push(StateChange::AddCondition { creature: target.key().to_owned(), condition });
    outcome.notes.push_str(" It is restrained until it breaks free (DC 10 Strength, or 5 slashing damage to the net).");
}
