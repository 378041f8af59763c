//! What all requests share: the script's position, the recorded requests, the prefix cache and a count.
//!
//! Each part has its own lock, which is held for one short step and never across an await. A poisoned lock is used
//! anyway, because the data behind it is complete after every step.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use actix_web::HttpRequest;
use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::completion::Envelope;
use crate::cursor::{Cursor, Decision};
use crate::prefix_cache::{PrefixCache, namespace};
use crate::prompt;
use crate::recorder::{Headers, Recorder};
use crate::script::Script;
use crate::wire::ChatRequest;

/// Shared by the routes and the handle.
pub(crate) struct State {
    cursor: Mutex<Cursor>,
    recorder: Mutex<Recorder>,
    records: bool,
    prefixes: Mutex<PrefixCache>,
    repeats: Mutex<Repeats>,
    count: AtomicUsize,
    /// A permit for each held reply that may be sent.
    released: Semaphore,
}

impl State {
    /// The initial state of a server.
    pub(crate) fn new(script: Script, record_requests_max: usize) -> Self {
        Self {
            cursor: Mutex::new(Cursor::new(script)),
            recorder: Mutex::new(Recorder::new(record_requests_max)),
            records: record_requests_max > 0,
            prefixes: Mutex::new(PrefixCache::new()),
            repeats: Mutex::new(Repeats::new()),
            count: AtomicUsize::new(0),
            released: Semaphore::new(0),
        }
    }

    /// Records a chat request if recording is on.
    pub(crate) fn record(&self, request: &HttpRequest, body: &Bytes) {
        if self.records {
            self.recorder().push(headers(request), body.clone());
        }
    }

    /// Counts a chat request, whatever its result.
    pub(crate) fn count_one(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of chat requests so far.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The recorded requests.
    pub(crate) fn recorder(&self) -> MutexGuard<'_, Recorder> {
        lock(&self.recorder)
    }

    /// Replaces the script and starts the new one from its beginning. No reply of it is released yet.
    pub(crate) fn set_script(&self, script: Script) {
        self.released.forget_permits(usize::MAX);
        *lock(&self.cursor) = Cursor::new(script);
    }

    /// Releases this many held replies, including future ones.
    pub(crate) fn let_go(&self, replies: usize) {
        self.released.add_permits(replies);
    }

    /// Waits until a held reply may be sent. A client that disconnects while waiting uses up no permit.
    pub(crate) async fn wait_for_release(&self) {
        if let Ok(permit) = self.released.acquire().await {
            permit.forget();
        }
    }

    /// The script's decision about a request.
    pub(crate) fn decide(&self, last_user: &str, model: &str) -> Decision {
        lock(&self.cursor).next(last_user, model)
    }

    /// Counts the prompt's tokens and how many of them were cached.
    pub(crate) fn envelope(&self, request: &ChatRequest<'_>) -> Envelope {
        let chain = prompt::chain(request);
        let key = request.prompt_cache_key.as_deref().unwrap_or_default();
        let space = namespace(key, request.model());
        let cached = lock(&self.prefixes).visit(space, &chain);
        let fingerprint = chain.fingerprint();
        Envelope {
            times: lock(&self.repeats).count(fingerprint),
            fingerprint,
            model: request.model().to_owned(),
            prompt_tokens: chain.tokens() as u64,
            cached_tokens: cached as u64,
        }
    }
}

/// How often prompts came. Of those that share a place in the table, the last one is remembered.
struct Repeats(Vec<(u64, u64)>);

impl Repeats {
    const PLACES: usize = 4_096;

    fn new() -> Self {
        Self(vec![(0, 0); Self::PLACES])
    }

    /// Counts a prompt. Returns how often it came before.
    fn count(&mut self, fingerprint: u64) -> u64 {
        let place = usize::try_from(fingerprint % Self::PLACES as u64).unwrap_or_default();
        let Some((last, times)) = self.0.get_mut(place) else { return 0 };
        if *last != fingerprint {
            (*last, *times) = (fingerprint, 0);
        }
        *times += 1;
        *times - 1
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn headers(request: &HttpRequest) -> Headers {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    request.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect()
}
