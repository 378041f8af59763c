//! `with-postgres`: a private PostgreSQL for the time of one command. For tests and benches.

use std::{path::Path, process::ExitCode};

use crate::{
    embedded_postgres,
    error::{Error, Result},
};

/// Starts the cluster, runs the command with `DATABASE_URL`, stops, and returns the command's exit code.
///
/// # Errors
/// `internal` if the cluster or the command cannot be started.
pub(super) async fn run(data_dir: &Path, command: &[String]) -> Result<ExitCode> {
    // Nothing here outlives the command, so what a power cut would lose need not be kept. Which commits wait stays
    // PostgreSQL's default, for tests look at it.
    let settings = [("max_connections", "200"), ("fsync", "off"), ("full_page_writes", "off")];
    let settings: &[_] = if std::env::var_os("TAVERNKEEP_DURABLE").is_some() { &settings[..1] } else { &settings };
    let cluster = embedded_postgres::start_with(data_dir, settings).await.map_err(Error::internal)?;
    let (program, arguments) = command.split_first().ok_or_else(|| Error::internal("no command"))?;
    let status =
        tokio::process::Command::new(program).args(arguments).env("DATABASE_URL", cluster.owner_url()).status().await;
    cluster.stop().await.map_err(Error::internal)?;
    let status = status.map_err(|e| Error::internal(format!("{program}: {e}")))?;
    Ok(ExitCode::from(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(1)))
}
