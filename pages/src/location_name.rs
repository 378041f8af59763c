//! Locations as people read them, and other names in capital letters.

/// A location as people read it: a slug as words with capital first letters, anything else as it is written.
#[must_use]
pub(crate) fn location_name(location: &str) -> String {
    let is_slug = location.contains('_') || !location.contains(char::is_uppercase);
    if !is_slug {
        return location.to_owned();
    }
    let words = location.split(['_', '-', ' ']).filter(|word| !word.is_empty());
    words.map(capital).collect::<Vec<_>>().join(" ")
}

/// A text with a capital first letter.
#[must_use]
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
