//! What handlers can reach of turns and everything below.

use std::{ops::Deref, sync::Arc};

use super::{gm::session_prompts::SessionPrompts, running::Running};
use crate::prompt::state::PromptState;

/// Limits of one turn.
#[derive(Clone, Copy, Debug)]
pub struct TurnSettings {
    /// The most model calls.
    pub steps_max: u32,
    /// The most rows that it may change.
    pub effects_max: u64,
}

/// The running turns, beside the state of prompts.
pub struct TurnState {
    below: Arc<PromptState>,
    /// Cached parts of sessions' prompts.
    pub session_prompts: SessionPrompts,
    pub running: Running,
    pub turns: TurnSettings,
}

impl TurnState {
    /// `cache_bytes_max` limits the bytes of cached parts of sessions' prompts.
    #[must_use]
    pub fn new(below: Arc<PromptState>, cache_bytes_max: usize, turns: TurnSettings) -> Self {
        let running = Running::new(below.instance);
        Self { below, session_prompts: SessionPrompts::new(cache_bytes_max), running, turns }
    }

    /// The state of the layer below.
    #[must_use]
    pub fn prompt(&self) -> &Arc<PromptState> {
        &self.below
    }
}

impl Deref for TurnState {
    type Target = PromptState;
    fn deref(&self) -> &PromptState {
        &self.below
    }
}
