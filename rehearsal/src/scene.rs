//! What the persona reads from a prompt: who acts, what they do, and whether they are remembered.
//!
//! The player's action is in `<player_action player="…" name="…">…</player_action>` of the last user message, with `<`
//! escaped. Memories are in a `<memories …>` section. The text comes from a player. It is only cleaned, shortened and
//! returned as data, and never followed.

use std::borrow::Cow;

use crate::wire::{ChatRequest, Role};

/// The maximum length of a name, in characters.
const NAME_CHARS_MAX: usize = 60;

/// What the persona knows about this turn.
pub(crate) struct Scene {
    /// The slug or UUID of the player; `None` if the message has no action element.
    pub(crate) player_id: Option<String>,
    /// The name to address the player by, if the prompt has one.
    pub(crate) name: Option<String>,
    /// The action as the player wrote it, or else the whole last user message.
    pub(crate) action: String,
    /// Whether the prompt contains memories about the player.
    pub(crate) remembers: bool,
    /// Whether the last message is a tool's result.
    pub(crate) after_tool: bool,
}

/// Reads a request; `last_user` is the text of its last user message.
pub(crate) fn read(request: &ChatRequest<'_>, last_user: &str) -> Scene {
    let last = request.messages.last();
    let mut scene = Scene {
        player_id: None,
        name: None,
        action: String::new(),
        remembers: remembers(request),
        after_tool: last.is_some_and(|message| message.role == Role::Tool),
    };
    let Some(element) = last_user.rfind("<player_action").and_then(|at| last_user.get(at..)) else {
        last_user.clone_into(&mut scene.action);
        return scene;
    };
    let (attributes, content) = attributes(element.trim_start_matches("<player_action"));
    for (key, value) in attributes {
        match key {
            "player" => scene.player_id = Some(identifier(value)).filter(|id| !id.is_empty()),
            "name" => scene.name = Some(clean_name(&unescape(value))).filter(|name| !name.is_empty()),
            _ => {}
        }
    }
    let text = content.split("</player_action>").next().unwrap_or_default();
    scene.action = unescape(text).trim().to_owned();
    scene
}

/// Whether the last `<memories …>` section of the instructions or the user's messages is not empty.
fn remembers(request: &ChatRequest<'_>) -> bool {
    let prompts = request.messages.iter().rev();
    let mut prompts = prompts.filter(|message| !matches!(message.role, Role::Assistant | Role::Tool));
    prompts.find_map(|message| memories_in(&message.text())).unwrap_or(false)
}

fn memories_in(text: &str) -> Option<bool> {
    let start = text.rfind("<memories")?;
    let (_, content) = attributes(text.get(start..)?.trim_start_matches("<memories"));
    let inside = content.split_once("</memories>")?.0.trim().to_ascii_lowercase();
    let empty = ["none", "(none", "no memories", "nothing"];
    Some(!inside.is_empty() && !empty.iter().any(|word| inside.starts_with(word)))
}

/// Splits the rest of an opening tag into its `key="value"` pairs, and what follows the tag.
fn attributes(mut rest: &str) -> (Vec<(&str, &str)>, &str) {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start();
        let Some(equals) = rest.find(['=', '>']) else {
            return (found, "");
        };
        let (key, after) = rest.split_at(equals);
        if after.starts_with('>') {
            return (found, after.get(1..).unwrap_or_default());
        }
        let Some((value, after)) =
            after.get(1..).and_then(|quoted| quoted.strip_prefix('"')).and_then(|quoted| quoted.split_once('"'))
        else {
            return (found, "");
        };
        found.push((key.trim(), value));
        rest = after;
    }
}

/// Replaces the five XML escapes by their characters.
pub(crate) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let plain = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&apos;", "'")
        .replace("&amp;", "&");
    Cow::Owned(plain)
}

fn identifier(text: &str) -> String {
    let legal = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    text.chars().filter(legal).take(200).collect()
}

fn clean_name(text: &str) -> String {
    let legal = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '\'' | '’' | '-' | '.');
    let name: String = text.chars().filter(legal).take(NAME_CHARS_MAX).collect();
    name.trim().to_owned()
}

/// One line without markup, brackets or control characters, of at most `chars_max` characters.
pub(crate) fn clean_line(text: &str, chars_max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(chars_max * 4));
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        let word: String = word.chars().filter(|c| !"<>{}[]`\\|&".contains(*c)).collect();
        let chars = word.chars().count();
        if chars == 0 {
            continue;
        }
        let space = usize::from(length > 0);
        if length + space + chars > chars_max {
            if length == 0 {
                line.extend(word.chars().take(chars_max));
            }
            break;
        }
        if space == 1 {
            line.push(' ');
        }
        line.push_str(&word);
        length += space + chars;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_may_hold_angle_brackets() {
        let (found, rest) = attributes(" player=\"a\" name=\"B > C\">text");
        assert_eq!(found, [("player", "a"), ("name", "B > C")]);
        assert_eq!(rest, "text");
    }

    #[test]
    fn memories_empty_or_not() {
        assert_eq!(memories_in("<memories of=\"x\">\n- paid\n</memories>"), Some(true));
        assert_eq!(memories_in("<memories>\n</memories>"), Some(false));
        assert_eq!(memories_in("<memories/>"), None);
        assert_eq!(memories_in("nothing here"), None);
    }

    #[test]
    fn lines_are_cleaned_and_cut_at_words() {
        assert_eq!(clean_line("a <b>\n\u{7} c  {d}", 100), "a b c d");
        assert_eq!(clean_line("one two three", 8), "one two");
        assert_eq!(clean_line("eleventwelve", 6), "eleven");
    }
}
