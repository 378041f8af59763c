//! Spell slots by class level (SRD 5.1, class tables).

use serde::Serialize;

/// How a class gets spell slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Slots {
    /// It has none.
    None,
    /// Bard, cleric, druid, sorcerer, wizard.
    Full,
    /// Paladin and ranger, from the second level.
    Half,
    /// Warlock: few, all of the same level, restored by a short rest.
    Pact,
}

const FULL: [[u8; 9]; 20] = [
    [2, 0, 0, 0, 0, 0, 0, 0, 0],
    [3, 0, 0, 0, 0, 0, 0, 0, 0],
    [4, 2, 0, 0, 0, 0, 0, 0, 0],
    [4, 3, 0, 0, 0, 0, 0, 0, 0],
    [4, 3, 2, 0, 0, 0, 0, 0, 0],
    [4, 3, 3, 0, 0, 0, 0, 0, 0],
    [4, 3, 3, 1, 0, 0, 0, 0, 0],
    [4, 3, 3, 2, 0, 0, 0, 0, 0],
    [4, 3, 3, 3, 1, 0, 0, 0, 0],
    [4, 3, 3, 3, 2, 0, 0, 0, 0],
    [4, 3, 3, 3, 2, 1, 0, 0, 0],
    [4, 3, 3, 3, 2, 1, 0, 0, 0],
    [4, 3, 3, 3, 2, 1, 1, 0, 0],
    [4, 3, 3, 3, 2, 1, 1, 0, 0],
    [4, 3, 3, 3, 2, 1, 1, 1, 0],
    [4, 3, 3, 3, 2, 1, 1, 1, 0],
    [4, 3, 3, 3, 2, 1, 1, 1, 1],
    [4, 3, 3, 3, 3, 1, 1, 1, 1],
    [4, 3, 3, 3, 3, 2, 1, 1, 1],
    [4, 3, 3, 3, 3, 2, 2, 1, 1],
];

/// The slots of the spell levels 1 to 9 at a class level. A level above 20 counts as 20; 0 and less give none.
#[must_use]
pub fn spell_slots(kind: Slots, level: i32) -> [u8; 9] {
    let mut slots = [0; 9];
    if level < 1 {
        return slots;
    }
    let level = usize::try_from(level.min(20)).unwrap_or(1);
    match kind {
        Slots::None => slots,
        Slots::Full => FULL[level - 1],
        Slots::Half if level == 1 => slots,
        Slots::Half => FULL[level.div_ceil(2) - 1],
        Slots::Pact => {
            let count = match level {
                1 => 1,
                2..=10 => 2,
                11..=16 => 3,
                _ => 4,
            };
            slots[level.div_ceil(2).min(5) - 1] = count;
            slots
        }
    }
}
