//! The work of the turn: its prompt, the conversation with the model, and its end.

use std::sync::Arc;

use entity::message::{Author, Type};
use uuid::Uuid;

use super::{
    job::GmJob,
    lasting::Part,
    prompt::{Asked, GmPrompt, Reads},
    role,
    session_prompts::CachedPrompt,
};
use crate::{
    prompt::{Cache, transcript::Exchange},
    tools::{Effects, Hand, Rest, spec::ActorKind},
    turns::{
        calls::Hands,
        clean::Cleaner,
        frame::Turn,
        record::{Recorded, recorded},
        store::{Ended, Place},
        talk::{Question, Talk},
        view::{Mechanics, PromptView, SectionView, Status, Trace, TurnView},
    },
};
use base::{
    error::{Error, Result},
    metrics, tokens,
};
use edge::{http::Made, models::TenantModels, tenants::tasks::Task};
use world::{messages::service::NewMessage, owners::influence::Prices, sessions::facts::Facts};

/// A turn in progress.
pub(super) struct GmTurn<'a> {
    pub talk: Talk<'a>,
    pub models: &'a TenantModels,
    pub job: &'a GmJob,
    pub facts: Facts,
    /// The cached prompt, until this turn has its own.
    pub kept: Option<Arc<CachedPrompt>>,
    pub prompt: Option<Arc<GmPrompt>>,
    pub mechanics: Option<Mechanics>,
    pub hand: Option<Hand>,
}

impl Turn for GmTurn<'_> {
    type Answer = TurnView;

    fn talk(&self) -> &Talk<'_> {
        &self.talk
    }

    async fn work(&mut self) -> Result<Made<TurnView>> {
        let prompt = Arc::new(Box::pin(self.build_prompt()).await?);
        self.prompt = Some(prompt.clone());
        let status = self.converse(&prompt).await?;
        Box::pin(self.finish(&prompt, status)).await
    }

    fn failed(&self, status: Status, _why: &Error) -> Result<Recorded> {
        self.recorded(status, &self.talk.narrative())
    }

    fn told(&self, ended: Result<Made<TurnView>>) -> Result<Made<TurnView>> {
        ended
    }

    fn is_hit(&self) -> bool {
        self.prompt.as_ref().is_some_and(|prompt| prompt.hit)
    }
}

impl GmTurn<'_> {
    async fn build_prompt(&mut self) -> Result<GmPrompt> {
        let kept = self.kept.take();
        let choice = self.models.choose(Task::Gm, &[CachedPrompt::named_model(kept.as_deref(), &self.facts)]);
        self.talk.choose_again(choice, self.job.mode).await?;
        let kept = kept.filter(|kept| kept.mode == self.talk.mode);
        let asked = Asked {
            mode: self.talk.mode,
            instruction: self.job.instruction.as_deref(),
            mechanics: self.mechanics.as_ref().map(|m| m.raw.as_str()),
        };
        let (app, tenant) = (self.talk.app, self.talk.caller.tenant_id());
        let mut reads = Reads::later(&app.pool, tenant);
        let window = app.llm.window(&self.talk.choice);
        let prompt = GmPrompt::build(&app.prompts, &mut reads, &mut self.facts, kept.as_deref(), asked, window).await?;
        self.talk.cleaner = Cleaner::of(&prompt.campaign.settings, &[], "");
        metrics::SESSION_CONTEXTS.with_label_values(&[prompt.context.as_str()]).inc();
        Ok(prompt)
    }

    async fn converse(&mut self, prompt: &GmPrompt) -> Result<Status> {
        let messages = prompt.messages();
        let question = Question { messages: &messages, tools: prompt.tools, cache_key: &prompt.cache_key };
        let session = &self.facts.playing;
        let hands = Hands {
            campaign: session.campaign,
            kind: ActorKind::Gm,
            entity: Uuid::nil(),
            player: None,
            tools: role::tools(session.role).into_iter().map(Into::into).collect(),
            prices: Prices::default(),
            session: Some(session),
            hand: self.hand.as_ref(),
            earlier: None,
            rows_max: self.talk.caller.tenant.limits.rows_per_kind,
            effects: Effects::of(self.talk.app.settings.turns.effects_max),
        };
        self.talk.run(&question, &hands).await
    }

    /// Commits the answer: the messages, the record, the usage and the key.
    async fn finish(&self, prompt: &GmPrompt, status: Status) -> Result<Made<TurnView>> {
        let narrative = self.talk.narrative();
        let Recorded { answer, record } = self.recorded(status, &narrative)?;
        let ended =
            Ended { status, record, calls: &self.talk.llm_calls, answer: answer.stored(), reply: None, question: None };
        let said = self.turn_messages(prompt, narrative).await?;
        self.talk.save_told().await;
        self.talk.end(&self.job.row(&self.talk, Place::Free), ended, &said, Rest::default()).await?;
        self.remember(prompt, said);
        Ok(answer)
    }

    /// Caches the prompt with the new exchange. The turn's transaction raised the version of the conversation by one. If another
    /// transaction raised it as well, the next turn reads the conversation again.
    fn remember(&self, prompt: &GmPrompt, [asked, told]: [NewMessage; 2]) {
        let exchange = Exchange {
            id: asked.id,
            said: asked.content.into(),
            user: prompt.text.clone(),
            assistant: told.content.into(),
            tokens: asked.tokens.saturating_add(told.tokens),
        };
        let kept = Arc::new(prompt.to_cached_prompt(exchange));
        self.talk.app.session_prompts.put(self.talk.caller.tenant_id(), self.job.cache_key(), kept);
    }

    /// The turn's two messages: the model's input, which nobody at the table reads, and its answer.
    async fn turn_messages(&self, prompt: &GmPrompt, narrative: String) -> Result<[NewMessage; 2]> {
        let session = &self.facts.playing;
        let instruction = self.job.instruction.clone().unwrap_or_else(|| role::take_your_turn(session.role).to_owned());
        let asked = NewMessage::chat(Author::System, "", instruction);
        let window_start = prompt.kept_transcript.exchanges.first().map_or(asked.id, |e| e.id);
        let turn_id = Some(self.talk.id);
        let asked = NewMessage {
            kind: Type::System,
            session_id: Some(session.id),
            scene_id: session.scene,
            entity_id: Some(session.id),
            turn_id,
            whisper_to: vec!["gm".to_owned()],
            prompt_text: Some(prompt.stored_text()),
            tokens: prompt.text_tokens,
            window_start: vec![window_start],
            told_as: Some(session.conversation_key()),
            ..asked
        };
        let narrative_tokens = tokens::count_apart(narrative.clone()).await?;
        let told = NewMessage {
            entity_id: Some(session.id),
            tokens: narrative_tokens,
            told_as: Some(session.conversation_key()),
            ..NewMessage::of_session(session, turn_id, session.speaker(), narrative)
        };
        Ok([asked, told])
    }

    fn recorded(&self, status: Status, narrative: &str) -> Result<Recorded> {
        let prompt = self.prompt.as_deref();
        let view = TurnView {
            narrative: narrative.to_owned(),
            mechanics: self.mechanics.clone(),
            role: Some(self.facts.playing.role),
            context: prompt.map(|prompt| prompt.context),
            dice_unused: self.hand.as_ref().map(|hand| hand.left().to_vec()),
            prompt: prompt.map(prompt_view),
            ..self.talk.view(status)
        };
        let trace = self.talk.trace(prompt.map(GmPrompt::stored_text).unwrap_or_default());
        let cut = prompt.into_iter().flat_map(GmPrompt::sections).map(|s| (s.name, s.cut.as_str()));
        let trace = Trace {
            lore: prompt.into_iter().flat_map(GmPrompt::lore).take(200).collect(),
            cut: cut.filter(|(_, cut)| !cut.is_empty()).collect(),
            ..trace
        };
        recorded(view, None, &trace)
    }
}

fn prompt_view(prompt: &GmPrompt) -> PromptView {
    let view = |s: &Part| SectionView { name: s.name.into(), tokens: s.tokens, hash: s.hash.clone() };
    PromptView {
        cache: Cache::of(prompt.hit),
        base_hash: prompt.base.hash.clone(),
        base_tokens: prompt.base.tokens,
        sections: prompt.sections().map(view).collect(),
    }
}
