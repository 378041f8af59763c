//! Where a request's dice come from.

use rand::{SeedableRng, rngs::StdRng};
use rules::dice::{Dice, FairDice, FairSeed, Given, OutOfDice, Random};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::seeds::{self, Taking};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use db::tenancy::TenantTx;

/// The most dice that a request may give. That is more than a whole table needs for a round.
pub const GIVEN_MAX: usize = 1000;

/// The dice that a caller asked for. Given and seeded dice are for game masters only; the caller must have checked
/// that.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish<'a> {
    /// Dice rolled by hand, in the order they are consumed.
    pub given: Option<&'a [u32]>,
    /// A seed from the caller.
    pub seed: Option<u64>,
    /// True if nothing will be stored. The fair stream is then left alone.
    pub preview: bool,
}

impl Wish<'_> {
    /// Whether the dice come from the fair stream.
    #[must_use]
    pub fn is_fair(&self) -> bool {
        self.given.is_none() && self.seed.is_none() && !self.preview
    }
}

/// A roll's seed and counter, with which it can be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct FairRoll {
    pub seed_id: Uuid,
    pub counter: i64,
}

enum Source<'a> {
    Fair { seed: FairSeed, dice: FairDice, last: i64 },
    Given(Given<'a>),
    Random(Random<StdRng>),
}

/// The dice of one request.
pub struct Draw<'a> {
    source: Source<'a>,
    /// `server`, `manual` or `seeded`.
    pub origin: &'static str,
    /// The seed and counter, if the dice come from the fair stream.
    pub fair: Option<FairRoll>,
}

impl<'a> Draw<'a> {
    /// Takes the next roll of the campaign's fair stream, or the tenant's own stream without a campaign, unless `wish`
    /// asks for other dice. One statement.
    ///
    /// # Errors
    /// `invalid_dice` if more dice are given than any roll needs; database errors.
    pub async fn new(tx: &TenantTx, campaign: Option<Uuid>, wish: &Wish<'a>) -> Result<Self> {
        Self::of_rolls(Taking::Within(tx), campaign, wish, 1).await
    }

    /// [`Draw::new`] for several consecutive rolls; [`Draw::next_roll`] moves to the next one. One statement.
    ///
    /// # Errors
    /// As for [`Draw::new`].
    pub async fn of_rolls(taking: Taking<'_>, campaign: Option<Uuid>, wish: &Wish<'a>, rolls: u32) -> Result<Self> {
        let draw = match *wish {
            Wish { given: Some(given), .. } if given.len() > GIVEN_MAX => {
                return Err(Error::new(Code::InvalidDice, format!("At most {GIVEN_MAX} dice may be given.")));
            }
            Wish { given: Some(given), .. } => {
                Self { source: Source::Given(Given::new(given)), origin: "manual", fair: None }
            }
            Wish { seed: Some(seed), .. } => Self::random(StdRng::seed_from_u64(seed), "seeded"),
            Wish { preview: true, .. } => return Ok(Self::random(StdRng::from_rng(&mut rand::rng()), "server")),
            _ => {
                let taken = seeds::take(taking, campaign, rolls).await?;
                let dice = taken.seed.roll(taken.first.unsigned_abs());
                let fair = FairRoll { seed_id: taken.id, counter: taken.first };
                let source = Source::Fair { seed: taken.seed, dice, last: taken.last };
                Self { source, origin: "server", fair: Some(fair) }
            }
        };
        metrics::DICE_ROLLS.with_label_values(&[draw.origin]).inc_by(u64::from(rolls));
        Ok(draw)
    }

    fn random(generator: StdRng, origin: &'static str) -> Self {
        Self { source: Source::Random(Random(generator)), origin, fair: None }
    }

    /// Moves to the next roll: to the next counter in the fair stream, otherwise to the dice that follow.
    ///
    /// # Errors
    /// `internal` beyond the requested number of rolls, because those counters belong to others.
    pub fn next_roll(&mut self) -> Result<()> {
        if let (Source::Fair { seed, dice, last }, Some(fair)) = (&mut self.source, &mut self.fair) {
            if fair.counter >= *last {
                return Err(Error::internal("there are more rolls than counters taken"));
            }
            fair.counter += 1;
            *dice = seed.roll(fair.counter.unsigned_abs());
        }
        Ok(())
    }

    /// Given dice that were not used.
    #[must_use]
    pub fn unused(&self) -> &'a [u32] {
        match &self.source {
            Source::Given(given) => given.unused(),
            _ => &[],
        }
    }

    /// Checks that all given dice were used.
    ///
    /// # Errors
    /// `invalid_dice` if some are left.
    pub fn all_used(&self) -> Result<()> {
        all_used(self.unused())
    }
}

/// The dice that were used, for answers.
pub struct Rolled<'a> {
    /// `server`, `manual` or `seeded`; `None` if nothing was rolled.
    pub origin: Option<&'static str>,
    /// The seed and counter, if the dice came from the fair stream.
    pub fair: Option<FairRoll>,
    /// Given dice that were not used.
    pub unused: &'a [u32],
}

impl<'a> Rolled<'a> {
    /// Nothing was rolled, and these given dice are left.
    #[must_use]
    pub fn nothing(unused: &'a [u32]) -> Self {
        Self { origin: None, fair: None, unused }
    }

    /// Checks that no more given dice are left than were unnecessary.
    ///
    /// # Errors
    /// `invalid_dice`.
    pub fn used_up(&self, needless: usize) -> Result<()> {
        if self.unused.len() > needless { all_used(self.unused) } else { Ok(()) }
    }

    /// Where the dice came from, as part of an answer.
    #[must_use]
    pub fn told(&self) -> DiceOrigin {
        DiceOrigin {
            source: self.origin,
            seed_id: self.fair.map(|fair| fair.seed_id),
            counter: self.fair.map(|fair| fair.counter),
            dice_unused: self.unused.to_vec(),
        }
    }
}

/// Where the dice came from. Absent if no dice were rolled.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct DiceOrigin {
    /// `server` (the fair stream, or throwaway dice in a preview), `frontend`, `manual` (given dice) or `seeded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub source: Option<&'static str>,
    /// The id of the fair stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_id: Option<Uuid>,
    /// The position of the roll in that stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<i64>,
    /// Given dice that were not needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<u32>>)]
    pub dice_unused: Vec<u32>,
}

/// Why something that may need dice failed. Each module converts its own errors into this.
pub enum Failure {
    /// A die was missing, or a given die did not match.
    Dice(OutOfDice),
    /// Any other error for the client.
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Dice(cause) => given_error(&cause),
            Failure::Other(error) => error,
        }
    }
}

/// Runs something with the requested dice. Without given dice it is first run with none: if it is impossible or needs no
/// dice, the fair stream's counter does not move. `run` must not change anything.
///
/// # Errors
/// Those of `run` and of [`Draw::new`].
pub async fn roll<'a, T>(
    tx: &TenantTx,
    campaign: Uuid,
    wish: &Wish<'a>,
    run: impl Fn(&mut dyn Dice) -> Result<T, Failure>,
) -> Result<(T, Rolled<'a>)> {
    if wish.given.is_none() {
        match run(&mut Given::new(&[])) {
            Err(Failure::Dice(_)) => {}
            done => return Ok((done?, Rolled::nothing(&[]))),
        }
    }
    let mut draw = Draw::new(tx, Some(campaign), wish).await?;
    let done = run(&mut draw)?;
    Ok((done, Rolled { origin: Some(draw.origin), fair: draw.fair, unused: draw.unused() }))
}

/// Checks that no given dice are left.
///
/// # Errors
/// `invalid_dice` if some are.
pub fn all_used(unused: &[u32]) -> Result<()> {
    match unused {
        [] => Ok(()),
        left => Err(Error::new(
            Code::InvalidDice,
            format!(
                "Given dice are left over: {}. The first of them shows {}. Give only the dice that the roll needs.",
                left.len(),
                left[0]
            ),
        )),
    }
}

impl Dice for Draw<'_> {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        match &mut self.source {
            Source::Fair { dice, .. } => dice.roll(faces),
            Source::Given(dice) => dice.roll(faces),
            Source::Random(dice) => dice.roll(faces),
        }
    }
}

/// An error about given dice, for the client.
#[must_use]
pub fn given_error(error: &OutOfDice) -> Error {
    Error::new(Code::InvalidDice, format!("The given dice do not match the roll: {error}."))
}
