//! Runs a turn of an NPC or owner, from the names in the request to the answer.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Job, Mechanics, PromptView, SectionView, Spot, Status, ToolCall, Trace, TurnView,
    calls::Hands,
    place::{self, Attempted, in_place},
    rules,
    start::Asker,
    store::{self, Ended, NewTurn, Opened, Place, Said},
    talk::{Question, Talk, written},
};
use crate::{
    prompt::{
        assemble::{
            Assembled, BasePrompt, PromptKey, TurnText, Wanted, assemble, cached, known, known_already, turn_text_apart,
        },
        fence,
        transcript::{Exchange, Transcript},
    },
    tools::{self, Effects},
    turns::state::TurnState,
};
use base::{
    error::{Code, Error, Result},
    metrics, tokens,
};
use db::tenancy::Origin;
use edge::{caller::Caller, http::Reply};
use entity::kind::EntityKind;
use llm::{Completion, Endpoint, Message, ReplyMode, Role};
use world::{campaigns::prompt_section::Section, npcs};

/// How often the conversation may change before a turn has its place.
const MOVES_MAX: u32 = 5;

/// Runs a turn to its end.
///
/// # Errors
/// `turn_in_progress`, `llm_unavailable`, `llm_timeout`, `validation_failed`, `not_found`, limits.
pub async fn run(app: &TurnState, caller: &Caller, job: &Job, asker: &Asker) -> Result<Reply> {
    let endpoint = app.llm.endpoint(&caller.tenant, &app.secrets)?;
    let at = |key: PromptKey| Spot { tenant: caller.tenant_id(), entity: key.entity, player: key.player };
    let wanted = place::Wanted {
        kind: job.kind.as_str(),
        known: known_already(&app.prompts, caller, &wanted(job)).map(at),
        on_busy: job.on_busy,
        has_key: job.key.is_some(),
    };
    let spot = async || known(&app.prompts, &app.pool, caller, &self::wanted(job)).await.map(at);
    in_place(app, caller, wanted, asker, spot, async |place| attempt(app, caller, job, &endpoint, asker, place).await)
        .await
}

fn wanted(job: &Job) -> Wanted<'_> {
    Wanted { campaign: &job.campaign, kind: job.kind, entity: &job.entity, player: &job.player, mode: job.mode }
}

/// A turn in progress.
struct Turn<'a> {
    talk: Talk<'a>,
    job: &'a Job,
    base: Arc<BasePrompt>,
    hit: bool,
    transcript: Arc<Transcript>,
    text: TurnText,
    mechanics: Option<Mechanics>,
    place: Place,
}

/// Takes the entity's place and runs. If another turn ended after the conversation was read and before the place was taken, reads
/// the conversation again.
async fn attempt(
    app: &TurnState,
    caller: &Caller,
    job: &Job,
    endpoint: &Endpoint,
    asker: &Asker,
    place: Place,
) -> Result<Attempted> {
    for _ in 0..MOVES_MAX {
        if let Some(attempted) = attempt_once(app, caller, job, endpoint, asker, place).await? {
            return Ok(attempted);
        }
    }
    Err(Error::new(Code::TurnInProgress, "This entity is already answering this player."))
}

/// None if the conversation changed before the turn had its place.
async fn attempt_once(
    app: &TurnState,
    caller: &Caller,
    job: &Job,
    endpoint: &Endpoint,
    asker: &Asker,
    place: Place,
) -> Result<Option<Attempted>> {
    let started = Instant::now();
    let id = place.turn();
    let actor = caller.actor().in_turn(id, Origin::Turn);
    let wanted = wanted(job);
    let mechanics = match job.mechanics {
        Some(turn) => Some(rules::mechanics(app, caller, &job.campaign, Some(&job.player), turn).await?),
        None => None,
    };
    let begin = |assembled| {
        let talk = Talk::new(app, caller, endpoint, job.mode, asker, (id, started));
        Turn::begin(talk, job, place, mechanics.clone(), assembled)
    };
    let mut opened = None;
    // For a tenant with a quota of tokens, check the quota first.
    if place == Place::Free
        && caller.tenant.limits.tokens_per_day == 0
        && let Some(base) = cached(&app.prompts, caller, &wanted)
    {
        let turn = begin(Assembled { base, hit: true }).await?;
        // The cached locations may be outdated. If the two seem to be apart, read them again.
        if is_here(caller, &turn.base).is_ok() && store::open_cached(&app.pool, &actor, &turn.row(), &turn.base).await?
        {
            opened = Some(turn);
        }
    }
    let mut turn = match opened {
        Some(turn) => {
            metrics::PROMPT_CACHE.with_label_values(&["hit"]).inc();
            turn
        }
        None => {
            let tx = store::opening(&app.pool, &actor, asker.live.as_deref(), place).await?;
            // Boxed, so that while the model writes, the future holds nothing of how a turn opens and ends.
            let assembled = Box::pin(assemble(&app.prompts, &tx, caller, &wanted)).await?;
            is_here(caller, &assembled.base)?;
            app.limits.check_tokens(&tx, &caller.tenant).await?;
            let mut turn = begin(assembled).await?;
            match store::open(&tx, &turn.row()).await? {
                Opened::Replay(reply) => return Ok(Some(Attempted::Done(reply))),
                Opened::Runs(id) => turn.talk.id = id,
                Opened::Moved => return Ok(None),
            }
            tx.commit().await?;
            if place == Place::Queue {
                return Ok(Some(Attempted::Waits(turn.talk.id)));
            }
            turn
        }
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
            let written = |status| turn.written(status, &turn.talk.narrative());
            Box::pin(turn.talk.give_up(kind, error, written)).await
        }
    };
    turn.talk.ended(job.kind.as_str(), &result, turn.hit);
    result.map(|reply| Some(Attempted::Done(reply)))
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
        "{} is not where {} is. Players may only speak to NPCs at their character's location.",
        entity.name, player.name
    );
    Err(Error::new(Code::Forbidden, message))
}

impl<'a> Turn<'a> {
    async fn begin(
        talk: Talk<'a>,
        job: &'a Job,
        place: Place,
        mechanics: Option<Mechanics>,
        Assembled { base, hit }: Assembled,
    ) -> Result<Self> {
        let transcript = base.transcript.within(Section::History.budget_in(&base.cast.settings));
        let raw = mechanics.as_ref().map(|m| m.raw.as_str());
        let text = turn_text_apart(&base, &transcript, &job.action, raw).await?;
        Ok(Self { talk, job, base, hit, transcript, text, mechanics, place })
    }

    fn row(&self) -> NewTurn<'a> {
        NewTurn {
            id: self.talk.id,
            campaign: self.base.key.campaign,
            kind: self.job.kind.as_str(),
            entity: self.base.key.entity,
            player: Some(self.base.key.player),
            action: &self.job.action,
            mode: self.job.mode,
            on_failure: self.job.on_failure,
            key_id: self.talk.caller.author(),
            instance: self.talk.app.running.instance,
            key: self.job.key.as_ref(),
            live: self.talk.asker.live.as_deref(),
            talk_version: Some(self.base.transcript.version),
            place: self.place,
        }
    }

    /// The conversation with the model, as the entity and with its tools.
    async fn converse(&mut self) -> Result<Status> {
        let messages = self.base.messages(&self.transcript, self.text.text.clone());
        let cast = &self.base.cast;
        let question =
            Question { messages: &messages, tools: self.base.tools.as_deref(), cache_key: &self.base.cache_key };
        let hands = Hands {
            campaign: cast.campaign,
            kind: cast.entity.kind.into(),
            entity: cast.entity.id,
            player: Some((cast.player.id, &cast.player.slug)),
            tools: tools::granted(cast.entity.kind, &cast.entity.tools).into_iter().map(|(tool, _)| tool).collect(),
            session: None,
            hand: None,
            rows_max: self.talk.caller.tenant.limits.rows_per_kind,
            effects: Effects::of(self.talk.app.turns.effects_max),
        };
        self.talk.run(&question, &hands).await
    }

    /// Commits the answer: messages, record, usage, key.
    async fn finish(&mut self, status: Status) -> Result<Reply> {
        let narrative = self.talk.narrative();
        let narrative_tokens = tokens::count_apart(narrative.clone()).await?;
        let (body, record) = self.written(status, &narrative)?;
        let row = self.row();
        let player_message = Uuid::now_v7();
        let cost_micros = self.talk.cost_micros();
        let ended =
            Ended { status, record, model: &self.talk.model, usage: &self.talk.usage, cost_micros, body: &body };
        let said = Said {
            player_message,
            player_name: &self.base.cast.player.name,
            entity_name: &self.base.cast.entity.name,
            action: &self.job.action,
            prompt_text: &self.text.text,
            user_tokens: self.text.tokens,
            narrative: &narrative,
            narrative_tokens,
            window_start: self.transcript.exchanges.first().map_or(player_message, |e| e.id),
        };
        let actor = self.talk.caller.actor().in_turn(self.talk.id, Origin::Turn);
        self.talk.save_told().await;
        store::finish(&self.talk.app.pool, &actor, &row, &ended, &said).await?;
        metrics::TURNS.with_label_values(&[self.job.kind.as_str(), status.as_str()]).inc();
        self.remember(player_message, narrative, narrative_tokens);
        Ok(Reply { status: 200, body, ..Reply::default() })
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
        let next = self.base.after(self.transcript.with(exchange, version));
        self.talk.app.prompts.base.put(self.talk.caller.tenant_id(), self.base.key, Arc::new(next));
    }

    /// The answer's body, and the record that contains it together with the trace.
    fn written(&self, status: Status, narrative: &str) -> Result<(Vec<u8>, String)> {
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
            parse_error: talk.parse_error.clone(),
            role: None,
            context: None,
            dice_unused: None,
            narration: None,
            planned: None,
            prompt: (!for_player).then(|| self.prompt_view()),
            usage: talk.usage,
            timings_ms: talk.timings(),
            created_at: talk.created_at,
        };
        let lore = self.base.segments.iter().flat_map(|s| s.lore.iter()).chain(&self.text.lore);
        let cut = self.base.segments.iter().map(|s| (s.section.name(), s.cut.as_str()));
        let trace = Trace {
            player_id: Some(self.base.key.player),
            action: &self.job.action,
            turn_text: &self.text.text,
            lore: lore.take(200).collect(),
            cut: cut.chain([(Section::Turn.name(), self.text.cut.as_str())]).filter(|(_, c)| !c.is_empty()).collect(),
            llm_calls: &talk.llm_calls,
            revert_conflicts: None,
        };
        written(&view, for_player.then(|| self.prompt_view()), &trace)
    }

    fn prompt_view(&self) -> PromptView {
        let mut sections: Vec<SectionView> = self
            .base
            .segments
            .iter()
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
        PromptView {
            cache: if self.hit { "hit" } else { "miss" },
            base_hash: self.base.hash.as_ref().to_owned(),
            base_tokens: self.base.tokens,
            sections,
        }
    }
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
            more.push(Message::assistant(completion.text, completion.tool_calls));
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
