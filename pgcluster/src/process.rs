//! Runs the server as a child process and always shuts it down properly, whatever happens to this process.
//!
//! The child is a small shell script (`KEEPER`) in its own process group. It runs PostgreSQL and reads a pipe that only
//! this process holds open. When the pipe closes, because we stop, drop the handle or are killed, the script asks
//! PostgreSQL for a fast shutdown. This module must never signal a process by a number from a file unless that process
//! is known to be our server.

use std::{
    ffi::OsStr,
    fs::File,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, SystemTime},
};

use sqlx::{
    ConnectOptions, PgConnection,
    postgres::{PgConnectOptions, PgSslMode},
};
use tokio::{
    process::{Child, ChildStdin, Command},
    time::{Instant, sleep, timeout},
};

use super::{
    binaries::Binaries,
    cluster::{run, server_command},
    error::EmbeddedError,
    place::Place,
    state::{SUPERUSER, State, create_private},
};

const START_SECONDS_MAX: u64 = 60;
const STOP_SECONDS_MAX: u64 = 60;
const POLL_MILLISECONDS: u64 = 50;
const LOG_TAIL_BYTES: usize = 4096;

/// Ignores signals from the terminal or a service manager, because they are meant for us. PostgreSQL sets its own
/// handlers.
const KEEPER: &str = r#"
trap '' HUP INT TERM
exec 3<&0 </dev/null
"$@" 3<&- &
server=$!
( read -r closed <&3; kill -INT "$server" ) &
reader=$!
exec 3<&-
wait "$server"
code=$?
kill -KILL "$reader" 2>/dev/null
exit "$code"
"#;

/// The running server.
pub(super) struct Server {
    child: Child,
    /// Closing this ends the server.
    lifeline: Option<ChildStdin>,
    pub(super) port: u16,
}

/// Starts the server on a free port and waits until it answers. Returns a superuser's connection.
pub(super) async fn launch(
    binaries: &Binaries,
    place: &Place,
    state: &State,
    settings: &[(&str, &str)],
) -> Result<(Server, PgConnection), EmbeddedError> {
    let deadline = Instant::now() + Duration::from_secs(START_SECONDS_MAX);
    loop {
        let mut server = spawn(binaries, place, settings)?;
        let error = match server.ready(place, state, deadline).await {
            Ok(connection) => return Ok((server, connection)),
            Err(error) => error,
        };
        if let Err(stopping) = server.stop(binaries, place).await {
            tracing::warn!(%stopping, "cannot stop a PostgreSQL that failed to start");
        }
        if Instant::now() >= deadline || !may_pass(&error) {
            return Err(error);
        }
        tracing::info!("PostgreSQL could not start yet; trying again");
        sleep(Duration::from_millis(10 * POLL_MILLISECONDS)).await;
    }
}

/// Whether retrying may help: another program took the port in the meantime, or a killed server's memory is still in
/// use.
fn may_pass(error: &EmbeddedError) -> bool {
    let EmbeddedError::Server { log, .. } = error else {
        return false;
    };
    ["Address already in use", "still in use", "could not bind"].iter().any(|text| log.contains(text))
}

fn spawn(binaries: &Binaries, place: &Place, settings: &[(&str, &str)]) -> Result<Server, EmbeddedError> {
    let port = free_port(&place.data_dir)?;
    let log = create_private(&start_log(place))?;
    let second = log.try_clone().map_err(EmbeddedError::io("open", &start_log(place)))?;
    let mut command = server_command(Path::new("/bin/sh"), place);
    command
        .args([OsStr::new("-c"), OsStr::new(KEEPER), OsStr::new("keeper")])
        .arg(binaries.program("postgres"))
        .args([OsStr::new("-D"), place.cluster().as_os_str()])
        .args(fixed_settings(port));
    for (name, value) in settings {
        command.args(["-c".to_owned(), format!("{name}={value}")]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(log)
        .stderr(second)
        .process_group(0)
        // Killing the script would leave the server running. Closing the pipe ends both.
        .kill_on_drop(false)
        .spawn()
        .map_err(EmbeddedError::spawn(Path::new("/bin/sh")))?;
    let lifeline = child.stdin.take();
    Ok(Server { child, lifeline, port })
}

/// Settings that override `postgresql.conf`: loopback only, no socket file, a log file.
fn fixed_settings(port: u16) -> Vec<String> {
    [
        format!("port={port}"),
        "listen_addresses=127.0.0.1".to_owned(),
        "unix_socket_directories=".to_owned(),
        "logging_collector=on".to_owned(),
        "log_directory=log".to_owned(),
    ]
    .into_iter()
    .flat_map(|setting| ["-c".to_owned(), setting])
    .collect()
}

fn free_port(data_dir: &Path) -> Result<u16, EmbeddedError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(EmbeddedError::io("find a free port for", data_dir))
}

impl Server {
    async fn ready(&mut self, place: &Place, state: &State, deadline: Instant) -> Result<PgConnection, EmbeddedError> {
        let options = options(SUPERUSER, &state.superuser_password, self.port, "postgres");
        loop {
            if let Some(status) = self.child.try_wait().map_err(lost(place))? {
                return Err(failure(place, format!("ended at once ({status})")));
            }
            let error = match timeout(Duration::from_secs(5), options.connect()).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => error.to_string(),
                Err(elapsed) => elapsed.to_string(),
            };
            if Instant::now() >= deadline {
                let what = format!("did not answer within {START_SECONDS_MAX} s ({error})");
                return Err(failure(place, what));
            }
            sleep(Duration::from_millis(POLL_MILLISECONDS)).await;
        }
    }

    /// Waits until the server ends by itself. Returns its status.
    pub(super) async fn wait(&mut self, place: &Place) -> Result<String, EmbeddedError> {
        let status = self.child.wait().await.map_err(lost(place))?;
        Ok(status.to_string())
    }

    /// Asks for a fast shutdown, and for an immediate one if that takes too long. Does nothing if the server has ended.
    pub(super) async fn stop(&mut self, binaries: &Binaries, place: &Place) -> Result<(), EmbeddedError> {
        self.lifeline = None;
        let patience = Duration::from_secs(STOP_SECONDS_MAX);
        if timeout(patience, self.child.wait()).await.is_err() {
            tracing::warn!("PostgreSQL is slow to stop; stopping it immediately");
        }
        // Needed even if the script has ended, because it may have been killed without its server.
        stop_leftover(binaries, place).await
    }
}

/// Stops a server that a killed process left running on this cluster. Removes a lock file that names an unrelated
/// process.
///
/// A dead process's lock file stays: PostgreSQL uses it to find out whether the dead server's workers still use its
/// memory.
pub(super) async fn stop_leftover(binaries: &Binaries, place: &Place) -> Result<(), EmbeddedError> {
    let cluster = place.cluster();
    let Some(pid) = postmaster_pid(&cluster) else {
        return Ok(());
    };
    let Some(arguments) = command_line(pid).await else {
        return Ok(());
    };
    if !arguments.contains(&format!("-D {}", cluster.display())) {
        // Another process has this number now. The file would keep the server from starting.
        let file = cluster.join("postmaster.pid");
        return std::fs::remove_file(&file).map_err(EmbeddedError::io("remove", &file));
    }
    tracing::info!(pid, "stopping a PostgreSQL that still runs on this cluster");
    if pg_ctl_stop(binaries, place, "fast").await.is_ok() {
        return Ok(());
    }
    match pg_ctl_stop(binaries, place, "immediate").await {
        // It may have ended by itself between the check and the signal.
        Err(_) if postmaster_pid(&cluster).is_none() => Ok(()),
        other => other,
    }
}

async fn pg_ctl_stop(binaries: &Binaries, place: &Place, mode: &str) -> Result<(), EmbeddedError> {
    let mut command = server_command(&binaries.program("pg_ctl"), place);
    command
        .args(["stop", "--wait", "--silent"])
        .arg(format!("--mode={mode}"))
        .arg(format!("--timeout={STOP_SECONDS_MAX}"))
        .arg("--pgdata")
        .arg(place.cluster());
    run(command, "pg_ctl stop").await
}

/// The process number in the server's lock file.
pub(super) fn postmaster_pid(cluster: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(cluster.join("postmaster.pid")).ok()?;
    text.lines().next()?.trim().parse().ok()
}

/// The command line of a running process. A zombie has none.
async fn command_line(pid: u32) -> Option<String> {
    if cfg!(target_os = "linux") {
        let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
        return (!text.trim().is_empty()).then_some(text);
    }
    let output = Command::new("ps").args(["-ww", "-o", "args=", "-p", &pid.to_string()]).output().await.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty() && !text.starts_with('(')).then_some(text)
}

pub(super) fn options(role: &str, password: &str, port: u16, database: &str) -> PgConnectOptions {
    PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(port)
        .username(role)
        .password(password)
        .database(database)
        .ssl_mode(PgSslMode::Disable)
        .disable_statement_logging()
}

fn lost(place: &Place) -> impl FnOnce(std::io::Error) -> EmbeddedError {
    EmbeddedError::io("watch the server of", &place.data_dir)
}

fn failure(place: &Place, what: String) -> EmbeddedError {
    EmbeddedError::Server { what, log: log_tail(place) }
}

/// The server's output before it opened its log file.
fn start_log(place: &Place) -> PathBuf {
    place.data_dir.join("postgres-start.log")
}

/// The last lines of the server's output, for error messages. Log files from before this start are left out.
pub(super) fn log_tail(place: &Place) -> String {
    let first = start_log(place);
    let started = modified(&first);
    let newest = newest_file(&place.cluster().join("log"));
    let current = newest.filter(|file| modified(file) >= started);
    let texts: Vec<String> = [Some(first), current].into_iter().flatten().filter_map(|file| tail_of(&file)).collect();
    texts.join("\n")
}

fn modified(file: &Path) -> Option<SystemTime> {
    file.metadata().ok()?.modified().ok()
}

fn newest_file(dir: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir).ok()?.flatten();
    entries.map(|entry| entry.path()).max_by_key(|path| modified(path))
}

fn tail_of(path: &Path) -> Option<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let start = length.saturating_sub(LOG_TAIL_BYTES as u64);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::with_capacity(LOG_TAIL_BYTES);
    file.take(LOG_TAIL_BYTES as u64).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let whole_lines = match start {
        0 => &*text,
        _ => text.split_once('\n').map_or(&*text, |(_, rest)| rest),
    };
    let trimmed = whole_lines.trim();
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}
