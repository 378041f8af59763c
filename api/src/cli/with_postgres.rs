//! `with-postgres`: a private PostgreSQL for the duration of one command, for tests and benches.

use std::{path::Path, process::ExitCode};

use base::error::{Error, Result};
use pgcluster::OWNER_ROLE;

/// The data need not survive a power cut, because nothing outlives the command. `synchronous_commit` keeps its default, because tests
/// check it. Checkpoints come only when somebody asks for them: after one, nobody can tell what became of an earlier commit.
const EPHEMERAL: [(&str, &str); 4] =
    [("fsync", "off"), ("full_page_writes", "off"), ("checkpoint_timeout", "1d"), ("max_wal_size", "4GB")];

/// Writes the file that says whom the cluster trusts: whoever connects from this machine as the owner of the tests' databases. To derive a
/// key from a password for each connection of a thousand tests takes longer than many of the tests. The superuser needs its password, and
/// the cluster of `serve` trusts nobody.
fn trusting_hba(data_dir: &Path) -> std::io::Result<String> {
    std::fs::create_dir_all(data_dir)?;
    let file = std::path::absolute(data_dir.join("trusting_hba.conf"))?;
    let lines = format!(
        "host all {OWNER_ROLE} 127.0.0.1/32 trust\nhost all {OWNER_ROLE} ::1/128 trust\n\
         host all all 127.0.0.1/32 scram-sha-256\nhost all all ::1/128 scram-sha-256\nlocal all all scram-sha-256\n"
    );
    std::fs::write(&file, lines)?;
    Ok(file.display().to_string())
}

/// Starts the cluster, runs the command with `DATABASE_URL`, stops the cluster, and returns the command's exit code.
///
/// # Errors
/// `internal` if the cluster or the command cannot be started.
pub(super) async fn run(data_dir: &Path, command: &[String]) -> Result<ExitCode> {
    let located = pgcluster::located(data_dir).map_err(Error::internal)?;
    let trusting = trusting_hba(&located).map_err(Error::internal)?;
    let mut settings = vec![("max_connections", "200"), ("hba_file", trusting.as_str())];
    if std::env::var_os("TAVERNKEEP_DURABLE").is_none() {
        settings.extend(EPHEMERAL);
    }
    let cluster = pgcluster::start_with(data_dir, &settings).await.map_err(Error::internal)?;
    let (program, arguments) = command.split_first().ok_or_else(|| Error::internal("no command was given"))?;
    let status =
        tokio::process::Command::new(program).args(arguments).env("DATABASE_URL", cluster.owner_url()).status().await;
    cluster.stop().await.map_err(Error::internal)?;
    let status = status.map_err(|e| Error::internal(format!("{program}: {e}")))?;
    Ok(ExitCode::from(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(1)))
}
