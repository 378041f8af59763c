//! Participants and shorthands for all tests.

use rules::{
    dice::{Dice, Given, OutOfDice},
    encounter::{
        Action, ActionKind, Decision, Encounter, Event, NewParticipant, Participant, Position, Refusal, Setup, Square,
        Terrain,
    },
    sheet::{Creature, NpcAttack},
};

/// Endless dice from a seed.
pub struct Endless(pub u64);

impl Dice for Endless {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Ok(u32::try_from((self.0 >> 33) % u64::from(faces.max(1))).unwrap_or(0) + 1)
    }
}

/// A participant without a record: 20 hit points, armor class 12, and a sword with +4 for 1d6+2.
pub fn someone(id: &str, initiative: i32) -> NewParticipant {
    NewParticipant {
        id: id.to_owned(),
        initiative: Some(initiative),
        hp: Some(20),
        max_hp: Some(20),
        armor_class: Some(12),
        attacks: vec![NpcAttack {
            name: "Sword".to_owned(),
            bonus: 4,
            damage: "1d6+2".to_owned(),
            damage_type: "slashing".to_owned(),
            ..NpcAttack::default()
        }],
        ..NewParticipant::default()
    }
}

pub fn enemy(id: &str, initiative: i32) -> NewParticipant {
    NewParticipant { is_enemy: true, ..someone(id, initiative) }
}

/// A character with a record.
pub fn character(id: &str, initiative: i32, record: Creature) -> NewParticipant {
    NewParticipant {
        id: id.to_owned(),
        initiative: Some(initiative),
        character_id: Some(format!("record-{id}")),
        record: Some(Creature { id: format!("record-{id}"), ..record }),
        ..NewParticipant::default()
    }
}

pub fn placed(who: NewParticipant, x: i32, y: i32) -> NewParticipant {
    NewParticipant { position: Some(at(x, y)), ..who }
}

pub fn at(x: i32, y: i32) -> Position {
    Position { x, y, z: 0 }
}

pub fn squares(list: &[(i32, i32)]) -> Vec<Square> {
    list.iter().map(|(x, y)| Square { x: *x, y: *y }).collect()
}

pub fn setup(participants: Vec<NewParticipant>) -> Setup {
    Setup { encounter_id: "fight".to_owned(), participants, ..Setup::default() }
}

pub fn begun(participants: Vec<NewParticipant>) -> Encounter {
    begun_with(&setup(participants))
}

pub fn begun_on(terrain: Terrain, participants: Vec<NewParticipant>) -> Encounter {
    begun_with(&Setup { terrain: Some(terrain), ..setup(participants) })
}

pub fn begun_with(setup: &Setup) -> Encounter {
    Encounter::create(setup, &mut Given::new(&[])).expect("a fight").0
}

pub fn refused(setup: &Setup) -> Refusal {
    Encounter::create(setup, &mut Endless(1)).expect_err("it should be refused")
}

pub fn action(kind: ActionKind, change: impl FnOnce(&mut Action)) -> Action {
    let mut action = Action::new(kind);
    change(&mut action);
    action
}

pub fn on(kind: ActionKind, target: &str, change: impl FnOnce(&mut Action)) -> Action {
    action(kind, |a| {
        a.target_id = Some(target.to_owned());
        change(a);
    })
}

/// Decides with given dice, all of which must be used.
pub fn decide(encounter: &Encounter, action: &Action, dice: &[u32]) -> Result<Decision, Refusal> {
    let mut given = Given::new(dice);
    let decision = encounter.act(action, &mut given)?;
    assert_eq!(given.unused(), &[] as &[u32], "dice left over: {decision:#?}");
    Ok(decision)
}

/// Decides and applies the events.
pub fn play(encounter: &mut Encounter, action: &Action, dice: &[u32]) -> Decision {
    let decision = decide(encounter, action, dice).unwrap_or_else(|refusal| panic!("{refusal}: {action:#?}"));
    encounter.apply_all(&decision.events);
    decision
}

pub fn advance(encounter: &mut Encounter) -> Decision {
    play(encounter, &Action::new(ActionKind::AdvanceTurn), &[])
}

/// The code of the refusal.
pub fn code(encounter: &Encounter, action: &Action) -> &'static str {
    let before = encounter.clone();
    let refusal = encounter.act(action, &mut Endless(1)).expect_err("it should be refused");
    assert_eq!(*encounter, before);
    refusal.code()
}

/// The reason why an action is impossible.
pub fn impossible(encounter: &Encounter, action: &Action) -> String {
    let decision = encounter.act(action, &mut Endless(1)).expect("a decision");
    assert!(decision.events.is_empty(), "{decision:#?}");
    let outcome = decision.outcomes.first().expect("an outcome");
    assert!(outcome.impossible, "{outcome:#?}");
    outcome.notes.clone()
}

pub fn who<'a>(encounter: &'a Encounter, id: &str) -> &'a Participant {
    encounter.participant(id).expect("a participant")
}

pub fn current(encounter: &Encounter) -> &str {
    &encounter.current().expect("somebody's turn").id
}

pub fn has(encounter: &Encounter, id: &str, condition: &str) -> bool {
    who(encounter, id).creature.conditions.iter().any(|c| c.name == condition)
}

pub fn has_effect(encounter: &Encounter, id: &str, effect: &str) -> bool {
    who(encounter, id).creature.effects.iter().any(|e| e.name == effect)
}

pub fn provoked(decision: &Decision) -> Vec<&str> {
    let by = decision.events.iter().filter_map(|e| match e {
        Event::Provoked { by, .. } => Some(by.as_str()),
        _ => None,
    });
    by.collect()
}
