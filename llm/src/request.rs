//! The request in its wire format, serialised directly from shared pieces.
//!
//! It must never copy a prompt: [`Message::content`] is a list of shared pieces that the serialiser writes as one JSON string. To
//! add a field of the API, add it to [`ChatRequest`] and to `Payload`'s `serialize`.

use super::decode::WireToolCall;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::endpoint::CallOptions;
use super::stream::Sink;

/// How the model is asked to write tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyMode {
    /// The provider's tool calls.
    #[default]
    Native,
    /// Text with `<response><narrative>…</narrative><tools>[…]</tools></response>`, or its JSON forms.
    Xml,
}

impl ReplyMode {
    /// The name in JSON and in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Xml => "xml",
        }
    }
}

impl fmt::Display for ReplyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reply mode that is neither `native` nor `xml`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a reply mode must be `native` or `xml`")]
pub struct UnknownReplyMode;

impl FromStr for ReplyMode {
    type Err = UnknownReplyMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Native, Self::Xml]
            .into_iter()
            .find(|mode| text.trim().eq_ignore_ascii_case(mode.as_str()))
            .ok_or(UnknownReplyMode)
    }
}

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The game's own instructions.
    System,
    /// Players, and everything else that is data.
    User,
    /// The model.
    Assistant,
    /// The result of one of the model's calls.
    Tool,
}

/// One message of the conversation.
#[derive(Debug, Clone)]
pub struct Message {
    /// The role.
    pub role: Role,
    /// Pieces that are sent as one string, joined without a separator.
    pub content: Vec<Arc<str>>,
    /// The calls of an assistant message. Empty for the other roles.
    pub tool_calls: Vec<WireToolCall>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message with one piece and without calls.
    pub fn text(role: Role, content: impl Into<Arc<str>>) -> Self {
        Self { role, content: vec![content.into()], tool_calls: Vec::new(), tool_call_id: None }
    }

    /// The result of the call `tool_call_id`.
    pub fn tool_result(tool_call_id: impl Into<String>, content: impl Into<Arc<str>>) -> Self {
        Self { tool_call_id: Some(tool_call_id.into()), ..Self::text(Role::Tool, content) }
    }

    /// The model's reply, for the next model call of a tool loop.
    pub fn assistant(content: impl Into<Arc<str>>, tool_calls: Vec<WireToolCall>) -> Self {
        Self { tool_calls, ..Self::text(Role::Assistant, content) }
    }
}

/// Which call the model must make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    /// A call of this function.
    Function(&'a str),
    /// A call of any tool.
    Required,
}

/// One chat request. `prefix` and `messages` are sent as one list; neither is copied.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChatRequest<'a> {
    /// The shared, stable part of the conversation.
    pub prefix: &'a [Message],
    /// The messages after the prefix.
    pub messages: &'a [Message],
    /// The serialised `tools` array.
    pub tools: Option<&'a RawValue>,
    /// Which call the model must make. Only sent together with `tools`.
    pub tool_choice: Option<ToolChoice<'a>>,
    /// Groups requests that share a prefix, if the provider supports it.
    pub prompt_cache_key: Option<&'a str>,
    /// Receives the text while the model writes it. If set, the reply is requested as a stream.
    pub sink: Option<&'a Sink>,
}

impl ChatRequest<'_> {
    /// The length of the messages' texts, in bytes.
    pub(super) fn content_bytes(&self) -> usize {
        self.prefix.iter().chain(self.messages).flat_map(|message| &message.content).map(|piece| piece.len()).sum()
    }
}

/// The fewest tokens that are left for an answer, however long the prompt.
const OUTPUT_TOKENS_MIN: u32 = 256;
/// A token has about this many bytes. Counting exactly would need the model's own tokenizer.
const TOKEN_BYTES: usize = 3;

/// A request and the model for it.
pub(super) struct Payload<'a> {
    pub(super) model: &'a str,
    pub(super) options: &'a CallOptions,
    /// The output limit, unless the options have one.
    pub(super) output_tokens_max: u32,
    pub(super) request: &'a ChatRequest<'a>,
}

impl Payload<'_> {
    /// The most tokens of the answer. Endpoints refuse a limit that the context window cannot hold beside the prompt.
    fn output_tokens(&self) -> u32 {
        let wanted = self.options.parameters.max_output_tokens.unwrap_or(self.output_tokens_max);
        let Some(context) = self.options.context_tokens else { return wanted };
        let bytes = self.request.content_bytes() + self.request.tools.map_or(0, |tools| tools.get().len());
        let left = context.saturating_sub(u32::try_from(bytes / TOKEN_BYTES).unwrap_or(u32::MAX));
        wanted.min(left.max(OUTPUT_TOKENS_MIN))
    }
}

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.request;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        map.serialize_entry(self.options.output_limit.as_str(), &self.output_tokens())?;
        self.options.parameters.write(&mut map)?;
        map.serialize_entry("messages", &Chain(request.prefix, request.messages))?;
        if let Some(tools) = request.tools {
            map.serialize_entry("tools", tools)?;
            match request.tool_choice {
                Some(ToolChoice::Function(name)) => {
                    map.serialize_entry("tool_choice", &Function { kind: "function", function: Named { name } })?;
                }
                Some(ToolChoice::Required) => map.serialize_entry("tool_choice", "required")?,
                None => {}
            }
        }
        if let Some(key) = request.prompt_cache_key {
            map.serialize_entry("prompt_cache_key", key)?;
        }
        if request.sink.is_some() && !self.options.cannot_stream {
            map.serialize_entry("stream", &true)?;
            if !self.options.cannot_count_streams {
                map.serialize_entry("stream_options", &StreamOptions { include_usage: true })?;
            }
        }
        map.end()
    }
}

struct Chain<'a>(&'a [Message], &'a [Message]);

impl Serialize for Chain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len() + self.1.len()))?;
        for message in self.0.iter().chain(self.1) {
            list.serialize_element(message)?;
        }
        list.end()
    }
}

/// Pieces written as one JSON string.
struct Joined<'a>(&'a [Arc<str>]);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| f.write_str(piece))
    }
}

impl Serialize for Joined<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", &self.role)?;
        if !self.tool_calls.is_empty() && self.content.iter().all(|piece| piece.is_empty()) {
            map.serialize_entry("content", &())?;
        } else {
            map.serialize_entry("content", &Joined(&self.content))?;
        }
        if !self.tool_calls.is_empty() {
            map.serialize_entry("tool_calls", &self.tool_calls)?;
        }
        if let Some(id) = &self.tool_call_id {
            map.serialize_entry("tool_call_id", id)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Function<T> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: T,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl Serialize for WireToolCall {
    /// Endpoints answer 400 to a history with a nameless call or invalid arguments, which would end the turn. The model learns of
    /// its mistake from the call's result instead.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_json = serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok();
        let called = Called {
            name: if self.name.is_empty() { "unknown" } else { &self.name },
            arguments: if is_json { &self.arguments } else { "{}" },
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &called)?;
        map.end()
    }
}
