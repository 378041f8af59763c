//! Rolls in words, as far as everybody may read them: the dice of friends, and of foes only what came of them.
//!
//! Written as `17 (12 + 5)`, with advantage as `17 (advantage: the higher of 12 and 4, + 5)`. Everything is made from what [`Watcher`] shows to somebody who plays
//! nobody.
//!
//! [`Watcher`]: rules::encounter::Watcher

use rules::{
    encounter::{SeenDamage, SeenOutcome, SeenParticipant, SeenRow},
    resolve::{DieShown, ParticipantRoll},
    srd::Advantage,
};

const D20: u32 = 20;

/// An attack roll and what came of it: `17 (12 + 5), a hit for 9 slashing damage (1d8: 6; + 3)`.
#[must_use]
pub(super) fn attack(seen: &SeenOutcome) -> String {
    let hit = match (seen.success, seen.damage.as_ref().is_some_and(|damage| damage.is_crit)) {
        (true, true) => "a critical hit",
        (true, false) => "a hit",
        (false, _) => "a miss",
    };
    let hit = format!("{hit}{}", seen.damage.as_ref().map(damage).unwrap_or_default());
    match (d20(seen), with(seen.advantage)) {
        (Some(roll), _) => format!("{roll}, {hit}"),
        (None, Some(with)) => format!("{with}, {hit}"),
        (None, None) => hit,
    }
}

/// Several beams, rays or darts: `17 (10 + 7), 12 (5 + 7): 1 of 2 hit for 21 force damage (…)`.
#[must_use]
pub(super) fn beams(seen: &SeenOutcome, made: u32, hit: u32) -> String {
    let rolled = seen.attacks.iter().filter_map(|one| {
        let (die, sum) = (one.die_result.filter(|die| *die > 0)?, one.total_modifier.as_deref()?);
        Some(format!("{} ({die} {})", one.total?, modifier(sum)))
    });
    let rolled: Vec<String> = rolled.collect();
    let damage = seen.damage.as_ref().map(damage).unwrap_or_default();
    let with = with(seen.advantage).map(|with| format!("{with}, ")).unwrap_or_default();
    match rolled.as_slice() {
        [] => format!("{with}{hit} of {made} hit{damage}"),
        rolled => format!("{with}{}: {hit} of {made} hit{damage}", rolled.join(", ")),
    }
}

/// A target's save against a spell, of which the outcome is about one target: `14 (12 + 2), the save succeeds`.
#[must_use]
pub(super) fn save(seen: &SeenOutcome) -> String {
    // The outcome is the caster's: it succeeds if the save fails.
    let does = if seen.success { "the save fails" } else { "the save succeeds" };
    let damage = seen.damage.as_ref().map(damage).unwrap_or_default();
    match d20(seen) {
        Some(roll) => format!("{roll}, {does}{damage}"),
        None => format!("{does}{damage}"),
    }
}

/// The save of one target of several.
#[must_use]
pub(super) fn save_of(seen: &SeenParticipant) -> String {
    let does = |success: bool| if success { "the save succeeds" } else { "the save fails" };
    match seen {
        SeenParticipant::Whole(roll) if roll.die_result > 0 => format!("{}, {}", one(roll), does(roll.success)),
        SeenParticipant::Whole(ParticipantRoll { success, .. }) | SeenParticipant::Enemy { success, .. } => {
            does(*success).to_owned()
        }
    }
}

/// Any other roll: `death saving throw 14 (14 + 0), success`.
#[must_use]
pub(super) fn check(seen: &SeenOutcome) -> String {
    let what = seen.check_type.to_lowercase();
    match d20(seen) {
        Some(roll) => format!("{what} {roll}, {}", seen.outcome),
        None => format!("{what}, {}", seen.outcome),
    }
}

/// The rolls of a contest: `Brakka 17 (12 + 5) against Thug`.
#[must_use]
pub(super) fn contest(seen: &SeenOutcome) -> String {
    let each = seen.participants.iter().map(|it| match it {
        SeenParticipant::Whole(roll) => format!("{} {}", roll.name, one(roll)),
        SeenParticipant::Enemy { name, .. } => name.clone(),
    });
    each.collect::<Vec<_>>().join(" against ")
}

/// What a spell does to each of its targets before their saves: `28 fire damage (8d6: 6, 4, …)`; none if it does none.
#[must_use]
pub(super) fn of_area(seen: &SeenOutcome) -> Option<String> {
    seen.damage.as_ref().map(|it| damage(it).trim_start_matches(" for ").to_owned()).filter(|text| !text.is_empty())
}

fn one(roll: &ParticipantRoll) -> String {
    format!("{} ({} {})", roll.total, roll.die_result, modifier(&roll.total_modifier))
}

const fn with(advantage: Advantage) -> Option<&'static str> {
    match advantage {
        Advantage::None => None,
        Advantage::Advantage => Some("with advantage"),
        Advantage::Disadvantage => Some("with disadvantage"),
    }
}

/// The d20 of a friend: `17 (12 + 5)`; with advantage or disadvantage both dice.
fn d20(seen: &SeenOutcome) -> Option<String> {
    let roll = seen.roll.as_ref().filter(|roll| roll.die_result > 0)?;
    let other = roll.dice.iter().find(|die| matches!(die, DieShown { faces: D20, kept: false, .. }));
    let modifier = modifier(&roll.total_modifier);
    let (total, die) = (roll.total, roll.die_result);
    let both = other.and_then(|other| match seen.advantage {
        Advantage::None => None,
        Advantage::Advantage => Some(format!("advantage: the higher of {die} and {}", other.value)),
        Advantage::Disadvantage => Some(format!("disadvantage: the lower of {die} and {}", other.value)),
    });
    Some(match both {
        Some(both) => format!("{total} ({both}, {modifier})"),
        None => format!("{total} ({die} {modifier})"),
    })
}

/// A sum with its sign, apart from it: `+ 5`.
fn modifier(sum: &str) -> String {
    match sum.strip_prefix('-').or_else(|| sum.strip_prefix('−')) {
        Some(number) => format!("− {}", number.trim()),
        None => format!("+ {}", sum.trim_start_matches('+').trim()),
    }
}

/// ` for 9 slashing damage (1d8: 6; + 3)`, of a foe without the dice; empty if there is none.
fn damage(seen: &SeenDamage) -> String {
    if seen.total_damage <= 0 {
        return String::new();
    }
    let (mut types, mut dice, mut flat): (Vec<&str>, Vec<String>, i32) = (Vec::new(), Vec::new(), 0);
    for row in &seen.breakdown {
        let kind = match row {
            SeenRow::Whole(row) => {
                if !row.rolls.is_empty() {
                    let rolls: Vec<String> = row.rolls.iter().map(ToString::to_string).collect();
                    dice.push(format!("{}: {}", row.dice, rolls.join(", ")));
                }
                flat = flat.saturating_add(row.flat_bonus);
                row.damage_type.as_deref()
            }
            SeenRow::Type { damage_type } => damage_type.as_deref(),
        };
        types.extend(kind.filter(|kind| !types.contains(kind)));
    }
    if flat != 0 && !dice.is_empty() {
        dice.push(modifier(&flat.to_string()));
    }
    let kinds = if types.is_empty() { String::new() } else { format!("{} ", types.join(" and ")) };
    let dice = if dice.is_empty() { String::new() } else { format!(" ({})", dice.join("; ")) };
    format!(" for {} {kinds}damage{dice}", seen.total_damage)
}
