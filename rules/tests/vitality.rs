//! Damage, healing, death, falls and rests.

mod support;

use rules::{
    dice::Given,
    resolve::{
        Circumstances, DamageArgs, DamagePart, HealingArgs, Outcome, RestArgs, RestType, RuleError, StateChange, Word,
        apply, apply_damage, apply_healing, by_word, resolve_death_save, resolve_fall, take_rest,
    },
    sheet::{Concentration, Creature, DeathSaves, HitDice, Life, Resource, Worn},
    srd::Advantage,
};
use support::*;

fn blow(parts: &[(i32, &str)]) -> DamageArgs {
    let parts = parts.iter().map(|(amount, kind)| DamagePart { amount: *amount, damage_type: (*kind).into() });
    DamageArgs { parts: parts.collect(), ..DamageArgs::default() }
}

fn damage(target: &Creature, parts: &[(i32, &str)]) -> Outcome {
    rolled(&[], |_| apply_damage(target, &blow(parts)))
}

fn tough() -> Creature {
    Creature {
        resistances: vec![
            "fire".into(),
            "Fire".into(),
            "bludgeoning, piercing and slashing from nonmagical attacks".into(),
        ],
        vulnerabilities: vec!["cold".into(), "fire".into()],
        immunities: vec!["poison".into()],
        ..foe(10, 100)
    }
}

#[test]
fn the_order_of_reductions() {
    for (amount, kind, expected) in
        [(15, "fire", 14), (15, "cold", 30), (15, "poison", 0), (15, "acid", 15), (15, "SLASHING", 7), (-5, "acid", 0)]
    {
        assert_eq!(taken(&damage(&tough(), &[(amount, kind)])), expected, "{kind}");
    }
    // Flat reduction comes first, and applies only once.
    let args = DamageArgs { flat_reduction: 5, ..blow(&[(15, "slashing"), (4, "acid")]) };
    assert_eq!(taken(&apply_damage(&tough(), &args).unwrap()), 9);
    let magical = DamageArgs { magical: true, ..blow(&[(15, "slashing")]) };
    assert_eq!(taken(&apply_damage(&tough(), &magical).unwrap()), 15);
    // The damage is halved in total, not piece by piece.
    assert_eq!(taken(&damage(&tough(), &[(5, "slashing"), (5, "slashing")])), 5);
    let stone = with_conditions(foe(10, 100), &["petrified"]);
    assert_eq!((taken(&damage(&stone, &[(15, "psychic")])), taken(&damage(&stone, &[(15, "poison")]))), (7, 0));
    let raging = with_effects(hero("Barbarian", 1, [10; 6]), &["Rage"]);
    assert_eq!((taken(&damage(&raging, &[(15, "slashing")])), taken(&damage(&raging, &[(15, "fire")]))), (7, 15));
    let clad = Creature { armor: Some(Worn { name: "plate".into(), ..Worn::default() }), ..raging };
    assert_eq!(taken(&damage(&clad, &[(15, "slashing")])), 15);
    let wet = DamageArgs { underwater: true, ..blow(&[(15, "fire")]) };
    assert_eq!(taken(&apply_damage(&foe(10, 100), &wet).unwrap()), 7);
}

#[test]
fn temporary_hit_points_go_first() {
    let target = Creature { temp_hp: 5, ..foe(10, 20) };
    let o = damage(&target, &[(8, "acid")]);
    let now = after(&target, &o);
    assert_eq!((now.hp, now.temp_hp, taken(&o)), (17, 0, 8));
    assert!(matches!(&o.effects[0], StateChange::Damage { absorbed_by_temp: 5, hp: 17, temp_hp: 0, total: 8, .. }));
}

#[test]
fn at_zero() {
    let c = hero("Fighter", 1, [10; 6]);
    let down = after(&c, &damage(&c, &[(40, "acid")]));
    assert_eq!((down.hp, down.life()), (0, Life::Dying));
    assert!(down.has_condition("unconscious") && down.has_condition("prone"));
    assert_eq!(after(&c, &damage(&c, &[(79, "acid")])).life(), Life::Dying);
    assert_eq!(after(&c, &damage(&c, &[(80, "acid")])).life(), Life::Dead, "the rest is the maximum");
    let failed = after(&down, &damage(&down, &[(1, "acid")]));
    assert_eq!(failed.death_saves, DeathSaves { successes: 0, failures: 1 });
    let critical = DamageArgs { critical: true, ..blow(&[(1, "acid")]) };
    let worse = after(&failed, &apply_damage(&failed, &critical).unwrap());
    assert_eq!(worse.life(), Life::Dead);
    assert_eq!(after(&down, &damage(&down, &[(40, "acid")])).life(), Life::Dead);
    let stable = Creature { death_saves: DeathSaves { successes: 3, failures: 0 }, ..down };
    assert_eq!(stable.life(), Life::Stable);
    assert_eq!(after(&stable, &damage(&stable, &[(1, "acid")])).life(), Life::Dying);
    assert_eq!(after(&foe(10, 5), &damage(&foe(10, 5), &[(5, "acid")])).life(), Life::Dead);
    let gentle = DamageArgs { knock_out: true, ..blow(&[(5, "acid")]) };
    assert_eq!(after(&foe(10, 5), &apply_damage(&foe(10, 5), &gentle).unwrap()).life(), Life::Stable);
    assert!(damage(&worse, &[(1, "acid")]).effects.iter().all(|c| matches!(c, StateChange::Damage { .. })));
}

#[test]
fn relentless_endurance_once() {
    let orc = Creature { race: "Half-Orc".into(), ..hero("Barbarian", 1, [10; 6]) };
    let stood = after(&orc, &damage(&orc, &[(50, "acid")]));
    assert_eq!((stood.hp, stood.life()), (1, Life::Alive));
    assert_eq!(after(&stood, &damage(&stood, &[(5, "acid")])).life(), Life::Dying);
    assert_eq!(after(&orc, &damage(&orc, &[(80, "acid")])).life(), Life::Dead, "not when killed outright");
    let pool = Resource { name: "Relentless Endurance".into(), max: 1, remaining: 1 };
    let pooled = Creature { resources: vec![pool], ..orc };
    assert_eq!(after(&pooled, &damage(&pooled, &[(50, "acid")])).resources[0].remaining, 0);
}

#[test]
fn damage_asks_for_concentration_or_ends_it() {
    let c = Creature { concentration: Some(Concentration { spell: "Bless".into() }), ..hero("Cleric", 1, [10; 6]) };
    let o = damage(&c, &[(12, "acid"), (12, "fire")]);
    assert!(o.effects.iter().any(|e| matches!(e, StateChange::ConcentrationCheck { dc: 12, damage: 24, .. })));
    let o = damage(&c, &[(40, "acid")]);
    assert!(after(&c, &o).concentration.is_none());
    assert!(!o.effects.iter().any(|e| matches!(e, StateChange::ConcentrationCheck { .. })));
    assert_eq!(damage(&c, &[(0, "acid")]).effects.len(), 1);
}

fn healing(target: &Creature, amount: i32) -> Outcome {
    rolled(&[], |d| apply_healing(target, &HealingArgs { amount: Some(amount), formula: None }, d))
}

#[test]
fn healing_wakes_and_is_capped() {
    let down = Creature {
        hp: 0,
        death_saves: DeathSaves { successes: 1, failures: 2 },
        ..with_conditions(hero("Fighter", 1, [10; 6]), &["unconscious", "prone"])
    };
    let up = after(&down, &healing(&down, 3));
    assert_eq!((up.hp, up.death_saves, up.life()), (3, DeathSaves::default(), Life::Alive));
    assert!(!up.has_condition("unconscious") && up.has_condition("prone"));
    assert_eq!(after(&up, &healing(&up, 999)).hp, 40);
    assert_eq!(after(&up, &healing(&up, -5)).hp, 3);
    let drained = with_conditions(up, &["exhaustion 4"]);
    assert_eq!(after(&drained, &healing(&drained, 999)).hp, 20);
    let formula = HealingArgs { amount: None, formula: Some("2d4+2".into()) };
    assert_eq!(rolled(&[3, 4], |d| apply_healing(&drained, &formula, d)).total, 9);
    for bad in [HealingArgs::default(), HealingArgs { amount: None, formula: Some("much".into()) }] {
        assert!(matches!(apply_healing(&drained, &bad, &mut Given::new(&[])), Err(RuleError::Argument { .. })));
    }
    let dead = Creature { hp: 0, death_saves: DeathSaves { successes: 0, failures: 3 }, ..drained };
    assert!(healing(&dead, 5).impossible);
}

#[test]
fn death_saves() {
    let down = Creature { hp: 0, ..hero("Fighter", 1, [10; 6]) };
    let save = |c: &Creature, dice: &[u32]| rolled(dice, |d| resolve_death_save(c, &plain(), d));
    let saves = |c: &Creature, dice: &[u32]| after(c, &save(c, dice)).death_saves;
    assert_eq!(saves(&down, &[10]), DeathSaves { successes: 1, failures: 0 });
    assert_eq!(saves(&down, &[9]), DeathSaves { successes: 0, failures: 1 });
    assert_eq!(saves(&down, &[1]), DeathSaves { successes: 0, failures: 2 });
    let o = save(&down, &[20]);
    assert_eq!((after(&down, &o).hp, o.success, o.outcome.as_str()), (1, true, "regains 1 hit point"));
    let edge = Creature { death_saves: DeathSaves { successes: 2, failures: 2 }, ..down.clone() };
    assert_eq!(after(&edge, &save(&edge, &[15])).life(), Life::Stable);
    let o = save(&edge, &[5]);
    assert_eq!((after(&edge, &o).life(), o.outcome.as_str()), (Life::Dead, "dies"));
    let blessed = with_effects(down.clone(), &["Bless"]);
    assert!(save(&blessed, &[7, 3]).success);
    assert_eq!(save(&with_conditions(down.clone(), &["exhaustion 3"]), &[12, 4]).advantage, Advantage::Disadvantage);
    for not_dying in [hero("Fighter", 1, [10; 6]), after(&edge, &save(&edge, &[15])), after(&edge, &save(&edge, &[5]))]
    {
        assert_eq!(resolve_death_save(&not_dying, &plain(), &mut Given::new(&[10])), Err(RuleError::NotDying));
    }
}

#[test]
fn who_lies_at_zero_is_helpless() {
    let down = Creature { hp: 0, ..hero("Fighter", 1, [10; 6]) };
    let goblin = with_attack(foe(15, 7), "Scimitar", 4, "1d6+2", "slashing");
    let o = attack(&goblin, &down, &with("Scimitar"), &plain(), &[15, 2, 1, 1]);
    assert!(o.damage.as_ref().unwrap().is_crit);
    assert_eq!(after(&down, &o).death_saves.failures, 2);
    assert!(attack(&armed(down, &["Dagger"]), &goblin, &with("Dagger"), &plain(), &[]).impossible);
}

#[test]
fn falls() {
    let c = hero("Fighter", 1, [10; 6]);
    let fall = |feet, dice: &[u32]| rolled(dice, |d| resolve_fall(&c, feet, &Circumstances::default(), d));
    let o = fall(35, &[1, 2, 3]);
    assert_eq!((taken(&o), after(&c, &o).hp), (6, 34));
    assert!(after(&c, &o).has_condition("prone"));
    assert_eq!(row(&fall(100_000, &[1; 20]), "Fall").dice, "20d6");
    assert!(fall(9, &[]).no_check && fall(-10, &[]).impossible);
}

/// CON 14 (+2).
fn tired() -> Creature {
    Creature {
        hp: 10,
        temp_hp: 4,
        hit_dice: Some(HitDice { die: 10, max: 5, remaining: 3 }),
        resources: vec![
            Resource { name: "Second Wind".into(), max: 1, remaining: 0 },
            Resource { name: "Rage".into(), max: 3, remaining: 0 },
            Resource { name: "Ki Points".into(), max: 5, remaining: 1 },
        ],
        ..with_spells(hero("Wizard", 5, [10, 10, 14, 10, 10, 10]), &[], &[(1, 4), (3, 2)])
    }
}

fn rest(c: &Creature, args: &RestArgs, dice: &[u32]) -> Outcome {
    rolled(dice, |d| take_rest(c, args, d))
}

#[test]
fn short_rests() {
    let c = tired();
    let with_dice = |hit_dice| RestArgs { hit_dice: Some(hit_dice), ..RestArgs::default() };
    let o = rest(&c, &with_dice(2), &[3, 7]);
    let now = after(&c, &o);
    assert_eq!((now.hp, now.hit_dice.unwrap().remaining, o.total), (24, 1, 14));
    assert_eq!(now.resources.iter().map(|r| r.remaining).collect::<Vec<_>>(), [1, 0, 5]);
    assert!(rest(&c, &with_dice(4), &[]).impossible);
    let frail = Creature { abilities: rules::sheet::Abilities { constitution: 1, ..c.abilities }, ..c.clone() };
    assert_eq!(after(&frail, &rest(&frail, &with_dice(2), &[2, 3])).hp, 10, "no die gives less than 0");
    let mut warlock = hero("Warlock", 5, [10; 6]);
    warlock.spell_slots.insert("3".into(), rules::sheet::SpellSlot { max: 2, remaining: 0 });
    assert_eq!(after(&warlock, &rest(&warlock, &RestArgs::default(), &[])).slots_left(3), 2);
    for (level, restored) in [(4, 0), (5, 3)] {
        let mut bard = hero("Bard", level, [10; 6]);
        bard.resources = vec![Resource { name: "Bardic Inspiration".into(), max: 3, remaining: 0 }];
        assert_eq!(after(&bard, &rest(&bard, &RestArgs::default(), &[])).resources[0].remaining, restored);
    }
}

#[test]
fn arcane_recovery() {
    let mut c = with_features(tired(), &["Arcane Recovery"]);
    c.spell_slots.values_mut().for_each(|s| s.remaining = 0);
    let of = |levels: &[i32]| RestArgs { recover_slots: levels.to_vec(), ..RestArgs::default() };
    let now = after(&c, &rest(&c, &of(&[1, 1, 1]), &[]));
    assert_eq!(now.slots_left(1), 3);
    assert!(rest(&now, &of(&[1]), &[]).impossible, "once a day");
    assert!(rest(&c, &of(&[3, 1]), &[]).impossible, "half the level, rounded up");
    assert!(rest(&tired(), &of(&[1]), &[]).impossible);
    let long = RestArgs { rest: RestType::Long, ..RestArgs::default() };
    let rested = after(&now, &rest(&now, &long, &[]));
    assert!(rested.turn_flags.is_empty());
}

#[test]
fn long_rests() {
    let mut c = with_conditions(tired(), &["exhaustion 2"]);
    c.spell_slots.get_mut("1").unwrap().remaining = 0;
    c = with_effects(c, &["Bless"]);
    c.effects[0].rounds_remaining = Some(10);
    let long = RestArgs { rest: RestType::Long, ..RestArgs::default() };
    let now = after(&c, &rest(&c, &long, &[]));
    assert_eq!((now.hp, now.temp_hp, now.hit_dice.unwrap().remaining, now.slots_left(1)), (40, 0, 5, 4));
    assert_eq!((now.exhaustion(), now.effects.len()), (1, 0));
    assert!(now.resources.iter().all(|r| r.remaining == r.max));
    assert!(!after(&now, &rest(&now, &long, &[])).has_condition("exhaustion"));
    let hungry = RestArgs { food: false, ..long.clone() };
    assert_eq!(after(&c, &rest(&c, &hungry, &[])).exhaustion(), 2);
    let one = Creature { hit_dice: Some(HitDice { die: 8, max: 1, remaining: 0 }), ..tired() };
    assert_eq!(after(&one, &rest(&one, &long, &[])).hit_dice.unwrap().remaining, 1, "at least one");
    let drained = with_conditions(tired(), &["exhaustion 4"]);
    assert_eq!(after(&drained, &rest(&drained, &long, &[])).hp, 40);
    assert!(rest(&Creature { hp: 0, ..tired() }, &long, &[]).impossible);
}

#[test]
fn rage_ends_with_consciousness() {
    let raging = with_effects(hero("Barbarian", 1, [10; 6]), &["Rage"]);
    assert!(after(&raging, &damage(&raging, &[(40, "fire")])).effects.is_empty());
    assert!(!after(&raging, &damage(&raging, &[(39, "fire")])).effects.is_empty());
}

#[test]
fn damage_in_words() {
    let o = damage(&foe(10, 20), &[(8, "fire"), (3, "")]);
    let types: Vec<_> = o.damage.as_ref().unwrap().breakdown.iter().map(|r| r.damage_type.as_deref()).collect();
    assert_eq!(types, [Some("fire"), None]);
    assert_eq!(o.notes, "Foe takes 11 damage. Foe has 9 of 20 hit points.");
    let hero = hero("Fighter", 1, [10; 6]);
    assert!(damage(&hero, &[(40, "acid")]).notes.ends_with("Hero is at 0 hit points."));
    assert!(damage(&foe(10, 20), &[(20, "acid")]).notes.ends_with("Foe is dead."));
    assert!(damage(&hero, &[]).raw.contains("\nDAMAGE: N/A\n"));
}

#[test]
fn who_resists_everything() {
    for all in ["all", "All damage"] {
        let ghost = Creature { resistances: vec![all.into()], ..foe(10, 100) };
        for kind in ["fire", "slashing", "force"] {
            assert_eq!(taken(&damage(&ghost, &[(15, kind)])), 7, "{all} {kind}");
        }
    }
}

#[test]
fn halves_are_rounded_together() {
    let target = with_features(hero("Rogue", 5, [10; 6]), &["Uncanny Dodge"]);
    let react = when(|c| c.reactions = vec!["Uncanny Dodge".into()]);
    let mut striker = armed(hero("Fighter", 1, [10; 6]), &["Longsword"]);
    for (name, formula) in [("Chill", "1d6 cold"), ("Burn", "1d6 fire"), ("Shock", "1d6 lightning")] {
        striker = with_features(striker, &[name]);
        striker.features.last_mut().unwrap().scaling_formula = Some(formula.into());
    }
    let args = using("Longsword", &["Chill", "Burn", "Shock"]);
    for (dice, expected) in
        [([15, 5, 5, 5, 5], 10), ([15, 5, 5, 5, 2], 8), ([15, 5, 4, 3, 2], 7), ([15, 1, 1, 1, 1], 2)]
    {
        assert_eq!(taken(&attack(&striker, &target, &args, &react, &dice)), expected, "{dice:?}");
    }
}

#[test]
fn healing_in_words_and_whom_it_does_not_wake() {
    let hurt = Creature { hp: 10, ..hero("Fighter", 1, [10; 6]) };
    let formula = HealingArgs { amount: None, formula: Some("2d4+2".into()) };
    let o = rolled(&[3, 4], |d| apply_healing(&hurt, &formula, d));
    assert_eq!(o.notes, "Hero regains 9 hit points and has 19 of 40.");
    assert!(has_reason(&o, "Healing: 2d4 [3, 4] +2"), "{:?}", o.reasons);
    // Who sleeps with hit points sleeps on, and nothing wakes nobody.
    let asleep = with_conditions(hurt.clone(), &["unconscious"]);
    assert!(after(&asleep, &healing(&asleep, 5)).has_condition("unconscious"));
    let down = Creature { hp: 0, death_saves: DeathSaves { successes: 0, failures: 2 }, ..asleep };
    assert_eq!(after(&down, &healing(&down, 0)), down);
}

#[test]
fn death_saves_in_words() {
    let tally = |successes, failures| Creature {
        hp: 0,
        death_saves: DeathSaves { successes, failures },
        ..hero("Fighter", 1, [10; 6])
    };
    for (creature, die, outcome, notes) in [
        (tally(0, 0), 10, "success", "Success: 1 of 3 successes, 0 of 3 failures."),
        (tally(1, 0), 9, "failure", "Failure: 1 of 3 successes, 1 of 3 failures."),
        (tally(0, 0), 1, "failure", "Natural 1, two failures: 0 of 3 successes, 2 of 3 failures."),
        (tally(2, 1), 11, "stable", "Hero is stable: 3 of 3 successes, 1 of 3 failures."),
        (tally(0, 2), 1, "dies", "Hero dies: 0 of 3 successes, 3 of 3 failures."),
        (tally(0, 0), 20, "regains 1 hit point", "Natural 20: Hero regains 1 hit point."),
    ] {
        let o = rolled(&[die], |d| resolve_death_save(&creature, &plain(), d));
        assert_eq!((o.outcome.as_str(), o.notes.as_str()), (outcome, notes));
    }
}

#[test]
fn falls_that_do_not_hurt_and_falls_that_kill() {
    let c = hero("Fighter", 1, [10; 6]);
    let fall = |c: &Creature, feet, dice: &[u32]| rolled(dice, |d| resolve_fall(c, feet, &plain(), d));
    assert!(fall(&c, 0, &[]).no_check && !fall(&c, 10, &[1]).success);
    let soft = Creature { immunities: vec!["bludgeoning".into()], ..c.clone() };
    let o = fall(&soft, 10, &[6]);
    assert!(o.success && !after(&soft, &o).has_condition("prone"));
    let o = fall(&foe(10, 3), 10, &[6]);
    assert!(after(&foe(10, 3), &o).life() == Life::Dead && !after(&foe(10, 3), &o).has_condition("prone"));
}

#[test]
fn short_rests_of_others() {
    let with_dice = |hit_dice| RestArgs { hit_dice, ..RestArgs::default() };
    // All hit dice can be spent, and none has to be.
    let o = rest(&tired(), &with_dice(Some(3)), &[1, 1, 1]);
    assert_eq!((after(&tired(), &o).hit_dice.unwrap().remaining, o.total), (0, 9));
    let down = Creature { hp: 0, death_saves: DeathSaves { successes: 3, failures: 0 }, ..tired() };
    assert!(!rest(&down, &with_dice(None), &[]).impossible);
    assert!(rest(&down, &with_dice(Some(1)), &[]).impossible);
    // Only the slots of a warlock come back, and only if they are nobody else's as well.
    for (profession, left) in [
        ("Warlock", 2),
        ("Warlock 3 / Fighter 2", 2),
        ("Fighter", 0),
        ("Warlock 3 / Wizard 2", 0),
        ("Warlock 3, Paladin 2", 0),
    ] {
        let mut c = hero(profession, 5, [10; 6]);
        c.spell_slots.insert("2".into(), rules::sheet::SpellSlot { max: 2, remaining: 0 });
        assert_eq!(after(&c, &rest(&c, &with_dice(None), &[])).slots_left(2), left, "{profession}");
    }
}

#[test]
fn recovery_as_a_resource() {
    let mut c = with_features(tired(), &["Arcane Recovery"]);
    c.spell_slots.values_mut().for_each(|s| s.remaining = 0);
    c.resources = vec![Resource { name: "Arcane Recovery".into(), max: 1, remaining: 1 }];
    let of = |levels: &[i32]| RestArgs { recover_slots: levels.to_vec(), ..RestArgs::default() };
    let o = rest(&c, &of(&[1, 1]), &[]);
    let now = after(&c, &o);
    assert_eq!((now.slots_left(1), now.slots_left(3), now.resources[0].remaining), (2, 0, 0));
    let slots = o.effects.iter().filter(|e| matches!(e, StateChange::SetSlot { .. })).count();
    assert_eq!(slots, 1, "of the levels that were asked for");
    assert!(rest(&now, &of(&[1]), &[]).impossible);
}

#[test]
fn long_rests_of_the_exhausted() {
    let long = RestArgs { rest: RestType::Long, ..RestArgs::default() };
    let hungry = RestArgs { food: false, ..long.clone() };
    for (level, args, hp) in [(5, &long, 20), (4, &long, 40), (4, &hungry, 20), (3, &hungry, 40)] {
        let c = with_conditions(tired(), &[&format!("exhaustion {level}")]);
        assert_eq!(after(&c, &rest(&c, args, &[])).hp, hp, "{level}");
    }
    let begins =
        |c: &Creature| rest(c, &long, &[]).effects.iter().any(|e| matches!(e, StateChange::AddCondition { .. }));
    assert!(!begins(&tired()) && begins(&with_conditions(tired(), &["exhaustion 2"])));
    let saved = Creature { death_saves: DeathSaves { successes: 1, failures: 2 }, ..tired() };
    assert_eq!(after(&saved, &rest(&saved, &long, &[])).death_saves, DeathSaves::default());
}

#[test]
fn a_game_masters_word_follows_the_rules_without_dice() {
    let after = |before: &Creature, word: Word<'_>| {
        let outcome = by_word(before, word).expect("nothing is rolled");
        let mut now = before.clone();
        apply(&mut now, &outcome.effects);
        (now, outcome.notes, outcome.impossible)
    };
    let hurt = Creature { id: "a".to_owned(), name: "Alice".to_owned(), hp: 9, max_hp: 10, ..Creature::default() };
    let (now, ..) = after(&hurt, Word::TempHp(4));
    let (now, ..) = after(&now, Word::TempHp(2));
    assert_eq!(now.temp_hp, 4, "they do not add up");
    let (now, ..) = after(&now, Word::Damage(6));
    assert_eq!((now.hp, now.temp_hp), (7, 0));
    assert_eq!(after(&now, Word::Heal(99)).0.hp, 10);
    // Exhaustion has levels; other conditions are there or not.
    let mut now = now;
    for level in 1..=2 {
        let (next, notes, _) = after(&now, Word::AddCondition("Exhaustion"));
        assert_eq!((next.exhaustion(), notes), (level, format!("Alice has exhaustion, level {level}.")));
        now = next;
    }
    let (now, notes, _) = after(&now, Word::RemoveCondition("exhaustion"));
    assert_eq!((now.exhaustion(), notes.as_str()), (1, "Alice has exhaustion, level 1."));
    let (now, notes, _) = after(&now, Word::RemoveCondition("exhaustion"));
    assert_eq!((now.exhaustion(), notes.as_str()), (0, "Alice has no exhaustion any more."));
    let (now, notes, _) = after(&now, Word::AddCondition("PRONE"));
    assert_eq!((now.conditions.len(), notes.as_str()), (1, "Alice is prone."));
    let (now, notes, _) = after(&now, Word::RemoveCondition("prone"));
    assert_eq!((now.conditions.len(), notes.as_str()), (0, "Alice is no longer prone."));
    assert!(after(&now, Word::RemoveCondition("prone")).2, "she is not prone");
    for wrong in [Word::Damage(-1), Word::Heal(1_000_001), Word::TempHp(i32::MIN), Word::AddCondition("sleepy")] {
        assert!(by_word(&now, wrong).is_err(), "{wrong:?}");
    }
}
