//! Where the cluster's directory is, and which unix user runs the server.
//!
//! PostgreSQL refuses to run as root, so root hands the cluster to the user `postgres` (or `nobody`). This module must
//! never change the permissions of a directory that it did not create. To support another user name, add it to `USERS`.

use std::{
    os::unix::{
        fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use sha2::{Digest, Sha256};

use super::error::EmbeddedError;

/// Users that may run the server if we are root, best first.
const USERS: &[&str] = &["postgres", "_postgres", "nobody"];
/// Where clusters go if that user cannot enter the requested directory.
const FALLBACK_ROOT: &str = "/var/lib/tavernkeep";

/// A unix user to run programs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnixUser {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The directory, the user, and notes about them for the operator.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) data_dir: PathBuf,
    /// `None`: run as the current user.
    pub(super) run_as: Option<UnixUser>,
    pub(super) notes: Vec<String>,
}

impl Place {
    pub(super) fn cluster(&self) -> PathBuf {
        self.data_dir.join("cluster")
    }

    /// Makes the server's user the owner of a path.
    pub(super) fn hand_over(&self, path: &Path) -> Result<(), EmbeddedError> {
        match &self.run_as {
            Some(user) => {
                chown(path, Some(user.uid), Some(user.gid)).map_err(EmbeddedError::io("change the owner of", path))
            }
            None => Ok(()),
        }
    }

    /// Creates the data directory. For root, it can be entered but not listed by the server's user.
    pub(super) fn create(&self) -> Result<(), EmbeddedError> {
        let mode = if self.run_as.is_some() { 0o711 } else { 0o700 };
        let missing: Vec<&Path> = self.data_dir.ancestors().take_while(|dir| !dir.exists()).collect();
        for dir in missing.into_iter().rev() {
            std::fs::DirBuilder::new()
                .mode(mode)
                .create(dir)
                .and_then(|()| std::fs::set_permissions(dir, PermissionsExt::from_mode(mode)))
                .map_err(EmbeddedError::io("create", dir))?;
        }
        Ok(())
    }
}

/// Decides without creating anything, so that the command line finds the same place as `serve`.
pub(super) fn locate(requested: &Path) -> Result<Place, EmbeddedError> {
    let uid = effective_uid()?;
    let data_dir = real_path(requested)?;
    if uid != 0 {
        return located_for_user(data_dir, uid);
    }
    let (name, user) = match owner_of(&data_dir.join("cluster"))? {
        Some(owner) => (format!("with id {}", owner.uid), owner),
        None => server_user()?,
    };
    let mut notes = vec![format!("PostgreSQL refuses to run as root, so it runs as the unix user {name}.")];
    let mut place = Place { data_dir, run_as: Some(user.clone()), notes: Vec::new() };
    if !can_enter(&user, nearest_existing(&place.data_dir))? {
        let fallback = fallback_for(&place.data_dir);
        if !can_enter(&user, nearest_existing(&fallback))? {
            return Err(EmbeddedError::NoUser(format!(
                "the unix user {name} can enter neither {} nor {}",
                place.data_dir.display(),
                fallback.display()
            )));
        }
        notes.push(format!(
            "The unix user {name} cannot enter {}, so the data is in {} instead.",
            place.data_dir.display(),
            fallback.display()
        ));
        place.data_dir = fallback;
    }
    place.notes = notes;
    Ok(place)
}

fn located_for_user(data_dir: PathBuf, uid: u32) -> Result<Place, EmbeddedError> {
    let cluster = data_dir.join("cluster");
    match owner_of(&cluster)? {
        Some(owner) if owner.uid != uid => Err(EmbeddedError::WrongOwner { path: cluster, owner: owner.uid, uid }),
        _ => Ok(Place { data_dir, run_as: None, notes: Vec::new() }),
    }
}

/// The fallback directory. It differs for each requested directory, so that two of them never share data.
fn fallback_for(data_dir: &Path) -> PathBuf {
    let digest = Sha256::digest(data_dir.as_os_str().as_encoded_bytes());
    let short: String = digest.iter().take(4).map(|b| format!("{b:02x}")).collect();
    let words: Vec<_> = data_dir
        .components()
        .filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(name.to_string_lossy()),
            _ => None,
        })
        .collect();
    let last: Vec<&str> = words.iter().rev().take(2).rev().map(AsRef::as_ref).collect();
    let readable: String = last.join("-").chars().take(60).collect();
    Path::new(FALLBACK_ROOT).join(format!("{readable}-{short}"))
}

/// The absolute path, with links resolved in the part that exists.
fn real_path(path: &Path) -> Result<PathBuf, EmbeddedError> {
    let absolute = std::path::absolute(path).map_err(EmbeddedError::io("resolve", path))?;
    let existing = nearest_existing(&absolute);
    let rest = absolute.strip_prefix(existing).unwrap_or(Path::new(""));
    let real = existing.canonicalize().map_err(EmbeddedError::io("resolve", existing))?;
    Ok(match rest.as_os_str().is_empty() {
        true => real,
        false => real.join(rest),
    })
}

fn nearest_existing(path: &Path) -> &Path {
    path.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"))
}

fn owner_of(path: &Path) -> Result<Option<UnixUser>, EmbeddedError> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.uid() == 0 => Ok(None),
        Ok(meta) => Ok(Some(UnixUser { uid: meta.uid(), gid: meta.gid() })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EmbeddedError::io("look at", path)(error)),
    }
}

/// Asks the kernel by trying it as that user, so that groups and access lists count.
fn can_enter(user: &UnixUser, dir: &Path) -> Result<bool, EmbeddedError> {
    let shell = Path::new("/bin/sh");
    Command::new(shell)
        .args(["-c", "cd \"$1\"", "sh"])
        .arg(dir)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .gid(user.gid)
        .uid(user.uid)
        .status()
        .map(|status| status.success())
        .map_err(EmbeddedError::spawn(shell))
}

fn effective_uid() -> Result<u32, EmbeddedError> {
    let program = Path::new("id");
    let output =
        Command::new(program).arg("-u").stdin(Stdio::null()).output().map_err(EmbeddedError::spawn(program))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| EmbeddedError::Program {
        program: "id -u".to_owned(),
        status: output.status.to_string(),
        output: text.into_owned(),
    })
}

/// The user's name, quoted for messages, and its ids.
fn server_user() -> Result<(String, UnixUser), EmbeddedError> {
    let path = Path::new("/etc/passwd");
    let passwd = std::fs::read_to_string(path).map_err(EmbeddedError::io("read", path))?;
    USERS
        .iter()
        .find_map(|name| Some((format!("`{name}`"), parse_user(&passwd, name)?)))
        .ok_or_else(|| EmbeddedError::NoUser(format!("/etc/passwd contains none of the users {}", USERS.join(", "))))
}

fn parse_user(passwd: &str, name: &str) -> Option<UnixUser> {
    let mut fields = passwd
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
    let uid = unix_id(fields.nth(1)?)?;
    let gid = unix_id(fields.next()?)?;
    (uid != 0).then_some(UnixUser { uid, gid })
}

/// Parses a user id. Some systems write the id of `nobody` as -2.
fn unix_id(text: &str) -> Option<u32> {
    text.parse::<u32>().ok().or_else(|| text.parse::<i32>().ok().map(i32::cast_unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_users() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:*:-2:-2::/:/bin/false\npostgres:x:101:104::/:/bin/sh\n";
        assert_eq!(parse_user(passwd, "postgres"), Some(UnixUser { uid: 101, gid: 104 }));
        assert_eq!(parse_user(passwd, "nobody").unwrap().uid, u32::MAX - 1);
        assert_eq!(parse_user(passwd, "root"), None);
        assert_eq!(parse_user(passwd, "post"), None);
    }

    #[test]
    fn fallbacks_differ_by_directory() {
        let one = fallback_for(Path::new("/root/game/data"));
        let two = fallback_for(Path::new("/root/other/game/data"));
        assert!(one.starts_with(FALLBACK_ROOT), "{}", one.display());
        assert!(one.to_string_lossy().contains("/game-data-"));
        assert_ne!(one, two);
    }
}
