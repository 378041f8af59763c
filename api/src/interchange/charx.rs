//! CHARX: a card in a zip beside its pictures. Only `card.json` is unpacked, and no more of it than a card may have; of the other
//! entries only the names and sizes are looked at.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::IMPORT_BYTES_MAX;
use crate::error::{Error, Result};

/// Entries of an archive.
const ENTRIES_MAX: usize = 2000;
/// Bytes of the unpacked card.
const CARD_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Bytes that any entry may say it has, unpacked: pictures and sounds hardly shrink, so what is larger is no part of a card.
const ENTRY_BYTES_MAX: u64 = IMPORT_BYTES_MAX as u64;

/// Whether the file begins like a zip.
#[must_use]
pub fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// The card's JSON, and how many other entries there are.
///
/// # Errors
/// `validation_failed` for what is no sound archive with a card.
pub fn card(bytes: &[u8]) -> Result<(Vec<u8>, usize)> {
    let broken = |what: String| Error::invalid("", "invalid_file", format!("The archive cannot be read: {what}."));
    // The reader takes in the whole directory before it says how long it is; each of its entries begins with these bytes.
    if bytes.windows(4).filter(|at| at == b"PK\x01\x02").nth(ENTRIES_MAX).is_some() {
        return Err(broken(format!("it has more than {ENTRIES_MAX} entries")));
    }
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| broken(e.to_string()))?;
    let entries = archive.len();
    if entries > ENTRIES_MAX {
        return Err(broken(format!("it has more than {ENTRIES_MAX} entries")));
    }
    for name in archive.file_names() {
        let name = name.map_err(|e| broken(e.to_string()))?;
        if !is_tame(&name) {
            let shown: String = name.chars().take(60).collect();
            return Err(broken(format!("`{}` leads out of it", shown.escape_default())));
        }
    }
    for number in 0..entries {
        let entry = archive.by_index_raw(number).map_err(|e| broken(e.to_string()))?;
        if entry.size() > ENTRY_BYTES_MAX {
            let shown: String = entry.name().map_err(|e| broken(e.to_string()))?.chars().take(60).collect();
            let what = format!("`{}` has more than {ENTRY_BYTES_MAX} bytes unpacked", shown.escape_default());
            return Err(broken(what));
        }
    }
    let entry = archive.by_name("card.json").map_err(|e| broken(format!("card.json: {e}")))?;
    if entry.encrypted() || !entry.is_file() {
        return Err(broken("card.json is no plain file".to_owned()));
    }
    let mut card = Vec::new();
    // What an entry says of its size is not believed. The checksum is compared at its end.
    let read = entry.take(CARD_BYTES_MAX + 1).read_to_end(&mut card).map_err(|e| broken(format!("card.json: {e}")))?;
    if read as u64 > CARD_BYTES_MAX {
        return Err(broken(format!("card.json has more than {CARD_BYTES_MAX} bytes")));
    }
    Ok((card, entries.saturating_sub(1)))
}

/// Whether a name stays within the archive.
fn is_tame(name: &str) -> bool {
    !name.starts_with(['/', '\\']) && !name.contains(['\\', ':', '\0']) && name.split('/').all(|part| part != "..")
}
