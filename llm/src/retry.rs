//! Whether to retry a failed attempt, and after what pause. Pure except for the jitter.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use super::error::LlmError;

/// The limit of the first pause. It doubles with each further one.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
/// The longest pause that we choose ourselves.
const PAUSE_MAX: Duration = Duration::from_secs(4);
/// The longest `Retry-After` that is honoured. Anything longer is beyond every deadline anyway.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// An attempt that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: LlmError,
    /// Whether the same request may succeed a moment later.
    pub(super) transient: bool,
}

impl Failure {
    pub(super) fn transient(error: LlmError) -> Self {
        Self { error, transient: true }
    }

    pub(super) fn lasting(error: LlmError) -> Self {
        Self { error, transient: false }
    }
}

/// Statuses that suggest trying later: 408, 429, and server errors except those that mean "not implemented".
pub(super) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502..=504 | 507..=599)
}

/// The pause before the next attempt after `made` failed attempts. `None` if there should be none: the failure is permanent, no
/// attempts are left, or the pause would outlast `left`, the time until the deadline.
pub(super) fn pause(failure: &Failure, made: u32, attempts_max: u32, left: Duration) -> Option<Duration> {
    if !failure.transient || made >= attempts_max {
        return None;
    }
    let pause = failure.error.retry_after().unwrap_or_else(|| jittered(made));
    (pause < left).then_some(pause)
}

/// Full jitter: anything between zero and the limit.
fn jittered(made: u32) -> Duration {
    let doublings = made.saturating_sub(1).min(8);
    let bound = PAUSE_FIRST.saturating_mul(1 << doublings).min(PAUSE_MAX);
    rand::random_range(Duration::ZERO..=bound)
}

/// `Retry-After` as seconds or as a date. A date is compared with the answer's own `Date`, so that neither clock matters.
#[expect(clippy::disallowed_methods, reason = "these times are only compared with each other")]
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs)
    } else {
        let at = OffsetDateTime::parse(text, &Rfc2822).ok()?;
        let now = OffsetDateTime::parse(headers.get(DATE)?.to_str().ok()?, &Rfc2822).ok()?;
        Duration::try_from(at - now).unwrap_or(Duration::ZERO)
    };
    Some(wait.min(RETRY_AFTER_MAX))
}
