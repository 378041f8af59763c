//! Measures encounters: applying a log of 1,000 events (goal: at most 5 ms), views of 100 participants, an attack among
//! them, and a path across a grid.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use rand::{SeedableRng, rngs::SmallRng};
use rules::{
    dice::Random,
    encounter::{Action, ActionKind, Encounter, Event, NewParticipant, Position, Setup, Square, Terrain, Verbosity},
    sheet::NpcAttack,
};

fn fighter(at: i32) -> NewParticipant {
    let bite = NpcAttack {
        name: "Bite".to_owned(),
        bonus: 5,
        damage: "2d6+3".to_owned(),
        damage_type: "piercing".to_owned(),
        ..NpcAttack::default()
    };
    NewParticipant {
        id: format!("fighter-{at}"),
        hp: Some(100_000),
        is_enemy: at % 2 == 0,
        initiative: Some(at),
        position: Some(Position { x: at % 10, y: at / 10, z: 0 }),
        attacks: vec![bite],
        ..NewParticipant::default()
    }
}

fn fight() -> Encounter {
    let walls = (10..40).map(|y| Square { x: 20, y }).collect();
    let setup = Setup {
        encounter_id: "fight".to_owned(),
        participants: (0..100).map(fighter).collect(),
        terrain: Some(Terrain { obstacles: walls, ..Terrain::default() }),
        ..Setup::default()
    };
    let created = Encounter::create(&setup, &mut Random(SmallRng::seed_from_u64(1)));
    created.map(|(encounter, _)| encounter).unwrap_or_else(|refusal| unreachable!("{refusal}"))
}

/// An attack on an adjacent creature.
fn blow(encounter: &Encounter) -> Action {
    let actor = encounter.current().and_then(|p| p.position).unwrap_or_default();
    let near = encounter.participants().iter().find(|p| {
        p.position.is_some_and(|at| at != actor && (at.x - actor.x).abs() <= 1 && (at.y - actor.y).abs() <= 1)
    });
    Action { target_id: near.map(|p| p.id.clone()), ..Action::new(ActionKind::Attack) }
}

/// A log of attacks and turns.
fn log(begun: &Encounter, length: usize) -> Vec<Event> {
    let mut dice = Random(SmallRng::seed_from_u64(2));
    let mut encounter = begun.clone();
    let mut events = Vec::new();
    while events.len() < length {
        for action in [blow(&encounter), Action::new(ActionKind::AdvanceTurn)] {
            let decision = encounter.act(&action, &mut dice).unwrap_or_default();
            encounter.apply_all(&decision.events);
            events.extend(decision.events);
        }
    }
    events.truncate(length);
    events
}

fn encounters(c: &mut Criterion) {
    let begun = fight();
    let events = log(&begun, 1_000);
    let rows: Vec<String> = events.iter().map(|e| serde_json::to_string(e).unwrap_or_default()).collect();
    c.bench_function("fold 1,000 events", |b| {
        b.iter_batched(
            || begun.clone(),
            |mut encounter| {
                encounter.apply_all(black_box(&events));
                encounter
            },
            BatchSize::SmallInput,
        );
    });
    c.bench_function("read and fold 1,000 rows", |b| {
        b.iter_batched(
            || begun.clone(),
            |mut encounter| {
                for event in rows.iter().filter_map(|row| serde_json::from_str(row).ok()) {
                    encounter.apply(&event);
                }
                encounter
            },
            BatchSize::SmallInput,
        );
    });
    for (name, verbosity) in [("standard", Verbosity::Standard), ("detailed", Verbosity::Detailed)] {
        c.bench_function(&format!("view of 100 participants, {name}"), |b| b.iter(|| begun.view(black_box(verbosity))));
    }
    c.bench_function("diff of 100 participants", |b| b.iter(|| black_box(&begun).diff()));
    let mut dice = Random(SmallRng::seed_from_u64(3));
    let attack = blow(&begun);
    c.bench_function("attack among 100 participants", |b| b.iter(|| begun.act(black_box(&attack), &mut dice)));
    let mut dashed = begun.clone();
    let dash = Action { overridden: true, ..Action::new(ActionKind::Dash) };
    for _ in 0..20 {
        let decision = dashed.act(&dash, &mut dice).unwrap_or_default();
        dashed.apply_all(&decision.events);
    }
    let across = Action { position: Some(Position { x: 45, y: 25, z: 0 }), ..Action::new(ActionKind::Move) };
    c.bench_function("the way across a grid", |b| b.iter(|| dashed.act(black_box(&across), &mut dice)));
}

criterion_group!(benches, encounters);
criterion_main!(benches);
