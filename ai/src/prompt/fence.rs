//! Fences around text that people wrote. Inside a fence every `<` becomes `&lt;`, so no text can close its fence or open another.

use std::{borrow::Cow, fmt::Write as _};

/// The text in the form for the inside of a fence.
#[must_use]
pub fn inside(text: &str) -> Cow<'_, str> {
    if text.contains('<') { Cow::Owned(text.replace('<', "&lt;")) } else { Cow::Borrowed(text) }
}

/// The text in the form for a fence's attribute: on one line, without quotes.
#[must_use]
pub fn attribute(text: &str) -> Cow<'_, str> {
    let unfit = |c: char| c.is_control() || matches!(c, '"' | '<' | '>');
    if !text.contains(unfit) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '"' => out.push_str("&quot;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Writes `<name attributes>`, the fenced text and `</name>`, each on lines of their own.
pub fn put(out: &mut String, name: &str, attributes: &[(&str, &str)], text: &str) {
    open(out, name, attributes);
    let _ = writeln!(out, "{}", inside(text.trim()));
    close(out, name);
}

/// Writes the opening line of a fence.
pub fn open(out: &mut String, name: &str, attributes: &[(&str, &str)]) {
    let _ = write!(out, "<{name}");
    for (key, value) in attributes.iter().filter(|(_, v)| !v.is_empty()) {
        let _ = write!(out, " {key}=\"{}\"", attribute(value));
    }
    out.push_str(">\n");
}

/// Writes the closing line of a fence.
pub fn close(out: &mut String, name: &str) {
    let _ = writeln!(out, "</{name}>");
}
