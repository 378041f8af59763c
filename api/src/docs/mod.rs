//! `/openapi.yaml`, `/docs` (rendered by the server, so that it works offline), `/problems/{code}`, static files, and
//! the answer for unknown paths.

mod page;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, StatusCode, header},
    web::{self, Bytes},
};
use askama::Template;
use base::error::{Code, Error, Problem, Result};
use edge::http::page::html;
use pages::assets;
use serde_json::Value;
use tokio::sync::OnceCell;

/// The OpenAPI document as it is in the repository. A test compares it with the routes.
const OPENAPI: &str = include_str!("../../../openapi.yaml");

/// Writes the page that shows the OpenAPI document, when somebody asks for it.
#[derive(Clone, Copy)]
pub struct Documentation {
    /// Makes the document.
    pub published: fn() -> Result<Value>,
}

impl Documentation {
    /// The page, which is written once per process.
    async fn page(self) -> Result<Bytes> {
        static WRITTEN: OnceCell<Bytes> = OnceCell::const_new();
        let write = move || page::render(&(self.published)()?).map(Bytes::from);
        let written = WRITTEN.get_or_try_init(async || web::block(write).await.map_err(Error::internal)?);
        written.await.cloned()
    }
}

/// The OpenAPI document.
#[utoipa::path(get, path = "/openapi.yaml",
    tag = "service", operation_id = "get_openapi", responses((status = 200, content_type = "application/yaml")))]
pub async fn openapi() -> HttpResponse {
    HttpResponse::Ok().content_type("application/yaml").body(OPENAPI)
}

/// The API documentation as a page.
#[utoipa::path(get, path = "/docs",
    tag = "service", operation_id = "get_docs", responses((status = 200, content_type = "text/html")))]
pub async fn docs(documentation: web::Data<Documentation>) -> Result<HttpResponse> {
    Ok(HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header(("content-security-policy", PAGE_POLICY))
        .body(documentation.page().await?))
}

const PAGE_POLICY: &str =
    "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'";

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    code: Code,
}

#[derive(Template)]
#[template(path = "no-page.html")]
struct NoPage;

/// Explains an error code: what it means and what to do about it.
#[utoipa::path(get, path = "/problems/{code}",
    tag = "service", operation_id = "get_problem", params(("code" = String, Path, description = "An error code")),
    responses((status = 200, content_type = "text/html"), (status = "default", body = Problem)))]
pub async fn problem(path: web::Path<String>) -> Result<HttpResponse> {
    let code = Code::ALL.iter().copied().find(|c| c.as_str() == path.as_str());
    let page = ProblemPage { code: code.ok_or_else(|| Error::not_found("problem code"))? };
    Ok(HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header(("content-security-policy", PAGE_POLICY))
        .body(page.render().map_err(Error::internal)?))
}

/// A file of the pages.
pub async fn static_file(request: HttpRequest, name: web::Path<String>) -> Result<HttpResponse> {
    file(&request, &name)
}

/// Browsers request this for every site, even when a page names another icon.
pub async fn favicon(request: HttpRequest) -> Result<HttpResponse> {
    file(&request, "icon.svg")
}

/// Files are compressed. Pages are not: they contain secrets beside text that others wrote.
fn file(request: &HttpRequest, name: &str) -> Result<HttpResponse> {
    let (asset, is_exact) = assets::find(name).ok_or_else(|| Error::not_found("file"))?;
    let kept = if is_exact { "public, max-age=31536000, immutable" } else { "public, max-age=300" };
    let mut answer = HttpResponse::Ok();
    answer
        .content_type(asset.media)
        .insert_header(("cache-control", kept))
        .insert_header(("x-content-type-options", "nosniff"))
        .insert_header(("vary", "accept-encoding"));
    match asset.gzip.as_ref().filter(|_| takes_gzip(request)) {
        Some(smaller) => Ok(answer.insert_header(("content-encoding", "gzip")).body(smaller.as_slice())),
        None => Ok(answer.body(asset.body.as_ref())),
    }
}

fn takes_gzip(request: &HttpRequest) -> bool {
    let accepted = request.headers().get("accept-encoding").and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0"))
    })
}

/// Answers for paths that do not exist: with a page for a browser, with a problem for a client of the API.
///
/// # Errors
/// `not_found`.
pub async fn elsewhere(request: HttpRequest) -> Result<HttpResponse> {
    if request.method() != Method::GET || !wants_page(&request) {
        return Err(Error::not_found("page"));
    }
    let mut answer = html(StatusCode::NOT_FOUND, NoPage.render().map_err(Error::internal)?);
    answer.headers_mut().insert(header::VARY, header::HeaderValue::from_static("accept"));
    Ok(answer)
}

/// Whether a browser shows the answer to a person.
fn wants_page(request: &HttpRequest) -> bool {
    let accepted = request.headers().get("accept").and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.starts_with("text/html"))
}
