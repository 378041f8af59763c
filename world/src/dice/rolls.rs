//! Rolls formulas for clients, tools and verifications, with one form of result for all of them.
//!
//! A formula that cannot be parsed or rolled gives a result with `success: false`, not an error of the request. Given
//! dice that do not match are an error, because the caller must give others.

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
use base::{
    clock,
    error::{Error, Result},
    json, text,
};

/// The most rolls of one request.
pub const ROLLS_MAX: usize = 20;
/// The most characters of a flavor.
pub const FLAVOR_CHARS_MAX: usize = 200;
/// After this many dice, other requests get a turn before the next formula.
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

/// The results of a request's rolls.
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
    /// The counter of the first roll. Each further roll has the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<i64>,
}

/// The result of one formula.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Rolled {
    /// The formula as it was given.
    pub formula: String,
    pub flavor: Option<String>,
    /// Whether it could be rolled.
    pub success: bool,
    /// Null if it could not be rolled.
    #[schema(value_type = Option<f64>)]
    pub total: Option<Number>,
    /// Every die, in the order of rolling.
    #[schema(value_type = Vec<Die>)]
    pub dice: Vec<DieRoll>,
    /// Every term with a flavor `[…]`, and its total.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<TermFlavor>)]
    pub flavors: Vec<Flavour>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RollError>,
    /// The seed, if the dice came from the fair stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_id: Option<Uuid>,
    /// The position in that seed's stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<i64>,
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<OffsetDateTime>,
}

/// Why a formula could not be rolled.
#[derive(Debug, Serialize, ToSchema)]
pub struct RollError {
    /// `invalid_formula`, or `frontend_failed` if a frontend could not roll it.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// The number of characters before the error; 0 is the beginning.
    pub position: usize,
    /// What was expected there.
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

/// One die.
#[derive(Debug, Serialize, ToSchema)]
pub struct Die {
    pub faces: u32,
    /// The value shown: 1 to `faces`; -1 to 1 for a Fate die, 0 or 1 for a coin.
    pub value: i32,
    /// What it adds to the total, if that is not its value.
    pub counted: Option<i32>,
    /// False if it was dropped or rerolled.
    pub kept: bool,
    pub exploded: Option<bool>,
    pub rerolled: Option<bool>,
    pub success: Option<bool>,
    pub failure: Option<bool>,
    /// `fate` or `coin`, if it is not a standard die.
    pub kind: Option<String>,
}

/// A term with a flavor, such as `2d6[fire]`.
#[derive(Debug, Serialize, ToSchema)]
pub struct TermFlavor {
    pub text: String,
    pub total: f64,
}

/// Checks that there are 1 to [`ROLLS_MAX`] rolls and that their flavors are valid.
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
    let unfit = |r: &RollInput| text::checked(r.flavor.as_deref()?).err();
    match rolls.iter().enumerate().find_map(|(i, roll)| Some((i, unfit(roll)?))) {
        None => Ok(()),
        Some((i, unfit)) => Err(json::unfit_text(&format!("/rolls/{i}/flavor"), unfit)),
    }
}

/// The number of rolls, for [`Draw::of_rolls`].
#[must_use]
pub fn number(rolls: &[RollInput]) -> u32 {
    u32::try_from(rolls.len()).unwrap_or(u32::MAX)
}

/// Rolls checked formulas with the requested dice. If none of them can be rolled, whatever the dice show, the fair stream is left
/// alone.
///
/// # Errors
/// `invalid_dice` if given dice run out, do not match or are left over; database errors.
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

/// The report if none of the formulas can be rolled.
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

/// Rolls checked formulas with dice that were taken for exactly these.
///
/// # Errors
/// `invalid_dice` if given dice run out, do not match or are left over.
async fn all(draw: &mut Draw<'_>, rolls: &[RollInput], names: &Names<'_>) -> Result<RollReport> {
    let report = some(draw, rolls, names).await?;
    draw.all_used()?;
    Ok(report)
}

/// Like [`all`], but dice may be left over for later rolls.
///
/// # Errors
/// `invalid_dice` if given dice run out or do not match.
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

/// Rolls one formula with any source of dice.
///
/// # Errors
/// `invalid_dice` if given dice run out or do not match.
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

/// The variables that stand for numbers.
fn numbers<'a>(names: &'a Names<'_>) -> impl Fn(&str) -> Option<f64> + 'a {
    |name| names(name).and_then(Meaning::number)
}

impl Rolled {
    fn of_input(roll: &RollInput) -> Self {
        Self { formula: roll.formula.clone(), flavor: roll.flavor.clone(), ..Self::default() }
    }

    /// Adds the position of its dice in the fair stream.
    #[must_use]
    pub fn of(self, fair: Option<FairRoll>) -> Self {
        Self { seed_id: fair.map(|f| f.seed_id), counter: fair.map(|f| f.counter), ..self }
    }
}

/// A total as JSON: whole numbers have no fraction, as long as a double represents each of them exactly.
pub(super) fn whole(total: f64) -> Option<Number> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if total.fract() == 0.0 && total.abs() <= EXACT_MAX {
        return Some(Number::from(total as i64));
    }
    Number::from_f64(total)
}
