//! Attempts to sign in. Wrong ones are slowed down for the one who makes them, and for nobody else.
//!
//! A wrong password counts against the pair of address and account, and against the address. After a few wrong
//! passwords the pair has to wait, each time twice as long, up to a quarter of an hour. An address that tries one
//! account after the other waits up to a minute. Nothing counts against an account by itself, so strangers cannot lock
//! its owner out, and a correct password from an address that did not fail never waits. A wrong code of the second
//! factor counts against the account, from any address, because only somebody who knows the password gets that far.
//!
//! The attempts of a pair are checked one at a time, and those of an address a few at a time. So many attempts at the
//! same time have no advantage over attempts one after the other. Memory is limited: beyond [`KEPT_MAX`] entries the
//! least recently used are forgotten.

use std::{
    net::IpAddr,
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lru::LruCache;
use sha2::{Digest, Sha256};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use crate::client::household;
use base::error::{Code, Error, Result};

const KEPT_MAX: NonZeroUsize = NonZeroUsize::new(50_000).unwrap();

/// What wrong attempts lead to.
#[derive(Debug)]
struct Rule {
    name: &'static str,
    /// Wrong attempts before the first wait.
    free: u32,
    /// The first wait. Each further one is twice as long, up to `longest`.
    first: Duration,
    longest: Duration,
    /// The time in which one wrong attempt is forgotten.
    forgotten_in: Duration,
    /// How many attempts are checked at the same time, and how many may wait for that.
    at_a_time: usize,
    waiting_max: usize,
}

const PAIR: Rule = Rule {
    name: "pair",
    free: 5,
    first: Duration::from_secs(10),
    longest: Duration::from_secs(15 * 60),
    forgotten_in: Duration::from_secs(10 * 60),
    at_a_time: 1,
    waiting_max: 32,
};

const ADDRESS: Rule = Rule {
    name: "address",
    free: 100,
    first: Duration::from_secs(5),
    longest: Duration::from_secs(60),
    forgotten_in: Duration::from_secs(20),
    at_a_time: 4,
    waiting_max: 64,
};

const CODE: Rule = Rule {
    name: "code",
    free: 5,
    first: Duration::from_secs(30),
    longest: Duration::from_secs(60 * 60),
    forgotten_in: Duration::from_secs(30 * 60),
    at_a_time: 1,
    waiting_max: 8,
};

#[derive(Debug, Default)]
struct Count {
    wrong: u32,
    /// When the count was last updated.
    at: Option<Instant>,
    wait_until: Option<Instant>,
}

impl Count {
    /// Forgets old attempts.
    fn age(&mut self, rule: &Rule, now: Instant) {
        let Some(at) = self.at else { return };
        let passed = now.saturating_duration_since(at).as_secs() / rule.forgotten_in.as_secs().max(1);
        if passed > 0 {
            self.wrong = self.wrong.saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX));
            self.at = Some(now);
        }
    }

    fn add(&mut self, rule: &Rule, now: Instant) {
        self.age(rule, now);
        self.wrong = self.wrong.saturating_add(1);
        self.at.get_or_insert(now);
        if let Some(beyond) = self.wrong.checked_sub(rule.free) {
            let wait = rule.first.saturating_mul(2u32.saturating_pow(beyond)).min(rule.longest);
            self.wait_until = Some(now + wait);
        }
    }
}

/// The attempts of one pair, address or account.
#[derive(Debug)]
struct Tries {
    rule: &'static Rule,
    count: Mutex<Count>,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Tries {
    fn new(rule: &'static Rule) -> Self {
        let places = Arc::new(Semaphore::new(rule.at_a_time));
        Self { rule, count: Mutex::default(), places, waiting: AtomicUsize::new(0) }
    }

    /// Waits for a place, until earlier attempts have been checked.
    async fn enter(self: &Arc<Self>) -> Result<Place> {
        struct Waits<'a>(&'a AtomicUsize);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::AcqRel);
            }
        }
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let _waits = Waits(&self.waiting);
        if before >= self.rule.waiting_max + self.rule.at_a_time {
            return Err(too_many(1));
        }
        self.check()?;
        let place = self.places.clone().acquire_owned().await.map_err(Error::internal)?;
        // An attempt before this one may have been wrong.
        self.check()?;
        Ok(Place { tries: self.clone(), _place: place })
    }

    fn check(&self) -> Result<()> {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        count.age(self.rule, now);
        match count.wait_until.map(|until| until.saturating_duration_since(now)) {
            Some(left) if !left.is_zero() => Err(too_many(left.as_secs() + 1)),
            _ => Ok(()),
        }
    }

    fn add(&self) {
        self.count.lock().unwrap_or_else(PoisonError::into_inner).add(self.rule, Instant::now());
    }

    fn forget(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) = Count::default();
    }
}

fn too_many(seconds: u64) -> Error {
    let detail = format!("Too many attempts to sign in. Wait {seconds} seconds and try again.");
    Error::new(Code::RateLimited, detail).retry_after(seconds)
}

struct Place {
    tries: Arc<Tries>,
    _place: OwnedSemaphorePermit,
}

/// An attempt that is being checked. If it is dropped without a verdict, it does not count.
#[must_use]
pub struct Attempt {
    /// The attempts that a correct one clears. Those of the address stay.
    own: Place,
    address: Option<Place>,
}

impl Attempt {
    /// The attempt was wrong.
    pub fn wrong(self) {
        self.own.tries.add();
        if let Some(address) = self.address {
            address.tries.add();
        }
    }

    /// The attempt was correct. Wrong attempts of the same address on other accounts stay counted.
    pub fn right(self) {
        self.own.tries.forget();
    }
}

/// The attempts of everybody, in this process.
pub struct SignIns {
    tries: Mutex<LruCache<[u8; 32], Arc<Tries>>>,
}

impl Default for SignIns {
    fn default() -> Self {
        Self { tries: Mutex::new(LruCache::new(KEPT_MAX)) }
    }
}

impl SignIns {
    /// Begins to check a password. `account` is the case-folded email address, whether the account exists or not.
    ///
    /// # Errors
    /// `rate_limited` with the seconds to wait.
    pub async fn password(&self, client: IpAddr, account: &str) -> Result<Attempt> {
        let client = household(client).to_string();
        let own = self.of(&PAIR, &[&client, account]).enter().await?;
        let address = self.of(&ADDRESS, &[&client]).enter().await?;
        Ok(Attempt { own, address: Some(address) })
    }

    /// Begins to check a code of the second factor, from somebody who knows the password.
    ///
    /// # Errors
    /// `rate_limited` with the seconds to wait.
    pub async fn code(&self, account: &str) -> Result<Attempt> {
        Ok(Attempt { own: self.of(&CODE, &[account]).enter().await?, address: None })
    }

    fn of(&self, rule: &'static Rule, whose: &[&str]) -> Arc<Tries> {
        let mut hash = Sha256::new().chain_update(rule.name);
        for part in whose {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        tries.get_or_insert(hash.finalize().into(), || Arc::new(Tries::new(rule))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let mut count = Count::default();
        let begun = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..20 {
            count.add(&PAIR, begun);
            waits.push(count.wait_until.map_or(0, |until| until.saturating_duration_since(begun).as_secs()));
        }
        assert_eq!(waits[..8], [0, 0, 0, 0, 10, 20, 40, 80]);
        assert_eq!(waits[19], 900);
        // Everything is forgotten in time.
        count.age(&PAIR, begun + Duration::from_secs(20 * 600));
        assert_eq!(count.wrong, 0);
    }
}
