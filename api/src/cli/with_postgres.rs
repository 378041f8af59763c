//! `with-postgres`: a private PostgreSQL for the duration of one command, for tests and benches.

use std::{path::Path, process::ExitCode};

use base::error::{Error, Result};

/// Starts the cluster, runs the command with `DATABASE_URL`, stops the cluster, and returns the command's exit code.
///
/// # Errors
/// `internal` if the cluster or the command cannot be started.
pub(super) async fn run(data_dir: &Path, command: &[String]) -> Result<ExitCode> {
    // The data need not survive a power cut, because nothing outlives the command. `synchronous_commit` keeps its
    // default, because tests check it.
    let settings = [("max_connections", "200"), ("fsync", "off"), ("full_page_writes", "off")];
    let settings: &[_] = if std::env::var_os("TAVERNKEEP_DURABLE").is_some() { &settings[..1] } else { &settings };
    let cluster = pgcluster::start_with(data_dir, settings).await.map_err(Error::internal)?;
    let (program, arguments) = command.split_first().ok_or_else(|| Error::internal("no command was given"))?;
    let status =
        tokio::process::Command::new(program).args(arguments).env("DATABASE_URL", cluster.owner_url()).status().await;
    cluster.stop().await.map_err(Error::internal)?;
    let status = status.map_err(|e| Error::internal(format!("{program}: {e}")))?;
    Ok(ExitCode::from(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(1)))
}
