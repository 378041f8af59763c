//! Movement: its cost, blocked squares, opportunity attacks, and hazards on the way.

use rules::{
    encounter::{Action, ActionKind, Cost, Hazard, NewParticipant, Position, Square, Terrain},
    sheet::{Creature, Weapon},
};

use crate::support::*;

fn to(x: i32, y: i32) -> Action {
    action(ActionKind::Move, |a| a.position = Some(at(x, y)))
}

#[test]
fn diagonals_are_squares_like_others() {
    let mut encounter = begun(vec![placed(someone("a", 15), 0, 0)]);
    play(&mut encounter, &to(4, 4), &[]);
    assert_eq!(who(&encounter, "a").movement_left(), 10);
    assert_eq!(code(&encounter, &to(7, 4)), "no_action_left");
    let message = encounter.act(&to(7, 4), &mut Endless(1)).expect_err("refused").to_string();
    assert!(message.contains("needs 15 feet") && message.contains("10 left"), "{message}");
    play(&mut encounter, &Action::new(ActionKind::Dash), &[]);
    play(&mut encounter, &to(12, 4), &[]);
    assert_eq!(who(&encounter, "a").movement_left(), 0);
    advance(&mut encounter);
    assert_eq!(who(&encounter, "a").movement_left(), 30);
}

#[test]
fn bad_ground_costs_twice_and_the_way_goes_around_it() {
    let mud = Terrain {
        difficult_terrain: squares(&[(1, 0), (1, 1), (2, 1)]),
        water: squares(&[(1, 2), (2, 1)]),
        ..Terrain::default()
    };
    let mut encounter = begun_on(mud, vec![placed(someone("a", 15), 0, 1)]);
    play(&mut encounter, &to(2, 1), &[]);
    assert_eq!(who(&encounter, "a").movement_left(), 10, "mud, and mud in water, which is no worse");
    let wall = Terrain { obstacles: squares(&[(1, 0), (1, 1), (1, 2)]), ..Terrain::default() };
    let mut encounter = begun_on(wall, vec![placed(someone("a", 15), 0, 1)]);
    assert_eq!(code(&encounter, &to(1, 1)), "validation_failed");
    play(&mut encounter, &to(2, 1), &[]);
    assert_eq!(who(&encounter, "a").movement_left(), 10, "around the wall");
    let closed = Terrain { obstacles: (0..50).map(|y| Square { x: 1, y }).collect(), ..Terrain::default() };
    let encounter = begun_on(closed, vec![placed(someone("a", 15), 0, 1)]);
    assert_eq!(code(&encounter, &to(2, 1)), "validation_failed");
}

#[test]
fn the_grid_ends_and_spaces_are_taken() {
    let encounter =
        begun(vec![placed(someone("a", 15), 0, 0), placed(someone("b", 5), 1, 0), placed(enemy("c", 4), 0, 1)]);
    for (x, y) in [(-1, 0), (0, 50), (i32::MAX, 0), (i32::MIN, i32::MIN), (1, 0), (0, 1), (0, 0)] {
        assert_eq!(code(&encounter, &to(x, y)), "validation_failed", "{x},{y}");
    }
    let corridor = Terrain {
        width: 5,
        height: 5,
        obstacles: (0..5).flat_map(|x| (1..5).map(move |y| Square { x, y })).collect(),
        ..Terrain::default()
    };
    let past = |other| begun_on(corridor.clone(), vec![placed(someone("a", 15), 0, 0), placed(other, 1, 0)]);
    let mut friendly = past(someone("b", 5));
    play(&mut friendly, &to(2, 0), &[]);
    assert_eq!(who(&friendly, "a").movement_left(), 15, "through a friend's space");
    assert_eq!(code(&past(enemy("b", 5)), &to(2, 0)), "validation_failed");
    let tiny = NewParticipant { size: Some("tiny".to_owned()), ..enemy("b", 5) };
    assert!(decide(&past(tiny), &to(2, 0), &[]).is_ok(), "two sizes smaller");
}

#[test]
fn nobody_ends_a_move_in_the_space_of_another() {
    let up = |x, z| Position { x, y: 0, z };
    let fly = |x, z| action(ActionKind::Move, move |a| a.position = Some(up(x, z)));
    let ogre = NewParticipant { size: Some("large".to_owned()), ..someone("ogre", 3) };
    let hovers = NewParticipant { position: Some(up(3, 4)), ..someone("friend", 5) };
    let all = vec![placed(someone("a", 15), 0, 0), hovers, placed(someone("b", 4), 3, 0), placed(ogre, 5, 0)];
    let mut encounter = begun(all);
    let message = encounter.act(&fly(3, 4), &mut Endless(1)).expect_err("refused").to_string();
    assert!(message.contains("friend is there"), "in the air: {message}");
    assert_eq!(code(&encounter, &fly(3, 0)), "validation_failed", "on the ground");
    assert_eq!(code(&encounter, &fly(5, 1)), "validation_failed", "an ogre is two squares high");
    for (x, z) in [(3, 3), (3, 5), (3, 1), (5, 2)] {
        assert!(encounter.act(&fly(x, z), &mut Endless(1)).is_ok(), "{x}, {z} is free");
    }
    let put = |x, z| action(ActionKind::Move, move |a| (a.position, a.overridden) = (Some(up(x, z)), true));
    for (x, z) in [(3, 0), (3, 4), (6, 1)] {
        assert_eq!(code(&encounter, &put(x, z)), "validation_failed", "nor is put there: {x}, {z}");
    }
    // A participant without a position cannot take an occupied square. The dead leave theirs free.
    play(&mut encounter, &on(ActionKind::Damage, "b", |a| a.amount = Some(500)), &[]);
    play(&mut encounter, &fly(3, 0), &[]);
    let late = encounter.join(&someone("late", 1), &mut Endless(1)).expect("it joins");
    encounter.apply_all(&late.events);
    let enter = |x| {
        action(ActionKind::Move, move |a| (a.participant_id, a.position) = (Some("late".to_owned()), Some(at(x, 0))))
    };
    while current(&encounter) != "late" {
        advance(&mut encounter);
    }
    assert_eq!(code(&encounter, &enter(3)), "validation_failed");
    play(&mut encounter, &enter(2), &[]);
}

#[test]
fn a_written_path_is_walked_as_it_is() {
    let mut encounter = begun(vec![placed(someone("a", 15), 0, 0)]);
    let path = |squares: &[(i32, i32)]| {
        let path = squares.iter().map(|(x, y)| at(*x, *y)).collect();
        action(ActionKind::Move, |a| a.path = path)
    };
    assert_eq!(code(&encounter, &path(&[(1, 0), (3, 0)])), "validation_failed");
    play(&mut encounter, &path(&[(1, 1), (2, 0), (1, 0)]), &[]);
    assert_eq!((who(&encounter, "a").position, who(&encounter, "a").movement_left()), (Some(at(1, 0)), 15));
}

#[test]
fn who_lies_crawls_or_stands_up_and_who_is_held_stays() {
    let start = |condition: &str| {
        let mut encounter = begun(vec![placed(someone("a", 15), 0, 0)]);
        play(&mut encounter, &on(ActionKind::AddCondition, "a", |a| a.condition = Some(condition.to_owned())), &[]);
        encounter
    };
    let mut prone = start("prone");
    play(&mut prone, &to(1, 0), &[]);
    assert_eq!(who(&prone, "a").movement_left(), 20);
    play(&mut prone, &Action::new(ActionKind::StandUp), &[]);
    assert_eq!(who(&prone, "a").movement_left(), 5);
    assert!(impossible(&prone, &Action::new(ActionKind::StandUp)).contains("not prone"));
    for held in ["grappled", "restrained", "paralyzed", "unconscious"] {
        assert_eq!(code(&start(held), &to(1, 0)), "no_action_left", "{held}");
    }
    let mut tired = start("exhaustion");
    play(&mut tired, &on(ActionKind::AddCondition, "a", |a| a.condition = Some("exhaustion".to_owned())), &[]);
    assert_eq!(who(&tired, "a").speed_now(), 15);
}

#[test]
fn fear_keeps_away() {
    let mut encounter = begun(vec![placed(someone("a", 15), 5, 5), placed(enemy("b", 5), 9, 5)]);
    let fear = on(ActionKind::AddCondition, "a", |a| {
        (a.condition, a.participant_id) = (Some("frightened".to_owned()), Some("b".to_owned()));
    });
    play(&mut encounter, &fear, &[]);
    assert_eq!(code(&encounter, &to(6, 5)), "validation_failed");
    play(&mut encounter, &to(4, 5), &[]);
}

fn towards(target: &str) -> Action {
    on(ActionKind::Move, target, |_| {})
}

fn away_from(target: &str) -> Action {
    on(ActionKind::Move, target, |a| a.away = true)
}

#[test]
fn a_move_leads_towards_somebody_as_far_as_movement_goes() {
    let wall = Terrain { obstacles: squares(&[(3, 0), (3, 1), (3, 2)]), ..Terrain::default() };
    let mut encounter =
        begun_on(wall, vec![placed(someone("a", 15), 1, 0), placed(enemy("b", 5), 10, 0), someone("nowhere", 1)]);
    play(&mut encounter, &towards("b"), &[]);
    let stopped = who(&encounter, "a").position.expect("a place");
    assert_eq!(who(&encounter, "a").movement_left(), 0, "around the wall: {stopped:?}");
    assert_eq!(code(&encounter, &towards("b")), "no_action_left");
    play(&mut encounter, &Action::new(ActionKind::Dash), &[]);
    play(&mut encounter, &towards("b"), &[]);
    let next_to = who(&encounter, "a").position.expect("a place");
    assert!((9..=11).contains(&next_to.x) && next_to.y <= 1, "{next_to:?}");
    assert!(who(&encounter, "a").movement_left() > 0, "no farther than needed");
    assert_eq!(code(&encounter, &towards("b")), "validation_failed", "it is there already");
    assert_eq!(code(&encounter, &towards("a")), "validation_failed");
    assert_eq!(code(&encounter, &towards("nobody")), "validation_failed");
    // Without a position there is no distance to measure.
    let left = who(&encounter, "a").movement_left();
    play(&mut encounter, &towards("nowhere"), &[]);
    assert_eq!((who(&encounter, "a").position, who(&encounter, "a").movement_left()), (Some(next_to), left));
}

#[test]
fn a_move_towards_somebody_goes_as_far_as_is_said_and_never_gives_movement() {
    let so_far = |feet| on(ActionKind::Move, "b", move |a| a.amount = Some(feet));
    let mut encounter = begun(vec![placed(someone("a", 15), 0, 0), placed(enemy("b", 5), 10, 0)]);
    play(&mut encounter, &so_far(10), &[]);
    assert_eq!((who(&encounter, "a").position, who(&encounter, "a").movement_left()), (Some(at(2, 0)), 20));
    let mut unplaced = begun(vec![someone("a", 15), enemy("b", 5)]);
    for feet in [0, -1, -30, i32::MIN] {
        assert_eq!(code(&encounter, &so_far(feet)), "validation_failed");
        assert_eq!(code(&unplaced, &so_far(feet)), "validation_failed");
    }
    assert_eq!(code(&unplaced, &towards("a")), "validation_failed", "oneself");
    play(&mut unplaced, &so_far(30), &[]);
    assert_eq!(code(&unplaced, &towards("b")), "no_action_left");
    let mut held = begun(vec![someone("a", 15), enemy("b", 5)]);
    play(&mut held, &on(ActionKind::AddCondition, "a", |a| a.condition = Some("restrained".to_owned())), &[]);
    assert_eq!(code(&held, &towards("b")), "no_action_left");
}

#[test]
fn a_move_leads_away_and_ends_where_one_can_stay() {
    let walls = (0..9).flat_map(|x| (1..5).map(move |y| Square { x, y })).collect();
    let corridor = Terrain { width: 9, height: 5, obstacles: walls, ..Terrain::default() };
    let mut encounter = begun_on(
        corridor.clone(),
        vec![placed(someone("a", 15), 2, 0), placed(enemy("b", 5), 1, 0), placed(someone("friend", 3), 5, 0)],
    );
    // 20 feet to the other side of the friend, who is in the way, and 10 more.
    play(&mut encounter, &away_from("b"), &[]);
    assert_eq!((who(&encounter, "a").position, who(&encounter, "a").movement_left()), (Some(at(7, 0)), 0));
    let mut cornered = begun_on(corridor, vec![placed(someone("a", 15), 8, 0), placed(enemy("b", 5), 7, 0)]);
    assert_eq!(code(&cornered, &away_from("b")), "validation_failed");
    // A frightened creature cannot come closer, but it can flee.
    play(&mut cornered, &action(ActionKind::Move, |a| (a.position, a.overridden) = (Some(at(3, 0)), true)), &[]);
    let afraid = |a: &mut Action| (a.condition, a.source) = (Some("frightened".to_owned()), Some("b".to_owned()));
    play(&mut cornered, &on(ActionKind::AddCondition, "a", afraid), &[]);
    assert_eq!(code(&cornered, &towards("b")), "validation_failed");
    play(&mut cornered, &away_from("b"), &[]);
    assert_eq!(who(&cornered, "a").position, Some(at(0, 0)));
}

#[test]
fn leaving_a_reach_provokes() {
    let spear =
        Creature { weapons: vec![Weapon { name: "Glaive".to_owned(), ..Weapon::default() }], ..Creature::default() };
    let field = || {
        let guard = NewParticipant { is_enemy: true, ..placed(character("guard", 4, spear.clone()), 0, 1) };
        begun(vec![
            placed(someone("a", 15), 1, 0),
            placed(enemy("b", 5), 0, 0),
            guard,
            placed(someone("ally", 3), 2, 0),
        ])
    };
    let mut encounter = field();
    let moved = play(&mut encounter, &to(2, 1), &[]);
    assert_eq!(provoked(&moved), ["b"], "the glaive still reaches");
    let moved = play(&mut encounter, &to(4, 1), &[]);
    assert_eq!(provoked(&moved), ["guard"]);
    let opportunity =
        on(ActionKind::Attack, "a", |a| (a.participant_id, a.cost) = (Some("b".to_owned()), Some(Cost::Reaction)));
    let mut fatal = encounter.clone();
    play(&mut encounter, &opportunity, &[2]);
    assert_eq!(encounter.provoked().len(), 1);
    assert_eq!(code(&encounter, &opportunity), "no_action_left");

    play(&mut fatal, &on(ActionKind::Damage, "a", |a| a.amount = Some(17)), &[]);
    play(&mut fatal, &opportunity, &[18, 4]);
    assert_eq!(who(&fatal, "a").position, Some(at(1, 0)), "who falls while leaving has not left");

    let mut careful = field();
    play(&mut careful, &Action::new(ActionKind::Disengage), &[]);
    assert!(provoked(&play(&mut careful, &to(4, 1), &[])).is_empty());
    let mut stunned = field();
    play(&mut stunned, &on(ActionKind::AddCondition, "b", |a| a.condition = Some("stunned".to_owned())), &[]);
    assert_eq!(provoked(&play(&mut stunned, &to(4, 1), &[])), ["guard"]);
}

#[test]
fn hazards_catch_who_enters_and_who_begins_there() {
    let hazard = |x, dc, damage: Option<&str>| Hazard {
        position: Square { x, y: 0 },
        kind: "fire".to_owned(),
        damage: damage.map(str::to_owned),
        damage_type: Some("fire".to_owned()),
        dc,
        ..Hazard::default()
    };
    let burning = Terrain {
        hazards: vec![hazard(2, Some(12), Some("2d6")), hazard(3, None, Some("3"))],
        obstacles: (0..9).map(|x| Square { x, y: 1 }).collect(),
        ..Terrain::default()
    };
    let start = |x| begun_on(burning.clone(), vec![placed(someone("a", 15), x, 0), placed(enemy("b", 5), 20, 20)]);
    let mut encounter = start(1);
    play(&mut encounter, &to(4, 0), &[12, 3, 4]);
    assert_eq!(who(&encounter, "a").creature.hp, 20 - 3 - 3);
    assert_eq!(who(&encounter, "a").movement_left(), 15);
    let mut standing = start(3);
    assert_eq!(who(&standing, "a").creature.hp, 20, "the fight only begins");
    advance(&mut standing);
    advance(&mut standing);
    assert_eq!(who(&standing, "a").creature.hp, 17);
    let mut weak = start(1);
    play(&mut weak, &on(ActionKind::Damage, "a", |a| a.amount = Some(15)), &[]);
    play(&mut weak, &to(4, 0), &[2, 3, 4]);
    assert_eq!(who(&weak, "a").position, Some(at(2, 0)), "who falls goes no farther");
    let webs = Terrain {
        hazards: vec![Hazard { condition: Some("restrained".to_owned()), ..hazard(2, Some(12), None) }],
        ..Terrain::default()
    };
    let mut stuck = begun_on(webs, vec![placed(someone("a", 15), 2, 1)]);
    play(&mut stuck, &to(2, 0), &[3]);
    assert!(has(&stuck, "a", "restrained"));
}

#[test]
fn without_positions_only_feet_count() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    let feet = |n| action(ActionKind::Move, |a| a.amount = Some(n));
    play(&mut encounter, &feet(25), &[]);
    assert_eq!(code(&encounter, &feet(10)), "no_action_left");
    assert_eq!(code(&encounter, &feet(0)), "validation_failed");
    assert_eq!(code(&encounter, &Action::new(ActionKind::Move)), "validation_failed");
    play(&mut encounter, &to(3, 3), &[]);
    assert_eq!(who(&encounter, "a").position, Some(at(3, 3)), "who stood nowhere is put there");
}

#[test]
fn a_game_master_puts_people_where_they_belong() {
    let mut encounter = begun(vec![placed(someone("a", 15), 0, 0), placed(enemy("b", 5), 1, 0)]);
    let put = action(ActionKind::Move, |a| (a.position, a.overridden) = (Some(at(40, 40)), true));
    let moved = play(&mut encounter, &put, &[]);
    assert!(provoked(&moved).is_empty());
    assert_eq!(who(&encounter, "a").movement_left(), 30);
    assert_eq!(
        code(&encounter, &action(ActionKind::Move, |a| (a.position, a.overridden) = (Some(at(50, 0)), true))),
        "validation_failed"
    );
}

#[test]
fn through_the_air_the_ground_is_free() {
    let wall = Terrain { obstacles: (0..50).map(|y| Square { x: 1, y }).collect(), ..Terrain::default() };
    let mut encounter = begun_on(wall, vec![placed(someone("a", 15), 0, 1)]);
    play(&mut encounter, &action(ActionKind::Move, |a| a.position = Some(Position { x: 3, y: 1, z: 4 })), &[]);
    assert_eq!(who(&encounter, "a").movement_left(), 10);
}

#[test]
fn nobody_lands_or_is_put_where_somebody_is() {
    let wall = Terrain { obstacles: squares(&[(2, 0)]), ..Terrain::default() };
    let flier = NewParticipant { position: Some(Position { x: 0, y: 0, z: 2 }), ..someone("a", 15) };
    let mut encounter = begun_on(wall, vec![flier, placed(enemy("b", 5), 1, 0), someone("c", 1)]);
    let below = action(ActionKind::Move, |a| a.position = Some(Position { x: 0, y: 0, z: -1 }));
    for refused in [to(1, 0), to(2, 0), below] {
        assert_eq!(code(&encounter, &refused), "validation_failed");
        assert_eq!(code(&encounter, &Action { overridden: true, ..refused }), "validation_failed");
    }
    play(&mut encounter, &to(0, 1), &[]);
    play(&mut encounter, &on(ActionKind::Damage, "c", |a| a.amount = Some(20)), &[]);
    advance(&mut encounter);
    advance(&mut encounter);
    assert_eq!(code(&encounter, &to(9, 9)), "no_action_left", "who is dying stays");
    let both = setup(vec![placed(someone("a", 1), 1, 1), placed(someone("b", 1), 1, 1)]);
    let argument = "participants/1/position".to_owned();
    assert_eq!(
        refused(&both),
        rules::encounter::Refusal::Argument { argument, message: "is where a stands".to_owned() }
    );
    let late = encounter.join(&placed(enemy("late", 1), 99, 0), &mut Endless(1)).expect_err("refused");
    assert!(late.to_string().starts_with("position: "), "{late}");
}
