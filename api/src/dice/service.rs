//! Where the dice of one request fall from.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use rules::dice::{Dice, FairDice, FairSeed, Given, OutOfDice, Random};
use serde::Serialize;
use sqlx::Row;
use uuid::Uuid;

use crate::{
    error::{Code, Error, Result},
    tenancy::TenantTx,
};

/// Dice that a request may give: a round of a whole table with room to spare.
pub const GIVEN_MAX: usize = 1000;

/// Which dice a caller asked for. Given and seeded dice are for a game master; who asks must have checked that.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish<'a> {
    /// Dice rolled by hand, in the order they are consumed.
    pub given: Option<&'a [u32]>,
    /// A seed of the caller's own.
    pub seed: Option<u64>,
    /// Nothing will be kept: the fair stream is left alone.
    pub preview: bool,
}

/// Which roll of which seed this is, so that it can be verified.
#[derive(Clone, Copy, Debug, Serialize, utoipa::ToSchema)]
pub struct FairRoll {
    pub seed_id: Uuid,
    pub counter: i64,
}

enum Source<'a> {
    Fair(FairDice),
    Given(Given<'a>),
    Random(Random<StdRng>),
}

/// The dice of one request.
pub struct Draw<'a> {
    source: Source<'a>,
    /// `server`, `manual` or `seeded`.
    pub origin: &'static str,
    /// The fair roll, if it is one.
    pub fair: Option<FairRoll>,
}

impl<'a> Draw<'a> {
    /// Takes the next roll of the campaign's fair stream (of the tenant's own without a campaign), unless other dice are
    /// wished for. One statement.
    ///
    /// # Errors
    /// `invalid_dice` if more dice are given than any roll needs; those of the database.
    pub async fn new(tx: &TenantTx, campaign: Option<Uuid>, wish: &Wish<'a>) -> Result<Self> {
        if let Some(given) = wish.given {
            if given.len() > GIVEN_MAX {
                return Err(Error::new(Code::InvalidDice, format!("At most {GIVEN_MAX} dice may be given.")));
            }
            return Ok(Self { source: Source::Given(Given::new(given)), origin: "manual", fair: None });
        }
        if let Some(seed) = wish.seed {
            let source = Source::Random(Random(StdRng::seed_from_u64(seed)));
            return Ok(Self { source, origin: "seeded", fair: None });
        }
        if wish.preview {
            let source = Source::Random(Random(StdRng::from_rng(&mut rand::rng())));
            return Ok(Self { source, origin: "server", fair: None });
        }
        let (seed, fair) = next(tx, campaign).await?;
        let counter = u64::try_from(fair.counter).map_err(Error::internal)?;
        Ok(Self { source: Source::Fair(seed.roll(counter)), origin: "server", fair: Some(fair) })
    }

    /// Given dice that nobody rolled.
    #[must_use]
    pub fn unused(&self) -> &'a [u32] {
        match &self.source {
            Source::Given(given) => given.unused(),
            _ => &[],
        }
    }

    /// That all given dice were rolled.
    ///
    /// # Errors
    /// `invalid_dice` if some are left.
    pub fn all_used(&self) -> Result<()> {
        match self.unused() {
            [] => Ok(()),
            left => Err(Error::new(
                Code::InvalidDice,
                format!(
                    "{} of the given dice are left over, the first shows {}; give only what the roll needs.",
                    left.len(),
                    left[0]
                ),
            )),
        }
    }
}

impl Dice for Draw<'_> {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        match &mut self.source {
            Source::Fair(dice) => dice.roll(faces),
            Source::Given(dice) => dice.roll(faces),
            Source::Random(dice) => dice.roll(faces),
        }
    }
}

/// An error of given dice, as clients are told it.
#[must_use]
pub fn given_error(error: &OutOfDice) -> Error {
    Error::new(Code::InvalidDice, format!("The given dice do not fit: {error}."))
}

/// Counts the stream of a campaign up by one; a stream that was never used begins with a seed of its own.
async fn next(tx: &TenantTx, campaign: Option<Uuid>) -> Result<(FairSeed, FairRoll)> {
    let mut fresh = [0u8; 32];
    rand::rng().fill(&mut fresh);
    let client_seed: String = rand::rng().sample_iter(rand::distr::Alphanumeric).take(16).map(char::from).collect();
    let row = sqlx::query(
        "INSERT INTO dice_seed AS s (tenant_id, id, campaign_id, server_seed, client_seed, counter) VALUES ($1, $2, $3, $4, $5, 1) \
         ON CONFLICT (tenant_id, campaign_id) WHERE revealed_at IS NULL DO UPDATE SET counter = s.counter + 1 \
         RETURNING id, server_seed, client_seed, counter",
    )
    .bind(tx.tenant())
    .bind(Uuid::now_v7())
    .bind(campaign)
    .bind(&fresh[..])
    .bind(client_seed)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    let server_seed: Vec<u8> = row.get("server_seed");
    let server_seed: [u8; 32] = server_seed.as_slice().try_into().map_err(Error::internal)?;
    let seed = FairSeed::new(&server_seed, row.get("client_seed"));
    Ok((seed, FairRoll { seed_id: row.get("id"), counter: row.get("counter") }))
}
