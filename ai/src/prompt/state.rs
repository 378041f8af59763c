//! What handlers can reach of prompts and everything below.

use std::{ops::Deref, sync::Arc};

use super::cache::Prompts;
use crate::frontends::state::FrontendState;

/// The cached prompts, beside the state of frontends.
pub struct PromptState {
    below: Arc<FrontendState>,
    pub prompts: Prompts,
}

impl PromptState {
    /// `cache_bytes_max` limits the bytes of cached prompts.
    #[must_use]
    pub fn new(below: Arc<FrontendState>, cache_bytes_max: usize) -> Self {
        Self { below, prompts: Prompts::new(cache_bytes_max) }
    }

    /// The state of the layer below.
    #[must_use]
    pub fn frontend(&self) -> &Arc<FrontendState> {
        &self.below
    }
}

impl Deref for PromptState {
    type Target = FrontendState;
    fn deref(&self) -> &FrontendState {
        &self.below
    }
}
