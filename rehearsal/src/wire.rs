//! A chat request as it arrives, borrowed from the body where JSON allows it.
//!
//! Only fields that are used appear here; others are skipped. This module decides nothing; `check` rejects what a
//! provider would reject.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A string that is borrowed unless it contains escapes. (`Option<Cow<str>>` would always be copied.)
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The body of `POST /v1/chat/completions`.
#[derive(serde::Deserialize)]
pub(crate) struct ChatRequest<'a> {
    #[serde(borrow)]
    pub(crate) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) messages: Vec<Message<'a>>,
    #[serde(borrow)]
    pub(crate) tools: Option<Vec<Tool<'a>>>,
    pub(crate) tool_choice: Option<ToolChoice>,
    pub(crate) stream: Option<bool>,
    pub(crate) stream_options: Option<StreamOptions>,
    pub(crate) n: Option<u32>,
    #[serde(borrow)]
    pub(crate) prompt_cache_key: Option<Text<'a>>,
}

/// One message of the conversation.
#[derive(serde::Deserialize)]
pub(crate) struct Message<'a> {
    pub(crate) role: Role,
    #[serde(borrow)]
    pub(crate) content: Option<Content<'a>>,
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow)]
    pub(crate) tool_call_id: Option<Text<'a>>,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

/// A message's content: a string, or a list of parts.
pub(crate) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// One part. Parts without text (images) count as empty.
#[derive(serde::Deserialize)]
pub(crate) struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

/// A tool call in an assistant message.
#[derive(serde::Deserialize)]
pub(crate) struct ToolCall<'a> {
    #[serde(borrow)]
    pub(crate) id: Text<'a>,
    #[serde(borrow)]
    pub(crate) function: CalledFunction<'a>,
}

/// The function of a call.
#[derive(serde::Deserialize)]
pub(crate) struct CalledFunction<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    #[serde(borrow)]
    pub(crate) arguments: Text<'a>,
}

/// An offered tool.
#[derive(serde::Deserialize)]
pub(crate) struct Tool<'a> {
    #[serde(borrow)]
    pub(crate) function: Function<'a>,
}

/// Its function. The schema stays text until arguments have to be made up.
#[derive(serde::Deserialize)]
pub(crate) struct Function<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    #[serde(borrow)]
    pub(crate) description: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) parameters: Option<&'a RawValue>,
}

/// Whether a tool must be called, and which.
#[derive(serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum ToolChoice {
    Mode(ToolMode),
    Named { function: NamedFunction },
}

/// A `tool_choice` that is a word.
#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolMode {
    None,
    Auto,
    Required,
}

/// The function that `tool_choice` names.
#[derive(serde::Deserialize)]
pub(crate) struct NamedFunction {
    pub(crate) name: String,
}

/// Options of a stream.
#[derive(serde::Deserialize)]
pub(crate) struct StreamOptions {
    #[serde(default)]
    pub(crate) include_usage: bool,
}

impl ChatRequest<'_> {
    /// The model's name for the answer.
    pub(crate) fn model(&self) -> &str {
        self.model.as_deref().unwrap_or("rehearsal")
    }

    /// The offered tools, or an empty list.
    pub(crate) fn tools(&self) -> &[Tool<'_>] {
        self.tools.as_deref().unwrap_or_default()
    }

    /// The text of the last user message; empty if there is none.
    pub(crate) fn last_user_text(&self) -> Cow<'_, str> {
        let last = self.messages.iter().rfind(|message| message.role == Role::User);
        last.map(Message::text).unwrap_or_default()
    }
}

impl Message<'_> {
    /// All text of the message.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match &self.content {
            None => Cow::Borrowed(""),
            Some(Content::Text(text)) => Cow::Borrowed(text),
            Some(Content::Parts(parts)) => {
                let texts = parts.iter().filter_map(|part| part.text.as_deref());
                Cow::Owned(texts.collect::<Vec<_>>().join("\n"))
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of content parts")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Self::Value, S::Error> {
                let mut parts = Vec::new();
                while let Some(part) = list.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}
