//! Finds the PostgreSQL server programs that are installed on the machine.
//!
//! It must never download or install anything. To support another installation directory, add it to `VERSIONED_PLACES`;
//! for another system's package, add it to `PACKAGES`.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::error::EmbeddedError;

/// The oldest major version that the schema works with.
pub const OLDEST_MAJOR: u32 = 15;

/// Parents, prefixes and suffixes of directories with a version in their name.
const VERSIONED_PLACES: &[(&str, &str, &str)] = &[
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
    ("/Library/PostgreSQL", "", "bin"),
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
];

/// A file that identifies the system, and the advice for that system.
const PACKAGES: &[(&str, &str)] = &[
    ("/etc/debian_version", "Install it with `apt-get install postgresql`"),
    ("/etc/redhat-release", "Install it with `dnf install postgresql-server`"),
    ("/etc/alpine-release", "Install it with `apk add postgresql`"),
    ("/etc/arch-release", "Install it with `pacman -S postgresql`"),
    ("/System/Library/CoreServices/SystemVersion.plist", "Install it with `brew install postgresql@16`"),
];

/// A directory with `postgres`, `initdb` and `pg_ctl` of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    dir: PathBuf,
    major: u32,
}

impl Binaries {
    /// The directory of the programs.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The major version, such as 15.
    pub fn major(&self) -> u32 {
        self.major
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// The programs that a new cluster would be made with: the first usable ones in `PATH`, then those of `pg_config`, then
/// in the usual directories (newest version first).
///
/// # Errors
/// `Binaries` if there are none, or only ones older than [`OLDEST_MAJOR`]. It names the package to install.
pub fn find_binaries() -> Result<Binaries, EmbeddedError> {
    find_for(None)
}

/// Like [`find_binaries`], for a cluster made by `cluster_major`, if there is one.
pub(super) fn find_for(cluster_major: Option<u32>) -> Result<Binaries, EmbeddedError> {
    let mut found: Vec<Binaries> = candidate_dirs()
        .into_iter()
        .filter_map(|dir| {
            let major = major_of(&dir.join("postgres"))?;
            Some(Binaries { dir, major })
        })
        .collect();
    let is_suitable = |b: &Binaries| cluster_major.map_or(b.major >= OLDEST_MAJOR, |m| b.major == m);
    if let Some(at) = found.iter().position(is_suitable) {
        return Ok(found.swap_remove(at));
    }
    let mut versions: Vec<String> = found.iter().map(|b| b.major.to_string()).collect();
    versions.dedup();
    let have = match versions.is_empty() {
        true => "none was found".to_owned(),
        false => format!("only version {} was found", versions.join(", ")),
    };
    let (reason, advice) = match cluster_major {
        Some(major) => (
            format!("The data directory was made by PostgreSQL {major} and can only be opened by that version; {have}"),
            format!("{}, version {major}", package_advice()),
        ),
        None => (
            format!("PostgreSQL {OLDEST_MAJOR} or newer is required (initdb, postgres, pg_ctl); {have}"),
            package_advice().to_owned(),
        ),
    };
    Err(EmbeddedError::Binaries { reason, advice })
}

fn package_advice() -> &'static str {
    PACKAGES
        .iter()
        .find(|(marker, _)| Path::new(marker).exists())
        .map_or("Install the PostgreSQL server package", |(_, advice)| advice)
}

fn candidate_dirs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.extend(pg_config_dir());
    dirs.extend(versioned_dirs());
    let mut usable = Vec::new();
    for dir in dirs.iter().flat_map(|dir| resolved(dir)) {
        if has_programs(&dir) && !usable.contains(&dir) {
            usable.push(dir);
        }
    }
    usable
}

/// The real location of the directory's `postgres` (`PATH` often contains only links), then the directory itself.
fn resolved(dir: &Path) -> Vec<PathBuf> {
    let real = dir.join("postgres").canonicalize().ok().and_then(|program| program.parent().map(Path::to_path_buf));
    real.into_iter().chain(dir.is_absolute().then(|| dir.to_path_buf())).collect()
}

fn has_programs(dir: &Path) -> bool {
    ["postgres", "initdb", "pg_ctl"].iter().all(|name| dir.join(name).is_file())
}

fn pg_config_dir() -> Option<PathBuf> {
    let text = output_of(Path::new("pg_config"), "--bindir")?;
    Some(PathBuf::from(text.trim()))
}

fn versioned_dirs() -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for (parent, prefix, suffix) in VERSIONED_PLACES {
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(prefix));
            if let Some(major) = version.and_then(leading_number) {
                found.push((major, entry.path().join(suffix)));
            }
        }
    }
    found.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    found.into_iter().map(|(_, dir)| dir).collect()
}

fn major_of(postgres: &Path) -> Option<u32> {
    let text = output_of(postgres, "--version")?;
    leading_number(text.strip_prefix("postgres (PostgreSQL) ")?)
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

fn output_of(program: &Path, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_version_numbers() {
        assert_eq!(leading_number("15.18 (Debian 15.18-0+deb12u1)"), Some(15));
        assert_eq!(leading_number("18beta2"), Some(18));
        assert_eq!(leading_number("devel"), None);
    }

    #[test]
    fn asks_for_the_version_of_the_cluster() {
        let error = find_for(Some(9)).unwrap_err().to_string();
        assert!(error.contains("made by PostgreSQL 9"), "{error}");
        assert!(error.contains("version 9"), "{error}");
    }
}
