//! Any creature and any arguments as JSON: every resolver answers without a panic, and its changes can be applied. The
//! input is a first byte that seeds the dice, then three JSON documents, one per line: the actor, the target and the
//! arguments.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rules::{
    dice::FairSeed,
    resolve::{
        AttackArgs, Circumstances, ContestArgs, DamageArgs, HealingArgs, RestArgs, SavingThrowArgs, SkillCheckArgs, apply,
        apply_damage, apply_healing, resolve_attack, resolve_concentration, resolve_contest, resolve_death_save, resolve_fall,
        resolve_saving_throw, resolve_skill_check, roll_initiative, take_rest,
    },
    sheet::Creature,
};
use serde::de::DeserializeOwned;

fn read<T: DeserializeOwned>(text: Option<&str>) -> Option<T> {
    serde_json::from_str(text?).ok()
}

fuzz_target!(|data: (u8, i32, &str)| {
    let (seed, number, text) = data;
    let mut lines = text.lines();
    let actor: Option<Creature> = read(lines.next());
    let target: Option<Creature> = read(lines.next());
    let (Some(mut actor), Some(mut target)) = (actor, target) else { return };
    let arguments = lines.next();
    let around: Circumstances = read(arguments).unwrap_or_default();
    let dice = &mut FairSeed::new(&[seed; 32], "fuzz").roll(0);
    let mut outcomes = Vec::new();
    if let Some(args) = read::<AttackArgs>(arguments) {
        outcomes.push(resolve_attack(&actor, &target, &args, &around, dice));
    }
    if let Some(args) = read::<SkillCheckArgs>(arguments) {
        outcomes.push(resolve_skill_check(&actor, &args, &around, dice));
    }
    if let Some(args) = read::<SavingThrowArgs>(arguments) {
        outcomes.push(resolve_saving_throw(&actor, &args, &around, dice));
    }
    if let Some(args) = read::<ContestArgs>(arguments) {
        outcomes.push(resolve_contest(&actor, &target, &args, &around, dice));
    }
    if let Some(args) = read::<DamageArgs>(arguments) {
        outcomes.push(apply_damage(&target, &args));
    }
    if let Some(args) = read::<HealingArgs>(arguments) {
        outcomes.push(apply_healing(&target, &args, dice));
    }
    if let Some(args) = read::<RestArgs>(arguments) {
        outcomes.push(take_rest(&actor, &args, dice));
    }
    outcomes.push(roll_initiative(&actor, &around, dice));
    outcomes.push(resolve_concentration(&actor, number, &around, dice));
    outcomes.push(resolve_death_save(&actor, &around, dice));
    outcomes.push(resolve_fall(&actor, number, &around, dice));
    for outcome in outcomes.into_iter().flatten() {
        apply(&mut actor, &outcome.effects);
        apply(&mut target, &outcome.effects);
    }
});
