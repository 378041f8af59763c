//! A wire between a server and PostgreSQL that is cut at one word: before PostgreSQL hears it, or before its answer comes back.
//! It can also hold that answer back.

use std::{
    str::FromStr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use sqlx::{ConnectOptions, postgres::PgConnectOptions};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, RwLockReadGuard},
};

use super::database::{Database, server_url, without_checkpoints};

/// When the wire is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// PostgreSQL never hears the word.
    Before,
    /// PostgreSQL has answered, and nobody hears that.
    After,
    /// Nothing is cut. PostgreSQL has answered, and that is heard after [`Cutter::let_through`].
    Held,
}

#[derive(Default)]
struct Shared {
    /// The word that is waited for, when to cut, and how often.
    word: Mutex<Option<(Vec<u8>, Moment, usize)>>,
    cuts: AtomicUsize,
    /// How often it was told what to wait for.
    told: AtomicUsize,
    refuses: AtomicBool,
    all: Notify,
    through: Notify,
}

/// The wire.
pub struct Cutter {
    port: u16,
    shared: Arc<Shared>,
    /// What became of a commit whose answer is cut off is to be found out.
    _no_checkpoints: RwLockReadGuard<'static, ()>,
}

impl Cutter {
    /// A wire to the server that tests use.
    pub async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let options = PgConnectOptions::from_str(&server_url()).unwrap();
        let target = format!("{}:{}", options.get_host(), options.get_port());
        let shared = Arc::new(Shared::default());
        tokio::spawn(accept(listener, target, shared.clone()));
        Self { port, shared, _no_checkpoints: without_checkpoints().await }
    }

    /// A database as it is reached over this wire.
    pub fn database(&self, db: &Database) -> Database {
        let options = PgConnectOptions::from_str(&db.url).unwrap().host("127.0.0.1").port(self.port);
        db.by_way_of(options.to_url_lossy().to_string())
    }

    /// Cuts the connections that say `word`, so many times.
    pub fn at(&self, word: &str, moment: Moment, times: usize) {
        self.shared.cuts.store(0, Ordering::SeqCst);
        self.shared.told.fetch_add(1, Ordering::SeqCst);
        *self.shared.word.lock().unwrap() = Some((word.as_bytes().to_vec(), moment, times));
    }

    /// How often it was cut since it was told to.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// Passes on the answer that is held back.
    pub fn let_through(&self) {
        self.shared.through.notify_one();
    }

    /// Cuts every connection and takes no new ones, until told otherwise.
    pub fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, Ordering::SeqCst);
        if refuses {
            self.shared.all.notify_waiters();
        }
    }
}

async fn accept(listener: TcpListener, target: String, shared: Arc<Shared>) {
    while let Ok((near, _)) = listener.accept().await {
        if !shared.refuses.load(Ordering::SeqCst) {
            let far = TcpStream::connect(&target).await.unwrap();
            tokio::spawn(pass(near, far, shared.clone()));
        }
    }
}

/// Passes bytes on until either end has enough of it, or it is time to cut.
async fn pass(mut near: TcpStream, mut far: TcpStream, shared: Arc<Shared>) {
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut said: Vec<u8> = Vec::new();
    let (mut is_cut, mut is_held, mut told) = (false, false, 0);
    loop {
        tokio::select! {
            () = shared.all.notified() => return,
            read = near.read(&mut asked) => {
                let Ok(n @ 1..) = read else { return };
                // What was said before somebody waits for it does not count.
                let now = shared.told.load(Ordering::SeqCst);
                if told != now {
                    told = now;
                    said.clear();
                }
                said.extend_from_slice(&asked[..n]);
                let moment = shared.heard(&said);
                if moment == Some(Moment::Before) {
                    return;
                }
                is_cut |= moment == Some(Moment::After);
                is_held |= moment == Some(Moment::Held);
                // A word may come in two pieces.
                let kept = said.len().saturating_sub(64);
                said.drain(..kept);
                if moment.is_some() {
                    said.clear();
                }
                if far.write_all(&asked[..n]).await.is_err() {
                    return;
                }
            }
            read = far.read(&mut answered) => {
                let Ok(n @ 1..) = read else { return };
                if is_cut {
                    return;
                }
                if std::mem::take(&mut is_held) {
                    shared.through.notified().await;
                }
                if near.write_all(&answered[..n]).await.is_err() {
                    return;
                }
            }
        }
    }
}

impl Shared {
    fn heard(&self, said: &[u8]) -> Option<Moment> {
        let mut word = self.word.lock().unwrap();
        let (wanted, moment, times) = word.as_mut()?;
        if *times == 0 || !said.windows(wanted.len()).any(|window| window == &wanted[..]) {
            return None;
        }
        *times -= 1;
        self.cuts.fetch_add(1, Ordering::SeqCst);
        Some(*moment)
    }
}
