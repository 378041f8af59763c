//! The running server and its handle.
//!
//! The server runs on its own thread with its own actix system. So it works the same whether the caller is inside a
//! tokio runtime of any flavour or an actix system, and keeps running when the caller's runtime is busy. It must never
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

/// Longer than clients usually keep idle connections, so that the clients close them.
const KEEP_ALIVE: Duration = Duration::from_secs(120);

/// How to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on; port 0 takes a free one. There is no authentication, so stay on loopback.
    pub bind: SocketAddr,
    /// The script.
    pub script: Script,
    /// How many of the last requests to record; 0 records none.
    pub record_requests_max: usize,
    /// The number of worker threads, at least 1.
    pub workers: usize,
}

impl Default for Options {
    /// A free port on 127.0.0.1, no script, nothing recorded, one worker.
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

/// Starts a rehearsal model. It already answers when this returns.
///
/// # Errors
/// If the address cannot be bound, or the thread cannot be started.
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
                    // If the caller is gone, it has dropped the receiver, and there is nobody to serve.
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
    /// The address that it listens on.
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

    /// The headers of the recorded requests, oldest first, with names in lower case.
    #[must_use]
    pub fn request_headers(&self) -> Vec<Headers> {
        self.state.recorder().headers()
    }

    /// The number of chat requests since the start, recorded or not, answered or not.
    #[must_use]
    pub fn request_count(&self) -> usize {
        self.state.count()
    }

    /// Deletes the recorded requests. The count, the script's position and the prefix cache stay.
    pub fn clear(&self) {
        self.state.recorder().clear();
    }

    /// Replaces the script and starts it from its beginning.
    pub fn set_script(&self, script: Script) {
        self.state.set_script(script);
    }

    /// Releases this many [`held`](crate::Reply::held) replies: those that are waiting, otherwise the next ones of the
    /// same script. When a script is replaced, its waiting replies keep waiting.
    pub fn let_go(&self, replies: usize) {
        self.state.let_go(replies);
    }

    /// Stops at once, closes open connections, and returns when the port is free.
    pub async fn stop(mut self) {
        self.handle.stop(false).await;
        if let Some(ended) = self.ended.take() {
            let _thread_gone = ended.await;
        }
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        // Calling `stop` already sends the command. The future only waits for its completion.
        drop(self.handle.stop(false));
    }
}
