//! Uses counters of a fair stream before taking them in the database.
//!
//! If this server recently saw a stream's position, it rolls with the next counters at once. The transaction that writes the result
//! then takes these counters. If the stream has moved on by then, or its seed was revealed, nothing is written and the roll is made
//! again. So a roll needs no extra round trip, and still no counter is used twice. Nobody sees dice before they are written.
//! Counters that were used in vain are spent ([`Looked`]), unless another roll took them first and this one is made again.

use std::{cell::RefCell, sync::LazyLock, time::Duration};

use moka::sync::Cache;
use rules::dice::FairSeed;
use uuid::Uuid;

use super::{spent::Looked, taken::Taken};
use base::error::Result;
use db::{
    pool::Pool,
    tenancy::{Actor, TenantTx},
};

/// A tenant and a campaign's stream, or the tenant's own.
type Stream = (Uuid, Option<Uuid>);

/// A stream's position, as far as this server knows.
#[derive(Clone)]
struct StreamPosition {
    id: Uuid,
    seed: FairSeed,
    counter: i64,
}

/// Streams that this server used within the last minute. `None`: other servers use the stream too, so do not roll
/// ahead.
static KNOWN: LazyLock<Cache<Stream, Option<StreamPosition>>> =
    LazyLock::new(|| Cache::builder().max_capacity(10_000).time_to_live(Duration::from_secs(60)).build());

/// Counters that were used but not yet taken: those after `before` up to `after`. Dropping it spends them.
pub struct Claim {
    stream: Stream,
    pub seed: Uuid,
    pub before: i64,
    pub after: i64,
    looked: Looked,
}

impl Claim {
    /// Takes them if this transaction commits, and spends them if not.
    pub fn bind_to(self, tx: &TenantTx) {
        tx.bind_fate(Box::new(self.looked));
    }
}

/// Settles a claim with the result of the transaction that was to take the counters. After a conflict, this server does not
/// roll ahead on this stream for a minute. The counters then belong to somebody else's roll.
///
/// # Errors
/// The transaction's.
pub fn settled<T>(claim: Option<Claim>, result: Result<T>) -> Result<T> {
    let Some(claim) = claim else { return result };
    match &result {
        Ok(_) => claim.looked.settle(),
        Err(error) if error.is_transient() => {
            KNOWN.insert(claim.stream, None);
            claim.looked.settle();
        }
        Err(_) => KNOWN.invalidate(&claim.stream),
    }
    result
}

/// Remembers a stream's position after counters were taken.
pub(super) fn stands(stream: Stream, taken: &Taken) {
    if !matches!(KNOWN.get(&stream), Some(None)) {
        KNOWN.insert(stream, Some(StreamPosition { id: taken.id, seed: taken.seed.clone(), counter: taken.last }));
    }
}

/// The counters that were used ahead of a transaction.
pub struct Ahead<'a> {
    pub(super) pool: &'a Pool,
    pub(super) actor: &'a Actor,
    claim: RefCell<Option<Claim>>,
}

impl<'a> Ahead<'a> {
    #[must_use]
    pub fn new(pool: &'a Pool, actor: &'a Actor) -> Self {
        Self { pool, actor, claim: RefCell::default() }
    }

    /// The counters to take, for the first caller that asks.
    #[must_use]
    pub fn claim(&self) -> Option<Claim> {
        self.claim.take()
    }

    /// The next counters, if the stream's position is known.
    pub(super) fn hope(&self, campaign: Option<Uuid>, rolls: u32) -> Option<Taken> {
        let stream = (self.actor.tenant, campaign);
        let known = KNOWN.get(&stream)??;
        let after = known.counter + i64::from(rolls);
        let mut claim = self.claim.borrow_mut();
        let before = match &*claim {
            None => known.counter,
            Some(claim) if claim.seed == known.id && claim.after == known.counter => claim.before,
            Some(_) => return None,
        };
        // The new claim includes the counters that were claimed before.
        if let Some(claim) = claim.take() {
            claim.looked.settle();
        }
        let looked = Looked::new(self.pool, stream.0, known.id, after);
        *claim = Some(Claim { stream, seed: known.id, before, after, looked });
        let taken = Taken { id: known.id, seed: known.seed.clone(), first: known.counter + 1, last: after };
        KNOWN.insert(stream, Some(StreamPosition { counter: after, ..known }));
        Some(taken)
    }
}

impl Drop for Ahead<'_> {
    /// The counters were used in vain: spend them, and forget the stream's position.
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            KNOWN.invalidate(&claim.stream);
        }
    }
}
