//! The rules turn: a model says which check a player's action needs, and the rules decide it.
//!
//! The model sees names, not numbers. It has to make one call of a tool in [`offer`]. The call runs like any other: with typed,
//! validated arguments, as the player. If there is no call, or none that can be parsed, there is no check.
//!
//! - [`ruling`] is the part that decides; planner turns use it too. If the character is in a fight, `fight` turns a proposal into a
//!   call for the encounter engine.
//! - [`narrate`] tells the decision, for the command `do`.
//! - [`mechanics()`] reads a decision for a later turn that tells it; [`settled`] stores decisions made without a model.

mod context;
pub(crate) mod fight;
pub mod http;
mod mechanics;
pub mod narrate;
mod offer;
pub mod ruling;
pub mod settled;

use std::sync::Arc;

use edge::auth::player;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

pub use context::{Acting, acting};
pub use mechanics::mechanics;
use ruling::{Decided, Ruling};

use super::{
    job::OnFailure,
    running::{Asker, Spot},
    store::{self, Ended, NewTurn, Opened},
    talk::{Talk, body_and_record},
    view::{Status, Trace, TurnView},
};
use crate::{state::Ai, tools::Rest};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use db::{
    retry::{self, BRIEF},
    tenancy::Origin,
};
use edge::{
    caller::Caller,
    http::{
        Reply,
        idempotency::IdempotencyKey,
        resource::{Place, Ref, campaign_id},
    },
    limits,
    models::{Choice, TenantModels},
    tenants::tasks::{Task, slug_in},
};
use llm::{ReplyMode, Usage};
use world::{messages::service::NewMessage, scenes};

/// An action for the rules to decide.
pub struct RulesJob {
    pub campaign: String,
    pub player: String,
    pub action: String,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
    pub dice: Option<Vec<u32>>,
    pub preview: bool,
    pub key: Option<IdempotencyKey>,
    /// Set if the action was given as a command.
    pub command: Option<AsCommand>,
}

/// How to handle an action that was given as a command: it is narrated, answered like a command, and written to the table.
pub struct AsCommand {
    /// The scene in which it happens, by id or slug. Alternatively, `channel`.
    pub scene: Option<String>,
    pub channel: Option<String>,
    pub answer: Answer,
}

/// Builds the answer for a decision, and the messages for the table.
pub type Answer = fn(&Resolution, &Teller<'_>) -> Result<(Reply, Vec<NewMessage>)>;

/// Whose action it is, and where.
pub struct Teller<'a> {
    pub turn: Uuid,
    pub player: Uuid,
    pub name: &'a str,
    pub scene: Option<Uuid>,
    /// The player's words, unless the history already has them.
    pub words: Option<&'a str>,
}

/// The most messages of a command: the player's words, the decision, its narration.
pub const COMMAND_MESSAGES: u64 = 3;

/// Runs a rules turn to its end.
///
/// # Errors
/// `turn_in_progress`, `llm_unavailable`, `llm_timeout`, `invalid_dice`, `validation_failed`, `not_found`, limits.
pub async fn run(app: &Ai, caller: &Caller, job: &RulesJob, asker: &Asker) -> Result<Reply> {
    let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
    models.check_on()?;
    match attempt(app, caller, job, &models, asker).await {
        // The place may be held by an orphaned turn.
        Err(e) if matches!(e.code, Code::TurnInProgress | Code::IdempotencyInFlight) => {
            if !store::freed(&app.pool, &app.running, caller.tenant_id(), &e).await {
                return Err(e);
            }
            attempt(app, caller, job, &models, asker).await
        }
        result => result,
    }
}

async fn attempt(app: &Ai, caller: &Caller, job: &RulesJob, models: &TenantModels, asker: &Asker) -> Result<Reply> {
    let mut turn = match retry::repeat(BRIEF, async || open(app, caller, job, models, asker).await).await? {
        Open::Runs(turn) => turn,
        Open::Replay(reply) => return Ok(reply),
    };
    let spot = Spot { tenant: caller.tenant_id(), entity: turn.player, player: turn.player };
    let _entered = app.running.enter(turn.talk.id, asker, spot.tenant, Some(spot));
    let done = match turn.decide().await {
        Ok((decided, narration)) => turn.finish(&decided, narration).await,
        Err(error) => Err(error),
    };
    let result = match done {
        Ok(reply) => Ok(reply),
        Err(error) => turn.give_up(error).await,
    };
    turn.talk.ended("rules", &result, false);
    result
}

/// The result of opening a rules turn.
enum Open<'a> {
    Runs(Box<RulesTurn<'a>>),
    /// The same request ran before.
    Replay(Reply),
}

/// Takes the character's place and reads the data for the prompt.
async fn open<'a>(
    app: &'a Ai,
    caller: &'a Caller,
    job: &'a RulesJob,
    models: &TenantModels,
    asker: &'a Asker,
) -> Result<Open<'a>> {
    let (started, id) = (Instant::now(), Uuid::now_v7());
    let actor = caller.actor().in_turn(id, Origin::Turn);
    let tx = store::opening(&app.pool, &actor, asker.live.as_deref(), store::Place::Free).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(&job.campaign)).await?;
    let player = player::id(&tx, campaign, &job.player).await?;
    caller.may_act_as(player)?;
    app.limits.check_tokens(&tx, &caller.tenant).await?;
    let acting = acting(&tx, campaign, player, &job.action).await?;
    let scene = match &job.command {
        Some(command) => {
            limits::check_rows_more(&tx, caller.tenant.limits.rows_per_kind, "message", COMMAND_MESSAGES).await?;
            let place = Place { tx: &tx, campaign, caller };
            scenes::service::named(&place, command.scene.as_deref(), command.channel.as_deref()).await?
        }
        None => None,
    };
    let choose = |task| models.choose(task, &[slug_in(acting.models.as_ref(), task)]);
    let (choice, narrator) = (choose(Task::Classify)?, choose(Task::Narrate));
    let mode = job.mode.unwrap_or(choice.mode);
    let talk = Talk::new(app, caller, (Task::Classify, choice), mode, asker, (id, started));
    let mut turn = RulesTurn { talk, narrator, job, campaign, player, scene, acting };
    match store::open(&tx, &turn.row()).await? {
        Opened::Replay(reply) => return Ok(Open::Replay(reply)),
        Opened::Runs(id) => turn.talk.id = id,
        Opened::Moved => return Err(Error::new(Code::TurnInProgress, "The player is already acting.")),
    }
    tx.commit().await?;
    Ok(Open::Runs(Box::new(turn)))
}

/// The answer to a client.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Resolution {
    /// The outcome: check, components, dice, success, damage, changes.
    #[schema(value_type = Object)]
    pub parsed: Value,
    /// The outcome in seven lines, for a narrator.
    pub raw: String,
    /// The tool that the model chose.
    pub tool: &'static str,
    /// The arguments that the model chose.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// The narration of the outcome. Only the command `do` has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narration: Option<String>,
    pub usage: Usage,
    pub turn_id: Uuid,
    /// The text that the fight's log already has.
    #[serde(skip)]
    pub told: Option<String>,
    /// What to ask the player. If set, nothing was done.
    #[serde(skip)]
    pub unclear: Option<String>,
}

impl Resolution {
    /// The decision in a turn in progress.
    #[must_use]
    pub fn of(decided: &Decided, narration: Option<String>, talk: &Talk<'_>) -> Self {
        Self {
            parsed: decided.parsed.clone(),
            raw: decided.raw.clone(),
            tool: decided.tool,
            arguments: decided.arguments.clone(),
            narration,
            usage: talk.usage,
            turn_id: talk.id,
            told: decided.told.clone(),
            unclear: decided.unclear.clone(),
        }
    }
}

struct RulesTurn<'a> {
    talk: Talk<'a>,
    /// The model that tells what was decided.
    narrator: Result<Arc<Choice>>,
    job: &'a RulesJob,
    campaign: Uuid,
    player: Uuid,
    scene: Option<Uuid>,
    acting: Acting,
}

impl<'a> RulesTurn<'a> {
    fn row(&self) -> NewTurn<'a> {
        NewTurn {
            id: self.talk.id,
            campaign: self.campaign,
            kind: "rules",
            entity: self.player,
            player: Some(self.player),
            action: &self.job.action,
            mode: self.talk.mode,
            on_failure: OnFailure::Revert,
            key_id: self.talk.caller.author(),
            instance: self.talk.app.running.instance,
            key: self.job.key.as_ref(),
            live: self.talk.asker.live.as_deref(),
            talk_version: None,
            parent: None,
            place: store::Place::Free,
            said: None,
        }
    }

    async fn decide(&mut self) -> Result<(Decided, Option<String>)> {
        let mut ruling = Ruling {
            judge: self.talk.choice.clone(),
            talk: &mut self.talk,
            campaign: self.campaign,
            player: self.player,
            acting: &self.acting,
            action: &self.job.action,
            is_command: self.job.command.is_some(),
            dice: self.job.dice.as_deref(),
            preview: self.job.preview,
        };
        let decided = ruling.decide().await?;
        let narrated =
            decided.is_a_tale() && self.job.command.is_some() && self.talk.caller.tenant.settings.features.llm_visible;
        let narration = if narrated {
            narrate::narrate(&mut self.talk, &self.narrator, &self.acting.name, &self.job.action, &decided.raw).await?
        } else {
            None
        };
        Ok((decided, narration))
    }

    async fn finish(&self, decided: &Decided, narration: Option<String>) -> Result<Reply> {
        let resolution = Resolution::of(decided, narration, &self.talk);
        let (reply, messages) = match &self.job.command {
            Some(command) => (command.answer)(&resolution, &self.teller())?,
            None => (Reply::ok(&resolution)?, Vec::new()),
        };
        let ended = Ended {
            status: Status::Succeeded,
            record: self.body_and_record(Status::Succeeded, &decided.raw, resolution.narration)?.1,
            calls: &self.talk.llm_calls,
            body: &reply.body,
            reply: None,
        };
        if let Some(live) = &self.talk.asker.live {
            live.say(&decided.raw);
        }
        self.talk.save_told().await;
        let actor = self.talk.caller.actor().in_turn(self.talk.id, Origin::Turn);
        let pool = &self.talk.app.pool;
        store::finish(pool, &actor, &self.row(), &ended, &messages, Rest::default()).await?;
        metrics::TURNS.with_label_values(&["rules", Status::Succeeded.as_str()]).inc();
        Ok(reply)
    }

    fn teller(&self) -> Teller<'_> {
        let Acting { name, .. } = &self.acting;
        Teller { turn: self.talk.id, player: self.player, name, scene: self.scene, words: Some(&self.job.action) }
    }

    async fn give_up(&self, error: Error) -> Result<Reply> {
        self.talk.give_up("rules", error, |status| self.body_and_record(status, "", None)).await?;
        Err(Error::new(Code::Conflict, "The turn was cancelled.").for_turn(self.talk.id))
    }

    /// The turn's view, and the record that contains it, as `GET …/turns/{id}` shows it.
    fn body_and_record(&self, status: Status, raw: &str, narration: Option<String>) -> Result<(Vec<u8>, String)> {
        let talk = &self.talk;
        let view =
            TurnView { narrative: raw.to_owned(), narration, ..talk.view("rules", status, self.campaign, self.player) };
        let trace = Trace {
            player_id: Some(self.player),
            turn_text: self.acting.situation.clone(),
            lore: Vec::new(),
            cut: Vec::new(),
            llm_calls: &talk.llm_calls,
            removed: &[],
            revert_conflicts: None,
        };
        body_and_record(&view, None, &trace)
    }
}
