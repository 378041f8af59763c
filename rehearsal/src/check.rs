//! Rejects what a real provider would reject with 400, so that a client's mistakes are found here and not in
//! production.
//!
//! Each rule is one small function over the parsed request. It must never depend on the script or the persona.

use crate::error::ApiError;
use crate::wire::{ChatRequest, Message, Role, ToolChoice};

/// The most tools in one request.
const TOOLS_MAX: usize = 128;
/// The maximum length of a tool name, in bytes.
const TOOL_NAME_BYTES_MAX: usize = 64;

/// Checks a request.
///
/// # Errors
/// The first broken rule.
pub(crate) fn request(request: &ChatRequest<'_>) -> Result<(), ApiError> {
    if request.messages.is_empty() {
        return Err(ApiError::invalid("messages", "'messages' must not be empty."));
    }
    if request.n.is_some_and(|n| n != 1) {
        return Err(ApiError::invalid("n", "Only n = 1 is supported."));
    }
    if request.stream_options.is_some() && request.stream != Some(true) {
        return Err(ApiError::invalid("stream_options", "'stream_options' is only allowed when 'stream' is enabled."));
    }
    contents(&request.messages)?;
    answers(&request.messages)?;
    tools(request)
}

/// Checks that every message has content.
fn contents(messages: &[Message<'_>]) -> Result<(), ApiError> {
    let empty = |message: &Message<'_>| {
        message.content.is_none() && !(message.role == Role::Assistant && message.tool_calls.is_some())
    };
    match messages.iter().position(empty) {
        None => Ok(()),
        Some(at) => Err(ApiError::invalid(
            "messages",
            format!("Invalid value for 'content' of messages[{at}]: expected a string, got null."),
        )),
    }
}

/// Checks that each tool call of an assistant message is answered by a tool message right after it, and that there are
/// no other tool messages.
fn answers(messages: &[Message<'_>]) -> Result<(), ApiError> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if message.role != Role::Tool {
            unanswered(&open)?;
            let calls = message.tool_calls.as_deref().unwrap_or_default();
            open.clear();
            open.extend(calls.iter().map(|call| &*call.id));
            continue;
        }
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let Some(at) = open.iter().position(|call| *call == id) else {
            return Err(ApiError::invalid(
                "messages",
                "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
            ));
        };
        open.swap_remove(at);
    }
    unanswered(&open)
}

fn unanswered(open: &[&str]) -> Result<(), ApiError> {
    if open.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(
        "messages",
        format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
             'tool_call_id'. These have no response: {}",
            open.join(", ")
        ),
    ))
}

/// Checks that tool names are valid, and that `tool_choice` names one of the tools.
fn tools(request: &ChatRequest<'_>) -> Result<(), ApiError> {
    let tools = request.tools();
    if request.tools.is_some() && tools.is_empty() {
        return Err(ApiError::invalid("tools", "[] is too short - 'tools'"));
    }
    if tools.len() > TOOLS_MAX {
        return Err(ApiError::invalid("tools", format!("At most {TOOLS_MAX} tools are allowed.")));
    }
    if !tools.iter().all(|tool| legal_name(&tool.function.name)) {
        return Err(ApiError::invalid("tools", "A function name must match '^[a-zA-Z0-9_-]{1,64}$'."));
    }
    match &request.tool_choice {
        None => Ok(()),
        Some(_) if tools.is_empty() => {
            Err(ApiError::invalid("tool_choice", "'tool_choice' is only allowed when 'tools' are specified."))
        }
        Some(ToolChoice::Named { function }) if !tools.iter().any(|tool| *tool.function.name == *function.name) => {
            Err(ApiError::invalid("tool_choice", "Tool choice not found in 'tools'."))
        }
        Some(_) => Ok(()),
    }
}

fn legal_name(name: &str) -> bool {
    (1..=TOOL_NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
