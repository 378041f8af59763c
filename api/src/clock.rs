//! The one place that reads the wall clock, so that everything else can be given a time.

use time::OffsetDateTime;

/// The time now, in UTC, as exact as the database keeps it: to the microsecond.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> OffsetDateTime {
    let now = OffsetDateTime::now_utc();
    now.replace_nanosecond(now.nanosecond() / 1000 * 1000).unwrap_or(now)
}
