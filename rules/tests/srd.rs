//! The tables, and looking up names in them.

use rules::{
    SIZES,
    srd::{
        ARMOR, Ability, CASTING_TIMES, CLASSES, CONDITIONS, CREATURES, CastingTime, Class, DAMAGE_TYPES, DamageDice,
        DicePool, EFFECTS, Found, SKILLS, SPELLS, Slots, SpellKind, WEAPONS, WeaponCategory, armor,
        bardic_inspiration_die, base_weapon, brutal_critical_dice, condition, creature, extra_attacks, find,
        lay_on_hands_pool, magic_prefix, martial_arts_die, rage_damage, rage_uses, skill, sneak_attack_dice, spell,
        spell_slots, weapon,
    },
};

#[test]
fn the_tables_are_whole() {
    assert_eq!(
        (WEAPONS.len(), CONDITIONS.len(), SKILLS.len(), DAMAGE_TYPES.len(), CLASSES.len()),
        (37, 15, 18, 13, 12)
    );
    assert_eq!(ARMOR.len(), 12);
    assert_eq!(WEAPONS.iter().filter(|w| w.category == WeaponCategory::Simple).count(), 14);
    for w in WEAPONS {
        assert_eq!(w.versatile.is_some(), w.has("versatile"), "{}", w.name);
        assert_eq!(w.range.is_some(), w.ranged || w.has("thrown"), "{}", w.name);
        assert!(w.name == "net" || DamageDice::parse(w.damage).is_some(), "{}", w.name);
        assert!(w.name == "net" || DAMAGE_TYPES.contains(&w.damage_type), "{}", w.name);
    }
    for s in SPELLS {
        for part in s.damage {
            assert!(DamageDice::parse(part.dice).is_some(), "{}", s.name);
            assert_eq!(DAMAGE_TYPES.contains(&part.damage_type), s.attack != SpellKind::Healing, "{}", s.name);
        }
        assert!(s.upcast.is_empty() || DamageDice::parse(s.upcast).is_some(), "{}", s.name);
        assert_eq!(s.save.is_some(), s.attack == SpellKind::Save, "{}", s.name);
        assert!(s.level <= 9 && s.condition.is_none_or(|c| condition(c).is_some()), "{}", s.name);
    }
    for (at, class) in CLASSES.iter().enumerate() {
        assert_eq!(class.class as usize, at, "{}", class.name);
    }
    let names = |names: Vec<&str>| {
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len());
    };
    names(SPELLS.iter().map(|s| s.name).collect());
    names(WEAPONS.iter().map(|s| s.name).collect());
    names(EFFECTS.iter().map(|s| s.name).collect());
    names(CASTING_TIMES.iter().map(|(name, _)| *name).collect());
}

#[test]
fn every_creature_can_join_a_fight() {
    assert!(CREATURES.is_sorted_by_key(|c| c.name));
    for c in CREATURES {
        // The hit points are the average of the dice.
        let dice = DamageDice::parse(c.hit_dice).expect(c.name);
        let average: i64 = dice.pools.iter().map(|pool| i64::from(pool.count) * i64::from(pool.faces + 1)).sum();
        assert_eq!(i64::from(c.max_hp), average / 2 + i64::from(dice.flat), "{}", c.name);
        assert!(SIZES.contains(&c.size) && c.attacks_per_action >= 1 && !c.attacks.is_empty(), "{}", c.name);
        assert!(c.vulnerabilities.iter().chain(c.immunities).all(|t| DAMAGE_TYPES.contains(t)), "{}", c.name);
        assert!(c.condition_immunities.iter().all(|name| condition(name).is_some()), "{}", c.name);
        assert!(c.saving_throws.iter().all(|(ability, _)| Ability::named(ability).is_some()), "{}", c.name);
        for attack in c.attacks {
            assert!(DamageDice::parse(attack.damage).is_some(), "{} {}", c.name, attack.name);
            assert!(DAMAGE_TYPES.contains(&attack.damage_type), "{} {}", c.name, attack.name);
            assert!(attack.reach_ft.is_some() || attack.range.is_some(), "{} {}", c.name, attack.name);
        }
    }
    let ogre = creature("OGRE").expect("an ogre");
    assert_eq!((ogre.max_hp, ogre.abilities[0], ogre.attacks[0].damage), (59, 19, "2d8+4"));
}

#[test]
fn casting_takes_what_the_rules_say() {
    let of = |time| CASTING_TIMES.iter().filter(|(_, t)| *t == time).count();
    assert_eq!((of(CastingTime::BonusAction), of(CastingTime::Reaction), of(CastingTime::Action)), (14, 4, 0));
    // Of the spells in the table, exactly these do not take an action.
    let quick: Vec<_> =
        SPELLS.iter().filter(|s| CastingTime::of(s.name) != CastingTime::Action).map(|s| s.name).collect();
    assert_eq!(
        quick,
        [
            "Healing Word",
            "Hellish Rebuke",
            "Hunter's Mark",
            "Shield",
            "Shield of Faith",
            "Prayer of Healing",
            "Spiritual Weapon",
            "Mass Healing Word"
        ]
    );
    assert_eq!(CastingTime::of("misty step"), CastingTime::BonusAction);
    assert_eq!(CastingTime::of("Fireball"), CastingTime::Action);
    for (text, time) in [
        ("1 action", CastingTime::Action),
        ("1 Bonus Action", CastingTime::BonusAction),
        ("1 reaction, which you take when you are hit", CastingTime::Reaction),
        ("10 minutes", CastingTime::Longer),
        ("1 hour", CastingTime::Longer),
    ] {
        assert_eq!(CastingTime::parse(text), time, "{text}");
    }
}

#[test]
fn what_is_not_in_the_srd_is_not_here() {
    for name in ["Hex", "Eldritch Smite", "Great Weapon Master", "Sharpshooter", "Dread Ambusher"] {
        assert_eq!(spell(name), Found::Nothing, "{name}");
        assert!(EFFECTS.iter().all(|e| !e.name.eq_ignore_ascii_case(name)));
    }
}

#[test]
fn names_are_found() {
    assert!(matches!(weapon("Longsword"), Found::One(w) if w.name == "longsword"));
    assert!(matches!(weapon("glai"), Found::One(w) if w.name == "glaive"));
    assert!(matches!(weapon("crossbow"), Found::Several(w) if w.len() == 3));
    assert!(matches!(weapon("club"), Found::One(w) if w.name == "club"));
    assert_eq!(weapon("spoon"), Found::Nothing);
    assert_eq!(weapon(""), Found::Nothing);
    for (item, base) in [
        ("+1 longsword", Some("longsword")),
        ("Longsword, +2", Some("longsword")),
        ("Crossbow, light", Some("light crossbow")),
        ("Flaming Greatsword of Doom", Some("greatsword")),
        ("War Pick", Some("war pick")),
        ("Netting", None),
        ("Longsword of Doom", Some("longsword")),
        ("Longswordfish", None),
        ("Staff of Power", None),
    ] {
        assert_eq!(base_weapon(item).map(|w| w.name), base, "{item}");
    }
    assert_eq!(
        (magic_prefix("+1 mace"), magic_prefix("mace"), magic_prefix("+x mace")),
        ((1, "mace"), (0, "mace"), (0, "+x mace"))
    );
    assert_eq!(armor("Studded Leather Armor").map(|a| a.armor_class), Some(12));
    assert_eq!(armor("half plate").map(|a| a.armor_class), Some(15));
    assert_eq!(armor("+1 Plate").map(|a| a.name), Some("plate"));
    assert_eq!(armor("robe"), None);
    assert_eq!(skill("Animal_Handling").map(|s| s.ability), Some(Ability::Wisdom));
    assert_eq!(Ability::named(" dEx "), Some(Ability::Dexterity));
    assert!(condition("PRONE").is_some() && condition("sleepy").is_none());
}

#[test]
fn sums_of_dice() {
    let pool = |count, faces| DicePool { count, faces };
    let parsed = |text: &str| DamageDice::parse(text).map(|d| (d.pools, d.flat, d.damage_type));
    assert_eq!(parsed("2d6+3"), Some((vec![pool(2, 6)], 3, None)));
    assert_eq!(parsed(" 1D8 - 1 + 2d4 "), Some((vec![pool(1, 8), pool(2, 4)], -1, None)));
    assert_eq!(parsed("1"), Some((vec![], 1, None)));
    assert_eq!(parsed("+10"), Some((vec![], 10, None)));
    assert_eq!(parsed("d6 Fire"), Some((vec![pool(1, 6)], 0, Some("fire"))));
    for bad in
        ["", "x", "1d", "d", "1d0", "-1d6", "2d6+", "201d6", "1d1001", "1d6 magic", "2*3", "1d6++1", "99999999999d6"]
    {
        assert_eq!(parsed(bad), None, "{bad}");
    }
    let scaled = |text: &str, level| DamageDice::scaled(text, level).map(|d| (d.count(), d.flat));
    assert_eq!(scaled("ceil(level/2)d6", 5), Some((3, 0)));
    assert_eq!(scaled("floor(level/2)d6+level", 5), Some((2, 5)));
    assert_eq!(scaled("(level/3)d8", 7), Some((2, 0)));
    assert_eq!(scaled("level/0", 7), None);
    assert_eq!(scaled("leveld6", i32::MAX), Some((100, 0)));
}

#[test]
fn numbers_that_grow() {
    for (level, dice) in [(1, 1), (2, 1), (3, 2), (19, 10), (20, 10), (0, 1), (i32::MAX, 10)] {
        assert_eq!(sneak_attack_dice(level), dice, "{level}");
    }
    assert_eq!([1, 8, 9, 15, 16, 20].map(rage_damage), [2, 2, 3, 3, 4, 4]);
    let uses: Vec<_> = (1..=20).map(rage_uses).collect();
    let expected = [2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 6, 6, 6].map(Some);
    assert_eq!(uses[..19], expected);
    assert_eq!(uses[19], None);
    assert_eq!([8, 9, 13, 17].map(brutal_critical_dice), [0, 1, 2, 3]);
    assert_eq!([1, 5, 11, 17].map(martial_arts_die), [4, 6, 8, 10]);
    assert_eq!([1, 5, 10, 15].map(bardic_inspiration_die), [6, 8, 10, 12]);
    assert_eq!([4, 5, 11, 20].map(|l| extra_attacks(Class::Fighter, l)), [0, 1, 2, 3]);
    assert_eq!([4, 5, 20].map(|l| extra_attacks(Class::Monk, l)), [0, 1, 1]);
    assert_eq!(extra_attacks(Class::Wizard, 20), 0);
}

#[test]
fn slots_by_level() {
    assert_eq!(spell_slots(Slots::Full, 20), [4, 3, 3, 3, 3, 2, 2, 1, 1]);
    assert_eq!(spell_slots(Slots::Full, 5), [4, 3, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(spell_slots(Slots::Full, 9), [4, 3, 3, 3, 1, 0, 0, 0, 0]);
    assert_eq!(spell_slots(Slots::Half, 1), [0; 9]);
    assert_eq!(spell_slots(Slots::Half, 2)[0], 2);
    assert_eq!(spell_slots(Slots::Half, 17)[..5], [4, 3, 3, 3, 1]);
    for (level, count, of) in [(1, 1, 1), (2, 2, 1), (3, 2, 2), (5, 2, 3), (7, 2, 4), (9, 2, 5), (11, 3, 5), (17, 4, 5)]
    {
        let slots = spell_slots(Slots::Pact, level);
        assert_eq!((slots[of - 1], slots.iter().sum::<u8>()), (count, count), "{level}");
    }
    for kind in [Slots::None, Slots::Full, Slots::Half, Slots::Pact] {
        assert_eq!(spell_slots(kind, 0), [0; 9]);
        assert_eq!(spell_slots(kind, 99), spell_slots(kind, 20));
    }
}

#[test]
fn classes_in_a_profession() {
    let of = |text| Class::of_profession(text).collect::<Vec<_>>();
    assert_eq!(of("Fighter 3 / Rogue 2"), [(Class::Fighter, Some(3)), (Class::Rogue, Some(2))]);
    assert_eq!(of("Rogue (Thief)"), [(Class::Rogue, None)]);
    assert_eq!(of("innkeeper"), []);
    let rule = Class::Paladin.rule();
    assert_eq!(
        (rule.hit_die, rule.saves, rule.casting),
        (10, [Ability::Wisdom, Ability::Charisma], Some(Ability::Charisma))
    );
}

#[test]
fn tables_become_json() {
    let json = |value: &dyn erased::Json| value.json();
    assert_eq!(json(&WEAPONS[1])["damage"], "1d4");
    assert_eq!(json(&WEAPONS[1])["range"], serde_json::json!([20, 60]));
    assert_eq!(json(&ARMOR[0])["category"], "light");
    assert_eq!(json(&SKILLS[0])["ability"], "dexterity");
    assert_eq!(json(&CONDITIONS[0])["attacks"], "disadvantage");
    assert_eq!(json(&SPELLS[0])["save"], "dexterity");
}

mod erased {
    pub trait Json {
        fn json(&self) -> serde_json::Value;
    }
    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> serde_json::Value {
            serde_json::to_value(self).unwrap_or_default()
        }
    }
}

#[test]
fn the_exact_name_comes_first() {
    let items = ["DAGGER", "dagger", "Dagger of Venom"];
    assert_eq!(find(&items, |i| i, "dagger"), Found::One(&items[1]));
    assert_eq!(find(&items, |i| i, "Dagger"), Found::Several(vec![&items[0], &items[1]]));
    assert_eq!(find(&items, |i| i, "venom"), Found::One(&items[2]));
}

#[test]
fn the_most_dice_and_the_fewest() {
    assert_eq!(DamageDice::parse("200d6").map(|d| d.count()), Some(200));
    assert_eq!(DamageDice::parse("150d6+51d6"), None);
    let count = |text: &str, level| DamageDice::scaled(text, level).map(|d| d.count());
    assert_eq!([1, 2, 3, 4].map(|l| count("ceil(level/2)d6", l)), [1, 1, 2, 2].map(Some));
    assert_eq!([1, 2, 3, 4].map(|l| count("floor(level/2)d6", l)), [0, 1, 1, 2].map(Some));
}

#[test]
fn hands_that_heal() {
    assert_eq!([0, 1, 5, 20, 21].map(lay_on_hands_pool), [0, 5, 25, 100, 100]);
}
