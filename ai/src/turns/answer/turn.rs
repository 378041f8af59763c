//! The work of the turn: the conversation with the model, and its end.

use std::{collections::BTreeSet, sync::Arc};

use uuid::Uuid;

use crate::{
    prompt::{
        base_prompt::BasePrompt,
        macros::Macros,
        shown::Shown,
        transcript::{Exchange, Transcript},
        turn::Told,
    },
    tools::{self, Effects, Rest},
    turns::{
        calls::Hands,
        frame::Turn,
        job::{Job, Reaction},
        record::Recorded,
        store::{Ended, NewReply, NewTurn, Place},
        talk::{Question, Talk},
        view::{Mechanics, Status, TurnView},
    },
};
use base::{
    clock,
    error::{Error, Result},
    tokens,
};
use edge::http::Made;
use entity::message::{Author, Type};
use world::{
    messages::service::NewMessage,
    owners::{Influence, influence::Prices},
};

/// A turn in progress.
pub(super) struct AnswerTurn<'a> {
    pub talk: Talk<'a>,
    pub job: &'a Job,
    pub base: Arc<BasePrompt>,
    pub hit: bool,
    /// The prompt as the model reads it.
    pub shown: Shown,
    /// What an owner has to spend.
    pub has: Option<Influence>,
    pub mechanics: Option<Mechanics>,
    pub place: Place,
}

impl Turn for AnswerTurn<'_> {
    type Answer = TurnView;

    fn talk(&self) -> &Talk<'_> {
        &self.talk
    }

    async fn work(&mut self) -> Result<Made<TurnView>> {
        let status = self.converse().await?;
        Box::pin(self.finish(status)).await
    }

    fn failed(&self, status: Status, _why: &Error) -> Result<Recorded> {
        self.recorded(status, &self.talk.narrative())
    }

    fn told(&self, ended: Result<Made<TurnView>>) -> Result<Made<TurnView>> {
        ended
    }

    fn is_hit(&self) -> bool {
        self.hit
    }
}

impl AnswerTurn<'_> {
    pub fn row(&self) -> NewTurn<'_> {
        NewTurn {
            trigger: self.job.trigger(),
            on_failure: self.job.on_failure,
            talk_version: Some(self.base.transcript.version),
            parent: self.job.way.again().map(|again| again.parent),
            place: self.place,
            ..self.talk.row(&self.job.action, self.job.key.as_ref())
        }
    }

    /// The conversation with the model, as the entity and with its tools.
    async fn converse(&mut self) -> Result<Status> {
        let greetings = &self.base.cast.entity.greetings;
        if let Some(greeting) = self.job.way.greeting().and_then(|at| greetings.get(at)) {
            let words = Macros::of_turn(&self.base.cast, self.talk.id).fill(greeting).into_owned();
            self.talk.recite(&words);
            return Ok(Status::Succeeded);
        }
        self.fit().await?;
        let messages = self.shown.messages();
        let cast = &self.base.cast;
        let question =
            Question { messages: &messages, tools: self.base.tools.as_deref(), cache_key: &self.base.cache_key };
        let hands = Hands {
            campaign: cast.campaign,
            kind: cast.entity.kind.into(),
            entity: cast.entity.id,
            player: Some((cast.player.id, &cast.player.slug)),
            tools: tools::granted(cast.entity.kind, &cast.entity.tools),
            prices: Prices::of(&cast.settings),
            session: None,
            hand: None,
            earlier: self.job.way.again().map(|again| &again.earlier),
            rows_max: self.talk.caller.tenant.limits.rows_per_kind,
            effects: Effects::of(self.talk.app.settings.turns.effects_max),
        };
        self.talk.run(&question, &hands).await
    }

    /// Makes the prompt fit the model's context, if its size is known.
    async fn fit(&mut self) -> Result<()> {
        let Some(window) = self.talk.app.llm.window(&self.talk.choice) else { return Ok(()) };
        let mechanics = self.mechanics.as_ref().map(|mechanics| mechanics.raw.as_str());
        let told = Told { cause: self.job.cause(), action: &self.job.action, mechanics, has: self.has };
        Box::pin(self.shown.fit(&self.base, told, window)).await
    }

    /// Commits the answer: messages, record, usage, key.
    async fn finish(&mut self, status: Status) -> Result<Made<TurnView>> {
        let narrative = self.talk.narrative();
        let narrative_tokens = tokens::count_apart(narrative.clone()).await?;
        let Recorded { answer, record } = self.recorded(status, &narrative)?;
        let messages = self.messages(&narrative, narrative_tokens);
        // An answer that nobody asked for waits until the player can hear it.
        let reply = self.job.reaction.as_ref().map(|reaction| self.reply(reaction, &narrative, &messages));
        // What the player has said already is not written again.
        let (question, said) = match (&reply, self.job.question) {
            (Some(_), _) => (None, &messages[..0]),
            (None, Some(_)) => (Some(&messages[0]), &messages[1..]),
            (None, None) => (None, &messages[..]),
        };
        let calls = &self.talk.llm_calls;
        let ended = Ended { status, record, calls, answer: answer.stored(), reply: reply.as_ref(), question };
        self.talk.save_told().await;
        self.talk.end(&self.row(), ended, said, Rest::default()).await?;
        if reply.is_none() {
            self.remember(messages[0].id, narrative, narrative_tokens);
        }
        Ok(answer)
    }

    /// The turn's two messages: the player's and the answer.
    fn messages(&self, narrative: &str, narrative_tokens: u32) -> [NewMessage; 2] {
        let player_message = self.job.question.map_or_else(clock::id, |question| question.0);
        let message = |author, name: &str, content| NewMessage {
            player_id: Some(self.base.key.player),
            entity_id: Some(self.base.key.entity),
            turn_id: Some(self.talk.id),
            ..NewMessage::chat(author, name, content)
        };
        let cast = &self.base.cast;
        // A question may have been asked long before it is answered, so the first exchange need not have the oldest one.
        let kept = self.kept();
        let questions = kept.exchanges.iter().map(|e| e.id);
        let oldest: BTreeSet<Uuid> = questions.clone().take(1).chain(questions.min()).chain([player_message]).collect();
        let window_start = oldest.into_iter().collect();
        // The newest of the conversation has it: the question, unless that was said before others were answered.
        let (of_question, of_answer) =
            if self.job.question.is_some() { (Vec::new(), window_start) } else { (window_start, Vec::new()) };
        let mut messages = [
            NewMessage {
                id: player_message,
                prompt_text: Some(self.shown.turn.without_words()),
                tokens: self.shown.turn.tokens,
                window_start: of_question,
                ..message(Author::Player, &cast.player.name, self.job.action.clone())
            },
            NewMessage {
                tokens: narrative_tokens,
                window_start: of_answer,
                ..message(Author::Ai, &cast.entity.name, narrative.to_owned())
            },
        ];
        if self.job.way.is_unprompted() {
            unsaid(&mut messages[0]);
        }
        messages
    }

    /// The reply of a reaction. Its first message holds what the model read and is only for game masters.
    fn reply<'r>(&self, reaction: &'r Reaction, narrative: &'r str, messages: &[NewMessage]) -> NewReply<'r> {
        let mut messages = messages.to_vec();
        if let Some(read) = messages.first_mut() {
            unsaid(read);
        }
        NewReply {
            id: clock::id(),
            reaction_id: reaction.id,
            player_id: self.base.key.player,
            entity_kind: self.job.kind.as_str(),
            entity_id: self.base.key.entity,
            narrative: narrative.trim(),
            messages,
            location_key: reaction.location_key.as_deref(),
            reverts: reaction.reverts,
            expires_seconds: reaction.expires_seconds,
        }
    }

    /// The conversation that later turns begin with. A share of a small context, or the context itself, may hide a part of it from this turn's
    /// model, which another model can read.
    fn kept(&self) -> Arc<Transcript> {
        if self.base.layout.shows_history() { self.base.window() } else { self.base.transcript.clone() }
    }

    /// Adds the exchange to the cached prompt. The turn's transaction raised the conversation's head by one. If another transaction
    /// raised it as well, the head is higher than the cached one, and the next turn reads the conversation again.
    fn remember(&self, id: Uuid, narrative: String, narrative_tokens: u32) {
        let version = self.base.transcript.version + 1;
        let exchange = Exchange {
            id,
            said: self.job.action.as_str().into(),
            user: self.shown.turn.text.clone(),
            assistant: narrative.into(),
            tokens: self.shown.turn.tokens.saturating_add(narrative_tokens),
        };
        let next = self.base.after(self.kept().with(exchange, version));
        self.talk.app.prompts.base.put(self.talk.caller.tenant_id(), self.base.key, Arc::new(next));
    }
}

/// Marks the message that a model read as one that no player said. Only game masters see it.
fn unsaid(message: &mut NewMessage) {
    (message.kind, message.author) = (Type::System, Author::System);
    message.blind = true;
}
