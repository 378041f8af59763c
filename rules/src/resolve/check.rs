//! Ability checks, with or without a skill; passive checks; initiative (SRD 5.1, "Using Ability Scores").

use serde::{Deserialize, Serialize};

use super::{
    Automatic, Circumstances, Outcome, RuleError, StateChange,
    d20::{BonusDie, D20Test},
    error::{Stop, settle},
};
use crate::srd::Advantage;
use crate::{
    dice::Dice,
    sheet::{Creature, Training},
    srd::{Ability, Sense, Skill, skill},
};

/// A check of a skill (tool `resolve_skill_check`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillCheckArgs {
    /// One of the 18 skills.
    pub skill: String,
    /// The DC.
    pub dc: i32,
    /// An ability other than the skill's own.
    pub ability: Option<String>,
}

/// A check of an ability without a skill (tool `resolve_ability_check`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AbilityCheckArgs {
    /// The full or three-letter name.
    pub ability: String,
    /// The DC.
    pub dc: i32,
}

/// What to check: a skill, an ability, or a skill with another ability.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckKind {
    /// One of the 18 skills.
    pub skill: Option<String>,
    /// The full or three-letter name.
    pub ability: Option<String>,
}

/// A check's skill and ability.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    pub(crate) skill: Option<&'static Skill>,
    pub(crate) ability: Ability,
}

impl Checked {
    pub(crate) fn title(self) -> String {
        match self.skill {
            Some(skill) => format!("{} Check", skill.title()),
            None => format!("{} Check", self.ability.title()),
        }
    }
}

/// Looks up the skill and the ability. The error names what is unknown.
pub(crate) fn checked(name: Option<&str>, ability: Option<&str>) -> Result<Checked, Stop> {
    let ability = match ability {
        Some(name) => {
            Some(Ability::named(name).ok_or_else(|| Stop::Impossible(format!("there is no ability \"{name}\"")))?)
        }
        None => None,
    };
    let skill = match name {
        Some(name) => Some(skill(name).ok_or_else(|| Stop::Impossible(format!("there is no skill \"{name}\"")))?),
        None => None,
    };
    match ability.or(skill.map(|s| s.ability)) {
        Some(ability) => Ok(Checked { skill, ability }),
        None => Err(Stop::Impossible("a check needs a skill or an ability".to_owned())),
    }
}

/// Resolves a skill check. A total equal to the DC succeeds; 1 and 20 have no special meaning.
///
/// # Errors
/// If dice run out.
pub fn resolve_skill_check(
    actor: &Creature,
    args: &SkillCheckArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    settle(
        checked(Some(&args.skill), args.ability.as_deref())
            .and_then(|what| against(actor, what, args.dc, circumstances, dice)),
    )
}

/// Resolves an ability check without a skill.
///
/// # Errors
/// If dice run out.
pub fn resolve_ability_check(
    actor: &Creature,
    args: &AbilityCheckArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    settle(checked(None, Some(&args.ability)).and_then(|what| against(actor, what, args.dc, circumstances, dice)))
}

fn against(
    actor: &Creature,
    what: Checked,
    dc: i32,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, Stop> {
    let mut test = prepare(actor, what, circumstances);
    test.roll(dice)?;
    test.roll_bonus(dice)?;
    let success = test.reaches(dc);
    let mut outcome = Outcome::of(what.title(), test);
    outcome.dc_or_ac = dc.to_string();
    outcome.success = success;
    (outcome.outcome, outcome.notes) = words(success, dc);
    Ok(outcome.finished())
}

pub(crate) fn words(success: bool, dc: i32) -> (String, String) {
    if success {
        ("success".to_owned(), format!("Succeeds against DC {dc}."))
    } else {
        ("failure".to_owned(), format!("Fails against DC {dc}."))
    }
}

/// What initiative adds to the d20, as a sheet shows it.
#[must_use]
pub fn initiative_bonus(actor: &Creature) -> i32 {
    let mut test = D20Test::by(actor);
    add_bonuses(&mut test, actor, Checked { skill: None, ability: Ability::Dexterity });
    test.modifier()
}

/// Prepares the roll, with its modifiers and sources of advantage and disadvantage.
pub(crate) fn prepare(actor: &Creature, what: Checked, circumstances: &Circumstances) -> D20Test {
    let mut test = D20Test::by(actor);
    let training = add_bonuses(&mut test, actor, what);
    if matches!(training, Training::Full | Training::Double) && actor.has_feature("Reliable Talent") {
        test.at_least = 10;
    }
    lean(&mut test, actor, what, circumstances);
    test
}

/// Adds the ability and what training adds to it.
fn add_bonuses(test: &mut D20Test, actor: &Creature, what: Checked) -> Training {
    test.add(what.ability.label(), actor.modifier(what.ability));
    let training = actor.training(what.skill.map(|s| s.name), what.ability);
    let bonus = actor.proficiency_bonus();
    match training {
        Training::None => {}
        Training::HalfDown => test.add("Half Prof", bonus / 2),
        Training::HalfUp => test.add("Half Prof", (bonus + 1) / 2),
        Training::Full => test.add("Prof", bonus),
        Training::Double => test.add("Expertise", bonus * 2),
    }
    training
}

/// What a check of a skill adds to the d20, as a sheet shows it.
#[must_use]
pub fn skill_bonus(actor: &Creature, skill: &'static Skill) -> i32 {
    let mut test = D20Test::by(actor);
    add_bonuses(&mut test, actor, Checked { skill: Some(skill), ability: skill.ability });
    test.modifier()
}

fn lean(test: &mut D20Test, actor: &Creature, what: Checked, circumstances: &Circumstances) {
    let context = &circumstances.context;
    for (rule, _) in actor.condition_rules() {
        match rule.loses {
            Some(Sense::Sight) if context.sight_needed => {
                test.settle(Automatic::Failure, format!("automatic failure: {}, and the check needs sight", rule.name));
            }
            Some(Sense::Hearing) if context.hearing_needed => {
                let why = format!("automatic failure: {}, and the check needs hearing", rule.name);
                test.settle(Automatic::Failure, why);
            }
            _ => {}
        }
        if !rule.needs_source_in_sight || context.fear_source_visible {
            test.lean(rule.checks, || rule.name.into());
        }
    }
    if actor.exhaustion() >= 1 {
        test.disadvantage("exhausted");
    }
    lean_of_armor(test, actor, what.ability);
    if let Some(suit) = actor.worn_armor()
        && suit.stealth_disadvantage
        && what.skill.is_some_and(|s| s.name == "stealth")
    {
        test.lean(Advantage::Disadvantage, || format!("{} is loud", suit.name).into());
    }
    for rule in actor.effect_rules() {
        let by_strength = what.ability == Ability::Strength && (rule.name != "Rage" || super::harm::rage_works(actor));
        let strength = if by_strength { rule.strength } else { Advantage::None };
        let leans = rule.checks != Advantage::None || rule.check_die != 0;
        for lean in [rule.checks, strength] {
            test.lean(lean, || rule.name.into());
        }
        if rule.check_die != 0 {
            test.bonus_dice.push(BonusDie { label: rule.name, faces: rule.check_die });
        }
        if leans && rule.once {
            let name = rule.name.to_owned();
            test.spent.push(StateChange::RemoveEffect { creature: actor.key().to_owned(), name });
        }
    }
    test.lean(circumstances.advantage, || "as requested".into());
}

/// Armor without proficiency gives disadvantage on Strength and Dexterity.
pub(crate) fn lean_of_armor(test: &mut D20Test, actor: &Creature, ability: Ability) {
    let bodily = matches!(ability, Ability::Strength | Ability::Dexterity);
    if let Some(worn) = actor.untrained_armor().filter(|_| bodily) {
        test.lean(Advantage::Disadvantage, || format!("not proficient with {worn}").into());
    }
}

/// Rolls initiative, which is a Dexterity check.
///
/// # Errors
/// If dice run out.
pub fn roll_initiative(
    actor: &Creature,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    let what = Checked { skill: None, ability: Ability::Dexterity };
    let mut test = prepare(actor, what, circumstances);
    if actor.has_feature("Feral Instinct") {
        test.advantage_for("Feral Instinct");
    }
    test.roll(dice)?;
    test.roll_bonus(dice)?;
    let mut outcome = Outcome::of("Initiative".to_owned(), test);
    outcome.dc_or_ac = "N/A".to_owned();
    outcome.success = true;
    outcome.outcome = format!("initiative {}", outcome.total);
    outcome.notes = format!("{} has initiative {}.", actor.name, outcome.total);
    Ok(outcome.finished())
}

/// A passive check: 10 plus the modifiers, plus 5 with advantage, minus 5 with disadvantage (SRD 5.1, "Passive
/// Checks").
///
/// # Errors
/// None at present; all resolvers have the same signature.
pub fn passive(actor: &Creature, kind: &CheckKind, circumstances: &Circumstances) -> Result<Outcome, RuleError> {
    settle(checked(kind.skill.as_deref(), kind.ability.as_deref()).map(|what| {
        let mut test = prepare(actor, what, circumstances);
        match test.advantage() {
            Advantage::None => {}
            Advantage::Advantage => test.add("Advantage", 5),
            Advantage::Disadvantage => test.add("Disadvantage", -5),
        }
        test.spent.clear();
        let total = if test.automatic.is_some() { 0 } else { test.modifier().saturating_add(10) };
        let title = what.title();
        let mut outcome = Outcome::of(format!("Passive {}", title.trim_end_matches(" Check")), test);
        outcome.total = total;
        outcome.dc_or_ac = "N/A".to_owned();
        outcome.success = outcome.automatic.is_none();
        outcome.outcome = format!("passive {total}");
        outcome.notes = format!("{} of {} is {total}.", outcome.check_type, actor.name);
        outcome.finished()
    }))
}
