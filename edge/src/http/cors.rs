//! CORS: which pages of other origins may read an answer.
//!
//! If the server knows the caller, the list of its tenant decides. No other answer tells tenants apart: a preflight carries no
//! credential, and a credential that is refused, a path that does not exist or a busy server belong to no tenant. So these are for
//! the origins of all tenants together; without this, a page would learn only that its request failed. The pages that this server
//! draws are for no other origin.

use actix_web::http::{
    Method,
    header::{self, HeaderMap, HeaderValue},
};

use crate::{
    caller::Caller,
    origins::{Origins, allows},
};

/// What a page asks for.
pub struct Asked {
    pub origin: HeaderValue,
    pub method: Method,
    is_page: bool,
    /// Whether a browser asks on its own whether a page may send a request.
    pub is_preflight: bool,
}

impl Asked {
    /// What a request says of the page that sent it, if it came from one.
    #[must_use]
    pub fn by(method: &Method, path: &str, headers: &HeaderMap) -> Option<Self> {
        let origin = headers.get(header::ORIGIN)?.clone();
        let is_page = ["/admin", "/play"]
            .iter()
            .any(|scope| path.strip_prefix(scope).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
        let is_preflight = method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        Some(Self { origin, method: method.clone(), is_page, is_preflight })
    }
}

/// Lets the page that sent a request read the answer, if its origin is allowed.
pub fn expose(headers: &mut HeaderMap, asked: &Asked, caller: Option<&Caller>, all: &Origins) {
    if asked.is_page {
        return;
    }
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    let is_allowed = asked.origin.to_str().is_ok_and(|origin| match caller {
        Some(caller) => allows(&caller.tenant.origins, origin),
        None => all.has(origin),
    });
    if !is_allowed {
        return;
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, asked.origin.clone());
    let mut give = |name, value| headers.insert(name, HeaderValue::from_static(value));
    if asked.method == Method::OPTIONS {
        give(header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, PATCH, DELETE");
        give(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, prefer, x-request-id",
        );
        give(header::ACCESS_CONTROL_MAX_AGE, "600");
    } else {
        give(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            "allow, etag, idempotency-replayed, location, ratelimit, ratelimit-policy, retry-after, x-request-id",
        );
    }
}
