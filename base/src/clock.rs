//! The only place that reads the wall clock, so that tests can give the rest of the program any time, and that parses times from
//! outside.
//!
//! Servers of one database have one time: the database's. Each measures it every few seconds ([`follow`]) and counts on from there by the
//! monotonic clock of its machine, so a machine's clock that is wrong, or that is set, changes nothing. What is made now has an id of this
//! time ([`id`]).
//!
//! A time from outside may be so late that arithmetic on it would overflow, or that its UTC value does. A time that passed [`parse`]
//! is in UTC, and the database can store it. Use [`later`] to add to it: the sum stops at the last time there is. Never parse,
//! convert or add times elsewhere, because those operators panic on overflow.

use std::{
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Instant,
};

use time::{
    Date, Duration, OffsetDateTime, Time, UtcOffset,
    format_description::well_known::{Iso8601, Rfc3339},
};
use uuid::{ContextV7, Timestamp, Uuid};

static CLOCK: LazyLock<Clock> = LazyLock::new(|| Clock::starting(Instant::now(), wall()));
/// What makes ids of one process rise, also within a millisecond.
static IDS: LazyLock<Mutex<ContextV7>> = LazyLock::new(|| Mutex::new(ContextV7::new()));

/// The current time in UTC, in the database's precision (microseconds). It never goes back once the process follows a database.
#[must_use]
pub fn now() -> OffsetDateTime {
    CLOCK.at(Instant::now())
}

/// A new UUIDv7 of the current time. Those of one process rise.
#[must_use]
pub fn id() -> Uuid {
    let now = now();
    let seconds = u64::try_from(now.unix_timestamp()).unwrap_or_default();
    let context = IDS.lock().unwrap_or_else(PoisonError::into_inner);
    Uuid::new_v7(Timestamp::from_unix(&*context, seconds, now.nanosecond()))
}

/// Follows a database's clock, which showed `told` at some moment between two moments of this machine.
pub fn follow(asked: Instant, told: OffsetDateTime, answered: Instant) {
    CLOCK.follow(asked, told, answered);
}

/// How far the clock of this machine is ahead of another one that shows `told`.
#[must_use]
pub fn ahead_of(told: OffsetDateTime) -> Duration {
    wall() - told
}

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn wall() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// A clock that counts by the machine's monotonic clock. All its times are in microseconds.
struct Clock {
    began: Instant,
    /// The time when it began, since 1970.
    first: AtomicI64,
    /// The latest time that it has shown.
    latest: AtomicI64,
    follows: AtomicBool,
}

impl Clock {
    fn starting(began: Instant, at: OffsetDateTime) -> Self {
        let first = AtomicI64::new(micros(at));
        Self { began, first, latest: AtomicI64::new(i64::MIN), follows: AtomicBool::new(false) }
    }

    fn since_it_began(&self, moment: Instant) -> i64 {
        i64::try_from(moment.saturating_duration_since(self.began).as_micros()).unwrap_or(i64::MAX)
    }

    fn at(&self, moment: Instant) -> OffsetDateTime {
        let now = self.first.load(Ordering::Relaxed).saturating_add(self.since_it_began(moment));
        let now = match self.follows.load(Ordering::Relaxed) {
            true => self.latest.fetch_max(now, Ordering::Relaxed).max(now),
            false => now,
        };
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(now) * 1000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    /// A reading says only that the database's time lay between two values, because the answer took some time. As long as this clock is
    /// between them, it is left alone, so that it is steady.
    fn follow(&self, asked: Instant, told: OffsetDateTime, answered: Instant) {
        let told = micros(told);
        let earliest = told.saturating_sub(self.since_it_began(answered));
        let latest = told.saturating_sub(self.since_it_began(asked));
        let first = self.first.load(Ordering::Relaxed);
        self.first.store(first.clamp(earliest.min(latest), latest), Ordering::Relaxed);
        self.follows.store(true, Ordering::Relaxed);
    }
}

/// Since 1970.
fn micros(time: OffsetDateTime) -> i64 {
    i64::try_from(time.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}

/// A duration in milliseconds, with three decimals.
#[must_use]
pub fn millis(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// Parses an RFC 3339 time and converts it to UTC. `None` if it is not a time or its UTC value is not in the years 0 to
/// 9999.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is where times from outside are read")]
pub fn parse(text: &str) -> Option<OffsetDateTime> {
    in_utc(OffsetDateTime::parse(text, &Rfc3339).ok()?)
}

/// Parses a time that is stored as text. As [`parse`], but without the year 0, which the database's calendar lacks.
#[must_use]
pub fn parse_stored(text: &str) -> Option<OffsetDateTime> {
    parse(text).filter(|time| time.year() >= 1)
}

/// The beginning of a day such as `2026-01-31`, in UTC.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is where times from outside are read")]
pub fn parse_day(text: &str) -> Option<OffsetDateTime> {
    // The parser would ignore anything after the day.
    if text.len() > 10 {
        return None;
    }
    in_utc(Date::parse(text, &Iso8601::DATE).ok()?.with_time(Time::MIDNIGHT).assume_utc())
}

fn in_utc(time: OffsetDateTime) -> Option<OffsetDateTime> {
    time.checked_to_offset(UtcOffset::UTC).filter(|time| time.year() >= 0)
}

/// Adds `by`, which may be negative. The result is at most the last time there is.
#[must_use]
pub fn later(time: OffsetDateTime, by: Duration) -> OffsetDateTime {
    time.saturating_add(by)
}

/// Times in documents: written as RFC 3339, read by [`parse`].
pub mod optional_rfc3339 {
    use serde::{Deserialize, Deserializer, de::Error};
    use time::OffsetDateTime;

    pub use time::serde::rfc3339::option::serialize;

    /// Reads an optional time.
    ///
    /// # Errors
    /// If the text is not a time, or not one that the database can store.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<OffsetDateTime>, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        let read =
            |text: String| super::parse_stored(&text).ok_or_else(|| D::Error::custom("must be an RFC 3339 time"));
        text.map(read).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration as Elapsed, Instant};

    use time::{Duration, macros::datetime};

    use super::{Clock, id, later};

    #[test]
    fn a_clock_follows_another_and_never_goes_back() {
        let (began, ours) = (Instant::now(), datetime!(2026-11-28 12:00 UTC));
        let after = |milliseconds| began + Elapsed::from_millis(milliseconds);
        let clock = Clock::starting(began, ours);
        assert_eq!(clock.at(after(1500)), ours + Duration::milliseconds(1500));
        // It is an hour ahead, which it learns before anybody relies on it.
        let theirs = ours - Duration::hours(1);
        clock.follow(after(2000), theirs + Duration::seconds(2), after(2010));
        assert_eq!(clock.at(after(3000)), theirs + Duration::seconds(3));
        // What is said within the time of an answer moves nothing.
        clock.follow(after(4000), theirs + Duration::milliseconds(4005), after(4020));
        assert_eq!(clock.at(after(5000)), theirs + Duration::seconds(5));
        // The other one is set back: this one waits for it, and goes on.
        clock.follow(after(6000), theirs + Duration::seconds(3), after(6000));
        assert_eq!(clock.at(after(6000)), theirs + Duration::seconds(5));
        assert_eq!(clock.at(after(7900)), theirs + Duration::seconds(5));
        assert_eq!(clock.at(after(9000)), theirs + Duration::seconds(6));
        // It is set ahead by a year.
        let year = Duration::days(365);
        clock.follow(after(10_000), theirs + year, after(10_000));
        assert_eq!(clock.at(after(10_000)), theirs + year);
    }

    #[test]
    fn ids_rise() {
        let ids: Vec<_> = (0..10_000).map(|_| id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert_eq!(later(datetime!(9999-12-31 23:59 UTC), Duration::days(1)).year(), 9999);
    }
}
