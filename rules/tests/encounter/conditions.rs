//! Conditions: how long they last, what ends them, and how they are shown.

use rules::{
    encounter::{Action, ActionKind, Duration, Encounter, NewCondition, NewParticipant},
    sheet::{Condition, Creature},
    srd::Ability,
};

use crate::support::*;

fn condition(name: &str, change: impl FnOnce(&mut Action)) -> Action {
    on(ActionKind::AddCondition, "b", |a| {
        a.condition = Some(name.to_owned());
        change(a);
    })
}

fn two() -> Encounter {
    begun(vec![someone("a", 15), enemy("b", 5)])
}

#[test]
fn rounds_tick_at_the_end_of_the_owners_turn() {
    let mut encounter = two();
    play(&mut encounter, &condition("poisoned", |a| (a.rounds, a.source) = (Some(5), Some("bite".to_owned()))), &[]);
    let left =
        |encounter: &Encounter| encounter.diff()[1].changes.conditions.details.first().and_then(|d| d.rounds_remaining);
    advance(&mut encounter);
    assert_eq!(left(&encounter), Some(5), "the turn of another");
    advance(&mut encounter);
    assert_eq!(left(&encounter), Some(4));
    advance(&mut encounter);
    advance(&mut encounter);
    assert_eq!(left(&encounter), Some(3), "five rounds, of which two have passed");
    for _ in 0..6 {
        advance(&mut encounter);
    }
    assert!(!has(&encounter, "b", "poisoned"));
    assert!(encounter.diff()[1].changes.conditions.active.is_empty());
}

#[test]
fn a_save_ends_it_at_the_end_of_the_turn() {
    let mut encounter = two();
    let held = condition("paralyzed", |a| {
        (a.duration, a.save_dc, a.save_ability) = (Some(Duration::SaveEnds), Some(15), Some(Ability::Wisdom));
    });
    play(&mut encounter, &held, &[]);
    advance(&mut encounter);
    play(&mut encounter, &Action::new(ActionKind::AdvanceTurn), &[14]);
    assert!(has(&encounter, "b", "paralyzed"));
    let detail = encounter.diff()[1].changes.conditions.details[0].clone();
    assert_eq!(
        (detail.duration, detail.save_dc, detail.save_ability),
        (Some(Duration::SaveEnds), Some(15), Some(Ability::Wisdom))
    );
    advance(&mut encounter);
    play(&mut encounter, &Action::new(ActionKind::AdvanceTurn), &[15]);
    assert!(!has(&encounter, "b", "paralyzed"));
}

#[test]
fn concentration_holds_it() {
    let mut encounter = two();
    assert_eq!(
        code(&encounter, &condition("restrained", |a| a.duration = Some(Duration::Concentration))),
        "validation_failed"
    );
    let webs = condition("restrained", |a| {
        (a.duration, a.participant_id, a.source) =
            (Some(Duration::Concentration), Some("a".to_owned()), Some("Web".to_owned()));
    });
    play(&mut encounter, &webs, &[]);
    let on = who(&encounter, "a").creature.concentration.as_ref().map(|c| c.spell.clone());
    assert_eq!(on.as_deref(), Some("Web"), "who holds it concentrates");
    play(&mut encounter, &action(ActionKind::EndConcentration, |a| a.participant_id = Some("a".to_owned())), &[]);
    assert!(!has(&encounter, "b", "restrained"));
}

#[test]
fn other_durations_wait_for_somebody() {
    for duration in [Duration::UntilDispelled, Duration::UntilRest] {
        let mut encounter = two();
        play(&mut encounter, &condition("charmed", |a| a.duration = Some(duration)), &[]);
        for _ in 0..8 {
            advance(&mut encounter);
        }
        assert_eq!(encounter.diff()[1].changes.conditions.details[0].duration, Some(duration));
        play(&mut encounter, &on(ActionKind::RemoveCondition, "b", |a| a.condition = Some("Charmed".to_owned())), &[]);
        assert!(!has(&encounter, "b", "charmed"));
        assert!(
            impossible(&encounter, &on(ActionKind::RemoveCondition, "b", |a| a.condition = Some("charmed".to_owned())))
                .contains("not charmed")
        );
    }
}

#[test]
fn what_a_duration_needs_has_to_be_said() {
    let encounter = two();
    let table: Vec<fn(&mut Action)> = vec![
        |a| a.duration = Some(Duration::Rounds),
        |a| a.rounds = Some(0),
        |a| a.rounds = Some(10_001),
        |a| a.duration = Some(Duration::SaveEnds),
        |a| (a.duration, a.save_dc) = (Some(Duration::SaveEnds), Some(12)),
        |a| (a.duration, a.save_dc, a.save_ability) = (Some(Duration::SaveEnds), Some(-1), Some(Ability::Wisdom)),
        |a| a.level = Some(2),
        |a| a.source = Some("x".repeat(201)),
        |a| a.description = Some("x".repeat(201)),
    ];
    for change in table {
        assert_eq!(code(&encounter, &condition("prone", change)), "validation_failed");
    }
}

#[test]
fn immunity_is_respected() {
    let stone = NewParticipant { condition_immunities: vec!["poisoned".to_owned()], ..enemy("b", 5) };
    let encounter = begun(vec![someone("a", 15), stone]);
    assert!(impossible(&encounter, &condition("poisoned", |_| {})).contains("cannot be poisoned"));
}

#[test]
fn exhaustion_has_six_levels_and_the_last_kills() {
    let mut encounter = two();
    let exhausted = |level| condition("exhaustion", move |a| a.level = level);
    play(&mut encounter, &exhausted(None), &[]);
    play(&mut encounter, &exhausted(None), &[]);
    assert_eq!(who(&encounter, "b").creature.exhaustion(), 2);
    play(&mut encounter, &exhausted(Some(4)), &[]);
    let b = &who(&encounter, "b").creature;
    assert_eq!((b.hp, b.max_hp_now()), (10, 10), "half of the maximum");
    play(&mut encounter, &exhausted(Some(1)), &[]);
    assert_eq!(who(&encounter, "b").creature.exhaustion(), 4, "nobody rests by being tired");
    let one_less =
        on(ActionKind::RemoveCondition, "b", |a| (a.condition, a.level) = (Some("exhaustion".to_owned()), Some(1)));
    play(&mut encounter, &one_less, &[]);
    assert_eq!(who(&encounter, "b").creature.exhaustion(), 3);
    assert_eq!(code(&encounter, &exhausted(Some(7))), "validation_failed");
    play(&mut encounter, &exhausted(Some(6)), &[]);
    advance(&mut encounter);
    assert_eq!(current(&encounter), "a", "the dead have no turn");
}

#[test]
fn more_exhaustion_is_a_difference() {
    let tired = Condition { name: "exhaustion".to_owned(), level: Some(1), ..Condition::default() };
    let record = Creature { conditions: vec![tired], ..Creature::default() };
    let mut encounter = begun(vec![character("hero", 15, record)]);
    assert!(!rules::encounter::commit_required(&encounter.diff()));
    play(
        &mut encounter,
        &on(ActionKind::AddCondition, "hero", |a| (a.condition, a.level) = (Some("exhaustion".to_owned()), Some(3))),
        &[],
    );
    let updates = encounter.diff();
    assert!(rules::encounter::commit_required(&updates));
    let conditions = &updates[0].changes.conditions;
    assert_eq!((&conditions.changed[..], conditions.details[0].level), (&["exhaustion".to_owned()][..], Some(3)));
    assert!(conditions.added.is_empty() && conditions.removed.is_empty());
}

#[test]
fn what_is_brought_along_runs_too() {
    let brought = NewCondition {
        condition: Condition { name: "frightened".to_owned(), ..Condition::default() },
        save_dc: Some(10),
        save_ability: Some(Ability::Wisdom),
        description: Some("pale".to_owned()),
    };
    let b = NewParticipant { conditions: vec![brought], ..enemy("b", 25) };
    let mut encounter = begun(vec![someone("a", 15), b]);
    assert_eq!(encounter.diff()[1].changes.conditions.details[0].description.as_deref(), Some("pale"));
    play(&mut encounter, &Action::new(ActionKind::AdvanceTurn), &[10]);
    let conditions = &encounter.diff()[1].changes.conditions;
    assert_eq!(
        (&conditions.initial[..], &conditions.removed[..]),
        (&["frightened".to_owned()][..], &["frightened".to_owned()][..])
    );
}
