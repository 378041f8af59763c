//! The running server and its handle.
//!
//! The server lives on a thread with an actix system of its own, so it works the same whether the caller is inside a
//! tokio runtime of any flavour or an actix system, and goes on when the caller's runtime is busy. It must never
//! outlive its handle: dropping a [`Rehearsal`] stops it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::rt::System;
use actix_web::web::Data;
use actix_web::{App, HttpServer};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::http;
use crate::recorder::Headers;
use crate::script::Script;
use crate::state::State;

/// Longer than the time for which clients usually pool idle connections, so that it is they who close.
const KEEP_ALIVE: Duration = Duration::from_secs(120);

/// How to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one. There is no authentication: stay on loopback.
    pub bind: SocketAddr,
    /// What to answer.
    pub script: Script,
    /// How many of the last requests to keep; 0 keeps none.
    pub record_requests_max: usize,
    /// Worker threads, at least 1.
    pub workers: usize,
}

impl Default for Options {
    /// A free port on 127.0.0.1, the persona, nothing recorded, one worker.
    fn default() -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            script: Script::default(),
            record_requests_max: 0,
            workers: 1,
        }
    }
}

/// A running rehearsal model. Dropping it stops it.
pub struct Rehearsal {
    addr: SocketAddr,
    state: Data<State>,
    handle: ServerHandle,
    ended: Option<oneshot::Receiver<()>>,
}

/// Starts a rehearsal model. It answers when this returns.
///
/// # Errors
/// The address cannot be bound, or the thread cannot be started.
pub async fn start(options: Options) -> io::Result<Rehearsal> {
    let state = Data::new(State::new(options.script, options.record_requests_max));
    let (started, starting) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let shared = state.clone();
    let workers = options.workers.max(1);
    thread::Builder::new().name("rehearsal".to_owned()).spawn(move || {
        System::new().block_on(async move {
            match listen(options.bind, workers, shared) {
                Ok((server, addr)) => {
                    // A caller who is gone has dropped the receiver: then there is nobody to serve.
                    if started.send(Ok((addr, server.handle()))).is_ok() {
                        let _stopped = server.await;
                    }
                }
                Err(error) => {
                    let _gone = started.send(Err(error));
                }
            }
        });
        let _gone = end.send(());
    })?;
    let gone = |_| io::Error::other("the rehearsal model's thread ended before it listened");
    let (addr, handle) = starting.await.map_err(gone)??;
    Ok(Rehearsal { addr, state, handle, ended: Some(ended) })
}

fn listen(bind: SocketAddr, workers: usize, state: Data<State>) -> io::Result<(Server, SocketAddr)> {
    let server = HttpServer::new(move || App::new().app_data(state.clone()).configure(http::routes))
        .workers(workers)
        .keep_alive(KEEP_ALIVE)
        .h1_allow_half_closed(false)
        .tcp_nodelay(true)
        .disable_signals()
        .shutdown_timeout(1)
        .bind(bind)?;
    let addr = server.addrs().first().copied();
    let addr = addr.ok_or_else(|| io::Error::other("no address was bound"))?;
    Ok((server.run(), addr))
}

impl Rehearsal {
    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base URL for clients, such as `http://127.0.0.1:8123/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// The recorded request bodies, oldest first. A body that was not JSON is a string.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.state.recorder().bodies()
    }

    /// The headers of the recorded requests, oldest first; names in lower case.
    #[must_use]
    pub fn request_headers(&self) -> Vec<Headers> {
        self.state.recorder().headers()
    }

    /// All chat requests since the start, recorded or not, answered or not.
    #[must_use]
    pub fn request_count(&self) -> usize {
        self.state.count()
    }

    /// Forgets the recorded requests. The count, the script's position and the prefix cache stay.
    pub fn clear(&self) {
        self.state.recorder().clear();
    }

    /// Replaces the script and starts it from its beginning.
    pub fn set_script(&self, script: Script) {
        self.state.set_script(script);
    }

    /// Lets go of so many replies that are [`held`](crate::Reply::held): those that wait, else the next. A script that is replaced
    /// leaves those that wait waiting.
    pub fn let_go(&self, replies: usize) {
        self.state.let_go(replies);
    }

    /// Stops at once, open connections included, and returns when the port is free.
    pub async fn stop(mut self) {
        self.handle.stop(false).await;
        if let Some(ended) = self.ended.take() {
            let _thread_gone = ended.await;
        }
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        // The command is sent by the call itself; the future only waits for its completion.
        drop(self.handle.stop(false));
    }
}
