//! The HTTP server: its listener, its connections and all services. `serve` and the tests use the same one.

use std::{io, net::SocketAddr, time::Duration};

use actix_http::{HttpService, Request, Response, error::DispatchError};
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, apply_fn_factory, fn_service, map_config};
use actix_web::{
    App as ActixApp, Route,
    body::BoxBody,
    dev::{AppConfig, Server, ServiceResponse},
    middleware::from_fn,
    web,
};
use tokio::net::{TcpSocket, TcpStream};

use crate::{
    app::App,
    docs::{self, Documentation},
    routes,
};
use base::error::{Error, Result};
use edge::{
    auth::expect::expect,
    connections::Connection,
    http::{door, observe::observe},
    patterns::Row,
};
use pages::{admin, play};

/// The most connections that wait to be accepted.
const BACKLOG: u32 = 2048;

/// Binds and starts the HTTP server.
///
/// # Errors
/// `internal` if the address cannot be bound.
pub fn serve(app: web::Data<App>) -> Result<(Server, SocketAddr)> {
    let bind = app.config.bind;
    let failed = |e: io::Error| Error::internal(format!("cannot listen on {bind}: {e}"));
    let listener = listen(bind).map_err(failed)?;
    let addr = listener.local_addr().map_err(failed)?;
    let builder =
        Server::build().workers(app.config.workers).shutdown_timeout(app.config.shutdown_seconds).disable_signals();
    let ending = builder.graceful_shutdown_signal();
    let keep_alive = app.connection_limits.keep_alive;
    let server = builder.listen("http", listener, move || {
        let ending = ending.clone();
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let ending = ending.clone();
                async move { ending.notified().await }
            })
            .h1_allow_half_closed(false)
            .keep_alive(keep_alive)
            // `Connection` closes a connection whose request head is late. No client would expect an answer there.
            .client_request_timeout(Duration::ZERO)
            .local_addr(addr)
            .on_connect_ext(|connection: &Connection, data| {
                data.insert(connection.line());
            })
            .expect(fn_service({
                let app = app.clone();
                move |request| {
                    let app = app.clone();
                    // Boxed, because each connection holds the space for this and few clients ask.
                    Box::pin(async move { expect(&app, request).await })
                }
            }))
            .h1(apply_fn_factory(map_config(service(app.clone()), |()| AppConfig::default()), {
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
            let limits = app.connection_limits;
            let held = match app.proxies.trust(peer.ip()) {
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

/// The routes besides the API's and the editor's.
fn pages() -> Vec<Row<Route>> {
    let get = |path: &'static str, value| Row { method: "GET", pattern: path.into(), value };
    let mut rows = vec![
        get("/", web::get().to(admin::front_door)),
        get("/static/{name}", web::get().to(docs::static_file)),
        get("/favicon.ico", web::get().to(docs::favicon)),
    ];
    rows.extend(play::routes());
    rows
}

fn service(
    app: web::Data<App>,
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
        .configure(|config| app.into_inner().register(config))
        .app_data(web::Data::new(Documentation { published: routes::published }))
        .app_data(play::forms())
        .configure(admin::configure)
        .configure(|config| routes::configure(config, pages()))
        .wrap(from_fn(observe))
        .into_factory()
        .map_err(|error: actix_web::Error| Response::from(error))
}
