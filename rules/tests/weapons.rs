//! Attacks with weapons in unusual hands, at unusual distances and in unusual places.

mod support;

use rules::{
    resolve::{Automatic, Circumstances, OtherWeapon, Outcome},
    sheet::{Concentration, Creature, Feature, Item, Life, NpcAttack, Range, Weapon},
    srd::Advantage,
};
use support::*;

/// STR 16 (+3), DEX 14 (+2), level 5 (+3).
fn fighter(weapons: &[&str]) -> Creature {
    armed(hero("Fighter", 5, [16, 14, 14, 10, 10, 10]), weapons)
}

fn at(feet: i32) -> Circumstances {
    when(|c| c.distance_ft = Some(feet))
}

fn has_row(outcome: &Outcome, label: &str) -> bool {
    outcome.damage.as_ref().is_some_and(|d| d.breakdown.iter().any(|r| r.label == label))
}

#[test]
fn magic_weapons_harm_who_resists_the_others() {
    let ghost = Creature { resistances: vec!["slashing from nonmagical attacks".into()], ..foe(10, 90) };
    let mut f = fighter(&["Longsword", "+1 longsword", "Greatsword"]);
    f.weapons.push(Weapon { name: "Moonblade".into(), dice: Some("1d8 slashing".into()), ..Weapon::default() });
    f.weapons[3].properties = vec!["Magical".into()];
    for (weapon, expected) in [("Longsword", 4), ("+1 longsword", 9), ("Moonblade", 8)] {
        assert_eq!(taken(&attack(&f, &ghost, &with(weapon), &plain(), &[15, 5])), expected, "{weapon}");
    }
}

#[test]
fn properties_on_the_sheet() {
    let duelist = with_features(fighter(&[]), &["Dueling"]);
    let dealt = |properties: &[&str]| {
        let mut f = duelist.clone();
        let properties = properties.iter().map(|p| (*p).to_owned()).collect();
        f.weapons = vec![Weapon { name: "Oddity".into(), dice: Some("1d8".into()), properties, ..Weapon::default() }];
        total_damage(&attack(&f, &foe(10, 90), &with("Oddity"), &plain(), &[15, 1]))
    };
    assert_eq!((dealt(&[]), dealt(&["light"])), (6, 6));
    assert_eq!((dealt(&["Two handed"]), dealt(&["two-handed"])), (4, 4), "no style for one hand");
    let mut quick = armed(hero("Rogue", 1, [8, 18, 10, 10, 10, 10]), &[]);
    quick.weapons = vec![Weapon { name: "Oddity".into(), ..Weapon::default() }];
    quick.weapons[0].properties = vec!["Finesse (quick)".into()];
    assert!(attack(&quick, &foe(30, 9), &with("Oddity"), &plain(), &[2]).components.starts_with("DEX +4"));
    quick.weapons[0].properties = vec!["light".into()];
    assert!(attack(&quick, &foe(30, 9), &with("Oddity"), &plain(), &[2]).components.starts_with("STR -1"));
}

#[test]
fn weapons_that_the_tables_do_not_know() {
    let range = Some(Range { normal: 30, long: Some(60) });
    let mut f = fighter(&["Cudgel"]);
    f.weapons.push(Weapon { name: "Boomstick".into(), range, ..Weapon::default() });
    f.weapons.push(Weapon { name: "Chakram".into(), range, properties: vec!["thrown".into()], ..Weapon::default() });
    let pressed = when(|c| c.hostile_adjacent = true);
    for (weapon, ability, lean) in [
        ("Cudgel", "STR", Advantage::None),
        ("Boomstick", "DEX", Advantage::Disadvantage),
        ("Chakram", "STR", Advantage::None),
    ] {
        let dice = if lean == Advantage::None { &[2][..] } else { &[2, 3] };
        let o = attack(&f, &foe(30, 9), &with(weapon), &pressed, dice);
        assert!(o.advantage == lean && o.components.starts_with(ability), "{weapon}: {}", o.components);
    }
}

#[test]
fn what_is_thrown() {
    let f = fighter(&["Handaxe"]);
    // Within reach it is a melee attack.
    assert_eq!(attack(&f, &foe(30, 9), &with("Handaxe"), &at(5), &[2]).advantage, Advantage::None);
    // Any object can be thrown, to 20 feet or with disadvantage to 60.
    let thrown = |feet, dice: &[u32]| attack(&f, &foe(30, 9), &with("an improvised weapon"), &at(feet), dice);
    assert!(thrown(5, &[2]).components.starts_with("STR +3"));
    let o = thrown(20, &[2]);
    assert!(o.components.starts_with("DEX +2") && o.advantage == Advantage::None, "{}", o.components);
    assert_eq!(thrown(21, &[2, 2]).advantage, Advantage::Disadvantage);
    assert!(thrown(61, &[]).impossible);
}

#[test]
fn an_npc_throws_what_it_also_stabs_with() {
    let mut orc = foe(13, 15);
    orc.attacks = vec![NpcAttack {
        name: "Javelin".into(),
        bonus: 5,
        damage: "1d6+3".into(),
        damage_type: "piercing".into(),
        reach_ft: Some(5),
        range: Some(Range { normal: 30, long: Some(120) }),
    }];
    let target = hero("Fighter", 1, [10; 6]);
    let lean = |feet, dice: &[u32]| attack(&orc, &target, &with("Javelin"), &at(feet), dice).advantage;
    assert_eq!(
        (lean(5, &[2]), lean(30, &[2]), lean(31, &[2, 2])),
        (Advantage::None, Advantage::None, Advantage::Disadvantage)
    );
    assert!(attack(&orc, &target, &with("Javelin"), &at(121), &[]).impossible);
    let o = attack(&orc, &target, &with("Halberd"), &plain(), &[]);
    assert_eq!(o.notes, "Foe has no weapon called \"Halberd\"");
}

#[test]
fn what_is_carried_is_found_by_a_part_of_its_name() {
    let mut f = fighter(&[]);
    f.inventory = vec![Item { name: "Silvered Handaxe".into() }];
    for name in ["silvered handaxe", "silvered", "my old handaxe"] {
        assert_eq!(attack(&f, &foe(30, 9), &with(name), &plain(), &[2]).check_type, "Silvered Handaxe Attack");
    }
}

#[test]
fn the_other_hand() {
    let duelist = with_features(fighter(&["Longsword", "Lance", "Dart", "Shortsword", "Hand Crossbow"]), &["Dueling"]);
    let holding = |other: OtherWeapon| when(|c| c.other_weapon = Some(other));
    for (other, dealt) in [
        (OtherWeapon::Held(false), 9),
        (OtherWeapon::Held(true), 7),
        (OtherWeapon::Named(" ".into()), 9),
        (OtherWeapon::Named("club".into()), 7),
    ] {
        let o = attack(&duelist, &foe(10, 90), &with("Longsword"), &holding(other.clone()), &[15, 4]);
        assert_eq!(total_damage(&o), dealt, "{other:?}");
    }
    // A rider holds a lance in one hand.
    let riding = when(|c| c.mounted = true);
    assert_eq!(total_damage(&attack(&duelist, &foe(10, 90), &with("Lance"), &riding, &[15, 4])), 9);
    assert_eq!(total_damage(&attack(&duelist, &foe(10, 90), &with("Lance"), &plain(), &[15, 4])), 7);
    // The style is one for melee weapons.
    assert_eq!(total_damage(&attack(&duelist, &foe(10, 90), &with("Dart"), &plain(), &[15, 4])), 7);
    assert_eq!(total_damage(&attack(&duelist, &foe(10, 90), &with("fists"), &plain(), &[15])), 4);
    // Two-weapon fighting needs light melee weapons in both hands.
    let off = |other: &str| {
        when(|c| {
            c.off_hand = true;
            c.other_weapon = Some(OtherWeapon::Named(other.into()));
        })
    };
    assert!(attack(&duelist, &foe(10, 90), &with("Shortsword"), &off("dagger"), &[15, 4]).success);
    for (weapon, other) in
        [("Shortsword", "longsword"), ("Shortsword", "hand crossbow"), ("Hand Crossbow", "dagger"), ("fists", "dagger")]
    {
        let o = attack(&duelist, &foe(10, 90), &with(weapon), &off(other), &[]);
        assert!(o.impossible, "{weapon} and {other}");
    }
}

#[test]
fn archery_is_for_ranged_weapons() {
    let archer = with_features(fighter(&["Longsword", "Handaxe"]), &["Archery"]);
    for (weapon, feet) in [("Longsword", 5), ("Handaxe", 20)] {
        let o = attack(&archer, &foe(30, 9), &with(weapon), &at(feet), &[2]);
        assert_eq!(o.components, "STR +3, Prof +3 = +6", "{weapon}");
    }
}

#[test]
fn monks_are_quick_with_their_own_weapons_only() {
    let monk = |level| {
        let m = hero("Monk", level, [10, 16, 10, 10, 10, 10]);
        with_features(armed(m, &["Longsword", "Greatclub", "Shortsword", "Quarterstaff"]), &["Martial Arts"])
    };
    for weapon in ["Longsword", "Greatclub"] {
        let o = attack(&monk(5), &foe(30, 9), &with(weapon), &plain(), &[2]);
        assert!(o.components.starts_with("STR"), "{weapon}");
    }
    let o = attack(&monk(1), &foe(10, 90), &with("Shortsword"), &plain(), &[15, 4]);
    assert_eq!(row(&o, "Shortsword").dice, "1d6", "better than the monk's d4");
    let o = attack(&monk(5), &foe(10, 90), &with("Quarterstaff"), &plain(), &[15, 4]);
    assert!(!has_reason(&o, "Martial Arts"), "the dice are equal");
}

#[test]
fn strength_in_melee() {
    // What is quick is no use to a raging barbarian.
    let b = armed(hero("Barbarian", 5, [10, 18, 10, 10, 10, 10]), &["Rapier"]);
    let quick = with_effects(b, &["Rage", "Reckless Attack"]);
    let o = attack(&quick, &foe(10, 90), &with("Rapier"), &plain(), &[15, 4]);
    assert!(o.advantage == Advantage::None && !has_row(&o, "Rage"), "{:?}", o.reasons);
    let b = armed(hero("Barbarian", 5, [16, 10, 10, 10, 10, 10]), &["Greataxe", "Handaxe", "Longbow"]);
    let strong = with_effects(b, &["Rage", "Reckless Attack"]);
    let o = attack(&strong, &foe(10, 90), &with("Greataxe"), &plain(), &[15, 3, 4]);
    assert!(o.advantage == Advantage::Advantage && has_row(&o, "Rage"));
    let o = attack(&strong, &foe(10, 90), &with("Handaxe"), &at(20), &[15, 4]);
    assert!(o.advantage == Advantage::None && !has_row(&o, "Rage"), "thrown");
    assert_eq!(attack(&strong, &foe(10, 90), &with("Longbow"), &plain(), &[15, 4]).advantage, Advantage::None);
}

#[test]
fn near_is_within_five_feet() {
    let f = fighter(&["Glaive"]);
    let prone = with_conditions(foe(30, 90), &["prone"]);
    assert_eq!(attack(&f, &prone, &with("Glaive"), &at(5), &[2, 3]).advantage, Advantage::Advantage);
    assert_eq!(attack(&f, &prone, &with("Glaive"), &at(10), &[2, 3]).advantage, Advantage::Disadvantage);
    let held = with_conditions(foe(10, 90), &["paralyzed"]);
    assert_eq!(attack(&f, &held, &with("Glaive"), &at(5), &[9, 12, 1, 1]).outcome, "critical hit");
    assert_eq!(attack(&f, &held, &with("Glaive"), &at(10), &[9, 12, 1]).outcome, "hit");
}

#[test]
fn who_sees_whom() {
    use Advantage::{Advantage as Adv, Disadvantage as Dis};
    let f = fighter(&["Longsword"]);
    let lean = |actor: &Creature, target: &Creature, circumstances: &Circumstances| {
        attack(actor, target, &with("Longsword"), circumstances, &[2, 3]).advantage
    };
    // Faerie Fire shows the invisible, but only to those who see.
    let outlined = with_effects(with_conditions(foe(30, 9), &["invisible"]), &["Faerie Fire"]);
    assert_eq!(lean(&f, &outlined, &plain()), Adv);
    let glowing = with_effects(foe(30, 9), &["Faerie Fire"]);
    assert_eq!(lean(&with_conditions(f.clone(), &["blinded"]), &glowing, &plain()), Dis);
    assert_eq!(lean(&f, &glowing, &when(|c| c.target_unseen = true)), Dis);
    // Nobody dodges what he does not see.
    let dodging = with_effects(foe(30, 9), &["Dodge"]);
    assert_eq!(lean(&with_conditions(f.clone(), &["invisible"]), &dodging, &plain()), Adv);
    assert_eq!(lean(&f, &dodging, &when(|c| c.attacker_unseen = true)), Adv);
    assert_eq!(lean(&f, &with_conditions(dodging, &["poisoned"]), &plain()), Dis);
    let stunned = with_effects(with_conditions(foe(30, 9), &["stunned"]), &["Dodge"]);
    assert_eq!(lean(&f, &stunned, &plain()), Adv);
}

#[test]
fn shots_under_water() {
    let f = fighter(&["Longbow", "Light Crossbow", "Dart", "Javelin"]);
    let wet = |feet| {
        when(|c| {
            c.underwater = true;
            c.distance_ft = Some(feet);
        })
    };
    let o = attack(&f, &foe(30, 9), &with("Longbow"), &wet(150), &[2, 3]);
    assert_eq!((o.advantage, o.automatic), (Advantage::Disadvantage, None));
    for (weapon, normal) in [("Light Crossbow", 80), ("Dart", 20), ("Javelin", 30)] {
        let o = attack(&f, &foe(30, 9), &with(weapon), &wet(normal), &[2]);
        assert_eq!((o.advantage, o.automatic), (Advantage::None, None), "{weapon}");
        let o = attack(&f, &foe(30, 9), &with(weapon), &wet(normal + 1), &[]);
        assert_eq!(o.automatic, Some(Automatic::Failure), "{weapon}");
    }
}

#[test]
fn sources_that_need_more() {
    let low = with_features(armed(hero("Barbarian", 8, [16, 10, 10, 10, 10, 10]), &["Greataxe"]), &["Brutal Critical"]);
    let o = attack(&low, &foe(10, 90), &with("Greataxe"), &plain(), &[20, 1, 2]);
    assert!(!has_row(&o, "Brutal Critical"));
    let paladin = with_features(fighter(&["Longsword"]), &["Improved Divine Smite"]);
    assert!(!has_row(&attack(&paladin, &foe(10, 90), &with("fists"), &plain(), &[15]), "Improved Divine Smite"));
    // A bite is neither a finesse weapon nor a ranged one.
    let wolf = with_features(with_attack(foe(13, 11), "Bite", 4, "2d4+2", "piercing"), &["Sneak Attack"]);
    let beside = when(|c| c.ally_adjacent = true);
    let o = attack(&wolf, &hero("Fighter", 1, [10; 6]), &using("Bite", &["Sneak Attack"]), &beside, &[15, 1, 1]);
    assert!(has_reason(&o, "finesse or ranged"), "{:?}", o.reasons);
}

#[test]
fn sources_that_are_written_on_the_sheet() {
    let mut f = fighter(&["Longsword"]);
    f.features.push(Feature {
        name: "Brutal Critical".into(),
        scaling_formula: Some("1d4".into()),
        ..Feature::default()
    });
    let o = attack(&f, &foe(10, 90), &using("Longsword", &["Brutal Critical"]), &plain(), &[15, 4, 3]);
    assert_eq!(row(&o, "Brutal Critical").subtotal, 3);
    f.features[0].scaling_formula = Some("floor(level/10)d6+2".into());
    let o = attack(&f, &foe(10, 90), &using("Longsword", &["Brutal Critical"]), &plain(), &[15, 4]);
    assert_eq!((row(&o, "Brutal Critical").dice.as_str(), total_damage(&o)), ("", 9), "no dice yet");
    let o = attack(&f, &foe(10, 90), &using("Longsword", &["Cleaving"]), &plain(), &[15, 4]);
    assert!(has_reason(&o, "refused: Cleaving, it is not on the sheet"), "{:?}", o.reasons);
}

#[test]
fn a_hunter_knows_its_prey() {
    let bow = armed(hero("Ranger", 5, [10, 16, 10, 10, 14, 10]), &["Longbow"]);
    let hurt = Creature { hp: 29, ..foe(10, 30) };
    let slayer = with_features(bow.clone(), &["Hunter's Prey=Colossus Slayer"]);
    let asked = using("Longbow", &["Colossus Slayer"]);
    assert_eq!(row(&attack(&slayer, &hurt, &asked, &plain(), &[15, 4, 8]), "Colossus Slayer").subtotal, 8);
    let other = with_features(bow.clone(), &["Hunter's Prey=Horde Breaker"]);
    assert!(has_reason(&attack(&other, &hurt, &asked, &plain(), &[15, 4]), "not on the sheet"));
    // The mark of somebody else, or another effect of the ranger's own, is no mark.
    for (effect, source) in [("Hunter's Mark", "somebody"), ("Faerie Fire", "hero")] {
        let mut target = with_effects(foe(10, 30), &[effect]);
        target.effects[0].source = Some(source.into());
        let dice = if effect == "Faerie Fire" { &[15, 3, 4][..] } else { &[15, 4] };
        assert!(!has_row(&attack(&bow, &target, &with("Longbow"), &plain(), dice), "Hunter's Mark"), "{effect}");
    }
    let marking = Creature { concentration: Some(Concentration { spell: "Hunter's Mark".into() }), ..bow };
    let o = attack(&marking, &foe(10, 30), &using("fists", &["Hunter's Mark"]), &plain(), &[15]);
    assert!(has_reason(&o, "it needs a weapon"), "{:?}", o.reasons);
}

#[test]
fn blows_that_spare() {
    let f = fighter(&["Longsword", "Longbow"]);
    let sparing = when(|c| c.knock_out = true);
    for (weapon, circumstances, life) in [
        ("Longsword", &sparing, Life::Stable),
        ("Longbow", &sparing, Life::Dead),
        ("Longsword", &plain(), Life::Dead),
        ("Longbow", &plain(), Life::Dead),
    ] {
        let o = attack(&f, &foe(10, 3), &with(weapon), circumstances, &[15, 4]);
        assert_eq!(after(&foe(10, 3), &o).life(), life, "{weapon}");
    }
}

#[test]
fn nets_hold_what_is_not_too_large() {
    let f = fighter(&["Net"]);
    for (size, held) in [("tiny", true), ("large", true), ("huge", false), ("gargantuan", false)] {
        let target = Creature { size: size.into(), ..foe(10, 90) };
        let o = attack(&f, &target, &with("Net"), &plain(), &[15]);
        assert_eq!(after(&target, &o).has_condition("restrained"), held, "{size}");
    }
    let ooze = Creature { condition_immunities: vec!["restrained".into()], ..foe(10, 90) };
    assert!(!after(&ooze, &attack(&f, &ooze, &with("Net"), &plain(), &[15])).has_condition("restrained"));
}

#[test]
fn silvered_and_adamantine_weapons_harm_who_resists_others() {
    let wolf = Creature {
        immunities: vec![
            "bludgeoning, piercing, and slashing from nonmagical attacks not made with silvered weapons".into(),
        ],
        ..foe(10, 90)
    };
    let golem =
        Creature { resistances: vec!["slashing from nonmagical attacks that aren't adamantine".into()], ..foe(10, 90) };
    let ghost = Creature { resistances: vec!["slashing from nonmagical attacks".into()], ..foe(10, 90) };
    let mut f = fighter(&["Longsword", "Silvered Longsword", "Adamantine Longsword", "+1 longsword"]);
    f.weapons.push(Weapon { name: "Moonblade".into(), dice: Some("1d8 slashing".into()), ..Weapon::default() });
    f.weapons[4].properties = vec!["Silvered".into()];
    // 5 on the die, +3 for Strength, +1 for magic.
    for (weapon, expected) in [
        ("Longsword", [0, 4, 4]),
        ("Silvered Longsword", [8, 4, 4]),
        ("Adamantine Longsword", [0, 8, 4]),
        ("+1 longsword", [9, 9, 9]),
        ("Moonblade", [8, 4, 4]),
    ] {
        let dealt = [&wolf, &golem, &ghost].map(|target| taken(&attack(&f, target, &with(weapon), &plain(), &[15, 5])));
        assert_eq!(dealt, expected, "{weapon}");
    }
}

#[test]
fn a_material_takes_no_property_away() {
    let mut rogue = armed(hero("Rogue", 3, [8, 18, 10, 10, 10, 10]), &["rapier"]);
    rogue.weapon_proficiencies = vec!["rapiers".into()];
    let components = |properties: &[&str]| {
        let mut rogue = rogue.clone();
        rogue.weapons[0].properties = properties.iter().map(|p| (*p).to_owned()).collect();
        attack(&rogue, &foe(30, 9), &with("rapier"), &plain(), &[2]).components
    };
    let own = components(&[]);
    assert!(own.starts_with("DEX +4"), "{own}");
    for marks in [&["silvered"][..], &["Adamantine"], &["magical"], &["silvered", "magic"], &["Mithral (light)"]] {
        assert_eq!(components(marks), own, "{marks:?}");
    }
    // Properties replace those of the table.
    assert!(components(&["heavy"]).starts_with("STR -1"));
    assert!(components(&["heavy", "silvered"]).starts_with("STR -1"));
}

/// All dice of the weapon, those of a critical hit included.
#[test]
fn great_weapon_fighting_rerolls_the_dice_that_a_critical_hit_adds() {
    let mut fighter = fighter(&["greataxe"]);
    fighter.race = "half-orc".into();
    let great = with_features(fighter, &["Fighting Style: Great Weapon Fighting", "Savage Attacks"]);
    // 5 and 7 for the axe; a 1 for Savage Attacks, rerolled to 9; +3.
    let o = attack(&great, &foe(15, 60), &with("greataxe"), &plain(), &[20, 5, 7, 1, 9]);
    assert_eq!(total_damage(&o), 24);
    assert_eq!(row(&o, "Savage Attacks").rolls, [9]);
    assert!(o.dice.iter().any(|die| die.value == 1 && !die.kept), "{:?}", o.dice);
    // In one hand, or without the style, a 1 stays.
    let mut plain_one = great.clone();
    plain_one.features.retain(|f| f.name == "Savage Attacks");
    assert_eq!(
        row(&attack(&plain_one, &foe(15, 60), &with("greataxe"), &plain(), &[20, 5, 7, 1]), "Savage Attacks").rolls,
        [1]
    );
}
