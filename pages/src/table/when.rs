//! When something was said. The server writes times in UTC; a script shows them as its reader's clock has them.

use base::clock;
use time::{Date, OffsetDateTime, format_description::FormatItem, macros::format_description};

const DAY: &[FormatItem<'_>] = format_description!("[year]-[month]-[day]");
const TIME: &[FormatItem<'_>] = format_description!("[hour]:[minute]");
const MACHINE: &[FormatItem<'_>] = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");

/// A time for programs.
pub(crate) fn for_programs(at: OffsetDateTime) -> String {
    at.format(MACHINE).unwrap_or_default()
}

pub(crate) fn time(at: OffsetDateTime) -> String {
    at.format(TIME).unwrap_or_default()
}

pub(crate) fn day(day: Date) -> String {
    day.format(DAY).unwrap_or_default()
}

/// A time with its day, if that is not today.
pub(crate) fn day_and_time(at: OffsetDateTime) -> String {
    if at.date() == clock::now().date() { time(at) } else { format!("{} {}", day(at.date()), time(at)) }
}
