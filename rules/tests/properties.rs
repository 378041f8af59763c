//! Properties that hold for any sheet and any dice.

mod support;

use std::collections::BTreeMap;

use proptest::{collection::vec, option, prelude::*, sample::select};
use rules::{
    dice::{Dice, OutOfDice},
    resolve::{
        AbilityCheckArgs, AttackArgs, CheckKind, Circumstances, ContestArgs, ContestPurpose, Context, Cover,
        DamageArgs, DamagePart, GroupCheckArgs, HealingArgs, Outcome, RestArgs, RestType, RuleError, SaveDamage,
        SavingThrowArgs, SkillCheckArgs, apply, apply_damage, apply_healing, passive, resolve_ability_check,
        resolve_attack, resolve_concentration, resolve_contest, resolve_death_save, resolve_fall, resolve_group_check,
        resolve_saving_throw, resolve_skill_check, roll_initiative, take_rest,
    },
    sheet::{
        Abilities, ActiveEffect, Concentration, Condition, Creature, DeathSaves, Feature, HitDice, KnownSpell,
        NpcAttack, Range, Resource, SpellSlot, Weapon, WeaponAbility, Worn,
    },
    srd::{Ability, Advantage, CONDITIONS, EFFECTS, OnSave, SKILLS, SPELLS, WEAPONS},
};
use support::*;

/// Endless dice from a seed.
struct Endless(u64);

impl Dice for Endless {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Ok(u32::try_from((self.0 >> 33) % u64::from(faces.max(1))).unwrap_or(0) + 1)
    }
}

fn number() -> BoxedStrategy<i32> {
    prop_oneof![6 => -5..40_i32, 1 => any::<i32>(), 1 => Just(i32::MAX), 1 => Just(i32::MIN)].boxed()
}

fn word() -> BoxedStrategy<String> {
    let known = WEAPONS
        .iter()
        .map(|w| w.name)
        .chain(SPELLS.iter().map(|s| s.name))
        .chain(EFFECTS.iter().map(|e| e.name))
        .chain(CONDITIONS.iter().map(|c| c.name))
        .chain(SKILLS.iter().map(|s| s.name))
        .chain([
            "Sneak Attack",
            "Divine Smite 3",
            "Martial Arts",
            "Dueling",
            "Great Weapon Fighting",
            "Evasion",
            "Lucky",
        ])
        .chain(["Improved Divine Smite", "Brutal Critical", "half-orc", "Halfling", "Expertise", "Reliable Talent"])
        .chain([
            "Agonizing Blast",
            "Arcane Recovery",
            "unarmed",
            "improvised",
            "fire",
            "nonmagical slashing",
            "Rogue 3 / Monk",
        ])
        .collect::<Vec<_>>();
    prop_oneof![8 => select(known).prop_map(str::to_owned), 1 => "\\PC{0,12}", 1 => Just(String::new())].boxed()
}

fn words(most: usize) -> BoxedStrategy<Vec<String>> {
    vec(word(), 0..=most).boxed()
}

fn formula() -> BoxedStrategy<String> {
    prop_oneof![
        3 => select(vec!["1d6", "2d6+3", "1", "200d1000", "ceil(level/2)d6", "-5", "1d8-1000000", "level fire", ""]).prop_map(str::to_owned),
        1 => "[0-9dD+\\-()/ levceilfr]{0,14}",
        1 => "\\PC{0,10}",
    ]
    .boxed()
}

fn feature() -> BoxedStrategy<Feature> {
    (word(), option::of(word()), option::of(formula()))
        .prop_map(|(name, chosen_option, scaling_formula)| Feature {
            name,
            level: None,
            chosen_option,
            scaling_formula,
        })
        .boxed()
}

fn range() -> BoxedStrategy<Option<Range>> {
    option::of((number(), option::of(number())).prop_map(|(normal, long)| Range { normal, long })).boxed()
}

fn weapon() -> BoxedStrategy<Weapon> {
    let ability = select(vec![WeaponAbility::Str, WeaponAbility::Dex, WeaponAbility::Finesse, WeaponAbility::None]);
    (word(), option::of(formula()), option::of(formula()), option::of(ability), number(), range())
        .prop_map(|(name, dice, versatile_dice, ability, bonus, range)| Weapon {
            name,
            dice,
            versatile_dice,
            ability,
            bonus,
            range,
            ..Weapon::default()
        })
        .boxed()
}

fn npc_attack() -> BoxedStrategy<NpcAttack> {
    (word(), number(), formula(), word(), option::of(number()), range())
        .prop_map(|(name, bonus, damage, damage_type, reach_ft, range)| NpcAttack {
            name,
            bonus,
            damage,
            damage_type,
            reach_ft,
            range,
        })
        .boxed()
}

prop_compose! {
    fn any_numbers()(
        scores in [number(), number(), number(), number(), number(), number()],
        level in number(), max_hp in number(), hp in number(), temp_hp in number(), armor_class in number(),
        saves in (number(), number()), die in (number(), number(), number()),
    ) -> Creature {
        let [strength, dexterity, constitution, intelligence, wisdom, charisma] = scores;
        Creature {
            abilities: Abilities { strength, dexterity, constitution, intelligence, wisdom, charisma },
            level, max_hp, hp, temp_hp, armor_class,
            death_saves: DeathSaves { successes: saves.0, failures: saves.1 },
            hit_dice: Some(HitDice { die: die.0, max: die.1, remaining: die.2 }),
            ..Creature::default()
        }
    }
}

prop_compose! {
    fn any_creature()(
        base in any_numbers().boxed(), is_npc in any::<bool>(), race in word(), profession in word(),
        lists in [words(3), words(3), words(2), words(2), words(2)],
        features in vec(feature(), 0..5), weapons in vec(weapon(), 0..3), attacks in vec(npc_attack(), 0..2),
        conditions in vec((word(), option::of(number()), option::of(number())), 0..3), effects in words(3),
        spells in words(4), slots in vec((number(), number()), 9), resources in vec((word(), number(), number()), 0..2),
        worn in (option::of(select(vec!["plate", "leather", "robe"])), any::<bool>(), number()), concentrates in option::of(word()),
        save in option::of(number()),
    ) -> Creature {
        let [skills, proficiencies, resistances, immunities, vulnerabilities] = lists;
        Creature {
            id: "c".to_owned(), is_npc, race, profession, features, weapons, attacks,
            skill_proficiencies: skills, weapon_proficiencies: proficiencies, resistances, immunities, vulnerabilities,
            conditions: conditions.into_iter().map(|(name, level, rounds_remaining)| Condition { name, level, rounds_remaining, ..Condition::default() }).collect(),
            effects: effects.into_iter().map(|name| ActiveEffect { name, ..ActiveEffect::default() }).collect(),
            spells: spells.into_iter().map(KnownSpell::Name).collect(),
            spell_slots: slots.into_iter().enumerate().map(|(at, (max, remaining))| ((at + 1).to_string(), SpellSlot { max, remaining })).collect::<BTreeMap<_, _>>(),
            resources: resources.into_iter().map(|(name, max, remaining)| Resource { name, max, remaining }).collect(),
            armor: worn.0.map(|name| Worn { name: name.to_owned(), bonus: worn.2, proficient: Some(worn.1) }),
            concentration: concentrates.map(|spell| Concentration { spell }),
            saving_throws: save.map(|s| ("dexterity".to_owned(), s)).into_iter().collect(),
            ..base
        }
    }
}

/// Boxed with its parts, because the value trees are too large for a test's stack.
fn creature() -> BoxedStrategy<Creature> {
    any_creature().boxed()
}

prop_compose! {
    fn circumstances()(
        advantage in select(vec![Advantage::None, Advantage::Advantage, Advantage::Disadvantage]),
        cover in select(vec![Cover::None, Cover::Half, Cover::ThreeQuarters]),
        flags in any::<[bool; 8]>(), distance_ft in option::of(number()), aura in option::of(number()),
    ) -> Circumstances {
        let context = Context {
            ally_adjacent: flags[0], hostile_adjacent: flags[1], attacker_unseen: flags[2], target_unseen: flags[3],
            off_hand: flags[4], underwater: flags[5], knock_out: flags[6], sight_needed: flags[7], distance_ft,
            turn_key: Some("1".to_owned()), aura_of_protection: aura, reactions: vec!["Uncanny Dodge".to_owned()],
            ..Context::default()
        };
        Circumstances { advantage, cover, context }
    }
}

prop_compose! {
    fn attack_args()(weapon in option::of(word()), extra_damage_sources in words(4), spell_name in option::of(word()),
        slot_level in option::of(number()), two_handed in any::<bool>(), is_spell_attack in any::<bool>()) -> AttackArgs {
        AttackArgs { weapon, extra_damage_sources, is_spell_attack, spell_name, slot_level, two_handed }
    }
}

/// What must be true of every outcome.
fn sound(outcome: &Outcome) -> Result<(), TestCaseError> {
    prop_assert!(!outcome.check_type.is_empty() && !outcome.raw.is_empty());
    prop_assert_eq!(outcome.raw.starts_with("CHECK: "), true);
    prop_assert!(outcome.dice.iter().all(|d| (1..=d.faces).contains(&d.value)));
    if outcome.impossible || outcome.no_check {
        prop_assert!(!outcome.success && outcome.dice.is_empty() && outcome.damage.is_none());
        prop_assert_eq!((outcome.die_result, outcome.total), (0, 0));
    }
    if outcome.impossible {
        prop_assert!(outcome.effects.is_empty());
    }
    let sum = outcome.modifiers.iter().fold(0_i32, |sum, m| sum.saturating_add(m.value));
    if !outcome.modifiers.is_empty() {
        prop_assert_eq!(&outcome.total_modifier, &format!("{sum:+}"));
        let ends = format!("= {sum:+}");
        prop_assert!(outcome.components.ends_with(&ends));
    }
    if outcome.die_result > 0 {
        prop_assert!(outcome.die_result <= 20);
        prop_assert_eq!(outcome.total, i32::try_from(outcome.die_result).unwrap_or(0).saturating_add(sum));
    }
    if let Some(damage) = &outcome.damage {
        prop_assert!(damage.total_damage >= 0 && damage.taken.is_none_or(|t| t >= 0));
        for row in &damage.breakdown {
            let rolled =
                row.rolls.iter().fold(row.flat_bonus, |sum, r| sum.saturating_add(i32::try_from(*r).unwrap_or(0)));
            prop_assert_eq!(rolled, row.subtotal);
        }
    }
    prop_assert!(serde_json::to_string(outcome).is_ok());
    Ok(())
}

fn sound_or(result: Result<Outcome, RuleError>) -> Result<Option<Outcome>, TestCaseError> {
    match result {
        Ok(outcome) => sound(&outcome).map(|()| Some(outcome)),
        Err(RuleError::Dice(cause)) => Err(TestCaseError::fail(format!("{cause}"))),
        Err(RuleError::Argument { .. } | RuleError::Target { .. } | RuleError::NotDying) => Ok(None),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn attacks_never_break(mut actor in creature(), target in creature(), args in attack_args(), c in circumstances(), seed in any::<u64>()) {
        let target = Creature { id: "t".to_owned(), ..target };
        let mut args = args;
        if seed % 4 > 0 {
            // Usually choose something that exists and an actor that can use it.
            let attack = actor.attacks.first().map(|a| a.name.clone());
            args = AttackArgs { weapon: actor.weapons.first().map(|w| w.name.clone()).or(attack), spell_name: None, ..args };
            actor.conditions.clear();
            actor.hp = actor.hp.max(1);
        }
        if let Some(outcome) = sound_or(resolve_attack(&actor, &target, &args, &c, &mut Endless(seed)))? {
            let (mut actor, mut target) = (actor, target);
            apply(&mut actor, &outcome.effects);
            apply(&mut target, &outcome.effects);
            sound_or(resolve_attack(&actor, &target, &args, &c, &mut Endless(seed)))?;
        }
    }

    #[test]
    fn spells_never_break(mut actor in creature(), target in creature(), name in select(SPELLS.map(|s| s.name).to_vec()), slot in option::of(0..10_i32), c in circumstances(), seed in any::<u64>()) {
        actor.is_npc = true;
        actor.spells.clear();
        actor.conditions.clear();
        actor.armor = None;
        let args = AttackArgs { spell_name: Some(name.to_owned()), slot_level: slot, ..AttackArgs::default() };
        let target = Creature { id: "t".to_owned(), ..target };
        sound_or(resolve_attack(&actor, &target, &args, &c, &mut Endless(seed)))?;
    }

    #[test]
    fn checks_never_break(actor in creature(), other in creature(), skill in word(), ability in word(), dc in number(), c in circumstances(), seed in any::<u64>()) {
        let dice = &mut Endless(seed);
        let kind = CheckKind { skill: Some(skill.clone()), ability: None };
        let own = SkillCheckArgs { skill, dc, ability: None };
        sound_or(resolve_skill_check(&actor, &own, &c, dice))?;
        sound_or(resolve_ability_check(&actor, &AbilityCheckArgs { ability: ability.clone(), dc }, &c, dice))?;
        let args = ContestArgs { own: kind.clone(), theirs: kind.clone(), purpose: None };
        sound_or(resolve_contest(&actor, &other, &args, &c, dice))?;
        for purpose in [ContestPurpose::Grapple, ContestPurpose::Escape] {
            let args = ContestArgs { purpose: Some(purpose), ..ContestArgs::default() };
            sound_or(resolve_contest(&actor, &other, &args, &c, dice))?;
        }
        sound_or(roll_initiative(&actor, &c, dice))?;
        prop_assert!(passive(&actor, &kind, &c).is_ok());
        let group = resolve_group_check(&[&actor, &other], &GroupCheckArgs { kind, dc }, &c, dice);
        prop_assert!(group.is_ok());
    }

    #[test]
    fn saves_damage_and_rests_never_break(actor in creature(), dc in number(), amount in number(), text in formula(), kind in word(), c in circumstances(), levels in vec(number(), 0..3), seed in any::<u64>()) {
        let dice = &mut Endless(seed);
        for ability in Ability::ALL {
            let damage = Some(SaveDamage { dice: text.clone(), damage_type: kind.clone(), on_save: OnSave::Half });
            let args = SavingThrowArgs { ability: ability.name().to_owned(), dc, source: Some(kind.clone()), damage };
            sound_or(resolve_saving_throw(&actor, &args, &c, dice))?;
        }
        sound_or(resolve_concentration(&actor, amount, &c, dice))?;
        sound_or(resolve_death_save(&actor, &c, dice))?;
        sound_or(resolve_fall(&actor, amount, &c, dice))?;
        sound_or(apply_healing(&actor, &HealingArgs { amount: None, formula: Some(text) }, dice))?;
        sound_or(apply_healing(&actor, &HealingArgs { amount: Some(amount), formula: None }, dice))?;
        let part = |n: i32| DamagePart { amount: n, damage_type: kind.clone() };
        let args = DamageArgs { parts: vec![part(amount), part(dc)], flat_reduction: dc, ..DamageArgs::default() };
        let Some(outcome) = sound_or(apply_damage(&actor, &args))? else { return Ok(()) };
        let mut after = actor.clone();
        apply(&mut after, &outcome.effects);
        prop_assert!(after.hp >= 0 && after.temp_hp >= 0);
        for rest in [RestType::Short, RestType::Long] {
            let args = RestArgs { rest, hit_dice: Some(dc), recover_slots: levels.clone(), food: true };
            sound_or(take_rest(&actor, &args, dice))?;
        }
    }

    #[test]
    fn any_mix_of_advantage_and_disadvantage_is_neither(adv in 0..4_usize, dis in 0..4_usize, seed in any::<u64>()) {
        let target = with_conditions(foe(15, 50), &["blinded", "restrained", "stunned"][..adv.min(3)]);
        let actor = with_conditions(armed(hero("Fighter", 5, [16; 6]), &["Mace"]), &["poisoned", "prone", "frightened"][..dis.min(3)]);
        let o = resolve_attack(&actor, &target, &with("Mace"), &plain(), &mut Endless(seed));
        let Ok(o) = o else { return Err(TestCaseError::fail("dice")) };
        let (count, lean) = match (adv > 0, dis > 0) {
            (true, false) => (2, Advantage::Advantage),
            (false, true) => (2, Advantage::Disadvantage),
            _ => (1, Advantage::None),
        };
        let d20s: Vec<_> = o.dice.iter().filter(|d| d.faces == 20).collect();
        prop_assert_eq!((d20s.len(), o.advantage), (count, lean));
        prop_assert_eq!(d20s.iter().filter(|d| d.kept).count(), 1, "one is kept");
    }

    #[test]
    fn critical_hits_double_dice_and_nothing_else(faces in select(vec!["1d4", "2d6", "1d12", "3d8+5"]), level in 1..=20_i32, seed in any::<u64>()) {
        let mut actor = with_features(hero("Rogue", level, [16; 6]), &["Sneak Attack"]);
        actor.weapons = vec![Weapon { name: "Blade".into(), dice: Some(faces.into()), properties: vec!["finesse".into()], ..Weapon::default() }];
        let args = using("Blade", &["Sneak Attack"]);
        let near = when(|c| c.ally_adjacent = true);
        let with_first = |first: u32| {
            let mut dice = Loaded { first: Some(first), rest: Endless(seed) };
            resolve_attack(&actor, &foe(1, 500), &args, &near, &mut dice).ok().and_then(|o| o.damage)
        };
        let (Some(plain), Some(crit)) = (with_first(10), with_first(20)) else { return Err(TestCaseError::fail("no hit")) };
        prop_assert!(crit.is_crit && !plain.is_crit);
        for (one, two) in plain.breakdown.iter().zip(&crit.breakdown) {
            prop_assert_eq!(one.rolls.len() * 2, two.rolls.len());
            prop_assert_eq!(one.flat_bonus, two.flat_bonus);
        }
    }

    #[test]
    fn resistance_then_vulnerability(amount in 0..10_000_i32, off in 0..50_i32) {
        let take = |resists: usize, vulnerable: bool| {
            let target = Creature {
                resistances: vec!["fire".into(); resists],
                vulnerabilities: if vulnerable { vec!["fire".into()] } else { vec![] },
                ..foe(10, 20_000)
            };
            let parts = vec![DamagePart { amount, damage_type: "fire".into() }];
            let args = DamageArgs { parts, flat_reduction: off, ..DamageArgs::default() };
            apply_damage(&target, &args).map(|o| taken(&o)).unwrap_or(-1)
        };
        let left = (amount - off).max(0);
        prop_assert_eq!(take(0, false), left);
        prop_assert_eq!(take(1, false), left / 2);
        prop_assert_eq!(take(3, false), left / 2, "duplicates count once");
        prop_assert_eq!(take(0, true), left * 2);
        prop_assert_eq!(take(1, true), left / 2 * 2);
    }
}

/// A chosen first die, followed by endless ones.
struct Loaded {
    first: Option<u32>,
    rest: Endless,
}

impl Dice for Loaded {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        match self.first.take() {
            Some(value) => Ok(value),
            None => self.rest.roll(faces),
        }
    }
}
