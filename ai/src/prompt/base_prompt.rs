//! A base prompt: the parts of a prompt that stay the same from turn to turn, with the versions that they were written from.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{cast::Cast, hash, here::Here, key::PromptKey, lore::ScopeLore, segment::Segment, transcript::Transcript};
use crate::{fair_cache::Weigh, prompt::key::task_of};
use base::error::Result;
use edge::{
    models::{Choice, TenantModels},
    tenants::tasks::Task,
};
use llm::ReplyMode;
use world::{
    campaigns::{prompt_section::Section, prompt_template::Layout},
    messages::event::Event,
};

/// A base prompt, ready to be sent with a conversation.
#[derive(Clone)]
pub struct BasePrompt {
    pub key: PromptKey,
    pub cast: Arc<Cast>,
    pub segments: Vec<Arc<Segment>>,
    /// The order of the segments, and the budgets of sections.
    pub layout: Layout,
    /// The size of the model's context for which the prompt was written, if it is known. The shares of a template depend on it.
    pub(super) context_tokens: Option<u32>,
    /// Lore that keywords may activate, in the order of its sections.
    pub lore: Vec<Arc<ScopeLore>>,
    /// Lore of creatures and of items, which enters a turn when its subject is here or is mentioned.
    pub kinds: Vec<Arc<ScopeLore>>,
    pub here: Arc<Here>,
    /// What the entity remembers beside the section `memories`. None if it is chosen for each action.
    pub recalled: Option<Arc<Segment>>,
    /// How many memories the entity has about the player. 0 if the prompt has no section for memories.
    pub memory_rows: usize,
    pub transcript: Arc<Transcript>,
    pub situation: Arc<str>,
    /// Events of the world that concern the entity. They end by time.
    pub events: Vec<Event>,
    pub hash: Arc<str>,
    pub tokens: u32,
    pub cache_key: Arc<str>,
    /// The tools' definitions in the format for models. None in XML mode.
    pub tools: Option<Arc<RawValue>>,
    /// Sorted. `head_versions` is in the same order.
    pub(super) head_keys: Arc<[String]>,
    pub(super) head_versions: Vec<i64>,
}

impl Weigh for BasePrompt {
    fn bytes(&self) -> usize {
        self.segments.iter().map(|s| s.bytes()).sum::<usize>()
            + self.recalled.as_ref().map_or(0, |recalled| recalled.bytes())
            + self.transcript.bytes()
            + self.head_keys.iter().map(|k| 2 * k.len() + 80).sum::<usize>()
            + self.events.iter().map(|event| event.text.len() + 64).sum::<usize>()
            + self.tools.as_ref().map_or(0, |t| t.get().len())
            + 1000
    }
}

impl BasePrompt {
    /// Whether a section was written from an older version of this head. A head of the prompt that no section was written from, such as
    /// that of an NPC's owner, outdates nothing that is costly to write.
    #[must_use]
    pub fn is_older(&self, head: &str, version: i64) -> bool {
        let mut stamps = self.segments.iter().flat_map(|segment| &segment.heads);
        stamps.any(|(own, then)| own == head && *then < version)
    }

    /// The heads from which the prompt was built.
    #[must_use]
    pub fn head_keys(&self) -> &[String] {
        &self.head_keys
    }

    /// The versions of [`BasePrompt::head_keys`].
    #[must_use]
    pub fn head_versions(&self) -> &[i64] {
        &self.head_versions
    }

    /// The version of the memories from which the prompt was built.
    pub(super) fn memory_version(&self) -> i64 {
        let memory = self.head_keys.binary_search(&self.key.memory_head());
        memory.ok().and_then(|at| self.head_versions.get(at)).copied().unwrap_or_default()
    }

    /// The model that answers as this entity.
    ///
    /// # Errors
    /// `llm_unavailable`.
    pub fn choose(&self, models: &TenantModels) -> Result<Arc<Choice>> {
        let task = task_of(self.cast.entity.kind);
        models.choose(task, &self.named(task))
    }

    /// How that model replies.
    pub(super) fn mode(&self, models: &TenantModels) -> ReplyMode {
        let task = task_of(self.cast.entity.kind);
        models.mode(task, &self.named(task))
    }

    /// Whether the prompt was written for the model that would answer now. Another model may have been chosen since, or the profile of this one
    /// may have changed.
    pub(super) fn fits(&self, mode: Option<ReplyMode>, models: &TenantModels) -> bool {
        let is_of_model = mode.is_some() || self.mode(models) == self.key.mode;
        is_of_model && (!self.layout.has_shares() || context_tokens(self.choose(models)) == self.context_tokens)
    }

    /// The profiles that the entity and its campaign name.
    fn named(&self, task: Task) -> [Option<&str>; 2] {
        self.cast.named_models(task)
    }

    /// The same prompt after one more exchange, which raised the conversation's head.
    #[must_use]
    pub fn after(&self, transcript: Transcript) -> Self {
        let mut head_versions = self.head_versions.clone();
        let talk = self.head_keys.binary_search(&self.key.talk_head());
        if let Some(version) = talk.ok().and_then(|at| head_versions.get_mut(at)) {
            *version = transcript.version;
        }
        Self { transcript: Arc::new(transcript), head_versions, ..self.clone() }
    }

    /// The conversation, as far as its budget allows.
    #[must_use]
    pub fn window(&self) -> Arc<Transcript> {
        self.transcript.within(self.layout.budget(Section::History, &self.cast.settings))
    }
}

/// The size of the chosen model's context. A model that cannot be asked has no known one.
pub(super) fn context_tokens(choice: Result<Arc<Choice>>) -> Option<u32> {
    choice.ok()?.endpoint.options.context_tokens
}

/// The hash of a base prompt and its tokens.
pub(super) fn summed(segments: &[Arc<Segment>]) -> (Arc<str>, u32) {
    let (hash, tokens) = hash::summed(segments.iter().map(|segment| (segment.hash.as_str(), segment.tokens)));
    (hash.into(), tokens)
}
