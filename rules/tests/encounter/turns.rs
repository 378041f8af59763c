//! Turns: who has one, what is left of it, and who has none.

use rules::{
    dice::Given,
    encounter::{Action, ActionKind, Cost, Encounter, EndOutcome, Event, NewParticipant, Participant, Refusal, Setup},
    sheet::{Creature, Life, Resource, Weapon},
};

use crate::support::*;

fn attack(target: &str) -> Action {
    on(ActionKind::Attack, target, |_| {})
}

#[test]
fn only_whose_turn_it_is_acts() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    let mut early = attack("a");
    early.participant_id = Some("b".to_owned());
    assert_eq!(code(&encounter, &early), "not_your_turn");
    early.overridden = true;
    let decision = decide(&encounter, &early, &[2]).expect("a game master may");
    assert!(
        decision.events.contains(&Event::Overridden { participant: Some("b".to_owned()), action: ActionKind::Attack })
    );
    early.overridden = false;
    early.cost = Some(Cost::Reaction);
    assert_eq!(code(&encounter, &early), "not_your_turn", "nobody provoked it");
    encounter.apply(&left("b", "a"));
    // An attack in somebody else's turn is a reaction, even if the request does not say so.
    early.cost = None;
    play(&mut encounter, &early, &[2]);
    assert!(who(&encounter, "b").economy.reaction && !who(&encounter, "b").economy.action);
    assert_eq!(code(&encounter, &early), "not_your_turn", "what provoked it is answered");
    early.cost = Some(Cost::Reaction);
    assert_eq!(code(&encounter, &early), "no_action_left", "one reaction until its next turn");
}

fn left(by: &str, target: &str) -> Event {
    Event::Provoked { by: by.to_owned(), target: target.to_owned(), from: at(0, 0) }
}

#[test]
fn a_reaction_is_what_was_provoked_or_readied_or_a_spell_cast_as_one() {
    let mage = Creature {
        is_npc: true,
        spell_slots: [("1".to_owned(), rules::sheet::SpellSlot { max: 2, remaining: 2 })].into(),
        ..Creature::default()
    };
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5), character("mage", 1, mage)]);
    let react = |kind, by: &str, target: &str| {
        on(kind, target, |a| (a.participant_id, a.cost) = (Some(by.to_owned()), Some(Cost::Reaction)))
    };
    for kind in [ActionKind::Move, ActionKind::StandUp, ActionKind::Dash, ActionKind::Grapple, ActionKind::Search] {
        assert_eq!(code(&encounter, &react(kind, "b", "a")), "not_your_turn", "{kind:?}");
        assert_eq!(code(&encounter, &react(kind, "a", "b")), "validation_failed", "{kind:?}");
    }
    let mut spell = react(ActionKind::CastSpell, "mage", "mage");
    spell.attack.spell_name = Some("Bless".to_owned());
    assert_eq!(code(&encounter, &spell), "not_your_turn");
    spell.attack.spell_name = Some("Shield".to_owned());
    play(&mut encounter, &spell, &[]);
    assert!(has_effect(&encounter, "mage", "Shield") && who(&encounter, "mage").economy.reaction);
    play(&mut encounter, &Action::new(ActionKind::Ready), &[]);
    advance(&mut encounter);
    play(&mut encounter, &react(ActionKind::Attack, "a", "b"), &[2]);
    assert_eq!(code(&encounter, &react(ActionKind::Attack, "a", "b")), "no_action_left", "it was readied once");
}

#[test]
fn a_bonus_action_is_an_attack_of_the_other_hand_or_a_quick_spell() {
    let slow = |casting_time: Option<&str>| {
        let own = rules::sheet::SpellSheet {
            name: "Own".to_owned(),
            attack: "automatic".to_owned(),
            damage: Some(rules::sheet::OwnDamage { dice: "1d4".to_owned(), damage_type: None }),
            casting_time: casting_time.map(str::to_owned),
            ..rules::sheet::SpellSheet::default()
        };
        rules::sheet::KnownSpell::Own(Box::new(own))
    };
    let cleric = |own| Creature {
        spells: vec![
            rules::sheet::KnownSpell::Name("Healing Word".to_owned()),
            rules::sheet::KnownSpell::Name("Fire Bolt".to_owned()),
            own,
        ],
        spell_slots: [("1".to_owned(), rules::sheet::SpellSlot { max: 2, remaining: 2 })].into(),
        ..Creature::default()
    };
    let cast = |spell: &str| {
        on(ActionKind::CastSpell, "b", |a| {
            (a.cost, a.attack.spell_name) = (Some(Cost::BonusAction), Some(spell.to_owned()));
        })
    };
    let encounter = begun(vec![character("c", 15, cleric(slow(None))), enemy("b", 5)]);
    for refused in ["Fire Bolt", "Own"] {
        assert_eq!(code(&encounter, &cast(refused)), "validation_failed", "{refused}");
    }
    assert!(encounter.act(&cast("Healing Word"), &mut Endless(1)).is_ok());
    let quick = begun(vec![character("c", 15, cleric(slow(Some("1 bonus action")))), enemy("b", 5)]);
    assert!(quick.act(&cast("Own"), &mut Endless(1)).is_ok());
    let mut blow = attack("b");
    blow.cost = Some(Cost::BonusAction);
    let encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    assert_eq!(code(&encounter, &blow), "validation_failed");
    blow.overridden = true;
    assert!(encounter.act(&blow, &mut Endless(1)).is_ok());
}

#[test]
fn a_spell_takes_its_own_casting_time() {
    use Cost::{Action as Full, BonusAction, Reaction};
    let names = ["Healing Word", "Fire Bolt", "Prayer of Healing", "Shield"];
    let mage = Creature {
        spells: names.map(|n| rules::sheet::KnownSpell::Name(n.to_owned())).to_vec(),
        spell_slots: ["1", "2"].map(|l| (l.to_owned(), rules::sheet::SpellSlot { max: 4, remaining: 4 })).into(),
        ..Creature::default()
    };
    let begun = begun(vec![character("c", 15, mage.clone()), enemy("b", 5), character("d", 1, mage)]);
    let cast = |by: &str, spell: &str, cost| {
        on(ActionKind::CastSpell, by, |a| {
            (a.participant_id, a.cost, a.attack.spell_name) = (Some(by.to_owned()), cost, Some(spell.to_owned()));
        })
    };
    // Without a cost the rules decide, and any part of the spell's name is enough.
    let mut encounter = begun.clone();
    encounter.apply_all(&encounter.act(&cast("c", "Healing W", None), &mut Endless(1)).expect("it").events.clone());
    assert_eq!(code(&encounter, &cast("c", "Prayer", None)), "validation_failed", "ten minutes");
    let economy = who(&encounter, "c").economy;
    assert_eq!((economy.action, economy.bonus_action), (false, true));
    assert_eq!(code(&encounter, &cast("c", "Healing Word", None)), "no_action_left");
    assert_eq!(code(&encounter, &cast("c", "Shield", None)), "no_action_left", "no other spell in this turn");
    play(&mut encounter, &cast("d", "Shield", None), &[]);
    assert!(who(&encounter, "d").economy.reaction, "in anybody's turn");
    // Costs with which it cannot be cast.
    let refused = [("Healing Word", Full), ("Fire Bolt", BonusAction), ("Shield", Full), ("Prayer of Healing", Full)];
    for (spell, cost) in refused {
        let mut wrong = cast("c", spell, Some(cost));
        assert_eq!(code(&begun, &wrong), "validation_failed", "{spell}");
        wrong.overridden = true;
        assert!(begun.act(&wrong, &mut Endless(1)).is_ok(), "{spell}: a game master may");
    }
    assert_eq!(code(&begun, &cast("d", "Fire Bolt", Some(Reaction))), "not_your_turn");
}

#[test]
fn after_a_quick_spell_only_a_cantrip() {
    let names = ["Healing Word", "Fire Bolt", "Cure Wounds", "Shield"];
    let mage = Creature {
        spells: names.map(|n| rules::sheet::KnownSpell::Name(n.to_owned())).to_vec(),
        spell_slots: [("1".to_owned(), rules::sheet::SpellSlot { max: 4, remaining: 4 })].into(),
        ..Creature::default()
    };
    let begun = begun(vec![character("c", 15, mage), enemy("b", 5)]);
    let cast = |spell: &str| {
        on(ActionKind::CastSpell, "b", |a| {
            (a.participant_id, a.attack.spell_name) = (Some("c".to_owned()), Some(spell.to_owned()));
        })
    };
    let mut quick = begun.clone();
    quick.apply_all(&quick.act(&cast("Healing Word"), &mut Endless(1)).expect("it").events.clone());
    assert_eq!(code(&quick, &cast("Cure Wounds")), "no_action_left");
    let mut word = cast("Cure Wounds");
    word.overridden = true;
    assert!(quick.act(&word, &mut Endless(1)).is_ok(), "a game master may");
    assert!(quick.act(&cast("Fire Bolt"), &mut Endless(10)).is_ok());
    // The same in the opposite order.
    let mut slow = begun.clone();
    slow.apply_all(&slow.act(&cast("Cure Wounds"), &mut Endless(1)).expect("it").events.clone());
    assert_eq!(code(&slow, &cast("Healing Word")), "no_action_left");
    let mut cantrip = begun;
    cantrip.apply_all(&cantrip.act(&cast("Fire Bolt"), &mut Endless(10)).expect("it").events.clone());
    assert!(cantrip.act(&cast("Healing Word"), &mut Endless(1)).is_ok());
    // Its next turn and other creatures' turns are different turns.
    advance(&mut quick);
    play(&mut quick, &cast("Shield"), &[]);
    advance(&mut quick);
    assert!(quick.act(&cast("Cure Wounds"), &mut Endless(1)).is_ok());
}

#[test]
fn nobody_ends_the_concentration_of_another() {
    let on_bless = Creature {
        concentration: Some(rules::sheet::Concentration { spell: "Bless".to_owned() }),
        ..Creature::default()
    };
    let mut encounter = begun(vec![someone("a", 15), character("b", 5, on_bless)]);
    let mut end = on(ActionKind::EndConcentration, "b", |_| {});
    assert_eq!(code(&encounter, &end), "validation_failed");
    end.participant_id = Some("a".to_owned());
    assert_eq!(code(&encounter, &end), "validation_failed");
    end.overridden = true;
    assert!(decide(&encounter, &end, &[]).is_ok());
    let own = action(ActionKind::EndConcentration, |a| a.participant_id = Some("b".to_owned()));
    play(&mut encounter, &own, &[]);
    assert_eq!(who(&encounter, "b").creature.concentration, None);
}

#[test]
fn a_hazard_may_kill_the_last() {
    let fire = rules::encounter::Hazard {
        damage: Some("50".to_owned()),
        position: rules::encounter::Square { x: 1, y: 1 },
        ..rules::encounter::Hazard::default()
    };
    let terrain = rules::encounter::Terrain { hazards: vec![fire], ..rules::encounter::Terrain::default() };
    let mut encounter = begun_on(terrain, vec![placed(enemy("a", 15), 1, 1)]);
    advance(&mut encounter);
    assert_eq!((encounter.current(), who(&encounter, "a").life()), (None, rules::sheet::Life::Dead));
    assert_eq!(code(&encounter, &Action::new(ActionKind::AdvanceTurn)), "conflict");
}

#[test]
fn a_turn_has_one_action() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    play(&mut encounter, &attack("b"), &[2]);
    for kind in [ActionKind::Attack, ActionKind::Dash, ActionKind::Dodge, ActionKind::Search, ActionKind::Grapple] {
        assert_eq!(code(&encounter, &on(kind, "b", |_| {})), "no_action_left", "{kind:?}");
    }
    play(&mut encounter, &action(ActionKind::Dash, |a| a.cost = Some(Cost::BonusAction)), &[]);
    assert_eq!(code(&encounter, &action(ActionKind::Dash, |a| a.cost = Some(Cost::BonusAction))), "no_action_left");
    assert_eq!(code(&encounter, &action(ActionKind::Dash, |a| a.cost = Some(Cost::Free))), "validation_failed");
    play(&mut encounter, &on(ActionKind::Attack, "b", |a| a.overridden = true), &[2]);
    advance(&mut encounter);
    advance(&mut encounter);
    play(&mut encounter, &attack("b"), &[2]);
}

#[test]
fn extra_attack_and_action_surge_give_more() {
    let fighter = Creature {
        profession: "Fighter".to_owned(),
        level: 5,
        weapons: vec![Weapon { name: "Longsword".to_owned(), ..Weapon::default() }],
        resources: vec![Resource { name: "Action Surge".to_owned(), max: 1, remaining: 1 }],
        ..Creature::default()
    };
    let mut encounter = begun(vec![character("fighter", 15, fighter), enemy("b", 5)]);
    play(&mut encounter, &attack("b"), &[2]);
    play(&mut encounter, &attack("b"), &[2]);
    assert_eq!(code(&encounter, &attack("b")), "no_action_left");
    let surge = action(ActionKind::UseResource, |a| a.resource = Some("Action Surge".to_owned()));
    play(&mut encounter, &surge, &[]);
    assert_eq!(code(&encounter, &surge), "no_action_left");
    play(&mut encounter, &attack("b"), &[2]);
    assert_eq!(code(&encounter, &action(ActionKind::Dodge, |_| {})), "no_action_left");
    play(&mut encounter, &attack("b"), &[2]);
    assert_eq!(code(&encounter, &attack("b")), "no_action_left");
}

#[test]
fn the_surprised_do_not_act_in_the_first_round() {
    let setup = Setup {
        surprise: vec!["b".to_owned()],
        ..setup(vec![someone("a", 15), enemy("b", 10), NewParticipant { surprised: true, ..enemy("c", 20) }])
    };
    let mut encounter = begun_with(&setup);
    assert_eq!(current(&encounter), "a");
    let mut reaction = attack("a");
    (reaction.participant_id, reaction.cost) = (Some("b".to_owned()), Some(Cost::Reaction));
    assert_eq!(code(&encounter, &reaction), "not_your_turn");
    encounter.apply(&left("b", "a"));
    assert_eq!(code(&encounter, &reaction), "no_action_left");
    advance(&mut encounter);
    assert_eq!((current(&encounter), encounter.round()), ("c", 2));
    encounter.apply(&left("b", "a"));
    play(&mut encounter, &reaction, &[2]);
}

#[test]
fn when_all_are_surprised_the_first_round_passes() {
    let encounter = begun(vec![NewParticipant { surprised: true, ..someone("a", 2) }]);
    assert_eq!((current(&encounter), encounter.round()), ("a", 2));
}

#[test]
fn the_dead_have_no_turn_and_the_dying_have_theirs() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 10), someone("c", 5)]);
    for target in ["b", "c"] {
        play(&mut encounter, &on(ActionKind::Damage, target, |a| a.amount = Some(25)), &[]);
    }
    let save = on(ActionKind::DeathSave, "c", |_| {});
    assert_eq!(code(&encounter, &save), "not_your_turn");
    assert_eq!(code(&encounter, &on(ActionKind::DeathSave, "b", |_| {})), "not_dying");
    assert_eq!(code(&encounter, &on(ActionKind::DeathSave, "a", |_| {})), "not_dying");
    advance(&mut encounter);
    assert_eq!(current(&encounter), "c");
    play(&mut encounter, &save, &[1]);
    assert_eq!(who(&encounter, "c").creature.death_saves.failures, 2);
    assert_eq!(code(&encounter, &save), "no_action_left");
    advance(&mut encounter);
    advance(&mut encounter);
    play(&mut encounter, &save, &[20]);
    assert_eq!((who(&encounter, "c").creature.hp, who(&encounter, "c").creature.death_saves.failures), (1, 0));
    assert!(!has(&encounter, "c", "unconscious"));
}

#[test]
fn nobody_is_left_when_all_are_dead() {
    let mut encounter = begun(vec![enemy("a", 15)]);
    play(&mut encounter, &on(ActionKind::Damage, "a", |a| a.amount = Some(20)), &[]);
    assert!(matches!(encounter.act(&Action::new(ActionKind::AdvanceTurn), &mut Endless(1)), Err(Refusal::NobodyLeft)));
}

#[test]
fn dodge_and_help_last_until_the_next_turn() {
    let mut encounter = begun(vec![someone("a", 15), someone("ally", 12), enemy("b", 5)]);
    play(&mut encounter, &action(ActionKind::Dodge, |_| {}), &[]);
    advance(&mut encounter);
    play(&mut encounter, &on(ActionKind::Help, "a", |_| {}), &[]);
    assert_eq!(code(&encounter, &on(ActionKind::Help, "ally", |a| a.overridden = true)), "validation_failed");
    advance(&mut encounter);
    let blow = play(&mut encounter, &attack("a"), &[15, 2]);
    assert!(blow.outcomes[0].reasons.iter().any(|r| r.contains("Dodge")), "{blow:#?}");
    advance(&mut encounter);
    assert!(!has_effect(&encounter, "a", "Dodge"));
    assert!(has_effect(&encounter, "a", "Help"));
    play(&mut encounter, &attack("b"), &[2, 15, 3]);
    assert!(!has_effect(&encounter, "a", "Help"), "it helps once");
    advance(&mut encounter);
    play(&mut encounter, &on(ActionKind::Help, "a", |_| {}), &[]);
    advance(&mut encounter);
    advance(&mut encounter);
    advance(&mut encounter);
    assert!(!has_effect(&encounter, "a", "Help"), "and not longer than to the helper's next turn");
}

#[test]
fn initiative_may_be_rolled_again_or_set() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    play(
        &mut encounter,
        &action(ActionKind::RollInitiative, |a| (a.participant_id, a.amount) = (Some("b".to_owned()), Some(18))),
        &[],
    );
    assert_eq!(encounter.turn_order()[0].id, "b");
    assert_eq!((current(&encounter), encounter.turn()), ("a", 2));
    play(&mut encounter, &action(ActionKind::RollInitiative, |_| {}), &[19, 3]);
    assert_eq!(encounter.turn_order()[0].id, "a");
}

#[test]
fn after_the_end_nothing_happens() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    let end = encounter.end(EndOutcome::Victory, Some("They fled.")).expect("it ends");
    encounter.apply_all(&end.events);
    for kind in ActionKind::ALL {
        assert_eq!(code(&encounter, &on(*kind, "b", |_| {})), "encounter_already_ended");
    }
    assert_eq!(encounter.end(EndOutcome::Fled, None), Err(Refusal::AlreadyEnded));
    assert_eq!(encounter.join(&someone("c", 1), &mut Given::new(&[])), Err(Refusal::AlreadyEnded));
    let long = "x".repeat(10_001);
    let fresh = begun(vec![someone("a", 15)]);
    assert!(matches!(fresh.end(EndOutcome::Fled, Some(&long)), Err(Refusal::Argument { .. })));
}

#[test]
fn who_does_not_take_part_is_unknown() {
    let encounter = begun(vec![someone("a", 15)]);
    let unknown = attack("nobody");
    let refusal = encounter.act(&unknown, &mut Endless(1)).expect_err("refused");
    assert_eq!(refusal, Refusal::Unknown { argument: "target_id", id: "nobody".to_owned() });
    assert_eq!(code(&encounter, &action(ActionKind::Attack, |_| {})), "validation_failed");
}

#[test]
fn actions_are_read_as_they_are_sent() {
    let sent = serde_json::json!({
        "action": "attack", "participant_id": "b", "target_id": "a", "weapon": "Sword", "override": true, "cost": "bonus_action",
        "advantage": "advantage", "cover": "half", "context": { "attacker_unseen": true, "distance_ft": 5 },
    });
    let read: Action = serde_json::from_value(sent).expect("an action");
    assert_eq!(
        (read.attack.weapon.as_deref(), read.overridden, read.cost),
        (Some("Sword"), true, Some(Cost::BonusAction))
    );
    let encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    let decision = decide(&encounter, &read, &[9, 10, 6]).expect("a decision");
    assert_eq!((decision.outcomes[0].dc_or_ac.as_str(), decision.outcomes[0].total), ("14", 14));
    for kind in ActionKind::ALL {
        let read: Action = serde_json::from_value(serde_json::json!({ "action": kind.name() })).expect("an action");
        assert_eq!(read, Action::new(*kind));
    }
    assert!(serde_json::from_value::<Action>(serde_json::json!({ "action": "atack" })).is_err());
}

#[test]
fn what_players_know_of_is_said_and_changes_nothing_else() {
    let mut encounter = begun(vec![someone("a", 15), NewParticipant { hidden: true, ..enemy("b", 5) }]);
    let hidden = |encounter: &Encounter| encounter.participant("b").unwrap().hidden;
    assert!(hidden(&encounter));
    assert_eq!(play(&mut encounter, &on(ActionKind::Conceal, "b", |_| {}), &[]).events, [], "it was hidden before");
    play(&mut encounter, &on(ActionKind::Reveal, "b", |_| {}), &[]);
    assert!(!hidden(&encounter) && current(&encounter) == "a");
    play(&mut encounter, &on(ActionKind::Conceal, "b", |_| {}), &[]);
    assert!(hidden(&encounter));
}

/// The turns that follow, as `round participant`.
fn turns(encounter: &mut Encounter, count: usize) -> Vec<String> {
    let turn = |_| {
        advance(encounter);
        format!("{} {}", encounter.round(), encounter.current().map_or("nobody", |p| &p.id))
    };
    (0..count).map(turn).collect()
}

fn initiative(encounter: &mut Encounter, id: &str, amount: i32) {
    let set =
        action(ActionKind::RollInitiative, |a| (a.participant_id, a.amount) = (Some(id.to_owned()), Some(amount)));
    play(encounter, &set, &[]);
}

fn three() -> Encounter {
    begun(vec![someone("a", 20), enemy("b", 15), enemy("c", 10)])
}

/// Kills, in a way that can be taken back.
fn kill(encounter: &mut Encounter, id: &str) {
    let tire = |a: &mut Action| (a.condition, a.level) = (Some("exhaustion".to_owned()), Some(6));
    play(encounter, &on(ActionKind::AddCondition, id, tire), &[]);
}

fn bring_back(encounter: &mut Encounter, id: &str) {
    let rest = |a: &mut Action| a.condition = Some("exhaustion".to_owned());
    play(encounter, &on(ActionKind::RemoveCondition, id, rest), &[]);
}

#[test]
fn an_initiative_that_changes_takes_no_turn_and_gives_none() {
    // Somebody puts off the next turn during its own.
    let mut delays = three();
    initiative(&mut delays, "a", 5);
    assert_eq!(turns(&mut delays, 5), ["1 b", "1 c", "2 b", "2 c", "2 a"]);
    // The last one comes to the top while another acts.
    let mut rises = three();
    initiative(&mut rises, "c", 30);
    assert_eq!(turns(&mut rises, 4), ["1 c", "1 b", "2 c", "2 a"]);
    let mut turned = three();
    assert_eq!(turns(&mut turned, 1), ["1 b"]);
    for (id, amount) in [("a", 1), ("b", 2), ("c", 3)] {
        initiative(&mut turned, id, amount);
    }
    assert_eq!(turns(&mut turned, 5), ["1 c", "2 c", "2 b", "2 a", "3 c"]);
    // Everybody rolls anew.
    let mut anew = three();
    play(&mut anew, &Action::new(ActionKind::RollInitiative), &[1, 20, 10]);
    assert_eq!(turns(&mut anew, 5), ["1 b", "1 c", "2 b", "2 c", "2 a"]);
}

#[test]
fn who_dies_comes_back_or_joins_has_one_turn_at_most() {
    // Back before the round is over: its turn of this round is still to come.
    let mut back = three();
    kill(&mut back, "b");
    assert_eq!(turns(&mut back, 1), ["1 c"]);
    bring_back(&mut back, "b");
    assert_eq!(turns(&mut back, 3), ["1 b", "2 a", "2 b"]);
    // Who has had its turn has no second one.
    let mut twice = three();
    assert_eq!(turns(&mut twice, 1), ["1 b"]);
    kill(&mut twice, "a");
    bring_back(&mut twice, "a");
    assert_eq!(turns(&mut twice, 2), ["1 c", "2 a"]);
    // A newcomer has a turn in this round if its place is still to come.
    for (at, wanted) in [(12, ["1 d", "1 c", "2 a"]), (17, ["1 c", "2 a", "2 d"]), (15, ["1 d", "1 c", "2 a"])] {
        let mut joined = three();
        assert_eq!(turns(&mut joined, 1), ["1 b"]);
        let events = joined.join(&someone("d", at), &mut Endless(1)).expect("it joins").events;
        joined.apply_all(&events);
        assert_eq!(turns(&mut joined, 3), wanted, "{at}");
    }
    // Its place is that of the turn that goes on, wherever that participant stands by now.
    let mut moved = three();
    initiative(&mut moved, "a", 1);
    let events = moved.join(&someone("d", 12), &mut Endless(1)).expect("it joins").events;
    moved.apply_all(&events);
    assert_eq!(turns(&mut moved, 4), ["1 b", "1 d", "1 c", "2 b"]);
    // A newcomer that is surprised loses one turn, in the round in which it would have had it.
    let mut late = three();
    let events =
        late.join(&NewParticipant { surprised: true, ..someone("d", 30) }, &mut Endless(1)).expect("it joins").events;
    late.apply_all(&events);
    assert_eq!(turns(&mut late, 7), ["1 b", "1 c", "2 a", "2 b", "2 c", "3 d", "3 a"]);
}

proptest::proptest! {
    /// Whatever happens to initiatives and lives, nobody has two turns in a round, and who lives through a round has one.
    #[test]
    fn everybody_has_one_turn_a_round(steps in proptest::collection::vec((0u8..9, 0usize..6, -5i32..30), 1..80)) {
        let mut encounter = begun(vec![someone("p0", 20), enemy("p1", 15), enemy("p2", 10), someone("p3", 10)]);
        let mut had = vec!["p0".to_owned()];
        // Who has been there and alive since the round began.
        let mut present: Vec<String> = encounter.participants().iter().map(|p| p.id.clone()).collect();
        for (step, (what, whom, amount)) in steps.into_iter().enumerate() {
            let Some(id) = encounter.participants().get(whom).map(|p| p.id.clone()) else {
                let events = encounter.join(&someone(&format!("later{step}"), amount), &mut Endless(1)).expect("it joins").events;
                encounter.apply_all(&events);
                continue;
            };
            match what {
                0 => initiative(&mut encounter, &id, amount),
                1 if who(&encounter, &id).life() != Life::Dead => {
                    kill(&mut encounter, &id);
                    present.retain(|other| *other != id);
                }
                2 if who(&encounter, &id).life() == Life::Dead => bring_back(&mut encounter, &id),
                _ => {
                    let round = encounter.round();
                    let leaves = what == 3;
                    let had_turn = encounter.current().is_some_and(|current| current.id == id);
                    let decision = match leaves {
                        true => encounter.leave(&id, &mut Endless(1)),
                        false => encounter.act(&Action::new(ActionKind::AdvanceTurn), &mut Endless(1)),
                    };
                    let Ok(decision) = decision else { continue };
                    encounter.apply_all(&decision.events);
                    if leaves {
                        present.retain(|other| *other != id);
                        if !had_turn {
                            continue;
                        }
                    }
                    let Some(current) = encounter.current().map(|p| p.id.clone()) else { continue };
                    if encounter.round() > round {
                        proptest::prop_assert_eq!(encounter.round(), round + 1);
                        let missed: Vec<_> = present.iter().filter(|id| !had.contains(id)).collect();
                        proptest::prop_assert!(missed.is_empty(), "{:?} had no turn in round {}", missed, round);
                        had.clear();
                        let living = |p: &&Participant| p.life() != Life::Dead;
                        present = encounter.participants().iter().filter(living).map(|p| p.id.clone()).collect();
                    }
                    proptest::prop_assert!(!had.contains(&current), "{} has two turns in round {}", current, encounter.round());
                    had.push(current);
                }
            }
        }
    }
}
