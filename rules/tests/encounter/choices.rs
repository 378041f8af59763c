//! What is offered to somebody in a fight.

use rules::{
    encounter::{ActionKind, Choice, Cost, Encounter},
    sheet::{Creature, KnownSpell, Resource, SpellSlot, Weapon},
};

use crate::support::*;

fn choices(encounter: &Encounter, actor: &str) -> Vec<Choice> {
    encounter.choices(actor, |p| !p.hidden)
}

/// The choices as `action target with`.
fn told(encounter: &Encounter, actor: &str) -> Vec<String> {
    let word = |text: &Option<String>| text.as_ref().map(|text| format!(" {text}")).unwrap_or_default();
    choices(encounter, actor)
        .iter()
        .map(|c| format!("{}{}{}{}", c.action.name(), word(&c.target_id), word(&c.weapon), word(&c.spell_name)))
        .collect()
}

fn cleric() -> Creature {
    let spells = ["Cure Wounds", "Sacred Flame", "Bless", "Shield", "Light", "Mage Armor"];
    Creature {
        name: "Cleric".to_owned(),
        profession: "Cleric".to_owned(),
        level: 3,
        hp: 20,
        max_hp: 20,
        weapons: ["Mace", "mace", "Sling"].map(|name| Weapon { name: name.to_owned(), ..Weapon::default() }).to_vec(),
        spells: spells.map(|s| KnownSpell::Name(s.to_owned())).to_vec(),
        spell_slots: [("1".to_owned(), SpellSlot { max: 1, remaining: 1 })].into(),
        ..Creature::default()
    }
}

#[test]
fn what_one_can_do_in_ones_turn() {
    let hurt = rules::encounter::NewParticipant { hp: Some(3), ..someone("squire", 5) };
    let mut fight = begun(vec![character("cleric", 20, cleric()), hurt, enemy("orc", 10), enemy("wolf", 9)]);
    assert_eq!(
        told(&fight, "cleric"),
        [
            "advance_turn",
            "dodge",
            "dash",
            "disengage",
            "attack orc Mace",
            "attack wolf Mace",
            "attack orc Sling",
            "attack wolf Sling",
            "cast_spell squire Cure Wounds",
            "cast_spell orc Sacred Flame",
            "cast_spell wolf Sacred Flame",
            "cast_spell cleric Bless",
            "cast_spell squire Bless",
            "cast_spell cleric Shield",
            "cast_spell cleric Mage Armor",
            "cast_spell squire Mage Armor",
            "help squire",
            "grapple orc",
            "grapple wolf",
            "shove orc",
            "shove wolf",
        ]
    );
    for choice in choices(&fight, "cleric") {
        // Whatever the dice show.
        let decision = fight.act(&choice.request(), &mut Endless(7)).expect("what was offered");
        assert!(!decision.events.is_empty(), "{choice:?}");
    }
    assert_eq!(told(&fight, "orc"), [] as [&str; 0], "it is not its turn");
    assert_eq!(told(&fight, "nobody"), [] as [&str; 0]);
    play(&mut fight, &action(ActionKind::Dodge, |_| {}), &[]);
    assert_eq!(told(&fight, "cleric"), ["advance_turn", "cast_spell cleric Shield"], "the action is used up");
    advance(&mut fight);
    // Somebody without weapons has fists, and the hidden are no targets.
    play(&mut fight, &on(ActionKind::Conceal, "squire", |_| {}), &[]);
    let offered = told(&fight, "orc");
    assert!(offered.contains(&"attack cleric Sword".to_owned()), "{offered:?}");
    assert!(!offered.iter().any(|choice| choice.contains("squire")), "{offered:?}");
}

#[test]
fn what_one_can_do_when_down_held_or_far_away() {
    let downed = Creature { hp: 0, ..cleric() };
    let mut fight = begun(vec![character("cleric", 20, downed), enemy("orc", 10)]);
    assert_eq!(told(&fight, "cleric"), ["advance_turn", "death_save"]);
    advance(&mut fight);
    let against = told(&fight, "orc");
    assert!(against.contains(&"attack cleric Sword".to_owned()), "who is down can be struck: {against:?}");
    assert!(!against.iter().any(|it| it.starts_with("shove") || it.starts_with("grapple")), "{against:?}");

    let mut fight = begun(vec![placed(character("cleric", 20, cleric()), 1, 1), placed(enemy("orc", 10), 9, 1)]);
    let offered = told(&fight, "cleric");
    assert!(
        offered.contains(&"attack orc Sling".to_owned()) && offered.contains(&"move orc".to_owned()),
        "{offered:?}"
    );
    assert!(
        !offered.contains(&"attack orc Mace".to_owned()) && !offered.contains(&"shove orc".to_owned()),
        "{offered:?}"
    );
    play(&mut fight, &on(ActionKind::AddCondition, "cleric", |a| a.condition = Some("prone".to_owned())), &[]);
    assert!(told(&fight, "cleric").contains(&"stand_up".to_owned()));
    play(&mut fight, &on(ActionKind::AddCondition, "cleric", |a| a.condition = Some("stunned".to_owned())), &[]);
    assert_eq!(told(&fight, "cleric"), ["advance_turn"]);
}

#[test]
fn many_targets_are_offered_within_limits() {
    let foes = (0..40).map(|n| enemy(&format!("orc{n}"), 1));
    let fight = begun(std::iter::once(character("cleric", 20, cleric())).chain(foes).collect());
    let offered = choices(&fight, "cleric");
    assert!(offered.len() <= 310 && offered[0].action == ActionKind::AdvanceTurn, "{}", offered.len());
    assert_eq!(offered.iter().filter(|c| c.weapon.as_deref() == Some("Mace")).count(), 12);
    assert_eq!(offered.iter().filter(|c| c.action == ActionKind::Shove).count(), 12, "nothing crowds out the rest");
}

#[test]
fn outside_of_ones_turn_there_are_only_reactions() {
    let mut fight = begun(vec![
        placed(character("cleric", 20, cleric()), 1, 1),
        placed(enemy("orc", 10), 2, 1),
        placed(enemy("wolf", 9), 2, 2),
    ]);
    advance(&mut fight);
    assert_eq!(told(&fight, "cleric"), ["cast_spell cleric Shield"]);
    play(&mut fight, &action(ActionKind::Move, |a| a.position = Some(at(5, 1))), &[]);
    assert_eq!(told(&fight, "cleric"), ["attack orc Mace", "cast_spell cleric Shield"], "the orc has left its reach");
    let choice = choices(&fight, "cleric").swap_remove(0);
    assert_eq!(choice.cost, Some(Cost::Reaction));
    // Too late it is refused, and not done with the action.
    for _ in 0..2 {
        advance(&mut fight);
    }
    assert!(fight.act(&choice.request(), &mut Endless(1)).is_err());
}

/// A reaction is marked as one also in the own turn, and another action is offered to whoever has none left.
#[test]
fn reactions_and_another_action_are_offered() {
    let surge = Resource { name: "Action Surge".to_owned(), max: 1, remaining: 1 };
    let fighter = Creature { resources: vec![surge], ..cleric() };
    let mut fight = begun(vec![character("cleric", 20, fighter), enemy("orc", 10)]);
    let offered = choices(&fight, "cleric");
    let shield = offered.iter().find(|choice| choice.spell_name.as_deref() == Some("Shield")).unwrap();
    assert_eq!(shield.cost, Some(Cost::Reaction));
    let surges = |fight: &Encounter| choices(fight, "cleric").into_iter().find(|c| c.action == ActionKind::UseResource);
    assert!(surges(&fight).is_none(), "an action is left");
    play(&mut fight, &action(ActionKind::Dodge, |_| {}), &[]);
    let surge = surges(&fight).unwrap();
    assert_eq!(surge.resource.as_deref(), Some("Action Surge"));
    play(&mut fight, &surge.request(), &[]);
    assert!(told(&fight, "cleric").contains(&"attack orc Mace".to_owned()));
    play(&mut fight, &action(ActionKind::Dodge, |_| {}), &[]);
    assert!(surges(&fight).is_none(), "it is used up");
}

/// SRD 5.1, "Second Wind": a bonus action, 1d10 and the level, once between rests.
#[test]
fn a_second_wind_heals_whoever_is_hurt() {
    let wind = Resource { name: "Second Wind".to_owned(), max: 1, remaining: 1 };
    let fighter = Creature {
        profession: "Fighter".to_owned(),
        level: 3,
        hp: 10,
        max_hp: 30,
        resources: vec![wind],
        spells: Vec::new(),
        ..cleric()
    };
    let mut fight = begun(vec![character("cleric", 20, fighter), enemy("orc", 10)]);
    let offers = |fight: &Encounter| choices(fight, "cleric").into_iter().find(|c| c.action == ActionKind::UseResource);
    let wind = offers(&fight).unwrap();
    let decision = play(&mut fight, &wind.request(), &[7]);
    let fighter = fight.participant("cleric").unwrap();
    assert_eq!((fighter.creature.hp, fighter.economy.bonus_action, fighter.economy.action), (20, true, false));
    assert_eq!(decision.outcomes[0].check_type, "Second Wind");
    assert!(offers(&fight).is_none(), "it is used up");
    let error = fight.act(&wind.request(), &mut Endless(1)).unwrap_err();
    assert_eq!(error.to_string(), format!("{} has 0 of Second Wind left", fighter.creature.name));
}
