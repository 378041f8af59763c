//! The result of a roll: the total and every die.

use std::sync::Arc;

use serde::{
    Serialize, Serializer,
    ser::{SerializeSeq, SerializeStruct},
};

use super::stack::Slot;
use crate::dice::sides::DieKind;

/// The result of a formula. It can be reused with [`Formula::roll_into`](crate::dice::Formula::roll_into).
///
/// As JSON: `{"total": 15, "dice": [{"faces": 20, "value": 10, "kept": true}], "flavors": [{"text": "fire", "total": 10}]}`.
/// `flavors` is left out if there are none. Whole numbers have no fraction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Roll {
    /// The total: finite, with fractions, never negative zero.
    #[serde(serialize_with = "number")]
    pub total: f64,
    /// Every die, in the order of rolling.
    pub dice: Vec<DieRoll>,
    /// Every term with a flavour, in the order of rolling.
    #[serde(rename = "flavors", skip_serializing_if = "Vec::is_empty")]
    pub flavours: Vec<Flavour>,
    #[serde(skip)]
    pub(in crate::dice) stack: Vec<Slot>,
}

/// One rolled die.
///
/// As JSON: always `faces`, `value`, `kept`; `exploded`, `rerolled`, `success`, `failure` if true; `counted` if it differs
/// from the value; `kind` (`"fate"`, `"coin"`) if it is not a standard die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DieRoll {
    /// The number of faces: 3 for a Fate die, 2 for a coin.
    pub faces: u32,
    /// The value shown: 1 to `faces`; -1 to 1 for a Fate die, 0 or 1 for a coin.
    pub value: i32,
    /// What it adds to its term if it is kept: the value, unless a modifier (`min`, `cs`, `df`…) changes that.
    pub counted: i32,
    /// The value that modifiers see, limited by `min` and `max`.
    pub(in crate::dice) shown: i32,
    /// Whether it counts. False if it was dropped or rerolled, or is in a dropped member of a pool.
    pub kept: bool,
    /// Whether another die was rolled because of it.
    pub exploded: bool,
    /// Whether another die was rolled instead of it.
    pub rerolled: bool,
    /// The result of the last counting modifier.
    pub verdict: Verdict,
    /// What kind of die it is.
    pub kind: DieKind,
}

/// The result of counting a die.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing counted it.
    #[default]
    None,
    /// It is a success.
    Success,
    /// It is not a success, but not yet a failure either.
    Missed,
    /// It is not a failure, but not yet a success either.
    Passed,
    /// It is a failure.
    Failure,
}

/// A term with a flavour: `2d6[fire]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flavour {
    /// The text, trimmed.
    pub text: Arc<str>,
    /// The term's total, before a sign or an operator in front of it.
    #[serde(serialize_with = "number")]
    pub total: f64,
    /// The index of its first die in [`Roll::dice`].
    #[serde(skip)]
    pub first_die: usize,
    /// The number of its dice there.
    #[serde(skip)]
    pub dice: usize,
}

impl DieRoll {
    /// A die that was just rolled.
    pub(super) const fn fresh(faces: u32, value: i32, kind: DieKind) -> Self {
        Self {
            faces,
            value,
            counted: value,
            shown: value,
            kept: true,
            exploded: false,
            rerolled: false,
            verdict: Verdict::None,
            kind,
        }
    }
}

impl Serialize for DieRoll {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut die = serializer.serialize_struct("DieRoll", 9)?;
        die.serialize_field("faces", &self.faces)?;
        die.serialize_field("value", &self.value)?;
        if self.counted != self.value {
            die.serialize_field("counted", &self.counted)?;
        }
        die.serialize_field("kept", &self.kept)?;
        let flags = [
            ("exploded", self.exploded),
            ("rerolled", self.rerolled),
            ("success", self.verdict == Verdict::Success),
            ("failure", self.verdict == Verdict::Failure),
        ];
        for (name, _) in flags.into_iter().filter(|(_, is)| *is) {
            die.serialize_field(name, &true)?;
        }
        match self.kind {
            DieKind::Standard => {}
            DieKind::Fate => die.serialize_field("kind", "fate")?,
            DieKind::Coin => die.serialize_field("kind", "coin")?,
        }
        die.end()
    }
}

/// The largest number up to which a double represents every whole number exactly: 2^53.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Writes a whole number without a fraction: 15, not 15.0.
pub(in crate::dice) fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() <= EXACT_MAX {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// As [`number`], for an optional number.
pub(in crate::dice) fn optional_number<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => number(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// Writes `[[total, probability], …]`.
pub(in crate::dice) fn pairs<S: Serializer>(list: &[(f64, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    struct Number(f64);
    impl Serialize for Number {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            number(&self.0, serializer)
        }
    }
    let mut sequence = serializer.serialize_seq(Some(list.len()))?;
    for (total, probability) in list {
        sequence.serialize_element(&(Number(*total), probability))?;
    }
    sequence.end()
}
