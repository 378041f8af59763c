//! CORS: a browser may call if its origin is on the list of the tenant that owns the credential.
//!
//! A preflight carries no credential, so it is answered for the origins of all tenants together. The page can read the
//! answer itself only if its origin is on the caller's own tenant's list. The literal `*` in a list allows every
//! origin.

use actix_web::{
    HttpResponse,
    dev::ServiceRequest,
    http::header::{self, HeaderMap, HeaderValue},
};

use crate::state::Edge;

/// Answers an `OPTIONS` request that has an `Origin` header.
pub async fn preflight(app: &Edge, request: &ServiceRequest) -> HttpResponse {
    let mut answer = HttpResponse::NoContent();
    answer.insert_header((header::VARY, "Origin"));
    let origin = request.headers().get(header::ORIGIN);
    let allowed = match origin.and_then(|o| o.to_str().ok()) {
        Some(origin) => app.origins().await.iter().any(|o| o == origin || o == "*"),
        None => false,
    };
    if let (true, Some(origin)) = (allowed, origin) {
        answer
            .insert_header((header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone()))
            .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"))
            .insert_header((
                header::ACCESS_CONTROL_ALLOW_HEADERS,
                "authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, prefer, x-request-id",
            ))
            .insert_header((header::ACCESS_CONTROL_MAX_AGE, "600"));
    }
    answer.finish()
}

/// Lets the page that sent the request read the answer, if the tenant lists its origin.
pub fn expose(headers: &mut HeaderMap, origin: &HeaderValue, origins: &[String]) {
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if origin.to_str().is_ok_and(|given| origins.iter().any(|o| o == given || o == "*")) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(
                "etag, idempotency-replayed, location, ratelimit, ratelimit-policy, retry-after, x-request-id",
            ),
        );
    }
}
