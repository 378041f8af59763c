//! `/openapi.yaml`, `/docs` (rendered by the server, so that it works without the internet), `/problems/{code}`, and the
//! answer for paths that are none.

use std::{fmt::Write as _, io::Write as _, sync::LazyLock};

use actix_web::{HttpRequest, HttpResponse, get, web};
use askama::Template;
use flate2::{Compression, write::GzEncoder};
use utoipa::openapi::{
    Content, OpenApi, Ref, RefOr,
    path::{Operation, Parameter},
};

use crate::{
    auth::{Scope, access},
    error::{Code, Error, Problem, Result},
};

/// The OpenAPI document, as YAML and as what the pages show.
pub struct Documents {
    pub yaml: String,
    pub page: String,
}

impl Documents {
    /// Renders a document once.
    ///
    /// # Errors
    /// `internal` if the document cannot be written.
    pub fn of(api: &OpenApi, yaml: String) -> Result<Self> {
        let page = Docs { version: &api.info.version, groups: groups(api) }.render().map_err(Error::internal)?;
        Ok(Self { yaml, page })
    }
}

#[derive(Template)]
#[template(path = "docs.html")]
struct Docs<'a> {
    version: &'a str,
    groups: Vec<Group>,
}

struct Group {
    tag: String,
    routes: Vec<Route>,
}

struct Route {
    id: String,
    method: &'static str,
    path: String,
    summary: String,
    scope: String,
    parameters: Vec<(String, String, String)>,
    request: Option<String>,
    responses: Vec<(String, String)>,
}

fn groups(api: &OpenApi) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (path, item) in &api.paths.paths {
        let methods = [
            ("GET", &item.get),
            ("POST", &item.post),
            ("PUT", &item.put),
            ("PATCH", &item.patch),
            ("DELETE", &item.delete),
        ];
        for (method, operation) in methods.into_iter().filter_map(|(m, o)| Some((m, o.as_ref()?))) {
            let tag = operation.tags.as_ref().and_then(|t| t.first().cloned()).unwrap_or_else(|| "service".to_owned());
            let route = route(api, method, path, operation);
            match groups.iter_mut().find(|g| g.tag == tag) {
                Some(group) => group.routes.push(route),
                None => groups.push(Group { tag, routes: vec![route] }),
            }
        }
    }
    groups
}

/// What a route asks, in words.
fn scopes_of(access: &access::Access) -> String {
    let scope = |scope: Scope| match access.or.filter(|_| Some(scope) == access.scope) {
        Some(or) => format!("{} or {}", scope.as_str(), or.as_str()),
        None => scope.as_str().to_owned(),
    };
    let scopes: Vec<_> = access.scopes().map(scope).collect();
    if scopes.is_empty() { "any credential".to_owned() } else { scopes.join(" and ") }
}

fn route(api: &OpenApi, method: &'static str, path: &str, operation: &Operation) -> Route {
    let access = access::of(method, path);
    let parameters = operation.parameters.iter().flatten().filter_map(|p| parameter(api, p)).map(|p| {
        let place = serde_json::to_string(&p.parameter_in).unwrap_or_default().trim_matches('"').to_owned();
        (p.name.clone(), place, p.description.clone().unwrap_or_default())
    });
    let request = operation.request_body.as_ref().and_then(here).and_then(|b| schema_of(b.content.values()));
    let responses =
        operation.responses.responses.iter().map(|(status, r)| {
            (status.clone(), here(r).and_then(|r| schema_of(r.content.values())).unwrap_or_default())
        });
    Route {
        id: operation.operation_id.clone().unwrap_or_default(),
        method,
        path: path.to_owned(),
        summary: operation.summary.clone().unwrap_or_default(),
        scope: access.map_or_else(|| "none".to_owned(), scopes_of),
        parameters: parameters.collect(),
        request,
        responses: responses.collect(),
    }
}

/// A parameter, which is written once if many routes take it.
fn parameter<'a>(api: &'a OpenApi, item: &'a RefOr<Parameter>) -> Option<&'a Parameter> {
    match item {
        RefOr::T(item) => Some(item),
        RefOr::Ref(Ref { ref_location, .. }) => {
            let known = &api.components.as_ref()?.parameters;
            known.get(ref_location.rsplit('/').next()?).and_then(here)
        }
    }
}

/// What is written out where it is used; our documents hold no references but to schemas, parameters and headers.
fn here<T>(item: &RefOr<T>) -> Option<&T> {
    match item {
        RefOr::T(item) => Some(item),
        RefOr::Ref(_) => None,
    }
}

fn schema_of<'a>(mut contents: impl Iterator<Item = &'a RefOr<Content>>) -> Option<String> {
    contents.next().and_then(here).map(|c| pretty(&c.schema))
}

/// The name of a schema, without the path of its place in the document.
fn pretty(schema: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(schema).unwrap_or_default();
    match text.split("#/components/schemas/").nth(1).and_then(|t| t.split('"').next()) {
        Some(name) => name.to_owned(),
        None if text == "null" => String::new(),
        None => text,
    }
}

/// The API's description for machines.
#[utoipa::path(tag = "service", operation_id = "get_openapi", responses((status = 200, content_type = "application/yaml")))]
#[get("/openapi.yaml")]
pub async fn openapi(documents: web::Data<Documents>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/yaml").body(documents.yaml.clone())
}

/// The API's description for people.
#[utoipa::path(tag = "service", operation_id = "get_docs", responses((status = 200, content_type = "text/html")))]
#[get("/docs")]
pub async fn docs(documents: web::Data<Documents>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header(("content-security-policy", PAGE_POLICY))
        .body(documents.page.clone())
}

const PAGE_POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'";

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    code: Code,
}

/// What a problem's code means and what to do about it.
#[utoipa::path(tag = "service", operation_id = "get_problem", params(("code" = String, Path, description = "A problem's code")),
    responses((status = 200, content_type = "text/html"), (status = "default", body = Problem)))]
#[get("/problems/{code}")]
pub async fn problem(path: web::Path<String>) -> Result<HttpResponse> {
    let code = Code::ALL.iter().copied().find(|c| c.as_str() == path.as_str());
    let page = ProblemPage { code: code.ok_or_else(|| Error::not_found("problem code"))? };
    Ok(HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header(("content-security-policy", PAGE_POLICY))
        .body(page.render().map_err(Error::internal)?))
}

/// The files that pages use. htmx and its extension are vendored from their npm packages.
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

/// What browsers ask of every site, also of pages that name no icon.
#[get("/favicon.ico")]
pub async fn favicon(request: HttpRequest) -> Result<HttpResponse> {
    file(&request, "icon.svg")
}

/// The same files, made smaller once. Pages are not: they hold secrets beside what others wrote.
static SMALLER: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| ASSETS.iter().map(|(.., body)| gzip(body)).collect());

fn gzip(body: &str) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail; an empty result is not used.
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

/// Paths that ask for no credential, and so are not in the access table.
const OPEN: [&str; 5] = ["/healthz", "/readyz", "/metrics", "/openapi.yaml", "/docs"];

/// The error for a path that is no route, or none with this method.
#[must_use]
pub fn no_route(request: &HttpRequest) -> Error {
    let open = OPEN.contains(&request.path()).then_some("GET");
    let allowed: Vec<_> = access::methods(request.path()).into_iter().chain(open).collect();
    if allowed.is_empty() || allowed.contains(&request.method().as_str()) {
        return Error::not_found("page");
    }
    let mut detail = "This path takes ".to_owned();
    let _ = write!(detail, "{}.", allowed.join(", "));
    let mut error = Error::new(Code::MethodNotAllowed, detail);
    error.allow = Some(allowed.join(", "));
    error
}

/// Everything that no route took.
///
/// # Errors
/// Always: `not_found` or `method_not_allowed`.
pub async fn fallback(request: HttpRequest) -> Result<HttpResponse> {
    Err(no_route(&request))
}
