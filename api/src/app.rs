//! The application: its state and its HTTP service. `serve` and the tests use the same one.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_http::{HttpService, Request, Response, error::DispatchError};
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, apply_fn_factory, fn_service, map_config};
use actix_web::{
    App as ActixApp, HttpRequest,
    body::BoxBody,
    dev::{AppConfig, Server, ServiceResponse},
    middleware::from_fn,
    web,
};
use moka::future::Cache;
use tokio::net::{TcpSocket, TcpStream};

use crate::{
    admin,
    admission::Admission,
    auth::{jwt::Tokens, keys::Keys},
    bridge::Hub,
    config::Config,
    connections::{Connection, Connections},
    http::{
        docs::{self, Documents},
        door,
        observe::observe,
    },
    limits::Limits,
    models::Models,
    planner::Planner,
    play,
    prompt::cache::Prompts,
    routes,
    turns::{Running, gm::kept::Cache as Tables},
    users::passwords::Passwords,
};
use base::{
    error::{Error, Result},
    metrics,
    secrets::Secrets,
    stored::Columns,
};
use db::{feeds::Feeds, pool::Pool};

/// What every handler can reach.
pub struct App {
    pub config: Config,
    pub pool: Pool,
    pub keys: Keys,
    pub tokens: Tokens,
    pub secrets: Secrets,
    pub limits: Limits,
    pub admission: Admission,
    pub connections: Arc<Connections>,
    pub llm: Models,
    pub prompts: Prompts,
    /// Cached parts of sessions' prompts.
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
    /// Puts the parts together. `model` is the operator's endpoint or the rehearsal model's.
    ///
    /// # Errors
    /// `internal` if the model client cannot be made.
    pub fn new(config: Config, pool: Pool, secrets: Secrets, model: llm::Endpoint, instance: i64) -> Result<Self> {
        metrics::register_all();
        Ok(Self {
            keys: Keys::new(pool.clone()),
            tokens: Tokens::new(&secrets),
            limits: Limits::default(),
            admission: Admission::new(&config.admission),
            connections: Arc::default(),
            llm: Models::new(config.llm.clone(), model, config.models_allowed.clone(), config.reply_mode)?,
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

    /// Whether the server is shutting down and should get no more work.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// The address of the client that sent a request.
    #[must_use]
    pub fn client(&self, request: &HttpRequest) -> IpAddr {
        self.config.proxies.client(request.peer_addr(), request.headers())
    }

    /// Begins to shut down: readiness fails from now on, and streams and frontends' connections end.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.feeds.close();
        self.running.close();
        self.bridge.shut();
    }

    /// The allowed origins of all tenants, at most five seconds old; empty if the database cannot be reached.
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
        // This future is large and part of every request's future, so box it.
        Box::pin(self.origins.try_get_with((), load)).await.unwrap_or_default()
    }
}

/// The most connections that wait to be accepted.
const BACKLOG: u32 = 2048;

/// Binds and starts the HTTP server.
///
/// # Errors
/// `internal` if the address cannot be bound.
pub fn serve(app: web::Data<App>) -> Result<(Server, SocketAddr)> {
    let documents = web::Data::new(Documents::written()?);
    let bind = app.config.bind;
    let failed = |e: io::Error| Error::internal(format!("cannot listen on {bind}: {e}"));
    let listener = listen(bind).map_err(failed)?;
    let addr = listener.local_addr().map_err(failed)?;
    let builder =
        Server::build().workers(app.config.workers).shutdown_timeout(app.config.shutdown_seconds).disable_signals();
    let ending = builder.graceful_shutdown_signal();
    let server = builder.listen("http", listener, move || {
        let ending = ending.clone();
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let ending = ending.clone();
                async move { ending.notified().await }
            })
            .h1_allow_half_closed(false)
            // `Connection` closes a connection whose request head is late. No client would expect an answer there.
            .client_request_timeout(Duration::ZERO)
            .local_addr(addr)
            .on_connect_ext(|connection: &Connection, data| {
                data.insert(connection.line());
            })
            .h1(apply_fn_factory(map_config(service(app.clone(), documents.clone()), |()| AppConfig::default()), {
                let app = app.clone();
                move |request, inside: &_| door::enter(&app, request, inside)
            }));
        accept(app.clone()).and_then(http)
    });
    Ok((server.map_err(failed)?.run(), addr))
}

fn listen(bind: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = if bind.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(bind)?;
    socket.listen(BACKLOG)?.into_std()
}

/// Accepts a connection unless its address already holds as many as allowed.
fn accept(
    app: web::Data<App>,
) -> impl ServiceFactory<
    TcpStream,
    Config = (),
    Response = (Connection, Option<SocketAddr>),
    Error = DispatchError,
    InitError = (),
> {
    fn_service(move |io: TcpStream| {
        let app = app.clone();
        async move {
            let peer = io.peer_addr()?;
            // Events and frames are small. Without this they would wait for each other.
            io.set_nodelay(true)?;
            let limits = app.config.connections;
            let held = match app.config.proxies.trust(peer.ip()) {
                true => None,
                false => {
                    let held = app.connections.hold(peer.ip(), limits.per_address_max);
                    Some(held.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionRefused))?)
                }
            };
            Ok((Connection::new(io, limits.head_timeout, held), Some(peer)))
        }
    })
}

fn service(
    app: web::Data<App>,
    documents: web::Data<Documents>,
) -> impl ServiceFactory<
    Request,
    Config = AppConfig,
    Response = ServiceResponse<BoxBody>,
    Error = Response<BoxBody>,
    InitError = (),
    Future: 'static,
    Service: 'static,
> {
    ActixApp::new()
        .app_data(app)
        .app_data(documents)
        .configure(routes::configure)
        .service(docs::asset)
        .service(docs::favicon)
        .configure(play::configure)
        .configure(admin::configure)
        .route("/", web::get().to(admin::front_door))
        .default_service(web::to(docs::fallback))
        .wrap(from_fn(observe))
        .into_factory()
        .map_err(|error: actix_web::Error| Response::from(error))
}
