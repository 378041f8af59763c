//! Measures a resolver: an attack, plain and with everything on. Goal: at most 5 µs.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rand::{SeedableRng, rngs::SmallRng};
use rules::{
    dice::Random,
    resolve::{AttackArgs, Circumstances, Context, SkillCheckArgs, resolve_attack, resolve_skill_check},
    sheet::Creature,
};
use serde_json::{Value, json};

fn creature(sheet: Value) -> Creature {
    serde_json::from_value(sheet).unwrap_or_default()
}

fn resolvers(c: &mut Criterion) {
    let rogue = creature(json!({
        "id": "rogue", "name": "Shade", "profession": "Rogue", "level": 9, "max_hp": 50, "hp": 50,
        "abilities": { "strength": 8, "dexterity": 18, "constitution": 12, "intelligence": 10, "wisdom": 10, "charisma": 14 },
        "skill_proficiencies": ["stealth"], "weapon_proficiencies": ["simple weapons", "rapier"],
        "features": [{ "name": "Sneak Attack" }, { "name": "Expertise", "chosen_option": "stealth" }],
        "weapons": [{ "name": "Rapier" }], "effects": [{ "name": "Bless" }],
    }));
    let goblin = creature(json!({
        "id": "goblin", "name": "Goblin", "is_npc": true, "armor_class": 13, "hp": 7, "max_hp": 7,
        "conditions": [{ "name": "restrained" }], "resistances": ["piercing"],
    }));
    let plain = AttackArgs { weapon: Some("Rapier".to_owned()), ..AttackArgs::default() };
    let sneaky = AttackArgs { extra_damage_sources: vec!["Sneak Attack".to_owned()], ..plain.clone() };
    let alone = Circumstances::default();
    let together = Circumstances { context: Context { ally_adjacent: true, ..Context::default() }, ..alone.clone() };
    let mut dice = Random(SmallRng::seed_from_u64(1));
    c.bench_function("resolve_attack", |b| {
        b.iter(|| resolve_attack(black_box(&rogue), black_box(&goblin), &plain, &alone, &mut dice));
    });
    c.bench_function("resolve_attack, sneak attack and bless", |b| {
        b.iter(|| resolve_attack(black_box(&rogue), black_box(&goblin), &sneaky, &together, &mut dice));
    });
    let stealth = SkillCheckArgs { skill: "stealth".to_owned(), dc: 15, ability: None };
    c.bench_function("resolve_skill_check", |b| {
        b.iter(|| resolve_skill_check(black_box(&rogue), &stealth, &alone, &mut dice));
    });
}

criterion_group!(benches, resolvers);
criterion_main!(benches);
