//! Makes the cluster directory, and the owner role and database in it.
//!
//! It must never touch the files of a finished cluster. `initdb` works in a temporary directory that is renamed when
//! complete, so an incomplete cluster is never mistaken for a finished one. `SETTINGS` has the server settings of new
//! clusters; operators change them in `cluster/postgresql.conf`.

use std::{
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
};

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::process::Command;

use super::{
    binaries::Binaries,
    error::EmbeddedError,
    place::Place,
    state::{self, DATABASE, OWNER_ROLE, SUPERUSER, State},
};

const UNFINISHED: &str = "cluster.tmp";

/// Appended to the `postgresql.conf` of a new cluster.
const SETTINGS: &str = "
# Tavernkeep's settings for a new cluster; edit them freely. Address, port and log file are given
# on the command line at each start.
shared_buffers = 128MB
max_connections = 60
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
# One log file for each day of the week, overwritten after seven days.
log_filename = 'postgres-%a.log'
log_rotation_age = 1d
log_rotation_size = 0
log_truncate_on_rotation = on
log_line_prefix = '%m [%p] %q%u@%d '
";

/// The major version of the finished cluster, if there is one.
pub(super) fn major(cluster: &Path) -> Result<Option<u32>, EmbeddedError> {
    let file = cluster.join("PG_VERSION");
    match std::fs::read_to_string(&file) {
        Ok(text) => text.trim().parse().map(Some).map_err(|_| EmbeddedError::Damaged {
            path: file,
            reason: format!("`{}` is not a version number", text.trim()),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EmbeddedError::io("read", &file)(error)),
    }
}

/// Runs `initdb` and moves its result into place.
pub(super) async fn initialize(binaries: &Binaries, place: &Place, state: &State) -> Result<(), EmbeddedError> {
    remove_unfinished(&place.data_dir)?;
    // Use a new name: an `initdb` that outlived its parent may still write to the old one.
    let suffix = state::random_hex(4)?;
    let unfinished = place.data_dir.join(format!("{UNFINISHED}-{suffix}"));
    let password = place.data_dir.join(format!("{UNFINISHED}-{suffix}.password"));
    std::fs::create_dir(&unfinished).map_err(EmbeddedError::io("create", &unfinished))?;
    place.hand_over(&unfinished)?;
    let mut file = state::create_private(&password)?;
    file.write_all(state.superuser_password.as_bytes()).map_err(EmbeddedError::io("write", &password))?;
    place.hand_over(&password)?;
    run_initdb(binaries, place, &unfinished, &password).await?;
    std::fs::remove_file(&password).map_err(EmbeddedError::io("remove", &password))?;
    append_settings(&unfinished.join("postgresql.conf"))?;
    let cluster = place.cluster();
    std::fs::rename(&unfinished, &cluster).map_err(EmbeddedError::io("create", &cluster))?;
    state::sync_dir(&place.data_dir)
}

/// Removes what earlier `initdb` runs left. It is best effort, because leftovers only take space.
fn remove_unfinished(data_dir: &Path) -> Result<(), EmbeddedError> {
    let entries = std::fs::read_dir(data_dir).map_err(EmbeddedError::io("list", data_dir))?;
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        let path = entry.path();
        let removed = match path.is_dir() {
            true => std::fs::remove_dir_all(&path),
            false => std::fs::remove_file(&path),
        };
        match removed {
            Ok(()) => tracing::info!(path = %path.display(), "removed an unfinished cluster"),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot remove an unfinished cluster");
            }
        }
    }
    Ok(())
}

async fn run_initdb(
    binaries: &Binaries,
    place: &Place,
    directory: &Path,
    password: &Path,
) -> Result<(), EmbeddedError> {
    let mut command = server_command(&binaries.program("initdb"), place);
    command
        .args(["--auth=scram-sha-256", "--encoding=UTF8", "--data-checksums"])
        // Byte-wise sorting never changes with the system's libraries. Letters are still those of Unicode.
        .arg("--locale=C")
        .arg(format!("--lc-ctype={}", unicode_ctype().await))
        .arg(format!("--username={SUPERUSER}"))
        .arg(argument("--pwfile=", password))
        .arg(argument("--pgdata=", directory));
    run(command, "initdb").await
}

/// `--option=/a/path`, also for paths that are not valid UTF-8.
fn argument(option: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(option);
    argument.push(path);
    argument
}

/// A command that runs as the server's user in an empty environment, without our secrets and without `PG…` variables.
pub(super) fn server_command(program: &Path, place: &Place) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(["PATH", "LD_LIBRARY_PATH"].iter().filter_map(|name| Some((*name, std::env::var_os(name)?))))
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if let Some(user) = &place.run_as {
        command.gid(user.gid).uid(user.uid);
    }
    command
}

/// Runs a command to its end. If it fails, its output becomes the error.
pub(super) async fn run(mut command: Command, name: &str) -> Result<(), EmbeddedError> {
    let program = PathBuf::from(command.as_std().get_program());
    let output = command.output().await.map_err(EmbeddedError::spawn(&program))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(EmbeddedError::Program {
        program: name.to_owned(),
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&text).trim().to_owned(),
    })
}

/// A locale that knows all Unicode letters, or `C` (ASCII only) if the system has none.
async fn unicode_ctype() -> String {
    let output = Command::new("locale").arg("-a").output().await;
    let text = output.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).into_owned());
    let plain = |name: &str| name.to_ascii_lowercase().replace('-', "");
    ["c.utf8", "en_us.utf8"]
        .iter()
        .find_map(|wanted| text.lines().find(|name| plain(name) == *wanted))
        .unwrap_or("C")
        .to_owned()
}

fn append_settings(conf: &Path) -> Result<(), EmbeddedError> {
    OpenOptions::new()
        .append(true)
        .open(conf)
        .and_then(|mut file| {
            file.write_all(SETTINGS.as_bytes())?;
            file.sync_all()
        })
        .map_err(EmbeddedError::io("write", conf))
}

/// Creates the role that owns the database, and the database, unless they exist.
///
/// The owner may create roles, so that migrations can create the application's role. To assume a role that it created
/// it must first `GRANT role TO CURRENT_USER`: in version 15 a role's creator is not a member of it, and from 16 on it
/// is a member that may not `SET ROLE`.
pub(super) async fn ensure_owner(superuser: &mut PgConnection, state: &State) -> Result<(), EmbeddedError> {
    let doing = "create the owner role";
    let exists = "select exists (select from pg_roles where rolname = $1)";
    let known: bool = sqlx::query_scalar(exists)
        .bind(OWNER_ROLE)
        .fetch_one(&mut *superuser)
        .await
        .map_err(EmbeddedError::database(doing))?;
    let verb = if known { "alter" } else { "create" };
    // Utility statements take no parameters, but the password is hexadecimal, so it needs no escaping.
    let role = format!(
        "{verb} role {OWNER_ROLE} with login createrole createdb nosuperuser nobypassrls noreplication password '{}'",
        state.owner_password
    );
    execute(superuser, role, doing).await?;
    let doing = "create the database";
    let exists = "select exists (select from pg_database where datname = $1)";
    let known: bool = sqlx::query_scalar(exists)
        .bind(DATABASE)
        .fetch_one(&mut *superuser)
        .await
        .map_err(EmbeddedError::database(doing))?;
    if !known {
        execute(superuser, format!("create database {DATABASE} owner {OWNER_ROLE}"), doing).await?;
    }
    Ok(())
}

async fn execute(connection: &mut PgConnection, statement: String, doing: &'static str) -> Result<(), EmbeddedError> {
    connection.execute(AssertSqlSafe(statement)).await.map(|_| ()).map_err(EmbeddedError::database(doing))
}

/// Closes a connection properly. A failure has no consequences.
pub(super) async fn close(connection: PgConnection) {
    if let Err(error) = connection.close().await {
        tracing::debug!(%error, "closing a set-up connection failed");
    }
}
