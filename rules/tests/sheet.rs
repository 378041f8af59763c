//! Stored sheets, and outcomes as JSON.

mod support;

use rules::{
    resolve::{AttackArgs, Circumstances, Outcome, StateChange, apply},
    sheet::{Condition, Creature, KnownSpell, WeaponAbility},
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
    for absent in ["impossible", "no_check", "attacks", "participants", "automatic"] {
        assert_eq!(sent.get(absent), None, "{absent}");
    }
    assert_eq!(sent["dc_or_ac"], "10");
    assert_eq!(sent["advantage"], "none");
    assert_eq!(sent["modifiers"][0], json!({"label": "STR", "value": 3}));
    assert_eq!(sent["dice"][0], json!({"faces": 20, "value": 15, "kept": true}));
    assert_eq!(sent["effects"][0]["type"], "damage");
    assert_eq!(sent["damage"]["breakdown"][0]["rolls"], json!([5]));
    assert_eq!(serde_json::from_value::<Outcome>(sent).unwrap(), o);
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
