//! The one place that reads the wall clock, so that everything else can be given a time.

use time::OffsetDateTime;

/// The time now, in UTC.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}
