//! Texts that a model reads late in a prompt. The author's note stands some messages before the end. The instructions after the conversation
//! stand last. They are not stored with the conversation, so the model reads each of them once.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{cast::Cast, fence, hash::short_hash, macros::Macros};
use base::tokens;
use llm::{Message, Role};

/// The name of the author's note among a prompt's sections.
pub const NOTE: &str = "authors_note";
/// The name of the instructions after the conversation.
pub const LAST: &str = "post_history_instructions";

/// A late text.
#[derive(Clone, Debug)]
pub struct Reminder {
    /// Its name among the sections of the prompt.
    pub name: &'static str,
    pub text: Arc<str>,
    pub tokens: u32,
    pub hash: String,
    /// How many messages stand after it.
    depth: usize,
}

impl Reminder {
    /// The hint for another attempt at an answer.
    #[must_use]
    pub fn wish(text: &str) -> Option<Self> {
        Self::new("wish", "wish", text, 0)
    }

    fn new(name: &'static str, element: &str, text: &str, depth: usize) -> Option<Self> {
        if text.trim().is_empty() {
            return None;
        }
        let mut fenced = String::new();
        fence::put(&mut fenced, element, &[], text);
        let (tokens, hash) = (tokens::count(&fenced), short_hash(&Sha256::digest(fenced.as_bytes())));
        Some(Self { name, text: fenced.into(), tokens, hash, depth })
    }
}

/// The late texts of a turn.
#[must_use]
pub fn reminders(cast: &Cast, turn: Uuid) -> Vec<Reminder> {
    let (entity, macros) = (&cast.entity, Macros::of_turn(cast, turn));
    let note = entity.authors_note.as_ref().and_then(|note| {
        Reminder::new(NOTE, "authors_note", &macros.fill(&note.text), usize::try_from(note.depth).unwrap_or(0))
    });
    let last = Reminder::new(LAST, "instructions", &macros.fill(&entity.post_history_instructions), 0);
    note.into_iter().chain(last).collect()
}

/// Puts the late texts into the messages for a model: each becomes a part of the player's message that is nearest to its place, because
/// strict endpoints require that roles alternate. `base_parts` is the number of parts of the first message that belong to the base prompt.
pub fn insert(messages: &mut [Message], reminders: &[Reminder], base_parts: usize) {
    for reminder in reminders {
        let text = reminder.text.clone();
        // The message that follows the reminder; message 0 is the rules.
        let place = messages.len().saturating_sub(reminder.depth).max(1);
        match messages.get_mut(place) {
            Some(first) if place == 1 => first.content.insert(base_parts.min(first.content.len()), text),
            Some(next) if next.role == Role::User => next.content.insert(0, text),
            _ => {
                if let Some(before) = messages.get_mut(place - 1) {
                    before.content.push(text);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, parts: &[&str]) -> Message {
        let content = parts.iter().map(|part| Arc::from(*part)).collect();
        Message::pieces(role, content)
    }

    fn conversation() -> Vec<Message> {
        vec![
            message(Role::System, &["rules"]),
            message(Role::User, &["base", "u1"]),
            message(Role::Assistant, &["a1"]),
            message(Role::User, &["u2"]),
            message(Role::Assistant, &["a2"]),
            message(Role::User, &["u3"]),
        ]
    }

    fn with(depth: usize) -> String {
        let mut messages = conversation();
        let reminder =
            |text: &str, depth| Reminder { name: NOTE, text: text.into(), tokens: 1, hash: String::new(), depth };
        insert(&mut messages, &[reminder("NOTE", depth), reminder("LAST", 0)], 1);
        messages.iter().map(|message| message.content.join("+")).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn a_note_stands_at_its_depth_or_as_near_as_roles_allow() {
        for (depth, wanted) in [
            (0, "rules | base+u1 | a1 | u2 | a2 | u3+NOTE+LAST"),
            (1, "rules | base+u1 | a1 | u2 | a2 | NOTE+u3+LAST"),
            (2, "rules | base+u1 | a1 | u2+NOTE | a2 | u3+LAST"),
            (3, "rules | base+u1 | a1 | NOTE+u2 | a2 | u3+LAST"),
            (4, "rules | base+u1+NOTE | a1 | u2 | a2 | u3+LAST"),
            (5, "rules | base+NOTE+u1 | a1 | u2 | a2 | u3+LAST"),
            (100, "rules | base+NOTE+u1 | a1 | u2 | a2 | u3+LAST"),
        ] {
            assert_eq!(with(depth), wanted, "{depth}");
        }
    }
}
