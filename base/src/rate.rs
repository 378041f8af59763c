//! Where a caller stands with a rate limit.

/// A caller's position after a check, for the RateLimit headers.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub policy: &'static str,
    pub quota: u64,
    /// None if the limit is on calls at the same time.
    pub window_seconds: Option<u64>,
    pub remaining: u64,
    /// Seconds until the full quota is available again.
    pub reset_seconds: u64,
    /// Seconds to wait if the limit is reached.
    pub retry_after_seconds: Option<u64>,
}

/// The quota in the headers of an unlimited tenant: a structured field's integer can hold at least this much.
const UNLIMITED: u64 = 999_999_999;

impl Rate {
    /// No limit.
    #[must_use]
    pub fn unlimited(policy: &'static str) -> Self {
        Self {
            policy,
            quota: UNLIMITED,
            window_seconds: Some(60),
            remaining: UNLIMITED,
            reset_seconds: 0,
            retry_after_seconds: None,
        }
    }

    /// The values of the headers: policy and state (draft-ietf-httpapi-ratelimit-headers).
    #[must_use]
    pub fn headers(&self) -> (String, String) {
        let Self { policy, quota, remaining, reset_seconds, .. } = self;
        let window = match self.window_seconds {
            Some(seconds) => format!("w={seconds}"),
            None => "qu=\"concurrent-requests\"".to_owned(),
        };
        (format!("\"{policy}\";q={quota};{window}"), format!("\"{policy}\";r={remaining};t={reset_seconds}"))
    }
}
