//! Strings that are read even if they are broken, and texts whose pieces were cut within a character.
//!
//! A string of JSON may name half of a character outside the basic plane: an escape like `\ud83c`, a lone surrogate. Gateways that
//! count in UTF-16 cut texts there, and others cut bytes. A [`Piece`] keeps the half, and a [`Seam`] joins it with the other one.

use std::{borrow::Cow, fmt};

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// A string in which whatever is no character becomes U+FFFD.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lossy(pub(super) String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Piece::deserialize(deserializer).map(|piece| Self(piece.alone()))
    }
}

/// A string as bytes in WTF-8: UTF-8 that can also encode surrogates. U+DC80 to U+DCFF without another surrogate before it
/// stands for a byte (see [`escaped`]).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Piece(Vec<u8>);

impl Piece {
    /// The string, if nothing follows.
    pub(super) fn alone(&self) -> String {
        let mut seam = Seam::default();
        let mut text = seam.join(self);
        text.push_str(seam.end());
        text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what follows in the same text.
    pub(super) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }
}

impl From<&str> for Piece {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl<'de> Deserialize<'de> for Piece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Piece;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Piece, E> {
                Ok(text.into())
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Piece, E> {
                Ok(Piece(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// The place between two pieces of a text. It holds back half a character until the next piece.
#[derive(Debug, Default)]
pub(super) struct Seam(Vec<u8>);

impl Seam {
    /// The text up to the end of the last whole character.
    pub(super) fn join(&mut self, piece: &Piece) -> String {
        let mut bytes = std::mem::take(&mut self.0);
        bytes.extend_from_slice(&piece.0);
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        while let Some(at) = rest.iter().position(|byte| *byte == 0xed) {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            rest = match (surrogate(rest), rest.get(3..).and_then(surrogate)) {
                (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..)) => {
                    push(&mut out, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
                    &rest[6..]
                }
                (Some(0xd800..0xdc00), _) if rest.len() == 3 => {
                    self.0 = rest.to_vec();
                    &[]
                }
                (Some(byte @ 0xdc80..=0xdcff), _) => {
                    out.push(byte.to_le_bytes()[0]);
                    &rest[3..]
                }
                (Some(code), _) => {
                    push(&mut out, code);
                    &rest[3..]
                }
                (None, _) => {
                    out.push(0xed);
                    &rest[1..]
                }
            };
        }
        out.extend_from_slice(rest);
        if self.0.is_empty() {
            self.0 = out.split_off(out.len() - begun(&out));
        }
        String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// What is left when nothing follows: half a character.
    pub(super) fn end(&mut self) -> &'static str {
        if std::mem::take(&mut self.0).is_empty() { "" } else { "\u{fffd}" }
    }
}

/// The surrogate that bytes begin with.
fn surrogate(bytes: &[u8]) -> Option<u32> {
    match bytes {
        [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] => {
            Some(0xd000 | (u32::from(second & 0x3f) << 6) | u32::from(third & 0x3f))
        }
        _ => None,
    }
}

/// Writes a character; U+FFFD for what is none.
fn push(out: &mut Vec<u8>, code: u32) {
    let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// The length of the incomplete character at the end.
fn begun(bytes: &[u8]) -> usize {
    let first = (1..=3.min(bytes.len())).find(|n| bytes[bytes.len() - n] >= 0xc0);
    first.filter(|n| str::from_utf8(&bytes[bytes.len() - n..]).is_err_and(|e| e.error_len().is_none())).unwrap_or(0)
}

/// JSON as text. A byte that is part of no character becomes the escape of a lone surrogate, so that a string keeps it: the other
/// bytes of its character may be in the next piece.
pub(super) fn escaped(json: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(json) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for chunk in json.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out.push_str(&format!("\\udc{byte:02x}"));
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &[u8]) -> Piece {
        serde_json::from_str(&escaped(json)).expect("a string of JSON")
    }

    #[test]
    fn a_text_is_whole_wherever_it_was_cut() {
        let text = "a💀b🍺🍺é漢\u{d7ff}\u{10ffff}\"\\";
        let units: Vec<u16> = text.encode_utf16().collect();
        let of_units = |units: &[u16]| units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
        let quoted = |inner: &[u8]| [b"\"", inner, b"\""].concat();
        let plain = text.replace(['"', '\\'], "");
        for size in 1..7 {
            let mut seam = Seam::default();
            let pieces = units.chunks(size).map(|units| read(&quoted(of_units(units).as_bytes())));
            let mut whole: String = pieces.map(|piece| seam.join(&piece)).collect();
            whole.push_str(seam.end());
            assert_eq!(whole, text, "cut every {size} units");
            let pieces = plain.as_bytes().chunks(size).map(|bytes| read(&quoted(bytes)));
            let mut whole: String = pieces.map(|piece| seam.join(&piece)).collect();
            whole.push_str(seam.end());
            assert_eq!(whole, plain, "cut every {size} bytes");
        }
    }

    #[test]
    fn half_a_character_is_one_replacement() {
        for (json, text) in [
            (&br#""a\ud83c b""#[..], "a\u{fffd} b"),
            (br#""a\udf7a\ud83cb""#, "a\u{fffd}\u{fffd}b"),
            (br#""a\ud83c""#, "a\u{fffd}"),
            (br#""\ud83c\ud83c\udf7a""#, "\u{fffd}🍺"),
            (b"\"a\xf0\x9f b\"", "a\u{fffd} b"),
            (b"\"a\xffb\xf0\x9f\"", "a\u{fffd}b\u{fffd}"),
            (br#""\udc80""#, "\u{fffd}"),
        ] {
            assert_eq!(read(json).alone(), text, "{json:?}");
        }
    }
}
