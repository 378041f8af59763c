//! Changes that were resolved elsewhere have the same effects in a fight as those of an action.

use rules::{
    dice::Given,
    encounter::{ActionKind, Encounter, EndOutcome, Event, Refusal},
    resolve::{
        AttackArgs, Circumstances, DamageArgs, DamagePart, HealingArgs, StateChange, apply_damage, apply_healing,
        resolve_area_spell,
    },
    sheet::{Creature, KnownSpell, SpellSlot},
};

use crate::support::*;

fn mage() -> Creature {
    Creature {
        name: "Mage".to_owned(),
        profession: "Wizard".to_owned(),
        spells: ["Bless", "Hold Person", "Fireball"].map(|s| KnownSpell::Name(s.to_owned())).to_vec(),
        spell_slots: [("1", 4), ("2", 3), ("3", 2)]
            .map(|(l, n)| (l.to_owned(), SpellSlot { max: n, remaining: n }))
            .into(),
        hp: 20,
        max_hp: 20,
        ..Creature::default()
    }
}

/// A mage who blesses `a`.
fn blessed() -> Encounter {
    let mut encounter = begun(vec![character("mage", 15, mage()), someone("a", 9), enemy("b", 5)]);
    let bless = on(ActionKind::CastSpell, "a", |a| a.attack.spell_name = Some("Bless".to_owned()));
    play(&mut encounter, &bless, &[]);
    assert!(has_effect(&encounter, "a", "Bless"));
    encounter
}

fn blow(encounter: &Encounter, target: &str, amount: i32) -> Vec<StateChange> {
    let parts = vec![DamagePart { amount, damage_type: String::new() }];
    let args = DamageArgs { parts, ..DamageArgs::default() };
    apply_damage(&who(encounter, target).creature, &args).expect("an outcome").effects
}

/// Absorbs and applies. All dice must be used.
fn absorbed(encounter: &mut Encounter, by: Option<&str>, effects: &[StateChange], dice: &[u32]) -> Vec<Event> {
    let mut given = Given::new(dice);
    let decision = encounter.absorb(by, effects, &mut given).expect("a decision");
    assert!(given.unused().is_empty());
    encounter.apply_all(&decision.events);
    decision.events
}

#[test]
fn it_is_what_the_action_would_have_been() {
    let mut encounter = blessed();
    let mut acted = encounter.clone();
    let effects = blow(&encounter, "mage", 12);
    let events = absorbed(&mut encounter, Some("b"), &effects, &[2]);
    let damage = on(ActionKind::Damage, "mage", |a| (a.amount, a.participant_id) = (Some(12), Some("b".to_owned())));
    let decision = play(&mut acted, &damage, &[2]);
    assert_eq!((&events, &encounter), (&decision.events, &acted));
    assert!(!has_effect(&encounter, "a", "Bless"), "concentration failed, and the spell ended for everybody");
    assert_eq!(who(&encounter, "b").statistics.damage_dealt, 12);
    assert_eq!(who(&encounter, "mage").statistics.damage_taken, 12);

    let healing = HealingArgs { amount: Some(5), formula: None };
    let effects = apply_healing(&who(&encounter, "mage").creature, &healing, &mut Endless(1)).expect("healed").effects;
    absorbed(&mut encounter, Some("a"), &effects, &[]);
    assert_eq!((who(&encounter, "mage").creature.hp, who(&encounter, "a").statistics.healing_done), (13, 5));
}

#[test]
fn concentration_is_kept_with_a_save_and_lost_at_zero() {
    let mut encounter = blessed();
    let effects = blow(&encounter, "mage", 4);
    absorbed(&mut encounter, None, &effects, &[19]);
    assert!(has_effect(&encounter, "a", "Bless"));
    let grab = on(ActionKind::AddCondition, "b", |a| {
        (a.condition, a.participant_id) = (Some("grappled".to_owned()), Some("mage".to_owned()));
    });
    play(&mut encounter, &grab, &[]);
    let effects = blow(&encounter, "mage", 16);
    absorbed(&mut encounter, None, &effects, &[]);
    assert!(has(&encounter, "mage", "unconscious"));
    assert!(!has_effect(&encounter, "a", "Bless"));
    assert!(!has(&encounter, "b", "grappled"), "who falls holds nobody");
}

#[test]
fn another_spell_ends_the_first() {
    let mut encounter = blessed();
    let effects = [StateChange::StartConcentration { creature: "mage".to_owned(), spell: "Web".to_owned() }];
    absorbed(&mut encounter, Some("mage"), &effects, &[]);
    assert!(!has_effect(&encounter, "a", "Bless"));
    let on = who(&encounter, "mage").creature.concentration.as_ref().map(|c| c.spell.as_str());
    assert_eq!(on, Some("Web"));
}

#[test]
fn a_spell_on_several_lands_on_each() {
    let mut encounter = blessed();
    let (caster, targets) = (who(&encounter, "mage"), [who(&encounter, "a"), who(&encounter, "b")]);
    let aimed = targets.map(|t| (&*t.creature, Circumstances::default()));
    let args = AttackArgs { spell_name: Some("Fireball".to_owned()), ..AttackArgs::default() };
    let outcome = resolve_area_spell(&caster.creature, &aimed, &args, &mut Endless(3)).expect("it");
    absorbed(&mut encounter, Some("mage"), &outcome.effects, &[]);
    let taken: Vec<_> = ["a", "b"].iter().map(|id| who(&encounter, id).statistics.damage_taken).collect();
    assert_eq!(who(&encounter, "mage").statistics.damage_dealt, taken.iter().sum::<i32>());
    assert_eq!(who(&encounter, "mage").creature.slots_left(3), 1);
}

#[test]
fn what_is_about_nobody_here_is_refused() {
    let mut encounter = blessed();
    let effects = [StateChange::TempHp { creature: "stranger".to_owned(), temp_hp: 3 }];
    let refused = encounter.absorb(None, &effects, &mut Endless(1));
    assert_eq!(refused, Err(Refusal::Unknown { argument: "creature", id: "stranger".to_owned() }));
    let refused = encounter.absorb(Some("stranger"), &[], &mut Endless(1));
    assert_eq!(refused, Err(Refusal::Unknown { argument: "participant_id", id: "stranger".to_owned() }));
    let end = encounter.end(EndOutcome::Fled, None).expect("it ends");
    encounter.apply_all(&end.events);
    assert_eq!(encounter.absorb(None, &[], &mut Endless(1)), Err(Refusal::AlreadyEnded));
}
