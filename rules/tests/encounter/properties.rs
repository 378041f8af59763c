//! Properties that hold for any action and any dice.

use proptest::{collection::vec, option, prelude::*, sample::select};
use rules::{
    encounter::{
        Action, ActionKind, Cost, Duration, Encounter, Event, Hazard, Lighting, MergeOptions, NewParticipant, Position,
        Refusal, SeenOutcome, SeenParticipant, Setup, Square, Stance, Terrain, Verbosity, Watcher, merge,
    },
    resolve::StateChange,
    sheet::{Creature, KnownSpell, Life, Resource, SpellSlot, Weapon},
    srd::Ability,
};

use crate::support::*;

const IDS: [&str; 5] = ["hero", "mage", "goblin", "ogre", "nobody"];

fn hero() -> Creature {
    Creature {
        name: "Hero".to_owned(),
        profession: "Fighter".to_owned(),
        level: 5,
        hp: 44,
        max_hp: 44,
        weapons: vec![Weapon { name: "Longsword".to_owned(), ..Weapon::default() }],
        resources: vec![Resource { name: "Action Surge".to_owned(), max: 1, remaining: 1 }],
        ..Creature::default()
    }
}

fn mage() -> Creature {
    let spells = ["Fireball", "Hold Person", "Bless", "Fire Bolt", "Magic Missile", "Cure Wounds"];
    Creature {
        name: "Mage".to_owned(),
        profession: "Wizard".to_owned(),
        level: 5,
        hp: 28,
        max_hp: 28,
        weapons: vec![Weapon { name: "Dagger".to_owned(), ..Weapon::default() }],
        spells: spells.map(|s| KnownSpell::Name(s.to_owned())).to_vec(),
        spell_slots: [("1", 40), ("2", 30), ("3", 20)]
            .map(|(l, n)| (l.to_owned(), SpellSlot { max: n, remaining: n }))
            .into(),
        ..Creature::default()
    }
}

fn field() -> Setup {
    let hazard =
        Hazard { position: Square { x: 4, y: 4 }, damage: Some("1d4".to_owned()), dc: Some(12), ..Hazard::default() };
    let terrain = Terrain {
        width: 12,
        height: 12,
        obstacles: squares(&[(5, 5), (5, 6)]),
        difficult_terrain: squares(&[(2, 2), (2, 3)]),
        hazards: vec![hazard],
        ..Terrain::default()
    };
    let ogre = NewParticipant { size: Some("large".to_owned()), hp: Some(59), max_hp: Some(59), ..enemy("ogre", 8) };
    let participants = vec![
        placed(character("hero", 15, hero()), 1, 1),
        placed(character("mage", 12, mage()), 0, 1),
        placed(enemy("goblin", 14), 6, 6),
        placed(ogre, 8, 8),
    ];
    Setup { terrain: Some(terrain), lighting: Lighting::Dim, ..setup(participants) }
}

fn number() -> BoxedStrategy<i32> {
    prop_oneof![8 => -2..25_i32, 1 => any::<i32>(), 1 => Just(i32::MAX), 1 => Just(i32::MIN)].boxed()
}

fn id() -> BoxedStrategy<Option<String>> {
    option::weighted(0.8, select(&IDS[..]).prop_map(str::to_owned)).boxed()
}

fn word() -> BoxedStrategy<Option<String>> {
    let known = vec![
        "prone",
        "paralyzed",
        "exhaustion",
        "Fireball",
        "Bless",
        "Hold Person",
        "Action Surge",
        "fire",
        "1d6",
        "Dagger",
    ];
    option::of(prop_oneof![8 => select(known).prop_map(str::to_owned), 1 => "\\PC{0,9}"]).boxed()
}

prop_compose! {
    fn asked()(
        kind in select(ActionKind::ALL),
        (actor, target, others) in (id(), id(), vec(select(&IDS[..]).prop_map(str::to_owned), 0..3)),
        (amount, rounds, level, save_dc) in (option::of(number()), option::of(number()), option::of(number()), option::of(number())),
        (condition, resource, weapon, spell, damage_type, source, formula) in (word(), word(), word(), word(), word(), word(), word()),
        (x, y, z) in (-1..13_i32, -1..13_i32, prop_oneof![9 => Just(0), 1 => number()]),
        placed in any::<bool>(),
        duration in option::of(select(&[Duration::Rounds, Duration::Concentration, Duration::UntilRest, Duration::SaveEnds][..])),
        cost in option::weighted(0.3, select(&[Cost::Action, Cost::BonusAction, Cost::Reaction, Cost::Free][..])),
        (overridden, away) in (prop::bool::weighted(0.2), any::<bool>()),
    ) -> Action {
        let mut action = Action::new(kind);
        action.participant_id = actor;
        // Several targets replace the single one. Sometimes both are given by mistake.
        let several = matches!(kind, ActionKind::Attack | ActionKind::CastSpell) && !others.is_empty();
        action.target_id = target.filter(|_| !several || away);
        action.target_ids = if several { others } else { Vec::new() };
        (action.amount, action.rounds, action.level, action.save_dc) = (amount, rounds, level, save_dc);
        (action.condition, action.resource, action.damage_type) = (condition, resource, damage_type);
        (action.attack.weapon, action.attack.spell_name, action.attack.slot_level) = (weapon, spell, level);
        (action.source, action.formula, action.save_ability) = (source, formula, Some(Ability::Wisdom));
        (action.duration, action.cost, action.overridden, action.away) = (duration, cost, overridden, away);
        action.position = placed.then_some(Position { x, y, z });
        action
    }
}

fn holds(encounter: &Encounter) {
    let order: Vec<_> = encounter.turn_order().iter().map(|p| (-p.initiative, -p.initiative_bonus)).collect();
    assert!(order.is_sorted());
    for (it, update) in encounter.participants().iter().zip(encounter.diff()) {
        let sheet = &it.creature;
        assert!((0..=sheet.max_hp_now().max(0)).contains(&sheet.hp), "{} of {}", sheet.hp, sheet.max_hp);
        assert!(sheet.temp_hp >= 0);
        let changes = &update.changes;
        assert_eq!((changes.hp.now, changes.hp.initial + changes.hp.delta), (sheet.hp, sheet.hp));
        let conditions = &changes.conditions;
        assert!(conditions.added.iter().all(|c| !conditions.initial.contains(c) && conditions.active.contains(c)));
        assert!(conditions.removed.iter().all(|c| conditions.initial.contains(c) && !conditions.active.contains(c)));
        for slot in changes.spell_slots.iter().flatten() {
            assert!(slot.now >= 0 && slot.initial - slot.now == slot.expended);
        }
        assert!(it.statistics.attacks_hit <= it.statistics.attacks_made);
    }
}

/// A plausible action: usually the current participant fights, and sometimes a game master intervenes.
fn plausible(encounter: &Encounter, pick: u64) -> Action {
    let it = encounter.current().expect("somebody's turn");
    let others: Vec<_> = encounter.participants().iter().filter(|p| p.is_enemy != it.is_enemy).collect();
    let target = others[usize::try_from(pick / 32).unwrap_or(0) % others.len()].id.clone();
    let step = i32::try_from(pick / 64 % 12).unwrap_or(0);
    match pick % 16 {
        0..=3 => on(ActionKind::Attack, &target, |a| a.circumstances.context.distance_ft = Some(5)),
        4 => on(ActionKind::CastSpell, &target, |a| a.attack.spell_name = Some("Fire Bolt".to_owned())),
        5 => on(ActionKind::CastSpell, &target, |a| a.attack.spell_name = Some("Hold Person".to_owned())),
        6 | 7 => action(ActionKind::Move, |a| a.position = Some(at(step, 11 - step))),
        8 => on(ActionKind::Damage, &target, |a| (a.amount, a.participant_id) = (Some(3), Some(it.id.clone()))),
        9 => on(ActionKind::Heal, &target, |a| a.formula = Some("2d8+3".to_owned())),
        10 => on(ActionKind::AddCondition, &target, |a| (a.condition, a.rounds) = (Some("prone".to_owned()), Some(2))),
        11 => action(ActionKind::Dodge, |_| {}),
        12 => on(ActionKind::Grapple, &target, |_| {}),
        13 => on(ActionKind::Heal, &it.id, |a| a.amount = Some(10)),
        _ => Action::new(ActionKind::AdvanceTurn),
    }
}

#[test]
fn a_long_log_folds_into_the_same_state() {
    let mut dice = Endless(42);
    let (begun, first) = Encounter::create(&field(), &mut dice).expect("a fight");
    let mut encounter = begun.clone();
    let mut log: Vec<String> = first.iter().map(|e| serde_json::to_string(e).expect("json")).collect();
    let (mut acted, mut pick) = (0, 7_u64);
    while acted < 1_000 {
        pick = pick.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let decision = match encounter.act(&plausible(&encounter, pick >> 33), &mut dice) {
            Ok(decision) if !decision.events.is_empty() => decision,
            _ => continue,
        };
        encounter.apply_all(&decision.events);
        log.extend(decision.events.iter().map(|e| serde_json::to_string(e).expect("json")));
        acted += 1;
        holds(&encounter);
        // The dead get up, so that the fight goes on.
        let dead = encounter.participants().iter().find(|p| p.life() == Life::Dead);
        if let Some(id) = dead.map(|p| p.id.clone()) {
            let up = [
                StateChange::Heal { creature: id.clone(), amount: 0, hp: 20 },
                StateChange::DeathSaves { creature: id, successes: 0, failures: 0 },
            ];
            for change in up {
                let event = Event::Changed { by: None, change };
                encounter.apply(&event);
                log.push(serde_json::to_string(&event).expect("json"));
            }
        }
    }
    assert!(encounter.round() > 20, "a fight of {} rounds", encounter.round());
    let mut replayed = begun;
    for line in &log {
        replayed.apply(&serde_json::from_str(line).expect("an event"));
    }
    assert_eq!(replayed, encounter);
    assert_eq!(serde_json::to_string(&replayed).expect("json"), serde_json::to_string(&encounter).expect("json"));
    let longest = log.iter().map(String::len).max().unwrap_or(0);
    assert!(longest < 600, "events are small: {longest} bytes");
}

prop_compose! {
    fn happened()(
        kind in 0..16_u8,
        (id, other) in (select(&IDS[..]).prop_map(str::to_owned), select(&IDS[..]).prop_map(str::to_owned)),
        (a, b) in (number(), number()),
        name in word(),
    ) -> Event {
        let name = name.unwrap_or_default();
        let creature = id.clone();
        let changed = |change| Event::Changed { by: Some(other.clone()), change };
        match kind {
            0 => Event::Initiative { participant: id, initiative: a },
            1 => Event::TurnStarted { participant: id, round: a.unsigned_abs() },
            2 => Event::TurnEnded { participant: id, round: 1 },
            3 => Event::Spent { participant: id, cost: Cost::Action, attacks_left: a, cast: None },
            4 => Event::Took { participant: id, stance: Stance::Dash },
            5 => Event::Moved { participant: id, to: Some(Position { x: a, y: b, z: a }), cost_ft: b },
            6 => Event::Provoked { by: id, target: other, from: Position { x: a, y: b, z: 0 } },
            7 => Event::Attacked { by: id, target: other, made: a.unsigned_abs(), hit: 0 },
            8 => changed(StateChange::Damage { creature, parts: vec![], total: a, absorbed_by_temp: b, hp: b, temp_hp: a }),
            9 => changed(StateChange::Heal { creature, amount: a, hp: b }),
            10 => changed(StateChange::SetSlot { creature, level: a, remaining: b }),
            11 => changed(StateChange::SpendResource { creature, name, amount: a }),
            12 => changed(StateChange::AddCondition { creature, condition: rules::sheet::Condition { name, level: Some(a), rounds_remaining: Some(b), source: None, ..rules::sheet::Condition::default() } }),
            13 => changed(StateChange::DeathSaves { creature, successes: a, failures: b }),
            14 => changed(StateChange::SetFlag { creature, flag: name, turn_key: "rest".to_owned() }),
            _ => changed(StateChange::Dies { creature }),
        }
    }
}

/// Replaces some numbers by others.
fn spoil(value: &mut serde_json::Value, numbers: &[i32], at: &mut usize) {
    match value {
        serde_json::Value::Number(number) => {
            *at += 1;
            if let Some(other) = numbers.get(*at * 7 % (numbers.len() * 5)) {
                *number = (*other).into();
            }
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(|v| spoil(v, numbers, at)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|v| spoil(v, numbers, at)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_is_answered(actions in vec(asked(), 1..30), seed in any::<u64>()) {
        let mut dice = Endless(seed);
        let (begun, _) = Encounter::create(&field(), &mut dice).expect("a fight");
        let mut encounter = begun.clone();
        let mut log = Vec::new();
        for action in &actions {
            let before = encounter.clone();
            let decision = encounter.act(action, &mut dice);
            prop_assert_eq!(&encounter, &before);
            if let Ok(decision) = decision {
                encounter.apply_all(&decision.events);
                log.extend(decision.events);
                holds(&encounter);
            }
        }
        let mut replayed = begun;
        replayed.apply_all(&log);
        prop_assert_eq!(&replayed, &encounter);
        for (record, update) in [hero(), mage()].into_iter().zip(encounter.diff()) {
            let mut same = record.clone();
            let written = merge(&mut same, &update, MergeOptions::ALL);
            prop_assert_eq!(written.any(), update.changes.any());
            prop_assert_eq!(same.hp, update.changes.hp.now);
            let mut edited = Creature { hp: 7, conditions: vec![], ..record };
            merge(&mut edited, &update, MergeOptions { unchanged: false, ..MergeOptions::ALL });
            prop_assert!((0..=edited.max_hp).contains(&edited.hp));
        }
    }

    #[test]
    fn players_see_what_is_listed(actions in vec(asked(), 1..30), seed in any::<u64>()) {
        let mut dice = Endless(seed);
        let (mut encounter, _) = Encounter::create(&field(), &mut dice).expect("a fight");
        encounter.apply(&Event::Hid { participant: "ogre".to_owned(), hidden: true });
        let is_friend = |id: &str| matches!(id, "hero" | "mage");
        let stays = |a: &&Action| !matches!(a.action, ActionKind::Conceal | ActionKind::Reveal);
        for action in actions.iter().filter(stays) {
            let Ok(decision) = encounter.act(action, &mut dice) else { continue };
            encounter.apply_all(&decision.events);
            let watcher = Watcher::of(&encounter, None);
            for outcome in &decision.outcomes {
                let rolled = &outcome.parties.rolled;
                let is_roll = !outcome.dice.is_empty() || outcome.damage.is_some();
                prop_assert!(!is_roll || !rolled.is_empty(), "nobody rolled {:?}", outcome);
                prop_assert!(rolled.iter().chain(&outcome.parties.others).all(|id| encounter.participant(id).is_some()), "{:?}", outcome.parties);
                let Some(seen) = watcher.outcome(outcome) else {
                    prop_assert!(rolled.iter().all(|id| id == "ogre"), "{:?} is not told", outcome);
                    continue;
                };
                let all_friends = !rolled.is_empty() && rolled.iter().all(|id| is_friend(id));
                prop_assert_eq!(seen.roll.is_some(), all_friends);
                prop_assert!(seen.effects.iter().all(|change| is_friend(change.creature())));
                prop_assert!(seen.participants.iter().all(|one| match one {
                    SeenParticipant::Whole(roll) => is_friend(&roll.creature),
                    SeenParticipant::Enemy { name, .. } => name == "goblin",
                }), "{:?}", seen);
                let json = serde_json::to_string(&seen).expect("json");
                for secret in ["dc_or_ac", "\"raw\"", "ogre"] {
                    prop_assert!(outcome.impossible || !json.contains(secret), "{secret} in {json}");
                }
                let again: SeenOutcome = serde_json::from_str(&json).expect("an outcome");
                prop_assert_eq!(serde_json::to_string(&again).expect("json"), json);
            }
            let view = serde_json::to_value(watcher.view(Verbosity::Detailed)).expect("json");
            prop_assert_eq!(view["participants"].as_array().map(Vec::len), Some(3));
            prop_assert!(!view.to_string().contains("ogre"), "{view}");
        }
    }

    #[test]
    fn who_moves_ends_in_nobody_elses_space(actions in vec(asked(), 1..40), seed in any::<u64>()) {
        let mut dice = Endless(seed);
        let mut field = field();
        // A participant that is stopped on the way stays there.
        field.terrain.as_mut().expect("a ground").hazards.clear();
        let (mut encounter, _) = Encounter::create(&field, &mut dice).expect("a fight");
        for action in &actions {
            let Ok(decision) = encounter.act(action, &mut dice) else { continue };
            encounter.apply_all(&decision.events);
            let moved = decision.events.iter().filter(|_| action.action == ActionKind::Move).find_map(|event| match event {
                Event::Moved { participant, to: Some(_), .. } => Some(who(&encounter, participant)),
                _ => None,
            });
            let Some(it) = moved else { continue };
            for other in encounter.participants().iter().filter(|p| p.id != it.id && p.life() != Life::Dead) {
                prop_assert_ne!(encounter.distance_ft(it, other), Some(0), "{} and {}", it.id, other.id);
            }
        }
    }

    #[test]
    fn a_spell_on_several_reaches_all_or_is_refused(
        (spell, reach) in select(&[("Fireball", 170), ("Hold Person", 60), ("Shatter", 70), ("Burning Hands", 15), ("Blight", 30)][..]),
        places in vec((0..50_i32, 0..50_i32), 1..6), seed in any::<u64>(),
    ) {
        let spells = vec![KnownSpell::Name(spell.to_owned())];
        let spell_slots = [("4".to_owned(), SpellSlot { max: 1, remaining: 1 })].into();
        let caster = Creature { spells, spell_slots, profession: "Wizard".to_owned(), level: 7, ..Creature::default() };
        let mut all = vec![placed(character("caster", 30, caster), 0, 0)];
        for (at, (x, y)) in places.iter().enumerate() {
            let taken = all.iter().any(|p| p.position == Some(self::at(*x, *y)));
            if !taken {
                all.push(placed(enemy(&at.to_string(), 1), *x, *y));
            }
        }
        let targets: Vec<String> = all.iter().skip(1).map(|p| p.id.clone()).collect();
        prop_assume!(!targets.is_empty());
        let encounter = begun(all);
        let far = targets.iter().position(|id| {
            encounter.distance_ft(who(&encounter, "caster"), who(&encounter, id)).is_some_and(|d| d > reach)
        });
        let cast = action(ActionKind::CastSpell, |a| {
            (a.attack.spell_name, a.target_ids) = (Some(spell.to_owned()), targets.clone());
        });
        match encounter.act(&cast, &mut Endless(seed)) {
            Ok(decision) => {
                prop_assert_eq!(far, None);
                prop_assert_eq!(decision.outcomes[0].participants.len(), targets.len());
            }
            Err(Refusal::Argument { argument, .. }) => prop_assert_eq!(far.map(|f| format!("target_ids/{f}")), Some(argument)),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn whatever_the_log_says_the_state_holds(events in vec(happened(), 1..60)) {
        let mut encounter = begun_with(&field());
        for event in &events {
            encounter.apply(event);
        }
        for it in encounter.participants() {
            prop_assert!((0..=it.creature.max_hp_now().max(0)).contains(&it.creature.hp));
        }
        for verbosity in [Verbosity::Minimal, Verbosity::Summary, Verbosity::Standard, Verbosity::Detailed] {
            let _ = encounter.view(verbosity);
        }
        let _ = (encounter.summary(), encounter.diff());
        let _ = encounter.act(&Action::new(ActionKind::AdvanceTurn), &mut Endless(1));
        let _ = encounter.act(&action(ActionKind::Move, |a| a.position = Some(at(3, 3))), &mut Endless(1));
    }

    #[test]
    fn whatever_was_stored_is_survived(numbers in vec(number(), 1..20), actions in vec(asked(), 1..12), skip in 0..50_usize) {
        let mut stored = serde_json::to_value(begun_with(&field())).expect("json");
        spoil(&mut stored, &numbers, &mut { skip });
        let Ok(mut encounter) = serde_json::from_value::<Encounter>(stored) else { return Ok(()) };
        for asked in &actions {
            if let Ok(decision) = encounter.act(asked, &mut Endless(1)) {
                encounter.apply_all(&decision.events);
            }
        }
        let _ = encounter.join(&someone("late", 3), &mut Endless(1));
        let _ = (encounter.view(Verbosity::Detailed), encounter.summary());
        for update in encounter.diff() {
            merge(&mut hero(), &update, MergeOptions { unchanged: false, ..MergeOptions::ALL });
        }
    }

    #[test]
    fn the_same_dice_give_the_same_order(seed in any::<u64>(), count in 1..40_usize) {
        let participants: Vec<_> = (0..count).map(|i| NewParticipant { initiative: None, ..someone(&i.to_string(), 0) }).collect();
        let setup = setup(participants);
        let order = || {
            let (encounter, _) = Encounter::create(&setup, &mut Endless(seed)).expect("a fight");
            encounter.turn_order().iter().map(|p| p.id.clone()).collect::<Vec<_>>()
        };
        prop_assert_eq!(order(), order());
    }

    #[test]
    fn whatever_begins_a_fight_is_answered(
        hp in option::of(number()), max_hp in option::of(number()), initiative in option::of(number()),
        bonus in option::of(number()), (x, y, z) in (number(), number(), number()), size in word(),
        record in any::<bool>(), (sheet_hp, sheet_max) in (number(), number()), width in number(),
    ) {
        let record = record.then(|| Creature { hp: sheet_hp, max_hp: sheet_max, speed: sheet_hp, ..Creature::default() });
        let new = NewParticipant {
            hp, max_hp, initiative, initiative_bonus: bonus, size, record, position: Some(Position { x, y, z }), ..someone("a", 1)
        };
        let setup = Setup { terrain: Some(Terrain { width, ..Terrain::default() }), ..setup(vec![new]) };
        if let Ok((encounter, _)) = Encounter::create(&setup, &mut Endless(1)) {
            holds(&encounter);
        }
    }
}
