//! What actions, spells and reactions cost, and who may have them.

use rules::{
    encounter::{Action, ActionKind, Cost, Encounter, Event, NewParticipant},
    sheet::{Concentration, Creature, Feature, KnownSpell, Resource, SpellSheet, SpellSlot, Weapon},
};

use crate::support::*;

fn attack(target: &str) -> Action {
    on(ActionKind::Attack, target, |_| {})
}

fn by(actor: &str, action: Action) -> Action {
    Action { participant_id: Some(actor.to_owned()), ..action }
}

fn cast(spell: &str, target: &str) -> Action {
    on(ActionKind::CastSpell, target, |a| a.attack.spell_name = Some(spell.to_owned()))
}

/// A fighter with two attacks who has learned some magic.
fn knight() -> Creature {
    Creature {
        profession: "Fighter".to_owned(),
        level: 5,
        weapons: ["Longsword", "Shortsword"].map(|w| Weapon { name: w.to_owned(), ..Weapon::default() }).to_vec(),
        spells: ["Fire Bolt", "Healing Word", "Cure Wounds"].map(|s| KnownSpell::Name(s.to_owned())).to_vec(),
        spell_slots: [("1".to_owned(), SpellSlot { max: 4, remaining: 4 })].into(),
        resources: vec![Resource { name: "Action Surge".to_owned(), max: 1, remaining: 1 }],
        ..Creature::default()
    }
}

fn fight() -> Encounter {
    begun(vec![character("knight", 15, knight()), enemy("b", 5), someone("c", 1)])
}

fn with(weapon: &str) -> Action {
    on(ActionKind::Attack, "b", |a| a.attack.weapon = Some(weapon.to_owned()))
}

#[test]
fn a_spell_takes_the_whole_action_however_it_is_asked_for() {
    let spells = [
        cast("Fire Bolt", "b"),
        with("Fire Bolt"),
        on(ActionKind::Attack, "b", |a| a.attack.spell_name = Some("Fire Bolt".to_owned())),
        on(ActionKind::Attack, "b", |a| {
            (a.attack.is_spell_attack, a.attack.weapon) = (true, Some("fire".to_owned()));
        }),
    ];
    for spell in spells {
        let mut encounter = fight();
        play(&mut encounter, &spell, &[2]);
        assert_eq!(code(&encounter, &with("Longsword")), "no_action_left", "{spell:?}");
    }
    let mut blow = with("Longsword");
    blow.attack.spell_name = Some(" ".to_owned());
    let mut encounter = fight();
    play(&mut encounter, &blow, &[2]);
    play(&mut encounter, &with("Longsword"), &[2]);
    assert_eq!(code(&encounter, &with("Longsword")), "no_action_left");
}

#[test]
fn an_action_is_no_attack_and_a_grapple_is_one() {
    let mut encounter = fight();
    play(&mut encounter, &Action::new(ActionKind::Dash), &[]);
    assert_eq!(code(&encounter, &with("Longsword")), "no_action_left");
    let mut encounter = fight();
    play(&mut encounter, &on(ActionKind::Grapple, "b", |a| a.circumstances.context.off_hand = true), &[15, 3]);
    let economy = who(&encounter, "knight").economy;
    assert_eq!((economy.action, economy.bonus_action, economy.attacks_left), (true, false, 1));
    play(&mut encounter, &with("Longsword"), &[2]);
    // An escape takes all of it.
    let mut held = fight();
    let grip = on(ActionKind::AddCondition, "knight", |a| {
        (a.condition, a.participant_id) = (Some("grappled".to_owned()), Some("b".to_owned()));
    });
    play(&mut held, &grip, &[]);
    play(&mut held, &Action::new(ActionKind::Escape), &[2, 15]);
    assert_eq!(code(&held, &with("Longsword")), "no_action_left");
}

#[test]
fn a_monster_attacks_as_often_as_its_stat_block_says() {
    let mut encounter = begun(vec![NewParticipant { attacks_per_action: Some(2), ..enemy("a", 15) }, someone("b", 5)]);
    let sword = on(ActionKind::Attack, "b", |a| a.attack.weapon = Some("Sword".to_owned()));
    play(&mut encounter, &sword, &[2]);
    play(&mut encounter, &sword, &[2]);
    assert_eq!(code(&encounter, &sword), "no_action_left");
}

#[test]
fn who_attacks_more_often() {
    let attacks = |profession: &str, level, features: &[&str]| {
        let features = features.iter().map(|f| Feature { name: (*f).to_owned(), ..Feature::default() }).collect();
        let it = Creature { profession: profession.to_owned(), level, features, ..Creature::default() };
        who(&begun(vec![character("a", 1, it)]), "a").attacks_per_action
    };
    assert_eq!((attacks("Fighter", 4, &[]), attacks("Fighter", 5, &[])), (1, 2));
    assert_eq!((attacks("Fighter", 11, &["Extra Attack"]), attacks("Rogue", 11, &[])), (3, 1));
    assert_eq!(attacks("Gladiator", 1, &["Extra Attack"]), 2);
}

#[test]
fn the_other_hand_takes_the_bonus_action() {
    for cost in [None, Some(Cost::BonusAction)] {
        let mut encounter = fight();
        let mut stab = with("Shortsword");
        (stab.circumstances.context.off_hand, stab.cost) = (true, cost);
        play(&mut encounter, &stab, &[2]);
        let economy = who(&encounter, "knight").economy;
        assert_eq!((economy.action, economy.bonus_action), (false, true));
    }
    let mut free = with("Longsword");
    (free.cost, free.overridden) = (Some(Cost::Free), true);
    let mut encounter = fight();
    play(&mut encounter, &free, &[2]);
    assert!(!who(&encounter, "knight").economy.action);
}

#[test]
fn two_spells_with_two_actions() {
    let mut encounter = fight();
    play(&mut encounter, &cast("Cure Wounds", "c"), &[1]);
    play(&mut encounter, &action(ActionKind::UseResource, |a| a.resource = Some("Action Surge".to_owned())), &[]);
    play(&mut encounter, &cast("Cure Wounds", "c"), &[1]);
}

#[test]
fn cantrips_of_ones_own_and_of_monsters_after_a_quick_spell() {
    let own = |name: &str, level| {
        KnownSpell::Own(Box::new(SpellSheet {
            name: name.to_owned(),
            level,
            attack: "ranged".to_owned(),
            ..SpellSheet::default()
        }))
    };
    let mut it = knight();
    it.spells.extend([own("Spark", 0), own("Flare", 1)]);
    let mut encounter = begun(vec![character("knight", 15, it), enemy("b", 5)]);
    play(&mut encounter, &cast("Healing Word", "knight"), &[1]);
    assert!(encounter.act(&cast("Spark", "b"), &mut Endless(1)).is_ok());
    assert_eq!(code(&encounter, &cast("Flare", "b")), "no_action_left");
    // A monster without a list of spells knows those of the tables, by any part of their names.
    let mut encounter = begun(vec![enemy("shaman", 15), someone("b", 5)]);
    play(&mut encounter, &cast("Spiritual W", "b"), &[2]);
    let economy = who(&encounter, "shaman").economy;
    assert_eq!((economy.action, economy.bonus_action), (false, true));
    assert!(encounter.act(&cast("Fire Bolt", "b"), &mut Endless(1)).is_ok());
    assert_eq!(code(&encounter, &cast("Fireball", "b")), "no_action_left");
}

fn left(by: &str, target: &str, from: rules::encounter::Position) -> Event {
    Event::Provoked { by: by.to_owned(), target: target.to_owned(), from }
}

#[test]
fn only_who_was_provoked_reacts_and_only_against_whom() {
    let mut encounter = begun(vec![someone("a", 15), someone("ally", 12), enemy("b", 5), enemy("c", 4)]);
    encounter.apply(&left("b", "a", at(0, 0)));
    assert_eq!(code(&encounter, &by("c", attack("a"))), "not_your_turn");
    assert_eq!(code(&encounter, &by("b", attack("ally"))), "not_your_turn");
    play(&mut encounter, &by("b", attack("a")), &[2]);
}

#[test]
fn what_was_readied_is_an_attack_in_another_turn() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    play(&mut encounter, &Action::new(ActionKind::Ready), &[]);
    assert_eq!(code(&encounter, &attack("b")), "no_action_left", "not in its own turn");
    advance(&mut encounter);
    for kind in [ActionKind::Dash, ActionKind::Search, ActionKind::Grapple] {
        assert_eq!(code(&encounter, &by("a", on(kind, "b", |_| {}))), "not_your_turn", "{kind:?}");
    }
    play(&mut encounter, &by("a", attack("b")), &[2]);
}

#[test]
fn a_provoked_attack_reaches_to_where_its_target_was() {
    let guard = placed(enemy("b", 5), 0, 0);
    let mut encounter = begun(vec![
        placed(someone("a", 15), 1, 0),
        placed(someone("ally", 12), 8, 8),
        guard,
        placed(enemy("c", 4), 9, 9),
    ]);
    encounter.apply(&left("b", "ally", at(7, 7)));
    encounter.apply(&left("c", "a", at(8, 9)));
    play(&mut encounter, &action(ActionKind::Move, |a| a.position = Some(at(4, 0))), &[]);
    // Hit but standing, it goes on.
    play(&mut encounter, &by("b", attack("a")), &[15, 2]);
    assert_eq!((who(&encounter, "a").position, who(&encounter, "a").creature.hp), (Some(at(4, 0)), 16));
}

#[test]
fn sneak_attacks_come_once_in_every_turn() {
    let rogue = Creature {
        profession: "Rogue".to_owned(),
        features: vec![Feature { name: "Sneak Attack".to_owned(), ..Feature::default() }],
        weapons: vec![Weapon { name: "Rapier".to_owned(), ..Weapon::default() }],
        ..Creature::default()
    };
    let mut encounter =
        begun(vec![character("rogue", 15, rogue), NewParticipant { hp: Some(90), max_hp: Some(90), ..enemy("b", 5) }]);
    let sneaky = on(ActionKind::Attack, "b", |a| {
        a.attack.extra_damage_sources = vec!["Sneak Attack".to_owned()];
        a.circumstances.context.ally_adjacent = true;
    });
    play(&mut encounter, &sneaky, &[18, 4, 5]);
    advance(&mut encounter);
    advance(&mut encounter);
    play(&mut encounter, &sneaky, &[18, 4, 5]);
}

#[test]
fn whose_turn_ends_and_how_many_there_can_be() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    let end = |id: &str| by(id, Action::new(ActionKind::AdvanceTurn));
    assert_eq!(code(&encounter, &end("b")), "not_your_turn");
    play(&mut encounter, &end("a"), &[]);
    assert_eq!(current(&encounter), "b");
    for id in ["a", "b"] {
        encounter.apply(&Event::TurnStarted { participant: id.to_owned(), round: 9_999 });
    }
    advance(&mut encounter);
    assert_eq!(encounter.round(), 10_000, "the last round");
    advance(&mut encounter);
    assert_eq!(code(&encounter, &Action::new(ActionKind::AdvanceTurn)), "validation_failed");
}

#[test]
fn initiative_is_rolled_again_with_the_same_bonus() {
    let mut encounter = begun(vec![NewParticipant { initiative_bonus: Some(7), ..someone("a", 15) }, enemy("b", 5)]);
    play(&mut encounter, &Action::new(ActionKind::RollInitiative), &[10, 10]);
    assert_eq!((who(&encounter, "a").initiative, who(&encounter, "b").initiative), (17, 10));
}

#[test]
fn concentration_is_given_up_in_ones_own_turn_without_a_name() {
    let it = Creature { concentration: Some(Concentration { spell: "Bless".to_owned() }), ..knight() };
    let mut encounter = begun(vec![character("knight", 15, it)]);
    play(&mut encounter, &Action::new(ActionKind::EndConcentration), &[]);
    assert!(who(&encounter, "knight").creature.concentration.is_none());
}
