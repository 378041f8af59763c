//! Keeps the last request bodies, for tests and for people who want to see what a model receives.
//!
//! Bodies are kept as they arrived and parsed only when somebody asks. This module must never grow beyond its two
//! limits.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use serde_json::Value;

/// The most bytes of bodies to keep, whatever their number.
const RECORDED_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// Header names in lower case, and their values.
pub(crate) type Headers = BTreeMap<String, String>;

struct Recorded {
    headers: Headers,
    body: Bytes,
}

/// A ring of requests.
pub(crate) struct Recorder {
    requests_max: usize,
    requests: VecDeque<Recorded>,
    bytes: usize,
}

impl Recorder {
    /// Keeps the last `requests_max` requests.
    pub(crate) fn new(requests_max: usize) -> Self {
        Self { requests_max, requests: VecDeque::new(), bytes: 0 }
    }

    /// Adds a request, and removes the oldest ones that no longer fit.
    pub(crate) fn push(&mut self, headers: Headers, body: Bytes) {
        self.bytes += body.len();
        self.requests.push_back(Recorded { headers, body });
        while self.requests.len() > self.requests_max || self.bytes > RECORDED_BYTES_MAX {
            let Some(oldest) = self.requests.pop_front() else {
                break;
            };
            self.bytes -= oldest.body.len();
        }
    }

    /// Removes all requests.
    pub(crate) fn clear(&mut self) {
        self.requests.clear();
        self.bytes = 0;
    }

    /// The bodies, oldest first; one that is not JSON is a string.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        let text = |body: &Bytes| Value::String(String::from_utf8_lossy(body).into_owned());
        self.requests
            .iter()
            .map(|request| serde_json::from_slice(&request.body).unwrap_or_else(|_| text(&request.body)))
            .collect()
    }

    /// The headers, oldest first.
    pub(crate) fn headers(&self) -> Vec<Headers> {
        self.requests.iter().map(|request| request.headers.clone()).collect()
    }
}
