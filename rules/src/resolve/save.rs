//! Saving throws (SRD 5.1, "Saving Throws").

use serde::{Deserialize, Serialize};

use super::{
    Automatic, Circumstances, DamageArgs, DamagePart, Outcome, RuleError, StateChange,
    d20::{BonusDie, D20Test},
    error::{Stop, settle},
    harm::{self, halve},
    rows::{self, Row},
};
use crate::srd::Advantage;
use crate::{
    dice::Dice,
    sheet::Creature,
    srd::{Ability, DamageDice, OnSave, holds},
};

/// A saving throw (tool `resolve_saving_throw`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavingThrowArgs {
    /// The full or three-letter name.
    pub ability: String,
    /// The DC.
    pub dc: i32,
    /// What the creature saves against, such as `poison` or `dragon's breath`.
    pub source: Option<String>,
    /// The damage that depends on the save.
    pub damage: Option<SaveDamage>,
}

/// Damage that depends on a saving throw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SaveDamage {
    /// A sum of dice and a number.
    pub dice: String,
    /// Damage type.
    #[serde(rename = "type", alias = "damage_type")]
    pub damage_type: String,
    /// How much a success leaves.
    pub on_save: OnSave,
}

/// Resolves a saving throw of the actor, with the damage that it takes. Cover helps Dexterity saves.
///
/// Dice: d20s, bonus dice, damage dice. If the save negates the damage, no damage dice are used.
///
/// # Errors
/// If dice run out, or the damage is not a sum of dice.
pub fn resolve_saving_throw(
    actor: &Creature,
    args: &SavingThrowArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    settle(throw(actor, args, circumstances, dice))
}

fn throw(
    actor: &Creature,
    args: &SavingThrowArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, Stop> {
    let ability = Ability::named(&args.ability)
        .ok_or_else(|| Stop::Impossible(format!("there is no ability \"{}\"", args.ability)))?;
    let row = match &args.damage {
        Some(damage) => Some(damage_row(damage, args.source.as_deref())?),
        None => None,
    };
    let source = args.source.as_deref().map(str::trim).filter(|s| !s.is_empty());
    let mut test = prepare(actor, ability, circumstances, source.unwrap_or_default(), circumstances.cover.bonus());
    test.roll(dice)?;
    test.roll_bonus(dice)?;
    let success = test.reaches(args.dc);
    let mut outcome = Outcome::of(format!("{} Saving Throw", ability.title()), test);
    outcome.dc_or_ac = args.dc.to_string();
    outcome.success = success;
    (outcome.outcome, outcome.notes) = super::check::words(success, args.dc);
    if let Some(source) = source {
        outcome.notes = format!("{} ({source}).", outcome.notes.trim_end_matches('.'));
    }
    if let (Some(row), Some(damage)) = (row, &args.damage) {
        let left = left(actor, ability, damage.on_save, success, &mut outcome);
        if left > Left::Nothing {
            let blow = DamageArgs { underwater: circumstances.context.underwater, ..DamageArgs::default() };
            let mut vitals = actor.vitals();
            hurt(&mut outcome, actor, &mut vitals, &[row], left, blow, dice)?;
        }
    }
    Ok(outcome.finished())
}

fn damage_row(damage: &SaveDamage, source: Option<&str>) -> Result<Row, Stop> {
    let dice = DamageDice::parse(&damage.dice).ok_or_else(|| {
        let message = format!("\"{}\" is not a sum of dice such as 8d6 or 2d6+3", damage.dice);
        Stop::Error(RuleError::Argument { argument: "damage/dice", message })
    })?;
    let label = source.filter(|s| !s.trim().is_empty()).unwrap_or("Damage").trim().to_owned();
    Ok(Row::of(label, dice, damage.damage_type.trim().to_owned().into()))
}

/// How much of the damage a save leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Left {
    Nothing,
    Half,
    All,
}

/// How much of the damage is left. With Evasion nothing instead of half, and half instead of all.
pub(crate) fn left(creature: &Creature, ability: Ability, on_save: OnSave, saved: bool, outcome: &mut Outcome) -> Left {
    let evades = ability == Ability::Dexterity && on_save == OnSave::Half && creature.has_feature("Evasion");
    let evades = evades && !creature.is_incapacitated();
    if evades {
        outcome.reasons.push("applied: Evasion".into());
    }
    match (saved, on_save, evades) {
        (true, OnSave::None, _) | (true, OnSave::Half, true) => Left::Nothing,
        (true, OnSave::Half, false) | (false, OnSave::Half, true) => Left::Half,
        (false, _, _) => Left::All,
    }
}

/// Rolls damage that depends on a save, and applies it.
pub(crate) fn hurt(
    outcome: &mut Outcome,
    target: &Creature,
    vitals: &mut crate::sheet::Vitals,
    rows: &[Row],
    left: Left,
    blow: DamageArgs,
    dice: &mut dyn Dice,
) -> Result<(), Stop> {
    let mut damage = rows::roll(rows, false, dice, &mut outcome.dice)?;
    let mut parts = rows::parts(&damage.breakdown);
    if left == Left::Half {
        halve(&mut parts);
        damage.total_damage = parts.iter().fold(0, |sum: i32, p: &DamagePart| sum.saturating_add(p.amount));
    }
    let blow = DamageArgs { parts, ..blow };
    let taken = harm::settle(target, vitals, &blow, &mut outcome.reasons, &mut outcome.effects);
    damage.taken = Some(taken);
    let half = if left == Left::Half { " (half)" } else { "" };
    outcome.notes.push_str(&format!(" {taken} damage{half}."));
    if vitals.hp == 0 {
        outcome.notes.push(' ');
        outcome.notes.push_str(&harm::standing(target, vitals));
    }
    outcome.damage = Some(damage);
    Ok(())
}

/// Prepares the roll, with its modifiers and sources of advantage and disadvantage. `cover` is the bonus from cover if
/// this is a Dexterity save.
pub(crate) fn prepare(
    creature: &Creature,
    ability: Ability,
    circumstances: &Circumstances,
    source: &str,
    cover: i32,
) -> D20Test {
    let mut test = D20Test::by(creature);
    add_bonuses(&mut test, creature, ability);
    if cover > 0 && ability == Ability::Dexterity {
        test.add("Cover", cover);
    }
    aura(&mut test, creature, circumstances);
    lean(&mut test, creature, ability, circumstances, source);
    test
}

/// Adds what the sheet says: a stat block's number, or the ability and proficiency.
fn add_bonuses(test: &mut D20Test, creature: &Creature, ability: Ability) {
    if let Some(bonus) = creature.npc_save(ability) {
        test.add("Bonus", bonus);
        return;
    }
    test.add(ability.label(), creature.modifier(ability));
    if creature.saves_with(ability) {
        test.add("Prof", creature.proficiency_bonus());
    }
}

/// What a saving throw adds to the d20, as a sheet shows it.
#[must_use]
pub fn save_bonus(creature: &Creature, ability: Ability) -> i32 {
    let mut test = D20Test::by(creature);
    add_bonuses(&mut test, creature, ability);
    test.modifier()
}

/// Adds the best paladin's aura: the creature's own, or one that reaches it (SRD 5.1, "Aura of Protection").
pub(crate) fn aura(test: &mut D20Test, creature: &Creature, circumstances: &Circumstances) {
    let own = (creature.has_feature("Aura of Protection") && !creature.has_condition("unconscious"))
        .then(|| creature.modifier(Ability::Charisma).max(1));
    if let Some(bonus) = own.max(circumstances.context.aura_of_protection.map(|b| b.max(1))) {
        test.add("Aura of Protection", bonus);
    }
}

fn lean(test: &mut D20Test, creature: &Creature, ability: Ability, circumstances: &Circumstances, source: &str) {
    let conditions = creature.condition_rules();
    for (rule, _) in &conditions {
        let bodily = matches!(ability, Ability::Strength | Ability::Dexterity);
        if bodily && rule.fails_strength_and_dexterity_saves {
            test.settle(Automatic::Failure, format!("automatic failure: {}", rule.name));
        }
        if ability == Ability::Dexterity {
            test.lean(rule.dexterity_saves, || rule.name.into());
        }
    }
    exhaustion(test, creature);
    super::check::lean_of_armor(test, creature, ability);
    effects(test, creature, ability);
    let senses = ["blinded", "deafened"].iter().all(|c| !conditions.iter().any(|(rule, _)| rule.name == *c));
    if ability == Ability::Dexterity
        && creature.has_feature("Danger Sense")
        && senses
        && conditions.iter().all(|(rule, _)| !rule.incapacitated)
    {
        test.advantage_for("Danger Sense");
    }
    by_race(test, creature, source);
    test.lean(circumstances.advantage, || "as requested".into());
}

/// Three levels of exhaustion give saves disadvantage.
pub(crate) fn exhaustion(test: &mut D20Test, creature: &Creature) {
    if creature.exhaustion() >= 3 {
        test.disadvantage("exhausted");
    }
}

fn effects(test: &mut D20Test, creature: &Creature, ability: Ability) {
    let held = || creature.condition_rules().iter().any(|(rule, _)| rule.incapacitated || rule.speed_zero);
    for rule in creature.effect_rules() {
        if ability == Ability::Strength && (rule.name != "Rage" || harm::rage_works(creature)) {
            test.lean(rule.strength, || rule.name.into());
        }
        if ability == Ability::Dexterity && rule.dexterity_saves != Advantage::None && (rule.name != "Dodge" || !held())
        {
            test.lean(rule.dexterity_saves, || rule.name.into());
        }
        save_die(test, creature, rule);
    }
}

/// Adds the dice of Bless, Bane and Resistance.
pub(crate) fn save_die(test: &mut D20Test, creature: &Creature, rule: &'static crate::srd::EffectRule) {
    if rule.save_die == 0 {
        return;
    }
    test.bonus_dice.push(BonusDie { label: rule.name, faces: rule.save_die });
    if rule.once {
        let name = rule.name.to_owned();
        test.spent.push(StateChange::RemoveEffect { creature: creature.key().to_owned(), name });
    }
}

/// Advantage of races that resist the source.
fn by_race(test: &mut D20Test, creature: &Creature, source: &str) {
    for (word, race, feature) in [
        ("poison", "dwarf", "Dwarven Resilience"),
        ("charm", "elf", "Fey Ancestry"),
        ("fright", "halfling", "Brave"),
        ("fear", "halfling", "Brave"),
    ] {
        if holds(source, word) && creature.has_trait(race, feature) {
            test.advantage_for(feature);
            return;
        }
    }
}
