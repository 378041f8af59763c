//! The request in its wire format, serialised directly from shared pieces.
//!
//! It must never copy a prompt: [`Message::content`] is a list of shared pieces that the serialiser writes as one JSON string. To
//! add a field of the API, add it to [`ChatRequest`] and to `Payload`'s `serialize`.

use std::fmt;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::completion::{Completion, WireToolCall};
use super::echo::{Echo, Origin};
use super::endpoint::CallOptions;
use super::habits::Habits;
use super::parameters::OutputLimit;
use super::sink::Sink;
use super::window::Window;

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
    /// What the endpoint of an assistant's message wants back with it.
    pub echo: Echo,
}

impl Message {
    /// A message without calls.
    #[must_use]
    pub fn pieces(role: Role, content: Vec<Arc<str>>) -> Self {
        Self { role, content, tool_calls: Vec::new(), tool_call_id: None, echo: Echo::default() }
    }

    /// A message with one piece and without calls.
    pub fn text(role: Role, content: impl Into<Arc<str>>) -> Self {
        Self::pieces(role, vec![content.into()])
    }

    /// The result of the call `tool_call_id`.
    pub fn tool_result(tool_call_id: impl Into<String>, content: impl Into<Arc<str>>) -> Self {
        Self { tool_call_id: Some(tool_call_id.into()), ..Self::text(Role::Tool, content) }
    }

    /// What a model said, in other words than its own.
    pub fn assistant(content: impl Into<Arc<str>>, tool_calls: Vec<WireToolCall>) -> Self {
        Self { tool_calls, ..Self::text(Role::Assistant, content) }
    }

    /// The model's reply, for the next model call of a tool loop. The endpoint and model that sent it get back all that they want
    /// back.
    pub fn reply(completion: Completion) -> Self {
        let Completion { text, tool_calls, echo, .. } = completion;
        Self { echo, ..Self::assistant(text, tool_calls) }
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
    /// The size of the prompt, counted by the caller. Otherwise it is estimated from its bytes. It limits the answer if the size of the
    /// model's context is known.
    pub prompt_tokens: Option<u32>,
}

impl ChatRequest<'_> {
    /// The length of the messages' texts and the tools, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let texts = self.prefix.iter().chain(self.messages).flat_map(|message| &message.content);
        texts.map(|piece| piece.len()).sum::<usize>() + self.tools.map_or(0, |tools| tools.get().len())
    }

    /// The size of the prompt in tokens.
    fn tokens(&self) -> u32 {
        self.prompt_tokens.unwrap_or_else(|| u32::try_from(self.bytes() / TOKEN_BYTES).unwrap_or(u32::MAX))
    }
}

/// A token has about this many bytes.
const TOKEN_BYTES: usize = 3;

/// A request and the model for it.
pub(super) struct Payload<'a> {
    pub(super) model: &'a str,
    pub(super) options: &'a CallOptions,
    /// The output limit, unless the options have one.
    pub(super) output_tokens_max: u32,
    pub(super) request: &'a ChatRequest<'a>,
    /// The endpoint and model that are asked.
    pub(super) origin: Origin,
    pub(super) habits: &'a Habits,
}

impl Payload<'_> {
    /// The name of the output limit. An endpoint that refuses one of the two names takes the other.
    pub(super) fn output_limit(&self) -> OutputLimit {
        let limit = self.options.output_limit;
        if self.habits.refuses(limit.as_str()) { limit.other() } else { limit }
    }

    /// The members that the request is complete without.
    pub(super) fn optional(&self) -> Vec<&str> {
        let sent = self.request.prefix.iter().chain(self.request.messages);
        let back = sent.filter(|message| message.echo.came_from(self.origin));
        let echoes = back.flat_map(|message| {
            message.echo.names().chain(message.tool_calls.iter().flat_map(|call| call.echo.names()))
        });
        let own =
            [("prompt_cache_key", self.request.prompt_cache_key.is_some()), ("stream_options", self.counts_stream())];
        let mut names: Vec<&str> = own.into_iter().filter_map(|(name, is_sent)| is_sent.then_some(name)).collect();
        names.extend(echoes);
        names.retain(|name| !self.habits.refuses(name));
        names.sort_unstable();
        names.dedup();
        names
    }

    fn is_streamed(&self) -> bool {
        self.request.sink.is_some() && !self.options.cannot_stream
    }

    /// Whether the endpoint is asked to count the tokens of a stream.
    fn counts_stream(&self) -> bool {
        self.is_streamed() && !self.options.cannot_count_streams
    }

    /// The most tokens of the answer. Endpoints refuse a limit that the context window cannot hold beside the prompt.
    fn output_tokens(&self) -> u32 {
        match Window::of(self.options, self.output_tokens_max) {
            Some(window) => window.answer_tokens(self.request.tokens()).unwrap_or(window.least()),
            None => self.options.parameters.max_output_tokens.unwrap_or(self.output_tokens_max),
        }
    }
}

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.request;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        map.serialize_entry(self.output_limit().as_str(), &self.output_tokens())?;
        self.options.parameters.write(&mut map)?;
        map.serialize_entry("messages", &Messages(self))?;
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
        if let Some(key) = request.prompt_cache_key.filter(|_| !self.habits.refuses("prompt_cache_key")) {
            map.serialize_entry("prompt_cache_key", key)?;
        }
        if self.is_streamed() {
            map.serialize_entry("stream", &true)?;
        }
        if self.counts_stream() && !self.habits.refuses("stream_options") {
            map.serialize_entry("stream_options", &StreamOptions { include_usage: true })?;
        }
        map.end()
    }
}

struct Messages<'a>(&'a Payload<'a>);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ChatRequest { prefix, messages, .. } = self.0.request;
        let mut list = serializer.serialize_seq(Some(prefix.len() + messages.len()))?;
        for message in prefix.iter().chain(*messages) {
            let is_back = message.echo.came_from(self.0.origin);
            list.serialize_element(&Sent { what: message, back: is_back.then_some(self.0.habits) })?;
        }
        list.end()
    }
}

/// A message or call on its way to an endpoint.
struct Sent<'a, T> {
    what: &'a T,
    /// If it came from there: the endpoint's habits.
    back: Option<&'a Habits>,
}

impl<T> Sent<'_, T> {
    fn write_echo<M: SerializeMap>(&self, echo: &Echo, map: &mut M) -> Result<(), M::Error> {
        self.back.map_or(Ok(()), |habits| echo.write(map, |name| habits.refuses(name)))
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

impl Serialize for Sent<'_, Message> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Message { role, content, tool_calls, tool_call_id, echo, .. } = self.what;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", role)?;
        if !tool_calls.is_empty() && content.iter().all(|piece| piece.is_empty()) {
            map.serialize_entry("content", &())?;
        } else {
            map.serialize_entry("content", &Joined(content))?;
        }
        if !tool_calls.is_empty() {
            let calls: Vec<_> = tool_calls.iter().map(|call| Sent { what: call, back: self.back }).collect();
            map.serialize_entry("tool_calls", &calls)?;
        }
        if let Some(id) = tool_call_id {
            map.serialize_entry("tool_call_id", id)?;
        }
        self.write_echo(echo, &mut map)?;
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

impl Serialize for Sent<'_, WireToolCall> {
    /// Endpoints answer 400 to a history with a nameless call or invalid arguments, which would end the turn. The model learns of
    /// its mistake from the call's result instead.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let WireToolCall { id, name, arguments, echo } = self.what;
        let is_json = serde_json::from_str::<IgnoredAny>(arguments).is_ok();
        let name = plain_name(name);
        let called = Called { name: &name, arguments: if is_json { arguments } else { "{}" } };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", id)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &called)?;
        self.write_echo(echo, &mut map)?;
        map.end()
    }
}

/// A tool's name in the characters and the length that endpoints take.
fn plain_name(name: &str) -> String {
    const CHARS_MAX: usize = 64;
    let plain = name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(CHARS_MAX);
    let plain: String = plain.collect();
    if plain.is_empty() { "unknown".to_owned() } else { plain }
}
