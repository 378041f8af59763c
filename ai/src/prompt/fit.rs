//! Fits a prompt into the context window of the model that is asked. What gives way, and in which order, is the same for all prompts.

use std::sync::Arc;

use super::transcript::Transcript;
use base::{error::Result, metrics};
use llm::Window;
use world::campaigns::prompt_section::Section;

/// What gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The oldest exchanges of the conversation, except as many as are kept.
    Exchanges { kept: usize },
    /// Lore that enters with the turn.
    NewLore,
    /// What may be left out of a section.
    Section(Section),
}

/// The order in which a prompt gives way.
const ORDER: [Step; 12] = [
    Step::Exchanges { kept: 1 },
    Step::NewLore,
    Step::Section(Section::ScopedLore),
    Step::Section(Section::PlayerLore),
    Step::Section(Section::GlobalLore),
    Step::Section(Section::Memories),
    Step::Section(Section::Recalled),
    Step::Exchanges { kept: 0 },
    // Without the newest exchange, lore enters again that was told in it.
    Step::NewLore,
    Step::Section(Section::ScopedLore),
    Step::Section(Section::Scenario),
    Step::Section(Section::ExampleDialogue),
];

/// A prompt that can be made smaller.
pub(crate) trait GivesWay {
    /// Its tokens, with the definitions of tools.
    fn tokens(&self) -> u32;

    /// The conversation that it shows.
    fn transcript(&self) -> &Arc<Transcript>;

    /// The tokens of what cannot give way but depends on the conversation: an overview, or what changed since one.
    fn news_tokens(&self) -> u32 {
        0
    }

    /// Shows less of the conversation, and writes what depends on that again.
    async fn show(&mut self, transcript: Arc<Transcript>) -> Result<()>;

    /// Leaves out lore that enters with the turn, to save `excess` tokens.
    async fn lessen_new_lore(&mut self, excess: u32, context: u32) -> Result<()>;

    /// Leaves out what may be left out of a section, to save `excess` tokens. Nothing if the prompt has no such section.
    async fn lessen(&mut self, section: Section, excess: u32, context: u32) -> Result<()>;
}

/// Makes a prompt give way until the answer has its room: first as the campaign's template says, then in the usual order. What cannot give
/// way may still be too large.
///
/// # Errors
/// Those of writing parts of the prompt again.
pub(crate) async fn fit(prompt: &mut impl GivesWay, cut_first: &[Section], window: Window) -> Result<()> {
    let first = cut_first.iter().map(|section| match section {
        Section::History => Step::Exchanges { kept: 1 },
        section => Step::Section(*section),
    });
    let whole = prompt.tokens();
    for step in first.chain(ORDER) {
        let excess = excess(prompt, window);
        if excess == 0 {
            break;
        }
        match step {
            Step::Exchanges { kept } => forget(prompt, kept, window).await?,
            Step::NewLore => prompt.lessen_new_lore(excess, window.context_tokens).await?,
            Step::Section(section) => prompt.lessen(section, excess, window.context_tokens).await?,
        }
    }
    if prompt.tokens() < whole && window.answer_tokens(prompt.tokens()).is_some() {
        metrics::PROMPTS_OVER_CONTEXT.with_label_values(&["cut"]).inc();
    }
    Ok(())
}

/// How many tokens too many the prompt has.
fn excess(prompt: &impl GivesWay, window: Window) -> u32 {
    prompt.tokens().saturating_sub(window.prompt_tokens())
}

/// Drops the oldest exchanges until the prompt fits. Lore that was told in them may enter again, which costs tokens: if that goes on, more and
/// more exchanges are dropped at a time. If an overview that has to be told again takes more than they free, none is dropped.
async fn forget(prompt: &mut impl GivesWay, kept: usize, window: Window) -> Result<()> {
    const PATIENCE: usize = 4;
    let (before, news) = (prompt.transcript().clone(), prompt.news_tokens());
    for round in 0_usize.. {
        let excess = excess(prompt, window);
        let shown = prompt.transcript();
        let may_go = shown.exchanges.len().saturating_sub(kept);
        if excess == 0 || may_go == 0 {
            break;
        }
        let least = 1_usize << round.saturating_sub(PATIENCE).min(16);
        let shorter = shown.newest(shown.exchanges.len() - shown.oldest_with(excess).max(least).min(may_go));
        prompt.show(Arc::new(shorter)).await?;
    }
    let freed = before.tokens.saturating_sub(prompt.transcript().tokens);
    if prompt.news_tokens().saturating_sub(news) > freed {
        prompt.show(before).await?;
    }
    Ok(())
}
