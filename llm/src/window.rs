//! How a model's context window is shared by a prompt and its answer.

use super::endpoint::CallOptions;

/// The fewest tokens that are left for an answer, however long the prompt.
pub const ANSWER_TOKENS_MIN: u32 = 256;

/// A context window of a known size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The size in tokens.
    pub context_tokens: u32,
    /// The output limit: the most tokens of an answer.
    pub output_tokens: u32,
}

impl Window {
    /// The window of a model that is asked with these options. `output_tokens_max` is the output limit unless the options have one. None if
    /// the size is unknown.
    #[must_use]
    pub fn of(options: &CallOptions, output_tokens_max: u32) -> Option<Self> {
        let output_tokens = options.parameters.max_output_tokens.unwrap_or(output_tokens_max);
        options.context_tokens.map(|context_tokens| Self { context_tokens, output_tokens })
    }

    /// The most tokens of a prompt that leaves the answer all of its room: the output limit, at most half of the window.
    #[must_use]
    pub fn prompt_tokens(self) -> u32 {
        self.context_tokens - self.output_tokens.min(self.context_tokens / 2)
    }

    /// The most tokens of an answer to a prompt of this size. A longer prompt leaves less room, down to [`ANSWER_TOKENS_MIN`]. None if even
    /// that does not fit.
    #[must_use]
    pub fn answer_tokens(self, prompt_tokens: u32) -> Option<u32> {
        let left = self.context_tokens.saturating_sub(prompt_tokens);
        (left >= self.least()).then(|| left.min(self.output_tokens).min(self.context_tokens / 2))
    }

    /// The room that an answer needs at least: [`ANSWER_TOKENS_MIN`], or the output limit if that is less.
    #[must_use]
    pub fn least(self) -> u32 {
        self.output_tokens.min(ANSWER_TOKENS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_and_answer_fit_into_the_window_together() {
        for context_tokens in [256, 512, 1024, 4096, 32_768, 1_000_000] {
            for output_tokens in [1, 100, 256, 2048, 4096, 1_000_000] {
                let window = Window { context_tokens, output_tokens };
                let whole = output_tokens.min(context_tokens / 2);
                assert_eq!(
                    window.answer_tokens(window.prompt_tokens()),
                    Some(whole).filter(|room| *room >= window.least())
                );
                for prompt in [0, 100, context_tokens / 2, context_tokens - window.least(), context_tokens] {
                    match window.answer_tokens(prompt) {
                        Some(room) => assert!(prompt + room <= context_tokens && room <= whole, "{window:?} {prompt}"),
                        None => assert!(prompt + window.least() > context_tokens, "{window:?} {prompt}"),
                    }
                }
            }
        }
        let small = Window { context_tokens: 4096, output_tokens: 32_768 };
        assert_eq!(
            (small.prompt_tokens(), small.answer_tokens(3840), small.answer_tokens(3841)),
            (2048, Some(256), None)
        );
    }
}
