//! Recognises the three tags of the XML dialect in place, with a bounded look-ahead and without searching.

/// The most bytes of whitespace and attributes in a tag.
const TAG_BYTES_MAX: usize = 256;

/// The known tags. All others are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Response,
    Narrative,
    Tools,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Close,
    Empty,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    pub(super) name: Name,
    pub(super) kind: Kind,
    /// The position of its `<`.
    pub(super) start: usize,
    /// The position after its `>`.
    pub(super) end: usize,
}

/// The known tag that begins at `start`, where `text` has a `<`.
pub(super) fn tag_at(text: &str, start: usize) -> Option<Tag> {
    let bytes = text.as_bytes();
    let closing = bytes.get(start + 1) == Some(&b'/');
    let from = start + 1 + usize::from(closing);
    let names = [("response", Name::Response), ("narrative", Name::Narrative), ("tools", Name::Tools)];
    let (word, name) = names.into_iter().find(|(word, _)| {
        bytes.get(from..from + word.len()).is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes()))
    })?;
    let rest = &bytes[from + word.len()..];
    if !matches!(rest.first(), Some(b'>' | b'/' | b' ' | b'\t' | b'\r' | b'\n')) {
        return None;
    }
    let length = rest.iter().take(TAG_BYTES_MAX).position(|byte| matches!(byte, b'>' | b'<'))?;
    if rest[length] == b'<' {
        return None;
    }
    let kind = match (closing, length.checked_sub(1).map(|last| rest[last])) {
        (true, _) => Kind::Close,
        (false, Some(b'/')) => Kind::Empty,
        (false, _) => Kind::Open,
    };
    Some(Tag { name, kind, start, end: from + word.len() + length + 1 })
}

/// All known tags, in order.
pub(super) fn tags(text: &str) -> impl Iterator<Item = Tag> {
    text.match_indices('<').filter_map(|(at, _)| tag_at(text, at))
}
