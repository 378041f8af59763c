//! Spell attacks, with one roll for each beam or ray, and darts, which always hit.

use super::{afflict::afflict, casting::Casting};
use crate::{
    dice::Dice,
    resolve::{
        AttackRoll, Automatic, Circumstances, Damage, DamageArgs, Outcome, apply,
        attack::{Shape, lean},
        d20::D20Test,
        error::Stop,
        harm::{halve, standing},
        hit::{Verdict, judge, land, note, uncanny_dodge},
        rows,
        summary::signed,
    },
    sheet::{Creature, Range, Vitals},
    srd::SpellKind,
};

/// Spell attacks: rolls all d20s, all bonus dice, then the damage of those that hit.
pub(crate) fn volley(
    actor: &Creature,
    target: &Creature,
    casting: &Casting,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, Stop> {
    let mut tests = prepare(actor, target, casting, circumstances);
    let mut shown = Vec::new();
    for test in &mut tests {
        test.roll(dice)?;
        shown.append(&mut test.shown);
    }
    for test in &mut tests {
        test.roll_bonus(dice)?;
        shown.append(&mut test.shown);
    }
    let ac = target.armor_class_now();
    let cover = if casting.ignores_cover { 0 } else { circumstances.cover.bonus() };
    let reach = ac.total.saturating_add(cover);
    let shape = shape(casting);
    let helpless = shape.is_near(circumstances) && crate::resolve::attack::helpless(target);
    let hits: Vec<Verdict> = tests.iter().map(|test| judge(test, reach, 20, helpless)).collect();
    let rolls: Vec<AttackRoll> = tests
        .iter()
        .zip(&hits)
        .map(|(test, hit)| AttackRoll {
            die_result: test.die(),
            total_modifier: signed(test.modifier()),
            total: test.total(),
            success: *hit != Verdict::Miss,
            outcome: hit.word().to_owned(),
            damage: None,
        })
        .collect();
    let Some(first) = tests.into_iter().next() else {
        return Err(Stop::Impossible(format!("{} has nothing to attack with", casting.name)));
    };
    let best = hits.iter().copied().max_by_key(|h| *h as u8).unwrap_or(Verdict::Miss);
    let notes = note(&first, best, target, reach);
    let mut outcome = Outcome::of(format!("{} Spell Attack", casting.name), first);
    outcome.with(target);
    outcome.dice = shown;
    outcome.dc_or_ac = reach.to_string();
    outcome.reasons.extend(ac.reasons);
    if cover > 0 {
        outcome.reasons.push(format!("AC +{cover}: cover").into());
    }
    outcome.success = best != Verdict::Miss;
    outcome.outcome = best.word().to_owned();
    outcome.notes = notes;
    let several = rolls.len() > 1;
    if several {
        let count = rolls.iter().filter(|r| r.success).count();
        outcome.notes = format!("{count} of {} hit {} (AC {reach}).", rolls.len(), target.name);
    }
    let rolls = hurt(&mut outcome, target, casting, circumstances, rolls, dice)?;
    if several {
        outcome.attacks = rolls;
    }
    if outcome.success {
        afflict(actor, target, casting, &mut outcome);
    }
    Ok(outcome)
}

fn shape(casting: &Casting) -> Shape {
    let ranged = casting.kind == SpellKind::Ranged;
    let range = (ranged && casting.range_ft > 0).then_some(Range { normal: casting.range_ft, long: None });
    Shape { ranged, weapon: false, ability: None, range }
}

/// One roll for each shot. What the first roll uses up (Help, Guiding Bolt) does not apply to the others.
fn prepare(actor: &Creature, target: &Creature, casting: &Casting, circumstances: &Circumstances) -> Vec<D20Test> {
    let one = |actor: &Creature, target: &Creature| {
        let mut test = D20Test::by(actor);
        let ability = actor.casting_ability();
        test.add(ability.label(), actor.modifier(ability));
        test.add("Prof", actor.proficiency_bonus());
        lean(&mut test, actor, target, shape(casting), circumstances);
        test
    };
    let first = one(actor, target);
    let mut tests = Vec::with_capacity(casting.shots as usize);
    if casting.shots > 1 {
        let next = if first.spent.is_empty() {
            first.clone()
        } else {
            let (mut later, mut then) = (actor.clone(), target.clone());
            apply(&mut later, &first.spent);
            apply(&mut then, &first.spent);
            one(&later, &then)
        };
        tests.push(first);
        tests.resize(casting.shots as usize, next);
    } else {
        tests.push(first);
    }
    tests
}

/// Deals the damage of each shot that hits, separately and in order.
fn hurt(
    outcome: &mut Outcome,
    target: &Creature,
    casting: &Casting,
    circumstances: &Circumstances,
    mut rolls: Vec<AttackRoll>,
    dice: &mut dyn Dice,
) -> Result<Vec<AttackRoll>, Stop> {
    let mut vitals = target.vitals();
    let mut extra = casting.extra.clone();
    let mut dodges = true;
    let several = rolls.len() > 1;
    for (at, roll) in rolls.iter_mut().enumerate().filter(|(_, r)| r.success) {
        let mut planned = casting.rows.clone();
        if several {
            planned.iter_mut().for_each(|r| r.label = format!("{} {}", r.label, at + 1).into());
        }
        planned.append(&mut extra);
        let crit = roll.outcome == Verdict::Critical.word();
        let mut damage = rows::roll(&planned, crit, dice, &mut outcome.dice)?;
        let mut blow = blow(&damage, circumstances, casting.kind == SpellKind::Melee);
        if dodges && uncanny_dodge(target, circumstances, &mut outcome.reasons) {
            halve(&mut blow.parts);
        }
        dodges = false;
        land(target, &mut vitals, &mut damage, blow, &mut outcome.reasons, &mut outcome.effects);
        merge(&mut outcome.damage, &damage);
        roll.damage = Some(damage);
    }
    tell(outcome, target, &vitals);
    Ok(rolls)
}

/// Adds the total result to the notes.
fn tell(outcome: &mut Outcome, target: &Creature, vitals: &Vitals) {
    let Some(damage) = &outcome.damage else { return };
    outcome.notes.push_str(&format!(" {} damage.", damage.taken.unwrap_or_default()));
    if vitals.hp == 0 {
        outcome.notes.push(' ');
        outcome.notes.push_str(&standing(target, vitals));
    }
}

fn blow(damage: &Damage, circumstances: &Circumstances, melee: bool) -> DamageArgs {
    DamageArgs {
        parts: rows::parts(&damage.breakdown),
        magical: true,
        critical: damage.is_crit,
        knock_out: melee && circumstances.context.knock_out,
        underwater: circumstances.context.underwater,
        ..DamageArgs::default()
    }
}

/// Adds a shot's damage to the total.
fn merge(all: &mut Option<Damage>, damage: &Damage) {
    let all = all.get_or_insert_with(|| Damage { taken: Some(0), ..Damage::default() });
    all.breakdown.extend(damage.breakdown.iter().cloned());
    all.total_damage = all.total_damage.saturating_add(damage.total_damage);
    all.is_crit |= damage.is_crit;
    all.taken = all.taken.zip(damage.taken).map(|(sum, more)| sum.saturating_add(more));
}

/// Darts always hit, but the Shield spell stops them.
pub(crate) fn darts(
    actor: &Creature,
    target: &Creature,
    casting: &Casting,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, Stop> {
    let mut outcome = Outcome::without_roll(casting.name.clone(), &[actor]);
    outcome.with(target);
    outcome.automatic = Some(Automatic::Success);
    outcome.success = true;
    outcome.outcome = Verdict::Hit.word().to_owned();
    if target.has_effect("Shield") && casting.name == "Magic Missile" {
        outcome.success = false;
        outcome.automatic = Some(Automatic::Failure);
        outcome.outcome = "blocked".to_owned();
        outcome.notes = format!("The Shield of {} stops every dart.", target.name);
        return Ok(outcome);
    }
    let dart = || AttackRoll {
        total_modifier: "+0".to_owned(),
        success: true,
        outcome: Verdict::Hit.word().to_owned(),
        ..AttackRoll::default()
    };
    let rolls: Vec<_> = (0..casting.shots.max(1)).map(|_| dart()).collect();
    outcome.notes = match rolls.len() {
        1 => format!("Hits {}.", target.name),
        count => format!("{count} hit {}.", target.name),
    };
    let rolls = hurt(&mut outcome, target, casting, circumstances, rolls, dice)?;
    if rolls.len() > 1 {
        outcome.attacks = rolls;
    }
    afflict(actor, target, casting, &mut outcome);
    Ok(outcome)
}
