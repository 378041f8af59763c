//! What is just within the limits, and what a fight is told or keeps of itself.

use rules::{
    encounter::{
        Action, ActionKind, Duration, Encounter, Event, Hazard, Lasting, NewCondition, NewParticipant, Refusal, Setup,
        Terrain, Until, commit_required, limits,
    },
    resolve::{DamagePart, StateChange},
    sheet::{ActiveEffect, Condition, Creature},
    srd::{Ability, DAMAGE_TYPES},
};
use serde_json::to_value;

use crate::support::*;

#[test]
fn actions_as_long_as_they_may_be() {
    let encounter = begun(vec![placed(someone("a", 15), 0, 0), enemy("b", 5)]);
    let refused = |action: &Action| encounter.act(action, &mut Endless(1)).err().map(|r| r.to_string());
    let path = |squares| action(ActionKind::Move, |a| a.path = vec![at(1, 1); squares]);
    let parts = |count| {
        let part = DamagePart { amount: 1, damage_type: "fire".to_owned() };
        on(ActionKind::Damage, "b", |a| a.parts = vec![part; count])
    };
    let sources =
        |count| on(ActionKind::Attack, "b", |a| a.attack.extra_damage_sources = vec!["Rage".to_owned(); count]);
    type Long<'a> = (&'a str, usize, &'a dyn Fn(usize) -> Action);
    let cases: [Long; 3] = [
        ("path", limits::PATH_MAX, &path),
        ("parts", DAMAGE_TYPES.len(), &parts),
        ("extra_damage_sources", limits::SOURCES_MAX, &sources),
    ];
    for (argument, most, make) in cases {
        let too_many = format!("{argument}: must have at most {most} entries");
        assert_ne!(refused(&make(most)), Some(too_many.clone()));
        for count in [most + 1, most + 2] {
            assert_eq!(refused(&make(count)), Some(too_many.clone()));
        }
    }
}

#[test]
fn ground_as_crowded_as_it_may_be() {
    let check = |terrain: Terrain| {
        Encounter::create(&Setup { terrain: Some(terrain), ..setup(vec![someone("a", 1)]) }, &mut Endless(1)).is_ok()
    };
    let swamp = |count| Terrain { water: squares(&vec![(1, 1); count]), ..Terrain::default() };
    for (count, fits) in
        [(limits::SQUARES_MAX, true), (limits::SQUARES_MAX + 1, false), (limits::SQUARES_MAX + 2, false)]
    {
        assert_eq!(check(swamp(count)), fits, "{count}");
    }
    let hazards = |count| Terrain { hazards: vec![Hazard::default(); count], ..Terrain::default() };
    assert!(check(hazards(limits::HAZARDS_MAX)) && !check(hazards(limits::HAZARDS_MAX + 1)));
}

#[test]
fn participants_as_odd_as_they_may_be() {
    let joins = |change: fn(&mut NewParticipant)| {
        let mut it = someone("a", 1);
        change(&mut it);
        Encounter::create(&setup(vec![it]), &mut Endless(1)).ok().map(|(encounter, _)| encounter)
    };
    assert!(joins(|p| p.features = vec![String::new(); 100]).is_some());
    assert!(joins(|p| p.name = Some("x".repeat(200))).is_some());
    assert!(joins(|p| p.saving_throws = [("wis".to_owned(), -20)].into()).is_some());
    assert!(joins(|p| p.saving_throws = [("wis".to_owned(), -21)].into()).is_none());
    let named = joins(|p| p.name = Some(" ".to_owned())).expect("it joins");
    assert_eq!(who(&named, "a").creature.name, "a");
    let whole = joins(|p| (p.hp, p.max_hp) = (Some(7), None)).expect("it joins");
    assert_eq!(who(&whole, "a").creature.max_hp, 7);
    let record = Creature { name: "Hero".to_owned(), ..Creature::default() };
    let nameless = NewParticipant { name: Some(" ".to_owned()), ..character("hero", 1, record) };
    assert_eq!(who(&begun(vec![nameless]), "hero").creature.name, "Hero");
}

#[test]
fn what_is_brought_along_lasts_as_it_was_told() {
    let brought = |name: &str, change: fn(&mut NewCondition)| {
        let condition = Condition { name: name.to_owned(), ..Condition::default() };
        let mut it = NewCondition { condition, description: Some("odd".to_owned()), ..NewCondition::default() };
        change(&mut it);
        it
    };
    let conditions = vec![
        brought("poisoned", |c| c.condition.rounds_remaining = Some(3)),
        brought("charmed", |c| c.condition.until_rest = true),
        brought("blinded", |_| {}),
        brought("deafened", |c| (c.save_dc, c.save_ability, c.description) = (Some(12), Some(Ability::Wisdom), None)),
    ];
    let encounter = begun(vec![NewParticipant { conditions, ..someone("a", 1) }]);
    let details = &encounter.diff()[0].changes.conditions.details;
    let told: Vec<_> = details.iter().map(|d| (d.duration, d.description.is_some(), d.save_dc)).collect();
    assert_eq!(
        told,
        [
            (Some(Duration::Rounds), true, None),
            (Some(Duration::UntilRest), true, None),
            (Some(Duration::UntilDispelled), true, None),
            (Some(Duration::SaveEnds), false, Some(12)),
        ]
    );
}

#[test]
fn what_is_over_was_not_brought_along() {
    let record = Creature {
        conditions: vec![Condition { name: "prone".to_owned(), rounds_remaining: Some(0), ..Condition::default() }],
        effects: vec![ActiveEffect { name: "Bless".to_owned(), rounds_remaining: Some(0), ..ActiveEffect::default() }],
        ..Creature::default()
    };
    let mut encounter = begun(vec![character("hero", 1, record)]);
    assert!(encounter.diff()[0].changes.conditions.initial.is_empty());
    play(&mut encounter, &on(ActionKind::RemoveEffect, "hero", |a| a.effect = Some("Bless".to_owned())), &[]);
    assert!(encounter.diff()[0].changes.effects.is_none(), "it had no effect");
}

#[test]
fn what_ends_a_condition_is_kept_for_each_and_only_for_those_there_are() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    for (name, duration) in [("charmed", Duration::UntilRest), ("prone", Duration::UntilDispelled)] {
        let act =
            on(ActionKind::AddCondition, "b", |a| (a.condition, a.duration) = (Some(name.to_owned()), Some(duration)));
        play(&mut encounter, &act, &[]);
    }
    let lasting = Lasting { condition: "poisoned".to_owned(), until: Until::Rest, description: None };
    encounter.apply(&Event::Lasts { participant: "b".to_owned(), lasting });
    let kept: Vec<_> = who(&encounter, "b").lasting.iter().map(|l| l.condition.as_str()).collect();
    assert_eq!(kept, ["charmed", "prone"]);
}

#[test]
fn who_gets_up_is_no_less_tired() {
    let mut encounter = begun(vec![someone("a", 15)]);
    let change = |kind, name: &str, level| on(kind, "a", |a| (a.condition, a.level) = (Some(name.to_owned()), level));
    play(&mut encounter, &change(ActionKind::AddCondition, "exhaustion", Some(3)), &[]);
    play(&mut encounter, &change(ActionKind::AddCondition, "prone", None), &[]);
    play(&mut encounter, &change(ActionKind::RemoveCondition, "prone", Some(1)), &[]);
    assert!(!has(&encounter, "a", "prone") && who(&encounter, "a").creature.exhaustion() == 3);
    let rested = play(&mut encounter, &change(ActionKind::RemoveCondition, "exhaustion", Some(3)), &[]);
    assert!(matches!(rested.events[0], Event::Changed { change: StateChange::RemoveCondition { .. }, .. }));
    assert!(who(&encounter, "a").creature.conditions.is_empty());
}

#[test]
fn events_that_make_no_sense_change_nothing() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    let joined = encounter.join(&someone("late", 1), &mut Endless(1)).expect("it joins");
    encounter.apply_all(&joined.events);
    encounter.apply_all(&joined.events);
    assert_eq!(encounter.participants().len(), 3);
    for _ in 0..=limits::PARTICIPANTS_MAX {
        encounter.apply(&Event::Provoked { by: "b".to_owned(), target: "a".to_owned(), from: at(0, 0) });
    }
    assert_eq!(encounter.provoked().len(), limits::PARTICIPANTS_MAX);
    let flags = (0..=limits::LIST_MAX).map(|n| (format!("{n:03}"), "rest".to_owned())).collect();
    let busy = begun(vec![character("hero", 1, Creature { turn_flags: flags, ..Creature::default() })]);
    assert_eq!(who(&busy, "hero").creature.turn_flags.len(), limits::LIST_MAX);
}

#[test]
fn a_feature_that_was_used_or_came_back_asks_for_a_commit() {
    let used = |turn_flags| Creature { turn_flags, ..Creature::default() };
    let creature = || "hero".to_owned();
    let spend = StateChange::SetFlag { creature: creature(), flag: "arcane".to_owned(), turn_key: "rest".to_owned() };
    let flags = || [("arcane".to_owned(), "rest".to_owned())].into();
    for (record, change) in
        [(used(Default::default()), spend), (used(flags()), StateChange::ClearFlags { creature: creature() })]
    {
        let mut encounter = begun(vec![character("hero", 1, record)]);
        assert!(!commit_required(&encounter.diff()));
        encounter.apply(&Event::Changed { by: None, change });
        assert!(commit_required(&encounter.diff()));
    }
}

#[test]
fn who_lets_go_and_what_ends_with_a_spell() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5), enemy("c", 4)]);
    let put = |kind, target: &str, what: &str, source: &str| {
        on(kind, target, |a| {
            (a.condition, a.effect) = (Some(what.to_owned()), Some(what.to_owned()));
            a.source = Some(source.to_owned());
        })
    };
    let acts = [
        put(ActionKind::AddCondition, "b", "grappled", "c"),
        put(ActionKind::AddCondition, "b", "frightened", "a"),
        put(ActionKind::AddEffect, "b", "Bless", "c"),
        put(ActionKind::AddEffect, "c", "Bless", "a"),
        put(ActionKind::AddEffect, "c", "Rage", "a"),
    ];
    for act in acts {
        play(&mut encounter, &act, &[]);
    }
    let bless = StateChange::StartConcentration { creature: "a".to_owned(), spell: "Bless".to_owned() };
    encounter.apply(&Event::Changed { by: None, change: bless });
    play(&mut encounter, &put(ActionKind::AddCondition, "a", "stunned", "b"), &[]);
    assert!(has(&encounter, "b", "grappled") && has(&encounter, "b", "frightened"));
    assert!(has_effect(&encounter, "b", "Bless") && has_effect(&encounter, "c", "Rage"));
    assert!(!has_effect(&encounter, "c", "Bless"));
}

#[test]
fn what_a_spell_on_several_counts_as() {
    let mage = Creature {
        profession: "Wizard".to_owned(),
        level: 5,
        spells: vec![rules::sheet::KnownSpell::Name("Fireball".to_owned())],
        spell_slots: [("3".to_owned(), rules::sheet::SpellSlot { max: 1, remaining: 1 })].into(),
        ..Creature::default()
    };
    let mut encounter = begun(vec![character("mage", 15, mage), enemy("b", 5), enemy("c", 4), enemy("d", 3)]);
    let fireball = action(ActionKind::CastSpell, |a| {
        a.attack.spell_name = Some("Fireball".to_owned());
        a.target_ids = ["b", "c", "d"].map(str::to_owned).to_vec();
    });
    play(&mut encounter, &fireball, &[20, 20, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    let statistics = who(&encounter, "mage").statistics;
    assert_eq!((statistics.attacks_made, statistics.attacks_hit), (3, 1));
}

#[test]
fn a_fight_in_which_nothing_happened() {
    let encounter =
        begun_with(&Setup { name: Some("Ambush".to_owned()), ..setup(vec![someone("a", 15), enemy("b", 5)]) });
    assert_eq!((encounter.id(), encounter.name()), ("fight", Some("Ambush")));
    let summary = encounter.summary();
    assert_eq!((summary.most_damage_dealt, summary.most_damage_taken, summary.most_healing_done), (None, None, None));
    assert_eq!(summary.text, "1 round. Standing: a, b.");
    let told = to_value(who(&encounter, "a")).expect("json");
    assert_eq!((told.get("economy"), told.get("statistics")), (None, None), "nothing is written of nothing");
}

#[test]
fn refusals_have_causes() {
    let encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    let refusal = decide(&encounter, &on(ActionKind::Attack, "b", |_| {}), &[]).expect_err("no dice");
    assert!(std::error::Error::source(&refusal).is_some_and(|cause| cause.to_string() == refusal.to_string()));
    assert!(std::error::Error::source(&Refusal::NobodyLeft).is_none());
}
