//! What a request weighs. A request with many parts, such as fifty actions, counts as that many in its tenant's limit, and the large ones of
//! a tenant are done one after another. So the others' requests take as long as always, whatever one tenant asks for at once.
//!
//! A handler whose work grows with its body runs that work in [`weighed`].

use actix_web::{HttpMessage, HttpRequest};
use tokio::sync::OwnedSemaphorePermit;

use super::{Written, answered, idempotency::IdempotencyKey};
use crate::{caller::Caller, limits::Class, state::Edge};
use base::{
    error::{Code, Error, Result},
    rate::Rate,
};

/// A request with more parts than this is large.
const SMALL_PARTS_MAX: usize = 10;

/// Does the work of a request with this many parts. The first of them was counted with the request. A stored answer costs nothing more, and
/// neither does a request that does not begin.
///
/// # Errors
/// Those of `work`; `rate_limited`, `unavailable`.
pub async fn weighed<T>(
    (app, caller): (&Edge, &Caller),
    request: &HttpRequest,
    parts: usize,
    key: Option<&IdempotencyKey>,
    work: impl Future<Output = Result<Written<T>>>,
) -> Result<Written<T>> {
    if parts > 1
        && let Some(stored) = answered(app, caller, key).await?
    {
        return Ok(Written::Before(stored));
    }
    let _large: Option<OwnedSemaphorePermit> = match parts > SMALL_PARTS_MAX {
        true => Some(app.admission.large(caller.tenant_id()).await?),
        false => None,
    };
    count(app, caller, request, parts)?;
    work.await
}

/// Counts the parts after the first.
fn count(app: &Edge, caller: &Caller, request: &HttpRequest, parts: usize) -> Result<()> {
    let more = u32::try_from(parts.saturating_sub(1)).unwrap_or(u32::MAX);
    if more == 0 {
        return Ok(());
    }
    let rate = app.limits.check_more(&caller.tenant, Class::Requests, more);
    let Some(seconds) = rate.retry_after_seconds else {
        request.extensions_mut().insert::<Rate>(rate);
        return Ok(());
    };
    let detail = format!(
        "This request counts as {parts} requests, and the limit of {} requests a minute has no room for them yet.",
        rate.quota
    );
    Err(Error::new(Code::RateLimited, detail).retry_after(seconds).by_limit(rate))
}
