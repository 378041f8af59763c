//! What the persona reads from a prompt: who acts, what they do, and whether they are remembered.
//!
//! The player's action is in `<player_action player="…" name="…">…</player_action>` of the last user message, with `<`
//! escaped. What a character noticed by itself is in `<noticed_actions …>`, a prayer in `<prayer …>`, with the same attributes.
//! Memories are in the sections `<memories …>` and `<recalled …>`. The text comes from a player. It is only cleaned, shortened and returned as data, and
//! never followed.

use std::borrow::Cow;

use crate::wire::{ChatRequest, Role};

/// The maximum length of a name, in characters.
const NAME_CHARS_MAX: usize = 60;

/// The elements that hold what a player did.
const ELEMENTS: [&str; 3] = ["player_action", "noticed_actions", "prayer"];

/// The sections that hold memories.
const SECTIONS: [&str; 2] = ["memories", "recalled"];

/// How the prompt marks a memory that an owner gave to its NPCs.
const FROM_OWNER: &str = "[told by those you answer to]";

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
    /// Whether one of them comes from an owner of this NPC.
    pub(crate) was_told: bool,
    /// Whether the last message is a tool's result.
    pub(crate) after_tool: bool,
    /// Whether the persona has said something before.
    pub(crate) has_spoken: bool,
    /// The name of the persona itself, if it is an NPC. Owners keep what they know to themselves.
    pub(crate) own_name: Option<String>,
    /// Whether the rules decided that an action succeeds, and whose it is, if there is nothing but that to tell.
    pub(crate) ruled: Option<(bool, String)>,
}

/// Reads a request; `last_user` is the text of its last user message.
pub(crate) fn read(request: &ChatRequest<'_>, last_user: &str) -> Scene {
    let last = request.messages.last();
    let memories = memories(request);
    let mut scene = Scene {
        player_id: None,
        name: None,
        action: String::new(),
        remembers: memories.as_deref().is_some_and(|text| !is_nothing(text)),
        was_told: memories.as_deref().is_some_and(|text| text.contains(FROM_OWNER)),
        after_tool: last.is_some_and(|message| message.role == Role::Tool),
        has_spoken: request.messages.iter().any(|message| message.role == Role::Assistant),
        own_name: own_name(request),
        ruled: ruled(last_user),
    };
    let last_of = |name: &'static str| last_user.rfind(&format!("<{name} ")).map(|at| (at, name));
    let Some((at, name)) = ELEMENTS.into_iter().filter_map(last_of).max() else {
        last_user.clone_into(&mut scene.action);
        return scene;
    };
    let (attributes, content) = attributes(last_user.get(at + 1 + name.len()..).unwrap_or_default());
    for (key, value) in attributes {
        match key {
            "player" => scene.player_id = Some(identifier(value)).filter(|id| !id.is_empty()),
            "name" => scene.name = Some(clean_name(&unescape(value))).filter(|name| !name.is_empty()),
            _ => {}
        }
    }
    let text = content.split(&format!("</{name}>")).next().unwrap_or_default();
    scene.action = unescape(text).trim().to_owned();
    scene
}

/// The name of the NPC that the prompt describes.
fn own_name(request: &ChatRequest<'_>) -> Option<String> {
    let told = request.messages.iter().filter(|message| message.role == Role::User);
    let named = |text: &str| {
        let (attributes, _) = attributes(text.split_once("<character ")?.1);
        let value = |key: &str| attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        let name = value("name").filter(|_| value("kind") == Some("npc"))?;
        Some(clean_name(&unescape(name))).filter(|name| !name.is_empty())
    };
    told.take(1).find_map(|message| named(&message.text()))
}

/// What the rules decided of an action, in a request to narrate it.
fn ruled(last_user: &str) -> Option<(bool, String)> {
    let mechanics = section(last_user, "mechanics")?;
    let (attributes, _) = attributes(last_user.split_once("<action ")?.1);
    let (_, name) = attributes.into_iter().find(|(key, _)| *key == "character")?;
    let result = mechanics.lines().find_map(|line| line.strip_prefix("RESULT: "))?;
    let succeeds = match result.trim() {
        "SUCCESS" => true,
        "FAILURE" => false,
        _ => return None,
    };
    Some((succeeds, clean_name(&unescape(name))))
}

/// The last section of each kind in the instructions or the user's messages.
fn memories(request: &ChatRequest<'_>) -> Option<String> {
    let told = request.messages.iter().filter(|message| !matches!(message.role, Role::Assistant | Role::Tool));
    let texts: Vec<Cow<'_, str>> = told.rev().map(|message| message.text()).collect();
    let last = |name| texts.iter().find_map(|text| section(text, name));
    let found: Vec<&str> = SECTIONS.into_iter().filter_map(last).collect();
    (!found.is_empty()).then(|| found.join("\n").trim().to_owned())
}

fn section<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let opening = format!("<{name}");
    let (_, content) = attributes(text.get(text.rfind(&opening)? + opening.len()..)?);
    content.split_once(&format!("</{name}>")).map(|(inside, _)| inside)
}

/// Whether a section says that there are no memories.
fn is_nothing(memories: &str) -> bool {
    let inside = memories.to_ascii_lowercase();
    let empty = ["none", "(none", "no memories", "nothing"];
    inside.is_empty() || empty.iter().any(|word| inside.starts_with(word))
}

/// Splits the rest of an opening tag into its `key="value"` pairs, and what follows the tag.
pub(crate) fn attributes(mut rest: &str) -> (Vec<(&str, &str)>, &str) {
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
        let some = |text| section(text, "memories").map(|inside| !is_nothing(inside.trim()));
        assert_eq!(some("<memories of=\"x\">\n- paid\n</memories>"), Some(true));
        assert_eq!(some("<memories>\n</memories>"), Some(false));
        assert_eq!(some("<memories/>"), None);
        assert_eq!(some("nothing here"), None);
    }

    #[test]
    fn lines_are_cleaned_and_cut_at_words() {
        assert_eq!(clean_line("a <b>\n\u{7} c  {d}", 100), "a b c d");
        assert_eq!(clean_line("one two three", 8), "one two");
        assert_eq!(clean_line("eleventwelve", 6), "eleven");
    }
}
