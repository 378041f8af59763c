//! What HTTP asks of every route: ids of requests, bodies, pages, patches, ETags, idempotency, problem documents.
//!
//! Slices use these and never parse a header themselves. Nothing here knows a table of the world.

pub mod body;
pub mod bounds;
pub mod budget;
pub mod client;
pub mod cors;
pub mod docs;
pub mod door;
pub mod etag;
pub mod forms;
pub mod idempotency;
pub mod misfit;
pub mod observe;
pub mod paging;
pub mod patch;
pub mod reply;
pub mod resource;
pub mod sse;
pub mod validate;

use actix_web::{HttpMessage, HttpRequest};
use uuid::Uuid;

pub use body::{Body, NoBody};
pub use reply::Reply;

use crate::{
    app::App,
    auth::Caller,
    error::Result,
    retry::{BRIEF, Tries},
    tenancy::TenantTx,
};
use idempotency::IdempotencyKey;

/// The id of one request, made here or taken from `X-Request-Id`.
#[derive(Clone, Debug)]
pub enum RequestId {
    /// A UUID: ours, or the client's if it sent one.
    Uuid(Uuid),
    /// Another name the client gave: at most 128 visible ASCII characters.
    Given(String),
}

impl RequestId {
    /// A new id.
    #[must_use]
    pub fn generate() -> Self {
        Self::Uuid(Uuid::now_v7())
    }

    /// The client's id if it is short and printable, else a new one.
    #[must_use]
    pub fn from_header(value: Option<&[u8]>) -> Self {
        let given = value
            .filter(|v| (1..=128).contains(&v.len()) && v.iter().all(u8::is_ascii_graphic))
            .and_then(|v| std::str::from_utf8(v).ok());
        match given {
            None => Self::generate(),
            Some(text) => match Uuid::try_parse(text) {
                Ok(id) if text.len() == 36 && !text.bytes().any(|b| b.is_ascii_uppercase()) => Self::Uuid(id),
                _ => Self::Given(text.to_owned()),
            },
        }
    }

    /// The id as a UUID, if it is one.
    #[must_use]
    pub fn as_uuid(&self) -> Option<Uuid> {
        match self {
            Self::Uuid(id) => Some(*id),
            Self::Given(_) => None,
        }
    }

    /// The name the client gave; empty if the id is a UUID.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Uuid(_) => "",
            Self::Given(text) => text,
        }
    }

    /// The id of `request`, as the middleware found it.
    #[must_use]
    pub fn of(request: &HttpRequest) -> Self {
        request.extensions().get::<Self>().cloned().unwrap_or_else(Self::generate)
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Uuid(id) => id.fmt(f),
            Self::Given(text) => text.fmt(f),
        }
    }
}

/// Runs `work` in a transaction, once per idempotency key, and commits it with the answer it gave. It is tried again while what
/// stopped it will pass. If nobody knows whether it was committed, a key finds that out; without one it is not tried again.
///
/// # Errors
/// Those of `work`; nothing of it stays behind.
pub async fn write(
    app: &App,
    caller: &Caller,
    key: Option<&IdempotencyKey>,
    work: impl AsyncFn(&TenantTx) -> Result<Reply>,
) -> Result<Reply> {
    write_in(async || TenantTx::write(&app.pool, &caller.actor()).await, key, work).await
}

/// The same in a transaction that `open` opens.
///
/// # Errors
/// Those of `open` and `work`; nothing of it stays behind.
pub async fn write_in(
    open: impl AsyncFn() -> Result<TenantTx>,
    key: Option<&IdempotencyKey>,
    work: impl AsyncFn(&TenantTx) -> Result<Reply>,
) -> Result<Reply> {
    let mut tries = Tries::with(BRIEF);
    let mut was_in_doubt = false;
    loop {
        match write_once(&open, key, &work).await {
            Err(error) if error.in_doubt() && key.is_some() => {
                was_in_doubt = true;
                let error = error.settled();
                if !tries.again(&error).await {
                    return Err(error);
                }
            }
            Err(error) if tries.again(&error).await => {}
            // What the key found is the answer of a try of this very request.
            Ok(reply) => return Ok(Reply { replayed: reply.replayed && !was_in_doubt, ..reply }),
            result => return result,
        }
    }
}

/// The stored answer of a key, if there is one: for a request that a limit refuses, because who asks again, having lost the answer,
/// asks for nothing new.
///
/// # Errors
/// `idempotency_in_flight`, `idempotency_key_reused`.
pub async fn answered(app: &App, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Option<Reply>> {
    match key {
        Some(key) => key.replay(&TenantTx::read(&app.pool, caller.tenant_id()).await?).await,
        None => Ok(None),
    }
}

/// Answers by `work` that changes nothing, once per idempotency key. It may take long: no transaction is open meanwhile.
///
/// # Errors
/// Those of `work`, which are not kept; `idempotency_in_flight`, `idempotency_key_reused`.
pub async fn computed(
    app: &App,
    caller: &Caller,
    key: Option<&IdempotencyKey>,
    work: impl AsyncFnOnce() -> Result<Reply>,
) -> Result<Reply> {
    if let Some(stored) = answered(app, caller, key).await? {
        return Ok(stored);
    }
    let reply = work().await?;
    match key {
        // Of two at the same time both get the first one's.
        Some(_) => write(app, caller, key, async |_| Ok(reply.clone())).await,
        None => Ok(reply),
    }
}

async fn write_once(
    open: &impl AsyncFn() -> Result<TenantTx>,
    key: Option<&IdempotencyKey>,
    work: &impl AsyncFn(&TenantTx) -> Result<Reply>,
) -> Result<Reply> {
    let tx = open().await?;
    if let Some(key) = key
        && let Some(stored) = key.claim(&tx).await?
    {
        return Ok(stored);
    }
    let reply = work(&tx).await?;
    if let Some(key) = key {
        key.store(&tx, &reply).await?;
    }
    tx.commit().await?;
    Ok(reply)
}
