//! How pages answer a browser: with HTML, or with a redirect.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header::HeaderValue},
};

/// Redirects a browser.
pub(super) fn see(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header(("location", path)).insert_header(("cache-control", "no-store")).finish()
}

/// A page with its security headers. Blocks have the same URL as the page, so caches must tell them apart.
pub(super) fn html(status: StatusCode, body: String) -> HttpResponse {
    let mut answer = edge::http::page::html(status, body);
    let vary = HeaderValue::from_static("HX-Request, HX-Target");
    answer.headers_mut().insert(actix_web::http::header::VARY, vary);
    answer
}

/// Whether htmx sent the request and puts the response into the page. When htmx restores a page from its history, it
/// needs the whole page.
pub(super) fn is_htmx(request: &HttpRequest) -> bool {
    request.headers().contains_key("hx-request") && !request.headers().contains_key("hx-history-restore-request")
}
