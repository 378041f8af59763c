//! Spells that affect several creatures at once: each saves for itself, and the damage is rolled once for all (SRD 5.1,
//! "Damage Rolls").

use super::{Casting, afflict, known_casting, may_cast, pay, reaches, slot};
use crate::{
    dice::Dice,
    resolve::{
        AttackArgs, Circumstances, Cover, Damage, DamageArgs, Outcome, ParticipantRoll, RuleError,
        attack::able,
        d20::D20Test,
        error::{Stop, settle},
        harm::{self, halve},
        rows,
        save::{Left, left},
        summary::signed,
    },
    sheet::Creature,
    srd::SpellKind,
};

/// Casts a spell that makes several targets save, each with its own circumstances. `participants[].success` is about
/// the saving throw; `success` says whether anybody failed it.
///
/// Dice: the d20s of all targets in order, their bonus dice, then the damage once if anybody takes any.
///
/// # Errors
/// If dice run out; [`RuleError::Target`] for the first target that is out of range, behind total cover, or must be
/// seen but is not.
pub fn resolve_area_spell(
    actor: &Creature,
    targets: &[(&Creature, Circumstances)],
    args: &AttackArgs,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    settle(area(actor, targets, args, dice))
}

fn area(actor: &Creature, targets: &[Aimed<'_>], args: &AttackArgs, dice: &mut dyn Dice) -> Result<Outcome, Stop> {
    let name = args.spell_name.as_deref().or(args.weapon.as_deref()).unwrap_or_default();
    let casting = known_casting(actor, name)?;
    if casting.kind != SpellKind::Save || targets.is_empty() {
        return Err(Stop::Impossible(format!("{} does not make anybody here roll a saving throw", casting.name)));
    }
    able(actor, actor, &Circumstances::default())?;
    may_cast(actor)?;
    for (index, (target, circumstances)) in targets.iter().enumerate() {
        check(actor, target, &casting, circumstances).map_err(|message| RuleError::Target { index, message })?;
        // Somebody who charmed the caster may be in the area of a spell that is aimed at others.
        if casting.area_ft.is_none() {
            able(actor, target, circumstances)?;
        }
    }
    let slot = slot::choose(actor, &casting.name, casting.level, args.slot_level)?;
    let casting = casting.with_slot(actor, slot.level);
    let mut outcome = Outcome::without_roll(format!("{} ({} save)", casting.name, casting.save.name()), &[actor]);
    outcome.reasons = slot.reasons;
    let dc = actor.spell_save_dc();
    let mut tests: Vec<_> = targets.iter().map(|(t, c)| super::save::prepare_save(t, &casting, c)).collect();
    for (test, (target, _)) in tests.iter_mut().zip(targets) {
        outcome.with(target);
        test.roll(dice)?;
        outcome.dice_of(target, std::mem::take(&mut test.shown));
    }
    for (test, (target, _)) in tests.iter_mut().zip(targets) {
        test.roll_bonus(dice)?;
        outcome.dice_of(target, std::mem::take(&mut test.shown));
    }
    let reached = saved(&mut outcome, targets, tests, &casting, dc);
    hurt(&mut outcome, &reached, &casting, dice)?;
    for ((target, _), saved, _) in &reached {
        if !saved {
            afflict(actor, target, &casting, &mut outcome);
        }
    }
    let failed = reached.iter().filter(|(_, saved, _)| !saved).count();
    outcome.dc_or_ac = format!("DC {dc}");
    outcome.success = failed > 0;
    outcome.outcome = format!("{failed} of {} targets failed the save", targets.len());
    outcome.notes.insert_str(0, &format!("{failed} of {} fail against DC {dc}.", targets.len()));
    pay(actor, &casting, slot.spends, &mut outcome);
    Ok(outcome.finished())
}

/// A target and its circumstances.
type Aimed<'a> = (&'a Creature, Circumstances);
/// A target, whether it saved, and how much of the damage it takes.
type Reached<'a> = (&'a Aimed<'a>, bool, Left);

/// Why a creature cannot be a target.
fn check(actor: &Creature, target: &Creature, casting: &Casting, circumstances: &Circumstances) -> Result<(), String> {
    if circumstances.cover == Cover::Total {
        return Err(format!("{} has total cover", target.name));
    }
    reaches(actor, target, casting, circumstances)
}

fn saved<'a>(
    outcome: &mut Outcome,
    targets: &'a [Aimed<'a>],
    tests: Vec<D20Test>,
    casting: &Casting,
    dc: i32,
) -> Vec<Reached<'a>> {
    let mut reached = Vec::with_capacity(targets.len());
    for (aimed, mut test) in targets.iter().zip(tests) {
        let target = aimed.0;
        let success = test.reaches(dc);
        outcome.participants.push(ParticipantRoll {
            creature: target.key().to_owned(),
            name: target.name.clone(),
            check_type: format!("{} Saving Throw", casting.save.title()),
            components: test.components(),
            die_result: test.die(),
            total_modifier: signed(test.modifier()),
            total: test.total(),
            success,
            advantage: test.advantage(),
            automatic: test.automatic,
        });
        outcome.effects.append(&mut test.spent);
        outcome.reasons.extend(test.reasons.iter().map(|r| format!("{}: {r}", target.name).into()));
        let left = left(target, casting.save, casting.on_save, success, outcome);
        reached.push((aimed, success, left));
    }
    reached
}

/// Rolls the damage once for all. Each target takes all of it, half, or none.
fn hurt(outcome: &mut Outcome, reached: &[Reached<'_>], casting: &Casting, dice: &mut dyn Dice) -> Result<(), Stop> {
    if casting.rows.is_empty() || reached.iter().all(|(_, _, left)| *left == Left::Nothing) {
        return Ok(());
    }
    let rolled = rows::roll(&casting.rows, false, dice, &mut outcome.dice)?;
    let mut sum = 0_i32;
    for ((target, circumstances), _, left) in reached.iter().filter(|(_, _, left)| *left > Left::Nothing) {
        let mut parts = rows::parts(&rolled.breakdown);
        if *left == Left::Half {
            halve(&mut parts);
        }
        let underwater = circumstances.context.underwater;
        let blow = DamageArgs { parts, magical: true, underwater, ..DamageArgs::default() };
        let taken = harm::settle(target, &mut target.vitals(), &blow, &mut outcome.reasons, &mut outcome.effects);
        sum = sum.saturating_add(taken);
        outcome.notes.push_str(&format!(" {} takes {taken} damage.", target.name));
    }
    outcome.damage = Some(Damage { taken: Some(sum), ..rolled });
    Ok(())
}
