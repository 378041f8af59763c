//! Decides how much of a reply may be shown while the model still writes it.
//!
//! The shown text is always the beginning of the narrative that [`super::parse_native`] or [`super::parse_text`] read from the
//! whole reply, or close to it. Text that may not belong to the narrative waits for the end; then [`Partial::rest`] returns what is
//! missing.

use super::NARRATIVE_BYTES_MAX;
use super::mode::ReplyMode;
use super::text::decode_entities_into;
use base::text::Cleaner;

const OPEN: &str = "<narrative>";
const CLOSE: &str = "</narrative>";
/// `&#x10FFFF;` with some leading zeros, as in a whole reply.
const ENTITY_BYTES_MAX: usize = 16;

/// A reply in progress.
#[derive(Debug)]
pub struct Partial {
    mode: ReplyMode,
    /// Received but not yet read.
    raw: String,
    at: At,
    /// Whitespace that is shown once other text follows.
    held: String,
    shown: String,
    cleaner: Cleaner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Beginning,
    /// Before the narrative of a text reply.
    Outside,
    Narrative,
    /// The rest waits for the end of the reply.
    Waiting,
}

impl Partial {
    /// An empty reply.
    pub fn new(mode: ReplyMode) -> Self {
        Self {
            mode,
            raw: String::new(),
            at: At::Beginning,
            held: String::new(),
            shown: String::new(),
            cleaner: Cleaner::default(),
        }
    }

    /// Adds a piece and returns the text that may now be shown.
    pub fn push(&mut self, piece: &str) -> String {
        if self.at == At::Waiting {
            return String::new();
        }
        self.raw.push_str(piece);
        let from = self.shown.len();
        while self.step() {}
        self.shown[from..].to_owned()
    }

    /// The part of the finished narrative that was not shown yet. Empty if the shown text is not its beginning.
    pub fn rest<'n>(&self, narrative: &'n str) -> &'n str {
        narrative.strip_prefix(self.shown.as_str()).unwrap_or_default()
    }

    /// Reads the next part. Returns whether there is more to read.
    fn step(&mut self) -> bool {
        match self.at {
            At::Beginning => self.begin(),
            At::Outside => self.look_for_narrative(),
            At::Narrative => self.narrate(),
            At::Waiting => false,
        }
    }

    fn begin(&mut self) -> bool {
        let start = self.raw.trim_start_matches('\u{feff}').trim_start();
        if start.is_empty() {
            self.raw.clear();
            return false;
        }
        self.raw = start.to_owned();
        self.at = if self.mode == ReplyMode::Native { At::Narrative } else { At::Outside };
        true
    }

    /// Prose, JSON and code fences can only be read as a whole.
    fn look_for_narrative(&mut self) -> bool {
        let start = self.raw.trim_start();
        if !start.is_empty() && !start.starts_with('<') {
            self.at = At::Waiting;
            return false;
        }
        let Some(at) = self.raw.to_ascii_lowercase().find(OPEN) else {
            if self.raw.len() > 4 * OPEN.len() {
                self.at = At::Waiting;
            }
            return false;
        };
        self.raw.drain(..at + OPEN.len());
        self.at = At::Narrative;
        true
    }

    fn narrate(&mut self) -> bool {
        match self.mode {
            ReplyMode::Native => {
                let raw = std::mem::take(&mut self.raw);
                self.show(&raw);
            }
            ReplyMode::Xml => {
                let tag = self.raw.find('<');
                let sure = tag.unwrap_or_else(|| before_open_entity(&self.raw));
                let rest = self.raw.split_off(sure);
                let text = std::mem::replace(&mut self.raw, rest);
                let mut decoded = String::with_capacity(text.len());
                decode_entities_into(&mut decoded, &text);
                self.show(&decoded);
                let may_close = self.raw.len() < CLOSE.len() && CLOSE.starts_with(&self.raw.to_ascii_lowercase());
                if tag.is_some() && !may_close {
                    self.at = At::Waiting;
                }
            }
        }
        false
    }

    fn show(&mut self, text: &str) {
        for c in text.chars() {
            let Some(c) = self.cleaner.take(c) else { continue };
            if self.shown.len() + self.held.len() + c.len_utf8() > NARRATIVE_BYTES_MAX {
                self.at = At::Waiting;
                return;
            }
            if c.is_whitespace() {
                if !self.shown.is_empty() {
                    self.held.push(c);
                }
            } else {
                self.shown.push_str(&self.held);
                self.held.clear();
                self.shown.push(c);
            }
        }
    }
}

/// The position before an entity that is not complete.
fn before_open_entity(text: &str) -> usize {
    let tail = text.floor_char_boundary(text.len().saturating_sub(ENTITY_BYTES_MAX));
    match text[tail..].rfind('&') {
        Some(at) if !text[tail + at..].contains(';') => tail + at,
        _ => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_text;
    use super::*;

    /// Checks the shown text and the rest, however the reply is split.
    fn check_in_pieces(mode: ReplyMode, reply: &str, narrative: &str) {
        let bounds: Vec<usize> = reply.char_indices().map(|(at, _)| at).chain([reply.len()]).collect();
        for size in [1, 2, 3, 7, 1000] {
            let mut partial = Partial::new(mode);
            let mut shown = String::new();
            for cut in bounds.chunks(size) {
                let end = cut
                    .last()
                    .map_or(reply.len(), |&last| bounds.iter().copied().find(|&b| b > last).unwrap_or(reply.len()));
                shown.push_str(&partial.push(&reply[cut[0]..end]));
            }
            assert!(narrative.starts_with(&shown), "{shown:?} of {narrative:?}");
            shown.push_str(partial.rest(narrative));
            assert_eq!(shown, narrative, "in pieces of {size}");
        }
    }

    #[test]
    fn what_is_shown_adds_up_to_the_narrative() {
        check_in_pieces(ReplyMode::Native, "  The door opens.\r\n\n A cat, é!  ", "The door opens.\n\n A cat, é!");
        check_in_pieces(ReplyMode::Native, "\u{1b} One.\rTwo\u{7}.\r\r\nThree.\u{85}\u{1b} ", "One.\nTwo.\n\nThree.");
        check_in_pieces(ReplyMode::Native, "<this> is text", "<this> is text");
        for reply in [
            "<response><narrative>Bob &amp; Ann nod &#8212; twice.\n\nThen & there &lt;</narrative><tools>[]</tools></response>",
            "<response>\n<NARRATIVE> He smiles. </NARRATIVE></response>",
            "<response><narrative>He <b>smiles</b>.</narrative></response>",
            "<response><narrative><![CDATA[a < b]]> and more</narrative></response>",
            "Just prose.",
            "{\"narrative\":\"In JSON.\",\"tools\":[]}",
        ] {
            check_in_pieces(ReplyMode::Xml, reply, &parse_text(reply).narrative);
        }
    }

    #[test]
    fn a_plain_narrative_is_shown_as_it_comes() {
        let mut partial = Partial::new(ReplyMode::Xml);
        assert_eq!(partial.push("<response><narrative>Hello"), "Hello");
        assert_eq!(partial.push(" there &am"), " there");
        assert_eq!(partial.push("p; all</nar"), " & all");
        assert_eq!(partial.push("rative><tools>[]"), "");
    }
}
