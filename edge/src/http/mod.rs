//! The HTTP parts that all routes share: request ids, bodies, pages, patches, ETags, idempotency, problem documents.
//!
//! Routes use these and never parse headers themselves. Nothing here knows about the tables of the world.

pub mod body;
pub mod bounds;
pub mod budget;
pub mod cors;
pub mod door;
pub mod etag;
pub mod forms;
pub mod held;
pub mod idempotency;
pub mod misfit;
pub mod observe;
pub mod paging;
pub mod patch;
pub mod read;
pub mod reply;
pub mod resource;
pub mod router;
pub mod schema;
pub mod sse;
pub mod validate;
pub mod weight;

pub use body::{Body, NoBody};
pub use reply::Reply;

use crate::{caller::Caller, state::Edge};
use base::error::Result;
use db::{
    retry::{BRIEF, Tries},
    tenancy::TenantTx,
};
use idempotency::IdempotencyKey;

/// Runs `work` in a transaction, once per idempotency key, and commits it together with its answer. Temporary failures
/// are retried. If it is uncertain whether the transaction was committed, it is retried only with a key, because the
/// key reveals what happened.
///
/// # Errors
/// Those of `work`. Nothing is written then.
pub async fn write(
    app: &Edge,
    caller: &Caller,
    key: Option<&IdempotencyKey>,
    work: impl AsyncFn(&TenantTx) -> Result<Reply>,
) -> Result<Reply> {
    write_in(async || TenantTx::write(&app.pool, &caller.actor()).await, key, work).await
}

/// Like [`write()`], in a transaction that `open` opens.
///
/// # Errors
/// Those of `open` and `work`. Nothing is written then.
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
                if !tries.wait_to_retry(&error).await {
                    return Err(error);
                }
            }
            Err(error) if tries.wait_to_retry(&error).await => {}
            // The stored answer that the key found was given by an earlier attempt of this same request.
            Ok(reply) => return Ok(Reply { replayed: reply.replayed && !was_in_doubt, ..reply }),
            result => return result,
        }
    }
}

/// The stored answer of a key, if there is one. It is returned even when a limit would reject the request: a client
/// that lost the answer and asks again does not ask for anything new.
///
/// # Errors
/// `idempotency_in_flight`, `idempotency_key_reused`.
pub async fn answered(app: &Edge, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Option<Reply>> {
    match key {
        Some(key) => key.replay(&TenantTx::read(&app.pool, caller.tenant_id()).await?).await,
        None => Ok(None),
    }
}

/// Answers with the result of `work`, which changes nothing, once per idempotency key. It may take long: no transaction
/// is open meanwhile.
///
/// # Errors
/// Those of `work`, which are not stored. `idempotency_in_flight`, `idempotency_key_reused`.
pub async fn computed(
    app: &Edge,
    caller: &Caller,
    key: Option<&IdempotencyKey>,
    work: impl AsyncFnOnce() -> Result<Reply>,
) -> Result<Reply> {
    if let Some(stored) = answered(app, caller, key).await? {
        return Ok(stored);
    }
    let reply = work().await?;
    match key {
        // If two requests run at the same time, both get the answer that was stored first.
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
