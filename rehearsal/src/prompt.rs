//! A request as the canonical bytes that a provider would tokenize: the tools first, then the messages in order.
//!
//! Only what a model reads counts. Spaces between JSON members and fields such as `stream` do not. Control bytes
//! separate the parts, so that moving text from one part to the next changes the bytes. This module must never reorder
//! anything: a client that changes the order breaks its provider's cache, and this is how it finds out.

use crate::prefix_cache::Chain;
use crate::wire::{ChatRequest, Content, Message, Role, Tool};

/// The prompt of a request.
pub(crate) fn chain(request: &ChatRequest<'_>) -> Chain {
    let mut chain = Chain::new();
    for tool in request.tools() {
        push_tool(&mut chain, tool);
    }
    for message in &request.messages {
        push_message(&mut chain, message);
    }
    chain
}

fn push_tool(chain: &mut Chain, tool: &Tool<'_>) {
    let function = &tool.function;
    chain.push(b"\x01tool\x1f");
    chain.push(function.name.as_bytes());
    chain.push(b"\x1f");
    chain.push(function.description.as_deref().unwrap_or_default().as_bytes());
    chain.push(b"\x1f");
    chain.push(function.parameters.map_or("", |schema| schema.get()).as_bytes());
}

fn push_message(chain: &mut Chain, message: &Message<'_>) {
    chain.push(match message.role {
        Role::System => b"\x02system\x1f".as_slice(),
        Role::Developer => b"\x02developer\x1f",
        Role::User => b"\x02user\x1f",
        Role::Assistant => b"\x02assistant\x1f",
        Role::Tool => b"\x02tool\x1f",
    });
    for field in [&message.name, &message.tool_call_id] {
        if let Some(text) = field {
            chain.push(text.as_bytes());
        }
        chain.push(b"\x1f");
    }
    match &message.content {
        None => {}
        Some(Content::Text(text)) => chain.push(text.as_bytes()),
        Some(Content::Parts(_)) => chain.push(message.text().as_bytes()),
    }
    for call in message.tool_calls.as_deref().unwrap_or_default() {
        for field in [&call.id, &call.function.name, &call.function.arguments] {
            chain.push(b"\x1f");
            chain.push(field.as_bytes());
        }
    }
    chain.push(b"\x03");
}
