//! The test binaries that cargo built.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A test binary and the folder that it expects to run in.
#[derive(Debug, Clone)]
pub(crate) struct Binary {
    pub path: PathBuf,
    /// The folder of its package, as with `cargo test`.
    pub folder: PathBuf,
}

impl Binary {
    /// A binary that runs in the current folder.
    pub(crate) fn of(path: PathBuf) -> Self {
        Self { path, folder: PathBuf::from(".") }
    }

    /// The name of its test target: that of the file, without the hash that cargo adds.
    pub(crate) fn name(&self) -> String {
        let file = self.path.file_stem().unwrap_or_default().to_string_lossy();
        file.rsplit_once('-').map_or(&*file, |(name, _)| name).to_owned()
    }
}

/// A line of cargo's output, as far as it matters here
/// (<https://doc.rust-lang.org/cargo/reference/external-tools.html#artifact-messages>).
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Reads the test binaries from what `cargo build --tests --message-format=json` printed, in its order.
///
/// # Errors
/// A sentence, if the file cannot be read or names no test binary.
pub(crate) fn read(file: &Path) -> Result<Vec<Binary>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let mut binaries: Vec<Binary> = text.lines().filter_map(read_line).collect();
    // The order of building differs from run to run.
    binaries.sort_by(|a, b| a.folder.cmp(&b.folder).then_with(|| a.path.cmp(&b.path)));
    if binaries.is_empty() {
        return Err(format!("{} names no test binary", file.display()));
    }
    Ok(binaries)
}

fn read_line(line: &str) -> Option<Binary> {
    let message: Message = serde_json::from_str(line).ok()?;
    let is_test = message.reason == "compiler-artifact" && message.profile.is_some_and(|profile| profile.test);
    let folder = message.manifest_path?.parent()?.to_owned();
    if !is_test {
        return None;
    }
    Some(Binary { path: message.executable?, folder })
}
