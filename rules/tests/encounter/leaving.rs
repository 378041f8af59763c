//! Participants who leave a fight, and come back.

use rules::{
    dice::Given,
    encounter::{ActionKind, Duration, Encounter, Event, NewParticipant, commit_required},
    sheet::{Creature, Feature, Weapon},
};

use crate::support::*;

fn leave(encounter: &mut Encounter, id: &str) -> Vec<Event> {
    let events = encounter.leave(id, &mut Endless(1)).expect("it leaves").events;
    encounter.apply_all(&events);
    events
}

#[test]
fn whoever_has_the_turn_passes_it_on() {
    let mut encounter = begun(vec![someone("a", 20), enemy("b", 15), someone("c", 10), enemy("d", 5)]);
    assert_eq!((leave(&mut encounter, "a").len(), current(&encounter)), (2, "b"), "it leaves, and a turn begins");
    assert_eq!(encounter.round(), 1);
    // Those before it and after it leave, and it keeps its turn.
    advance(&mut encounter);
    leave(&mut encounter, "b");
    leave(&mut encounter, "d");
    assert_eq!((current(&encounter), encounter.round(), encounter.turn()), ("c", 1, 1));
    advance(&mut encounter);
    assert_eq!((current(&encounter), encounter.round()), ("c", 2));
    leave(&mut encounter, "c");
    assert_eq!((encounter.current(), encounter.participants().len()), (None, 0));
    let joins =
        encounter.join(&someone("c", 3), &mut Endless(1)).expect("nobody without a record is remembered").events;
    encounter.apply_all(&joins);
    advance(&mut encounter);
    assert_eq!(current(&encounter), "c");
}

#[test]
fn what_lasts_while_somebody_is_there_ends() {
    let mut encounter = begun(vec![someone("mage", 20), someone("friend", 15), enemy("orc", 10)]);
    play(&mut encounter, &on(ActionKind::Help, "friend", |_| {}), &[]);
    let held = |name: &str, duration| {
        on(ActionKind::AddCondition, "orc", |a| {
            (a.condition, a.participant_id) = (Some(name.to_owned()), Some("mage".to_owned()));
            a.duration = duration;
        })
    };
    play(&mut encounter, &held("grappled", None), &[]);
    play(&mut encounter, &held("frightened", Some(Duration::UntilDispelled)), &[]);
    assert!(has_effect(&encounter, "friend", "Help"));
    leave(&mut encounter, "mage");
    assert!(!has_effect(&encounter, "friend", "Help") && !has(&encounter, "orc", "grappled"));
    assert!(has(&encounter, "orc", "frightened"), "this lasts without it");
}

#[test]
fn what_others_do_to_it_ends() {
    let cleric = Creature { hp: 20, max_hp: 20, ..Creature::default() };
    let mut encounter =
        begun(vec![character("cleric", 20, cleric.clone()), character("hero", 15, cleric), enemy("orc", 10)]);
    let held = |name: &str, by: &str, duration, source: Option<&str>| {
        on(ActionKind::AddCondition, "hero", |a| {
            (a.condition, a.participant_id) = (Some(name.to_owned()), Some(by.to_owned()));
            (a.duration, a.source) = (duration, source.map(str::to_owned));
        })
    };
    play(&mut encounter, &held("grappled", "orc", None, None), &[]);
    play(&mut encounter, &held("restrained", "cleric", Some(Duration::Concentration), Some("Web")), &[]);
    play(&mut encounter, &held("poisoned", "orc", Some(Duration::UntilDispelled), None), &[]);
    leave(&mut encounter, "hero");
    let left: Vec<&str> = encounter.departed()[0].creature.conditions.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(left, ["poisoned"]);
}

#[test]
fn who_comes_back_has_had_its_turn() {
    let hero = || NewParticipant {
        initiative: None,
        ..character("hero", 0, Creature { hp: 30, max_hp: 30, ..Creature::default() })
    };
    let first = NewParticipant { initiative: Some(20), attacks_per_action: Some(3), ..hero() };
    let mut encounter = begun(vec![first, enemy("orc", 10), enemy("wolf", 5)]);
    advance(&mut encounter);
    leave(&mut encounter, "hero");
    let events = encounter.join(&hero(), &mut Given::new(&[])).expect("no initiative is rolled again").events;
    encounter.apply_all(&events);
    assert_eq!((who(&encounter, "hero").initiative, who(&encounter, "hero").attacks_per_action), (20, 3));
    let mut order = vec![current(&encounter).to_owned()];
    for _ in 0..3 {
        advance(&mut encounter);
        order.push(current(&encounter).to_owned());
    }
    assert_eq!(order, ["orc", "wolf", "hero", "orc"]);
}

#[test]
fn what_happened_to_a_record_is_kept() {
    let hero = || character("hero", 20, Creature { hp: 30, max_hp: 30, ..Creature::default() });
    let mut encounter = begun(vec![hero(), enemy("orc", 10), enemy("wolf", 5)]);
    play(&mut encounter, &on(ActionKind::Damage, "hero", |a| a.amount = Some(12)), &[]);
    leave(&mut encounter, "hero");
    leave(&mut encounter, "wolf");
    let left = encounter.diff();
    assert_eq!(left.iter().map(|update| update.participant_id.as_str()).collect::<Vec<_>>(), ["orc", "hero"]);
    assert_eq!((left[1].changes.hp.delta, left[1].changes.statistics.damage_taken), (-12, 12));
    assert!(commit_required(&left) && encounter.participant("hero").is_none() && encounter.anybody("hero").is_some());

    // It comes back as it was, under its own name alone, whatever its record says now.
    let as_another = NewParticipant { id: "somebody".to_owned(), ..hero() };
    assert!(encounter.join(&as_another, &mut Endless(1)).is_err());
    assert!(encounter.join(&someone("hero", 3), &mut Endless(1)).is_err(), "somebody else with its name");
    let events = encounter.join(&hero(), &mut Endless(1)).expect("it comes back").events;
    encounter.apply_all(&events);
    assert_eq!((who(&encounter, "hero").creature.hp, encounter.departed().len()), (18, 0));
    assert_eq!(encounter.diff()[1].changes.hp.delta, -12);
}

#[test]
fn there_is_room_for_whoever_comes_back() {
    let hero = || character("hero", 20, Creature::default());
    let all = (1..200).map(|n| enemy(&format!("rat{n}"), 1)).chain([hero()]).collect();
    let mut encounter = begun(all);
    leave(&mut encounter, "hero");
    assert!(encounter.join(&enemy("rat", 1), &mut Endless(1)).is_err(), "its place is kept");
    assert!(encounter.join(&hero(), &mut Endless(1)).is_ok());
}

#[test]
fn a_feature_is_used_once_a_turn_whoever_leaves() {
    let rogue = Creature {
        profession: "Rogue".to_owned(),
        features: vec![Feature { name: "Sneak Attack".to_owned(), ..Feature::default() }],
        weapons: vec![Weapon { name: "Rapier".to_owned(), ..Weapon::default() }],
        ..Creature::default()
    };
    let mut encounter =
        begun(vec![someone("a", 1), someone("ally", 2), character("rogue", 20, rogue), enemy("orc", 5)]);
    let stab = |encounter: &Encounter| {
        let sneaky = on(ActionKind::Attack, "orc", |a| {
            a.attack.extra_damage_sources = vec!["Sneak Attack".to_owned()];
            a.circumstances.context.ally_adjacent = true;
            a.overridden = true;
        });
        encounter.act(&sneaky, &mut Given::new(&[18, 4, 5])).expect("an attack")
    };
    let first = stab(&encounter);
    assert_eq!(first.outcomes[0].damage.as_ref().expect("a hit").breakdown.len(), 2);
    encounter.apply_all(&first.events);
    leave(&mut encounter, "a");
    assert_eq!(stab(&encounter).outcomes[0].damage.as_ref().expect("a hit").breakdown.len(), 1, "its turn goes on");
}

#[test]
fn nobody_leaves_twice_or_after_the_end() {
    let mut encounter = begun(vec![someone("a", 20), enemy("b", 15)]);
    let code = |encounter: &Encounter, id: &str| encounter.leave(id, &mut Endless(1)).expect_err("refused").code();
    assert_eq!(code(&encounter, "nobody"), "validation_failed");
    leave(&mut encounter, "b");
    assert_eq!(code(&encounter, "b"), "validation_failed");
    let end = encounter.end(rules::encounter::EndOutcome::Victory, None).expect("the end").events;
    encounter.apply_all(&end);
    assert_eq!(code(&encounter, "a"), "encounter_already_ended");
}
