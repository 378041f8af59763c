//! Runs a turn of an NPC or owner, from the names in the request to the answer.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    calls::Hands,
    clean::Cleaner,
    job::{Job, Reaction, Way},
    place::{self, Attempted, in_place},
    rules,
    running::{Asker, Spot},
    store::{self, Ended, NewReply, NewTurn, Opened, Place, Stamps},
    talk::{Question, Talk, body_and_record},
    view::{Mechanics, PromptView, SectionView, Status, ToolCall, Trace, TurnView},
};
use crate::{
    prompt::{
        assemble::{
            Assembled, BasePrompt, PromptKey, PromptRequest, assemble, cached, cached_prompt_key, prompt_key, task_of,
        },
        fence,
        macros::Macros,
        reminder::{Reminder, reminders},
        transcript::{Exchange, Transcript},
        turn::{Cause, TurnText, turn_text_apart},
    },
    state::Ai,
    tools::{self, Effects, Rest},
};
use base::{
    error::{Code, Error, Result},
    metrics, tokens,
};
use db::{
    retry,
    tenancy::{Actor, Origin},
};
use edge::{
    caller::Caller,
    http::{Reply, answered},
    models::TenantModels,
};
use entity::{
    kind::EntityKind,
    message::{Author, Type},
};
use llm::{Completion, Message, ReplyMode, Role};
use world::{
    campaigns::prompt_section::Section,
    messages::service::NewMessage,
    npcs,
    owners::{
        Influence,
        influence::{self, Prices},
    },
};

/// Runs a turn to its end.
///
/// # Errors
/// `turn_in_progress`, `llm_unavailable`, `llm_timeout`, `validation_failed`, `not_found`, limits.
pub async fn run(app: &Ai, caller: &Caller, job: &Job, asker: &Asker) -> Result<Reply> {
    let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
    models.check_on()?;
    let at = |key: PromptKey| Spot { tenant: caller.tenant_id(), entity: key.entity, player: key.player };
    let wanted = place::PlaceRequest {
        kind: job.kind.as_str(),
        known: cached_prompt_key(&app.prompts, caller, &prompt_request(job, &models)).map(at),
        on_busy: job.on_busy,
        has_key: job.key.is_some(),
    };
    let spot = async || prompt_key(&app.prompts, &app.pool, caller, &prompt_request(job, &models)).await.map(at);
    in_place(app, caller, wanted, asker, spot, async |place| attempt(app, caller, job, &models, asker, place).await)
        .await
}

/// Runs the turn of a reaction: a turn that waits under this id, or a failed turn that its key starts again.
///
/// # Errors
/// The errors of [`run`].
pub async fn react(app: &Ai, caller: &Caller, job: &Job, asker: &Asker, place: Place) -> Result<Reply> {
    let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
    models.check_on()?;
    let attempt = async |place| attempt(app, caller, job, &models, asker, place).await;
    place::attempt_with_retry(app, caller.tenant_id(), place, &attempt).await
}

fn cause(job: &Job) -> Cause {
    if job.way.greeting().is_some() {
        return Cause::Arrival;
    }
    if job.way.continues() {
        return Cause::Continuation;
    }
    job.reaction.as_ref().map_or(Cause::Action, |reaction| reaction.cause)
}

fn prompt_request<'a>(job: &'a Job, models: &'a TenantModels) -> PromptRequest<'a> {
    let Job { campaign, kind, entity, player, mode, .. } = job;
    PromptRequest { campaign, kind: *kind, entity, player, mode: *mode, models }
}

/// A turn in progress.
struct Turn<'a> {
    talk: Talk<'a>,
    job: &'a Job,
    base: Arc<BasePrompt>,
    hit: bool,
    transcript: Arc<Transcript>,
    text: TurnText,
    reminders: Vec<Reminder>,
    mechanics: Option<Mechanics>,
    place: Place,
}

/// Takes the entity's place and runs.
async fn attempt(
    app: &Ai,
    caller: &Caller,
    job: &Job,
    models: &TenantModels,
    asker: &Asker,
    place: Place,
) -> Result<Attempted> {
    // The turn that is set aside for another attempt knows the attempt's id.
    let id = job.way.again().map_or_else(|| place.turn(), |again| again.id);
    let begun = (id, Instant::now());
    let mechanics = match job.mechanics {
        Some(turn) => Some(rules::mechanics(app, caller, &job.campaign, Some(&job.player), turn).await?),
        None => None,
    };
    let opening = Opening { app, caller, job, models, asker, place, begun, mechanics };
    let mut turn = match Box::pin(opening.open()).await? {
        Open::Runs(turn) => turn,
        Open::Waits(id) => return Ok(Attempted::Waits(id)),
        Open::Replay(reply) => return Ok(Attempted::Done(reply)),
    };
    let PromptKey { entity, player, .. } = turn.base.key;
    let spot = Spot { tenant: caller.tenant_id(), entity, player };
    let _entered = app.running.enter(turn.talk.id, asker, spot.tenant, Some(spot));
    let done = match turn.converse().await {
        Ok(status) => Box::pin(turn.finish(status)).await,
        Err(error) => Err(error),
    };
    let result = match done {
        Ok(reply) => Ok(reply),
        Err(error) => {
            let kind = job.kind.as_str();
            let body_and_record = |status| turn.body_and_record(status, &turn.talk.narrative());
            Box::pin(turn.talk.give_up(kind, error, body_and_record)).await
        }
    };
    turn.talk.ended(job.kind.as_str(), &result, turn.hit);
    result.map(Attempted::Done)
}

/// The result of opening a turn.
enum Open<'a> {
    Runs(Box<Turn<'a>>),
    /// The turn waits under this id, as requested.
    Waits(Uuid),
    /// The same request ran before.
    Replay(Reply),
}

/// A turn that is about to take its place.
struct Opening<'a> {
    app: &'a Ai,
    caller: &'a Caller,
    job: &'a Job,
    models: &'a TenantModels,
    asker: &'a Asker,
    place: Place,
    /// The turn's id, and when it began.
    begun: (Uuid, Instant),
    mechanics: Option<Mechanics>,
}

impl<'a> Opening<'a> {
    /// Takes the place. If another turn ended after the conversation was read and before the place was taken, reads the
    /// conversation again.
    async fn open(&self) -> Result<Open<'a>> {
        retry::repeat(self.place.patience(), async || match self.open_cached().await? {
            Some(turn) => Ok(Open::Runs(Box::new(turn))),
            None => self.open_assembled().await,
        })
        .await
    }

    /// Opens the turn in one round trip if its prompt is cached and still valid. Opens nothing for a tenant with a quota of
    /// tokens, because the quota must be checked first.
    async fn open_cached(&self) -> Result<Option<Turn<'a>>> {
        let is_usual = matches!(self.job.way, Way::Answer);
        if self.place != Place::Free || !is_usual || self.caller.tenant.limits.tokens_per_day > 0 {
            return Ok(None);
        }
        let Some(base) = cached(&self.app.prompts, self.caller, &prompt_request(self.job, self.models)) else {
            return Ok(None);
        };
        // The cached choice may be outdated too.
        if base.choose(self.models).is_err() {
            return Ok(None);
        }
        let has = match self.job.kind {
            EntityKind::Owner => {
                match influence::look(&self.app.pool, self.caller.tenant_id(), base.key.entity).await? {
                    None => return Ok(None), // The cached owner is gone. There may be another by that name.
                    has => has,
                }
            }
            EntityKind::Npc => None,
        };
        let turn = self.turn(Assembled { base, hit: true }, has).await?;
        // The cached locations may be outdated. If the two seem to be apart, read them again.
        let stamps = Stamps { heads: turn.base.head_keys(), sum: turn.base.head_versions().iter().sum() };
        let opens = is_here(self.caller, &turn.base).is_ok()
            && store::open_cached(&self.app.pool, &self.actor(), &turn.row(), stamps).await?;
        if !opens {
            return Ok(None);
        }
        metrics::PROMPT_CACHE.with_label_values(&["hit"]).inc();
        Ok(Some(turn))
    }

    /// Assembles the prompt and opens the turn in one transaction.
    async fn open_assembled(&self) -> Result<Open<'a>> {
        let (app, caller) = (self.app, self.caller);
        let tx = store::opening(&app.pool, &self.actor(), self.asker.live.as_deref(), self.place).await?;
        let assembled = assemble(&app.prompts, &tx, caller, &prompt_request(self.job, self.models)).await?;
        is_here(caller, &assembled.base)?;
        if let Some(greeting) = self.job.way.greeting()
            && let Err(error) = may_greet(&assembled.base, greeting, self.job.way.again().is_some())
        {
            drop(tx);
            // A repeated request finds its answer, although the conversation has begun with it.
            let stored = answered(app, caller, self.job.key.as_ref()).await?;
            return stored.map(Open::Replay).ok_or(error);
        }
        app.limits.check_tokens(&tx, &caller.tenant).await?;
        let has = match self.job.kind {
            EntityKind::Owner => influence::now(&tx, assembled.base.key.entity).await?,
            EntityKind::Npc => None,
        };
        let mut turn = self.turn(assembled, has).await?;
        match store::open(&tx, &turn.row()).await? {
            Opened::Replay(reply) => return Ok(Open::Replay(reply)),
            Opened::Runs(id) => turn.talk.id = id,
            Opened::Moved => {
                let detail = "This entity is already answering this player.";
                return Err(Error::new(Code::TurnInProgress, detail).will_pass());
            }
        }
        tx.commit().await?;
        if self.place == Place::Queue { Ok(Open::Waits(turn.talk.id)) } else { Ok(Open::Runs(Box::new(turn))) }
    }

    fn actor(&self) -> Actor {
        self.caller.actor().in_turn(self.begun.0, Origin::Turn)
    }

    /// The turn. `has` is the influence of an owner.
    async fn turn(&self, assembled: Assembled, has: Option<Influence>) -> Result<Turn<'a>> {
        let again = self.job.way.again();
        let choice = match again.and_then(|again| again.model.as_deref()) {
            Some(slug) => self.models.profile(slug).ok_or_else(|| Error::not_found("model profile"))??,
            None => assembled.base.choose(self.models)?,
        };
        let mode = assembled.base.key.mode;
        let mut talk = Talk::new(self.app, self.caller, (task_of(self.job.kind), choice), mode, self.asker, self.begun);
        let cast = &assembled.base.cast;
        talk.cleaner = Cleaner::of(&cast.settings, &cast.entity.name, &cast.player.name);
        Turn::begin(talk, self.job, self.place, (self.mechanics.clone(), has), assembled).await
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

impl<'a> Turn<'a> {
    async fn begin(
        talk: Talk<'a>,
        job: &'a Job,
        place: Place,
        (mechanics, has): (Option<Mechanics>, Option<Influence>),
        Assembled { base, hit }: Assembled,
    ) -> Result<Self> {
        let transcript = base.window();
        let raw = mechanics.as_ref().map(|m| m.raw.as_str());
        let text = turn_text_apart(&base, &transcript, (cause(job), &job.action), raw, has).await?;
        let wish = job.way.again().and_then(|again| again.hint.as_deref()).and_then(Reminder::wish);
        let reminders = reminders(&base.cast, talk.id).into_iter().chain(wish).collect();
        Ok(Self { talk, job, base, hit, transcript, text, reminders, mechanics, place })
    }

    fn row(&self) -> NewTurn<'a> {
        NewTurn {
            id: self.talk.id,
            campaign: self.base.key.campaign,
            kind: self.job.kind.as_str(),
            entity: self.base.key.entity,
            player: Some(self.base.key.player),
            action: &self.job.action,
            mode: self.talk.mode,
            on_failure: self.job.on_failure,
            key_id: self.talk.caller.author(),
            instance: self.talk.app.running.instance,
            key: self.job.key.as_ref(),
            live: self.talk.asker.live.as_deref(),
            talk_version: Some(self.base.transcript.version),
            parent: self.job.way.again().map(|again| again.parent),
            place: self.place,
            said: None,
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
        let messages = self.base.messages(&self.transcript, self.text.text.clone(), &self.reminders);
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

    /// Commits the answer: messages, record, usage, key.
    async fn finish(&mut self, status: Status) -> Result<Reply> {
        let narrative = self.talk.narrative();
        let narrative_tokens = tokens::count_apart(narrative.clone()).await?;
        let (body, record) = self.body_and_record(status, &narrative)?;
        let row = self.row();
        let player_message = Uuid::now_v7();
        let message = |author, name: &str, content| NewMessage {
            player_id: Some(self.base.key.player),
            entity_id: Some(self.base.key.entity),
            turn_id: Some(self.talk.id),
            ..NewMessage::chat(author, name, content)
        };
        let mut messages = [
            NewMessage {
                id: player_message,
                prompt_text: Some(self.text.without_words()),
                tokens: self.text.tokens,
                window_start: Some(self.kept().exchanges.first().map_or(player_message, |e| e.id)),
                ..message(Author::Player, &self.base.cast.player.name, self.job.action.clone())
            },
            NewMessage {
                tokens: narrative_tokens,
                ..message(Author::Ai, &self.base.cast.entity.name, narrative.clone())
            },
        ];
        if self.job.way.is_unprompted() {
            unsaid(&mut messages[0]);
        }
        // An answer that nobody asked for waits until the player can hear it.
        let reply = self.job.reaction.as_ref().map(|reaction| self.reply(reaction, &narrative, &messages));
        let ended = Ended { status, record, calls: &self.talk.llm_calls, body: &body, reply: reply.as_ref() };
        let said = if reply.is_some() { &[] } else { &messages[..] };
        let actor = self.talk.caller.actor().in_turn(self.talk.id, Origin::Turn);
        self.talk.save_told().await;
        store::finish(&self.talk.app.pool, &actor, &row, &ended, said, Rest::default()).await?;
        metrics::TURNS.with_label_values(&[self.job.kind.as_str(), status.as_str()]).inc();
        if reply.is_none() {
            self.remember(player_message, narrative, narrative_tokens);
        }
        Ok(Reply { status: 200, body, ..Reply::default() })
    }

    /// The reply of a reaction. Its first message holds what the model read and is only for game masters.
    fn reply<'r>(&self, reaction: &'r Reaction, narrative: &'r str, messages: &[NewMessage]) -> NewReply<'r> {
        let mut messages = messages.to_vec();
        if let Some(read) = messages.first_mut() {
            unsaid(read);
        }
        NewReply {
            id: Uuid::now_v7(),
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

    /// The conversation that later turns begin with: what this turn's model read, unless a template or a small context hid a part of it.
    fn kept(&self) -> &Transcript {
        if self.base.layout.shows_history() { &self.transcript } else { &self.base.transcript }
    }

    /// Adds the exchange to the cached prompt. The turn's transaction raised the conversation's head by one. If another transaction
    /// raised it as well, the head is higher than the cached one, and the next turn reads the conversation again.
    fn remember(&self, id: Uuid, narrative: String, narrative_tokens: u32) {
        let version = self.base.transcript.version + 1;
        let exchange = Exchange {
            id,
            said: self.job.action.as_str().into(),
            user: self.text.text.clone(),
            assistant: narrative.into(),
            tokens: self.text.tokens.saturating_add(narrative_tokens),
        };
        let next = self.base.after(self.kept().with(exchange, version));
        self.talk.app.prompts.base.put(self.talk.caller.tenant_id(), self.base.key, Arc::new(next));
    }

    /// The answer's body, and the record that contains it together with the trace.
    fn body_and_record(&self, status: Status, narrative: &str) -> Result<(Vec<u8>, String)> {
        let talk = &self.talk;
        let for_player = talk.caller.is_player();
        let view = TurnView {
            id: talk.id,
            kind: self.job.kind.as_str(),
            status,
            campaign_id: self.base.key.campaign,
            entity_id: self.base.key.entity,
            player_id: Some(self.base.key.player),
            model: talk.model.clone(),
            narrative: narrative.to_owned(),
            tool_calls: talk.tool_calls.clone(),
            mechanics: self.mechanics.clone(),
            ending: talk.ending,
            parse_error: talk.parse_error.clone(),
            role: None,
            context: None,
            dice_unused: None,
            narration: None,
            planned: None,
            prompt: (!for_player).then(|| self.prompt_view()),
            parent_turn_id: self.job.way.again().map(|again| again.parent),
            usage: talk.usage,
            timings_ms: talk.timings(),
            created_at: talk.created_at,
        };
        let lore = self.base.segments.iter().flat_map(|s| s.lore.iter()).chain(&self.text.lore);
        let cut = self.base.segments.iter().map(|s| (s.section.name(), s.cut.as_str()));
        let trace = Trace {
            player_id: Some(self.base.key.player),
            turn_text: self.text.without_words(),
            lore: lore.take(200).collect(),
            cut: cut.chain([(Section::Turn.name(), self.text.cut.as_str())]).filter(|(_, c)| !c.is_empty()).collect(),
            llm_calls: &talk.llm_calls,
            removed: &talk.removed,
            revert_conflicts: None,
        };
        body_and_record(&view, for_player.then(|| self.prompt_view()), &trace)
    }

    fn prompt_view(&self) -> PromptView {
        let mut sections: Vec<SectionView> = self
            .base
            .listed()
            .map(|s| SectionView { name: s.section.name(), tokens: s.tokens, hash: s.hash.clone() })
            .collect();
        sections.push(SectionView {
            name: Section::History.name(),
            tokens: self.transcript.tokens,
            hash: self.transcript.hash.clone(),
        });
        sections.push(SectionView {
            name: Section::Turn.name(),
            tokens: self.text.tokens,
            hash: self.text.hash.clone(),
        });
        sections.extend(self.reminders.iter().map(|reminder| SectionView {
            name: reminder.name,
            tokens: reminder.tokens,
            hash: reminder.hash.clone(),
        }));
        PromptView {
            cache: if self.hit { "hit" } else { "miss" },
            base_hash: self.base.hash.as_ref().to_owned(),
            base_tokens: self.base.tokens,
            sections,
        }
    }
}

/// Marks the message that a model read as one that no player said. Only game masters see it.
fn unsaid(message: &mut NewMessage) {
    (message.kind, message.author) = (Type::System, Author::System);
    message.blind = true;
}

/// Milliseconds with three decimals.
pub(super) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// Adds the model's reply and the results of its calls to the messages for the next call.
pub(super) fn answer_calls(more: &mut Vec<Message>, completion: Completion, done: &[ToolCall], mode: ReplyMode) {
    let outcome = |call: &ToolCall| -> Value {
        match (&call.result, &call.error) {
            (Some(result), _) => result.clone(),
            (None, error) => json!({ "error": error }),
        }
    };
    match mode {
        ReplyMode::Native => {
            let mut reply = Message::reply(completion);
            // The names that the model reads in its list of tools.
            for (call, done) in reply.tool_calls.iter_mut().zip(done) {
                call.name.clone_from(&done.name);
            }
            more.push(reply);
            more.extend(done.iter().map(|call| {
                // The results were written by others, so they are fenced even if the provider separates them.
                let mut text = String::new();
                let attributes = [("tool", call.name.as_str()), ("status", call.status.as_str())];
                fence::put(&mut text, "tool_result", &attributes, &outcome(call).to_string());
                Message::tool_result(call.id.clone(), text)
            }));
        }
        ReplyMode::Xml => {
            let results: Vec<_> =
                done.iter().map(|c| json!({ "tool_name": c.name, "status": c.status, "result": outcome(c) })).collect();
            let mut text = String::new();
            fence::put(&mut text, "tool_results", &[], &Value::Array(results).to_string());
            more.push(Message::assistant(completion.text, Vec::new()));
            more.push(Message::text(Role::User, text));
        }
    }
}
