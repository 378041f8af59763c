//! A wire between a server and its database that tests can break: a TCP proxy that passes bytes on, cuts connections, or falls
//! silent.
//!
//! Silence is what a stopped process or a network without a route back looks like: the connection stays open, what is sent is still
//! acknowledged by the kernel, and nothing comes. What was said meanwhile is passed on when the wire is healed.

use std::{
    net::SocketAddr,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sqlx::{ConnectOptions, postgres::PgConnectOptions};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

use super::database::{Database, server_url};

/// What becomes of connections of one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Passing,
    Silent,
    Cut,
}

struct Shared {
    target: std::sync::Mutex<String>,
    /// What becomes of the connections that there are; new ones get a sender of their own with each change.
    generation: std::sync::Mutex<Vec<watch::Sender<State>>>,
    /// Whether new connections are silent from their first byte.
    silent_from_now: AtomicBool,
}

/// The wire; connections through it end with it.
pub struct Wire {
    addr: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Wire {
    /// A wire to a host and port.
    pub async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: std::sync::Mutex::new(target.to_owned()),
            generation: std::sync::Mutex::default(),
            silent_from_now: AtomicBool::new(false),
        });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Self { addr, shared, task }
    }

    /// A wire to the database server that tests use.
    pub async fn to_postgres() -> Self {
        let options = PgConnectOptions::from_str(&server_url()).unwrap();
        Self::to(&format!("{}:{}", options.get_host(), options.get_port())).await
    }

    /// New connections go to another host and port.
    pub fn aim(&self, target: &str) {
        target.clone_into(&mut self.shared.target.lock().unwrap());
    }

    /// A database as it is reached over this wire.
    pub fn database(&self, db: &Database) -> Database {
        db.by_way_of(self.url(&db.url))
    }

    /// A database's URL over this wire.
    pub fn url(&self, url: &str) -> String {
        let options = PgConnectOptions::from_str(url).unwrap();
        options.host("127.0.0.1").port(self.addr.port()).to_url_lossy().to_string()
    }

    /// The connections that there are now fall silent in both directions; new ones work.
    pub fn silence(&self) {
        self.tell(State::Silent);
    }

    /// The connections that there are and those to come fall silent, until [`Wire::heal`].
    pub fn silence_all(&self) {
        self.shared.silent_from_now.store(true, Ordering::SeqCst);
        self.tell(State::Silent);
    }

    /// The connections that there are now are closed; new ones work.
    pub fn cut(&self) {
        self.tell(State::Cut);
        self.shared.generation.lock().unwrap().clear();
    }

    /// Everything that is still open passes again, and new connections work.
    pub fn heal(&self) {
        self.shared.silent_from_now.store(false, Ordering::SeqCst);
        self.tell(State::Passing);
    }

    fn tell(&self, state: State) {
        let mut connections = self.shared.generation.lock().unwrap();
        connections.retain(|connection| connection.send(state).is_ok());
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((near, _)) = listener.accept().await else { return };
        let first = if shared.silent_from_now.load(Ordering::SeqCst) { State::Silent } else { State::Passing };
        let (sender, state) = watch::channel(first);
        shared.generation.lock().unwrap().push(sender);
        tokio::spawn(connect(near, shared.clone(), state));
    }
}

async fn connect(near: TcpStream, shared: Arc<Shared>, mut state: watch::Receiver<State>) {
    let target = shared.target.lock().unwrap().clone();
    if let Ok(far) = TcpStream::connect(target).await {
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let ((mut from_near, mut to_near), (mut from_far, mut to_far)) = (near.into_split(), far.into_split());
        let (there, back) = (state.clone(), state.clone());
        tokio::select! {
            () = pass(&mut from_near, &mut to_far, there) => {}
            () = pass(&mut from_far, &mut to_near, back) => {}
            _ = state.wait_for(|state| *state == State::Cut) => {}
        }
    }
}

/// Passes bytes on while the wire does, until an end closes. A silent wire passes on no end either.
async fn pass(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut state: watch::Receiver<State>,
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        if state.wait_for(|state| *state == State::Passing).await.is_err() {
            return;
        }
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = state.wait_for(|state| *state != State::Passing) => continue,
        };
        match read {
            Ok(read) if read > 0 => {
                if state.wait_for(|state| *state == State::Passing).await.is_err() {
                    return;
                }
                if to.write_all(&buffer[..read]).await.is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}
