//! Our pages, and files that a browser saves.

use actix_web::{HttpResponse, HttpResponseBuilder, http::StatusCode};

/// The page may use scripts, styles and connections from our own host only, and no inline scripts or styles.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; \
    img-src 'self'; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// One of our pages, with its security headers.
#[must_use]
pub fn html(status: StatusCode, body: String) -> HttpResponse {
    HttpResponse::build(status)
        .content_type("text/html; charset=utf-8")
        .insert_header(("content-security-policy", PAGE_POLICY))
        .insert_header(("referrer-policy", "same-origin"))
        .insert_header(("cross-origin-opener-policy", "same-origin"))
        .insert_header(("cache-control", "no-store"))
        .body(body)
}

/// An answer that a browser saves as a file. `name` is made of slugs.
#[must_use]
pub fn attachment(media: &str, name: &str) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .content_type(media)
        .insert_header(("content-disposition", format!("attachment; filename=\"{name}\"")))
        .insert_header(("cache-control", "no-store"))
        .insert_header(("x-content-type-options", "nosniff"));
    response
}
