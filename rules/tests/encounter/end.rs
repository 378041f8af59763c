//! The results of a fight: differences, commits to records, and summaries.

use rules::{
    encounter::{
        Action, ActionKind, Duration, Encounter, EndOutcome, MergeOptions, NewParticipant, ParticipantUpdate,
        Verbosity, commit_required, merge,
    },
    resolve::{RestArgs, RestType, apply, take_rest},
    sheet::{ActiveEffect, Concentration, Condition, Creature, DeathSaves, HitDice, Life, Resource, SpellSlot},
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
    let mut told = update();
    told.changes.conditions.initial_details.clear();
    assert_eq!(back, told);
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
fn who_was_put_to_sleep_sleeps_on() {
    let mut encounter = begun(vec![character("hero", 15, record())]);
    play(&mut encounter, &on(ActionKind::AddCondition, "hero", |a| a.condition = Some("unconscious".to_owned())), &[]);
    let mut hero = Creature { hp: 30, ..record() };
    merge(&mut hero, &encounter.diff().remove(0), EDITED);
    assert!(hero.hp > 0 && hero.conditions.iter().any(|c| c.name == "unconscious"), "{:?}", hero.conditions);
}

#[test]
fn effects_are_merged_one_by_one() {
    let effect =
        |name: &str, rounds_remaining| ActiveEffect { name: name.to_owned(), rounds_remaining, ..Default::default() };
    let began = Creature { effects: vec![effect("Rage", None), effect("Longstrider", Some(9))], ..record() };
    let mut encounter = begun(vec![character("hero", 15, began.clone())]);
    play(&mut encounter, &on(ActionKind::RemoveEffect, "hero", |a| a.effect = Some("Rage".to_owned())), &[]);
    let bless = |a: &mut Action| (a.effect, a.rounds) = (Some("Bless".to_owned()), Some(7));
    play(&mut encounter, &on(ActionKind::AddEffect, "hero", bless), &[]);
    play(&mut encounter, &Action::new(ActionKind::Dodge), &[]);
    // Somebody else gave the record an effect since. It stays.
    let mut hero = Creature { effects: [began.effects, vec![effect("Guidance", None)]].concat(), ..record() };
    merge(&mut hero, &encounter.diff().remove(0), EDITED);
    let mut left: Vec<_> = hero.effects.iter().map(|e| (e.name.as_str(), e.rounds_remaining)).collect();
    left.sort_unstable();
    assert_eq!(
        left,
        [("Bless", Some(7)), ("Guidance", None), ("Longstrider", Some(9))],
        "rage is over, a dodge outlives no fight"
    );
}

const EDITED: MergeOptions = MergeOptions { unchanged: false, ..MergeOptions::ALL };

#[test]
fn what_lasts_until_a_rest_is_committed_as_that_and_ends_with_one() {
    let lasts = |encounter: &mut Encounter, target: &str| {
        let act = on(ActionKind::AddCondition, target, |a| {
            (a.condition, a.duration) = (Some("poisoned".to_owned()), Some(Duration::UntilRest));
        });
        play(encounter, &act, &[]);
    };
    let mut encounter = begun(vec![character("hero", 15, Creature::default())]);
    lasts(&mut encounter, "hero");
    let update = encounter.diff().remove(0);
    assert_eq!(update.changes.conditions.details[0].duration, Some(Duration::UntilRest));
    // In the fight itself.
    let rest = |who: &Creature, rest| {
        let args = RestArgs { rest, ..RestArgs::default() };
        take_rest(who, &args, &mut Endless(1)).expect("a rest").effects
    };
    let effects = rest(&who(&encounter, "hero").creature, RestType::Short);
    let decision = encounter.absorb(Some("hero"), &effects, &mut Endless(1)).expect("it rests");
    encounter.apply_all(&decision.events);
    assert!(!has(&encounter, "hero", "poisoned") && who(&encounter, "hero").lasting.is_empty());
    // In the record, after a commit; the next fight knows it, too.
    let mut record = Creature::default();
    let written = merge(&mut record, &update, MergeOptions::ALL);
    assert_eq!(written.conditions.details[0].duration, Some(Duration::UntilRest));
    let again = begun(vec![character("hero", 15, record.clone())]);
    assert_eq!(again.diff()[0].changes.conditions.details[0].duration, Some(Duration::UntilRest));
    for kind in [RestType::Short, RestType::Long] {
        let mut rested = record.clone();
        apply(&mut rested, &rest(&record, kind));
        assert!(rested.conditions.is_empty(), "{kind:?}");
    }
    // The later of two ends counts. A rest comes later than any round, but earlier than never.
    for (own, until_rest) in [(Some(3), true), (None, false)] {
        let mut record = Creature { conditions: vec![condition("poisoned", None, own)], ..Creature::default() };
        merge(&mut record, &update, MergeOptions { unchanged: false, ..MergeOptions::ALL });
        let it = &record.conditions[0];
        assert_eq!((it.rounds_remaining, it.until_rest), (None, until_rest));
    }
}

fn condition(name: &str, level: Option<i32>, rounds_remaining: Option<i32>) -> Condition {
    Condition { name: name.to_owned(), level, rounds_remaining, ..Condition::default() }
}

/// The result of merging an update of `act` into a record that joined with one condition and now has another.
fn edited(joined: Condition, act: &rules::encounter::Action, own: &[Condition]) -> rules::encounter::Changes {
    let sheet = |conditions: &[Condition]| Creature { conditions: conditions.to_vec(), ..record() };
    let mut encounter = begun(vec![character("hero", 15, sheet(&[joined]))]);
    play(&mut encounter, act, &[]);
    let mut hero = sheet(own);
    let written = merge(&mut hero, &encounter.diff().remove(0), EDITED);
    let stands: Vec<_> = hero.conditions.iter().map(|c| (c.name.clone(), c.level, c.rounds_remaining)).collect();
    let told: Vec<_> =
        written.conditions.details.iter().map(|d| (d.name.clone(), d.level, d.rounds_remaining)).collect();
    assert_eq!(stands, told, "what is told is what stands there");
    written
}

#[test]
fn a_condition_only_the_fight_changed_takes_its_value() {
    let tired = |level| condition("exhaustion", Some(level), None);
    let change =
        |kind, level| on(kind, "hero", |a| (a.condition, a.level) = (Some("exhaustion".to_owned()), Some(level)));
    let level = |written: &rules::encounter::Changes| written.conditions.details.first().and_then(|d| d.level);
    let rested = change(ActionKind::RemoveCondition, 1);
    let written = edited(tired(3), &rested, &[tired(3)]);
    assert_eq!((level(&written), &*written.conditions.changed), (Some(2), &["exhaustion".to_owned()][..]));
    assert_eq!(level(&edited(tired(3), &rested, &[tired(4)])), Some(4), "changed on both sides: the worse");
    assert_eq!(level(&edited(tired(3), &rested, &[tired(1)])), Some(2));
    assert_eq!(level(&edited(tired(3), &rested, &[])), None, "ended meanwhile");
    assert_eq!(level(&edited(tired(1), &change(ActionKind::AddCondition, 2), &[tired(1)])), Some(2));
    let cured = on(ActionKind::RemoveCondition, "hero", |a| a.condition = Some("exhaustion".to_owned()));
    assert_eq!(level(&edited(tired(1), &cured, &[tired(1)])), None);
    assert_eq!(level(&edited(tired(1), &cured, &[tired(2)])), Some(2), "worse than what was cured");
}

#[test]
fn rounds_only_the_fight_changed_take_its_value() {
    let ill = |rounds| condition("poisoned", None, rounds);
    let shorter = on(ActionKind::AddCondition, "hero", |a| {
        (a.condition, a.rounds) = (Some("poisoned".to_owned()), Some(2));
        a.description = Some("green".to_owned());
    });
    let told = |own| edited(ill(Some(9)), &shorter, &[own]).conditions.details.remove(0);
    assert_eq!(told(ill(Some(9))).rounds_remaining, Some(2));
    assert_eq!((told(ill(Some(5))).rounds_remaining, told(ill(None)).rounds_remaining), (Some(5), None));
    assert_eq!((told(ill(None)).duration, told(ill(None)).description.as_deref()), (None, Some("green")));
}

#[test]
fn who_died_elsewhere_stays_dead() {
    let mut encounter = begun(vec![character("hero", 15, Creature { hp: 0, ..record() })]);
    let heal = on(ActionKind::Heal, "hero", |a| a.amount = Some(9));
    play(&mut encounter, &heal, &[]);
    play(&mut encounter, &action(ActionKind::UseSpellSlot, |a| a.level = Some(1)), &[]);
    let update = encounter.diff().remove(0);
    let saves = DeathSaves { failures: 3, successes: 0 };
    let dead = [
        Creature { hp: 0, death_saves: saves, ..record() },
        Creature { hp: 0, is_npc: true, ..record() },
        Creature { conditions: vec![condition("exhaustion", Some(6), None)], hp: 0, ..record() },
    ];
    for dead in dead {
        let mut hero = dead.clone();
        let written = merge(&mut hero, &update, EDITED);
        assert_eq!((hero.life(), hero.hp, hero.death_saves), (Life::Dead, 0, dead.death_saves));
        assert_eq!((written.hp.delta, &hero.conditions), (0, &dead.conditions));
        assert_eq!(hero.slots_left(1), 3, "what it spent is spent");
    }
}

#[test]
fn a_rest_in_a_fight_is_written_with_all_it_gives() {
    let tired = Creature {
        hp: 5,
        hit_dice: Some(HitDice { die: 8, max: 6, remaining: 1 }),
        turn_flags: [("relentless_endurance".to_owned(), "rest".to_owned())].into(),
        ..record()
    };
    let mut encounter = begun(vec![character("hero", 15, tired.clone())]);
    assert!(!commit_required(&encounter.diff()));
    let args = RestArgs { rest: RestType::Long, ..RestArgs::default() };
    let rest = take_rest(&who(&encounter, "hero").creature, &args, &mut Endless(1)).expect("a rest");
    let decision = encounter.absorb(Some("hero"), &rest.effects, &mut Endless(1)).expect("a decision");
    encounter.apply_all(&decision.events);
    let update = encounter.diff().remove(0);
    let told = to_value(&update.changes).expect("json");
    assert_eq!(told["hit_dice"], json!({ "initial": 1, "final": 4, "delta": 3 }));
    assert_eq!(told["cleared_rest_flags"], json!(["relentless_endurance"]));
    for (options, own, left) in [(MergeOptions::ALL, 1, 4), (EDITED, 2, 5), (EDITED, 6, 6)] {
        let mut hero = tired.clone();
        hero.hit_dice = Some(HitDice { die: 8, max: 6, remaining: own });
        let written = merge(&mut hero, &update, options);
        assert_eq!((hero.hit_dice.map(|d| d.remaining), hero.turn_flags.len()), (Some(left), 0));
        assert_eq!(written.hit_dice.map(|d| d.delta), (left != own).then_some(left - own));
    }
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
        "1 round. Standing: Hero. Dead: b. Most damage: Hero (40). Most damage taken: b (40). Most healing: Hero (2)."
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
