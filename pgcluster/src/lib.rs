//! A private PostgreSQL cluster, run with the machine's own programs if `DATABASE_URL` is not set.
//!
//! It listens on loopback only, on a port chosen at each start. Its passwords are in `postgres.json` (mode 0600) next
//! to the cluster. It must never run as root, listen elsewhere, outlive this process, or touch a cluster that it did
//! not make. `binaries` finds the programs, `place` decides on the directory and the unix user, `cluster` makes the
//! files, the owner role and the database, and `process` runs the server. Add new steps of the start to [`start_with`].

mod binaries;
mod cluster;
mod error;
mod place;
mod process;
mod state;

use std::{
    fmt,
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::Duration,
};

use sqlx::{Connection, PgConnection};

use self::{
    place::Place,
    process::Server,
    state::{Running, State},
};

pub use self::{
    binaries::{Binaries, OLDEST_MAJOR, find_binaries},
    error::EmbeddedError,
    state::{DATABASE, OWNER_ROLE},
};

const PROBE_SECONDS_MAX: u64 = 5;

/// A running cluster. Dropping it also ends the server, but does not wait for that.
pub struct EmbeddedPostgres {
    binaries: Binaries,
    place: Place,
    state: State,
    server: Server,
    owner_url: String,
    superuser_url: String,
    _lock: Lock,
}

/// The server ended although nobody asked it to.
#[derive(Clone, Debug)]
pub struct ExitNotice {
    /// The exit status, such as `exit status: 137`.
    pub status: String,
    /// The last lines of its log.
    pub log: String,
}

impl fmt::Display for ExitNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExitNotice { status, log } = self;
        write!(f, "the embedded PostgreSQL ended by itself ({status}). The end of its log:\n{log}")
    }
}

/// Starts the cluster in `data_dir`, and makes it first if there is none.
///
/// # Errors
/// Missing programs, another process that uses the directory, an unusable directory, or a server that does not answer
/// within 60 s (with the end of its log).
pub async fn start(data_dir: &Path) -> Result<EmbeddedPostgres, EmbeddedError> {
    start_with(data_dir, &[]).await
}

/// Like [`start`], with server settings for this run only, such as `("max_connections", "200")`.
///
/// # Errors
/// As for [`start`].
pub async fn start_with(data_dir: &Path, settings: &[(&str, &str)]) -> Result<EmbeddedPostgres, EmbeddedError> {
    let place = place::locate(data_dir)?;
    place.create()?;
    let lock = lock(&place)?;
    let cluster = place.cluster();
    let major = cluster::major(&cluster)?;
    let binaries = binaries::find_for(major)?;
    let mut state = match (State::read(&place.data_dir)?, major) {
        (Some(state), _) => state,
        (None, None) => State::create(&place.data_dir)?,
        (None, Some(_)) => return Err(passwords_lost(&place)),
    };
    if major.is_none() {
        tracing::info!(data_dir = %place.data_dir.display(), version = binaries.major(), "making a PostgreSQL cluster");
        cluster::initialize(&binaries, &place, &state).await?;
    }
    process::stop_leftover(&binaries, &place).await?;
    let (server, mut superuser) = process::launch(&binaries, &place, &state, settings).await?;
    cluster::ensure_owner(&mut superuser, &state).await?;
    cluster::close(superuser).await;
    let owner_url = state.owner_url(server.port);
    state.running =
        Some(Running { pid: process::postmaster_pid(&cluster), port: server.port, owner_url: owner_url.clone() });
    state.write(&place.data_dir)?;
    tracing::info!(data_dir = %place.data_dir.display(), port = server.port, "the embedded PostgreSQL is running");
    Ok(EmbeddedPostgres {
        owner_url,
        superuser_url: state.superuser_url(server.port),
        binaries,
        place,
        state,
        server,
        _lock: lock,
    })
}

/// The owner's URL of a cluster that another process runs in `data_dir`; `None` if there is none.
///
/// # Errors
/// If `postgres.json` cannot be read, for example because it belongs to another unix user.
pub async fn connection_url_of_running(data_dir: &Path) -> Result<Option<String>, EmbeddedError> {
    let place = place::locate(data_dir)?;
    let state = State::read(&place.data_dir)?;
    let Some(url) = state.and_then(|s| s.running).map(|r| r.owner_url) else {
        return Ok(None);
    };
    // Only the right server knows the password, so an answer proves that the file is not stale.
    let probe = tokio::time::timeout(Duration::from_secs(PROBE_SECONDS_MAX), PgConnection::connect(&url));
    match probe.await {
        Ok(Ok(connection)) => {
            cluster::close(connection).await;
            Ok(Some(url))
        }
        Ok(Err(_)) | Err(_) => Ok(None),
    }
}

/// The real directory of the cluster of `data_dir`.
///
/// # Errors
/// If there is no suitable unix user to run it.
pub fn located(data_dir: &Path) -> Result<std::path::PathBuf, EmbeddedError> {
    Ok(place::locate(data_dir)?.data_dir)
}

impl EmbeddedPostgres {
    /// The `postgres://…` URL of the owner role (not a superuser) for the application's database.
    pub fn owner_url(&self) -> &str {
        &self.owner_url
    }

    /// The URL of the cluster's superuser, for tests and repairs, never for serving.
    pub fn superuser_url(&self) -> &str {
        &self.superuser_url
    }

    /// The directory in use, which may be a fallback.
    pub fn data_dir(&self) -> &Path {
        &self.place.data_dir
    }

    /// Notes for the operator, such as the use of a fallback directory.
    pub fn notes(&self) -> &[String] {
        &self.place.notes
    }

    /// Waits until the server ends by itself. It may be cancelled and called again.
    pub async fn wait(&mut self) -> ExitNotice {
        let status = match self.server.wait(&self.place).await {
            Ok(status) => status,
            Err(error) => error.to_string(),
        };
        ExitNotice { status, log: process::log_tail(&self.place) }
    }

    /// Stops the server and waits for its end.
    ///
    /// # Errors
    /// If it cannot be stopped, or `postgres.json` cannot be written.
    pub async fn stop(mut self) -> Result<(), EmbeddedError> {
        self.server.stop(&self.binaries, &self.place).await?;
        self.state.running = None;
        self.state.write(&self.place.data_dir)
    }

    /// Stops the server and deletes the whole data directory. For temporary clusters.
    ///
    /// # Errors
    /// As for [`EmbeddedPostgres::stop`], or if a file cannot be deleted.
    pub async fn stop_and_delete(mut self) -> Result<(), EmbeddedError> {
        self.server.stop(&self.binaries, &self.place).await?;
        let dir = &self.place.data_dir;
        std::fs::remove_dir_all(dir).map_err(EmbeddedError::io("delete", dir))
    }
}

fn passwords_lost(place: &Place) -> EmbeddedError {
    EmbeddedError::Damaged {
        path: State::path(&place.data_dir),
        reason: "is missing. It has the passwords of the cluster next to it; restore it from a backup".to_owned(),
    }
}

/// The lock of a data directory. Closing the file would not be enough to free it: a child that this process is just
/// starting holds a copy of the file until it runs its own program.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "cannot unlock the data directory of the embedded PostgreSQL");
        }
    }
}

/// Locks the data directory for one process. The kernel frees the lock when that process ends.
fn lock(place: &Place) -> Result<Lock, EmbeddedError> {
    let path = place.data_dir.join("serve.lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(EmbeddedError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(in_use(place, &mut file)),
        Err(TryLockError::Error(error)) => return Err(EmbeddedError::io("lock", &path)(error)),
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| write!(file, "{}", std::process::id()))
        .map_err(EmbeddedError::io("write", &path))?;
    Ok(Lock(file))
}

fn in_use(place: &Place, file: &mut File) -> EmbeddedError {
    let mut pid = String::new();
    let holder = match file.read_to_string(&mut pid) {
        Ok(1..) => format!("process {pid}"),
        Ok(0) | Err(_) => "another process".to_owned(),
    };
    EmbeddedError::InUse { data_dir: place.data_dir.clone(), holder }
}
