//! Opens a turn of an NPC or owner: in one round trip with a cached prompt, or else in a transaction that assembles the prompt.

use uuid::Uuid;

use super::turn::AnswerTurn;
use crate::{
    prompt::{
        assemble::{Assembled, assemble, cached},
        base_prompt::BasePrompt,
        cast::Cast,
        key::task_of,
        names::PromptRequest,
        reminder::{Reminder, reminders},
        shown::Shown,
        turn::Told,
    },
    turns::{
        clean::Cleaner,
        cx::{Cx, Start},
        frame::{Open, Opening},
        job::{Job, Way},
        rules,
        store::{self, Opened, Place, Stamps},
        subject::Subject,
        talk::Talk,
        view::Mechanics,
    },
};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use db::tenancy::Origin;
use edge::{caller::Caller, http::answered};
use entity::kind::EntityKind;
use world::{
    fallen::{Fallen, NEITHER},
    messages::question,
    npcs,
    owners::{Influence, influence},
    paused::{self, AiPaused},
};

/// A turn that is about to take its place.
pub(super) struct Opener<'a> {
    pub cx: &'a Cx<'a>,
    pub job: &'a Job,
    pub prompt: PromptRequest<'a>,
}

impl<'a> Open for Opener<'a> {
    type Turn = AnswerTurn<'a>;

    /// If another turn ended after the conversation was read and before the place was taken, the conversation must be read again.
    async fn open(&self, start: Start) -> Result<Opening<AnswerTurn<'a>>> {
        let mechanics = match self.job.mechanics {
            Some(turn) => Some(Box::pin(self.mechanics(turn)).await?),
            None => None,
        };
        match Box::pin(self.open_cached(start, mechanics.clone())).await? {
            Some(turn) => Ok(Opening::Runs(Box::new(turn))),
            None => Box::pin(self.open_assembled(start, mechanics)).await,
        }
    }
}

impl<'a> Opener<'a> {
    /// Opens the turn in one round trip if its prompt is cached and still valid. Opens nothing for a tenant with a quota of
    /// tokens, because the quota must be checked first.
    async fn open_cached(&self, start: Start, mechanics: Option<Mechanics>) -> Result<Option<AnswerTurn<'a>>> {
        let Cx { app, caller, ref models, .. } = *self.cx;
        let is_usual = matches!(self.job.way, Way::Answer) && self.job.question.is_none();
        if start.place != Place::Free || !is_usual || caller.tenant.limits.tokens_per_day > 0 {
            return Ok(None);
        }
        let Some(assembled) = cached(&app.prompts, caller, &self.prompt) else { return Ok(None) };
        let base = &assembled.base;
        // The cached choice may be outdated too.
        if base.choose(models).is_err() {
            return Ok(None);
        }
        let has = match self.job.kind {
            EntityKind::Owner => match influence::look(&app.pool, caller.tenant_id(), base.key.entity).await? {
                None => return Ok(None), // The cached owner is gone. There may be another by that name.
                has => has,
            },
            EntityKind::Npc => None,
        };
        let turn = self.turn(start, assembled, (has, mechanics)).await?;
        // What is cached may be outdated. If the two seem to be apart, or one of them to be dead, read them again.
        let stamps = Stamps { heads: turn.base.head_keys(), sum: turn.base.head_versions().iter().sum() };
        let opens = is_here(caller, &turn.base).is_ok()
            && may_be_asked(caller, self.job, &turn.base).is_ok()
            && may_talk(self.job, &turn.base).is_ok()
            && store::open_cached(&app.pool, &turn.talk.actor(), &turn.row(), stamps).await?;
        if !opens {
            return Ok(None);
        }
        metrics::PROMPT_CACHE.with_label_values(&["hit"]).inc();
        Ok(Some(turn))
    }

    /// Assembles the prompt and opens the turn in one transaction.
    async fn open_assembled(&self, start: Start, mechanics: Option<Mechanics>) -> Result<Opening<AnswerTurn<'a>>> {
        let Cx { app, caller, asker, .. } = *self.cx;
        let actor = caller.actor().in_turn(start.id, Origin::Turn);
        let tx = store::opening(&app.pool, &actor, asker.live.as_deref(), start.place).await?;
        let assembled = assemble(&app.prompts, &tx, caller, &self.prompt).await?;
        is_here(caller, &assembled.base)?;
        if let Some(greeting) = self.job.way.greeting()
            && let Err(error) = may_greet(&assembled.base, greeting, self.job.way.again().is_some())
        {
            drop(tx);
            // A repeated request finds its answer, although the conversation has begun with it.
            let stored = answered(app, caller, self.job.key.as_ref()).await?;
            return stored.map(Opening::Replay).ok_or(error);
        }
        app.limits.check_tokens(&tx, &caller.tenant).await?;
        let has = match self.job.kind {
            EntityKind::Owner => influence::now(&tx, assembled.base.key.entity).await?,
            EntityKind::Npc => None,
        };
        let mut turn = self.turn(start, assembled, (has, mechanics)).await?;
        match store::open(&tx, &turn.row()).await? {
            Opened::Replay(stored) => return Ok(Opening::Replay(stored)),
            Opened::Runs(id) => turn.talk.id = id,
        }
        may_be_asked(caller, self.job, &turn.base)?;
        may_talk(self.job, &turn.base)?;
        if let Some(question) = self.job.question {
            question::take(&tx, question, &turn.talk.actor(), turn.base.key.entity).await?;
        }
        tx.commit().await?;
        Ok(match start.place {
            Place::Queue => Opening::Waits(turn.talk.id),
            Place::Free | Place::Queued(_) => Opening::Runs(Box::new(turn)),
        })
    }

    async fn mechanics(&self, turn: Uuid) -> Result<Mechanics> {
        let Job { campaign, player, .. } = self.job;
        rules::mechanics(self.cx.app, self.cx.caller, campaign, Some(player), turn).await
    }

    /// The turn. `has` is the influence of an owner.
    async fn turn(
        &self,
        start: Start,
        assembled: Assembled,
        (has, mechanics): (Option<Influence>, Option<Mechanics>),
    ) -> Result<AnswerTurn<'a>> {
        let (job, models, base) = (self.job, &self.cx.models, &assembled.base);
        let again = job.way.again();
        let choice = match again.and_then(|again| again.model.as_deref()) {
            Some(slug) => models.profile(slug).ok_or_else(|| Error::not_found("model profile"))??,
            None => base.choose(models)?,
        };
        let subject = Subject {
            kind: job.kind.into(),
            campaign: base.key.campaign,
            entity: base.key.entity,
            player: Some(base.key.player),
        };
        let mut talk = Talk::new(self.cx, subject, (task_of(job.kind), choice), base.key.mode, start);
        talk.cleaner = Cleaner::of(&base.cast.settings, &base.cast.entity.names(), &base.cast.player.name);
        let raw = mechanics.as_ref().map(|m| m.raw.as_str());
        let told = Told { cause: job.cause(), action: &job.action, mechanics: raw, has };
        let wish = again.and_then(|again| again.hint.as_deref()).and_then(Reminder::wish);
        let reminders = reminders(&base.cast, talk.id).into_iter().chain(wish).collect();
        let shown = Shown::of(&assembled, told, reminders).await?;
        let Assembled { base, hit, .. } = assembled;
        Ok(AnswerTurn { talk, job, base, hit, shown, has, mechanics, place: start.place })
    }
}

/// Checks that a player may speak to this NPC: it must be at the character's location, or one of the locations is unknown. Game
/// masters may speak to everybody.
///
/// # Errors
/// `forbidden`.
fn is_here(caller: &Caller, base: &BasePrompt) -> Result<()> {
    let (entity, player) = (&base.cast.entity, &base.cast.player);
    let is_near = !caller.is_player()
        || entity.kind != EntityKind::Npc
        || entity.location.is_empty()
        || player.location.is_empty()
        || npcs::place::is_same(&entity.location, &player.location);
    if is_near {
        return Ok(());
    }
    let message = format!(
        "{} is not at the location of {}. Players may only speak to NPCs at their character's location.",
        entity.name, player.name
    );
    Err(Error::new(Code::Forbidden, message))
}

/// Checks that the AI of an NPC or owner is not paused. What a game master asks for goes on, and so does what an entity has begun by itself.
///
/// # Errors
/// `paused`.
fn may_be_asked(caller: &Caller, job: &Job, base: &BasePrompt) -> Result<()> {
    if !paused::holds_for(caller) || job.reaction.is_some() {
        return Ok(());
    }
    let entity = &base.cast.entity;
    let paused = AiPaused::of(&base.cast.settings);
    if paused.all || paused.names(entity.id, &entity.slug) { Err(paused::refusal(&entity.name)) } else { Ok(()) }
}

/// Checks that the dead and the unconscious stay silent, unless the campaign lets the dead speak. A game master cannot talk to them either.
///
/// # Errors
/// `dead`, `unconscious`.
fn may_talk(job: &Job, base: &BasePrompt) -> Result<()> {
    let Cast { entity, player, settings, .. } = &*base.cast;
    let silent = |fallen: Option<Fallen>| fallen.filter(|fallen| !fallen.may_speak(settings));
    if let Some(fallen) = silent(entity.fallen) {
        return Err(fallen.refusal(&entity.name, "does not answer"));
    }
    // What the character said and did before it fell may still be reacted to and answered in another way.
    let talks = job.reaction.is_none() && matches!(job.way, Way::Answer | Way::Greeting(_));
    match silent(player.fallen).filter(|_| talks) {
        Some(fallen) => Err(fallen.refusal(&player.name, NEITHER)),
        None => Ok(()),
    }
}

/// Checks that an entity can begin a conversation with this greeting.
///
/// # Errors
/// `conflict` if it has no greetings or the conversation has begun, `validation_failed` for an unknown greeting.
fn may_greet(base: &BasePrompt, greeting: usize, is_again: bool) -> Result<()> {
    let entity = &base.cast.entity;
    match entity.greetings.len() {
        greetings if is_again && greeting >= greetings => {
            return Err(Error::new(Code::Conflict, format!("{} has no other greeting.", entity.name)));
        }
        0 => return Err(Error::new(Code::Conflict, format!("{} has no greetings.", entity.name))),
        greetings if greeting >= greetings => {
            let rule = format!("must be from 0 to {}, because there are {greetings} greetings", greetings - 1);
            return Err(Error::invalid("/greeting", "invalid_value", rule));
        }
        _ => {}
    }
    if base.transcript.exchanges.is_empty() {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, "The conversation has begun already. A greeting only opens it."))
}
