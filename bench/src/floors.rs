//! The floors: minimal programs for the same requests. They run as child processes.

use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::json;
use sqlx::{PgPool, Row, postgres::PgPoolOptions};
use uuid::Uuid;

use crate::Failure;

/// Answers one row from an indexed SELECT as JSON, without credentials, tenants or metrics.
///
/// # Errors
/// If it cannot listen or connect.
pub async fn read(addr: &str, database: &str) -> Result<(), Failure> {
    let pool = PgPoolOptions::new().max_connections(16).test_before_acquire(false).connect(database).await?;
    let serve = |path: web::Path<Uuid>, pool: web::Data<PgPool>| async move {
        let row = sqlx::query("SELECT id, slug, name, description, personality_prompt FROM npc WHERE id = $1")
            .bind(*path)
            .fetch_optional(pool.get_ref())
            .await;
        match row {
            Ok(Some(row)) => HttpResponse::Ok().json(json!({
                "id": row.get::<Uuid, _>(0), "slug": row.get::<String, _>(1), "name": row.get::<String, _>(2),
                "description": row.get::<String, _>(3), "personality_prompt": row.get::<String, _>(4),
            })),
            Ok(None) => HttpResponse::NotFound().finish(),
            Err(_) => HttpResponse::InternalServerError().finish(),
        }
    };
    let pool = web::Data::new(pool);
    let server = HttpServer::new(move || App::new().app_data(pool.clone()).route("/npc/{id}", web::get().to(serve)));
    Ok(server.workers(2).bind(addr)?.run().await?)
}

/// Forwards the body to the model and its answer back. It reads, checks and stores nothing.
///
/// # Errors
/// If it cannot listen.
pub async fn forward(addr: &str, model: &str) -> Result<(), Failure> {
    let target = web::Data::new((reqwest::Client::new(), format!("{model}/chat/completions")));
    let serve = |body: web::Bytes, target: web::Data<(reqwest::Client, String)>| async move {
        let (client, url) = target.get_ref();
        let sent = client.post(url).header("content-type", "application/json").body(body).send().await;
        match sent {
            Ok(answer) => match answer.bytes().await {
                Ok(bytes) => HttpResponse::Ok().content_type("application/json").body(bytes),
                Err(_) => HttpResponse::BadGateway().finish(),
            },
            Err(_) => HttpResponse::BadGateway().finish(),
        }
    };
    let server = HttpServer::new(move || App::new().app_data(target.clone()).route("/", web::post().to(serve)));
    Ok(server.workers(2).bind(addr)?.run().await?)
}
