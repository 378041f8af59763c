//! The only place that reads the wall clock, so that tests can give the rest of the program any time, and that parses times from
//! outside.
//!
//! A time from outside may be so late that arithmetic on it would overflow, or that its UTC value does. A time that passed [`parse`]
//! is in UTC, and the database can store it. Use [`later`] to add to it: the sum stops at the last time there is. Never parse,
//! convert or add times elsewhere, because those operators panic on overflow.

use time::{
    Date, Duration, OffsetDateTime, Time, UtcOffset,
    format_description::well_known::{Iso8601, Rfc3339},
};

/// The current time in UTC, in the database's precision (microseconds).
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> OffsetDateTime {
    let now = OffsetDateTime::now_utc();
    now.replace_nanosecond(now.nanosecond() / 1000 * 1000).unwrap_or(now)
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
