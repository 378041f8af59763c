//! Splits the body of an answer into the JSON documents that it consists of, as its bytes come.
//!
//! The body decides what it is, because endpoints label it wrongly: one document, a stream of `data:` lines, several documents
//! in a row, or a document followed by `data: [DONE]`. Everything else (comments, other fields of an event stream, keep-alives) is
//! skipped. Each byte is looked at once, however slowly they come.

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A part of the body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The text of a JSON object or list. It may be broken.
    Document(Vec<u8>),
    /// `[DONE]`: the endpoint has nothing more to send.
    Done,
}

/// Follows JSON byte by byte until its first value, an object or a list, is complete.
#[derive(Debug, Default)]
pub(super) struct Balance {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    is_complete: bool,
}

impl Balance {
    /// Whether the value is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Reads on. Returns the number of bytes up to the end of the value, or `None` if it goes on after these.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.is_complete {
            return Some(0);
        }
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.is_complete = true;
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// The bytes of a body that were not yet split.
#[derive(Debug, Default)]
pub(super) struct Documents {
    buffer: Vec<u8>,
    /// Where the part begins that is being read.
    begin: usize,
    /// Up to where it was looked at.
    searched: usize,
    /// If it is a document.
    document: Option<Balance>,
}

impl Documents {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.begin);
        self.searched -= self.begin;
        self.begin = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete part.
    pub(super) fn next(&mut self) -> Option<Part> {
        loop {
            if let Some(balance) = &mut self.document {
                let Some(length) = balance.read(&self.buffer[self.searched..]) else {
                    self.searched = self.buffer.len();
                    return None;
                };
                let document = self.buffer[self.begin..self.searched + length].to_vec();
                self.document = None;
                self.go_on_at(self.searched + length);
                return Some(Part::Document(document));
            }
            if self.searched == self.begin {
                self.skip_gap();
                match &self.buffer[self.begin..] {
                    // Too little to tell: `[DONE]` may stand without `data:`.
                    begun if BYTE_ORDER_MARK.starts_with(begun) || begun == b"[" => return None,
                    [b'[', b'D', ..] => {}
                    [b'{' | b'[', ..] => {
                        self.document = Some(Balance::default());
                        continue;
                    }
                    _ => {}
                }
            }
            let Some(at) = self.buffer[self.searched..].iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.searched = self.buffer.len();
                return None;
            };
            let end = self.searched + at;
            let part = part_of(&self.buffer[self.begin..end]);
            self.go_on_at(end + 1);
            if part.is_some() {
                return part;
            }
        }
    }

    /// What stands at the end of the body: a line without its end, or the beginning of a document.
    pub(super) fn rest(&mut self) -> Option<Part> {
        let whole = std::mem::take(self);
        let rest = &whole.buffer[whole.begin..];
        if whole.document.is_some() { Some(Part::Document(rest.to_vec())) } else { part_of(rest) }
    }

    fn go_on_at(&mut self, at: usize) {
        (self.begin, self.searched) = (at, at);
    }

    /// Skips what stands between two parts.
    fn skip_gap(&mut self) {
        let mut rest = &self.buffer[self.begin..];
        loop {
            rest = match rest {
                [byte, tail @ ..] if byte.is_ascii_whitespace() || *byte == b',' => tail,
                _ => match rest.strip_prefix(BYTE_ORDER_MARK) {
                    Some(tail) => tail,
                    None => break,
                },
            };
        }
        self.go_on_at(self.buffer.len() - rest.len());
    }
}

/// The part that a line of an event stream has. No provider breaks its JSON into lines.
fn part_of(line: &[u8]) -> Option<Part> {
    let data = line.strip_prefix(b"data:").unwrap_or(line).trim_ascii();
    match data {
        b"[DONE]" => Some(Part::Done),
        [b'{' | b'[', ..] => Some(Part::Document(data.to_vec())),
        _ => None,
    }
}
