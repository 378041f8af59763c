//! Everything that a turn writes about itself: that it runs, how it ended, its messages, its usage, its idempotency key.
//!
//! `open` begins a turn, or begins it again under its key. `end` ends it, with or without success; `surely` does so even if the
//! database is away for a while. `revert` reverts it in steps, `sweep` does that for orphaned turns, and `stop` lets an operator
//! end a revert.

mod end;
mod open;
pub mod revert;
pub(super) mod settle;
mod stop;
mod surely;
mod sweep;
mod used;

use serde::Serialize;
use sqlx::postgres::PgRow;
use uuid::Uuid;

pub use self::{
    end::{Ended, Failure, NewReply},
    open::{Stamps, keep, open, open_cached, open_session, tell},
    stop::{EndedNow, end_now},
    surely::{fail, finish},
    sweep::{Swept, freed, sweep},
    used::{UsedBy, used},
};
use super::{
    job::OnFailure,
    kind::{Trigger, TurnKind},
    live::Live,
    subject::Subject,
};
use base::{
    clock,
    error::{Code, Error, Result},
    stored::Columns,
};
use db::{
    pool::Pool,
    retry::{BRIEF, PROMISED, Patience},
    tenancy::{self, Actor, TURN_LEASE_SECONDS, TenantTx},
};
use edge::{
    caller::Caller,
    http::{
        StoredAnswer,
        idempotency::{ClaimRow, IdempotencyKey},
    },
};
use llm::ReplyMode;
use world::messages::service::NewMessage;

/// Why a turn has to wait.
pub const SESSION_BUSY: &str = "This session is already having a turn.";
pub const ENTITY_BUSY: &str = "This NPC or owner is already answering this player.";

/// A turn that is about to run.
pub struct NewTurn<'a> {
    pub id: Uuid,
    pub subject: Subject,
    pub action: &'a str,
    pub trigger: Trigger,
    pub mode: ReplyMode,
    pub on_failure: OnFailure,
    /// The key or user that asked for it.
    pub key_id: Option<Uuid>,
    pub instance: i64,
    pub key: Option<&'a IdempotencyKey>,
    /// The log for its events, if somebody listens.
    pub live: Option<&'a Live>,
    /// The version of the conversation in the prompt, if that was read before the turn had its place.
    pub talk_version: Option<i64>,
    /// The first attempt at the same answer, if this is another one.
    pub parent: Option<Uuid>,
    pub place: Place,
    /// The player's words, if they are written when the turn begins. They stay if it is reverted.
    pub said: Option<&'a NewMessage>,
}

impl<'a> NewTurn<'a> {
    /// A turn that runs at once and depends on nothing.
    #[must_use]
    pub fn new(id: Uuid, subject: Subject, action: &'a str, caller: &Caller, instance: i64) -> Self {
        Self {
            id,
            subject,
            action,
            trigger: Trigger::Player,
            mode: ReplyMode::Native,
            on_failure: OnFailure::Revert,
            key_id: caller.author(),
            instance,
            key: None,
            live: None,
            talk_version: None,
            parent: None,
            place: Place::Free,
            said: None,
        }
    }
}

/// What to do about the turn's place when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Take the place and run, if it is free.
    Free,
    /// Store that the turn waits for the place.
    Queue,
    /// The same as `Free`, for a turn that has waited under this id.
    Queued(Uuid),
}

impl Place {
    /// The id of the turn: its own if it has waited, or a new one.
    #[must_use]
    pub fn turn(self) -> Uuid {
        if let Place::Queued(turn) = self { turn } else { clock::id() }
    }

    /// How long to try to open the turn. A client that waits asks again; one that was told its turn waits has left.
    #[must_use]
    pub fn patience(self) -> Patience {
        if matches!(self, Place::Queued(_)) { PROMISED } else { BRIEF }
    }

    fn status(self) -> &'static str {
        if self == Place::Queue { "queued" } else { "running" }
    }
}

/// Whether a client learns of a turn when it opens. Then it must find the turn again even if PostgreSQL crashes before the end, so the
/// commit waits for the disk. A client that waits for the answer asks again, and a waiting turn is on the disk already.
fn is_told(live: Option<&Live>, place: Place) -> bool {
    live.is_some() && !matches!(place, Place::Queued(_))
}

/// Begins the transaction that opens a turn.
///
/// # Errors
/// `unavailable` if no connection becomes free in time.
pub async fn opening(pool: &Pool, actor: &Actor, live: Option<&Live>, place: Place) -> Result<TenantTx> {
    if is_told(live, place) { TenantTx::write(pool, actor).await } else { TenantTx::write_lazily(pool, actor).await }
}

/// The result of opening a turn.
pub enum Opened {
    /// The turn runs under this id, or waits as requested.
    Runs(Uuid),
    /// The same request ran before.
    Replay(StoredAnswer),
}

/// A turn as `turn_begin` in the database takes it.
#[derive(Serialize)]
struct NewTurnRow<'a> {
    id: Uuid,
    campaign_id: Option<Uuid>,
    kind: TurnKind,
    status: &'static str,
    entity_id: Uuid,
    player_id: Option<Uuid>,
    action: &'a str,
    #[serde(skip_serializing_if = "is_usual")]
    trigger: Trigger,
    reply_mode: &'static str,
    on_failure: &'static str,
    key_id: Option<Uuid>,
    instance: i64,
    lease_seconds: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_turn_id: Option<Uuid>,
    claim: Option<ClaimRow<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<[&'a NewMessage; 1]>,
    #[serde(flatten)]
    terms: Terms<'a>,
}

fn is_usual(trigger: &Trigger) -> bool {
    *trigger == Trigger::Player
}

/// What only some turns have when they are stored. If something that the server has read is out of date, the turn does not begin.
#[derive(Clone, Copy, Default, Serialize)]
struct Terms<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    is_lazy: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    campaign_slug: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heads: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heads_sum: Option<i64>,
    /// The record of a turn that has ended already.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a str>,
    /// Set for a turn that stores up to where its AI is told what happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionRow<'a>>,
}

/// The role of a session's AI; the session's own if there is none.
#[derive(Clone, Copy, Serialize)]
struct SessionRow<'a> {
    role: Option<&'a str>,
}

impl NewTurn<'_> {
    /// The turn as the document for `turn_begin`.
    fn row<'r>(&'r self, terms: Terms<'r>) -> NewTurnRow<'r> {
        NewTurnRow {
            id: self.id,
            campaign_id: Some(self.subject.campaign),
            kind: self.subject.kind,
            status: self.place.status(),
            entity_id: self.subject.entity,
            player_id: self.subject.player,
            action: self.action,
            trigger: self.trigger,
            reply_mode: self.mode.as_str(),
            on_failure: self.on_failure.as_str(),
            key_id: self.key_id,
            instance: self.instance,
            lease_seconds: TURN_LEASE_SECONDS,
            parent_turn_id: self.parent,
            claim: self.key.map(IdempotencyKey::row),
            messages: self.said.map(|said| [said]),
            terms,
        }
    }

    fn is_lazy(&self) -> Option<bool> {
        (!is_told(self.live, self.place)).then_some(true)
    }

    /// The result of taking the place, judged by the conversation's present version.
    fn placed(&self, id: Uuid, row: &PgRow) -> Result<Opened> {
        let now = row.read::<i64>("talk")?;
        if self.place == Place::Queue || self.talk_version.is_none_or(|read| read == now) {
            return Ok(Opened::Runs(id));
        }
        // The conversation changed while the prompt was assembled.
        Err(Error::new(Code::TurnInProgress, ENTITY_BUSY).will_pass())
    }
}

fn lost() -> Error {
    Error::new(Code::Conflict, "The turn was cancelled or taken over.")
}

/// Saves a turn's new events, for listeners on other servers and later ones. One statement, or none without news. If it fails, the
/// next call tries again.
pub async fn save_told(pool: &Pool, actor: &Actor, turn: Uuid, live: &Live) {
    let (first, items) = live.unsaved();
    if items.is_empty() {
        return;
    }
    let seqs: Vec<i32> = (first..).take(items.len()).map(|seq| i32::try_from(seq).unwrap_or(i32::MAX)).collect();
    let (names, told): (Vec<&str>, Vec<&str>) = items.iter().map(|item| (item.name, item.data.as_str())).unzip();
    let statement = "SELECT turn_tell($1, $2, $3, $4, $5, $6)";
    match tenancy::call(pool, actor, statement, |q| q.bind(turn).bind(&seqs).bind(&names).bind(&told)).await {
        Ok(_) => live.saved(items.len()),
        Err(error) => tracing::warn!(turn_id = %turn, %error, "could not save a turn's events"),
    }
}

/// Corrects how the model of a turn replies.
///
/// # Errors
/// Database errors.
pub async fn set_reply_mode(pool: &Pool, actor: &Actor, turn: Uuid, mode: ReplyMode) -> Result<()> {
    let tx = TenantTx::write_lazily(pool, actor).await?;
    sqlx::query("UPDATE turn SET reply_mode = $3 WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(turn)
        .bind(mode.as_str())
        .execute(&mut *tx.connection().await)
        .await?;
    tx.commit().await
}

/// Whether somebody asked for the turn to stop, perhaps through another replica.
///
/// # Errors
/// Database errors.
pub async fn cancel_requested(pool: &Pool, tenant: Uuid, turn: Uuid) -> Result<bool> {
    let tx = TenantTx::read(pool, tenant).await?;
    let row = sqlx::query(
        "SELECT cancel_requested OR stop_requested AS is_unwanted FROM turn WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tenant)
    .bind(turn)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map_or(Ok(false), |row| row.read("is_unwanted"))
}
