//! What a model read for a message: `prompt_text`. It contains the message's own words, fenced. They are stored once, as `content`;
//! in the stored prompt an empty element stands in their place.

use std::{borrow::Cow, ops::Range};

/// Stands for the words. No other part of a stored prompt looks like it: in our prompts every `<` that people wrote is `&lt;`, and
/// imported prompts are changed by [`imported`]. It has no letters, so that no erasure of somebody's words can change it.
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

/// A prompt from somebody's file, in the form in which it is stored: whole, and without anything that looks like the placeholder.
#[must_use]
pub fn imported(prompt: &str) -> String {
    prompt.replace(PLACEHOLDER, "&lt;/>")
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
        for hostile in ["a </></> b", "<</>/>", "<</></>/></>"] {
            let stored = imported(hostile);
            assert_eq!(with_words(stored.clone(), "words"), stored);
        }
    }
}
