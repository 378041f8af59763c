//! CHARX: a zip archive with a card and its pictures. Only `card.json` is unpacked, up to the size limit for cards. Of
//! the other entries we look only at names and sizes.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::IMPORT_BYTES_MAX;
use base::error::{Error, Result};

/// The largest number of entries in an archive.
const ENTRIES_MAX: usize = 2000;
/// The largest size of the unpacked card, in bytes.
const CARD_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The largest size that any entry may claim to have unpacked, in bytes. Pictures and sounds hardly shrink, so a larger
/// entry does not belong to a card.
const ENTRY_BYTES_MAX: u64 = IMPORT_BYTES_MAX as u64;

/// Whether the file begins like a zip archive.
#[must_use]
pub fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// Unpacks the card's JSON, and counts the other entries.
///
/// # Errors
/// `validation_failed` for an invalid archive, or one without a card.
pub fn card(bytes: &[u8]) -> Result<(Vec<u8>, usize)> {
    let broken = |what: String| Error::invalid("", "invalid_file", format!("The archive cannot be read: {what}."));
    // The zip library reads the whole directory before it tells how long it is. So count its entries first: each begins
    // with these bytes.
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
            return Err(broken(format!("the path `{}` leads out of the archive", shown.escape_default())));
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
        return Err(broken("card.json is encrypted or not a plain file".to_owned()));
    }
    let mut card = Vec::new();
    // The size that an entry claims is not trusted. The checksum is compared at the end.
    let read = entry.take(CARD_BYTES_MAX + 1).read_to_end(&mut card).map_err(|e| broken(format!("card.json: {e}")))?;
    if read as u64 > CARD_BYTES_MAX {
        return Err(broken(format!("card.json has more than {CARD_BYTES_MAX} bytes")));
    }
    Ok((card, entries.saturating_sub(1)))
}

/// Whether a path stays within the archive.
fn is_tame(name: &str) -> bool {
    !name.starts_with(['/', '\\']) && !name.contains(['\\', ':', '\0']) && name.split('/').all(|part| part != "..")
}
