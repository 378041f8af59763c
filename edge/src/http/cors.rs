//! CORS: which pages of other origins may read an answer.
//!
//! If the server knows the caller, the list of its tenant decides. No other answer tells tenants apart: a preflight carries no
//! credential, and a credential that is refused, a path that does not exist, a busy server or a panic belong to no tenant. So these are
//! for the origins of all tenants together; without this, a page would learn only that its request failed.
//!
//! [`NOT_FOR_PAGES`] is for no other origin at all.

use actix_web::{
    dev::Url,
    http::{
        Method, Uri,
        header::{self, HeaderMap, HeaderValue},
    },
};

use crate::{
    caller::Caller,
    origins::{Origins, allows},
};

/// Pages of this server and their files, which browsers keep for all origins; and what only operators read, although one tenant's `*`
/// would open it to every page.
const NOT_FOR_PAGES: [&str; 6] = ["/admin", "/play", "/static", "/favicon.ico", "/metrics", "/readyz"];

/// What a page asks for.
pub struct Asked {
    origin: HeaderValue,
    /// Whether any other origin's page may read the answer.
    is_for_pages: bool,
    /// Whether a browser asks on its own whether a page may send a request.
    pub is_preflight: bool,
}

impl Asked {
    /// What a request says of the page that sent it, if it came from one.
    #[must_use]
    pub fn by(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        let origin = headers.get(header::ORIGIN)?.clone();
        // As the routes see it: `/%61dmin` is `/admin`.
        let path = Url::new(uri.clone());
        let is_in =
            |scope: &str| path.path().strip_prefix(scope).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_preflight = method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        Some(Self { origin, is_for_pages: !NOT_FOR_PAGES.into_iter().any(is_in), is_preflight })
    }
}

/// Lets the page that sent a request read the answer, if its origin is allowed.
pub fn expose(headers: &mut HeaderMap, asked: &Asked, caller: Option<&Caller>, all: &Origins) {
    if !asked.is_for_pages {
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
    if asked.is_preflight {
        give(header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
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
