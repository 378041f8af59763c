//! Stored sheets, and outcomes as JSON.

mod support;

use rules::{
    dice::Given,
    resolve::{
        AttackArgs, Circumstances, Outcome, Parties, SavingThrowArgs, SkillCheckArgs, StateChange, apply,
        initiative_bonus, resolve_attack, resolve_saving_throw, resolve_skill_check, roll_initiative, save_bonus,
        sheet_attacks, skill_bonus,
    },
    sheet::{Condition, Creature, KnownSpell, WeaponAbility, Worn},
    srd::Ability,
};
use serde_json::{Value, json};
use support::*;

#[test]
fn a_stored_character_is_read_as_it_stands() {
    let stored = json!({
        "id": "0190", "campaign_id": "1", "slug": "player_alice", "name": "Alice", "player_name": null, "race": "Elf",
        "profession": "Rogue", "level": 5, "abilities": {"strength": 8, "dexterity": 16}, "max_hp": 30, "hp": 20, "temp_hp": 0,
        "armor_class": 15, "speed": 30, "size": "medium", "skill_proficiencies": ["stealth"],
        "saving_throw_proficiencies": ["dexterity"], "weapon_proficiencies": ["simple weapons", "rapiers"],
        "features": [{"name": "Sneak Attack", "scaling_formula": "ceil(level/2)d6"}, {"name": "Expertise", "chosen_option": "stealth"}],
        "weapons": [{"name": "Rapier", "bonus": 1, "properties": []}, {"name": "Sling", "ability": "dex", "bonus": 0, "properties": []}],
        "armor": {"name": "Leather", "weight": 10}, "shield": null, "spellcasting_ability": null,
        "spells": ["Fire Bolt", {"name": "Zap", "level": 1, "attack": "ranged", "damage": "1d6", "school": "evocation"}, 7],
        "effects": [{"name": "Bless"}], "concentration": null, "hit_dice": {"die": 8, "max": 5, "remaining": 5},
        "death_saves": {"successes": 0, "failures": 0}, "resistances": [], "immunities": [], "vulnerabilities": [],
        "spell_slots": {"1": {"max": 2, "remaining": 1}}, "resources": [{"name": "Luck", "max": 3, "remaining": 3}],
        "conditions": [{"name": "prone"}], "inventory": ["rope", {"name": "Dagger", "count": 2}, 3], "location": null,
        "extensions": {"a": 1}, "version": 3, "created_at": "2026-01-01T00:00:00Z"
    });
    let c: Creature = serde_json::from_value(stored).unwrap();
    assert_eq!((c.abilities.dexterity, c.abilities.wisdom, c.slots_left(1)), (16, 10, 1));
    assert_eq!(c.weapons[1].ability, Some(WeaponAbility::Dex));
    assert!(c.has_condition("prone") && c.worn_armor().is_some() && !c.carries_shield());
    assert!(matches!(&c.spells[1], KnownSpell::Own(zap) if zap.level == 1));
    let o = attack(&c, &foe(10, 9), &with("dagger"), &plain(), &[15, 10, 1, 4]);
    assert_eq!(o.components, "DEX +3, Prof +3, Effects +1 = +7");
    assert_eq!(serde_json::from_value::<Creature>(serde_json::to_value(&c).unwrap()).unwrap(), c);
}

#[test]
fn an_npc_is_its_row_and_its_stat_block() {
    let mut row = json!({"id": "7", "name": "Goblin", "race": null, "profession": null, "is_npc": true, "disposition": "hostile",
        "conditions": [], "effects": [], "inventory": []});
    let stats = json!({"armor_class": 15, "hp": 7, "max_hp": 7, "temp_hp": 0, "saving_throws": {"dexterity": 3},
        "attacks": [{"name": "Scimitar", "bonus": 4, "damage": "1d6+2", "damage_type": "slashing"}], "creature_type": "humanoid",
        "size": "small", "speed": 30, "resistances": [], "immunities": [], "vulnerabilities": [], "condition_immunities": []});
    row.as_object_mut().unwrap().extend(stats.as_object().unwrap().clone());
    let goblin: Creature = serde_json::from_value(row).unwrap();
    assert_eq!((goblin.armor_class, goblin.attacks.len(), goblin.is_small()), (15, 1, true));
    assert!(attack(&goblin, &hero("", 1, [10; 6]), &AttackArgs::default(), &plain(), &[15, 1]).success);
}

#[test]
fn circumstances_from_arguments() {
    let c: Circumstances = serde_json::from_value(json!({"advantage": "disadvantage", "cover": "three_quarters",
        "context": {"ally_adjacent": true, "turn_key": 12, "other_weapon": true, "distance_ft": 30}}))
    .unwrap();
    assert_eq!((c.context.turn_key.as_deref(), c.cover.bonus(), c.context.fear_source_visible), (Some("12"), 5, true));
    assert_eq!(serde_json::from_value::<Circumstances>(json!({})).unwrap(), Circumstances::default());
}

#[test]
fn outcomes_on_the_wire() {
    let f = armed(hero("Fighter", 1, [16, 10, 10, 10, 10, 10]), &["Mace"]);
    let o = attack(&f, &foe(10, 30), &with("Mace"), &plain(), &[15, 5]);
    let sent = serde_json::to_value(&o).unwrap();
    for absent in ["impossible", "no_check", "attacks", "participants", "automatic", "parties"] {
        assert_eq!(sent.get(absent), None, "{absent}");
    }
    assert_eq!(sent["dc_or_ac"], "10");
    assert_eq!(sent["advantage"], "none");
    assert_eq!(sent["modifiers"][0], json!({"label": "STR", "value": 3}));
    assert_eq!(sent["dice"][0], json!({"faces": 20, "value": 15, "kept": true}));
    assert_eq!(sent["effects"][0]["type"], "damage");
    assert_eq!(sent["damage"]["breakdown"][0]["rolls"], json!([5]));
    let parties = Parties { rolled: vec!["hero".to_owned()], others: vec!["foe".to_owned()] };
    assert_eq!(o.parties, parties, "only the server knows");
    assert_eq!(Outcome { parties, ..serde_json::from_value(sent).unwrap() }, o);
    let miss: Value = serde_json::to_value(attack(&f, &foe(30, 30), &with("Mace"), &plain(), &[5])).unwrap();
    assert_eq!(miss.get("damage"), None);
}

#[test]
fn changes_are_about_whom_they_name() {
    let mut c = hero("", 1, [10; 6]);
    let before = c.clone();
    apply(&mut c, &[StateChange::Dies { creature: "foe".into() }]);
    assert_eq!(c, before);
    let prone = |level| Condition { name: "Exhaustion".into(), level, ..Condition::default() };
    apply(&mut c, &[StateChange::AddCondition { creature: "hero".into(), condition: prone(Some(2)) }]);
    apply(&mut c, &[StateChange::AddCondition { creature: "hero".into(), condition: prone(Some(1)) }]);
    assert_eq!((c.conditions.len(), c.exhaustion()), (1, 1));
    // Without an id the name is used.
    c.id.clear();
    apply(
        &mut c,
        &[
            StateChange::SpendSlot { creature: "Hero".into(), level: 1 },
            StateChange::TempHp { creature: "Hero".into(), temp_hp: 3 },
        ],
    );
    assert_eq!(c.temp_hp, 3);
}

#[test]
fn what_is_impossible_says_so_on_the_wire() {
    let o = attack(&hero("Fighter", 1, [10; 6]), &foe(10, 30), &with("Halberd"), &plain(), &[]);
    assert_eq!(serde_json::to_value(&o).unwrap()["impossible"], true);
}

/// What somebody wears without the training for it.
#[test]
fn training_in_armor() {
    let worn = |name: &str| Some(Worn { name: name.into(), ..Worn::default() });
    for (profession, feature, listed, armor, shield, untrained) in [
        ("Fighter", "", "", "plate", "shield", None),
        ("Rogue", "", "", "leather", "", None),
        ("Rogue", "", "", "hide", "", Some("hide")),
        ("Rogue", "", "", "leather", "shield", Some("shield")),
        ("Rogue", "", "Shields", "leather", "shield", None),
        ("Rogue", "", "medium armor", "hide", "", None),
        ("Rogue", "", "medium armor", "plate", "", Some("plate")),
        ("Rogue", "", "all armor", "plate", "", None),
        ("Rogue", "", "Chain mail", "chain mail", "", None),
        ("Rogue", "", "chain mail", "plate", "", Some("plate")),
        ("Wizard", "", "", "", "shield", Some("shield")),
        ("Wizard", "", "", "", "", None),
        ("Wizard 3 / Fighter 2", "", "", "plate", "shield", None),
        ("Cleric", "", "", "plate", "shield", Some("plate")),
        ("Cleric", "Life Domain", "", "plate", "shield", None),
        ("Cleric", "Disciple of Life", "", "plate", "shield", None),
        ("Cleric", "Divine Domain=Life", "", "plate", "shield", None),
        ("Cleric", "Divine Domain=Light", "", "plate", "shield", Some("plate")),
        ("Rogue", "Disciple of Life", "", "plate", "", Some("plate")),
        ("Innkeeper", "", "", "plate", "shield", None),
    ] {
        let mut c = with_features(hero(profession, 5, [10; 6]), &[feature]);
        c.armor_proficiencies = vec![listed.to_owned()];
        (c.armor, c.shield) = (worn(armor), worn(shield));
        assert_eq!(c.untrained_armor(), untrained, "{profession} {feature} {listed}: {armor} {shield}");
        c.is_npc = true;
        assert_eq!(c.untrained_armor(), None);
    }
}

#[test]
fn training_with_weapons() {
    let mut c = hero("", 1, [10; 6]);
    for (listed, weapon, proficient) in [
        ("longswords", "Flaming Longsword", true),
        ("longsword", "Flaming Longsword", true),
        ("swords", "Longsword", false),
        ("sword", "Longsword", false),
        ("crossbows, hand", "Hand Crossbow", true),
        ("crossbows, hand", "Light Crossbow", false),
        ("crossbows, hand", "Longbow", false),
        ("Moonblades", "Moonblade", true),
        ("moonblade", "Moonblade of Dusk", true),
        ("axe", "Bone axe", false),
    ] {
        c.weapon_proficiencies = vec![listed.to_owned()];
        assert_eq!(c.wields(weapon, rules::srd::base_weapon(weapon)), proficient, "{listed} {weapon}");
    }
}

#[test]
fn what_a_spell_is_cast_with() {
    let scores = [10, 10, 10, 12, 18, 14];
    for (profession, is_npc, ability) in [
        ("Paladin", false, Ability::Charisma),
        ("Fighter 3 / Wizard 2", false, Ability::Intelligence),
        ("innkeeper", false, Ability::Intelligence),
        ("innkeeper", true, Ability::Wisdom),
    ] {
        let c = Creature { is_npc, ..hero(profession, 5, scores) };
        assert_eq!(c.casting_ability(), ability, "{profession}");
    }
    let own = Creature { spellcasting_ability: Some("cha".into()), ..hero("Wizard", 5, scores) };
    assert_eq!((own.casting_ability(), own.spell_save_dc()), (Ability::Charisma, 13));
}

#[test]
fn styles_and_effects_by_their_names() {
    let c = with_features(hero("Fighter", 1, [10; 6]), &["Fighting Style=Archery, Defense", "Hunter's Prey=Dueling"]);
    assert_eq!(["archery", "Defense", "Dueling"].map(|s| c.has_style(s)), [true, true, false]);
    let c = with_effects(hero("Fighter", 1, [10; 6]), &["Raging", "dodging", "Helped", "reckless", "Moonlight"]);
    for name in ["Rage", "Dodge", "Help", "Reckless Attack", "Moonlight", "raging"] {
        assert!(c.has_effect(name), "{name}");
    }
    assert!(!c.has_effect("Bless"));
}

#[test]
fn mage_armor_and_barkskin_only_raise() {
    let mut c = hero("Wizard", 1, [10, 16, 10, 10, 10, 10]);
    c.shield = Some(Worn { name: "shield".into(), ..Worn::default() });
    for (written, effect, total) in [
        (15, "Mage Armor", 18),
        (18, "Mage Armor", 18),
        (19, "Mage Armor", 19),
        (15, "Barkskin", 16),
        (16, "Barkskin", 16),
        (17, "Barkskin", 17),
    ] {
        c.armor_class = written;
        let ac = with_effects(c.clone(), &[effect]).armor_class_now();
        assert_eq!((ac.total, ac.reasons.is_empty()), (total, total == written), "{written} {effect}");
    }
}

#[test]
fn armor_class_from_what_is_worn() {
    let worn = |name: &str| Some(Worn { name: name.into(), ..Worn::default() });
    for (dexterity, armor, shield, total) in [
        (18, "", "", None),
        (18, "a barrel", "shield", None),
        (18, "", "shield", Some(16)),
        (18, "leather", "", Some(15)),
        (18, "half plate", "", Some(17)),
        (6, "plate", "+1 shield", Some(21)),
    ] {
        let mut c = hero("", 1, [10, dexterity, 10, 10, 10, 10]);
        (c.armor, c.shield) = (worn(armor), worn(shield));
        assert_eq!(c.armor_class_worn(), total, "{armor} {shield}");
    }
}

/// What a sheet shows is what is rolled.
#[test]
fn a_sheet_shows_the_numbers_that_rolls_have() {
    let names: Vec<&str> = rules::srd::WEAPONS.iter().map(|weapon| weapon.name).chain(["+1 longsword"]).collect();
    let mut actor = with_features(armed(hero("Fighter", 5, [16, 14, 14, 10, 10, 10]), &names), &["Jack of All Trades"]);
    actor.skill_proficiencies = vec!["Stealth".to_owned()];
    actor.saving_throw_proficiencies = vec!["constitution".to_owned()];
    let shown = sheet_attacks(&actor);
    assert_eq!(shown.len(), names.len());
    for (name, shown) in names.iter().zip(&shown) {
        let dice = [4; 6];
        let o = resolve_attack(&actor, &foe(5, 200), &with(name), &plain(), &mut Given::new(&dice)).unwrap();
        assert_eq!(o.total_modifier, format!("{:+}", shown.bonus), "{name}");
        let Some(damage) = o.damage else {
            assert_eq!((*name, shown.damage.as_str()), ("net", ""));
            continue;
        };
        let row = &damage.breakdown[0];
        let (dice, flat) = (row.dice.as_str(), row.flat_bonus);
        let sum = if dice.is_empty() {
            flat.to_string()
        } else if flat == 0 {
            dice.to_owned()
        } else {
            format!("{dice}{flat:+}")
        };
        assert_eq!(shown.damage, sum, "{name}");
        assert_eq!(row.damage_type.as_deref(), Some(shown.damage_type.as_str()), "{name}");
    }
    for skill in &rules::srd::SKILLS {
        let args = SkillCheckArgs { skill: skill.name.to_owned(), dc: 10, ability: None };
        let o = resolve_skill_check(&actor, &args, &plain(), &mut Given::new(&[11, 11])).unwrap();
        assert_eq!(o.total_modifier, format!("{:+}", skill_bonus(&actor, skill)), "{}", skill.name);
    }
    let o = roll_initiative(&actor, &plain(), &mut Given::new(&[11, 11])).unwrap();
    assert_eq!(o.total_modifier, format!("{:+}", initiative_bonus(&actor)));
    for ability in Ability::ALL {
        let args = SavingThrowArgs { ability: ability.name().to_owned(), dc: 10, ..SavingThrowArgs::default() };
        let o = resolve_saving_throw(&actor, &args, &plain(), &mut Given::new(&[11, 11])).unwrap();
        assert_eq!(o.total_modifier, format!("{:+}", save_bonus(&actor, ability)), "{ability:?}");
    }
    let wolf = with_attack(foe(13, 11), "Bite", 4, "2d4+2", "piercing");
    let bite = &sheet_attacks(&wolf)[0];
    assert_eq!(
        (bite.bonus, bite.damage.as_str(), bite.damage_type.as_str(), bite.reach_ft),
        (4, "2d4+2", "piercing", 5)
    );
    let broken = with_attack(foe(13, 11), "Bite", 4, "a lot", "piercing");
    let problem = sheet_attacks(&broken)[0].problem.clone();
    assert_eq!(problem.as_deref(), Some("\"a lot\", the damage of Bite, is not a sum of dice"));
}
