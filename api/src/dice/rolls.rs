//! Formulas rolled for a client, a tool or a verification: one shape of result for all of them.
//!
//! A formula that cannot be read or rolled is a result with `success: false`, never an error of the request; given dice
//! that do not fit are, because whoever gave them has to give others.

use rules::dice::{DieRoll, Flavour, Formula, FormulaError, FormulaErrorKind, Meaning, Names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    seeds::Taking,
    service::{Draw, FairRoll, Wish, given_error},
};
use crate::{
    clock,
    error::{Error, Result},
};

/// Rolls of one request.
pub const ROLLS_MAX: usize = 20;
/// Characters of a flavor.
pub const FLAVOR_CHARS_MAX: usize = 200;
/// Dice after which other requests get their turn before the next formula.
const DICE_AT_A_STRETCH: usize = 500;

/// A formula to roll.
#[derive(Clone, Debug, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollInput {
    /// A dice formula in Foundry's language, such as `1d20 + 5`, `2d20kh`, `4d6kh3` or `8d6[fire]`.
    pub formula: String,
    /// What the roll is for.
    #[serde(default)]
    #[schema(max_length = 200)]
    #[schemars(length(max = 200))]
    pub flavor: Option<String>,
}

/// What came of a request's rolls.
#[derive(Debug, Serialize, ToSchema)]
pub struct RollReport {
    pub count: usize,
    /// `server` (the fair stream), `frontend`, `manual` (given dice) or `seeded`.
    pub source: &'static str,
    /// In the order of `rolls`.
    pub results: Vec<Rolled>,
    /// The seed of the fair stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_id: Option<Uuid>,
    /// The counter of the first roll; each further roll has the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<i64>,
}

/// What came of one formula.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Rolled {
    /// As it was given.
    pub formula: String,
    pub flavor: Option<String>,
    /// Whether it could be rolled.
    pub success: bool,
    /// Null without success.
    #[schema(value_type = Option<f64>)]
    pub total: Option<Number>,
    /// Every die, in the order they fell.
    #[schema(value_type = Vec<Die>)]
    pub dice: Vec<DieRoll>,
    /// Every term with a flavour `[…]` and its total.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<TermFlavor>)]
    pub flavors: Vec<Flavour>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RollError>,
    /// The seed it was rolled with, if its dice are those of the fair stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_id: Option<Uuid>,
    /// Which roll of that seed it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<i64>,
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<OffsetDateTime>,
}

/// Why a formula could not be rolled.
#[derive(Debug, Serialize, ToSchema)]
pub struct RollError {
    /// `invalid_formula`, or `frontend_failed` from a frontend that could not roll it.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Characters before the place; 0 is the beginning.
    pub position: usize,
    /// What would have been right there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl From<FormulaError> for RollError {
    fn from(error: FormulaError) -> Self {
        Self {
            code: "invalid_formula",
            message: error.message.into_owned(),
            position: error.position,
            expected: Some(error.expected.into_owned()).filter(|e| !e.is_empty()),
            hint: error.hint.map(Into::into),
        }
    }
}

/// One die as it fell.
#[derive(Debug, Serialize, ToSchema)]
pub struct Die {
    pub faces: u32,
    /// What it shows: 1 to `faces`; -1 to 1 for a Fate die, 0 or 1 for a coin.
    pub value: i32,
    /// What it adds, when that is not its value.
    pub counted: Option<i32>,
    /// Whether it is neither dropped nor rerolled.
    pub kept: bool,
    pub exploded: Option<bool>,
    pub rerolled: Option<bool>,
    pub success: Option<bool>,
    pub failure: Option<bool>,
    /// `fate` or `coin`, if it is no standard die.
    pub kind: Option<String>,
}

/// A term with a flavour, such as `2d6[fire]`.
#[derive(Debug, Serialize, ToSchema)]
pub struct TermFlavor {
    pub text: String,
    pub total: f64,
}

/// Whether there are 1 to [`ROLLS_MAX`] rolls with flavors of a sound length.
///
/// # Errors
/// `validation_failed` with pointers below `/rolls`.
pub fn check(rolls: &[RollInput]) -> Result<()> {
    if rolls.is_empty() || rolls.len() > ROLLS_MAX {
        return Err(Error::invalid("/rolls", "invalid_value", format!("Give 1 to {ROLLS_MAX} rolls.")));
    }
    let too_long = |r: &RollInput| {
        r.flavor.as_deref().is_some_and(|f| f.len() > FLAVOR_CHARS_MAX && f.chars().count() > FLAVOR_CHARS_MAX)
    };
    if let Some(i) = rolls.iter().position(too_long) {
        let message = format!("must have at most {FLAVOR_CHARS_MAX} characters");
        return Err(Error::invalid(format!("/rolls/{i}/flavor"), "invalid_value", message));
    }
    match rolls.iter().position(|r| r.flavor.as_deref().is_some_and(|f| f.contains('\0'))) {
        None => Ok(()),
        Some(i) => {
            Err(Error::invalid(format!("/rolls/{i}/flavor"), "invalid_text", "Text may not hold NUL characters."))
        }
    }
}

/// How many rolls there are, for [`Draw::of_rolls`].
#[must_use]
pub fn number(rolls: &[RollInput]) -> u32 {
    u32::try_from(rolls.len()).unwrap_or(u32::MAX)
}

/// Rolls checked formulas with the dice that are wished for. If none of them can be rolled, whatever the dice show, the fair stream
/// is left alone.
///
/// # Errors
/// `invalid_dice` when given dice run out, do not fit or are left over; those of the database.
pub async fn roll(
    taking: Taking<'_>,
    campaign: Option<Uuid>,
    wish: &Wish<'_>,
    rolls: &[RollInput],
    names: &Names<'_>,
) -> Result<RollReport> {
    if wish.is_fair()
        && let Some(report) = impossible(rolls, names)
    {
        return Ok(report);
    }
    let mut draw = Draw::of_rolls(taking, campaign, wish, number(rolls)).await?;
    all(&mut draw, rolls, names).await
}

/// What is said of formulas of which none can be rolled.
fn impossible(rolls: &[RollInput], names: &Names<'_>) -> Option<RollReport> {
    let timestamp = Some(clock::now());
    let failed = |roll: &RollInput| {
        let error = match Formula::parse_with(&roll.formula, names) {
            Ok(formula) => formula.certain_error(&numbers(names))?,
            Err(error) => error,
        };
        Some(Rolled { timestamp, error: Some(error.into()), ..Rolled::of_input(roll) })
    };
    let results: Vec<_> = rolls.iter().map(failed).collect::<Option<_>>()?;
    Some(RollReport { count: results.len(), source: "server", results, seed_id: None, counter: None })
}

/// Rolls checked formulas with dice taken for so many.
///
/// # Errors
/// `invalid_dice` when given dice run out, do not fit or are left over.
async fn all(draw: &mut Draw<'_>, rolls: &[RollInput], names: &Names<'_>) -> Result<RollReport> {
    let report = some(draw, rolls, names).await?;
    draw.all_used()?;
    Ok(report)
}

/// The same with dice of which some may be left for later.
///
/// # Errors
/// `invalid_dice` when given dice run out or do not fit.
pub async fn some(draw: &mut Draw<'_>, rolls: &[RollInput], names: &Names<'_>) -> Result<RollReport> {
    let first = draw.fair;
    let timestamp = Some(clock::now());
    let mut results: Vec<Rolled> = Vec::with_capacity(rolls.len());
    for roll in rolls {
        if let Some(before) = results.last() {
            draw.next_roll()?;
            if before.dice.len() > DICE_AT_A_STRETCH {
                tokio::task::yield_now().await;
            }
        }
        let fair = draw.fair;
        results.push(Rolled { timestamp, ..one(draw, roll, names)?.of(fair) });
    }
    Ok(RollReport {
        count: results.len(),
        source: draw.origin,
        results,
        seed_id: first.map(|f| f.seed_id),
        counter: first.map(|f| f.counter),
    })
}

/// Rolls one formula with any dice.
///
/// # Errors
/// `invalid_dice` when given dice run out or do not fit.
pub fn one(dice: &mut impl rules::dice::Dice, roll: &RollInput, names: &Names<'_>) -> Result<Rolled> {
    let mut rolled = Rolled::of_input(roll);
    match Formula::parse_with(&roll.formula, names).and_then(|formula| formula.roll(dice, &numbers(names))) {
        Ok(result) => {
            rolled.success = true;
            rolled.total = whole(result.total);
            rolled.dice = result.dice;
            rolled.flavors = result.flavours;
        }
        Err(FormulaError { kind: FormulaErrorKind::Dice(out), .. }) => return Err(given_error(&out)),
        Err(error) => rolled.error = Some(error.into()),
    }
    Ok(rolled)
}

/// The names that stand for numbers.
fn numbers<'a>(names: &'a Names<'_>) -> impl Fn(&str) -> Option<f64> + 'a {
    |name| names(name).and_then(Meaning::number)
}

impl Rolled {
    fn of_input(roll: &RollInput) -> Self {
        Self { formula: roll.formula.clone(), flavor: roll.flavor.clone(), ..Self::default() }
    }

    /// The same with the place of its dice in the fair stream.
    #[must_use]
    pub fn of(self, fair: Option<FairRoll>) -> Self {
        Self { seed_id: fair.map(|f| f.seed_id), counter: fair.map(|f| f.counter), ..self }
    }
}

/// A total as JSON has it: whole numbers without a fraction, as far as every one of them is a double of its own.
pub(super) fn whole(total: f64) -> Option<Number> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if total.fract() == 0.0 && total.abs() <= EXACT_MAX {
        return Some(Number::from(total as i64));
    }
    Number::from_f64(total)
}
