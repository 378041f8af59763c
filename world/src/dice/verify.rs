//! Recomputes past rolls of the fair stream from revealed seeds.
//!
//! It never reveals anything about a seed in use. A roll is named by its seed and counter. Several rolls of one request
//! have consecutive counters, as [`super::rolls`] assigned them.

use rules::dice::{FairSeed, Names, commitment};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    rolls::{self, RollInput, Rolled},
    seeds::Revealed,
};
use base::error::{Error, Result};

/// The largest counter, 2^53: every JSON parser keeps whole numbers up to it exact.
pub const COUNTER_MAX: u64 = 1 << 53;
/// The most characters of a client seed in a verification.
const CLIENT_SEED_CHARS_MAX: usize = 1000;

/// The rolls to recompute: from a revealed seed of this tenant (`seed_id`), or from the seeds in the request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyInput {
    /// A revealed seed. Otherwise give `server_seed` and `client_seed`.
    pub seed_id: Option<Uuid>,
    /// 32 bytes in hexadecimal.
    pub server_seed: Option<String>,
    pub client_seed: Option<String>,
    /// The counter of the first roll. Each further roll has the next one.
    pub counter: u64,
    /// The formula of a single roll.
    pub formula: Option<String>,
    /// The rolls of a request, 1 to 20, instead of `formula`.
    pub rolls: Option<Vec<RollInput>>,
    /// The variables that the rolls used.
    #[schema(value_type = Option<Object>)]
    pub variables: Option<Map<String, Value>>,
    /// The commitment that was published before the rolls.
    pub commitment: Option<String>,
}

/// The recomputed rolls.
#[derive(Debug, Serialize, ToSchema)]
pub struct Verified {
    /// The SHA-256 of the server seed.
    pub commitment: String,
    /// Whether it equals the given commitment; null if none was given.
    pub commitment_matches: Option<bool>,
    pub client_seed: String,
    /// The counter of the first roll.
    pub counter: u64,
    /// In the order of `rolls`.
    pub results: Vec<Rolled>,
}

impl VerifyInput {
    /// The rolls to recompute, checked.
    ///
    /// # Errors
    /// `validation_failed` unless exactly one of `rolls` and `formula` is given, within the limits of a request.
    pub fn rolls(&self) -> Result<Vec<RollInput>> {
        let rolls = match (&self.formula, &self.rolls) {
            (Some(formula), None) => vec![RollInput { formula: formula.clone(), flavor: None }],
            (None, Some(rolls)) => rolls.clone(),
            _ => return Err(Error::invalid("/rolls", "required", "Give either `formula` or `rolls`.")),
        };
        rolls::check(&rolls)?;
        if self.counter > COUNTER_MAX {
            return Err(Error::invalid("/counter", "invalid_value", format!("must be at most {COUNTER_MAX}")));
        }
        Ok(rolls)
    }

    /// The seeds in the request, if no `seed_id` is given.
    ///
    /// # Errors
    /// `validation_failed` if they are incomplete or invalid.
    pub fn given_seeds(&self) -> Result<Revealed> {
        let (Some(server), Some(client)) = (&self.server_seed, &self.client_seed) else {
            let message = "Give either `seed_id`, or both `server_seed` and `client_seed`.";
            return Err(Error::invalid("/seed_id", "required", message));
        };
        if client.chars().count() > CLIENT_SEED_CHARS_MAX {
            let message = format!("must have at most {CLIENT_SEED_CHARS_MAX} characters");
            return Err(Error::invalid("/client_seed", "invalid_value", message));
        }
        let server_seed = unhex(server).ok_or_else(|| {
            Error::invalid("/server_seed", "invalid_value", "must be 64 hexadecimal digits (32 bytes)")
        })?;
        Ok(Revealed { server_seed, client_seed: client.clone(), counter: i64::MAX })
    }

    /// Checks that this seed made these rolls.
    ///
    /// # Errors
    /// `validation_failed` for a counter that the seed never reached.
    pub fn was_rolled(&self, seeds: &Revealed, rolls: &[RollInput]) -> Result<()> {
        let last = self.counter.saturating_add(u64::from(rolls::number(rolls))).saturating_sub(1);
        if self.counter >= 1 && last <= seeds.counter.unsigned_abs() {
            return Ok(());
        }
        let message = format!("This seed was only used for the counters 1 to {}.", seeds.counter);
        Err(Error::invalid("/counter", "invalid_value", message))
    }
}

/// Recomputes the rolls.
///
/// # Errors
/// None in practice, because a fair stream never runs out of dice.
pub async fn recompute(
    seeds: &Revealed,
    input: &VerifyInput,
    rolls: &[RollInput],
    names: &Names<'_>,
) -> Result<Verified> {
    let seed = FairSeed::new(&seeds.server_seed, &seeds.client_seed);
    let mut results = Vec::with_capacity(rolls.len());
    for (counter, roll) in (input.counter..).zip(rolls) {
        let rolled = rolls::one(&mut seed.roll(counter), roll, names)?;
        let counter = i64::try_from(counter).map_err(Error::internal)?;
        results.push(Rolled { seed_id: input.seed_id, counter: Some(counter), ..rolled });
        tokio::task::yield_now().await;
    }
    let commitment = commitment(&seeds.server_seed);
    let commitment_matches = input.commitment.as_deref().map(|given| given.trim().eq_ignore_ascii_case(&commitment));
    let (client_seed, counter) = (seeds.client_seed.clone(), input.counter);
    Ok(Verified { commitment, commitment_matches, client_seed, counter, results })
}

/// Parses 64 hexadecimal digits into 32 bytes.
fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).filter_map(|two| u8::try_from(two[0] * 16 + two[1]).ok()).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}
