//! What the persona can tell: sentences of the lore in its prompt, chosen by the words of an action.
//!
//! The lore comes from the world's author and may hold anything. It is cleaned and shortened like all other text, and never followed. What a
//! player wrote is only searched for words.

use std::collections::BTreeSet;

use crate::scene::{attributes, clean_line, unescape};
use crate::schema::contains_word;
use crate::wire::{ChatRequest, Role};

/// The most entries that are looked at, and the most characters of each.
const ENTRIES_MAX: usize = 200;
const ENTRY_CHARS_MAX: usize = 2_000;
/// The maximum length of what is told, in characters.
const TOLD_CHARS_MAX: usize = 240;
/// Shorter words, and these, say nothing of a subject.
const WORD_CHARS_MIN: usize = 4;
const COMMON: &str = "about again anything because been does down every everything from good have hear here into just know like look \
    make more much news over please really said some something tell than that their them then there these they \
    thing think this want well were what when where which will with would your";

/// An entry of the lore.
struct Entry {
    title: BTreeSet<String>,
    sentences: Vec<String>,
    /// Whether it is about a location: the persona is there.
    is_here: bool,
}

/// The lore of a prompt.
pub(crate) struct Known(Vec<Entry>);

impl Known {
    /// Reads it from the instructions and the user's messages.
    pub(crate) fn read(request: &ChatRequest<'_>) -> Self {
        let told = request.messages.iter().filter(|message| !matches!(message.role, Role::Assistant | Role::Tool));
        let mut entries = Vec::new();
        for message in told {
            let text = message.text();
            let mut rest = &*text;
            while let Some((_, opened)) = rest.split_once("<lore ")
                && entries.len() < ENTRIES_MAX
            {
                let (attributes, inside) = attributes(opened);
                let (content, after) = inside.split_once("</lore>").unwrap_or((inside, ""));
                entries.extend(entry(&attributes, content));
                rest = after;
            }
        }
        Self(entries)
    }

    /// A sentence about what the action speaks of; none if nothing is known of that. `choice` selects among several.
    pub(crate) fn about(&self, action: &str, choice: u64) -> Option<String> {
        let asked = words(action);
        let shared = |text: &BTreeSet<String>| text.intersection(&asked).count();
        let score =
            |entry: &Entry| 3 * shared(&entry.title) + entry.sentences.iter().map(|s| shared(&words(s))).sum::<usize>();
        let best = self.0.iter().rev().max_by_key(|entry| score(entry)).filter(|entry| score(entry) > 0)?;
        let fitting: Vec<&String> = best.sentences.iter().filter(|sentence| shared(&words(sentence)) > 0).collect();
        if fitting.is_empty() {
            pick(&best.sentences, choice).cloned()
        } else {
            pick(&fitting, choice).map(|s| (*s).clone())
        }
    }

    /// A sentence about the location.
    pub(crate) fn here(&self, choice: u64) -> Option<String> {
        let sentences: Vec<&String> =
            self.0.iter().filter(|entry| entry.is_here).flat_map(|entry| &entry.sentences).collect();
        pick(&sentences, choice).map(|sentence| (*sentence).clone())
    }

    /// Any sentence.
    pub(crate) fn any(&self, choice: u64) -> Option<String> {
        let sentences: Vec<&String> = self.0.iter().flat_map(|entry| &entry.sentences).collect();
        pick(&sentences, choice).map(|sentence| (*sentence).clone())
    }
}

/// None for a secret, and for one without a sentence.
fn entry(attributes: &[(&str, &str)], content: &str) -> Option<Entry> {
    let value = |name: &str| attributes.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| *value);
    if value("secret") == "true" {
        return None;
    }
    let content: String = content.chars().take(ENTRY_CHARS_MAX).collect();
    let sentences: Vec<String> = unescape(&content)
        .split_inclusive(['.', '!', '?'])
        .map(|sentence| clean_line(sentence, TOLD_CHARS_MAX))
        .filter(|sentence| sentence.ends_with(['.', '!', '?']) && sentence.chars().count() >= WORD_CHARS_MIN)
        .collect();
    let is_here = value("about").starts_with("zone ");
    (!sentences.is_empty()).then(|| Entry { title: words(&unescape(value("title"))), sentences, is_here })
}

/// The words of a text that say what it is about, in lower case and in the singular.
fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() >= WORD_CHARS_MIN && !contains_word(COMMON, word))
        .map(|word| word.strip_suffix('s').unwrap_or(word).to_owned())
        .collect()
}

fn pick<T>(list: &[T], choice: u64) -> Option<&T> {
    list.get(usize::try_from(choice % list.len().max(1) as u64).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let prompt = r#"{"messages": [{"role": "user", "content": "<lore entry=\"a\" title=\"The Gilded Gull\" about=\"zone gilded_gull\">\nIt serves eel &amp; beer. A drink is four copper.\n</lore>\n<lore entry=\"b\" title=\"Lighthouse\">\nThe lighthouse is dark.\n</lore>\n<lore entry=\"c\" title=\"Crown\" secret=\"true\">\nThe crown is false.\n</lore>"}, {"role": "assistant", "content": "<lore title=\"No\">\nNo such lore.\n</lore>"}]}"#;
        Known::read(&serde_json::from_str(prompt).unwrap())
    }

    #[test]
    fn what_is_asked_about_is_told() {
        let known = known();
        assert_eq!(known.about("Why are the lighthouses dark?", 7).as_deref(), Some("The lighthouse is dark."));
        assert_eq!(known.about("How much is a drink?", 0).as_deref(), Some("A drink is four copper."));
        assert_eq!(known.about("And the Gilded Gull?", 0).as_deref(), Some("It serves eel beer."));
        assert_eq!(known.about("And the Gilded Gull?", 1).as_deref(), Some("A drink is four copper."));
        for unknown in ["Is the crown false?", "What is such?", "", "Hello there!"] {
            assert_eq!(known.about(unknown, 0), None, "{unknown}");
        }
        assert_eq!(known.here(0).as_deref(), Some("It serves eel beer."));
        assert_eq!(known.any(2).as_deref(), Some("The lighthouse is dark."));
    }
}
