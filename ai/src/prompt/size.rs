//! How many tokens a request to a model has.

use base::{
    error::{Result, TooLarge},
    tokens,
};
use llm::{ChatRequest, Window};

/// What models read in addition to the text of a message: its role and where it ends.
const MESSAGE_TOKENS: u32 = 4;
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

/// The tokens of a request: its messages and the definitions of its tools. What was counted before is not counted again.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn of_request(request: &ChatRequest<'_>) -> Result<u32> {
    let mut tokens = around(request.prefix.len() + request.messages.len());
    for message in request.prefix.iter().chain(request.messages) {
        for piece in &message.content {
            tokens = tokens.saturating_add(tokens::count_lasting(piece.clone()).await?);
        }
        for call in &message.tool_calls {
            let arguments = tokens::count_apart(call.arguments.clone()).await?;
            let whole = [tokens, CALL_TOKENS, tokens::count(&call.name), arguments];
            tokens = whole.into_iter().fold(0, u32::saturating_add);
        }
    }
    if let Some(tools) = request.tools {
        tokens = tokens.saturating_add(tokens::count_lasting(tools.get().to_owned()).await?);
    }
    Ok(tokens)
}
