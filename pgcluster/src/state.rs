//! `postgres.json` next to the cluster: the passwords, and where the server listens while it runs.
//!
//! Others must never be able to read the file, and it must only be written by replacing it whole. A new field needs a
//! serde default, so that older files stay readable.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use rand::{TryRng, rngs::SysRng};
use serde::{Deserialize, Serialize};

use super::error::EmbeddedError;

/// The owner role. It is not a superuser, but may create roles and databases.
pub const OWNER_ROLE: &str = "tavernkeep_owner";
/// The application's database.
pub const DATABASE: &str = "tavernkeep";
/// The role that `initdb` creates.
pub(super) const SUPERUSER: &str = "postgres";

/// What is stored between starts.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) superuser_password: String,
    pub(super) owner_password: String,
    #[serde(default)]
    pub(super) running: Option<Running>,
}

/// What is only true while the server runs.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Running {
    pub(super) pid: Option<u32>,
    pub(super) port: u16,
    pub(super) owner_url: String,
}

impl State {
    pub(super) fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("postgres.json")
    }

    pub(super) fn read(data_dir: &Path) -> Result<Option<State>, EmbeddedError> {
        let path = State::path(data_dir);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(EmbeddedError::io("read", &path)(error)),
        };
        // The parser's message could quote a password, so report only the position.
        serde_json::from_slice(&text).map(Some).map_err(|error| EmbeddedError::Damaged {
            path,
            reason: format!(
                "is not valid at line {}, column {}; restore it from a backup",
                error.line(),
                error.column()
            ),
        })
    }

    /// Makes new passwords and writes them before anything depends on them.
    pub(super) fn create(data_dir: &Path) -> Result<State, EmbeddedError> {
        let state = State { superuser_password: random_hex(32)?, owner_password: random_hex(32)?, running: None };
        state.write(data_dir)?;
        Ok(state)
    }

    pub(super) fn write(&self, data_dir: &Path) -> Result<(), EmbeddedError> {
        let path = State::path(data_dir);
        let next = data_dir.join("postgres.json.new");
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| EmbeddedError::Damaged { path: path.clone(), reason: error.to_string() })?;
        text.push(b'\n');
        let mut file = create_private(&next)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(EmbeddedError::io("write", &next))?;
        give_to_owner_of(data_dir, &file, &next)?;
        std::fs::rename(&next, &path).map_err(EmbeddedError::io("replace", &path))?;
        sync_dir(data_dir)
    }

    pub(super) fn owner_url(&self, port: u16) -> String {
        url(OWNER_ROLE, &self.owner_password, port, DATABASE)
    }

    pub(super) fn superuser_url(&self, port: u16) -> String {
        url(SUPERUSER, &self.superuser_password, port, DATABASE)
    }
}

/// Gives a file to the owner of its directory, so that a file that root makes stays readable for that user.
fn give_to_owner_of(dir: &Path, file: &File, path: &Path) -> Result<(), EmbeddedError> {
    let wanted = std::fs::metadata(dir).map_err(EmbeddedError::io("look at", dir))?;
    let actual = file.metadata().map_err(EmbeddedError::io("look at", path))?;
    if actual.uid() != 0 || wanted.uid() == 0 {
        return Ok(());
    }
    chown(path, Some(wanted.uid()), Some(wanted.gid())).map_err(EmbeddedError::io("change the owner of", path))
}

/// Passwords are hexadecimal, so nothing needs escaping.
fn url(role: &str, password: &str, port: u16, database: &str) -> String {
    format!("postgres://{role}:{password}@127.0.0.1:{port}/{database}?sslmode=disable")
}

/// Creates an empty file that only its owner can read.
pub(super) fn create_private(path: &Path) -> Result<File, EmbeddedError> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(EmbeddedError::io("create", path))?;
    file.set_permissions(PermissionsExt::from_mode(0o600)).map_err(EmbeddedError::io("protect", path))?;
    Ok(file)
}

/// Makes a rename in the directory survive a power failure.
pub(super) fn sync_dir(dir: &Path) -> Result<(), EmbeddedError> {
    File::open(dir).and_then(|handle| handle.sync_all()).map_err(EmbeddedError::io("sync", dir))
}

pub(super) fn random_hex(bytes: usize) -> Result<String, EmbeddedError> {
    let mut buffer = vec![0_u8; bytes];
    SysRng.try_fill_bytes(&mut buffer).map_err(|error| EmbeddedError::Random(error.to_string()))?;
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}
