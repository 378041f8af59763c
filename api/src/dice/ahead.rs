//! Counters of a fair stream that are used before they are taken.
//!
//! Whoever knows where a stream stood a moment ago rolls the next counters at once, and takes them in the transaction that writes
//! what was rolled: if the stream stands elsewhere by then, or its seed was revealed, nothing is written, and it is rolled again.
//! So a roll costs no round trip of its own, and still no counter is used twice. Nobody sees dice before they are written; what was
//! used and comes to nothing is spent ([`Looked`]), unless another roll was first and it is tried again.

use std::{cell::RefCell, sync::LazyLock, time::Duration};

use moka::sync::Cache;
use rules::dice::FairSeed;
use uuid::Uuid;

use super::{seeds::Taken, spent::Looked};
use crate::{
    error::Result,
    pool::Pool,
    tenancy::{Actor, TenantTx},
};

/// A tenant's stream: a campaign's, or its own.
type Stream = (Uuid, Option<Uuid>);

/// Where a stream stands, as far as this server knows.
#[derive(Clone)]
struct Known {
    id: Uuid,
    seed: FairSeed,
    counter: i64,
}

/// Streams that this server rolled of within a minute. None: others roll of it, too, and it is not worth trying.
static KNOWN: LazyLock<Cache<Stream, Option<Known>>> =
    LazyLock::new(|| Cache::builder().max_capacity(10_000).time_to_live(Duration::from_secs(60)).build());

/// Counters that were used and are yet to be taken: those after `before` up to `after`. One that is dropped is spent.
pub struct Claim {
    stream: Stream,
    pub seed: Uuid,
    pub before: i64,
    pub after: i64,
    looked: Looked,
}

impl Claim {
    /// They are taken if this transaction is committed, and spent if not.
    pub fn taken_in(self, tx: &TenantTx) {
        tx.bind_fate(Box::new(self.looked));
    }
}

/// What came of the transaction that was to take them. After a conflict this stream's counters are taken before they are used,
/// for a minute; what was used is nobody's then, and another's roll.
///
/// # Errors
/// The transaction's.
pub fn settled<T>(claim: Option<Claim>, result: Result<T>) -> Result<T> {
    let Some(claim) = claim else { return result };
    match &result {
        Ok(_) => claim.looked.kept(),
        Err(error) if error.is_transient() => {
            KNOWN.insert(claim.stream, None);
            claim.looked.kept();
        }
        Err(_) => KNOWN.invalidate(&claim.stream),
    }
    result
}

/// Remembers where a stream stands once what took its counters is committed.
pub(super) fn stands(stream: Stream, taken: &Taken) {
    if !matches!(KNOWN.get(&stream), Some(None)) {
        KNOWN.insert(stream, Some(Known { id: taken.id, seed: taken.seed.clone(), counter: taken.last }));
    }
}

/// What was used ahead of a transaction.
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

    /// What is to be taken, by whoever asks first.
    #[must_use]
    pub fn claim(&self) -> Option<Claim> {
        self.claim.take()
    }

    /// The next counters, if it is known where the stream stood.
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
        // What was claimed so far goes on in the new claim.
        if let Some(claim) = claim.take() {
            claim.looked.kept();
        }
        let looked = Looked::new(self.pool, stream.0, known.id, after);
        *claim = Some(Claim { stream, seed: known.id, before, after, looked });
        let taken = Taken { id: known.id, seed: known.seed.clone(), first: known.counter + 1, last: after };
        KNOWN.insert(stream, Some(Known { counter: after, ..known }));
        Some(taken)
    }
}

impl Drop for Ahead<'_> {
    /// What was used came to nothing: it is spent, and others ask where the stream stands.
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            KNOWN.invalidate(&claim.stream);
        }
    }
}
