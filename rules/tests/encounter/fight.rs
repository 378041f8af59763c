//! Attacks, spells and wrestling in a fight: the effect of positions and other creatures, and what follows.

use rules::{
    encounter::{Action, ActionKind, Cost, Duration, Encounter, Lighting, NewParticipant, Setup, Terrain},
    resolve::{Cover, DamagePart, OtherWeapon},
    sheet::{Concentration, Condition, Creature, Feature, KnownSpell, NpcAttack, Range, SpellSlot, Weapon},
    srd::{Ability, Advantage},
};

use crate::support::*;

fn attack(target: &str) -> Action {
    on(ActionKind::Attack, target, |_| {})
}

fn reasons(encounter: &Encounter, action: &Action) -> String {
    let decision = encounter.act(action, &mut Endless(7)).expect("a decision");
    decision.outcomes[0].reasons.join("; ")
}

#[test]
fn a_blow_is_resolved_counted_and_felt() {
    let tough = NewParticipant { resistances: vec!["slashing".to_owned()], ..enemy("b", 5) };
    let mut encounter = begun(vec![someone("a", 15), tough]);
    play(&mut encounter, &attack("b"), &[15, 5]);
    assert_eq!(who(&encounter, "b").creature.hp, 17, "7 slashing, halved");
    let (a, b) = (who(&encounter, "a").statistics, who(&encounter, "b").statistics);
    assert_eq!((a.attacks_made, a.attacks_hit, a.damage_dealt, b.damage_taken), (1, 1, 3, 3));
    advance(&mut encounter);
    play(&mut encounter, &attack("a"), &[2]);
    let b = who(&encounter, "b").statistics;
    assert_eq!((b.attacks_made, b.attacks_hit), (1, 0));
}

#[test]
fn what_is_over_counts_as_dealt_and_hit_points_stop_at_0() {
    let mut encounter = begun(vec![someone("a", 15), NewParticipant { hp: Some(8), ..enemy("b", 5) }]);
    let blow = on(ActionKind::Damage, "b", |a| {
        (a.amount, a.damage_type, a.participant_id) = (Some(15), Some("fire".to_owned()), Some("a".to_owned()));
    });
    play(&mut encounter, &blow, &[]);
    let hp = encounter.diff()[1].changes.hp;
    assert_eq!((hp.initial, hp.now, hp.delta), (8, 0, -8));
    assert_eq!(who(&encounter, "a").statistics.damage_dealt, 15);
    assert!(impossible(&encounter, &on(ActionKind::Heal, "b", |a| a.amount = Some(3))).contains("dead"));
}

#[test]
fn distance_is_that_of_the_grid() {
    let mut encounter = begun(vec![placed(someone("a", 15), 0, 0), placed(enemy("b", 5), 2, 2)]);
    assert!(impossible(&encounter, &attack("b")).contains("10 feet"));
    play(&mut encounter, &action(ActionKind::Move, |a| a.position = Some(at(1, 1))), &[]);
    play(&mut encounter, &attack("b"), &[15, 1]);
    let large = NewParticipant { size: Some("large".to_owned()), ..enemy("ogre", 5) };
    let encounter = begun(vec![placed(someone("a", 15), 5, 3), placed(large, 3, 3)]);
    assert_eq!(
        encounter.distance_ft(who(&encounter, "a"), who(&encounter, "ogre")),
        Some(5),
        "its space is two squares"
    );
}

#[test]
fn an_ally_beside_the_target_lets_a_rogue_sneak() {
    let rogue = Creature {
        profession: "Rogue".to_owned(),
        features: vec![Feature { name: "Sneak Attack".to_owned(), ..Feature::default() }],
        weapons: vec![Weapon { name: "Rapier".to_owned(), ..Weapon::default() }],
        ..Creature::default()
    };
    let at_side = |x| {
        let rogue = placed(character("rogue", 15, rogue.clone()), 0, 0);
        begun(vec![rogue, placed(someone("ally", 9), x, 0), placed(enemy("b", 5), 1, 0)])
    };
    let sneaky = on(ActionKind::Attack, "b", |a| {
        (a.attack.extra_damage_sources, a.overridden) = (vec!["Sneak Attack".to_owned()], true);
    });
    assert!(reasons(&at_side(9), &sneaky).contains("refused: Sneak Attack"));
    let mut encounter = at_side(2);
    play(&mut encounter, &sneaky, &[18, 4, 5]);
    assert!(reasons(&encounter, &sneaky).contains("refused: Sneak Attack"), "once a turn");
}

#[test]
fn a_foe_beside_the_archer_disturbs() {
    let archer =
        Creature { weapons: vec![Weapon { name: "Longbow".to_owned(), ..Weapon::default() }], ..Creature::default() };
    let encounter = begun(vec![
        placed(character("archer", 15, archer), 0, 0),
        placed(enemy("near", 5), 1, 0),
        placed(enemy("far", 4), 9, 0),
    ]);
    assert!(reasons(&encounter, &attack("far")).contains("hostile creature is within 5 feet"));
}

#[test]
fn light_decides_who_sees() {
    let lit = |lighting, features: &[&str]| {
        let a = NewParticipant { features: features.iter().map(|f| (*f).to_owned()).collect(), ..someone("a", 15) };
        begun_with(&Setup { lighting, ..setup(vec![a, enemy("b", 5)]) })
    };
    let blind = "the attacker does not see the target";
    assert!(!reasons(&lit(Lighting::Bright, &[]), &attack("b")).contains("see"));
    assert!(!reasons(&lit(Lighting::Dim, &[]), &attack("b")).contains("see"));
    assert!(reasons(&lit(Lighting::Darkness, &[]), &attack("b")).contains(blind));
    let seeing = reasons(&lit(Lighting::Darkness, &["Darkvision"]), &attack("b"));
    assert!(seeing.contains("the target does not see the attacker") && !seeing.contains(blind), "{seeing}");
    assert!(reasons(&lit(Lighting::MagicalDarkness, &["Darkvision"]), &attack("b")).contains(blind));
}

#[test]
fn an_obstacle_on_the_line_is_half_cover() {
    let archer =
        Creature { weapons: vec![Weapon { name: "Longbow".to_owned(), ..Weapon::default() }], ..Creature::default() };
    let shoot = |obstacles: &[(i32, i32)]| {
        let terrain = Terrain { obstacles: squares(obstacles), ..Terrain::default() };
        let encounter =
            begun_on(terrain, vec![placed(character("a", 15, archer.clone()), 0, 0), placed(enemy("b", 5), 4, 2)]);
        encounter.act(&attack("b"), &mut Endless(3)).expect("a shot").outcomes[0].dc_or_ac.clone()
    };
    assert_eq!(shoot(&[(9, 9)]), "12");
    assert_eq!(shoot(&[(2, 1)]), "14");
}

#[test]
fn damage_tries_concentration_and_its_end_ends_the_spell() {
    let caster = Creature {
        concentration: Some(Concentration { spell: "Hold Person".to_owned() }),
        hp: 30,
        max_hp: 30,
        ..Creature::default()
    };
    let mut encounter = begun(vec![character("mage", 15, caster), enemy("b", 5)]);
    let held = on(ActionKind::AddCondition, "b", |a| {
        (a.condition, a.participant_id) = (Some("paralyzed".to_owned()), Some("mage".to_owned()));
        a.duration = Some(rules::encounter::Duration::Concentration);
    });
    play(&mut encounter, &held, &[]);
    let hurt = on(ActionKind::Damage, "mage", |a| a.amount = Some(5));
    let kept = play(&mut encounter, &hurt, &[10]);
    assert_eq!(kept.outcomes.len(), 2);
    assert!(has(&encounter, "b", "paralyzed"));
    play(&mut encounter, &hurt, &[9]);
    assert!(who(&encounter, "mage").creature.concentration.is_none());
    assert!(!has(&encounter, "b", "paralyzed"));
}

#[test]
fn who_cannot_act_concentrates_no_more_and_lets_go() {
    let grappler = Creature { concentration: Some(Concentration { spell: "Bless".to_owned() }), ..Creature::default() };
    let mut encounter = begun(vec![character("a", 15, grappler), enemy("b", 5)]);
    play(&mut encounter, &on(ActionKind::Grapple, "b", |_| {}), &[15, 3]);
    assert!(has(&encounter, "b", "grappled"));
    assert_eq!(who(&encounter, "b").speed_now(), 0);
    play(&mut encounter, &on(ActionKind::AddCondition, "a", |a| a.condition = Some("stunned".to_owned())), &[]);
    assert!(who(&encounter, "a").creature.concentration.is_none());
    assert!(!has(&encounter, "b", "grappled"));
    assert!(impossible(&encounter, &on(ActionKind::Shove, "b", |a| a.overridden = true)).contains("incapacitated"));
}

#[test]
fn wrestling() {
    let two = || begun(vec![placed(someone("a", 15), 5, 5), placed(enemy("b", 5), 6, 6)]);
    let mut encounter = two();
    play(&mut encounter, &on(ActionKind::Shove, "b", |_| {}), &[15, 3]);
    assert!(has(&encounter, "b", "prone"));
    let mut encounter = two();
    play(&mut encounter, &on(ActionKind::Shove, "b", |a| a.away = true), &[15, 3]);
    assert_eq!(who(&encounter, "b").position, Some(at(7, 7)));
    let mut encounter = two();
    play(&mut encounter, &on(ActionKind::Grapple, "b", |_| {}), &[15, 3]);
    advance(&mut encounter);
    assert_eq!(code(&encounter, &action(ActionKind::Move, |a| a.position = Some(at(8, 8)))), "no_action_left");
    play(&mut encounter, &action(ActionKind::Escape, |_| {}), &[15, 3]);
    assert!(!has(&encounter, "b", "grappled"));
    for kind in [ActionKind::Grapple, ActionKind::Shove] {
        let mut quick = on(kind, "b", |a| a.cost = Some(Cost::BonusAction));
        assert!(why(&two(), &quick).contains("can only take an attack of the attack action"));
        quick.overridden = true;
        assert!(two().act(&quick, &mut Endless(1)).is_ok_and(|d| !d.events.is_empty()), "a game master may");
    }
    let far = begun(vec![placed(someone("a", 15), 0, 0), placed(enemy("b", 5), 6, 6)]);
    assert!(impossible(&far, &on(ActionKind::Grapple, "b", |_| {})).contains("30 feet"));
}

#[test]
fn a_spell_takes_its_slot_and_the_action() {
    let mage = Creature {
        profession: "Wizard".to_owned(),
        level: 5,
        spells: vec![KnownSpell::Name("Fireball".to_owned()), KnownSpell::Name("Magic Missile".to_owned())],
        spell_slots: [("1", 2), ("3", 1)].map(|(l, n)| (l.to_owned(), SpellSlot { max: n, remaining: n })).into(),
        ..Creature::default()
    };
    let mut encounter = begun(vec![character("mage", 15, mage), enemy("b", 5), enemy("c", 4)]);
    let fireball = action(ActionKind::CastSpell, |a| {
        (a.attack.spell_name, a.target_ids) = (Some("Fireball".to_owned()), vec!["b".to_owned(), "c".to_owned()]);
    });
    play(&mut encounter, &fireball, &[20, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!((who(&encounter, "b").creature.hp, who(&encounter, "c").creature.hp), (16, 12));
    let it = who(&encounter, "mage");
    assert_eq!((it.statistics.attacks_made, it.statistics.attacks_hit, it.statistics.damage_dealt), (2, 1, 12));
    assert_eq!(it.creature.slots_left(3), 0);
    let missiles = on(ActionKind::CastSpell, "b", |a| a.attack.spell_name = Some("Magic Missile".to_owned()));
    assert_eq!(code(&encounter, &missiles), "no_action_left");
    let mut twice = fireball;
    twice.target_ids = vec!["b".to_owned(), "b".to_owned()];
    assert_eq!(code(&encounter, &twice), "validation_failed");
}

/// A mage of level 9 with these spells and three slots of every level up to 5.
fn mage(spells: &[&str]) -> Creature {
    Creature {
        profession: "Wizard".to_owned(),
        level: 9,
        hp: 40,
        max_hp: 40,
        spells: spells.iter().map(|s| KnownSpell::Name((*s).to_owned())).collect(),
        spell_slots: (1..=5).map(|l| (l.to_string(), SpellSlot { max: 3, remaining: 3 })).collect(),
        ..Creature::default()
    }
}

fn cast(spell: &str, targets: &[&str]) -> Action {
    action(ActionKind::CastSpell, |a| {
        a.attack.spell_name = Some(spell.to_owned());
        a.target_ids = targets.iter().map(|t| (*t).to_owned()).collect();
    })
}

fn why(encounter: &Encounter, action: &Action) -> String {
    encounter.act(action, &mut Endless(1)).expect_err("it should be refused").to_string()
}

#[test]
fn a_spell_on_several_does_not_reach_those_too_far_away() {
    let mage = || placed(character("mage", 15, mage(&["Fireball", "Hold Person"])), 0, 0);
    let fight = |x| begun(vec![mage(), placed(enemy("b", 5), 3, 0), placed(enemy("c", 4), x, 0)]);
    // Range 60, with individual targets.
    let hold = cast("Hold Person", &["b", "c"]);
    assert!(fight(12).act(&hold, &mut Endless(1)).is_ok());
    let refused = why(&fight(13), &hold);
    assert!(refused.starts_with("target_ids/1: ") && refused.contains("65 feet away"), "{refused}");
    // Range 150, with an area that extends 20 feet further.
    let fireball = cast("Fireball", &["b", "c"]);
    assert!(fight(34).act(&fireball, &mut Endless(1)).is_ok());
    assert!(why(&fight(35), &fireball).contains("beyond the reach of Fireball (170 feet)"));
    // A single target makes no difference.
    let one = |x| impossible(&fight(x), &on(ActionKind::CastSpell, "c", |a| a.attack = fireball.attack.clone()));
    assert!(one(35).contains("175 feet"));
    // Without positions nobody knows the distance.
    let nowhere = begun(vec![mage(), enemy("b", 5), enemy("c", 4)]);
    assert!(nowhere.act(&hold, &mut Endless(1)).is_ok());
}

#[test]
fn a_spell_that_asks_for_sight_takes_no_unseen_target() {
    let fight = |lighting, unseen: Option<&str>| {
        let mage = placed(character("mage", 15, mage(&["Fireball", "Hold Person", "Healing Word"])), 0, 0);
        let setup = setup(vec![mage, placed(enemy("b", 5), 3, 0), placed(enemy("c", 4), 4, 0)]);
        let mut encounter = begun_with(&Setup { lighting, ..setup });
        if let Some((who, condition)) = unseen.and_then(|u| u.split_once(' ')) {
            play(&mut encounter, &on(ActionKind::AddCondition, who, |a| a.condition = Some(condition.to_owned())), &[]);
        }
        encounter
    };
    let (hold, fireball) = (cast("Hold Person", &["b", "c"]), cast("Fireball", &["b", "c"]));
    assert!(fight(Lighting::Dim, None).act(&hold, &mut Endless(1)).is_ok());
    let unseen = [(Lighting::Darkness, None, 0), (Lighting::Bright, Some("c invisible"), 1)];
    for (lighting, condition, at) in unseen.into_iter().chain([(Lighting::Bright, Some("mage blinded"), 0)]) {
        let encounter = fight(lighting, condition);
        let refused = why(&encounter, &hold);
        assert!(refused.starts_with(&format!("target_ids/{at}: ")) && refused.contains("does not see"), "{refused}");
        assert!(encounter.act(&fireball, &mut Endless(1)).is_ok(), "a burst asks for no sight");
    }
    let alone =
        |target: &str, spell: &str| on(ActionKind::CastSpell, target, |a| a.attack.spell_name = Some(spell.to_owned()));
    let dark = fight(Lighting::MagicalDarkness, None);
    assert!(impossible(&dark, &alone("b", "Hold Person")).contains("does not see"));
    assert!(dark.act(&alone("mage", "Healing Word"), &mut Endless(1)).expect("it").outcomes[0].success, "on oneself");
}

#[test]
fn cover_helps_those_behind_it_against_a_spell_on_several() {
    let terrain = Terrain { obstacles: squares(&[(2, 0)]), ..Terrain::default() };
    let mage = placed(character("mage", 15, mage(&["Fireball", "Shatter"])), 0, 0);
    let mut encounter = begun_on(terrain, vec![mage, placed(enemy("b", 5), 4, 0), placed(enemy("c", 4), 0, 4)]);
    let saves = |encounter: &Encounter, spell: &str| {
        let told = encounter.act(&cast(spell, &["b", "c"]), &mut Endless(5)).expect("a burst").outcomes.remove(0);
        told.participants.iter().map(|p| p.total_modifier.clone()).collect::<Vec<_>>()
    };
    assert_eq!(saves(&encounter, "Fireball"), ["+2", "+0"]);
    assert_eq!(saves(&encounter, "Shatter"), ["+0", "+0"], "a save with Constitution");
    let behind = |cover| {
        let mut all = cast("Fireball", &["b", "c"]);
        all.circumstances.cover = cover;
        all
    };
    let told = encounter.act(&behind(Cover::ThreeQuarters), &mut Endless(5)).expect("a burst").outcomes.remove(0);
    assert!(told.participants.iter().all(|p| p.total_modifier == "+5"), "as asked, for all");
    assert!(why(&encounter, &behind(Cover::Total)).contains("total cover"));
    play(&mut encounter, &cast("Fireball", &["b", "c"]), &[11, 13, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!((who(&encounter, "b").creature.hp, who(&encounter, "c").creature.hp), (16, 16), "DC 12");
}

#[test]
fn who_charmed_the_caster_is_no_target_but_may_stand_in_an_area() {
    let charmed = Creature {
        conditions: vec![Condition {
            name: "charmed".to_owned(),
            source: Some("c".to_owned()),
            ..Condition::default()
        }],
        ..mage(&["Fireball", "Hold Person"])
    };
    let encounter = begun(vec![character("mage", 15, charmed), enemy("b", 5), enemy("c", 4)]);
    assert!(impossible(&encounter, &cast("Hold Person", &["b", "c"])).contains("charmed"));
    assert!(encounter.act(&cast("Fireball", &["b", "c"]), &mut Endless(1)).is_ok_and(|d| !d.events.is_empty()));
}

#[test]
fn one_target_or_several_but_not_both() {
    let encounter = begun(vec![character("mage", 15, mage(&["Fireball"])), enemy("b", 5), enemy("c", 4)]);
    let mut both = cast("Fireball", &["b"]);
    both.target_id = Some("c".to_owned());
    assert!(why(&encounter, &both).contains("send only one of them"));
    for kind in [ActionKind::Damage, ActionKind::Grapple, ActionKind::Help] {
        let several = action(kind, |a| (a.amount, a.target_ids) = (Some(3), vec!["b".to_owned()]));
        assert_eq!(code(&encounter, &several), "validation_failed");
        assert!(why(&encounter, &several).contains("use `target_id`"));
    }
}

/// Puts a text into an action.
type Says = fn(&mut Action, String);

/// Every text of an action has a limit, and the error names its field.
#[test]
fn no_text_of_an_action_is_without_a_limit() {
    let encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    let long = || "x".repeat(201);
    let cases: Vec<(&str, Says)> = vec![
        ("participant_id", |a, s| a.participant_id = Some(s)),
        ("target_id", |a, s| a.target_id = Some(s)),
        ("formula", |a, s| a.formula = Some(s)),
        ("damage_type", |a, s| a.damage_type = Some(s)),
        ("parts/0/type", |a, s| a.parts = vec![DamagePart { amount: 1, damage_type: s }]),
        ("condition", |a, s| a.condition = Some(s)),
        ("effect", |a, s| a.effect = Some(s)),
        ("source", |a, s| a.source = Some(s)),
        ("description", |a, s| a.description = Some(s)),
        ("resource", |a, s| a.resource = Some(s)),
        ("weapon", |a, s| a.attack.weapon = Some(s)),
        ("spell_name", |a, s| a.attack.spell_name = Some(s)),
        ("extra_damage_sources/1", |a, s| a.attack.extra_damage_sources = vec!["Rage".to_owned(), s]),
        ("extra_damage_sources", |a, _| a.attack.extra_damage_sources = vec![String::new(); 21]),
        ("context/other_weapon", |a, s| a.circumstances.context.other_weapon = Some(OtherWeapon::Named(s))),
        ("context/turn_key", |a, s| a.circumstances.context.turn_key = Some(s)),
        ("context/reactions/0", |a, s| a.circumstances.context.reactions = vec![s]),
    ];
    // This applies to every action, even if it ignores the text, because the log would contain it.
    for kind in ActionKind::ALL {
        for (argument, change) in &cases {
            let refused = why(&encounter, &action(*kind, |a| change(a, long())));
            assert!(refused.starts_with(&format!("{argument}: must have at most")), "{}: {refused}", kind.name());
        }
    }
    let several = action(ActionKind::CastSpell, |a| a.target_ids = vec![long()]);
    assert!(why(&encounter, &several).starts_with("target_ids/0: must have at most"));
}

#[test]
fn slots_and_resources_run_out() {
    let mut mage = someone("mage", 15);
    mage.spell_slots.insert("1".to_owned(), SpellSlot { max: 2, remaining: 1 });
    mage.resources.push(rules::sheet::Resource { name: "Ki Points".to_owned(), max: 5, remaining: 3 });
    let mut encounter = begun(vec![mage, enemy("b", 20)]);
    let slot = |level| {
        action(ActionKind::UseSpellSlot, |a| (a.participant_id, a.level) = (Some("mage".to_owned()), Some(level)))
    };
    play(&mut encounter, &slot(1), &[]);
    assert_eq!(code(&encounter, &slot(1)), "no_action_left");
    assert_eq!(code(&encounter, &slot(2)), "no_action_left");
    assert_eq!(code(&encounter, &slot(10)), "validation_failed");
    let ki = |name: &str, amount| {
        let name = name.to_owned();
        action(ActionKind::UseResource, move |a| {
            (a.participant_id, a.resource, a.amount) = (Some("mage".to_owned()), Some(name), Some(amount))
        })
    };
    play(&mut encounter, &ki("ki points", 2), &[]);
    assert_eq!(code(&encounter, &ki("ki points", 2)), "no_action_left");
    assert_eq!(code(&encounter, &ki("Rage", 1)), "validation_failed");
    assert_eq!(code(&encounter, &ki("ki points", -2)), "validation_failed");
}

#[test]
fn temporary_hit_points_do_not_add_up() {
    let mut encounter = begun(vec![someone("a", 15)]);
    let temp =
        |amount, overridden| on(ActionKind::TempHp, "a", |a| (a.amount, a.overridden) = (Some(amount), overridden));
    play(&mut encounter, &temp(8, false), &[]);
    play(&mut encounter, &temp(5, false), &[]);
    assert_eq!(who(&encounter, "a").creature.temp_hp, 8);
    play(&mut encounter, &on(ActionKind::Damage, "a", |a| a.amount = Some(10)), &[]);
    let it = &who(&encounter, "a").creature;
    assert_eq!((it.temp_hp, it.hp), (0, 18));
    play(&mut encounter, &temp(8, false), &[]);
    play(&mut encounter, &temp(0, true), &[]);
    assert_eq!(who(&encounter, "a").creature.temp_hp, 0);
}

#[test]
fn healing_counts_what_was_regained() {
    let mut encounter = begun(vec![someone("a", 15), someone("b", 5)]);
    play(&mut encounter, &on(ActionKind::Damage, "b", |a| a.amount = Some(4)), &[]);
    play(
        &mut encounter,
        &on(ActionKind::Heal, "b", |a| (a.participant_id, a.formula) = (Some("a".to_owned()), Some("2d8".to_owned()))),
        &[8, 8],
    );
    assert_eq!(who(&encounter, "b").creature.hp, 20);
    assert_eq!(who(&encounter, "a").statistics.healing_done, 4);
}

#[test]
fn what_is_no_word_of_the_rules_is_refused_with_those_that_are() {
    let encounter = begun(vec![someone("a", 15)]);
    let wrong = on(ActionKind::Damage, "a", |a| (a.amount, a.damage_type) = (Some(4), Some("fier".to_owned())));
    let message = encounter.act(&wrong, &mut Endless(1)).expect_err("refused").to_string();
    assert!(message.contains("fire") && message.contains("psychic"), "{message}");
    let wrong = on(ActionKind::AddCondition, "a", |a| a.condition = Some("pron".to_owned()));
    let message = encounter.act(&wrong, &mut Endless(1)).expect_err("refused").to_string();
    assert!(message.contains("prone") && message.contains("unconscious"), "{message}");
    for amount in [-1, i32::MAX] {
        assert_eq!(code(&encounter, &on(ActionKind::Damage, "a", |a| a.amount = Some(amount))), "validation_failed");
    }
}

#[test]
fn who_is_held_by_a_spell_saves_again_each_turn() {
    let mage = Creature {
        profession: "Wizard".to_owned(),
        level: 5,
        spells: vec![KnownSpell::Name("Hold Person".to_owned())],
        spell_slots: [("2".to_owned(), SpellSlot { max: 3, remaining: 3 })].into(),
        ..Creature::default()
    };
    let mut encounter = begun(vec![character("mage", 15, mage), enemy("b", 5)]);
    let hold = on(ActionKind::CastSpell, "b", |a| a.attack.spell_name = Some("Hold Person".to_owned()));
    play(&mut encounter, &hold, &[2]);
    assert!(has(&encounter, "b", "paralyzed"));
    advance(&mut encounter);
    let mut saved = encounter.clone();
    play(&mut saved, &Action::new(ActionKind::AdvanceTurn), &[20]);
    assert!(!has(&saved, "b", "paralyzed"));
    play(&mut encounter, &Action::new(ActionKind::AdvanceTurn), &[2]);
    play(&mut encounter, &action(ActionKind::EndConcentration, |a| a.participant_id = Some("mage".to_owned())), &[]);
    assert!(!has(&encounter, "b", "paralyzed"), "and it ends with concentration");
}

#[test]
fn effects_begin_run_and_end() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    let effect = |kind, name: &str, rounds| {
        let name = name.to_owned();
        on(kind, "a", move |a| (a.effect, a.rounds, a.participant_id) = (Some(name), rounds, Some("a".to_owned())))
    };
    play(&mut encounter, &effect(ActionKind::AddEffect, "Bless", Some(1)), &[]);
    play(&mut encounter, &effect(ActionKind::AddEffect, "Rage", None), &[]);
    play(&mut encounter, &attack("b"), &[2, 4]);
    advance(&mut encounter);
    assert!(has_effect(&encounter, "a", "Bless"), "its round ends when the caster's turn comes again");
    advance(&mut encounter);
    assert!(!has_effect(&encounter, "a", "Bless") && has_effect(&encounter, "a", "Rage"));
    let effects = encounter.diff()[0].changes.effects.clone().expect("a difference");
    assert_eq!(effects.now[0].name, "Rage");
    play(&mut encounter, &effect(ActionKind::RemoveEffect, "rage", None), &[]);
    assert!(impossible(&encounter, &effect(ActionKind::RemoveEffect, "rage", None)).contains("no effect"));
    assert_eq!(code(&encounter, &effect(ActionKind::AddEffect, " ", None)), "validation_failed");
}

#[test]
fn who_stands_beside_an_archer_disturbs_the_shot() {
    let shot = |others: Vec<NewParticipant>, change: &dyn Fn(&mut Encounter)| {
        let bow = NpcAttack {
            name: "Bow".to_owned(),
            bonus: 4,
            damage: "1d6".to_owned(),
            damage_type: "piercing".to_owned(),
            range: Some(Range { normal: 80, long: Some(320) }),
            ..NpcAttack::default()
        };
        let archer = NewParticipant { attacks: vec![bow], ..placed(someone("archer", 15), 5, 5) };
        let target = placed(enemy("target", 5), 12, 5);
        let mut encounter = begun([vec![archer, target], others].concat());
        change(&mut encounter);
        let decision = encounter.act(&on(ActionKind::Attack, "target", |_| {}), &mut Endless(1)).expect("a shot");
        decision.outcomes.first().expect("an outcome").advantage
    };
    let nothing = |_: &mut Encounter| {};
    let with = |condition: &'static str| {
        move |it: &mut Encounter| {
            let lame = on(ActionKind::AddCondition, "other", |a| a.condition = Some(condition.to_owned()));
            play(it, &lame, &[]);
        }
    };
    let beside = |who: NewParticipant| vec![placed(who, 5, 6)];
    assert_eq!(shot(vec![], &nothing), Advantage::None);
    assert_eq!(shot(beside(someone("other", 1)), &nothing), Advantage::None, "a friend");
    assert_eq!(shot(vec![placed(enemy("other", 1), 5, 7)], &nothing), Advantage::None, "two squares away");
    assert_eq!(shot(beside(enemy("other", 1)), &nothing), Advantage::Disadvantage);
    assert_eq!(shot(beside(enemy("other", 1)), &with("stunned")), Advantage::None);
    assert_eq!(shot(beside(enemy("other", 1)), &with("blinded")), Advantage::None);
}

#[test]
fn a_condition_that_comes_again_lasts_as_it_was_said_last() {
    let mut encounter = begun(vec![someone("a", 15), enemy("b", 5)]);
    for dc in [10, 15] {
        let held = on(ActionKind::AddCondition, "b", |a| {
            (a.condition, a.duration) = (Some("paralyzed".to_owned()), Some(Duration::SaveEnds));
            (a.save_dc, a.save_ability) = (Some(dc), Some(Ability::Wisdom));
        });
        play(&mut encounter, &held, &[]);
    }
    assert_eq!(who(&encounter, "b").lasting.len(), 1);
    advance(&mut encounter);
    // 12 is enough for the first save but not for the second.
    play(&mut encounter, &Action::new(ActionKind::AdvanceTurn), &[12]);
    assert!(has(&encounter, "b", "paralyzed"));
}

#[test]
fn an_uncanny_dodge_is_a_reaction() {
    let rogue = Creature {
        features: vec![Feature { name: "Uncanny Dodge".to_owned(), ..Feature::default() }],
        ..Creature::default()
    };
    let mut encounter = begun(vec![enemy("a", 15), character("rogue", 5, rogue)]);
    let blow = on(ActionKind::Attack, "rogue", |a| {
        (a.circumstances.context.reactions, a.overridden) = (vec!["Uncanny Dodge".to_owned()], true);
    });
    play(&mut encounter, &blow, &[15, 4]);
    assert_eq!(who(&encounter, "rogue").creature.hp, 7);
    assert!(who(&encounter, "rogue").economy.reaction);
    play(&mut encounter, &blow, &[15, 4]);
    assert_eq!(who(&encounter, "rogue").creature.hp, 1, "one reaction a round");
}

/// SRD 5.1: "the next attack roll made against this target before the end of your next turn has advantage".
#[test]
fn guiding_bolt_lasts_until_the_end_of_the_casters_next_turn() {
    let cleric = character("cleric", 20, Creature { armor_class: 10, ..mage(&["Guiding Bolt"]) });
    let mut bolted = begun(vec![cleric, enemy("goblin", 15), someone("fighter", 10)]);
    let bolt = on(ActionKind::CastSpell, "goblin", |a| a.attack.spell_name = Some("Guiding Bolt".to_owned()));
    play(&mut bolted, &bolt, &[15, 1, 1, 1, 1]);
    assert!(has_effect(&bolted, "goblin", "Guiding Bolt"));
    // Nobody attacks.
    let mut waits = bolted.clone();
    for turn in ["goblin", "fighter", "cleric"] {
        advance(&mut waits);
        assert!(has_effect(&waits, "goblin", "Guiding Bolt"), "in the turn of {turn}");
    }
    advance(&mut waits);
    assert!(!has_effect(&waits, "goblin", "Guiding Bolt"), "the caster's next turn has ended");
    // The fighter does.
    let mut used = bolted.clone();
    advance(&mut used);
    advance(&mut used);
    let shot = used.act(&attack("goblin"), &mut Endless(9)).expect("an attack");
    assert_eq!(shot.outcomes.first().expect("an outcome").advantage, Advantage::Advantage);
    play(&mut used, &attack("goblin"), &[17, 3, 1]);
    assert!(!has_effect(&used, "goblin", "Guiding Bolt"), "it is used up");
    // The caster falls: then the goblin's own turns count.
    let mut orphan = bolted;
    play(&mut orphan, &on(ActionKind::Damage, "cleric", |a| (a.amount, a.participant_id) = (Some(10_000), None)), &[]);
    advance(&mut orphan);
    advance(&mut orphan);
    assert!(!has_effect(&orphan, "goblin", "Guiding Bolt"));
}
