//! What a request weighs. A request with many parts, such as fifty actions, counts as that many in its tenant's limit, and the large ones of
//! a tenant are done one after another. So the others' requests take as long as always, whatever one tenant asks for at once.
//!
//! A handler whose work grows with its body does it by [`weighed`].

use tokio::sync::OwnedSemaphorePermit;

use super::{answered, idempotency::IdempotencyKey, reply::Reply};
use crate::{caller::Caller, limits::Class, state::Edge};
use base::error::Result;

/// A request with more parts than this is large.
const SMALL_PARTS_MAX: usize = 10;

/// Does the work of a request with so many parts. The first of them was counted with the request.
///
/// # Errors
/// Those of `work`; `rate_limited`, `unavailable`, if the key has no stored answer.
pub async fn weighed(
    app: &Edge,
    caller: &Caller,
    parts: usize,
    key: Option<&IdempotencyKey>,
    work: impl Future<Output = Result<Reply>>,
) -> Result<Reply> {
    match begun(app, caller, parts).await {
        Ok(_large) => work.await,
        Err(refused) => answered(app, caller, key).await?.ok_or(refused),
    }
}

/// Counts the parts, and begins a large request.
async fn begun(app: &Edge, caller: &Caller, parts: usize) -> Result<Option<OwnedSemaphorePermit>> {
    let more = u32::try_from(parts.saturating_sub(1)).unwrap_or(u32::MAX);
    app.limits.check_more(&caller.tenant, Class::Requests, more).allowed("requests")?;
    match parts > SMALL_PARTS_MAX {
        true => app.admission.large(caller.tenant_id()).await.map(Some),
        false => Ok(None),
    }
}
