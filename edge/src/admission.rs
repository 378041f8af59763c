//! Admission: limits how much work is under way at once. The server rejects new work beyond the limit so that it can finish the
//! work it has begun.
//!
//! A request holds a place while the server works on it. It gives the place up while it waits for the client's body, when it
//! becomes a stream, and when it becomes a turn; turns have places of their own because models take long. Request bodies share a
//! limit in bytes, and no tenant gets more than half of that. A rejection is `unavailable`, costs next to nothing and needs no
//! database. Limits on how much one caller may ask for are in [`crate::limits`].
//!
//! A request that waits for somebody outside the server, such as a model's endpoint or a frontend, exchanges its place for one of another
//! kind, of which each tenant has a share ([`Admission::wait`]). So does a large request while another large one of its tenant is at
//! work ([`Admission::large`]). Nothing else waits here.

use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use actix_web::http::Method;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use uuid::Uuid;

use base::{
    error::{Code, Error, Result},
    metrics,
    rate::Rate,
    shares::Shares,
};
use db::pool;

/// Extra places for requests that end work: those that cancel turns.
const ENDING_PLACES: usize = 16;
/// Places for requests that wait for somebody else.
const WAITING_PLACES: usize = 512;
/// How many of them one tenant may have.
const WAITING_PLACES_EACH: usize = 64;
/// How long a large request waits for the ones before it.
const LARGE_WAIT: Duration = Duration::from_secs(10);
/// Routes that always answer, however busy the server is. So does OPTIONS: it costs next to nothing, and a page whose preflight fails
/// does not learn why.
const ALWAYS: &[&str] = &["/healthz", "/readyz", "/metrics"];

/// The limits on concurrent work.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionSettings {
    pub requests_max: usize,
    pub turns_max: usize,
    /// The limit on the bytes of request bodies in memory.
    pub body_bytes_max: usize,
}

/// The places of this server.
pub struct Admission {
    requests: Arc<Semaphore>,
    /// The tenants' shares of `requests`.
    requests_each: Shares,
    endings: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// The tenants' shares of `waiting`.
    waiting_each: Shares,
    /// One large request of each tenant is at work at a time.
    large: Shares,
    bodies: Arc<Bodies>,
}

/// A place that a request holds until this is dropped.
#[derive(Default)]
#[must_use]
pub struct Place(Option<Held>);

enum Held {
    /// One of all, and one of the tenant's once it is known.
    Work(OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
    /// One of all, and one of the tenant's.
    Wait(#[expect(dead_code, reason = "they are held")] [OwnedSemaphorePermit; 2]),
}

impl Drop for Place {
    fn drop(&mut self) {
        match self.0 {
            Some(Held::Work(..)) => metrics::REQUESTS_IN_WORK.dec(),
            Some(Held::Wait(_)) => metrics::REQUESTS_WAITING.dec(),
            None => {}
        }
    }
}

tokio::task_local! {
    /// The place of the current request, or of the turn that it became.
    static PLACE: RefCell<Option<Place>>;
}

impl Admission {
    /// Creates as many places as the settings say.
    #[must_use]
    pub fn new(settings: &AdmissionSettings) -> Self {
        let places = |n: usize| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            requests: places(settings.requests_max),
            requests_each: Shares::new(settings.requests_max - settings.requests_max / 4),
            endings: places(ENDING_PLACES),
            turns: places(settings.turns_max),
            waiting: places(WAITING_PLACES),
            waiting_each: Shares::new(WAITING_PLACES_EACH),
            large: Shares::new(1),
            bodies: Arc::new(Bodies { bytes_max: settings.body_bytes_max, held: Mutex::default() }),
        }
    }

    /// Takes a place for a request.
    ///
    /// # Errors
    /// `unavailable` if no place is free.
    pub fn enter(&self, method: &Method, path: &str) -> Result<Place> {
        if ALWAYS.contains(&path) || method == Method::OPTIONS {
            return Ok(Place(None));
        }
        // Reject early a turn that could not get a place anyway.
        if method == Method::POST && path.ends_with("/turns") && self.turns.available_permits() == 0 {
            return Err(refused("turns", 2));
        }
        let mut permit = self.requests.clone().try_acquire_owned();
        if permit.is_err() && path.ends_with("/cancel") {
            permit = self.endings.clone().try_acquire_owned();
        }
        let permit = permit.map_err(|_| refused("requests", 1))?;
        metrics::REQUESTS_IN_WORK.inc();
        Ok(Place(Some(Held::Work(permit, None))))
    }

    /// Counts the current request among its tenant's. A tenant has at most three quarters of the places for requests, so that its slow
    /// requests do not lock the others out.
    ///
    /// # Errors
    /// `unavailable` if the tenant already holds its share.
    pub fn belongs_to(&self, tenant: Uuid, path: &str) -> Result<()> {
        let claim = |own: &RefCell<Option<Place>>| {
            let mut own = own.borrow_mut();
            let Some(Place(Some(Held::Work(place, share @ None)))) = &mut *own else { return Ok(()) };
            match self.requests_each.of(tenant).try_acquire_owned() {
                Ok(permit) => *share = Some(permit),
                Err(_) if path.ends_with("/cancel") => {
                    *place = self.endings.clone().try_acquire_owned().map_err(|_| refused("requests", 1))?;
                }
                Err(_) => return Err(refused("requests", 1)),
            }
            Ok(())
        };
        PLACE.try_with(claim).unwrap_or(Ok(()))
    }

    /// Exchanges the current request's place for one of those that wait: for somebody outside, or for another request of its tenant. A
    /// request that has asked somebody outside keeps it to its end, because what it does with the answer is little, and must not be lost.
    ///
    /// # Errors
    /// `rate_limited` if the tenant already holds its share; `unavailable` if none is free.
    pub fn wait(&self, tenant: Uuid) -> Result<()> {
        let own = self.waiting_each.of(tenant).try_acquire_owned().map_err(|_| {
            let message = format!("{WAITING_PLACES_EACH} requests already wait. Try again when one has ended.");
            too_many("waiting-requests", WAITING_PLACES_EACH, message)
        })?;
        let one = self.waiting.clone().try_acquire_owned().map_err(|_| refused("waiting", 2))?;
        metrics::REQUESTS_WAITING.inc();
        let place = Place(Some(Held::Wait([one, own])));
        let _ = PLACE.try_with(|own| own.replace(Some(place)));
        Ok(())
    }

    /// Begins a large request of a tenant, which ends when the answer is dropped. If another one is at work, it waits, and meanwhile holds
    /// no place of those that work.
    ///
    /// # Errors
    /// `rate_limited` if this takes too long, or too many wait; `unavailable` if no place is free afterwards.
    pub async fn large(&self, tenant: Uuid) -> Result<OwnedSemaphorePermit> {
        let turn = self.large.of(tenant);
        if let Ok(permit) = turn.clone().try_acquire_owned() {
            return Ok(permit);
        }
        self.wait(tenant)?;
        let message = "Large requests of a tenant are done one after another, and others are still waiting. Try again in a moment.";
        let late = |_| too_many("large-requests", 1, message.to_owned());
        let permit = timeout(LARGE_WAIT, turn.acquire_owned()).await.map_err(late)?.map_err(Error::internal)?;
        self.come_back(&Method::POST, "", Some(tenant))?;
        Ok(permit)
    }

    /// Takes a place for a turn.
    ///
    /// # Errors
    /// `unavailable` if no place is free.
    pub fn turn(&self) -> Result<OwnedSemaphorePermit> {
        self.turns.clone().try_acquire_owned().map_err(|_| refused("turns", 2))
    }

    /// Takes a place again for a request that has waited.
    ///
    /// # Errors
    /// `unavailable` if no place is free.
    pub fn come_back(&self, method: &Method, path: &str, tenant: Option<Uuid>) -> Result<()> {
        let place = self.enter(method, path)?;
        let _ = PLACE.try_with(|own| own.replace(Some(place)));
        tenant.map_or(Ok(()), |tenant| self.belongs_to(tenant, path))
    }

    /// The bytes of request bodies that are in memory or still arriving.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        self.bodies.lock().values().sum()
    }

    /// Accounts for the body of a request by a tenant; `None` is a request without a tenant.
    #[must_use]
    pub fn body(&self, tenant: Option<Uuid>) -> BodyRoom {
        BodyRoom { bodies: self.bodies.clone(), tenant: tenant.unwrap_or_default(), bytes: 0 }
    }
}

/// Runs a request's work while it holds this place.
pub fn at<T>(place: Place, work: impl Future<Output = T>) -> impl Future<Output = T> {
    PLACE.scope(RefCell::new(Some(place)), work)
}

/// Moves the current request's place to work that goes on in its own task.
pub fn in_its_place<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = PLACE.try_with(RefCell::take).ok().flatten();
    PLACE.scope(RefCell::new(place), pool::with_need(pool::Need::Begin, work))
}

/// Gives up the current place because the work waits for something outside the server.
pub fn step_out() {
    let _ = PLACE.try_with(RefCell::take);
}

/// A rejection because of what the same tenant does already.
fn too_many(policy: &'static str, quota: usize, message: String) -> Error {
    let quota = u64::try_from(quota).unwrap_or(u64::MAX);
    let rate =
        Rate { policy, quota, window_seconds: None, remaining: 0, reset_seconds: 1, retry_after_seconds: Some(1) };
    Error::new(Code::RateLimited, message).retry_after(1).by_limit(rate)
}

fn refused(reason: &'static str, seconds: u64) -> Error {
    metrics::REFUSED.with_label_values(&[reason]).inc();
    Error::new(Code::Unavailable, "The server is busy. Try again in a moment.").retry_after(seconds)
}

/// The bytes of bodies in memory, by tenant.
struct Bodies {
    bytes_max: usize,
    held: Mutex<HashMap<Uuid, usize>>,
}

impl Bodies {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room that a body takes until this is dropped.
pub struct BodyRoom {
    bodies: Arc<Bodies>,
    tenant: Uuid,
    bytes: usize,
}

impl BodyRoom {
    /// Makes room for `bytes` in total.
    ///
    /// # Errors
    /// `unavailable` if all bodies together, or this tenant's bodies, would be too large.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return Ok(()) };
        let mut held = self.bodies.lock();
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

impl Drop for BodyRoom {
    fn drop(&mut self) {
        let mut held = self.bodies.lock();
        if let Some(own) = held.get_mut(&self.tenant) {
            *own = own.saturating_sub(self.bytes);
            if *own == 0 {
                held.remove(&self.tenant);
            }
        }
        metrics::BODY_BYTES.sub(i64::try_from(self.bytes).unwrap_or(i64::MAX));
    }
}
