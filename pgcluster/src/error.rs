//! Errors of the embedded cluster, in sentences that an operator can act on.
//!
//! They must never contain a password, because errors are logged. To add one, add a variant whose text says what to do
//! next.

use std::path::{Path, PathBuf};

/// Why the embedded PostgreSQL could not be started, reached or stopped.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// The machine has no usable PostgreSQL server programs.
    #[error("{reason}. {advice}, or set DATABASE_URL to a running PostgreSQL server")]
    Binaries { reason: String, advice: String },
    /// Another process holds the lock of this data directory.
    #[error("{data_dir} is already used by {holder}. Stop it first, or set TAVERNKEEP_DATA_DIR to another directory")]
    InUse { data_dir: PathBuf, holder: String },
    /// The cluster's files belong to a unix user that this process cannot act as.
    #[error(
        "{path} belongs to the unix user with id {owner}, but this process runs as {uid}. Run it as that user, or set TAVERNKEEP_DATA_DIR to another directory"
    )]
    WrongOwner { path: PathBuf, owner: u32, uid: u32 },
    /// PostgreSQL cannot run as root, and there is no other user to run it.
    #[error("PostgreSQL refuses to run as root, and no other user can run it: {0}")]
    NoUser(String),
    /// `postgres.json` or the cluster directory was changed by somebody else.
    #[error("{path}: {reason}")]
    Damaged { path: PathBuf, reason: String },
    /// A file operation failed.
    #[error("cannot {doing} {path}: {source}")]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
    /// A program could not be started or failed.
    #[error("{program} failed ({status}): {output}")]
    Program { program: String, status: String, output: String },
    /// The server ended by itself, or did not answer in time.
    #[error("PostgreSQL {what}. The end of its log:\n{log}")]
    Server { what: String, log: String },
    /// A setup statement failed.
    #[error("cannot {doing} in the embedded PostgreSQL: {source}")]
    Database { doing: &'static str, source: sqlx::Error },
    /// The operating system provided no random bytes for a password.
    #[error("the operating system provided no random bytes: {0}")]
    Random(String),
}

impl EmbeddedError {
    /// For `map_err` on file operations: `EmbeddedError::io("read", &path)`.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> EmbeddedError {
        let path = path.to_path_buf();
        move |source| EmbeddedError::Io { doing, path, source }
    }

    /// For a program that could not be started at all.
    pub(super) fn spawn(program: &Path) -> impl FnOnce(std::io::Error) -> EmbeddedError {
        let program = program.display().to_string();
        move |source| EmbeddedError::Program { program, status: "not started".to_owned(), output: source.to_string() }
    }

    /// For `map_err` on setup statements.
    pub(super) fn database(doing: &'static str) -> impl FnOnce(sqlx::Error) -> EmbeddedError {
        move |source| EmbeddedError::Database { doing, source }
    }
}
