//! The rules turn: a model says which check a player's action needs, the rules decide it.
//!
//! The model sees names, not numbers, has to call one of the tools in [`offer`] and calls it once. What it calls is a tool like any
//! other: typed arguments, validated, executed as the player. No call, or one that nobody can make sense of, is no check.
//!
//! - [`ruling`] is the part that decides; a planner's turn decides with it as well. Where the character fights, `fight` makes of a
//!   proposal what is asked of the encounter engine.
//! - [`narrate`] tells what was decided, for the command `do`.
//! - [`mechanics()`] is what was decided, for a later turn that tells it; [`settled`] keeps what was decided without a model.

mod context;
mod fight;
pub mod http;
mod mechanics;
pub mod narrate;
mod offer;
pub mod ruling;
pub mod settled;

use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

pub use context::{Acting, acting};
pub use mechanics::mechanics;
use ruling::{Decided, Ruling};

use super::{
    OnFailure, Spot, Status, Trace, TurnView,
    start::Asker,
    store::{self, Ended, NewTurn, Opened},
    talk::{Talk, written},
};
use crate::{
    app::App,
    auth::Caller,
    characters,
    error::{Code, Error, Result},
    http::{
        Reply,
        idempotency::IdempotencyKey,
        resource::{Place, Ref, campaign_id},
    },
    limits,
    llm::{Endpoint, ReplyMode, Usage},
    messages::service::NewMessage,
    ops::metrics,
    scenes,
    tenancy::Origin,
    tools::Rest,
};

/// An action to be decided.
pub struct RulesJob {
    pub campaign: String,
    pub player: String,
    pub action: String,
    pub mode: ReplyMode,
    pub dice: Option<Vec<u32>>,
    pub preview: bool,
    pub key: Option<IdempotencyKey>,
    /// That it was asked for as a command.
    pub command: Option<AsCommand>,
}

/// How an action is decided that is a command: narrated, answered as commands are, and said at the table.
pub struct AsCommand {
    /// The scene it happens in: its id or slug, or its channel.
    pub scene: Option<String>,
    pub channel: Option<String>,
    pub answer: Answer,
}

/// What is answered of a decision, and what is said of it at the table.
pub type Answer = fn(&Resolution, &Teller<'_>) -> Result<(Reply, Vec<NewMessage>)>;

/// Whose action is told, and where.
pub struct Teller<'a> {
    pub turn: Uuid,
    pub player: Uuid,
    pub name: &'a str,
    pub scene: Option<Uuid>,
    /// The player's words, unless they are in the history already.
    pub words: Option<&'a str>,
}

/// Messages of a command: the player's words, what was decided, its narration.
pub const COMMAND_MESSAGES: u64 = 3;

/// Runs a rules turn to its end.
///
/// # Errors
/// `turn_in_progress`, `llm_unavailable`, `llm_timeout`, `invalid_dice`, `validation_failed`, `not_found`, limits.
pub async fn run(app: &App, caller: &Caller, job: &RulesJob, asker: &Asker) -> Result<Reply> {
    let endpoint = app.llm.endpoint(&caller.tenant, &app.secrets)?;
    match attempt(app, caller, job, &endpoint, asker).await {
        // Perhaps what stands in the way is a turn whose server is gone.
        Err(e) if matches!(e.code, Code::TurnInProgress | Code::IdempotencyInFlight) => {
            if !store::freed(&app.pool, &app.running, caller.tenant_id(), &e).await {
                return Err(e);
            }
            attempt(app, caller, job, &endpoint, asker).await
        }
        result => result,
    }
}

async fn attempt(app: &App, caller: &Caller, job: &RulesJob, endpoint: &Endpoint, asker: &Asker) -> Result<Reply> {
    let (started, id) = (Instant::now(), Uuid::now_v7());
    let actor = caller.actor().in_turn(id, Origin::Turn);
    let tx = store::opening(&app.pool, &actor, asker.live.as_deref(), store::Place::Free).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(&job.campaign)).await?;
    let player = characters::service::player_id(&tx, campaign, &job.player).await?;
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
    let talk = Talk::new(app, caller, endpoint, job.mode, asker, (id, started));
    let mut turn = RulesTurn { talk, job, campaign, player, scene, acting };
    match store::open(&tx, &turn.row()).await? {
        Opened::Replay(reply) => return Ok(reply),
        Opened::Runs(id) => turn.talk.id = id,
        Opened::Moved => return Err(Error::new(Code::TurnInProgress, "The player is already acting.")),
    }
    tx.commit().await?;
    let spot = Spot { tenant: caller.tenant_id(), entity: player, player };
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

/// What a client is told.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Resolution {
    /// The outcome: check, components, dice, success, damage, what changed.
    #[schema(value_type = Object)]
    pub parsed: Value,
    /// The same in seven lines, for a narrator.
    pub raw: String,
    /// The tool the model chose.
    pub tool: &'static str,
    /// The arguments it chose.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// What came of it in a narrator's words; only of the command `do`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narration: Option<String>,
    pub usage: Usage,
    pub turn_id: Uuid,
    /// What the log tells of it already, because it happened in a fight.
    #[serde(skip)]
    pub told: Option<String>,
    /// What the player is asked instead of anything being done.
    #[serde(skip)]
    pub unclear: Option<String>,
}

impl Resolution {
    /// What was decided in a turn that has come this far.
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
            mode: self.job.mode,
            on_failure: OnFailure::Revert,
            key_id: self.talk.caller.author(),
            instance: self.talk.app.running.instance,
            key: self.job.key.as_ref(),
            live: self.talk.asker.live.as_deref(),
            talk_version: None,
            place: store::Place::Free,
        }
    }

    async fn decide(&mut self) -> Result<(Decided, Option<String>)> {
        let mut ruling = Ruling {
            talk: &mut self.talk,
            campaign: self.campaign,
            player: self.player,
            acting: &self.acting,
            action: &self.job.action,
            dice: self.job.dice.as_deref(),
            preview: self.job.preview,
        };
        let decided = ruling.decide().await?;
        let narrated =
            decided.is_a_tale() && self.job.command.is_some() && self.talk.caller.tenant.settings.features.llm_visible;
        let narration = if narrated {
            narrate::narrate(&mut self.talk, &self.acting.name, &self.job.action, &decided.raw).await?
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
            record: self.written(Status::Succeeded, &decided.raw, resolution.narration)?.1,
            model: &self.talk.model,
            usage: &self.talk.usage,
            cost_micros: self.talk.cost_micros(),
            body: &reply.body,
        };
        if let Some(live) = &self.talk.asker.live {
            live.say(&decided.raw);
        }
        self.talk.save_told().await;
        let actor = self.talk.caller.actor().in_turn(self.talk.id, Origin::Turn);
        let pool = &self.talk.app.pool;
        store::finish_saying(pool, &actor, &self.row(), &ended, &messages, Rest::default()).await?;
        metrics::TURNS.with_label_values(&["rules", Status::Succeeded.as_str()]).inc();
        Ok(reply)
    }

    fn teller(&self) -> Teller<'_> {
        let Acting { name, .. } = &self.acting;
        Teller { turn: self.talk.id, player: self.player, name, scene: self.scene, words: Some(&self.job.action) }
    }

    async fn give_up(&self, error: Error) -> Result<Reply> {
        self.talk.give_up("rules", error, |status| self.written(status, "", None)).await?;
        Err(Error::new(Code::Conflict, "The turn was cancelled.").for_turn(self.talk.id))
    }

    /// The turn's view, and the record that holds it, as `GET …/turns/{id}` shows it.
    fn written(&self, status: Status, raw: &str, narration: Option<String>) -> Result<(Vec<u8>, String)> {
        let talk = &self.talk;
        let view =
            TurnView { narrative: raw.to_owned(), narration, ..talk.view("rules", status, self.campaign, self.player) };
        let trace = Trace {
            player_id: Some(self.player),
            action: &self.job.action,
            turn_text: &self.acting.situation,
            lore: Vec::new(),
            cut: Vec::new(),
            llm_calls: &talk.llm_calls,
            revert_conflicts: None,
        };
        written(&view, None, &trace)
    }
}
