//! How much is begun at once: what comes beyond it is refused at the door, so that what was begun comes to its end.
//!
//! A request has a place as long as it is worked on. It gives it up while its client keeps it waiting for a body, when it
//! becomes a stream, and when it has become a turn, which has a place of its own for as long as models take. Bodies share a number
//! of bytes, of which no tenant gets more than half. Nothing waits here: a refusal is `unavailable`, costs next to nothing and asks
//! no database. What is refused for how much somebody asks for is in [`crate::limits`].

use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use actix_web::http::Method;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::{
    error::{Code, Error, Result},
    ops::metrics,
    pool,
};

/// Places for what ends work: requests that cancel turns.
const ENDING_PLACES: usize = 16;
/// Routes that answer however busy the server is.
const ALWAYS: &[&str] = &["/healthz", "/readyz", "/metrics"];

/// How much may be done at once.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionSettings {
    pub requests_max: usize,
    pub turns_max: usize,
    /// Of bodies in memory.
    pub body_bytes_max: usize,
}

/// The places of this process.
pub struct Admission {
    requests: Arc<Semaphore>,
    endings: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    bodies: Arc<Bodies>,
}

/// A place at the door, for as long as it is held.
#[derive(Default)]
#[must_use]
pub struct Place(Option<OwnedSemaphorePermit>);

impl Drop for Place {
    fn drop(&mut self) {
        if self.0.is_some() {
            metrics::REQUESTS_IN_WORK.dec();
        }
    }
}

tokio::task_local! {
    /// The place of the request, or of the turn it became, that is worked on.
    static PLACE: RefCell<Option<Place>>;
}

impl Admission {
    /// Places as the settings say.
    #[must_use]
    pub fn new(settings: &AdmissionSettings) -> Self {
        let places = |n: usize| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            requests: places(settings.requests_max),
            endings: places(ENDING_PLACES),
            turns: places(settings.turns_max),
            bodies: Arc::new(Bodies { bytes_max: settings.body_bytes_max, held: Mutex::default() }),
        }
    }

    /// A place for a request.
    ///
    /// # Errors
    /// `unavailable` when all are taken.
    pub fn enter(&self, method: &Method, path: &str) -> Result<Place> {
        if ALWAYS.contains(&path) {
            return Ok(Place(None));
        }
        // A turn that will find no place is refused before anything is done for it.
        if method == Method::POST && path.ends_with("/turns") && self.turns.available_permits() == 0 {
            return Err(refused("turns", 2));
        }
        let mut permit = self.requests.clone().try_acquire_owned();
        if permit.is_err() && path.ends_with("/cancel") {
            permit = self.endings.clone().try_acquire_owned();
        }
        let permit = permit.map_err(|_| refused("requests", 1))?;
        metrics::REQUESTS_IN_WORK.inc();
        Ok(Place(Some(permit)))
    }

    /// A place for a turn.
    ///
    /// # Errors
    /// `unavailable` when all are taken.
    pub fn turn(&self) -> Result<OwnedSemaphorePermit> {
        self.turns.clone().try_acquire_owned().map_err(|_| refused("turns", 2))
    }

    /// The request has its body and goes on: it needs a place again.
    ///
    /// # Errors
    /// `unavailable` when all are taken.
    pub fn come_back(&self, method: &Method, path: &str) -> Result<()> {
        let place = self.enter(method, path)?;
        let _ = PLACE.try_with(|own| own.replace(Some(place)));
        Ok(())
    }

    /// Bytes of bodies that are in memory or on their way.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        self.bodies.held().values().sum()
    }

    /// Room for the body of a request of a tenant's, or of nobody's.
    #[must_use]
    pub fn body(&self, tenant: Option<Uuid>) -> Held {
        Held { bodies: self.bodies.clone(), tenant: tenant.unwrap_or_default(), bytes: 0 }
    }
}

/// Works on a request that has this place.
pub async fn at<T>(place: Place, work: impl Future<Output = T>) -> T {
    PLACE.scope(RefCell::new(Some(place)), work).await
}

/// Goes on with what a request began in a task of its own, which has its place from now on.
pub fn in_its_place<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = PLACE.try_with(RefCell::take).ok().flatten();
    PLACE.scope(RefCell::new(place), pool::with_need(pool::Need::Begin, work))
}

/// What is worked on waits for something that is not ours: its place is another's meanwhile.
pub fn step_out() {
    let _ = PLACE.try_with(RefCell::take);
}

fn refused(reason: &'static str, seconds: u64) -> Error {
    metrics::REFUSED.with_label_values(&[reason]).inc();
    Error::new(Code::Unavailable, "The server is busy. Try again in a moment.").retry_after(seconds)
}

/// The bytes of bodies that are in memory, by tenant.
struct Bodies {
    bytes_max: usize,
    held: Mutex<HashMap<Uuid, usize>>,
}

impl Bodies {
    fn held(&self) -> MutexGuard<'_, HashMap<Uuid, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for a body until this is dropped.
pub struct Held {
    bodies: Arc<Bodies>,
    tenant: Uuid,
    bytes: usize,
}

impl Held {
    /// Makes room for so many bytes in all.
    ///
    /// # Errors
    /// `unavailable` when the bodies of everybody, or of this tenant, would be too large together.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return Ok(()) };
        let mut held = self.bodies.held();
        let all = held.values().sum::<usize>() + more;
        let own = held.get(&self.tenant).copied().unwrap_or_default() + more;
        if all > self.bodies.bytes_max || own > self.bodies.bytes_max / 2 {
            return Err(refused("bodies", 5));
        }
        held.insert(self.tenant, own);
        self.bytes = bytes;
        metrics::BODY_BYTES.add(i64::try_from(more).unwrap_or(i64::MAX));
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.bodies.held();
        if let Some(own) = held.get_mut(&self.tenant) {
            *own = own.saturating_sub(self.bytes);
            if *own == 0 {
                held.remove(&self.tenant);
            }
        }
        metrics::BODY_BYTES.sub(i64::try_from(self.bytes).unwrap_or(i64::MAX));
    }
}
