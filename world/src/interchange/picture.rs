//! Recognizes pictures that cannot contain a card.

use base::error::{Error, Result};

/// Rejects pictures that are not PNGs, because they cannot contain a card.
///
/// # Errors
/// `validation_failed`.
pub fn refuse_other_pictures(bytes: &[u8]) -> Result<()> {
    let Some(kind) = other_picture(bytes) else { return Ok(()) };
    let why = format!("This is a {kind} picture, but only PNG pictures can contain a card.");
    Err(Error::invalid("", "invalid_file", why))
}

/// The format of a picture that is not a PNG.
fn other_picture(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xd8, 0xff, ..] => Some("JPEG"),
        [b'G', b'I', b'F', b'8', ..] => Some("GIF"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("WebP"),
        [_, _, _, _, b'f', b't', b'y', b'p', b'a', b'v', b'i', b'f', ..] => Some("AVIF"),
        _ => None,
    }
}
