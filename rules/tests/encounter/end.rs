//! What a fight did: differences, what is written into records, what is told.

use rules::{
    encounter::{
        ActionKind, Encounter, EndOutcome, MergeOptions, NewParticipant, ParticipantUpdate, Verbosity, commit_required,
        merge,
    },
    sheet::{Concentration, Condition, Creature, Resource, SpellSlot},
};
use serde_json::{Value, json, to_value};

use crate::support::*;

fn record() -> Creature {
    Creature {
        name: "Hero".to_owned(),
        hp: 28,
        max_hp: 30,
        spell_slots: [("2", 3), ("1", 4)].map(|(l, n)| (l.to_owned(), SpellSlot { max: n, remaining: n })).into(),
        resources: vec![Resource { name: "Ki Points".to_owned(), max: 5, remaining: 5 }],
        conditions: vec![Condition { name: "poisoned".to_owned(), ..Condition::default() }],
        ..Creature::default()
    }
}

/// A fight that costs the hero 5 hit points, a slot, 2 ki, cures and trips it.
fn fought() -> Encounter {
    let mut encounter = begun(vec![character("hero", 15, record()), enemy("b", 5)]);
    let acts = [
        on(ActionKind::Damage, "hero", |a| (a.amount, a.participant_id) = (Some(5), Some("b".to_owned()))),
        action(ActionKind::UseSpellSlot, |a| a.level = Some(1)),
        action(ActionKind::UseResource, |a| (a.resource, a.amount) = (Some("Ki Points".to_owned()), Some(2))),
        on(ActionKind::RemoveCondition, "hero", |a| a.condition = Some("poisoned".to_owned())),
        on(ActionKind::AddCondition, "hero", |a| {
            (a.condition, a.participant_id) = (Some("prone".to_owned()), Some("b".to_owned()))
        }),
    ];
    for act in acts {
        play(&mut encounter, &act, &[]);
    }
    encounter
}

fn update() -> ParticipantUpdate {
    fought().diff().remove(0)
}

#[test]
fn differences_have_their_shape() {
    let wanted = json!({
        "participant_id": "hero", "character_id": "record-hero", "is_ephemeral": false,
        "changes": {
            "hp": { "initial": 28, "final": 23, "delta": -5 },
            "conditions": {
                "initial": ["poisoned"], "added": ["prone"], "removed": ["poisoned"], "active": ["prone"],
                "details": [{ "name": "prone", "source": "b", "duration": "until_dispelled" }],
            },
            "spell_slots": [
                { "level": 1, "initial": 4, "final": 3, "expended": 1 },
                { "level": 2, "initial": 3, "final": 3, "expended": 0 },
            ],
            "resources": [{ "name": "Ki Points", "initial": 5, "final": 3, "delta": -2 }],
            "statistics": { "damage_dealt": 0, "damage_taken": 5, "healing_done": 0, "attacks_made": 0, "attacks_hit": 0 },
        },
    });
    assert_eq!(to_value(update()).expect("json"), wanted);
    let back: ParticipantUpdate = serde_json::from_value(wanted).expect("an update");
    assert_eq!(back, update());
}

#[test]
fn every_kind_of_difference_asks_for_a_commit() {
    type Change = fn(&mut rules::encounter::Action);
    let kinds: Vec<(&str, Change)> = vec![
        ("damage", |a| a.amount = Some(1)),
        ("heal", |a| a.amount = Some(1)),
        ("temp_hp", |a| a.amount = Some(1)),
        ("add_condition", |a| a.condition = Some("prone".to_owned())),
        ("remove_condition", |a| a.condition = Some("poisoned".to_owned())),
        ("use_spell_slot", |a| a.level = Some(2)),
        ("use_resource", |a| a.resource = Some("Ki Points".to_owned())),
        ("end_concentration", |_| {}),
    ];
    let hero = Creature { concentration: Some(Concentration { spell: "Bless".to_owned() }), ..record() };
    for (name, change) in kinds {
        let kind: ActionKind = serde_json::from_value(Value::from(name)).expect("a kind");
        let mut encounter = begun(vec![character("hero", 15, hero.clone()), someone("b", 5)]);
        assert!(!commit_required(&encounter.diff()), "nothing happened yet");
        let decision = encounter.act(&on(kind, "hero", change), &mut Endless(3)).expect("a decision");
        encounter.apply_all(&decision.events);
        assert!(commit_required(&encounter.diff()), "{name}");
    }
    let mut encounter = begun(vec![character("hero", 15, hero), someone("b", 5)]);
    play(&mut encounter, &on(ActionKind::Damage, "b", |a| a.amount = Some(5)), &[]);
    assert!(!commit_required(&encounter.diff()), "who has no record needs none");
}

#[test]
fn an_unchanged_record_gets_the_final_values() {
    let mut hero = record();
    let written = merge(&mut hero, &update(), MergeOptions::ALL);
    assert_eq!((hero.hp, hero.slots_left(1), hero.slots_left(2), hero.resources[0].remaining), (23, 3, 3, 3));
    assert_eq!(hero.conditions.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["prone"]);
    assert_eq!(written, update().changes, "what changed in the record is what changed in the fight");
}

#[test]
fn an_edited_record_gets_the_differences() {
    let edited = |hp, conditions: &[&str]| Creature {
        hp,
        conditions: conditions.iter().map(|c| Condition { name: (*c).to_owned(), ..Condition::default() }).collect(),
        ..record()
    };
    let options = MergeOptions { unchanged: false, ..MergeOptions::ALL };
    for (before, after) in [(30, 25), (20, 15), (3, 0)] {
        let mut hero = edited(before, &["poisoned", "deafened"]);
        hero.resources[0].remaining = 1;
        let written = merge(&mut hero, &update(), options);
        assert_eq!((hero.hp, written.hp.initial, written.hp.now), (after, before, after));
        assert_eq!(written.conditions.active, ["deafened", "prone"]);
        assert_eq!(hero.resources[0].remaining, 0);
    }
    let mut prone = edited(30, &["prone"]);
    merge(&mut prone, &update(), options);
    assert_eq!(prone.conditions.len(), 1);
}

#[test]
fn what_is_excluded_stays() {
    let mut hero = record();
    let written = merge(&mut hero, &update(), MergeOptions { exclude_conditions: true, ..MergeOptions::ALL });
    assert_eq!((hero.conditions[0].name.as_str(), hero.conditions.len(), hero.slots_left(1)), ("poisoned", 1, 3));
    assert!(written.conditions.added.is_empty() && written.conditions.removed.is_empty());
    let mut hero = record();
    merge(&mut hero, &update(), MergeOptions { exclude_spell_slots: true, ..MergeOptions::ALL });
    assert_eq!((hero.slots_left(1), hero.conditions.len(), hero.hp), (4, 1, 23));
}

#[test]
fn who_died_stays_dead() {
    let mut encounter = begun(vec![character("hero", 15, record())]);
    play(&mut encounter, &on(ActionKind::Damage, "hero", |a| a.amount = Some(60)), &[]);
    let update = encounter.diff().remove(0);
    for unchanged in [true, false] {
        let mut hero = Creature { hp: 30, ..record() };
        merge(&mut hero, &update, MergeOptions { unchanged, ..MergeOptions::ALL });
        assert_eq!((hero.hp, hero.life()), (0, rules::sheet::Life::Dead));
    }
}

#[test]
fn who_was_healed_meanwhile_does_not_lie_there() {
    let mut encounter = begun(vec![character("hero", 15, record())]);
    play(&mut encounter, &on(ActionKind::Damage, "hero", |a| a.amount = Some(28)), &[]);
    let update = encounter.diff().remove(0);
    let mut hero = Creature { hp: 30, ..record() };
    let written = merge(&mut hero, &update, MergeOptions { unchanged: false, ..MergeOptions::ALL });
    assert_eq!((hero.hp, hero.life()), (2, rules::sheet::Life::Alive));
    assert_eq!(written.conditions.active, ["poisoned", "prone"], "awake, but on the ground");
}

#[test]
fn the_summary_names_who_did_most() {
    let mut encounter = fought();
    play(
        &mut encounter,
        &on(ActionKind::Damage, "b", |a| (a.amount, a.participant_id) = (Some(40), Some("hero".to_owned()))),
        &[],
    );
    play(
        &mut encounter,
        &on(ActionKind::Heal, "hero", |a| (a.amount, a.participant_id) = (Some(2), Some("hero".to_owned()))),
        &[],
    );
    let end = encounter.end(EndOutcome::Victory, None).expect("it ends");
    encounter.apply_all(&end.events);
    let summary = encounter.summary();
    let best = summary.most_damage_dealt.expect("somebody");
    assert_eq!((best.name.as_str(), best.amount), ("Hero", 40));
    assert_eq!(
        summary.text,
        "1 round. Standing: Hero. Dead: b. Most damage: Hero (40). Most hurt: b (40). Most healing: Hero (2)."
    );
    assert_eq!(summary.outcome, Some(EndOutcome::Victory));
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().map(|o| o.keys().map(String::as_str).collect()).unwrap_or_default()
}

#[test]
fn each_verbosity_tells_more() {
    let mut encounter = fought();
    play(&mut encounter, &on(ActionKind::Damage, "hero", |a| a.amount = Some(25)), &[]);
    let told = |verbosity| to_value(encounter.view(verbosity)).expect("json");
    let minimal = told(Verbosity::Minimal);
    let frame = ["current_participant_id", "encounter_id", "participant_count", "round", "status", "turn", "warnings"];
    assert_eq!(keys(&minimal), frame);
    let summary = told(Verbosity::Summary);
    assert_eq!(keys(&summary["participants"][0]), ["character_id", "hp", "id", "is_enemy", "max_hp", "name", "status"]);
    let standard = told(Verbosity::Standard);
    let wanted = [
        "armor_class",
        "character_id",
        "conditions",
        "death_saves",
        "hp",
        "id",
        "initiative",
        "is_enemy",
        "max_hp",
        "name",
        "resources",
        "size",
        "speed",
        "spell_slots",
        "status",
        "temp_hp",
    ];
    assert_eq!(keys(&standard["participants"][0]), wanted);
    assert_eq!(standard["participants"][0]["status"], "dying");
    assert_eq!(standard["participants"][0]["conditions"], json!(["prone", "unconscious"]));
    assert_eq!(standard["lighting"], "bright");
    assert_eq!(standard["terrain"]["width"], 50);
    let detailed = told(Verbosity::Detailed);
    assert_eq!(detailed["participants"][0]["conditions"][0]["duration"], "until_dispelled");
    assert_eq!(detailed["participants"][0]["is_ephemeral"], false);
    assert_eq!(detailed["participants"][1]["economy"]["action"], false);
}

#[test]
fn telling_changes_nothing_and_it_can_be_stored() {
    let encounter = fought();
    let stored = serde_json::to_string(&encounter).expect("json");
    let read: Encounter = serde_json::from_str(&stored).expect("an encounter");
    assert_eq!(read, encounter);
    assert_eq!(serde_json::to_string(&read).expect("json"), stored);
}

#[test]
fn somebody_who_joins_has_a_baseline_of_its_own() {
    let mut encounter = begun(vec![someone("a", 15)]);
    let hero = NewParticipant {
        initiative: Some(3),
        ..character("hero", 3, Creature { hp: 20, max_hp: 30, ..Creature::default() })
    };
    let joined = encounter.join(&hero, &mut Endless(1)).expect("joined");
    encounter.apply_all(&joined.events);
    let hp = encounter.diff()[1].changes.hp;
    assert_eq!((hp.initial, hp.delta), (20, 0));
}
