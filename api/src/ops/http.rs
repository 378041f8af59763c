//! `/healthz` (the process), `/readyz` (the database and its schema) and `/metrics`.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, Responder, http::header, web};
use migration::{Migrator, MigratorTrait};
use serde::Serialize;
use subtle::ConstantTimeEq;
use utoipa::ToSchema;

use crate::app::App;
use base::metrics;
use base::{
    error::{Code, Error, Problem, Result},
    stored::Columns,
};
use db::pool::{Need, with_need};
use edge::http::Answer;

/// The answer of a process that runs.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The version of the server.
    version: &'static str,
}

/// The answer of a server that takes requests.
#[derive(Serialize, ToSchema)]
pub struct Readiness {
    /// Always `ready`.
    status: &'static str,
    /// The model that turns use unless a tenant sets its own; `rehearsal` if none is configured.
    model: String,
}

/// Answers 200 while the process runs. Never uses the database.
#[utoipa::path(get, path = "/healthz",
    tag = "service", operation_id = "get_health", responses((status = 200, body = Health)))]
pub async fn healthz() -> Result<impl Responder> {
    Ok(Answer::ok(Health { status: "ok", version: env!("CARGO_PKG_VERSION") }))
}

/// Answers 200 if the database answers within a second and has all migrations of this server (a newer server may have added
/// more), and the server is not shutting down.
#[utoipa::path(get, path = "/readyz",
    tag = "service", operation_id = "get_readiness", responses((status = 200, body = Readiness), (status = 503, body = Problem)))]
pub async fn readyz(app: web::Data<App>) -> Result<impl Responder> {
    let not_ready = |why: &str| Error::new(Code::Unavailable, why).retry_after(2);
    if app.is_stopping() {
        return Err(not_ready("The server is shutting down."));
    }
    // A busy server counts as ready, so this must get a connection before requests do.
    let asked = with_need(Need::End, async {
        let mut lease = app.pool.acquire().await?;
        let row = sqlx::query("SELECT EXISTS (SELECT FROM seaql_migrations WHERE version = $1) AS made")
            .bind(Migrator::migrations().last().map(|newest| newest.name().to_owned()))
            .fetch_one(&mut *lease)
            .await?;
        lease.give_back();
        row.read::<bool>("made")
    });
    let asked = tokio::time::timeout(Duration::from_secs(1), asked);
    let is_migrated = asked
        .await
        .map_err(|_| not_ready("The database did not answer within a second."))?
        .map_err(|e| not_ready("The database cannot be reached.").with_cause(e))?;
    if !is_migrated {
        return Err(not_ready("The database's schema is older than this server: run `tavernkeep migrate`."));
    }
    Ok(Answer::ok(Readiness { status: "ready", model: app.config.llm_label().to_owned() }))
}

/// Returns all metrics in Prometheus's text format. If `TAVERNKEEP_METRICS_TOKEN` is set, that token is required as the
/// bearer token.
#[utoipa::path(get, path = "/metrics",
    tag = "service", operation_id = "get_metrics", responses((status = 200, content_type = "text/plain")))]
pub async fn scrape(app: web::Data<App>, request: HttpRequest) -> Result<HttpResponse> {
    if let Some(token) = &app.config.metrics_token {
        let given = request.headers().get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes).unwrap_or_default();
        if !bool::from(given.ct_eq(format!("Bearer {token}").as_bytes())) {
            return Err(Error::new(Code::Unauthenticated, "Metrics require the token in TAVERNKEEP_METRICS_TOKEN."));
        }
    }
    metrics::POOL.set(i64::try_from(app.pool.size()).unwrap_or(i64::MAX));
    metrics::POOL_WAITING.set(i64::try_from(app.pool.waiting()).unwrap_or(i64::MAX));
    metrics::PROMPT_CACHE_BYTES
        .set(i64::try_from(app.prompts.bytes() + app.session_prompts.bytes()).unwrap_or(i64::MAX));
    metrics::BREAKERS_OPEN.set(app.llm.open_breakers());
    Ok(HttpResponse::Ok().content_type("text/plain; version=0.0.4").body(metrics::text()))
}
