//! How many tokens a request to a model has.

use std::sync::Arc;

use base::{
    error::{Result, TooLarge},
    threads, tokens,
};
use llm::{ChatRequest, Message, Window};

/// What models read in addition to the text of a message: its role and where it ends.
pub(super) const MESSAGE_TOKENS: u32 = 4;
/// What models read in addition to the name and the arguments of a call: its id and the words around it.
const CALL_TOKENS: u32 = 32;
/// What stands around all messages.
const FRAME_TOKENS: u32 = 3;

/// The tokens that surround the texts of so many messages.
#[must_use]
pub fn around(messages: usize) -> u32 {
    u32::try_from(messages).unwrap_or(u32::MAX).saturating_mul(MESSAGE_TOKENS).saturating_add(FRAME_TOKENS)
}

/// How much too large a prompt of so many tokens is. None if the window can hold it and an answer.
#[must_use]
pub fn too_large(prompt_tokens: u32, window: Window) -> Option<TooLarge> {
    let needed = prompt_tokens.saturating_add(window.least());
    window.answer_tokens(prompt_tokens).is_none().then_some(TooLarge { needed, context: window.context_tokens })
}

/// The tokens of a request: its messages and the definitions of its tools.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn of_request(request: &ChatRequest<'_>) -> Result<u32> {
    let tools = match request.tools {
        Some(tools) => tokens::count_lasting(tools.get().to_owned()).await?,
        None => 0,
    };
    let texts = of_messages(request.prefix).await?.saturating_add(of_messages(request.messages).await?);
    Ok(texts.saturating_add(tools).saturating_add(FRAME_TOKENS))
}

/// The tokens of messages, with what goes back to the model that wrote them. Long texts are counted on another thread.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn of_messages(messages: &[Message]) -> Result<u32> {
    let mut fixed = u32::try_from(messages.len()).unwrap_or(u32::MAX).saturating_mul(MESSAGE_TOKENS);
    let mut texts: Vec<Arc<str>> = messages.iter().flat_map(|message| message.content.iter().cloned()).collect();
    for message in messages {
        texts.push(message.echo.to_json().into());
        for call in &message.tool_calls {
            fixed = fixed.saturating_add(CALL_TOKENS);
            texts.extend([call.name.as_str().into(), call.arguments.as_str().into(), call.echo.to_json().into()]);
        }
    }
    let bytes = texts.iter().map(|text| text.len()).sum();
    let counted =
        threads::apart(bytes, move || texts.iter().map(|text| tokens::count(text)).fold(0, u32::saturating_add));
    Ok(counted.await?.saturating_add(fixed))
}
