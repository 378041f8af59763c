//! Checks, saves, contests, groups, initiative, concentration.

mod support;

use rules::{
    resolve::{
        AbilityCheckArgs, Automatic, CheckKind, Circumstances, ContestArgs, ContestPurpose, Cover, GroupCheckArgs,
        Outcome, RuleError, SaveDamage, SavingThrowArgs, SkillCheckArgs, concentration_dc, passive,
        resolve_ability_check, resolve_concentration, resolve_contest, resolve_group_check, resolve_saving_throw,
        resolve_skill_check, roll_initiative,
    },
    sheet::{Concentration, Creature, Feature, Worn},
    srd::{Advantage, OnSave},
};
use support::*;

fn skill_in(actor: &Creature, skill: &str, dc: i32, circumstances: &Circumstances, dice: &[u32]) -> Outcome {
    let args = SkillCheckArgs { skill: skill.into(), dc, ability: None };
    rolled(dice, |d| resolve_skill_check(actor, &args, circumstances, d))
}

fn skill(actor: &Creature, skill: &str, dc: i32, dice: &[u32]) -> Outcome {
    skill_in(actor, skill, dc, &plain(), dice)
}

fn ability_check(actor: &Creature, ability: &str, dice: &[u32]) -> Outcome {
    rolled(dice, |d| resolve_ability_check(actor, &AbilityCheckArgs { ability: ability.into(), dc: 10 }, &plain(), d))
}

fn save_in(actor: &Creature, ability: &str, dc: i32, circumstances: &Circumstances, dice: &[u32]) -> Outcome {
    let args = SavingThrowArgs { ability: ability.into(), dc, ..SavingThrowArgs::default() };
    rolled(dice, |d| resolve_saving_throw(actor, &args, circumstances, d))
}

fn save(actor: &Creature, ability: &str, dc: i32, dice: &[u32]) -> Outcome {
    save_in(actor, ability, dc, &plain(), dice)
}

/// DEX 16 (+3), WIS 12 (+1), CHA 8 (-1), level 5 (+3); proficient in stealth and perception.
fn scout() -> Creature {
    let mut c = hero("Rogue", 5, [10, 16, 14, 10, 12, 8]);
    c.skill_proficiencies = vec!["stealth".into(), "Perception".into(), "sleight_of_hand".into()];
    c.saving_throw_proficiencies = vec!["dexterity".into(), "INT".into()];
    c
}

#[test]
fn skills() {
    let o = skill(&scout(), "stealth", 15, &[9]);
    assert_eq!(
        (o.check_type.as_str(), o.components.as_str(), o.total, o.success),
        ("Stealth Check", "DEX +3, Prof +3 = +6", 15, true)
    );
    assert_eq!(o.dc_or_ac, "15");
    assert!(!skill(&scout(), "Stealth", 15, &[8]).success);
    assert_eq!(skill(&scout(), "persuasion", 10, &[10]).components, "CHA -1 = -1");
    assert_eq!(skill(&scout(), "sleight of hand", 10, &[10]).check_type, "Sleight of hand Check");
    assert!(skill(&scout(), "Sleight-of-Hand", 10, &[10]).components.contains("Prof"));
    let o = skill(&scout(), "juggling", 10, &[]);
    assert!(o.impossible && o.notes.contains("juggling"));
    // A natural 1 or 20 has no special meaning.
    assert!(skill(&scout(), "stealth", 5, &[1]).success);
    assert!(!skill(&scout(), "stealth", 30, &[20]).success);
    let other = SkillCheckArgs { skill: "intimidation".into(), dc: 10, ability: Some("strength".into()) };
    assert_eq!(rolled(&[5], |d| resolve_skill_check(&scout(), &other, &plain(), d)).components, "STR +0 = +0");
}

#[test]
fn all_the_skills_have_their_ability() {
    let c = hero("", 1, [12, 14, 16, 18, 20, 22]);
    for s in rules::srd::SKILLS {
        let o = skill(&c, s.name, 10, &[10]);
        assert!(o.components.starts_with(s.ability.label()), "{}", s.name);
    }
}

#[test]
fn training() {
    let mut c = with_features(scout(), &["Expertise=Stealth, Thieves' Tools"]);
    assert_eq!(skill(&c, "stealth", 10, &[10]).components, "DEX +3, Expertise +6 = +9");
    c.skill_proficiencies.clear();
    assert_eq!(skill(&c, "stealth", 10, &[10]).components, "DEX +3 = +3", "doubling needs proficiency");
    let jack = with_features(scout(), &["Jack of All Trades"]);
    assert_eq!(skill(&jack, "arcana", 10, &[10]).components, "INT +0, Half Prof +1 = +1");
    assert_eq!(skill(&jack, "stealth", 10, &[10]).components, "DEX +3, Prof +3 = +6");
    assert_eq!(ability_check(&jack, "str", &[10]).components, "STR +0, Half Prof +1 = +1");
    let athlete = with_features(scout(), &["Remarkable Athlete"]);
    assert_eq!(skill(&athlete, "athletics", 10, &[10]).components, "STR +0, Half Prof +2 = +2");
    assert_eq!(skill(&athlete, "arcana", 10, &[10]).components, "INT +0 = +0");
    let reliable = with_features(scout(), &["Reliable Talent"]);
    let o = skill(&reliable, "stealth", 16, &[3]);
    assert_eq!((o.die_result, o.dice[0].value, o.success), (10, 3, true));
    assert_eq!(skill(&reliable, "arcana", 16, &[3]).die_result, 3);
}

#[test]
fn proficiency_grows_with_level() {
    for (level, bonus) in
        [(1, 2), (4, 2), (5, 3), (8, 3), (9, 4), (12, 4), (13, 5), (16, 5), (17, 6), (20, 6), (0, 2), (21, 6)]
    {
        assert_eq!(hero("", level, [10; 6]).proficiency_bonus(), bonus, "{level}");
    }
    for (score, modifier) in [(1, -5), (3, -4), (8, -1), (9, -1), (10, 0), (11, 0), (12, 1), (20, 5), (30, 10)] {
        assert_eq!(rules::ability_modifier(score), modifier, "{score}");
    }
}

#[test]
fn what_leans_checks() {
    use Advantage::{Advantage as Adv, Disadvantage as Dis, None as No};
    for (condition, expected) in [
        ("poisoned", Dis),
        ("frightened", Dis),
        ("exhaustion 1", Dis),
        ("blinded", No),
        ("prone", No),
        ("restrained", No),
    ] {
        let dice = if expected == No { &[9][..] } else { &[9, 9] };
        assert_eq!(
            skill(&with_conditions(scout(), &[condition]), "arcana", 10, dice).advantage,
            expected,
            "{condition}"
        );
    }
    let raging = with_effects(hero("Barbarian", 1, [16, 10, 10, 10, 10, 10]), &["Rage"]);
    assert_eq!(skill(&raging, "athletics", 10, &[2, 9]).advantage, Adv);
    skill(&raging, "acrobatics", 10, &[2]);
    let mut clad = scout();
    clad.armor = Some(Worn { name: "Scale Mail".into(), proficient: Some(true), ..Worn::default() });
    assert_eq!(skill(&clad, "stealth", 10, &[2, 9]).advantage, Dis);
    skill(&clad, "acrobatics", 10, &[2]);
    clad.armor = Some(Worn { name: "ring mail".into(), ..Worn::default() });
    assert_eq!(skill(&clad, "acrobatics", 10, &[2, 9]).advantage, Dis);
    skill(&clad, "arcana", 10, &[2]);
    let helped = with_effects(scout(), &["Help", "Guidance"]);
    let o = skill(&helped, "arcana", 10, &[2, 9, 4]);
    assert_eq!((o.advantage, o.total), (Adv, 13));
    assert!(after(&helped, &o).effects.is_empty(), "both are used up");
    let asked = Circumstances { advantage: Adv, ..plain() };
    assert_eq!(skill_in(&with_conditions(scout(), &["poisoned"]), "arcana", 10, &asked, &[9]).advantage, No);
    let dark = when(|c| c.sight_needed = true);
    let o = skill_in(&with_conditions(scout(), &["blinded"]), "perception", 1, &dark, &[]);
    assert_eq!((o.success, o.die_result, o.automatic), (false, 0, Some(Automatic::Failure)));
    let loud = when(|c| c.hearing_needed = true);
    assert!(!skill_in(&with_conditions(scout(), &["deafened"]), "perception", 1, &loud, &[]).success);
    skill_in(&with_conditions(scout(), &["deafened"]), "perception", 1, &dark, &[5]);
}

#[test]
fn passive_checks() {
    let of = |c: &Creature, circumstances: &Circumstances| {
        passive(c, &CheckKind { skill: Some("perception".into()), ability: None }, circumstances).unwrap()
    };
    let o = of(&scout(), &plain());
    assert_eq!((o.check_type.as_str(), o.total, o.die_result), ("Passive Perception", 14, 0));
    assert_eq!(of(&scout(), &Circumstances { advantage: Advantage::Advantage, ..plain() }).total, 19);
    assert_eq!(of(&with_conditions(scout(), &["poisoned"]), &plain()).total, 9);
}

#[test]
fn saving_throws() {
    let o = save(&scout(), "dexterity", 15, &[9]);
    assert_eq!(
        (o.check_type.as_str(), o.components.as_str(), o.success),
        ("Dexterity Saving Throw", "DEX +3, Prof +3 = +6", true)
    );
    assert_eq!(save(&scout(), "int", 15, &[9]).components, "INT +0, Prof +3 = +3");
    assert_eq!(save(&scout(), "wisdom", 15, &[9]).components, "WIS +1 = +1");
    assert!(save(&scout(), "luck", 15, &[]).impossible);
    let sourced = SavingThrowArgs { ability: "con".into(), dc: 10, source: Some("poison gas".into()), damage: None };
    let o = rolled(&[3], |d| resolve_saving_throw(&scout(), &sourced, &plain(), d));
    assert!(o.notes.ends_with("(poison gas)."), "{}", o.notes);
    let mut dwarf = scout();
    dwarf.race = "Hill Dwarf".into();
    let o = rolled(&[3, 12], |d| resolve_saving_throw(&dwarf, &sourced, &plain(), d));
    assert!(o.success && has_reason(&o, "Dwarven Resilience"));
    let mut npc = foe(10, 10);
    npc.saving_throws.insert("wis".into(), 4);
    assert_eq!(save(&npc, "wisdom", 10, &[9]).components, "Bonus +4 = +4");
    assert_eq!(save(&npc, "dexterity", 10, &[9]).components, "DEX +0 = +0");
}

#[test]
fn what_leans_saves() {
    use Advantage::{Advantage as Adv, Disadvantage as Dis};
    for condition in ["paralyzed", "petrified", "stunned", "unconscious"] {
        for ability in ["strength", "dexterity"] {
            let o = save(&with_conditions(scout(), &[condition]), ability, 1, &[]);
            assert_eq!((o.success, o.automatic, o.die_result, o.total), (false, Some(Automatic::Failure), 0, 0));
        }
        save(&with_conditions(scout(), &[condition]), "wisdom", 1, &[5]);
    }
    assert_eq!(save(&with_conditions(scout(), &["restrained"]), "dex", 10, &[5, 6]).advantage, Dis);
    save(&with_conditions(scout(), &["restrained"]), "str", 10, &[5]);
    assert_eq!(save(&with_conditions(scout(), &["exhaustion 3"]), "wis", 10, &[5, 6]).advantage, Dis);
    save(&with_conditions(scout(), &["exhaustion 2"]), "wis", 10, &[5]);
    for effect in ["Dodge", "Haste"] {
        assert_eq!(save(&with_effects(scout(), &[effect]), "dex", 10, &[5, 6]).advantage, Adv, "{effect}");
        save(&with_effects(scout(), &[effect]), "con", 10, &[5]);
    }
    assert_eq!(save(&with_effects(scout(), &["Rage"]), "str", 10, &[5, 6]).advantage, Adv);
    let danger = with_features(scout(), &["Danger Sense"]);
    assert_eq!(save(&danger, "dex", 10, &[5, 6]).advantage, Adv);
    save(&with_conditions(danger, &["blinded"]), "dex", 10, &[5]);
    let o = save(&with_effects(scout(), &["Bless", "Bane"]), "wis", 10, &[5, 4, 1]);
    assert_eq!((o.total, o.components.as_str()), (9, "WIS +1, Effects +3 = +4"));
    let cover = Circumstances { cover: Cover::ThreeQuarters, ..plain() };
    assert_eq!(save_in(&scout(), "dex", 10, &cover, &[5]).total, 16);
    assert_eq!(save_in(&scout(), "con", 10, &cover, &[5]).total, 7);
    let near = when(|c| c.aura_of_protection = Some(3));
    assert_eq!(save_in(&scout(), "wis", 10, &near, &[5]).total, 9);
    let paladin = with_features(hero("Paladin", 6, [10, 10, 10, 10, 10, 8]), &["Aura of Protection"]);
    assert_eq!(save(&paladin, "wis", 10, &[5]).total, 6, "at least 1");
    assert_eq!(save_in(&paladin, "wis", 10, &near, &[5]).total, 8, "the best of two");
}

#[test]
fn saves_from_damage() {
    let trap = |on_save| SavingThrowArgs {
        ability: "dex".into(),
        dc: 12,
        source: Some("fire trap".into()),
        damage: Some(SaveDamage { dice: "2d6+1".into(), damage_type: "fire".into(), on_save }),
    };
    let run =
        |c: &Creature, on_save, dice: &[u32]| rolled(dice, |d| resolve_saving_throw(c, &trap(on_save), &plain(), d));
    let o = run(&scout(), OnSave::Half, &[2, 6, 6]);
    assert_eq!((o.success, total_damage(&o), after(&scout(), &o).hp), (false, 13, 27));
    let o = run(&scout(), OnSave::Half, &[15, 6, 6]);
    assert_eq!((o.success, total_damage(&o), taken(&o)), (true, 6, 6));
    assert!(run(&scout(), OnSave::None, &[15]).damage.is_none());
    let evades = with_features(scout(), &["Evasion"]);
    assert!(run(&evades, OnSave::Half, &[15]).damage.is_none());
    assert_eq!(taken(&run(&evades, OnSave::Half, &[2, 6, 6])), 6);
    let bad = SavingThrowArgs {
        damage: Some(SaveDamage { dice: "lots".into(), ..SaveDamage::default() }),
        ..trap(OnSave::Half)
    };
    let error = resolve_saving_throw(&scout(), &bad, &plain(), &mut rules::dice::Given::new(&[])).unwrap_err();
    assert!(matches!(error, RuleError::Argument { argument: "damage/dice", .. }));
}

fn contest(a: &Creature, b: &Creature, args: &ContestArgs, dice: &[u32]) -> Outcome {
    rolled(dice, |d| resolve_contest(a, b, args, &plain(), d))
}

#[test]
fn contests() {
    let kind = |skill: &str| CheckKind { skill: Some(skill.into()), ability: None };
    let args = ContestArgs { own: kind("stealth"), theirs: kind("perception"), purpose: None };
    let o = contest(&scout(), &foe(10, 10), &args, &[10, 12]);
    assert_eq!((o.success, o.total, o.dc_or_ac.as_str(), o.outcome.as_str()), (true, 16, "12", "wins"));
    assert_eq!(o.participants.len(), 2);
    let tie = contest(&scout(), &foe(10, 10), &args, &[10, 16]);
    assert_eq!((tie.success, tie.outcome.as_str()), (false, "tie"));
    // All d20s come before any bonus die.
    let o = contest(
        &with_effects(scout(), &["Guidance"]),
        &with_effects(foe(10, 10), &["Guidance"]),
        &args,
        &[10, 12, 1, 4],
    );
    assert_eq!((o.total, o.dc_or_ac.as_str()), (17, "16"));
    assert!(contest(&scout(), &foe(10, 10), &ContestArgs::default(), &[]).impossible);
}

#[test]
fn grappling_and_shoving() {
    let to = |purpose| ContestArgs { purpose: Some(purpose), ..ContestArgs::default() };
    let strong = hero("Fighter", 1, [16, 10, 10, 10, 10, 10]);
    let o = contest(&strong, &foe(10, 10), &to(ContestPurpose::Grapple), &[10, 12]);
    assert!(o.success && after(&foe(10, 10), &o).has_condition("grappled"));
    let o = contest(&strong, &foe(10, 10), &to(ContestPurpose::ShoveProne), &[10, 13]);
    assert!(!o.success && o.effects.is_empty());
    assert!(contest(&strong, &foe(10, 10), &to(ContestPurpose::ShoveAway), &[10, 12]).effects.is_empty());
    let mut huge = foe(10, 10);
    huge.size = "huge".into();
    assert!(contest(&strong, &huge, &to(ContestPurpose::Grapple), &[]).impossible);
    huge.size = "large".into();
    assert!(!contest(&strong, &huge, &to(ContestPurpose::Grapple), &[10, 1]).impossible);
    let stunned = with_conditions(foe(10, 10), &["stunned"]);
    let o = contest(&strong, &stunned, &to(ContestPurpose::ShoveProne), &[]);
    assert_eq!((o.success, o.automatic), (true, Some(Automatic::Success)));
    // The defender uses its better skill.
    let mut nimble = foe(10, 10);
    nimble.abilities.dexterity = 18;
    assert_eq!(
        contest(&strong, &nimble, &to(ContestPurpose::Grapple), &[10, 10]).participants[1].check_type,
        "Acrobatics Check"
    );
    let held = with_conditions(strong.clone(), &["grappled"]);
    assert!(
        !after(&held, &contest(&held, &foe(10, 10), &to(ContestPurpose::Escape), &[15, 2])).has_condition("grappled")
    );
}

#[test]
fn groups_need_half() {
    let (a, b, c) = (scout(), foe(10, 10), foe(10, 10));
    let args = GroupCheckArgs { kind: CheckKind { skill: Some("stealth".into()), ability: None }, dc: 12 };
    let run = |who: &[&Creature], dice: &[u32]| rolled(dice, |d| resolve_group_check(who, &args, &plain(), d));
    let o = run(&[&a, &b], &[10, 5]);
    assert_eq!((o.success, o.total, o.participants.len()), (true, 1, 2));
    assert!(!run(&[&a, &b, &c], &[10, 5, 5]).success);
    assert!(run(&[&a, &b, &c], &[10, 5, 15]).success);
    assert!(run(&[], &[]).impossible);
}

#[test]
fn initiative() {
    let of = |c: &Creature, dice: &[u32]| rolled(dice, |d| roll_initiative(c, &plain(), d));
    assert_eq!((of(&scout(), &[10]).total, of(&scout(), &[10]).check_type.as_str()), (13, "Initiative"));
    assert_eq!(of(&with_features(scout(), &["Jack of All Trades"]), &[10]).total, 14);
    assert_eq!(of(&with_features(scout(), &["Remarkable Athlete"]), &[10]).total, 15);
    assert_eq!(of(&with_features(scout(), &["Feral Instinct"]), &[3, 10]).total, 13);
}

#[test]
fn concentration() {
    for (damage, dc) in [(0, 10), (19, 10), (21, 10), (22, 11), (45, 22), (i32::MAX, i32::MAX / 2)] {
        assert_eq!(concentration_dc(damage), dc);
    }
    let mut c = scout();
    let of = |c: &Creature, dice: &[u32]| rolled(dice, |d| resolve_concentration(c, 24, &plain(), d));
    assert!(of(&c, &[]).no_check);
    c.concentration = Some(Concentration { spell: "Bless".into() });
    let kept = of(&c, &[10]);
    assert!(kept.success && kept.dc_or_ac == "12" && kept.effects.is_empty());
    let lost = of(&c, &[9]);
    assert!(!lost.success && after(&c, &lost).concentration.is_none());
    assert!(!of(&with_conditions(c, &["stunned"]), &[]).success);
}

#[test]
fn half_of_the_bonus() {
    for (level, half_down, half_up) in [(1, 1, 1), (5, 1, 2), (9, 2, 2), (13, 2, 3), (17, 3, 3)] {
        let jack = with_features(hero("Bard", level, [10; 6]), &["Jack of All Trades"]);
        assert_eq!(skill(&jack, "arcana", 10, &[10]).total, 10 + half_down, "{level}");
        let athlete = with_features(hero("Fighter", level, [10; 6]), &["Remarkable Athlete"]);
        assert_eq!(skill(&athlete, "athletics", 10, &[10]).total, 10 + half_up, "{level}");
    }
}

#[test]
fn expertise_as_it_is_written() {
    for chosen in ["stealth and sleight of hand", "Perception; Sleight_of_Hand", "Sleight-of-Hand"] {
        let mut c = scout();
        c.features =
            vec![Feature { name: "Expertise".into(), chosen_option: Some(chosen.into()), ..Feature::default() }];
        assert_eq!(skill(&c, "sleight of hand", 10, &[10]).components, "DEX +3, Expertise +6 = +9", "{chosen}");
    }
    let c = with_features(scout(), &["Expertise (Stealth)"]);
    assert!(skill(&c, "stealth", 10, &[10]).components.contains("Expertise"));
}

#[test]
fn answers_in_words() {
    let o = skill(&scout(), "stealth", 15, &[9]);
    assert_eq!((o.outcome.as_str(), o.notes.as_str()), ("success", "Succeeds against DC 15."));
    let o = skill(&scout(), "stealth", 15, &[8]);
    assert_eq!((o.outcome.as_str(), o.notes.as_str()), ("failure", "Fails against DC 15."));
    // A ten is as good as a ten.
    let reliable = with_features(scout(), &["Reliable Talent"]);
    assert!(skill(&reliable, "stealth", 16, &[10]).reasons.is_empty());
    assert!(has_reason(&skill(&reliable, "stealth", 16, &[9]), "9 counts as 10"));
}

#[test]
fn fear_needs_to_be_seen_and_poison_does_not() {
    let far = when(|c| c.fear_source_visible = false);
    let check = |condition, dice: &[u32]| skill_in(&with_conditions(scout(), &[condition]), "arcana", 10, &far, dice);
    assert_eq!(check("frightened", &[9]).advantage, Advantage::None);
    assert_eq!(check("poisoned", &[9, 9]).advantage, Advantage::Disadvantage);
}

#[test]
fn rage_is_for_strength_and_not_in_heavy_armor() {
    let raging = with_effects(hero("Barbarian", 1, [16, 10, 10, 10, 10, 10]), &["Rage"]);
    assert_eq!(save(&raging, "wis", 10, &[5]).advantage, Advantage::None);
    let mut clad = raging;
    clad.armor = Some(Worn { name: "plate".into(), proficient: Some(true), ..Worn::default() });
    assert_eq!(skill(&clad, "athletics", 10, &[5]).advantage, Advantage::None);
    assert_eq!(save(&clad, "str", 10, &[5]).advantage, Advantage::None);
}

#[test]
fn a_check_uses_up_only_what_helps_it() {
    let c = with_effects(scout(), &["Resistance", "Guiding Bolt", "Guidance"]);
    let now = after(&c, &skill(&c, "arcana", 10, &[9, 4]));
    assert_eq!(now.effects.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["Resistance", "Guiding Bolt"]);
    let now = after(&now, &save(&now, "wis", 10, &[9, 4]));
    assert_eq!(now.effects.len(), 1);
}

#[test]
fn who_is_quick_to_dodge_and_to_sense_danger() {
    use Advantage::{Advantage as Adv, None as No};
    for (effect, condition, expected) in [
        ("Dodge", "grappled", No),
        ("Dodge", "incapacitated", No),
        ("Haste", "grappled", Adv),
        ("Dodge", "poisoned", Adv),
    ] {
        let c = with_effects(with_conditions(scout(), &[condition]), &[effect]);
        let dice = if expected == No { &[5][..] } else { &[5, 6] };
        assert_eq!(save(&c, "dex", 10, dice).advantage, expected, "{effect} {condition}");
    }
    for (condition, expected) in [("poisoned", Adv), ("deafened", No), ("incapacitated", No)] {
        let c = with_features(with_conditions(scout(), &[condition]), &["Danger Sense"]);
        let dice = if expected == No { &[5][..] } else { &[5, 6] };
        assert_eq!(save(&c, "dex", 10, dice).advantage, expected, "{condition}");
    }
}

#[test]
fn what_a_save_tells() {
    let from = |source: &str, ability: &str| SavingThrowArgs {
        ability: ability.into(),
        dc: 12,
        source: Some(source.into()),
        damage: Some(SaveDamage { dice: "2d6+1".into(), damage_type: "fire".into(), on_save: OnSave::Half }),
    };
    let run = |c: &Creature, args: &SavingThrowArgs, dice: &[u32]| {
        rolled(dice, |d| resolve_saving_throw(c, args, &plain(), d))
    };
    let o = run(&scout(), &from("fire trap", "dex"), &[2, 6, 6]);
    assert_eq!((o.notes.as_str(), row(&o, "fire trap").subtotal), ("Fails against DC 12 (fire trap). 13 damage.", 13));
    let o = run(&scout(), &from(" ", "dex"), &[15, 6, 6]);
    assert_eq!((o.notes.as_str(), row(&o, "Damage").subtotal), ("Succeeds against DC 12. 6 damage (half).", 13));
    let weak = Creature { hp: 5, ..scout() };
    let o = run(&weak, &from("fire trap", "dex"), &[2, 6, 6]);
    assert!(o.notes.ends_with("13 damage. Hero is at 0 hit points."), "{}", o.notes);
    // Evasion is for Dexterity.
    let evades = with_features(scout(), &["Evasion"]);
    assert_eq!(taken(&run(&evades, &from("gas", "con"), &[15, 6, 6])), 6);
}

#[test]
fn one_charms_whom_one_has_charmed() {
    let args = |ability: &str| ContestArgs {
        own: CheckKind { skill: None, ability: Some(ability.into()) },
        theirs: CheckKind { skill: Some("insight".into()), ability: None },
        purpose: None,
    };
    let beguiled = |condition: &str, source: &str| {
        let mut c = with_conditions(foe(10, 10), &[condition]);
        c.conditions[0].source = Some(source.into());
        c
    };
    let lean = |ability: &str, condition, source, dice: &[u32]| {
        contest(&scout(), &beguiled(condition, source), &args(ability), dice).advantage
    };
    assert_eq!(lean("charisma", "charmed", "hero", &[5, 6, 10]), Advantage::Advantage);
    assert_eq!(lean("charisma", "charmed", "somebody", &[5, 10]), Advantage::None);
    assert_eq!(lean("strength", "charmed", "hero", &[5, 10]), Advantage::None);
    assert_eq!(lean("charisma", "grappled", "hero", &[5, 10]), Advantage::None);
}

#[test]
fn another_skill_can_be_chosen_for_a_grapple() {
    let to = |own: CheckKind| ContestArgs { own, purpose: Some(ContestPurpose::Grapple), ..ContestArgs::default() };
    let types = |own: CheckKind| {
        let o = contest(&scout(), &foe(10, 10), &to(own), &[10, 10]);
        o.participants.iter().map(|p| p.check_type.clone()).collect::<Vec<_>>()
    };
    assert_eq!(types(CheckKind::default()), ["Athletics Check", "Athletics Check"]);
    let acrobatics = CheckKind { skill: Some("acrobatics".into()), ability: None };
    assert_eq!(types(acrobatics)[0], "Acrobatics Check");
    assert_eq!(types(CheckKind { skill: None, ability: Some("dex".into()) })[0], "Dexterity Check");
}

#[test]
fn errors_say_what_is_wrong() {
    let args = SkillCheckArgs { skill: "stealth".into(), dc: 10, ability: None };
    let error = resolve_skill_check(&scout(), &args, &plain(), &mut rules::dice::Given::new(&[])).unwrap_err();
    let cause = std::error::Error::source(&error).expect("the dice");
    assert!(!error.to_string().is_empty() && error.to_string() == cause.to_string());
    let error = RuleError::Target { index: 2, message: "Foe has total cover".into() };
    assert_eq!(error.to_string(), "target 2: Foe has total cover");
    assert!(std::error::Error::source(&error).is_none());
}
