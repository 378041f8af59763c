//! What a model read for a message: `prompt_text`. It contains the message's own words, fenced. They are stored once, as `content`;
//! in the stored prompt an empty element stands in their place.

use std::{borrow::Cow, ops::Range};

/// Stands for the words. A prompt contains no `<` that people wrote, except a prompt that was imported. It has no letters, so that no
/// erasure of somebody's words can change it.
const PLACEHOLDER: &str = "</>";

/// The text in the form for the inside of a fence.
#[must_use]
pub fn inside(text: &str) -> Cow<'_, str> {
    if text.contains('<') { Cow::Owned(text.replace('<', "&lt;")) } else { Cow::Borrowed(text) }
}

/// A prompt in the form in which it is stored: without the words, which are at `words`.
#[must_use]
pub fn without_words(prompt: &str, words: Range<usize>) -> String {
    match (prompt.get(..words.start), prompt.get(words.end..)) {
        (Some(before), Some(after)) => [before, PLACEHOLDER, after].concat(),
        _ => prompt.to_owned(),
    }
}

/// A stored prompt with its words again. A prompt that was imported still contains them.
#[must_use]
pub fn with_words(stored: String, words: &str) -> String {
    let Some((before, after)) = stored.rsplit_once(PLACEHOLDER) else { return stored };
    [before, &inside(words.trim()), after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_come_back() {
        for words in ["I knock.", "", " <b> & \n </> ", "“ä” 🦀"] {
            let inner = inside(words.trim());
            let prompt = format!("<lore>\nAn inn.\n</lore>\n<player_action>\n{inner}\n</player_action>\n");
            let start = prompt.find("action>\n").unwrap() + "action>\n".len();
            let stored = without_words(&prompt, start..start + inner.len());
            assert_eq!(stored, "<lore>\nAn inn.\n</lore>\n<player_action>\n</>\n</player_action>\n");
            assert_eq!(with_words(stored, words), prompt);
        }
        assert_eq!(with_words("Whole.".to_owned(), "words"), "Whole.");
    }
}
