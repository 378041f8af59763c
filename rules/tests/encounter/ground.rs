//! Squares: moves towards and away, pushes, sight and cover, what burns, and how squares are written.

use rules::{
    encounter::{
        Action, ActionKind, Encounter, Event, Hazard, Lighting, NewParticipant, Position, Setup, Square, Terrain,
    },
    sheet::{NpcAttack, Range},
};
use serde_json::{from_value, json, to_value};

use crate::support::*;

fn why(encounter: &Encounter, action: &Action) -> String {
    encounter.act(action, &mut Endless(1)).expect_err("it should be refused").to_string()
}

fn towards(target: &str) -> Action {
    on(ActionKind::Move, target, |_| {})
}

fn away_from(target: &str) -> Action {
    on(ActionKind::Move, target, |a| a.away = true)
}

fn to(x: i32, y: i32) -> Action {
    action(ActionKind::Move, |a| a.position = Some(at(x, y)))
}

fn above(who: NewParticipant, x: i32, y: i32) -> NewParticipant {
    NewParticipant { position: Some(Position { x, y, z: 2 }), ..who }
}

#[test]
fn a_move_towards_somebody_says_why_it_is_none() {
    let encounter = begun(vec![placed(someone("a", 15), 0, 0), placed(enemy("b", 5), 1, 1)]);
    assert!(why(&encounter, &towards("b")).contains("is already next to a"));
    let walls = squares(&[(0, 1), (1, 0), (1, 1)]);
    let closed = Terrain { obstacles: walls, ..Terrain::default() };
    let walled = begun_on(closed, vec![placed(someone("a", 15), 0, 0), placed(enemy("b", 5), 9, 9)]);
    assert!(why(&walled, &towards("b")).contains("cannot get any nearer"));
    assert!(why(&walled, &away_from("b")).contains("cannot get any farther away"));
    // On the ground only.
    for pair in [
        vec![above(someone("a", 15), 0, 0), placed(enemy("b", 5), 9, 9)],
        vec![placed(someone("a", 15), 0, 0), above(enemy("b", 5), 9, 9)],
    ] {
        assert!(why(&begun(pair), &towards("b")).contains("on the ground"));
    }
}

#[test]
fn the_last_five_feet() {
    let mut encounter = begun(vec![placed(someone("a", 15), 0, 0), placed(enemy("b", 5), 9, 0)]);
    play(&mut encounter, &to(5, 0), &[]);
    play(&mut encounter, &towards("b"), &[]);
    assert_eq!((who(&encounter, "a").position, who(&encounter, "a").movement_left()), (Some(at(6, 0)), 0));
}

#[test]
fn standing_up_takes_movement_unless_a_game_master_says_so() {
    let mut encounter = begun(vec![placed(someone("a", 15), 0, 0), enemy("b", 5)]);
    play(&mut encounter, &to(4, 0), &[]);
    play(&mut encounter, &on(ActionKind::AddCondition, "a", |a| a.condition = Some("prone".to_owned())), &[]);
    let mut up = Action::new(ActionKind::StandUp);
    assert_eq!(code(&encounter, &up), "no_action_left");
    up.overridden = true;
    play(&mut encounter, &up, &[]);
    assert!(!has(&encounter, "a", "prone"));
}

#[test]
fn fear_lets_one_step_aside() {
    let mut encounter = begun(vec![placed(someone("a", 15), 5, 5), placed(enemy("b", 5), 9, 5)]);
    let fear = on(ActionKind::AddCondition, "a", |a| {
        (a.condition, a.participant_id) = (Some("frightened".to_owned()), Some("b".to_owned()));
    });
    play(&mut encounter, &fear, &[]);
    play(&mut encounter, &to(5, 6), &[]);
}

#[test]
fn the_dead_are_stepped_over() {
    let corridor = Terrain {
        width: 5,
        height: 5,
        obstacles: (0..5).flat_map(|x| (1..5).map(move |y| Square { x, y })).collect(),
        ..Terrain::default()
    };
    let mut encounter = begun_on(corridor, vec![placed(someone("a", 15), 0, 0), placed(enemy("b", 5), 1, 0)]);
    play(&mut encounter, &on(ActionKind::Damage, "b", |a| a.amount = Some(20)), &[]);
    play(&mut encounter, &to(2, 0), &[]);
    assert_eq!(who(&encounter, "a").movement_left(), 20);
}

fn pit(x: i32, hazard: Hazard) -> Terrain {
    Terrain {
        hazards: vec![Hazard { position: Square { x, y: 0 }, kind: "pit".to_owned(), ..hazard }],
        ..Terrain::default()
    }
}

#[test]
fn who_leaves_a_fire_does_not_enter_it() {
    let fire = pit(1, Hazard { damage: Some("5".to_owned()), ..Hazard::default() });
    let mut encounter = begun_on(fire, vec![placed(someone("a", 15), 1, 0)]);
    play(&mut encounter, &to(3, 0), &[]);
    assert_eq!(who(&encounter, "a").creature.hp, 20);
}

#[test]
fn hazards_burn_as_they_are_written_and_hold_who_is_held() {
    let resists = NewParticipant { resistances: vec!["fire".to_owned()], ..someone("a", 15) };
    for (damage, kind, hp) in
        [("6 fire", None, 17), ("6 fire", Some("cold"), 17), ("6", Some("fire"), 17), ("6", None, 14)]
    {
        let hazard =
            Hazard { damage: Some(damage.to_owned()), damage_type: kind.map(str::to_owned), ..Hazard::default() };
        let mut encounter = begun_on(pit(1, hazard), vec![placed(resists.clone(), 0, 0)]);
        play(&mut encounter, &to(1, 0), &[]);
        assert_eq!(who(&encounter, "a").creature.hp, hp, "{damage} {kind:?}");
    }
    let net = || pit(1, Hazard { condition: Some("restrained".to_owned()), dc: Some(12), ..Hazard::default() });
    let slippery = NewParticipant { condition_immunities: vec!["restrained".to_owned()], ..someone("a", 15) };
    for (it, die, held) in [(someone("a", 15), 11, true), (someone("a", 15), 12, false), (slippery, 11, false)] {
        let mut encounter = begun_on(net(), vec![placed(it, 0, 0)]);
        play(&mut encounter, &to(1, 0), &[die]);
        assert_eq!(has(&encounter, "a", "restrained"), held);
    }
}

#[test]
fn a_push_needs_a_free_square_and_nothing_else_pushes() {
    let shoved = |terrain: Terrain, corner: (i32, i32), others: Vec<NewParticipant>, away: bool, dice: &[u32]| {
        let (x, y) = corner;
        let two = vec![placed(someone("a", 15), x - 1, y - 1), placed(enemy("b", 5), x, y)];
        let mut encounter = begun_on(terrain, [two, others].concat());
        let decision = play(&mut encounter, &on(ActionKind::Shove, "b", |a| a.away = away), dice);
        let moved = decision.events.iter().any(|e| matches!(e, Event::Moved { .. }));
        assert_eq!(moved, who(&encounter, "b").position != Some(at(x, y)));
        moved
    };
    let wall = Terrain { obstacles: squares(&[(7, 7)]), ..Terrain::default() };
    assert!(shoved(Terrain::default(), (6, 6), vec![], true, &[15, 3]));
    assert!(!shoved(wall, (6, 6), vec![], true, &[15, 3]), "a wall");
    assert!(!shoved(Terrain::default(), (49, 49), vec![], true, &[15, 3]), "the edge");
    assert!(!shoved(Terrain::default(), (6, 6), vec![placed(someone("c", 1), 7, 7)], true, &[15, 3]), "somebody");
    assert!(!shoved(Terrain::default(), (6, 6), vec![], true, &[3, 15]), "it holds its ground");
    assert!(!shoved(Terrain::default(), (6, 6), vec![], false, &[15, 3]), "it falls where it stands");
}

fn bow() -> NpcAttack {
    NpcAttack {
        name: "Bow".to_owned(),
        bonus: 4,
        damage: "1d6".to_owned(),
        damage_type: "piercing".to_owned(),
        range: Some(Range { normal: 80, long: Some(320) }),
        ..NpcAttack::default()
    }
}

fn archer() -> NewParticipant {
    NewParticipant { attacks: vec![bow()], features: vec!["Darkvision".to_owned()], ..someone("a", 15) }
}

#[test]
fn what_lies_between_gives_cover_on_the_ground() {
    let ac = |archer: NewParticipant, target: NewParticipant, wall: (i32, i32)| {
        let terrain = Terrain { obstacles: squares(&[wall]), ..Terrain::default() };
        let encounter = begun_on(terrain, vec![archer, target]);
        encounter.act(&on(ActionKind::Attack, "b", |_| {}), &mut Endless(3)).expect("a shot").outcomes[0]
            .dc_or_ac
            .clone()
    };
    for wall in [(1, 0), (4, 0), (7, 0)] {
        assert_eq!(ac(placed(archer(), 0, 0), placed(enemy("b", 5), 8, 0), wall), "14", "{wall:?}");
        assert_eq!(ac(placed(archer(), 8, 0), placed(enemy("b", 5), 0, 0), wall), "14", "{wall:?}");
    }
    assert_eq!(ac(placed(archer(), 10, 9), placed(enemy("b", 5), 6, 5), (8, 7)), "14");
    assert_eq!(ac(placed(archer(), 10, 9), placed(enemy("b", 5), 6, 5), (8, 8)), "12");
    assert_eq!(ac(placed(archer(), 0, 0), placed(enemy("b", 5), 8, 0), (9, 0)), "12", "behind the target");
    assert_eq!(ac(above(archer(), 0, 0), placed(enemy("b", 5), 8, 0), (4, 0)), "12");
    assert_eq!(ac(placed(archer(), 0, 0), above(enemy("b", 5), 8, 0), (4, 0)), "12");
}

#[test]
fn darkvision_ends() {
    let sees = |x| {
        let fighters = vec![placed(archer(), 0, 0), placed(enemy("b", 5), x, 0)];
        let encounter = begun_with(&Setup { lighting: Lighting::Darkness, ..setup(fighters) });
        let shot = encounter.act(&on(ActionKind::Attack, "b", |_| {}), &mut Endless(3)).expect("a shot");
        !shot.outcomes[0].reasons.iter().any(|r| r.contains("the attacker does not see the target"))
    };
    assert_eq!((sees(12), sees(13)), (true, false));
}

#[test]
fn the_large_fill_more_squares() {
    for (size, reach) in [("medium", 1), ("large", 2), ("huge", 3), ("gargantuan", 4)] {
        let it = NewParticipant { size: Some(size.to_owned()), ..enemy("b", 5) };
        let encounter = begun(vec![placed(someone("a", 15), 3 + reach, 3), placed(it, 3, 3)]);
        assert_eq!(encounter.distance_ft(who(&encounter, "a"), who(&encounter, "b")), Some(5), "{size}");
    }
}

#[test]
fn squares_as_they_are_written() {
    let sent = json!({ "obstacles": ["3,4", " 5, 6"], "hazards": [{ "position": "7,8", "type": "fire" }] });
    let terrain: Terrain = from_value(sent).expect("a terrain");
    assert_eq!(terrain.obstacles, squares(&[(3, 4), (5, 6)]));
    let told = to_value(&terrain).expect("json");
    assert_eq!((&told["obstacles"], &told["hazards"][0]["position"]), (&json!(["3,4", "5,6"]), &json!("7,8")));
    for wrong in ["3", "3;4", "x,4", "3,", ""] {
        assert!(from_value::<Terrain>(json!({ "obstacles": [wrong] })).is_err(), "{wrong}");
    }
    assert_eq!(to_value(at(3, 4)).expect("json"), json!({ "x": 3, "y": 4 }));
    assert_eq!(to_value(Position { z: 2, ..at(3, 4) }).expect("json"), json!({ "x": 3, "y": 4, "z": 2 }));
}
