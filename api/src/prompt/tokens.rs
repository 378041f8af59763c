//! Counting tokens as OpenAI's models do (`cl100k_base`); close enough for others to keep budgets by.

/// Texts longer than this are counted in pieces, so that no input makes the tokenizer slow.
const PIECE_BYTES: usize = 8 * 1024;

/// Tokens of a text.
#[must_use]
pub fn count(text: &str) -> u32 {
    let bpe = tiktoken_rs::cl100k_base_singleton();
    let mut tokens = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.floor_char_boundary(PIECE_BYTES.min(rest.len()));
        let (piece, after) = rest.split_at(end.max(1));
        tokens += bpe.encode_ordinary(piece).len();
        rest = after;
    }
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
