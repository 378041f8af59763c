//! The application: its state, and the service made of it, the same for `serve` and for tests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_web::{App as ActixApp, HttpServer, dev::Server, middleware::from_fn, web};
use moka::future::Cache;

use crate::{
    admin,
    auth::{jwt::Tokens, keys::Keys},
    bridge::Hub,
    config::Config,
    error::{Error, Result},
    feeds::Feeds,
    http::{docs, docs::Documents, observe::observe},
    limits::Limits,
    models::Models,
    ops::metrics,
    planner::Planner,
    play,
    pool::Pool,
    prompt::cache::Prompts,
    routes,
    secrets::Secrets,
    stored::Columns,
    turns::{Running, gm::kept::Cache as Tables},
    users::passwords::Passwords,
};

/// What every handler can reach.
pub struct App {
    pub config: Config,
    pub pool: Pool,
    pub keys: Keys,
    pub tokens: Tokens,
    pub secrets: Secrets,
    pub limits: Limits,
    pub llm: Models,
    pub prompts: Prompts,
    /// What is kept of sessions' prompts.
    pub tables: Tables,
    pub planner: Planner,
    pub running: Running,
    pub feeds: Feeds,
    pub bridge: Arc<Hub>,
    pub passwords: Passwords,
    origins: Cache<(), Arc<Vec<String>>>,
    stopping: AtomicBool,
}

impl App {
    /// Puts the parts together. The model's endpoint is the operator's or the rehearsal model's.
    ///
    /// # Errors
    /// `internal` if the model client cannot be made.
    pub fn new(
        config: Config,
        pool: Pool,
        secrets: Secrets,
        model: crate::llm::Endpoint,
        instance: i64,
    ) -> Result<Self> {
        metrics::register_all();
        Ok(Self {
            keys: Keys::new(pool.clone()),
            tokens: Tokens::new(&secrets),
            limits: Limits::default(),
            llm: Models::new(config.llm.clone(), model, config.reply_mode)?,
            prompts: Prompts::new(config.prompt_cache_bytes_max / 4 * 3),
            tables: Tables::new(config.prompt_cache_bytes_max / 4),
            planner: Planner::new(config.planner.plan_kept),
            running: Running::new(instance),
            feeds: Feeds::default(),
            bridge: Arc::default(),
            passwords: Passwords::default(),
            origins: Cache::builder().max_capacity(1).time_to_live(Duration::from_secs(5)).build(),
            stopping: AtomicBool::new(false),
            config,
            pool,
            secrets,
        })
    }

    /// Whether the server is shutting down, so that no one should send it more work.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// From now on readiness fails, and streams and frontends' connections end.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.feeds.close();
        self.bridge.shut();
    }

    /// The origins of all tenants, at most five seconds old; none if the database cannot be asked.
    pub async fn origins(&self) -> Arc<Vec<String>> {
        let load = async {
            let rows = sqlx::query("SELECT * FROM all_origins() AS origin")
                .fetch_all(&mut *self.pool.acquire().await?)
                .await?;
            rows.iter().map(|row| row.read("origin")).collect::<Result<Vec<String>>>().map(Arc::new)
        };
        if let Some(known) = self.origins.get(&()).await {
            return known;
        }
        // Large, and waited for within every request: kept out of what each of them holds.
        Box::pin(self.origins.try_get_with((), load)).await.unwrap_or_default()
    }
}

/// Binds and starts the HTTP server.
///
/// # Errors
/// `internal` if the address cannot be bound.
pub fn serve(app: web::Data<App>) -> Result<(Server, std::net::SocketAddr)> {
    let documents = web::Data::new(Documents::of(&routes::document())?);
    let (workers, shutdown, bind) = (app.config.workers, app.config.shutdown_seconds, app.config.bind);
    let server = HttpServer::new(move || {
        ActixApp::new()
            .app_data(app.clone())
            .app_data(documents.clone())
            .configure(routes::configure)
            .service(docs::asset)
            .service(docs::favicon)
            .configure(play::configure)
            .configure(admin::configure)
            .route("/", web::get().to(admin::front_door))
            .default_service(web::to(docs::fallback))
            .wrap(from_fn(observe))
    })
    .workers(workers)
    .h1_allow_half_closed(false)
    // Events and frames are small, and are not to wait for each other.
    .tcp_nodelay(true)
    .client_request_timeout(Duration::from_secs(10))
    .shutdown_timeout(shutdown)
    .disable_signals()
    .bind(bind)
    .map_err(|e| Error::internal(format!("cannot listen on {bind}: {e}")))?;
    let addr = server.addrs().first().copied().unwrap_or(bind);
    Ok((server.run(), addr))
}
