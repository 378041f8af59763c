//! PNG as an envelope: reads text chunks with care, and draws a small picture around a card.
//!
//! Pixels are never decoded, so a picture cannot be a decompression bomb. We look only at lengths, checksums, the
//! picture's size and its texts. A compressed text (`zTXt`, `iTXt`) is decompressed only up to the limit for texts.

use std::{borrow::Cow, io::Read};

use flate2::read::ZlibDecoder;

use base::error::{Error, Result};

const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";
/// The chunks that every viewer has to know.
const CRITICAL: [&[u8; 4]; 4] = [b"IHDR", b"PLTE", b"IDAT", b"IEND"];
/// The largest number of chunks in a picture. Animations have many.
const CHUNKS_MAX: usize = 100_000;
/// The largest size of a text chunk in bytes, decompressed.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest side of a picture in pixels.
const SIDE_MAX: u32 = 8192;

/// Whether the file begins with a PNG signature.
#[must_use]
pub fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(SIGNATURE)
}

/// The wanted texts of a picture.
#[derive(Debug, Default)]
pub struct Texts<'a> {
    /// Keyword and text, in order.
    pub sound: Vec<(String, Text<'a>)>,
    /// Whether the checksum of a wanted text was wrong. It is not among the others.
    pub has_damaged: bool,
    /// Whether the checksum of another chunk was wrong, which does not matter to the texts.
    pub is_damaged_elsewhere: bool,
}

/// The `tEXt`, `zTXt` and `iTXt` chunks with a wanted keyword (PNG, third edition, 11.3.3).
///
/// # Errors
/// `validation_failed` for an incomplete or damaged PNG.
pub fn texts<'a>(bytes: &'a [u8], is_wanted: impl Fn(&str) -> bool) -> Result<Texts<'a>> {
    let mut rest = bytes.strip_prefix(SIGNATURE).ok_or_else(|| broken("it has no PNG signature"))?;
    let mut found = Texts::default();
    for number in 0..CHUNKS_MAX {
        let chunk = Chunk::split(&mut rest)?;
        if (number == 0) != (chunk.kind == *b"IHDR") {
            return Err(broken("its first chunk, and no other, must be IHDR"));
        }
        match &chunk.kind {
            b"IEND" => return Ok(found),
            // A critical chunk that does not exist was another one before it was damaged.
            [first, ..] if !chunk.is_sound && first.is_ascii_uppercase() && !CRITICAL.contains(&&chunk.kind) => {
                return Err(broken("the checksum of a chunk is wrong; the file was damaged"));
            }
            b"IHDR" => check_size(chunk.data)?,
            b"tEXt" | b"zTXt" | b"iTXt" if chunk.data.len() > TEXT_BYTES_MAX => return Err(long()),
            b"tEXt" | b"zTXt" | b"iTXt" => {
                let end = chunk.data.iter().position(|b| *b == 0).filter(|end| (1..80).contains(end));
                let (keyword, value) = end
                    .and_then(|end| Some((chunk.data.get(..end)?, chunk.data.get(end + 1..)?)))
                    .ok_or_else(|| broken("a text chunk has no keyword"))?;
                let keyword = String::from_utf8_lossy(keyword).into_owned();
                if !is_wanted(&keyword) {
                    found.is_damaged_elsewhere |= !chunk.is_sound;
                } else if !chunk.is_sound {
                    found.has_damaged = true;
                } else {
                    found.sound.push((keyword, Text { kind: chunk.kind, value }));
                }
                continue;
            }
            _ => {}
        }
        found.is_damaged_elsewhere |= !chunk.is_sound;
    }
    Err(broken(&format!("it has more than {CHUNKS_MAX} chunks")))
}

fn long() -> Error {
    broken(&format!("a text chunk is too large: it has more than {TEXT_BYTES_MAX} bytes"))
}

/// Checks the picture's size. No real picture is larger, and other programs may decode it later.
fn check_size(header: &[u8]) -> Result<()> {
    let side = |at: usize| header.get(at..)?.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes));
    let (Some(width), Some(height), 13) = (side(0), side(4), header.len()) else {
        return Err(broken("its IHDR is not 13 bytes long"));
    };
    if width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX {
        let what = format!("it claims to have {width} by {height} pixels, but each side must have 1 to {SIDE_MAX}");
        return Err(broken(&what));
    }
    Ok(())
}

/// A text that may be compressed. Nothing is unpacked before somebody reads it: a picture may have many.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    kind: [u8; 4],
    /// What follows the keyword.
    value: &'a [u8],
}

impl<'a> Text<'a> {
    /// The text itself.
    ///
    /// # Errors
    /// `validation_failed` if it cannot be unpacked, or is too large.
    pub fn read(self) -> Result<Cow<'a, [u8]>> {
        match &self.kind {
            b"zTXt" => unpacked(self.value).map(Cow::Owned),
            b"iTXt" => {
                let cut = || broken("a text chunk ends before its text");
                let [is_packed, method, rest @ ..] = self.value else { return Err(cut()) };
                // The language, and the keyword in it.
                let text = rest.splitn(3, |byte| *byte == 0).nth(2).ok_or_else(cut)?;
                match is_packed {
                    0 => Ok(Cow::Borrowed(text)),
                    _ => unpacked(&[&[*method], text].concat()).map(Cow::Owned),
                }
            }
            _ => Ok(Cow::Borrowed(self.value)),
        }
    }
}

/// The text of a `zTXt` chunk. After the keyword comes the compression method; only one is defined.
fn unpacked(value: &[u8]) -> Result<Vec<u8>> {
    let packed = value.strip_prefix(b"\0").ok_or_else(|| broken("a text chunk is compressed in an unknown way"))?;
    let mut text = Vec::new();
    let mut bounded = ZlibDecoder::new(packed).take(TEXT_BYTES_MAX as u64 + 1);
    bounded.read_to_end(&mut text).map_err(|_| broken("a compressed text chunk cannot be unpacked"))?;
    if text.len() > TEXT_BYTES_MAX { Err(long()) } else { Ok(text) }
}

fn broken(what: &str) -> Error {
    Error::invalid("", "invalid_file", format!("The PNG cannot be read: {what}."))
}

struct Chunk<'a> {
    kind: [u8; 4],
    data: &'a [u8],
    /// Whether its checksum is right.
    is_sound: bool,
}

impl<'a> Chunk<'a> {
    /// Takes the next chunk off `rest`.
    fn split(rest: &mut &'a [u8]) -> Result<Self> {
        let ends = || broken("it ends in the middle of a chunk");
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(ends)?;
        let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| ends())?;
        if length > 0x7fff_ffff {
            return Err(broken("a chunk's length is out of range"));
        }
        let (kind, _) = after.split_first_chunk::<4>().ok_or_else(ends)?;
        if !kind.iter().all(u8::is_ascii_alphabetic) {
            return Err(broken("a chunk's type is not four letters"));
        }
        let covered = after.get(..4 + length).ok_or_else(ends)?;
        let (crc, after) = after.get(4 + length..).and_then(<[u8]>::split_first_chunk::<4>).ok_or_else(ends)?;
        *rest = after;
        let is_sound = crc32fast::hash(covered) == u32::from_be_bytes(*crc);
        Ok(Self { kind: *kind, data: covered.get(4..).unwrap_or_default(), is_sound })
    }
}

const WIDTH: u32 = 256;
const HEIGHT: u32 = 384;

/// A small picture that contains texts. Its look depends only on `seed`.
#[must_use]
pub fn picture(seed: [u8; 32], texts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = SIGNATURE.to_vec();
    let mut header = Vec::new();
    header.extend(WIDTH.to_be_bytes());
    header.extend(HEIGHT.to_be_bytes());
    // One bit per pixel, a palette, no interlacing.
    header.extend([1, 3, 0, 0, 0]);
    put(&mut out, b"IHDR", &header);
    let [r, g, b, ..] = seed;
    let dark = [r / 5 + 20, g / 5 + 20, b / 5 + 24];
    let light = [r / 3 + 160, g / 3 + 160, b / 3 + 150];
    put(&mut out, b"PLTE", &[dark, light].concat());
    put(&mut out, b"IDAT", &stored(&rows(&seed)));
    for (keyword, value) in texts {
        put(&mut out, b"tEXt", &[keyword.as_bytes(), b"\0", value].concat());
    }
    put(&mut out, b"IEND", &[]);
    out
}

fn put(out: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    let covered = [kind.as_slice(), data].concat();
    out.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(&covered);
    out.extend(crc32fast::hash(&covered).to_be_bytes());
}

/// A mirrored pattern of five by five blocks. Each row begins with its filter type, none.
fn rows(seed: &[u8; 32]) -> Vec<u8> {
    let mut out = Vec::new();
    for y in 0..HEIGHT {
        out.push(0);
        for byte in 0..WIDTH / 8 {
            let mut bits = 0u8;
            for bit in 0..8 {
                bits = bits << 1 | u8::from(is_light(seed, byte * 8 + bit, y));
            }
            out.push(bits);
        }
    }
    out
}

fn is_light(seed: &[u8; 32], x: u32, y: u32) -> bool {
    let inside = |v: u32, from: u32| (from..from + 160).contains(&v).then(|| (v - from) / 32);
    let (Some(column), Some(row)) = (inside(x, 48), inside(y, 112)) else {
        // A thin frame.
        return x == 16 || x == WIDTH - 17 || y == 16 || y == HEIGHT - 17;
    };
    let column = column.min(4 - column);
    let at = usize::try_from(row * 3 + column).unwrap_or_default();
    seed.get(at + 3).is_some_and(|byte| byte & 1 == 1)
}

/// A zlib stream without compression.
fn stored(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let blocks = data.chunks(0xffff);
    let last = blocks.len().saturating_sub(1);
    for (number, block) in blocks.enumerate() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(number == last));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    let (mut a, mut b) = (1u32, 0u32);
    for byte in data {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    out.extend((b << 16 | a).to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chunks of a picture, by kind.
    fn chunks(picture: &[u8]) -> Vec<([u8; 4], &[u8])> {
        let mut rest = picture.strip_prefix(SIGNATURE).unwrap();
        let mut found = Vec::new();
        while !rest.is_empty() {
            let chunk = Chunk::split(&mut rest).unwrap();
            found.push((chunk.kind, chunk.data));
        }
        found
    }

    /// As a viewer reads it: the stream is whole, its checksum is right, and every pixel is where it belongs.
    #[test]
    fn a_picture_is_one_for_viewers_too() {
        for base in [0u8, 0b0110_1101, u8::MAX] {
            let mut seed = [base; 32];
            for (n, byte) in seed.iter_mut().enumerate().skip(3) {
                *byte = u8::from(n % 4 < 2) ^ base;
            }
            let picture = picture(seed, &[]);
            let chunks = chunks(&picture);
            let of = |kind: &[u8; 4]| chunks.iter().find(|(k, _)| k == kind).unwrap().1;
            let [dark @ .., a, b, c] = of(b"PLTE") else { panic!("a palette of two colours") };
            assert!(dark.len() == 3 && dark.iter().all(|v| (20..=75).contains(v)), "{dark:?}");
            assert!([a, b, c].iter().all(|v| (150..=245).contains(*v)), "{a} {b} {c}");
            let mut pixels = Vec::new();
            ZlibDecoder::new(of(b"IDAT")).read_to_end(&mut pixels).unwrap();
            let width = usize::try_from(WIDTH / 8 + 1).unwrap();
            assert_eq!(pixels.len(), width * usize::try_from(HEIGHT).unwrap());
            for (y, row) in (0..HEIGHT).zip(pixels.chunks(width)) {
                assert_eq!(row[0], 0, "no filter");
                for x in 0..WIDTH {
                    let is_light = row[usize::try_from(x / 8 + 1).unwrap()] >> (7 - x % 8) & 1 == 1;
                    let is_wanted = if (48..208).contains(&x) && (112..272).contains(&y) {
                        // Five by five blocks; the fourth and fifth columns are the second and first again.
                        let (column, row) = ((x - 48) / 32, (y - 112) / 32);
                        let block = 3 * row + [0, 1, 2, 1, 0][usize::try_from(column).unwrap()];
                        seed[usize::try_from(3 + block).unwrap()] & 1 == 1
                    } else {
                        [16, 239].contains(&x) || [16, 367].contains(&y)
                    };
                    assert_eq!(is_light, is_wanted, "{x} {y}");
                }
            }
        }
    }

    #[test]
    fn each_side_has_its_limit() {
        for (width, height, fits) in
            [(1, 1, true), (8192, 8192, true), (8193, 1, false), (1, 8193, false), (0, 1, false), (1, 0, false)]
        {
            let header = [&u32::to_be_bytes(width)[..], &u32::to_be_bytes(height), &[1, 3, 0, 0, 0]].concat();
            assert_eq!(check_size(&header).is_ok(), fits, "{width} by {height}");
        }
    }

    #[test]
    fn a_text_has_its_limit_packed_or_not() {
        for (bytes, fits) in [(TEXT_BYTES_MAX - 6, true), (TEXT_BYTES_MAX - 5, false)] {
            let long = picture([1; 32], &[("chara", &vec![b'A'; bytes])]);
            assert_eq!(texts(&long, |_| true).is_ok(), fits, "{bytes}");
        }
        for (bytes, fits) in [(TEXT_BYTES_MAX, true), (TEXT_BYTES_MAX + 1, false)] {
            let packed = [&b"\0"[..], &stored(&vec![b'A'; bytes])].concat();
            assert_eq!(unpacked(&packed).is_ok(), fits, "{bytes}");
        }
    }
}
