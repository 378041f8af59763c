//! How a fight begins: participants, turn order, and rejected requests.

use rules::{
    dice::Given,
    encounter::{Encounter, Hazard, NewCondition, NewParticipant, Position, Refusal, Setup, Terrain, limits},
    sheet::{Abilities, Condition, Creature, Resource},
};

use crate::support::*;

#[test]
fn the_order_is_initiative_then_bonus_then_who_came_first() {
    let with_bonus =
        |id: &str, initiative, bonus| NewParticipant { initiative_bonus: Some(bonus), ..someone(id, initiative) };
    let encounter = begun(vec![
        with_bonus("slow", 3, 9),
        with_bonus("first of equals", 12, 1),
        with_bonus("second of equals", 12, 1),
        with_bonus("nimble", 12, 2),
        with_bonus("fast", 20, 0),
    ]);
    let order: Vec<_> = encounter.turn_order().into_iter().map(|p| p.id.as_str()).collect();
    assert_eq!(order, ["fast", "nimble", "first of equals", "second of equals", "slow"]);
    assert_eq!((encounter.round(), encounter.turn(), current(&encounter)), (1, 1, "fast"));
}

#[test]
fn initiative_is_rolled_with_dexterity_a_given_bonus_or_not_at_all() {
    let nimble = Abilities { dexterity: 16, ..Abilities::default() };
    let rolls = |id: &str| NewParticipant { initiative: None, abilities: Some(nimble), ..someone(id, 0) };
    let participants =
        vec![rolls("sheet"), NewParticipant { initiative_bonus: Some(7), ..rolls("bonus") }, someone("given", 11)];
    let mut dice = Given::new(&[10, 10]);
    let (encounter, events) = Encounter::create(&setup(participants), &mut dice).expect("a fight");
    assert!(dice.unused().is_empty());
    let rolled: Vec<_> = encounter.participants().iter().map(|p| p.initiative).collect();
    assert_eq!(rolled, [13, 17, 11]);
    assert_eq!(events.len(), 4);
    let mut again = encounter.clone();
    again.apply_all(&events);
    assert_eq!(again, encounter, "what a fight begins with can be folded once more");
}

#[test]
fn a_record_says_what_its_hit_points_are() {
    let record = Creature { hp: 18, max_hp: 30, ..Creature::default() };
    let hero = NewParticipant { hp: Some(30), max_hp: Some(99), ..character("hero", 1, record) };
    let encounter = begun(vec![hero]);
    let creature = &who(&encounter, "hero").creature;
    assert_eq!((creature.hp, creature.max_hp), (18, 30));
}

#[test]
fn a_character_nobody_knows_is_ephemeral() {
    let hero = NewParticipant { character_id: Some("gone".to_owned()), ..someone("hero", 1) };
    let encounter = begun(vec![hero]);
    assert!(who(&encounter, "hero").is_ephemeral());
}

#[test]
fn an_ephemeral_participant_keeps_the_hit_points_it_begins_with() {
    let hurt = NewParticipant { hp: Some(5), max_hp: Some(30), ..enemy("goblin", 1) };
    let encounter = begun(vec![hurt]);
    let hp = encounter.diff()[0].changes.hp;
    assert_eq!((hp.initial, hp.now, hp.delta), (5, 5, 0));
}

fn brings(level: Option<i32>, rounds_remaining: Option<i32>, name: &str) -> NewCondition {
    let condition = Condition { name: name.to_owned(), level, rounds_remaining, ..Condition::default() };
    NewCondition { condition, ..NewCondition::default() }
}

fn ki(remaining: i32, max: i32) -> Resource {
    Resource { name: "Ki Points".to_owned(), max, remaining }
}

#[test]
fn as_many_may_fight_as_the_limit_says() {
    let all: Vec<_> = (0..limits::PARTICIPANTS_MAX).map(|i| someone(&i.to_string(), 1)).collect();
    let mut surprising = setup(all);
    surprising.surprise = surprising.participants.iter().map(|p| p.id.clone()).collect();
    assert_eq!(begun_with(&surprising).participants().len(), limits::PARTICIPANTS_MAX);
    let full = NewParticipant { resources: vec![ki(3, 3)], hp: Some(0), max_hp: None, ..someone("a", 1) };
    assert_eq!(who(&begun(vec![full]), "a").creature.max_hp, 10, "who lies there is not made of nothing");
}

/// Arguments that make no sense are rejected, with their position.
#[test]
#[expect(clippy::too_many_lines, reason = "a table of wrong arguments; it reads best as one list")]
fn what_cannot_be_meant_is_refused() {
    let one = |change: fn(&mut NewParticipant)| {
        let mut it = someone("a", 1);
        change(&mut it);
        setup(vec![it])
    };
    let ground = |change: fn(&mut Terrain)| {
        let mut terrain = Terrain::default();
        change(&mut terrain);
        Setup { terrain: Some(terrain), ..setup(vec![someone("a", 1)]) }
    };
    let table: Vec<(&str, Setup)> = vec![
        ("participants", setup(vec![])),
        ("participants", setup((0..=limits::PARTICIPANTS_MAX).map(|i| someone(&i.to_string(), 1)).collect())),
        ("participants/1/id", setup(vec![someone("a", 1), someone("a", 2)])),
        ("participants/0/id", one(|p| p.id = " ".to_owned())),
        ("participants/0/id", one(|p| p.id = "x".repeat(101))),
        ("participants/0/hp", one(|p| p.hp = Some(21))),
        ("participants/0/hp", one(|p| p.hp = Some(-1))),
        ("participants/0/max_hp", one(|p| (p.hp, p.max_hp) = (None, Some(0)))),
        ("participants/0/resources", one(|p| p.resources = vec![ki(-1, 3)])),
        ("participants/0/resources", one(|p| p.resources = vec![ki(4, 3)])),
        ("participants/0/resources", one(|p| p.resources = vec![ki(0, i32::MAX)])),
        ("participants/0/armor_class", one(|p| p.armor_class = Some(-1))),
        ("participants/0/speed", one(|p| p.speed = Some(i32::MAX))),
        ("participants/0/size", one(|p| p.size = Some("Medum".to_owned()))),
        ("participants/0/resistances", one(|p| p.resistances = vec!["fier".to_owned()])),
        ("participants/0/condition_immunities", one(|p| p.condition_immunities = vec!["sad".to_owned()])),
        ("participants/0/conditions", one(|p| p.conditions = vec![NewCondition::default()])),
        ("participants/0/attacks/0/damage_type", one(|p| p.attacks[0].damage_type = "sharp".to_owned())),
        ("participants/0/attacks/0/damage_type", one(|p| p.attacks[0].damage_type = String::new())),
        ("participants/0/attacks/0/damage", one(|p| p.attacks[0].damage = String::new())),
        ("participants/0/attacks/0/damage", one(|p| p.attacks[0].damage = "1d6+".repeat(40) + "1")),
        ("participants/0/attacks/0/name", one(|p| p.attacks[0].name = "x".repeat(201))),
        ("participants/0/resistances/1", one(|p| p.resistances = vec!["fire".to_owned(), "fire ".repeat(41)])),
        ("participants/0/immunities/0", one(|p| p.immunities = vec!["fire ".repeat(41)])),
        ("participants/0/vulnerabilities/0", one(|p| p.vulnerabilities = vec!["fire ".repeat(41)])),
        ("participants/0/condition_immunities/0", one(|p| p.condition_immunities = vec!["x".repeat(201)])),
        ("participants/0/conditions/0/name", one(|p| p.conditions = vec![brings(None, None, &"x".repeat(201))])),
        (
            "participants/0/conditions/0/description",
            one(|p| {
                let description = Some("x".repeat(201));
                p.conditions = vec![NewCondition { description, ..brings(None, None, "prone") }];
            }),
        ),
        (
            "participants/0/resources/0/name",
            one(|p| p.resources = vec![Resource { name: "x".repeat(201), ..Resource::default() }]),
        ),
        ("participants/0/features", one(|p| p.features = vec![String::new(); 101])),
        ("participants/0/features/0", one(|p| p.features = vec!["x".repeat(201)])),
        ("participants/0/creature_type", one(|p| p.creature_type = Some("x".repeat(201)))),
        ("participants/0/attacks_per_action", one(|p| p.attacks_per_action = Some(11))),
        ("participants/0/attacks/0/bonus", one(|p| p.attacks[0].bonus = 31)),
        ("participants/0/attacks/0/damage", one(|p| p.attacks[0].damage = "much".to_owned())),
        ("participants/0/abilities", one(|p| p.abilities = Some(Abilities { wisdom: 31, ..Abilities::default() }))),
        ("participants/0/saving_throws", one(|p| p.saving_throws = [("luck".to_owned(), 1)].into())),
        ("participants/0/spell_slots", one(|p| p.spell_slots = [("10".to_owned(), Default::default())].into())),
        ("participants/0/resources", one(|p| p.resources = vec![Default::default()])),
        ("participants/0/conditions", one(|p| p.conditions = vec![brings(Some(1), None, "prone")])),
        ("participants/0/conditions", one(|p| p.conditions = vec![brings(Some(7), None, "exhaustion")])),
        ("participants/0/conditions", one(|p| p.conditions = vec![brings(None, Some(0), "prone")])),
        (
            "participants/0/conditions",
            one(|p| p.conditions = ["prone", "Prone"].map(|c| brings(None, None, c)).to_vec()),
        ),
        ("participants/0/position", one(|p| p.position = Some(at(50, 0)))),
        ("participants/0/position", one(|p| p.position = Some(Position { z: i32::MIN, ..at(0, 0) }))),
        ("participants/0/position", one(|p| (p.position, p.size) = (Some(at(49, 0)), Some("large".to_owned())))),
        ("terrain/width", ground(|t| t.width = 4)),
        ("terrain/height", ground(|t| t.height = 101)),
        ("terrain/water", ground(|t| t.water = squares(&[(50, 0)]))),
        ("terrain/hazards/0/type", ground(|t| t.hazards = vec![Hazard { kind: "x".repeat(201), ..Hazard::default() }])),
        (
            "terrain/hazards/0",
            ground(|t| t.hazards = vec![Hazard { damage: Some("lots".to_owned()), ..Hazard::default() }]),
        ),
        ("terrain/hazards", ground(|t| t.hazards = vec![Hazard::default(); 201])),
    ];
    for (argument, setup) in table {
        match refused(&setup) {
            Refusal::Argument { argument: found, .. } => assert_eq!(found, argument),
            other => panic!("{argument}: {other:?}"),
        }
    }
    let mut twin = character("hero", 1, Creature::default());
    twin.id = "twin".to_owned();
    let twins = setup(vec![character("hero", 1, Creature::default()), twin]);
    let argument = "participants/1/character_id".to_owned();
    assert_eq!(refused(&twins), Refusal::Argument { argument, message: "already takes part".to_owned() });
    let long = Setup { surprise: vec!["x".repeat(101)], ..setup(vec![someone("a", 1)]) };
    assert!(matches!(refused(&long), Refusal::Argument { argument, .. } if argument == "surprise/0"));
    let surprise = Setup { surprise: vec!["nobody".to_owned()], ..setup(vec![someone("a", 1)]) };
    assert_eq!(refused(&surprise), Refusal::Unknown { argument: "surprise", id: "nobody".to_owned() });
    let blocked = Terrain { obstacles: squares(&[(1, 1)]), ..Terrain::default() };
    let blocked = Setup { terrain: Some(blocked), ..setup(vec![placed(someone("a", 1), 1, 1)]) };
    assert!(matches!(refused(&blocked), Refusal::Argument { .. }));
}

#[test]
fn somebody_may_join_in_the_middle() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    let join = |encounter: &mut Encounter, id: &str, initiative| {
        let decision = encounter.join(&someone(id, initiative), &mut Given::new(&[])).expect("joined");
        encounter.apply_all(&decision.events);
    };
    join(&mut encounter, "late", 10);
    join(&mut encounter, "fast", 20);
    assert_eq!((current(&encounter), encounter.turn()), ("a", 2), "it stays the turn of who had it");
    advance(&mut encounter);
    assert_eq!(current(&encounter), "late");
    advance(&mut encounter);
    advance(&mut encounter);
    assert_eq!((current(&encounter), encounter.round()), ("fast", 2));
    let twice = encounter.join(&someone("late", 1), &mut Endless(1));
    assert!(matches!(twice, Err(Refusal::Argument { .. })));
}

#[test]
fn who_a_condition_comes_from_is_found_among_those_who_take_part() {
    let charmed = Condition { name: "charmed".into(), source: Some("record-bard".into()), ..Condition::default() };
    let fighter = Creature { name: "Fighter".to_owned(), conditions: vec![charmed], ..Creature::default() };
    let bard = Creature { name: "Bard".to_owned(), ..Creature::default() };
    let encounter = begun(vec![character("fighter", 9, fighter), character("bard", 1, bard)]);
    let blow = on(rules::encounter::ActionKind::Attack, "bard", |a| a.attack.weapon = Some("unarmed".to_owned()));
    assert!(impossible(&encounter, &blow).contains("charmed"));
    assert!(!encounter.diff()[0].changes.any(), "and its record is none the wiser");
}
