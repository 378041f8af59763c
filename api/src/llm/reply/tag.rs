//! The three tags of the XML dialect, recognised in place; a tag is a bounded look ahead, never a search.

/// White space and attributes tolerated in a tag, in bytes.
const TAG_BYTES_MAX: usize = 256;

/// The tags that mean something; all others are text.
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
    /// Where its `<` is.
    pub(super) start: usize,
    /// Behind its `>`.
    pub(super) end: usize,
}

/// The tag of ours that begins at `start`, where `text` has a `<`.
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

/// All tags of ours, in order.
pub(super) fn tags(text: &str) -> impl Iterator<Item = Tag> {
    text.match_indices('<').filter_map(|(at, _)| tag_at(text, at))
}
