//! The turn of a session's AI: it runs the game, helps the game master, or plays a character.
//!
//! The turn first takes the session's place, and reads everything for its prompt after that, so that two turns of a session never
//! read the same cursor. The end of what it was told is stored with the turn, and counts as seen once the turn completes.

pub mod http;
mod lasting;
mod lore;
mod prompt;
mod role;
pub mod session_prompts;

use std::sync::Arc;
use world::playing;

use entity::{message::Type, session::Role};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    calls::Hands,
    clean::Cleaner,
    job::{OnBusy, OnFailure},
    place::{self, Attempted, in_place},
    rules,
    running::{Asker, Spot},
    store::{self, Ended, NewTurn, Opened, Place},
    talk::{Question, Talk, body_and_record},
    view::{Mechanics, PromptView, SectionView, Status, Trace, TurnView},
};
use crate::{
    prompt::{cache::Prompts, preview::Preview, transcript::Exchange},
    state::Ai,
    tools::{ActorKind, Effects, Hand, Rest},
};
use base::{
    error::{Code, Error, Result},
    metrics, tokens,
};
use db::{
    retry,
    tenancy::{Origin, TenantTx},
};
use edge::{
    caller::Caller,
    http::{
        Reply,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id},
    },
    models::TenantModels,
    tenants::tasks::{Task, slug_in},
};
use llm::ReplyMode;
use prompt::{Asked, GmPrompt, Reads};
use session_prompts::CachedPrompt;
use world::{
    messages::service::NewMessage,
    owners::influence::Prices,
    playing::Playing,
    sessions::facts::{CachedFacts, Facts, facts},
};

/// The kind of this turn.
pub(super) const KIND: &str = "gm";

/// A requested turn.
#[derive(Clone, Debug)]
pub struct GmJob {
    pub campaign: String,
    pub session: Uuid,
    pub instruction: Option<String>,
    /// Another role than the session's, only for this turn.
    pub role: Option<Role>,
    pub steps_max: Option<u32>,
    pub mechanics: Option<Uuid>,
    /// Dice rolled by hand, for the AI's rolls in order.
    pub dice: Option<Vec<u32>>,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
    pub on_busy: OnBusy,
    pub on_failure: OnFailure,
    pub key: Option<IdempotencyKey>,
}

/// Runs a session's turn to its end.
///
/// # Errors
/// `turn_in_progress`, `llm_unavailable`, `llm_timeout`, `validation_failed`, `not_found`, limits.
pub async fn run(app: &Ai, caller: &Caller, job: &GmJob, asker: &Asker) -> Result<Reply> {
    let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
    models.check_on()?;
    let mechanics = match job.mechanics {
        Some(turn) => Some(rules::mechanics(app, caller, &job.campaign, None, turn).await?),
        None => None,
    };
    let attempt = async |place| attempt(app, caller, job, &models, mechanics.clone(), asker, place).await;
    let spot = job.spot(caller);
    let wanted =
        place::PlaceRequest { kind: KIND, known: Some(spot), on_busy: job.on_busy, has_key: job.key.is_some() };
    in_place(app, caller, wanted, asker, async || Ok(spot), attempt).await
}

/// A prompt to preview.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    pub campaign: Uuid,
    pub session: Uuid,
    /// Another role than the session's.
    pub role: Option<Role>,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
    pub models: &'a TenantModels,
    pub instruction: Option<&'a str>,
}

/// The prompt of a session's AI, as the transaction sees the world. This does not move the cursor. `tables` is the cache to use, if
/// any.
///
/// # Errors
/// `not_found`; database errors.
pub async fn preview_in(
    prompts: &Prompts,
    session_prompts: Option<&session_prompts::SessionPrompts>,
    tx: &TenantTx,
    look: &Look<'_>,
) -> Result<Preview> {
    let kept = session_prompts.and_then(|known| known.get(tx.tenant(), &(look.session, look.role, look.mode)));
    let held = kept.as_deref().map(CachedPrompt::cached_facts).unwrap_or_default();
    let mut facts = facts(tx, look.campaign, look.session, look.role, held).await?;
    let instruction = look.instruction.filter(|i| !i.trim().is_empty());
    let mode = look.mode.unwrap_or_else(|| look.models.mode(Task::Gm, &[named(kept.as_deref(), &facts)]));
    let kept = kept.filter(|kept| kept.mode == mode);
    let asked = Asked { mode, instruction, mechanics: None };
    Ok(GmPrompt::build(prompts, &mut Reads::Within(tx), &mut facts, kept.as_deref(), asked).await?.preview())
}

/// A turn in progress.
struct GmTurn<'a> {
    talk: Talk<'a>,
    job: &'a GmJob,
    session: Playing,
    prompt: GmPrompt,
    mechanics: Option<Mechanics>,
    hand: Option<Hand>,
}

async fn attempt(
    app: &Ai,
    caller: &Caller,
    job: &GmJob,
    models: &TenantModels,
    mechanics: Option<Mechanics>,
    asker: &Asker,
    place: Place,
) -> Result<Attempted> {
    let begun = (place.turn(), Instant::now());
    let kept = app.session_prompts.get(caller.tenant_id(), &job.cache_key());
    // The campaign's choice as it was. What it is now is read while the turn opens.
    let settings = kept.as_ref().map(|kept| &kept.campaign.settings);
    let choice = models.provisional(Task::Gm, &[slug_in(settings.and_then(|s| s.get("models")), Task::Gm)]);
    let mode = job.mode.unwrap_or(choice.mode);
    let mut talk = Talk::new(app, caller, (Task::Gm, choice), mode, asker, begun).at_most(job.steps_max);
    let held = kept.as_deref().map(CachedPrompt::cached_facts).unwrap_or_default();
    let opened = retry::repeat(place.patience(), async || open(&talk, job, place, held).await);
    let mut facts = match Box::pin(opened).await? {
        Open::Runs(id, facts) => {
            talk.id = id;
            facts
        }
        Open::Waits(id) => return Ok(Attempted::Waits(id)),
        Open::Replay(reply) => return Ok(Attempted::Done(reply)),
    };
    let _entered = app.running.enter(talk.id, asker, caller.tenant_id(), Some(job.spot(caller)));
    let choice = models.choose(Task::Gm, &[named(kept.as_deref(), &facts)]);
    if let Err(error) = talk.choose_again(choice, job.mode).await {
        return Box::pin(talk.never_asked(KIND, error)).await.map(Attempted::Done);
    }
    let kept = kept.filter(|kept| kept.mode == talk.mode);
    let asked = Asked {
        mode: talk.mode,
        instruction: job.instruction.as_deref(),
        mechanics: mechanics.as_ref().map(|m| m.raw.as_str()),
    };
    let mut reads = Reads::later(&app.pool, caller.tenant_id());
    // Boxed, so that while the model writes, the future holds nothing of how a turn opens and ends.
    let build = Box::pin(GmPrompt::build(&app.prompts, &mut reads, &mut facts, kept.as_deref(), asked)).await;
    drop(reads);
    let prompt = match build {
        Ok(prompt) => prompt,
        Err(error) => return Box::pin(talk.never_asked(KIND, error)).await.map(Attempted::Done),
    };
    talk.cleaner = Cleaner::of(&prompt.campaign.settings, "", "");
    metrics::SESSION_CONTEXTS.with_label_values(&[prompt.context]).inc();
    let hand = job.dice.clone().map(Hand::of);
    let mut turn = GmTurn { talk, job, session: facts.playing, prompt, mechanics, hand };
    let done = match turn.converse().await {
        Ok(status) => Box::pin(turn.finish(status)).await,
        Err(error) => Err(error),
    };
    let result = match done {
        Ok(reply) => Ok(reply),
        Err(error) => {
            let body_and_record = |status| turn.body_and_record(status, &turn.talk.narrative());
            Box::pin(turn.talk.give_up(KIND, error, body_and_record)).await
        }
    };
    turn.talk.ended(KIND, &result, turn.prompt.hit);
    result.map(Attempted::Done)
}

/// The model profile that the campaign, as it is now, names for the AIs of sessions.
fn named<'a>(kept: Option<&'a CachedPrompt>, facts: &'a Facts) -> Option<&'a str> {
    let settings = facts.campaign.as_ref().map(|campaign| &campaign.settings);
    let settings = settings.or_else(|| kept.map(|kept| &kept.campaign.settings));
    slug_in(settings.and_then(|settings| settings.get("models")), Task::Gm)
}

/// The result of opening a session's turn.
enum Open {
    /// The turn runs under this id.
    Runs(Uuid, Box<Facts>),
    /// The turn waits, as requested.
    Waits(Uuid),
    /// The same request ran before.
    Replay(Reply),
}

/// Takes the session's place and reads the data for the prompt. One round trip, unless the key was used before or something is
/// missing.
async fn open(talk: &Talk<'_>, job: &GmJob, place: Place, held: CachedFacts<'_>) -> Result<Open> {
    let (app, caller) = (talk.app, talk.caller);
    let named = Ref::parse(&job.campaign);
    if caller.tenant.limits.tokens_per_day > 0 {
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        app.limits.check_tokens(&tx, &caller.tenant).await?;
    }
    let row = |campaign| NewTurn { place, ..row(talk, job, campaign) };
    if place == Place::Free
        && let Some(facts) = store::open_session(&app.pool, caller, &named, &row(Uuid::nil()), job.role, held).await?
    {
        return Ok(Open::Runs(talk.id, Box::new(facts)));
    }
    let actor = caller.actor().in_turn(talk.id, Origin::Turn);
    let tx = store::opening(&app.pool, &actor, talk.asker.live.as_deref(), place).await?;
    let campaign = campaign_id(&tx, caller, &named).await?;
    playing::playing(&tx, campaign, job.session).await?;
    let id = match store::open(&tx, &row(campaign)).await? {
        Opened::Replay(reply) => return Ok(Open::Replay(reply)),
        Opened::Runs(id) if place == Place::Queue => {
            tx.commit().await?;
            return Ok(Open::Waits(id));
        }
        Opened::Runs(id) => id,
        Opened::Moved => return Err(Error::new(Code::TurnInProgress, "This session already has a turn in progress.")),
    };
    let facts = facts(&tx, campaign, job.session, job.role, held).await?;
    store::tell(&tx, id, &facts).await?;
    tx.commit().await?;
    Ok(Open::Runs(id, Box::new(facts)))
}

impl GmJob {
    fn spot(&self, caller: &Caller) -> Spot {
        Spot { tenant: caller.tenant_id(), entity: self.session, player: Uuid::nil() }
    }

    fn cache_key(&self) -> session_prompts::Key {
        (self.session, self.role, self.mode)
    }
}

fn row<'a>(talk: &Talk<'a>, job: &'a GmJob, campaign: Uuid) -> NewTurn<'a> {
    NewTurn {
        id: talk.id,
        campaign,
        kind: KIND,
        entity: job.session,
        player: None,
        action: job.instruction.as_deref().unwrap_or_default(),
        mode: talk.mode,
        on_failure: job.on_failure,
        key_id: talk.caller.author(),
        instance: talk.app.running.instance,
        key: job.key.as_ref(),
        live: talk.asker.live.as_deref(),
        talk_version: None,
        parent: None,
        place: Place::Free,
        said: None,
    }
}

impl GmTurn<'_> {
    async fn converse(&mut self) -> Result<Status> {
        let messages = self.prompt.messages();
        let question = Question { messages: &messages, tools: self.prompt.tools, cache_key: &self.prompt.cache_key };
        let hands = Hands {
            campaign: self.session.campaign,
            kind: ActorKind::Gm,
            entity: Uuid::nil(),
            player: None,
            tools: role::tools(self.session.role).into_iter().map(Into::into).collect(),
            prices: Prices::default(),
            session: Some(&self.session),
            hand: self.hand.as_ref(),
            earlier: None,
            rows_max: self.talk.caller.tenant.limits.rows_per_kind,
            effects: Effects::of(self.talk.app.settings.turns.effects_max),
        };
        self.talk.run(&question, &hands).await
    }

    /// Commits the answer: the messages, the record, the usage and the key.
    async fn finish(&self, status: Status) -> Result<Reply> {
        let narrative = self.talk.narrative();
        let (body, record) = self.body_and_record(status, &narrative)?;
        let talk = &self.talk;
        let ended = Ended { status, record, calls: &talk.llm_calls, body: &body, reply: None };
        let said = self.turn_messages(narrative).await?;
        let row = row(talk, self.job, self.session.campaign);
        let actor = talk.caller.actor().in_turn(talk.id, Origin::Turn);
        talk.save_told().await;
        store::finish(&talk.app.pool, &actor, &row, &ended, &said, Rest::default()).await?;
        metrics::TURNS.with_label_values(&[KIND, status.as_str()]).inc();
        self.remember(said);
        Ok(Reply { status: 200, body, ..Reply::default() })
    }

    /// Caches the prompt with the new exchange. The turn's transaction raised the version of the conversation by one. If another
    /// transaction raised it as well, the next turn reads the conversation again.
    fn remember(&self, [asked, told]: [NewMessage; 2]) {
        let exchange = Exchange {
            id: asked.id,
            said: asked.content.into(),
            user: self.prompt.text.clone(),
            assistant: told.content.into(),
            tokens: asked.tokens.saturating_add(told.tokens),
        };
        let kept = Arc::new(self.prompt.to_cached_prompt(exchange));
        self.talk.app.session_prompts.put(self.talk.caller.tenant_id(), self.job.cache_key(), kept);
    }

    /// The turn's two messages: the model's input, which nobody at the table reads, and its answer.
    async fn turn_messages(&self, narrative: String) -> Result<[NewMessage; 2]> {
        let instruction =
            self.job.instruction.clone().unwrap_or_else(|| role::take_your_turn(self.session.role).to_owned());
        let asked = NewMessage::chat(entity::message::Author::System, "", instruction);
        let window_start = self.prompt.transcript.exchanges.first().map_or(asked.id, |e| e.id);
        let turn_id = Some(self.talk.id);
        let asked = NewMessage {
            kind: Type::System,
            session_id: Some(self.session.id),
            scene_id: self.session.scene,
            entity_id: Some(self.session.id),
            turn_id,
            whisper_to: vec!["gm".to_owned()],
            prompt_text: Some(self.prompt.stored_text()),
            tokens: self.prompt.text_tokens,
            window_start: Some(window_start),
            told_as: Some(self.session.conversation_key()),
            ..asked
        };
        let narrative_tokens = tokens::count_apart(narrative.clone()).await?;
        let told = NewMessage {
            entity_id: Some(self.session.id),
            tokens: narrative_tokens,
            told_as: Some(self.session.conversation_key()),
            ..NewMessage::of_session(&self.session, turn_id, self.session.speaker(), narrative)
        };
        Ok([asked, told])
    }

    fn body_and_record(&self, status: Status, narrative: &str) -> Result<(Vec<u8>, String)> {
        let talk = &self.talk;
        let view = TurnView {
            id: talk.id,
            kind: KIND,
            status,
            campaign_id: self.session.campaign,
            entity_id: self.session.id,
            player_id: None,
            model: talk.model.clone(),
            narrative: narrative.to_owned(),
            tool_calls: talk.tool_calls.clone(),
            mechanics: self.mechanics.clone(),
            ending: talk.ending,
            parse_error: talk.parse_error.clone(),
            role: Some(self.session.role),
            context: Some(self.prompt.context),
            dice_unused: self.hand.as_ref().map(|hand| hand.left().to_vec()),
            narration: None,
            planned: None,
            prompt: Some(self.prompt_view()),
            parent_turn_id: None,
            usage: talk.usage,
            timings_ms: talk.timings(),
            created_at: talk.created_at,
        };
        let cut = self.prompt.sections().map(|s| (s.name, s.cut.as_str())).filter(|(_, cut)| !cut.is_empty());
        let trace = Trace {
            player_id: None,
            turn_text: self.prompt.stored_text(),
            lore: self.prompt.lore().take(200).collect(),
            cut: cut.collect(),
            llm_calls: &talk.llm_calls,
            removed: &talk.removed,
            revert_conflicts: None,
        };
        body_and_record(&view, None, &trace)
    }

    fn prompt_view(&self) -> PromptView {
        let view = |s: &lasting::Part| SectionView { name: s.name, tokens: s.tokens, hash: s.hash.clone() };
        PromptView {
            cache: if self.prompt.hit { "hit" } else { "miss" },
            base_hash: self.prompt.base.hash.clone(),
            base_tokens: self.prompt.base.tokens,
            sections: self.prompt.sections().map(view).collect(),
        }
    }
}
