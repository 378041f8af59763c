//! Attacks with spells, saves against them, and their effects.

mod support;

use rules::{
    dice::Given,
    resolve::{AttackArgs, Automatic, Circumstances, Cover, Outcome, StateChange, resolve_area_spell, resolve_attack},
    sheet::{Concentration, Creature, KnownSpell, Life, Worn},
    srd::Advantage,
};
use support::*;

/// INT 18 (+4), level 5 (+3): attack +7, DC 15.
fn wizard() -> Creature {
    let w = hero("Wizard", 5, [8, 14, 12, 18, 10, 10]);
    with_spells(
        w,
        &[
            "Fire Bolt",
            "Fireball",
            "Magic Missile",
            "Scorching Ray",
            "Mage Armor",
            "Haste",
            "Hold Person",
            "Shield",
            "Acid Splash",
            "Mending",
        ],
        &[(1, 4), (2, 3), (3, 2)],
    )
}

fn cleric() -> Creature {
    let c = hero("Cleric", 5, [10, 10, 10, 10, 16, 10]);
    let spells =
        ["Sacred Flame", "Cure Wounds", "Healing Word", "Bless", "Guiding Bolt", "Inflict Wounds", "Spiritual Weapon"];
    with_spells(c, &spells, &[(1, 4), (2, 3), (3, 2)])
}

fn warlock(level: i32) -> Creature {
    let w = hero("Warlock", level, [10, 10, 10, 10, 10, 16]);
    with_spells(w, &["Eldritch Blast", "Hellish Rebuke"], &[(3, 2)])
}

#[test]
fn a_spell_attack() {
    let o = attack(&wizard(), &foe(15, 50), &casting("Fire Bolt", None), &plain(), &[8, 3, 4]);
    assert_eq!(o.check_type, "Fire Bolt Spell Attack");
    assert_eq!((o.components.as_str(), o.total, o.dc_or_ac.as_str()), ("INT +4, Prof +3 = +7", 15, "15"));
    assert_eq!((row(&o, "Fire Bolt").dice.as_str(), total_damage(&o)), ("2d10", 7));
    let o = attack(&wizard(), &foe(15, 50), &casting("fire bolt", None), &plain(), &[20, 1, 1, 1, 1]);
    assert_eq!(row(&o, "Fire Bolt").dice, "4d10");
    // By the weapon's name, with and without the flag.
    let flagged = AttackArgs { is_spell_attack: true, ..with("Fire Bolt") };
    assert!(attack(&wizard(), &foe(30, 9), &flagged, &plain(), &[2]).check_type.contains("Spell"));
    assert!(attack(&wizard(), &foe(30, 9), &with("Fire Bolt"), &plain(), &[2]).check_type.contains("Spell"));
    let crowded = when(|c| c.hostile_adjacent = true);
    let o = attack(&wizard(), &foe(30, 9), &casting("Fire Bolt", None), &crowded, &[2, 3]);
    assert_eq!(o.advantage, Advantage::Disadvantage);
}

#[test]
fn cantrips_grow() {
    for (level, dice) in [(1, "1d10"), (4, "1d10"), (5, "2d10"), (11, "3d10"), (17, "4d10"), (20, "4d10")] {
        let mut w = wizard();
        w.level = level;
        let count = dice[..1].parse::<usize>().unwrap();
        let mut rolls = vec![19];
        rolls.extend(std::iter::repeat_n(5, count));
        assert_eq!(
            row(&attack(&w, &foe(5, 99), &casting("Fire Bolt", None), &plain(), &rolls), "Fire Bolt").dice,
            dice
        );
    }
}

#[test]
fn beams_are_attacks_of_their_own() {
    let o = attack(&warlock(5), &foe(15, 50), &casting("Eldritch Blast", None), &plain(), &[15, 3, 7]);
    assert_eq!(o.attacks.len(), 2);
    assert_eq!((o.attacks[0].success, o.attacks[1].success), (true, false));
    assert_eq!((o.die_result, o.success, total_damage(&o)), (15, true, 7));
    assert!(attack(&warlock(1), &foe(15, 50), &casting("Eldritch Blast", None), &plain(), &[15, 7]).attacks.is_empty());
    let o =
        attack(&warlock(17), &foe(15, 99), &casting("Eldritch Blast", None), &plain(), &[20, 3, 15, 16, 1, 2, 3, 4]);
    assert_eq!((o.attacks.len(), total_damage(&o)), (4, 10));
    assert!(o.attacks[0].damage.as_ref().unwrap().is_crit && !o.attacks[2].damage.as_ref().unwrap().is_crit);
    let agonizing = with_features(warlock(5), &["Agonizing Blast"]);
    let o = attack(&agonizing, &foe(5, 50), &casting("Eldritch Blast", None), &plain(), &[15, 14, 1, 1]);
    assert_eq!(total_damage(&o), 8);
}

#[test]
fn what_the_first_beam_uses_up_is_gone_for_the_second() {
    let outlined = with_effects(foe(15, 50), &["Guiding Bolt"]);
    let o = attack(&warlock(5), &outlined, &casting("Eldritch Blast", None), &plain(), &[3, 15, 2, 7]);
    assert_eq!((o.attacks[0].die_result, o.attacks[1].die_result), (15, 2));
    assert!(after(&outlined, &o).effects.is_empty());
}

#[test]
fn rays_and_darts() {
    let o = attack(&wizard(), &foe(15, 50), &casting("Scorching Ray", Some(3)), &plain(), &[15, 15, 2, 2, 1, 1, 2, 2]);
    assert_eq!((o.attacks.len(), total_damage(&o)), (4, 6));
    assert!(spends(&o, 3));
    let o = attack(&wizard(), &foe(30, 50), &casting("Magic Missile", None), &plain(), &[1, 2, 3]);
    assert_eq!((o.attacks.len(), total_damage(&o), o.die_result), (3, 9, 0));
    assert_eq!((o.automatic, o.success, o.dc_or_ac.as_str()), (Some(Automatic::Success), true, "N/A"));
    assert_eq!(after(&foe(30, 50), &o).hp, 41);
    assert_eq!(
        attack(&wizard(), &foe(30, 50), &casting("Magic Missile", Some(3)), &plain(), &[1, 2, 3, 4, 4]).attacks.len(),
        5
    );
    let shielded = with_effects(foe(30, 50), &["Shield"]);
    let o = attack(&wizard(), &shielded, &casting("Magic Missile", None), &plain(), &[]);
    assert!(!o.success && spends(&o, 1) && o.damage.is_none());
}

#[test]
fn spells_with_a_save() {
    let fireball = casting("Fireball", None);
    let o = attack(&wizard(), &foe(15, 50), &fireball, &plain(), &[14, 6, 6, 6, 6, 1, 1, 1, 1]);
    assert_eq!(o.check_type, "Fireball (dexterity save)");
    assert_eq!((o.dc_or_ac.as_str(), o.success, o.outcome.as_str()), ("DC 15", true, "target failed the save"));
    assert_eq!((o.components.as_str(), total_damage(&o)), ("DEX +0 = +0", 28));
    let o = attack(&wizard(), &foe(15, 50), &fireball, &plain(), &[15, 6, 6, 6, 6, 1, 1, 1, 2]);
    assert_eq!((o.success, total_damage(&o), taken(&o)), (false, 14, 14));
    assert!(spends(&o, 3));
    let splash = casting("Acid Splash", None);
    assert!(attack(&wizard(), &foe(15, 50), &splash, &plain(), &[15]).damage.is_none(), "a save negates");
    let behind = Circumstances { cover: Cover::Half, ..Circumstances::default() };
    assert_eq!(attack(&wizard(), &foe(15, 50), &splash, &behind, &[13]).components, "DEX +0, Effects +2 = +2");
    let o = attack(&cleric(), &foe(15, 50), &casting("Sacred Flame", None), &behind, &[2, 4, 4]);
    assert_eq!(o.components, "DEX +0 = +0", "cover does not help");
    let mut quick = foe(15, 50);
    quick.saving_throws.insert("dexterity".into(), 5);
    assert_eq!(attack(&wizard(), &quick, &splash, &plain(), &[12]).total, 17);
}

#[test]
fn a_burst_of_sunlight_blinds_those_who_fail() {
    let high = with_spells(hero("Wizard", 15, [8, 14, 12, 18, 10, 10]), &["Sunburst"], &[(8, 1)]);
    let burst = |save: u32| {
        let mut dice = vec![save];
        dice.extend([2; 12]);
        attack(&high, &foe(15, 50), &casting("Sunburst", None), &plain(), &dice)
    };
    let (failed, saved) = (burst(2), burst(19));
    assert_eq!((total_damage(&failed), total_damage(&saved)), (24, 12));
    let is_blinded = |o: &Outcome| after(&foe(15, 50), o).conditions.iter().any(|c| c.name == "blinded");
    assert_eq!((is_blinded(&failed), is_blinded(&saved)), (true, false));
}

#[test]
fn evasion() {
    let rogue = with_features(hero("Rogue", 7, [10; 6]), &["Evasion"]);
    let o = attack(&wizard(), &rogue, &casting("Fireball", None), &plain(), &[15]);
    assert!(!o.success && o.damage.is_none());
    let o = attack(&wizard(), &rogue, &casting("Fireball", None), &plain(), &[2, 6, 6, 6, 6, 6, 6, 6, 6]);
    assert_eq!(taken(&o), 24);
}

#[test]
fn slots() {
    let w = wizard();
    let o = attack(&w, &foe(15, 50), &casting("Fireball", Some(2)), &plain(), &[]);
    assert!(o.impossible && o.effects.is_empty());
    assert!(attack(&w, &foe(15, 50), &casting("Fireball", Some(4)), &plain(), &[]).impossible, "no such slot");
    let mut empty = w.clone();
    empty.spell_slots.get_mut("3").unwrap().remaining = 0;
    let o = attack(&empty, &foe(15, 50), &casting("Fireball", None), &plain(), &[]);
    assert!(o.impossible && o.notes.contains("slot of level 3") && o.effects.is_empty());
    assert!(
        !attack(&w, &foe(15, 50), &casting("Fire Bolt", Some(3)), &plain(), &[2])
            .effects
            .iter()
            .any(|c| matches!(c, StateChange::SpendSlot { .. }))
    );
    // A warlock's slots all have the same level.
    let o = attack(&warlock(5), &foe(15, 50), &casting("Hellish Rebuke", None), &plain(), &[2, 1, 1, 1, 1]);
    assert!(spends(&o, 3) && row(&o, "Hellish Rebuke").dice == "4d10");
    // A slot entry on a sheet with maximum 0 does not count, and a slot beyond the usual maximum does.
    let mut odd = warlock(5);
    odd.spell_slots.insert("1".into(), rules::sheet::SpellSlot { max: 0, remaining: 0 });
    let o = attack(&odd, &foe(15, 50), &casting("Hellish Rebuke", None), &plain(), &[2, 1, 1, 1, 1]);
    assert!(spends(&o, 3), "{}", o.notes);
    odd.spell_slots.insert("1".into(), rules::sheet::SpellSlot { max: 0, remaining: 1 });
    assert!(spends(&attack(&odd, &foe(15, 50), &casting("Hellish Rebuke", None), &plain(), &[2, 1, 1]), 1));
}

#[test]
fn upcasting() {
    let mut c = cleric();
    c.spell_slots.insert("4".into(), rules::sheet::SpellSlot { max: 1, remaining: 1 });
    assert_eq!(
        row(&attack(&c, &foe(5, 99), &casting("Guiding Bolt", Some(2)), &plain(), &[9, 1, 1, 1, 1, 1]), "Guiding Bolt")
            .dice,
        "5d6"
    );
    assert_eq!(
        row(&attack(&c, &foe(5, 99), &casting("Inflict Wounds", None), &plain(), &[9, 1, 1, 1]), "Inflict Wounds").dice,
        "3d10"
    );
    for (slot, dice) in [(2, "1d8"), (3, "1d8"), (4, "2d8")] {
        let mut rolls = vec![9];
        rolls.extend(std::iter::repeat_n(2, usize::from(dice == "2d8") + 1));
        let o = attack(&c, &foe(5, 99), &casting("Spiritual Weapon", Some(slot)), &plain(), &rolls);
        assert_eq!((row(&o, "Spiritual Weapon").dice.as_str(), row(&o, "Spiritual Weapon").flat_bonus), (dice, 3));
    }
}

#[test]
fn healing_spells() {
    let mut hurt = hero("Fighter", 3, [10; 6]);
    (hurt.id, hurt.hp) = ("friend".into(), 30);
    let o = attack(&cleric(), &hurt, &casting("Cure Wounds", None), &plain(), &[5]);
    assert_eq!((o.success, o.total, after(&hurt, &o).hp), (true, 8, 38));
    assert!(spends(&o, 1));
    let o = attack(&cleric(), &hurt, &casting("Healing Word", Some(3)), &plain(), &[4, 4, 4]);
    assert_eq!(after(&hurt, &o).hp, 40, "not above the maximum");
    let life = with_features(cleric(), &["Disciple of Life"]);
    assert_eq!(attack(&life, &hurt, &casting("Cure Wounds", None), &plain(), &[1]).total, 7);
    hurt.hp = 0;
    let o = attack(
        &cleric(),
        &with_conditions(hurt.clone(), &["unconscious"]),
        &casting("Cure Wounds", None),
        &plain(),
        &[5],
    );
    assert_eq!(after(&with_conditions(hurt.clone(), &["unconscious"]), &o).conditions.len(), 0);
    hurt.death_saves.failures = 3;
    assert!(attack(&cleric(), &hurt, &casting("Cure Wounds", None), &plain(), &[]).impossible);
}

/// A charmed caster cannot harm its charmer with any spell, but can help it.
#[test]
fn the_charmed_heal_their_charmer() {
    let mut charmed = with_conditions(cleric(), &["charmed"]);
    charmed.conditions[0].source = Some("Foe".into());
    let mut charmer = foe(5, 20);
    assert!(attack(&charmed, &charmer, &casting("Guiding Bolt", None), &plain(), &[]).impossible);
    charmer.hp = 1;
    let o = attack(&charmed, &charmer, &casting("Cure Wounds", None), &plain(), &[5]);
    assert!(o.success && after(&charmer, &o).hp > 1, "{}", o.raw);
}

#[test]
fn effects_and_concentration() {
    let c = cleric();
    let friend = Creature { id: "friend".into(), ..hero("Fighter", 1, [10; 6]) };
    let o = attack(&c, &friend, &casting("Bless", None), &plain(), &[]);
    let c = after(&c, &o);
    assert_eq!(c.concentration, Some(Concentration { spell: "Bless".into() }));
    assert!(after(&friend, &o).has_effect("Bless") && c.slots_left(1) == 3);
    let mut w = wizard();
    w.concentration = Some(Concentration { spell: "Web".into() });
    let o = attack(&w, &friend, &casting("Haste", None), &plain(), &[]);
    assert!(o.effects.iter().any(|e| matches!(e, StateChange::EndConcentration { spell, .. } if spell == "Web")));
    assert_eq!(after(&w, &o).concentration.unwrap().spell, "Haste");
    let o = attack(&w, &friend, &casting("Hold Person", None), &plain(), &[2]);
    assert!(o.success && after(&friend, &o).has_condition("paralyzed"));
    let o = attack(&w, &friend, &casting("Hold Person", None), &plain(), &[19]);
    assert!(!o.success && !after(&friend, &o).has_condition("paralyzed"));
    let mut immune = friend.clone();
    immune.condition_immunities.push("paralyzed".into());
    assert!(
        !after(&immune, &attack(&w, &immune, &casting("Hold Person", None), &plain(), &[2])).has_condition("paralyzed")
    );
    // A spell with the range "self" affects the caster, whoever is named.
    let o = attack(&w, &friend, &casting("Shield", None), &plain(), &[]);
    assert!(after(&w, &o).has_effect("Shield") && !after(&friend, &o).has_effect("Shield"));
    let o = attack(&cleric(), &foe(5, 50), &casting("Guiding Bolt", None), &plain(), &[9, 1, 1, 1, 1]);
    assert!(after(&foe(5, 50), &o).has_effect("Guiding Bolt"));
}

#[test]
fn who_cannot_cast() {
    let bolt = casting("Fire Bolt", None);
    assert!(attack(&with_effects(wizard(), &["Rage"]), &foe(5, 9), &bolt, &plain(), &[]).impossible);
    let mut clad = wizard();
    clad.armor = Some(Worn { name: "plate".into(), ..Worn::default() });
    assert!(attack(&clad, &foe(5, 9), &bolt, &plain(), &[]).impossible);
    let o = attack(&wizard(), &foe(5, 9), &casting("Wish", None), &plain(), &[]);
    assert!(o.impossible && o.notes.contains("Wish"));
    let o = attack(&wizard(), &foe(5, 9), &casting("Fire", None), &plain(), &[]);
    assert!(o.impossible && o.notes.contains("Fire Bolt, Fireball"));
    assert!(attack(&wizard(), &foe(5, 9), &bolt, &when(|c| c.distance_ft = Some(121)), &[]).impossible);
    assert!(attack(&wizard(), &foe(5, 9), &casting("Mending", None), &plain(), &[]).no_check);
}

#[test]
fn spells_of_ones_own() {
    let own = |json: &str| -> Creature {
        let mut w = wizard();
        w.spells = vec![serde_json::from_str(json).unwrap()];
        w
    };
    let w = own(
        r#"{"name":"Star Lance","level":1,"attack":"ranged","damage":"3d6","damage_type":"radiant","upcast":"1d6","range":90}"#,
    );
    let o = attack(&w, &foe(5, 50), &casting("Star Lance", Some(2)), &plain(), &[9, 1, 1, 1, 1]);
    assert_eq!(
        (row(&o, "Star Lance").dice.as_str(), row(&o, "Star Lance").damage_type.as_deref()),
        ("4d6", Some("radiant"))
    );
    let w = own(
        r#"{"name":"Chill","level":0,"attack":"save","save":"con","damage":{"dice":"1d8","type":"cold"},"on_save":"half"}"#,
    );
    let o = attack(&w, &foe(5, 50), &casting("chill", None), &plain(), &[19, 5, 4]);
    assert_eq!((o.check_type.as_str(), taken(&o)), ("Chill (constitution save)", 4));
    // A spell that cannot be read in full keeps its name.
    let w = own(r#"{"name":"Fire Bolt","level":"zero"}"#);
    assert_eq!(w.spells[0], KnownSpell::Name("Fire Bolt".into()));
}

#[test]
fn npcs_cast_what_the_table_knows() {
    let mut mage = foe(12, 20);
    mage.abilities.intelligence = 16;
    let o =
        attack(&mage, &hero("Fighter", 1, [10; 6]), &casting("Fireball", None), &plain(), &[2, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!((o.dc_or_ac.as_str(), taken(&o)), ("DC 13", 8));
    assert!(has_reason(&o, "not tracked"));
}

#[test]
fn a_save_that_halves_needs_its_dice() {
    let run = |dice: &[u32]| {
        resolve_attack(&wizard(), &foe(5, 9), &casting("Fireball", None), &plain(), &mut Given::new(dice))
    };
    assert!(run(&[19]).is_err());
}

#[test]
fn who_is_held_loses_concentration() {
    let friend = Creature {
        id: "friend".into(),
        concentration: Some(Concentration { spell: "Bless".into() }),
        ..hero("Cleric", 1, [10; 6])
    };
    let o = attack(&wizard(), &friend, &casting("Hold Person", None), &plain(), &[2]);
    assert!(after(&friend, &o).concentration.is_none());
}

#[test]
fn races_that_resist_spells() {
    let gnome = Creature { race: "Rock Gnome".into(), ..hero("Fighter", 1, [10; 6]) };
    let o = attack(&wizard(), &gnome, &casting("Hold Person", None), &plain(), &[2, 19]);
    assert!(!o.success && has_reason(&o, "Gnome Cunning"));
    let dwarf = Creature { race: "Dwarf".into(), ..hero("Fighter", 1, [10; 6]) };
    let mut druid = hero("Druid", 1, [10, 10, 10, 10, 16, 10]);
    druid.spells = vec![KnownSpell::Name("Poison Spray".into())];
    assert!(!attack(&druid, &dwarf, &casting("Poison Spray", None), &plain(), &[2, 19]).success);
}

#[test]
fn notes_tell_the_end() {
    let o = attack(&wizard(), &foe(30, 5), &casting("Magic Missile", None), &plain(), &[1, 2, 3]);
    assert_eq!(o.notes, "3 hit Foe. 9 damage. Foe is dead.");
    assert!(o.raw.contains("\nROLL: 0 + +0 = 0\n"));
    let o = attack(&warlock(5), &foe(15, 50), &casting("Eldritch Blast", None), &plain(), &[15, 3, 7]);
    assert_eq!(o.notes, "1 of 2 hit Foe (AC 15). 7 damage.");
    let o = attack(&warlock(1), &foe(15, 50), &casting("Eldritch Blast", None), &plain(), &[15, 7]);
    assert_eq!(o.notes, "Hits Foe (AC 15). 7 damage.");
}

#[test]
fn an_area_is_rolled_once() {
    let (a, b) =
        (Creature { id: "a".into(), ..foe(10, 50) }, Creature { id: "b".into(), name: "B".into(), ..foe(10, 50) });
    let rogue = with_features(Creature { id: "r".into(), ..hero("Rogue", 7, [10; 6]) }, &["Evasion"]);
    let targets = [&a, &b, &rogue].map(|t| (t, plain()));
    let burst = |args: &AttackArgs, dice: &[u32]| rolled(dice, |d| resolve_area_spell(&wizard(), &targets, args, d));
    let o = burst(&casting("Fireball", None), &[2, 15, 19, 6, 6, 6, 6, 6, 6, 6, 1]);
    assert_eq!((after(&a, &o).hp, after(&b, &o).hp, after(&rogue, &o).hp), (7, 29, 40));
    assert_eq!(o.participants.iter().map(|p| p.success).collect::<Vec<_>>(), [false, true, true]);
    assert!(spends(&o, 3) && o.success && o.dc_or_ac == "DC 15");
    assert_eq!((total_damage(&o), taken(&o)), (43, 64));
    assert!(burst(&casting("Acid Splash", None), &[15, 15, 15]).damage.is_none());
    assert!(burst(&casting("Fire Bolt", None), &[]).impossible);
    assert!(burst(&casting("Fireball", Some(9)), &[]).impossible);
}

/// A wizard who knows only this spell.
fn knowing(json: &str) -> Creature {
    Creature { spells: serde_json::from_str(json).into_iter().collect(), ..wizard() }
}

#[test]
fn sources_of_ones_own_with_a_spell() {
    let mut w = with_features(wizard(), &["Kindling", "Flavour"]);
    w.features[0].scaling_formula = Some("1d6 fire".into());
    let asked = ["Kindling", "Flavour"].map(str::to_owned).to_vec();
    let args = AttackArgs { extra_damage_sources: asked, ..casting("Fire Bolt", None) };
    let o = attack(&w, &foe(15, 50), &args, &plain(), &[8, 3, 4, 6]);
    assert_eq!((row(&o, "Kindling").subtotal, total_damage(&o)), (6, 13));
    assert!(has_reason(&o, "refused: Flavour"));
}

#[test]
fn how_a_spell_of_ones_own_reaches_its_target() {
    use rules::srd::SpellKind::{Automatic, Effect, Healing, Melee, Ranged, Save};
    for (json, kind) in [
        (r#"{"name":"A","attack":"Ranged"}"#, Ranged),
        (r#"{"name":"A","attack":"melee"}"#, Melee),
        (r#"{"name":"A","attack":"save"}"#, Save),
        (r#"{"name":"A","attack":"healing","damage":"1d8"}"#, Healing),
        (r#"{"name":"A","attack":"auto"}"#, Automatic),
        (r#"{"name":"A","attack":"automatic","save":"dex"}"#, Automatic),
        (r#"{"name":"A","save":"dex","damage":"1d8"}"#, Save),
        (r#"{"name":"A","damage":"1d8"}"#, Automatic),
        (r#"{"name":"A","effect":"Bless"}"#, Effect),
    ] {
        let KnownSpell::Own(spell) = serde_json::from_str(json).unwrap() else { panic!("{json}") };
        assert_eq!(spell.kind(), kind, "{json}");
        assert_eq!(spell.range(), None);
    }
    let KnownSpell::Own(spell) = serde_json::from_str(r#"{"name":"A","range":90}"#).unwrap() else { panic!() };
    assert_eq!(spell.range().map(|r| (r.normal, r.long)), Some((90, None)));
    // Without a range it reaches everybody, without disadvantage.
    let w = knowing(r#"{"name":"Star Lance","level":0,"attack":"ranged","damage":"1d6"}"#);
    let far = when(|c| c.distance_ft = Some(500));
    assert_eq!(attack(&w, &foe(30, 9), &casting("Star Lance", None), &far, &[2]).advantage, Advantage::None);
    let w = knowing(r#"{"name":"Sting","level":1,"attack":"auto","damage":"1d6"}"#);
    let o = attack(&w, &foe(30, 50), &casting("Sting", None), &plain(), &[4]);
    assert!(o.attacks.is_empty() && row(&o, "Sting").subtotal == 4);
}

#[test]
fn a_spell_of_ones_own_with_the_name_of_another() {
    // Without numbers of its own it is the spell of the tables.
    let o = attack(
        &knowing(r#"{"name":"Fire Bolt","level":0}"#),
        &foe(5, 50),
        &casting("Fire Bolt", None),
        &plain(),
        &[9, 3, 4],
    );
    assert_eq!(row(&o, "Fire Bolt").dice, "2d10");
    let own = knowing(r#"{"name":"Fire Bolt","level":1,"attack":"ranged","damage":"1d4"}"#);
    assert_eq!(
        row(&attack(&own, &foe(5, 50), &casting("Fire Bolt", None), &plain(), &[9, 3]), "Fire Bolt").dice,
        "1d4"
    );
    let friend = Creature { id: "friend".into(), ..hero("Fighter", 1, [10; 6]) };
    let own = knowing(r#"{"name":"Shield","level":1,"condition":"invisible"}"#);
    let o = attack(&own, &friend, &casting("Shield", None), &plain(), &[]);
    assert!(after(&friend, &o).has_condition("invisible") && !after(&own, &o).has_effect("Shield"));
    let own = knowing(r#"{"name":"Shield","level":1,"effect":"Haste"}"#);
    assert!(after(&friend, &attack(&own, &friend, &casting("Shield", None), &plain(), &[])).has_effect("Haste"));
    // Written twice, it is still one spell.
    let mut twice = wizard();
    twice.spells = vec![KnownSpell::Name("Fire Bolt".into()), KnownSpell::Name("fire bolt".into())];
    assert!(attack(&twice, &foe(5, 50), &casting("FIRE BOLT", None), &plain(), &[9, 3, 4]).success);
}

#[test]
fn who_knows_which_spells() {
    let target = hero("Fighter", 1, [10; 6]);
    let untaught = Creature { spells: Vec::new(), ..wizard() };
    assert!(attack(&untaught, &target, &casting("Fire Bolt", None), &plain(), &[]).impossible);
    let mut mage = with_spells(foe(12, 20), &["Fire Bolt"], &[]);
    assert!(attack(&mage, &target, &casting("Fireball", None), &plain(), &[]).impossible);
    mage.spells.push(KnownSpell::Name("Magic Missile".into()));
    assert!(attack(&mage, &target, &casting("Magic Missile", None), &plain(), &[1, 1, 1]).success);
    mage.spell_slots.insert("1".into(), rules::sheet::SpellSlot { max: 2, remaining: 1 });
    let o = attack(&mage, &target, &casting("Magic Missile", None), &plain(), &[1, 1, 1]);
    assert!(spends(&o, 1) && !has_reason(&o, "not tracked"));
    assert!(attack(&after(&mage, &o), &target, &casting("Magic Missile", None), &plain(), &[]).impossible);
    // A character without any slot has none.
    let dry = Creature { spell_slots: Default::default(), ..wizard() };
    assert!(attack(&dry, &target, &casting("Magic Missile", None), &plain(), &[]).impossible);
}

#[test]
fn the_lowest_and_the_highest_slot() {
    let mut w = with_spells(wizard(), &[], &[(9, 1)]);
    let bomb =
        |w: &Creature, slot, dice: &[u32]| attack(w, &foe(5, 99), &casting("Magic Missile", slot), &plain(), dice);
    assert!(spends(&bomb(&w, Some(9), &[1; 11]), 9));
    let o = bomb(&w, Some(10), &[]);
    assert!(o.impossible && !o.notes.contains("left"), "{}", o.notes);
    // A higher slot is not taken unasked.
    w.spell_slots.get_mut("1").unwrap().remaining = 0;
    let o = bomb(&w, None, &[]);
    assert!(o.impossible && o.notes.contains("slot of level 1"), "{}", o.notes);
    // A spell without numbers takes the slot that is named.
    let o = attack(&w, &foe(5, 99), &casting("Mending", Some(2)), &plain(), &[]);
    assert!(o.no_check && spends(&o, 2));
    assert!(attack(&w, &foe(5, 99), &casting("Mending", Some(1)), &plain(), &[]).impossible);
}

#[test]
fn cover_against_spells() {
    let behind = Circumstances { cover: Cover::Half, ..Circumstances::default() };
    let o = attack(&wizard(), &foe(15, 50), &casting("Fire Bolt", None), &behind, &[2]);
    assert!(o.dc_or_ac == "17" && has_reason(&o, "AC +2: cover"));
    assert!(!has_reason(&attack(&wizard(), &foe(15, 50), &casting("Fire Bolt", None), &plain(), &[2]), "cover"));
}

#[test]
fn each_shot_has_a_row() {
    let o = attack(&warlock(5), &foe(15, 99), &casting("Eldritch Blast", None), &plain(), &[20, 15, 1, 2, 3]);
    assert_eq!((row(&o, "Eldritch Blast 1").subtotal, row(&o, "Eldritch Blast 2").subtotal), (3, 3));
    assert!(o.damage.as_ref().unwrap().is_crit, "one of them was critical");
    assert!(o.raw.contains("DAMAGE: Eldritch Blast 1: 2d10 force; Eldritch Blast 2: 1d10 force\n"), "{}", o.raw);
}

#[test]
fn spells_that_spare() {
    let sparing = when(|c| c.knock_out = true);
    for (spell, circumstances, dice, life) in [
        ("Inflict Wounds", &sparing, &[15, 1, 1, 1][..], Life::Stable),
        ("Inflict Wounds", &plain(), &[15, 1, 1, 1], Life::Dead),
        ("Guiding Bolt", &sparing, &[15, 1, 1, 1, 1], Life::Dead),
    ] {
        let o = attack(&cleric(), &foe(5, 3), &casting(spell, None), circumstances, dice);
        assert_eq!(after(&foe(5, 3), &o).life(), life, "{spell}");
    }
}

#[test]
fn life_clerics_heal_more_with_slots() {
    let cleric = with_features(
        knowing(r#"{"name":"Mend Flesh","level":0,"attack":"healing","damage":"1d4"}"#),
        &["Disciple of Life"],
    );
    let hurt = Creature { hp: 1, id: "friend".into(), ..hero("Fighter", 1, [10; 6]) };
    assert_eq!(attack(&cleric, &hurt, &casting("Mend Flesh", None), &plain(), &[3, 3]).total, 6);
}

#[test]
fn whoever_cannot_act_cannot_concentrate() {
    let friend = Creature {
        id: "friend".into(),
        concentration: Some(Concentration { spell: "Bless".into() }),
        ..hero("Cleric", 1, [10; 6])
    };
    for (condition, ends) in [("incapacitated", true), ("stunned", true), ("frightened", false)] {
        let spell = format!(r#"{{"name":"Glare","level":1,"save":"wis","condition":"{condition}"}}"#);
        let o = attack(&knowing(&spell), &friend, &casting("Glare", None), &plain(), &[2]);
        assert_eq!(after(&friend, &o).concentration.is_none(), ends, "{condition}");
    }
}

#[test]
fn an_area_holds_those_who_fail() {
    let (a, b) =
        (Creature { id: "a".into(), ..foe(10, 50) }, Creature { id: "b".into(), name: "B".into(), ..foe(10, 50) });
    let targets = [&a, &b].map(|t| (t, plain()));
    let w = with_spells(wizard(), &["Web"], &[]);
    let web = |dice: &[u32]| rolled(dice, |d| resolve_area_spell(&w, &targets, &casting("Web", None), d));
    let o = web(&[2, 19]);
    assert!(after(&a, &o).has_condition("restrained") && !after(&b, &o).has_condition("restrained"));
    assert_eq!((o.outcome.as_str(), o.success), ("1 of 2 targets failed the save", true));
    let o = web(&[19, 19]);
    assert_eq!((o.outcome.as_str(), o.success), ("0 of 2 targets failed the save", false));
}
