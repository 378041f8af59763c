//! `/openapi.yaml`, `/docs` (rendered by the server, so that it works offline), `/problems/{code}`, static files, and
//! the answer for unknown paths.

mod page;

use std::{io::Write as _, sync::LazyLock};

use actix_web::{
    HttpRequest, HttpResponse, get,
    web::{self, Bytes},
};
use askama::Template;
use base::error::{Code, Error, Problem, Result};
use edge::caller::access;
use flate2::{Compression, write::GzEncoder};
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
    "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'";

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    code: Code,
}

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

/// The files that pages use. htmx and its extension are copied from their npm packages.
const ASSETS: &[(&str, &str, &str)] = &[
    ("icon.svg", "image/svg+xml", include_str!("../../../static/icon.svg")),
    ("tavernkeep.css", "text/css; charset=utf-8", include_str!("../../../static/tavernkeep.css")),
    ("editor.js", "text/javascript; charset=utf-8", include_str!("../../../static/editor.js")),
    ("lists.js", "text/javascript; charset=utf-8", include_str!("../../../static/lists.js")),
    ("play.js", "text/javascript; charset=utf-8", include_str!("../../../static/play.js")),
    ("htmx.min.js", "text/javascript; charset=utf-8", include_str!("../../../static/vendor/htmx.min.js")),
    ("htmx-sse.min.js", "text/javascript; charset=utf-8", include_str!("../../../static/vendor/htmx-sse.min.js")),
];

/// A file of the pages.
#[get("/static/{name}")]
pub async fn asset(request: HttpRequest, name: web::Path<String>) -> Result<HttpResponse> {
    file(&request, &name)
}

/// Browsers request this for every site, even when a page names another icon.
#[get("/favicon.ico")]
pub async fn favicon(request: HttpRequest) -> Result<HttpResponse> {
    file(&request, "icon.svg")
}

/// The same files, compressed once. Pages are not compressed: they contain secrets beside text that others wrote.
static SMALLER: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| ASSETS.iter().map(|(.., body)| gzip(body)).collect());

fn gzip(body: &str) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail. An empty result is not used.
    out.write_all(body.as_bytes()).and_then(|()| out.finish()).unwrap_or_default()
}

fn file(request: &HttpRequest, name: &str) -> Result<HttpResponse> {
    let (at, (_, content_type, body)) =
        ASSETS.iter().enumerate().find(|(_, (known, ..))| *known == name).ok_or_else(|| Error::not_found("file"))?;
    let mut answer = HttpResponse::Ok();
    answer
        .content_type(*content_type)
        .insert_header(("cache-control", "public, max-age=3600"))
        .insert_header(("vary", "accept-encoding"));
    match SMALLER.get(at).filter(|smaller| !smaller.is_empty() && takes_gzip(request)) {
        Some(smaller) => Ok(answer.insert_header(("content-encoding", "gzip")).body(smaller.as_slice())),
        None => Ok(answer.body(*body)),
    }
}

fn takes_gzip(request: &HttpRequest) -> bool {
    let accepted = request.headers().get("accept-encoding").and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0"))
    })
}

/// Answers everything that no route handles.
///
/// # Errors
/// Always: `not_found` or `method_not_allowed`.
pub async fn fallback(request: HttpRequest) -> Result<HttpResponse> {
    Err(access::no_route(&request))
}
