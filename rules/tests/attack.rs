//! Attacks with weapons.

mod support;

use rules::{
    dice::{Given, OutOfDice},
    resolve::{AttackArgs, Circumstances, Cover, OtherWeapon, Outcome, RuleError, StateChange, resolve_attack},
    sheet::{Creature, Feature, Item, Range, Weapon, WeaponAbility, Worn},
    srd::Advantage,
};
use support::*;

/// STR 16 (+3), DEX 14 (+2), level 5 (+3).
fn fighter() -> Creature {
    armed(hero("Fighter", 5, [16, 14, 14, 10, 10, 10]), &["Longsword", "Longbow", "+1 longsword", "Greatsword"])
}

/// STR 8, DEX 18 (+4), level 5 (+3).
fn rogue() -> Creature {
    with_features(
        armed(hero("Rogue", 5, [8, 18, 12, 10, 10, 10]), &["Rapier", "Shortbow", "Club", "Dagger"]),
        &["Sneak Attack"],
    )
}

#[test]
fn a_hit_in_full() {
    let o = attack(&fighter(), &foe(15, 30), &with("Longsword"), &plain(), &[15, 6]);
    assert_eq!(o.check_type, "Longsword Attack");
    assert_eq!(o.components, "STR +3, Prof +3 = +6");
    assert_eq!((o.die_result, o.total_modifier.as_str(), o.total), (15, "+6", 21));
    assert_eq!((o.dc_or_ac.as_str(), o.success, o.outcome.as_str()), ("15", true, "hit"));
    let damage = o.damage.as_ref().unwrap();
    assert_eq!((damage.total_damage, damage.is_crit, damage.taken), (9, false, Some(9)));
    let row = &damage.breakdown[0];
    assert_eq!((row.label.as_str(), row.dice.as_str(), row.flat_bonus, row.subtotal), ("Longsword", "1d8", 3, 9));
    assert_eq!(row.damage_type.as_deref(), Some("slashing"));
    assert_eq!(
        o.raw,
        "CHECK: Longsword Attack\nCOMPONENTS: STR +3, Prof +3 = +6\nROLL: 15 + +6 = 21\nDC/AC: 15\nRESULT: SUCCESS\n\
         DAMAGE: Longsword: 1d8+3 slashing\nNOTES: Hits Foe (AC 15). 9 damage."
    );
    assert_eq!(after(&foe(15, 30), &o).hp, 21);
}

#[test]
fn ties_hit_one_less_misses_and_a_miss_rolls_no_damage() {
    assert!(attack(&fighter(), &foe(15, 9), &with("longsword"), &plain(), &[9, 1]).success);
    let miss = attack(&fighter(), &foe(15, 9), &with("longsword"), &plain(), &[8]);
    assert!(!miss.success && miss.damage.is_none() && miss.effects.is_empty());
    assert!(miss.raw.contains("\nDAMAGE: N/A\n"));
}

#[test]
fn one_misses_and_twenty_hits_and_doubles_dice() {
    assert!(!attack(&fighter(), &foe(2, 9), &with("Greatsword"), &plain(), &[1]).success);
    let o = attack(&fighter(), &foe(40, 90), &with("Greatsword"), &plain(), &[20, 1, 2, 3, 4]);
    let row = row(&o, "Greatsword");
    assert_eq!((row.dice.as_str(), row.flat_bonus, row.subtotal), ("4d6", 3, 13));
    assert!(o.damage.as_ref().unwrap().is_crit);
    assert_eq!(o.outcome, "critical hit");
}

#[test]
fn weapons_are_found_by_name() {
    let f = fighter();
    assert_eq!(attack(&f, &foe(30, 9), &with("Longbow"), &plain(), &[2]).components, "DEX +2, Prof +3 = +5");
    assert_eq!(attack(&f, &foe(30, 9), &with("greatSWORD"), &plain(), &[2]).check_type, "Greatsword Attack");
    assert_eq!(attack(&f, &foe(30, 9), &with("bow"), &plain(), &[2]).check_type, "Longbow Attack");
    assert_eq!(
        attack(&f, &foe(30, 9), &with("+1 longsword"), &plain(), &[2]).components,
        "STR +3, Prof +3, Bonus +1 = +7"
    );
    let o = attack(&f, &foe(30, 9), &with("sword"), &plain(), &[]);
    assert!(o.impossible && !o.success && o.notes.contains("Longsword") && o.notes.contains("Greatsword"));
    assert_eq!(o.raw, format!("CHECK: IMPOSSIBLE\nNOTES: {}", o.notes));
    let o = attack(&f, &foe(30, 9), &with("Halberd"), &plain(), &[]);
    assert!(o.impossible && o.notes.contains("Halberd"));
    assert!(attack(&f, &foe(30, 9), &AttackArgs::default(), &plain(), &[]).impossible);
    let two = armed(hero("Rogue", 1, [10; 6]), &["Dagger", "Dagger"]);
    assert!(!attack(&two, &foe(30, 9), &with("dagger"), &plain(), &[2]).impossible);
}

#[test]
fn what_is_carried_can_be_wielded() {
    let mut f = hero("Fighter", 1, [16, 10, 10, 10, 10, 10]);
    f.inventory = vec![Item { name: "Handaxe".into() }, Item { name: "rope".into() }];
    assert_eq!(attack(&f, &foe(10, 9), &with("handaxe"), &plain(), &[10, 4]).damage.unwrap().total_damage, 7);
    assert!(attack(&f, &foe(10, 9), &with("rope"), &plain(), &[]).impossible);
    let o = attack(&f, &foe(10, 9), &with("unarmed strike"), &plain(), &[10]);
    assert_eq!((o.components.as_str(), total_damage(&o)), ("STR +3, Prof +2 = +5", 4));
    assert!(o.raw.contains("Unarmed Strike: +4 bludgeoning"));
    let o = attack(&f, &foe(10, 9), &with("improvised weapon"), &plain(), &[10, 4]);
    assert_eq!((o.components.as_str(), total_damage(&o)), ("STR +3 = +3", 7));
}

#[test]
fn proficiency_by_name_and_by_category() {
    let mut f = fighter();
    for (listed, weapon, proficient) in [
        (&["longswords"][..], "Longsword", true),
        (&["Longsword"], "+1 longsword", true),
        (&["martial weapons"], "+1 longsword", true),
        (&["Martial"], "Longsword", true),
        (&["simple weapons"], "Longsword", false),
        (&["martial ranged weapons"], "Longsword", false),
        (&["martial ranged weapons"], "Longbow", true),
        (&["crossbows, hand", "longbows"], "Longbow", true),
        (&[], "Longsword", false),
    ] {
        f.weapon_proficiencies = listed.iter().map(|l| (*l).to_owned()).collect();
        let o = attack(&f, &foe(30, 9), &with(weapon), &plain(), &[2]);
        assert_eq!(o.components.contains("Prof"), proficient, "{listed:?} {weapon}");
    }
}

#[test]
fn finesse_takes_the_better_and_strength_when_equal() {
    assert!(attack(&rogue(), &foe(30, 9), &with("Rapier"), &plain(), &[2]).components.starts_with("DEX +4"));
    let even = armed(hero("Rogue", 1, [14, 14, 10, 10, 10, 10]), &["Rapier"]);
    assert!(attack(&even, &foe(30, 9), &with("Rapier"), &plain(), &[2]).components.starts_with("STR +2"));
    let mut odd = hero("Rogue", 1, [14, 8, 10, 10, 10, 10]);
    odd.weapons = vec![Weapon {
        name: "Wand".into(),
        ability: Some(WeaponAbility::None),
        dice: Some("1d6+1".into()),
        damage_type: Some("force".into()),
        ..Weapon::default()
    }];
    let o = attack(&odd, &foe(5, 9), &with("Wand"), &plain(), &[10, 3]);
    assert_eq!((o.components.as_str(), total_damage(&o)), ("NONE +0 = +0", 4));
}

#[test]
fn versatile_with_two_hands_unless_one_holds_a_shield() {
    let mut args = with("Longsword");
    args.weapon = Some("longsword".into());
    args.two_handed = true;
    let f = armed(hero("Fighter", 1, [16, 10, 10, 10, 10, 10]), &["Longsword"]);
    let o = attack(&f, &foe(10, 30), &args, &plain(), &[15, 10]);
    assert_eq!(row(&o, "Longsword").dice, "1d10");
    let mut shielded = f;
    shielded.shield = Some(Worn { name: "shield".into(), ..Worn::default() });
    let o = attack(&shielded, &foe(10, 30), &args, &plain(), &[15, 8]);
    assert_eq!(row(&o, "Longsword").dice, "1d8");
    assert!(has_reason(&o, "shield"));
}

#[test]
fn ranges() {
    let at = |feet| when(|c| c.distance_ft = Some(feet));
    let f = fighter();
    assert_eq!(attack(&f, &foe(30, 9), &with("Longbow"), &at(150), &[2]).advantage, Advantage::None);
    assert_eq!(attack(&f, &foe(30, 9), &with("Longbow"), &at(151), &[2, 3]).advantage, Advantage::Disadvantage);
    assert!(attack(&f, &foe(30, 9), &with("Longbow"), &at(601), &[]).impossible);
    assert!(attack(&f, &foe(30, 9), &with("Greatsword"), &at(10), &[]).impossible);
    let glaive = armed(f.clone(), &["Glaive"]);
    assert!(!attack(&glaive, &foe(30, 9), &with("Glaive"), &at(10), &[2]).impossible);
    // Thrown beyond its reach it still uses Strength, unless it has finesse.
    let axe = armed(f.clone(), &["Handaxe", "Dagger"]);
    let o = attack(&axe, &foe(30, 9), &with("Handaxe"), &at(20), &[2]);
    assert!(o.components.starts_with("STR"));
    assert_eq!(attack(&axe, &foe(30, 9), &with("Handaxe"), &at(60), &[2, 2]).advantage, Advantage::Disadvantage);
    assert!(attack(&axe, &foe(30, 9), &with("Dagger"), &at(65), &[]).impossible);
    // A hostile creature next to the archer, or the target itself.
    let o = attack(&f, &foe(30, 9), &with("Longbow"), &when(|c| c.hostile_adjacent = true), &[2, 3]);
    assert!(has_reason(&o, "disadvantage: a hostile creature is within 5 feet"));
    assert_eq!(attack(&f, &foe(30, 9), &with("Longbow"), &at(5), &[2, 3]).advantage, Advantage::Disadvantage);
    let lance = armed(f, &["Lance"]);
    assert_eq!(attack(&lance, &foe(30, 9), &with("Lance"), &at(5), &[2, 3]).advantage, Advantage::Disadvantage);
}

#[test]
fn advantage_takes_the_higher_and_any_mix_is_neither() {
    let lean = |advantage| Circumstances { advantage, ..Circumstances::default() };
    let o = attack(&fighter(), &foe(30, 9), &with("Longbow"), &lean(Advantage::Advantage), &[7, 12]);
    assert_eq!((o.die_result, o.dice[0].kept, o.dice[1].kept), (12, false, true));
    let o = attack(&fighter(), &foe(30, 9), &with("Longbow"), &lean(Advantage::Disadvantage), &[7, 12]);
    assert_eq!((o.die_result, o.dice.iter().filter(|d| d.kept).count()), (7, 1));
    let target = with_conditions(foe(30, 9), &["restrained", "blinded", "paralyzed"]);
    let poisoned = with_conditions(fighter(), &["poisoned"]);
    let o = attack(&poisoned, &target, &with("Longbow"), &plain(), &[7]);
    assert_eq!(o.advantage, Advantage::None);
    assert_eq!(o.reasons.iter().filter(|r| r.starts_with("advantage")).count(), 3);
    assert!(has_reason(&o, "disadvantage: the attacker is poisoned"));
}

#[test]
fn conditions_of_the_attacker() {
    for (condition, expected) in [
        ("blinded", Advantage::Disadvantage),
        ("frightened", Advantage::Disadvantage),
        ("invisible", Advantage::Advantage),
        ("poisoned", Advantage::Disadvantage),
        ("prone", Advantage::Disadvantage),
        ("restrained", Advantage::Disadvantage),
        ("deafened", Advantage::None),
        ("grappled", Advantage::None),
        ("charmed", Advantage::None),
        ("exhaustion 2", Advantage::None),
        ("exhaustion 3", Advantage::Disadvantage),
    ] {
        let dice = if expected == Advantage::None { &[2][..] } else { &[2, 3] };
        let o = attack(&with_conditions(fighter(), &[condition]), &foe(30, 9), &with("Greatsword"), &plain(), dice);
        assert_eq!(o.advantage, expected, "{condition}");
    }
    for condition in ["incapacitated", "paralyzed", "petrified", "stunned", "unconscious"] {
        let o = attack(&with_conditions(fighter(), &[condition]), &foe(30, 9), &with("Greatsword"), &plain(), &[]);
        assert!(o.impossible, "{condition}");
    }
    let far = when(|c| c.fear_source_visible = false);
    let o = attack(&with_conditions(fighter(), &["frightened"]), &foe(30, 9), &with("Greatsword"), &far, &[2]);
    assert_eq!(o.advantage, Advantage::None);
    let mut charmed = with_conditions(fighter(), &["charmed"]);
    charmed.conditions[0].source = Some("Foe".into());
    assert!(attack(&charmed, &foe(30, 9), &with("Greatsword"), &plain(), &[]).impossible);
}

#[test]
fn conditions_of_the_target() {
    use Advantage::{Advantage as Adv, Disadvantage as Dis, None as No};
    for (condition, near, far) in [
        ("blinded", Adv, Adv),
        ("invisible", Dis, Dis),
        ("paralyzed", Adv, Adv),
        ("petrified", Adv, Adv),
        ("prone", Adv, Dis),
        ("restrained", Adv, Adv),
        ("stunned", Adv, Adv),
        ("unconscious", Adv, No),
        ("grappled", No, No),
        ("poisoned", No, No),
    ] {
        let target = with_conditions(foe(30, 9), &[condition]);
        for (weapon, expected) in [("Greatsword", near), ("Longbow", far)] {
            let dice = if expected == No { &[2][..] } else { &[2, 3] };
            let o = attack(&fighter(), &target, &with(weapon), &plain(), dice);
            assert_eq!(o.advantage, expected, "{condition} {weapon}");
        }
    }
}

#[test]
fn hits_on_the_helpless_from_beside_are_critical() {
    for condition in ["paralyzed", "unconscious"] {
        let target = with_conditions(foe(10, 50), &[condition]);
        let o = attack(&fighter(), &target, &with("Greatsword"), &plain(), &[9, 12, 1, 1, 1, 1]);
        assert!(o.damage.unwrap().is_crit, "{condition}");
    }
    let target = with_conditions(foe(10, 50), &["paralyzed"]);
    let o = attack(&fighter(), &target, &with("Longbow"), &plain(), &[9, 12, 4]);
    assert!(!o.damage.unwrap().is_crit);
}

#[test]
fn cover_and_sight() {
    let behind = |cover| Circumstances { cover, ..Circumstances::default() };
    let f = fighter();
    let half = attack(&f, &foe(15, 9), &with("Longbow"), &behind(Cover::Half), &[2]);
    assert_eq!(half.dc_or_ac, "17");
    // The reason is given only if there is cover.
    let of_cover =
        |o: &Outcome| o.reasons.iter().filter(|r| r.contains("cover")).map(|r| r.to_string()).collect::<Vec<_>>();
    assert_eq!(of_cover(&half), ["AC +2: cover"]);
    assert!(of_cover(&attack(&f, &foe(15, 9), &with("Longbow"), &plain(), &[2])).is_empty());
    assert_eq!(attack(&f, &foe(15, 9), &with("Longbow"), &behind(Cover::ThreeQuarters), &[2]).dc_or_ac, "20");
    assert!(attack(&f, &foe(15, 9), &with("Longbow"), &behind(Cover::Total), &[]).impossible);
    let hidden = when(|c| c.attacker_unseen = true);
    assert_eq!(attack(&f, &foe(30, 9), &with("Longbow"), &hidden, &[2, 3]).advantage, Advantage::Advantage);
    let unseen = when(|c| c.target_unseen = true);
    assert_eq!(attack(&f, &foe(30, 9), &with("Longbow"), &unseen, &[2, 3]).advantage, Advantage::Disadvantage);
}

#[test]
fn small_hands_and_untrained_armor() {
    let mut small = armed(hero("Fighter", 1, [16, 10, 10, 10, 10, 10]), &["Greatsword", "Longsword"]);
    small.size = "small".into();
    let o = attack(&small, &foe(30, 9), &with("Greatsword"), &plain(), &[2, 3]);
    assert!(has_reason(&o, "heavy"));
    attack(&small, &foe(30, 9), &with("Longsword"), &plain(), &[2]);
    let mut wizard = armed(hero("Wizard", 1, [10; 6]), &["Dagger"]);
    wizard.armor = Some(Worn { name: "chain mail".into(), ..Worn::default() });
    let o = attack(&wizard, &foe(30, 9), &with("Dagger"), &plain(), &[2, 3]);
    assert!(has_reason(&o, "not proficient with chain mail"));
    wizard.armor = Some(Worn { name: "chain mail".into(), proficient: Some(true), ..Worn::default() });
    attack(&wizard, &foe(30, 9), &with("Dagger"), &plain(), &[2]);
}

#[test]
fn effects_on_both_sides() {
    let f = with_effects(fighter(), &["Bless", "Bless"]);
    let o = attack(&f, &foe(18, 30), &with("Greatsword"), &plain(), &[10, 3, 1, 1]);
    assert_eq!((o.components.as_str(), o.total, o.success), ("STR +3, Prof +3, Effects +3 = +9", 19, true));
    assert!(o.modifiers.iter().any(|m| m.label == "Bless" && m.value == 3));
    let f = with_effects(fighter(), &["Bane"]);
    assert_eq!(attack(&f, &foe(30, 30), &with("Greatsword"), &plain(), &[10, 3]).total, 13);
    for (effect, ac) in [("Shield", "20"), ("Shield of Faith", "17"), ("Haste", "17"), ("Barkskin", "16")] {
        let o = attack(&fighter(), &with_effects(foe(15, 30), &[effect]), &with("Greatsword"), &plain(), &[2]);
        assert_eq!(o.dc_or_ac, ac, "{effect}");
    }
    let mut mage = hero("Wizard", 1, [10, 16, 10, 16, 10, 10]);
    mage.armor_class = 13;
    let o = attack(&fighter(), &with_effects(mage, &["Mage Armor"]), &with("Greatsword"), &plain(), &[2]);
    assert_eq!(o.dc_or_ac, "16");
    for effect in ["Faerie Fire", "Guiding Bolt", "Reckless Attack"] {
        let o = attack(&fighter(), &with_effects(foe(30, 30), &[effect]), &with("Greatsword"), &plain(), &[2, 3]);
        assert_eq!(o.advantage, Advantage::Advantage, "{effect}");
        let ends = o.effects.iter().any(|c| matches!(c, StateChange::RemoveEffect { .. }));
        assert_eq!(ends, effect == "Guiding Bolt");
    }
    let dodging = with_effects(foe(30, 30), &["Dodge"]);
    let o = attack(&fighter(), &dodging, &with("Greatsword"), &plain(), &[2, 3]);
    assert_eq!(o.advantage, Advantage::Disadvantage);
    let held = with_conditions(dodging, &["grappled"]);
    assert_eq!(attack(&fighter(), &held, &with("Greatsword"), &plain(), &[2]).advantage, Advantage::None);
    let helped = with_effects(fighter(), &["Help"]);
    let o = attack(&helped, &foe(30, 30), &with("Greatsword"), &plain(), &[2, 3]);
    assert!(after(&helped, &o).effects.is_empty());
}

#[test]
fn sneak_attack() {
    let sneak = |weapon: &str| using(weapon, &["Sneak Attack"]);
    let beside = |key: &str| {
        let key = key.to_owned();
        when(|c| {
            c.ally_adjacent = true;
            c.turn_key = Some(key);
        })
    };
    let r = rogue();
    let o = attack(&r, &foe(15, 50), &sneak("Rapier"), &beside("1"), &[10, 5, 1, 2, 3]);
    assert_eq!((row(&o, "Sneak Attack").dice.as_str(), total_damage(&o)), ("3d6", 15));
    let again = attack(&after(&r, &o), &foe(15, 50), &sneak("Rapier"), &beside("1"), &[10, 5]);
    assert!(has_reason(&again, "used this turn"));
    attack(&after(&r, &o), &foe(15, 50), &sneak("Rapier"), &beside("2"), &[10, 5, 1, 2, 3]);
    for (circumstances, weapon, dice, why) in
        [(plain(), "Rapier", &[10, 5][..], "needs advantage"), (beside("1"), "Club", &[19, 2], "finesse or ranged")]
    {
        let o = attack(&r, &foe(15, 50), &sneak(weapon), &circumstances, dice);
        assert!(has_reason(&o, why), "{:?}", o.reasons);
    }
    let mut hindered = beside("1");
    hindered.advantage = Advantage::Disadvantage;
    assert!(has_reason(&attack(&r, &foe(15, 50), &sneak("Rapier"), &hindered, &[12, 11, 5]), "disadvantage"));
    let mut keen = plain();
    keen.advantage = Advantage::Advantage;
    let o = attack(&r, &foe(15, 90), &sneak("Shortbow"), &keen, &[20, 11, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(row(&o, "Sneak Attack").dice, "6d6");
    let mut plain_rogue = r.clone();
    plain_rogue.features.clear();
    assert!(has_reason(
        &attack(&plain_rogue, &foe(15, 50), &sneak("Rapier"), &beside("1"), &[12, 5]),
        "refused: Sneak Attack"
    ));
    let mut written = r;
    written.features[0].scaling_formula = Some("ceil(level/2)d6".into());
    let o = attack(&written, &foe(15, 50), &sneak("Rapier"), &beside("1"), &[10, 5, 1, 2, 3]);
    assert_eq!(row(&o, "Sneak Attack").dice, "3d6");
    // A miss does not use it up.
    assert!(attack(&written, &foe(30, 50), &sneak("Rapier"), &beside("1"), &[2]).effects.is_empty());
}

fn paladin() -> Creature {
    let p = armed(hero("Paladin", 11, [16, 10, 10, 10, 10, 16]), &["Longsword", "Javelin"]);
    with_spells(with_features(p, &["Divine Smite"]), &[], &[(1, 4), (2, 3), (4, 1), (5, 1)])
}

#[test]
fn divine_smite() {
    let p = paladin();
    let smite = |source: &str, kind: &str, dice: &[u32]| {
        let mut target = foe(15, 99);
        target.creature_type = kind.into();
        attack(&p, &target, &using("Longsword", &[source]), &plain(), dice)
    };
    let o = smite("Divine Smite", "humanoid", &[15, 4, 1, 1]);
    assert_eq!(row(&o, "Divine Smite").dice, "2d8");
    assert_eq!(row(&o, "Divine Smite").damage_type.as_deref(), Some("radiant"));
    assert!(spends(&o, 1) && after(&p, &o).slots_left(1) == 3);
    assert_eq!(row(&smite("Divine Smite 2", "humanoid", &[15, 4, 1, 1, 1]), "Divine Smite").dice, "3d8");
    assert_eq!(row(&smite("divine smite 4", "humanoid", &[15, 4, 1, 1, 1, 1, 1]), "Divine Smite").dice, "5d8");
    let capped = smite("Divine Smite 5", "Undead", &[15, 4, 1, 1, 1, 1, 1, 1]);
    assert_eq!(row(&capped, "Divine Smite").dice, "6d8");
    let crit = smite("Divine Smite", "fiend", &[20, 4, 4, 1, 1, 1, 1, 1, 1]);
    assert_eq!(row(&crit, "Divine Smite").dice, "6d8");
    let none = smite("Divine Smite 3", "humanoid", &[15, 4]);
    assert!(has_reason(&none, "no slot of level 3") && none.effects.len() == 1);
    let o = attack(&p, &foe(30, 99), &using("Longsword", &["Divine Smite"]), &plain(), &[2]);
    assert!(o.effects.is_empty(), "a miss spends no slot");
    let thrown = when(|c| c.distance_ft = Some(30));
    let o = attack(&p, &foe(15, 99), &using("Javelin", &["Divine Smite"]), &thrown, &[15, 4]);
    assert!(has_reason(&o, "melee weapon"));
    let mut args = using("Longsword", &["Divine Smite"]);
    args.slot_level = Some(2);
    assert!(spends(&attack(&p, &foe(15, 99), &args, &plain(), &[15, 4, 1, 1, 1]), 2));
}

#[test]
fn what_applies_by_itself() {
    let o = attack(
        &with_features(paladin(), &["Improved Divine Smite"]),
        &foe(15, 99),
        &with("Longsword"),
        &plain(),
        &[15, 4, 7],
    );
    assert_eq!(row(&o, "Improved Divine Smite").subtotal, 7);
    assert!(has_reason(&o, "applied: Improved Divine Smite"));
    let duelist = with_features(fighter(), &["Fighting Style=Dueling"]);
    assert_eq!(total_damage(&attack(&duelist, &foe(10, 99), &with("+1 longsword"), &plain(), &[15, 4])), 10);
    let o = attack(&duelist, &foe(10, 99), &using("+1 longsword", &["Dueling"]), &plain(), &[15, 4]);
    assert_eq!(total_damage(&o), 10, "once, though asked for");
    let two = when(|c| c.other_weapon = Some(OtherWeapon::Named("dagger".into())));
    assert_eq!(total_damage(&attack(&duelist, &foe(10, 99), &with("+1 longsword"), &two, &[15, 4])), 8);
    assert_eq!(total_damage(&attack(&duelist, &foe(10, 99), &with("Greatsword"), &plain(), &[15, 4, 4])), 11);
    let archer = with_features(fighter(), &["Archery"]);
    let o = attack(&archer, &foe(30, 99), &with("Longbow"), &plain(), &[2]);
    assert_eq!((o.components.as_str(), o.total), ("DEX +2, Prof +3, Effects +2 = +7", 9));
    let great = with_features(fighter(), &["Fighting Style: Great Weapon Fighting"]);
    let o = attack(&great, &foe(10, 99), &with("Greatsword"), &plain(), &[15, 1, 6, 2, 1]);
    assert_eq!(row(&o, "Greatsword").rolls, [6, 1]);
    assert_eq!(o.dice.iter().filter(|d| !d.kept).count(), 2);
}

#[test]
fn two_weapons() {
    let off = when(|c| c.off_hand = true);
    let f = armed(hero("Fighter", 1, [16, 10, 10, 10, 10, 10]), &["Shortsword", "Longsword"]);
    assert_eq!(total_damage(&attack(&f, &foe(10, 99), &with("Shortsword"), &off, &[15, 4])), 4);
    let styled = with_features(f.clone(), &["Two-Weapon Fighting"]);
    assert_eq!(total_damage(&attack(&styled, &foe(10, 99), &with("Shortsword"), &off, &[15, 4])), 7);
    assert!(attack(&f, &foe(10, 99), &with("Longsword"), &off, &[]).impossible);
    let weak = armed(hero("Fighter", 1, [6, 6, 10, 10, 10, 10]), &["Shortsword"]);
    assert_eq!(total_damage(&attack(&weak, &foe(5, 99), &with("Shortsword"), &off, &[15, 4])), 2);
    assert_eq!(total_damage(&attack(&weak, &foe(5, 99), &with("Shortsword"), &off, &[15, 1])), 0, "never below 0");
}

#[test]
fn rage() {
    for (level, bonus) in [(1, 2), (8, 2), (9, 3), (15, 3), (16, 4)] {
        let b = with_effects(armed(hero("Barbarian", level, [16, 10, 10, 10, 10, 10]), &["Greataxe"]), &["Rage"]);
        let o = attack(&b, &foe(10, 99), &with("Greataxe"), &plain(), &[15, 5]);
        assert_eq!((row(&o, "Rage").flat_bonus, total_damage(&o)), (bonus, 8 + bonus), "{level}");
    }
    let calm =
        with_features(armed(hero("Barbarian", 1, [16, 10, 10, 10, 10, 10]), &["Greataxe", "Shortbow"]), &["Rage"]);
    let o = attack(&calm, &foe(10, 99), &using("Greataxe", &["Rage"]), &plain(), &[15, 5]);
    assert!(has_reason(&o, "refused: Rage") && total_damage(&o) == 8);
    let o = attack(&with_effects(calm, &["Rage"]), &foe(10, 99), &with("Shortbow"), &plain(), &[15, 5]);
    assert_eq!(total_damage(&o), 5);
}

#[test]
fn more_dice_on_critical_hits() {
    let b = hero("Barbarian", 9, [16, 10, 10, 10, 10, 10]);
    let mut b = with_features(armed(b, &["Greataxe", "Longbow"]), &["Brutal Critical"]);
    b.race = "Half-Orc".into();
    let o = attack(&b, &foe(10, 99), &with("Greataxe"), &plain(), &[20, 1, 2, 3, 4]);
    assert_eq!((row(&o, "Brutal Critical").dice.as_str(), row(&o, "Savage Attacks").dice.as_str()), ("1d12", "1d12"));
    assert_eq!(total_damage(&o), 13);
    attack(&b, &foe(10, 99), &with("Longbow"), &plain(), &[20, 1, 2]);
    attack(&b, &foe(10, 99), &with("Greataxe"), &plain(), &[19, 1]);
}

#[test]
fn champions_score_criticals_with_less() {
    let champion = with_features(fighter(), &["Improved Critical"]);
    assert!(attack(&champion, &foe(10, 99), &with("Longbow"), &plain(), &[19, 1, 1]).damage.unwrap().is_crit);
    assert!(!attack(&champion, &foe(10, 99), &with("Longbow"), &plain(), &[18, 1]).damage.unwrap().is_crit);
    // It does not turn a miss into a hit.
    assert!(!attack(&champion, &foe(40, 99), &with("Longbow"), &plain(), &[19]).success);
    let superior = with_features(fighter(), &["Superior Critical"]);
    assert!(attack(&superior, &foe(10, 99), &with("Longbow"), &plain(), &[18, 1, 1]).damage.unwrap().is_crit);
}

#[test]
fn hunters() {
    let mut ranger =
        with_features(armed(hero("Ranger", 5, [10, 16, 10, 10, 14, 10]), &["Longbow"]), &["Colossus Slayer"]);
    let turn = when(|c| c.turn_key = Some("7".into()));
    let args = using("Longbow", &["Colossus Slayer"]);
    assert!(has_reason(&attack(&ranger, &foe(10, 30), &args, &turn, &[15, 4]), "unhurt"));
    let mut hurt = foe(10, 30);
    hurt.hp = 29;
    let o = attack(&ranger, &hurt, &args, &turn, &[15, 4, 8]);
    assert_eq!(total_damage(&o), 15);
    assert!(has_reason(&attack(&after(&ranger, &o), &hurt, &args, &turn, &[15, 4]), "used this turn"));
    let mark = using("Longbow", &["Hunter's Mark"]);
    assert!(has_reason(&attack(&ranger, &hurt, &mark, &plain(), &[15, 4]), "refused: Hunter's Mark"));
    ranger.concentration = Some(rules::sheet::Concentration { spell: "Hunter's Mark".into() });
    assert_eq!(row(&attack(&ranger, &hurt, &mark, &plain(), &[15, 4, 6]), "Hunter's Mark").dice, "1d6");
    let mut marked = with_effects(foe(10, 30), &["Hunter's Mark"]);
    marked.effects[0].source = Some("hero".into());
    attack(&ranger, &marked, &with("Longbow"), &plain(), &[15, 4, 6]);
}

#[test]
fn sources_of_ones_own() {
    let mut f = fighter();
    for (name, formula) in
        [("Hex", "1d6 necrotic"), ("Great Weapon Master", "+10"), ("Odd", "many"), ("Scaling", "level")]
    {
        f.features.push(Feature { name: name.into(), scaling_formula: Some(formula.into()), ..Feature::default() });
    }
    f = with_features(f, &["Flavour"]);
    let sources = ["Hex", "great weapon master", "Odd", "Flavour", "Unknown", "Scaling", "Hex"];
    let o = attack(&f, &foe(10, 99), &using("Greatsword", &sources), &plain(), &[20, 1, 1, 1, 1, 3, 4]);
    let hex = row(&o, "Hex");
    assert_eq!((hex.dice.as_str(), hex.damage_type.as_deref(), hex.subtotal), ("2d6", Some("necrotic"), 7));
    let master = row(&o, "Great Weapon Master");
    assert_eq!((master.dice.as_str(), master.flat_bonus, master.damage_type.as_deref()), ("", 10, Some("slashing")));
    assert_eq!(row(&o, "Scaling").flat_bonus, 5);
    for refused in ["refused: Odd", "refused: Flavour", "refused: Unknown", "refused: Hex"] {
        assert!(has_reason(&o, refused), "{refused}: {:?}", o.reasons);
    }
}

#[test]
fn npcs_attack_from_their_stat_block() {
    let goblin = with_attack(foe(15, 7), "Scimitar", 4, "1d6+2", "slashing");
    let mut target = hero("Fighter", 1, [10; 6]);
    target.armor_class = 16;
    let o = attack(&goblin, &target, &AttackArgs::default(), &plain(), &[12, 5]);
    assert_eq!((o.components.as_str(), o.total, total_damage(&o)), ("Bonus +4 = +4", 16, 7));
    let o = attack(&goblin, &target, &with("scimitar"), &plain(), &[20, 5, 6]);
    assert_eq!((row(&o, "Scimitar").dice.as_str(), total_damage(&o)), ("2d6", 13));
    let two = with_attack(goblin.clone(), "Shortbow", 4, "1d6+2", "piercing");
    let o = attack(&two, &target, &AttackArgs::default(), &plain(), &[]);
    assert!(o.impossible && o.notes.contains("Scimitar, Shortbow"));
    let mut two = two;
    two.attacks[1].range = Some(Range { normal: 80, long: Some(320) });
    let far = when(|c| c.distance_ft = Some(100));
    assert_eq!(attack(&two, &target, &with("Shortbow"), &far, &[2, 3]).advantage, Advantage::Disadvantage);
    let odd = with_attack(foe(15, 7), "Gaze", 4, "as the spell", "psychic");
    assert!(attack(&odd, &target, &with("Gaze"), &plain(), &[]).impossible);
    let flat = with_attack(foe(15, 7), "Bite", 0, "1", "piercing");
    assert_eq!(total_damage(&attack(&flat, &target, &with("Bite"), &plain(), &[20])), 1);
}

#[test]
fn monks() {
    let mut monk = with_features(
        armed(hero("Monk", 5, [10, 16, 10, 10, 10, 10]), &["Quarterstaff", "Shortsword"]),
        &["Martial Arts"],
    );
    let o = attack(&monk, &foe(10, 30), &with("unarmed strike"), &plain(), &[15, 5]);
    assert_eq!((row(&o, "Unarmed Strike").dice.as_str(), total_damage(&o)), ("1d6", 8));
    assert!(attack(&monk, &foe(30, 30), &with("Quarterstaff"), &plain(), &[5]).components.starts_with("DEX"));
    monk.level = 11;
    assert_eq!(row(&attack(&monk, &foe(10, 30), &with("Shortsword"), &plain(), &[15, 5]), "Shortsword").dice, "1d8");
    monk.armor = Some(Worn { name: "leather".into(), proficient: Some(true), ..Worn::default() });
    assert!(attack(&monk, &foe(30, 30), &with("Quarterstaff"), &plain(), &[5]).components.starts_with("STR"));
}

#[test]
fn lucky_halflings_roll_a_one_again() {
    let mut r = rogue();
    r.race = "Lightfoot Halfling".into();
    let o = attack(&r, &foe(10, 30), &with("Rapier"), &plain(), &[1, 15, 5]);
    assert_eq!((o.die_result, o.dice[0].kept, o.dice[1].kept), (15, false, true));
    let lean = Circumstances { advantage: Advantage::Disadvantage, ..Circumstances::default() };
    let o = attack(&r, &foe(10, 30), &with("Rapier"), &lean, &[1, 12, 15, 5]);
    assert_eq!(o.die_result, 12);
    assert!(!attack(&r, &foe(10, 30), &with("Rapier"), &plain(), &[1, 1]).success, "once only");
}

#[test]
fn nets_blowguns_and_water() {
    let f = armed(fighter(), &["Net", "Blowgun", "Spear", "Mace"]);
    let near = when(|c| c.distance_ft = Some(10));
    let o = attack(&f, &foe(10, 30), &with("Net"), &near, &[15, 15]);
    assert!(o.damage.is_none() && after(&foe(10, 30), &o).has_condition("restrained"));
    assert_eq!(total_damage(&attack(&f, &foe(10, 30), &with("Blowgun"), &plain(), &[15])), 3);
    let wet = when(|c| c.underwater = true);
    assert_eq!(attack(&f, &foe(30, 30), &with("Spear"), &wet, &[2]).advantage, Advantage::None);
    assert_eq!(attack(&f, &foe(30, 30), &with("Mace"), &wet, &[2, 2]).advantage, Advantage::Disadvantage);
    let far = when(|c| {
        c.underwater = true;
        c.distance_ft = Some(160);
    });
    let o = attack(&f, &foe(10, 30), &with("Longbow"), &far, &[]);
    assert_eq!((o.success, o.die_result, o.automatic), (false, 0, Some(rules::resolve::Automatic::Failure)));
}

#[test]
fn uncanny_dodge_halves() {
    let target = with_features(hero("Rogue", 5, [10; 6]), &["Uncanny Dodge"]);
    let react = when(|c| c.reactions = vec!["Uncanny Dodge".into()]);
    let o = attack(&fighter(), &target, &with("Longbow"), &react, &[15, 5]);
    assert_eq!((total_damage(&o), taken(&o)), (7, 3));
    let o = attack(&fighter(), &foe(10, 20), &with("Longbow"), &react, &[15, 5]);
    assert_eq!(taken(&o), 7);
    assert!(has_reason(&o, "refused: Uncanny Dodge"));
}

#[test]
fn dice_that_run_out_are_an_error() {
    let run =
        |dice: &[u32]| resolve_attack(&fighter(), &foe(10, 20), &with("Longbow"), &plain(), &mut Given::new(dice));
    assert_eq!(run(&[]), Err(RuleError::Dice(OutOfDice::TooFew { index: 0, faces: 20 })));
    assert_eq!(run(&[15]), Err(RuleError::Dice(OutOfDice::TooFew { index: 1, faces: 8 })));
    assert_eq!(run(&[21]), Err(RuleError::Dice(OutOfDice::OutOfRange { index: 0, value: 21, faces: 20 })));
}

#[test]
fn defense_counts_unless_the_sheet_counted_it() {
    let mut target = with_features(hero("Fighter", 1, [10; 6]), &["Fighting Style=Defense"]);
    target.armor = Some(Worn { name: "Chain Mail".into(), ..Worn::default() });
    for (written, counts) in [(16, "17"), (17, "17")] {
        target.armor_class = written;
        assert_eq!(attack(&fighter(), &target, &with("Longbow"), &plain(), &[2]).dc_or_ac, counts);
    }
}

#[test]
fn two_hands_on_a_rapier_change_nothing() {
    let duelist = with_features(rogue(), &["Dueling", "Great Weapon Fighting"]);
    let args = AttackArgs { two_handed: true, ..with("Rapier") };
    let o = attack(&duelist, &foe(10, 30), &args, &plain(), &[15, 1]);
    assert_eq!((row(&o, "Rapier").dice.as_str(), total_damage(&o)), ("1d8", 7));
}
