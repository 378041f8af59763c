//! The one place that reads the wall clock, so that everything else can be given a time, and that reads times from outside.
//!
//! A time that somebody writes may be the last there is, or lie beyond it once it is told in UTC. What passes [`parse`] is in UTC and
//! one that the database keeps; what is added to it is [`later`], which ends where time ends. Never parse, convert or add
//! elsewhere: those operators panic at the end of time.

use time::{
    Date, Duration, OffsetDateTime, Time, UtcOffset,
    format_description::well_known::{Iso8601, Rfc3339},
};

/// The time now, in UTC, as exact as the database keeps it: to the microsecond.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> OffsetDateTime {
    let now = OffsetDateTime::now_utc();
    now.replace_nanosecond(now.nanosecond() / 1000 * 1000).unwrap_or(now)
}

/// A time in RFC 3339, in UTC; none for what is no time, or is not in the years 0 to 9999 there.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is where times from outside are read")]
pub fn parse(text: &str) -> Option<OffsetDateTime> {
    in_utc(OffsetDateTime::parse(text, &Rfc3339).ok()?)
}

/// The same for a time that is written down as text: the database's calendar has no year 0.
#[must_use]
pub fn parse_kept(text: &str) -> Option<OffsetDateTime> {
    parse(text).filter(|time| time.year() >= 1)
}

/// The beginning of a day such as `2026-01-31`, in UTC.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is where times from outside are read")]
pub fn parse_day(text: &str) -> Option<OffsetDateTime> {
    // What follows a day is read and forgotten otherwise.
    if text.len() > 10 {
        return None;
    }
    in_utc(Date::parse(text, &Iso8601::DATE).ok()?.with_time(Time::MIDNIGHT).assume_utc())
}

fn in_utc(time: OffsetDateTime) -> Option<OffsetDateTime> {
    time.checked_to_offset(UtcOffset::UTC).filter(|time| time.year() >= 0)
}

/// So much later, or earlier; at most the last time there is.
#[must_use]
pub fn later(time: OffsetDateTime, by: Duration) -> OffsetDateTime {
    time.saturating_add(by)
}

/// Times of documents: written as RFC 3339, read by [`parse`].
pub mod written {
    use serde::{Deserialize, Deserializer, de::Error};
    use time::OffsetDateTime;

    pub use time::serde::rfc3339::option::serialize;

    /// Reads one that may be missing.
    ///
    /// # Errors
    /// What is no time, or none that is kept.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<OffsetDateTime>, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        let read = |text: String| super::parse_kept(&text).ok_or_else(|| D::Error::custom("is a time in RFC 3339"));
        text.map(read).transpose()
    }
}
