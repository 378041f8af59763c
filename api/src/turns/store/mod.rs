//! What a turn writes of itself: that it runs, how it ended, its messages, its usage, its idempotency key.
//!
//! `open` is how it begins, or begins anew under its key; `end` how it ends, well or not; `surely` ends it also if the database is away for a
//! while; `revert` is how it is taken back, `sweep` who does that when nobody else does, and `stop` how an operator ends it.

mod end;
mod open;
pub mod revert;
mod stop;
mod surely;
mod sweep;

use sqlx::postgres::PgRow;
use uuid::Uuid;

pub use self::{
    end::{Ended, Failure, Said},
    open::{open, open_cached, open_session, reopen, tell},
    stop::{EndedNow, end_now},
    surely::{fail, finish, finish_saying},
    sweep::{Swept, freed, sweep},
};
use super::{OnFailure, live::Live};
use crate::{
    error::{Code, Error, Result},
    http::{Reply, idempotency::IdempotencyKey},
    llm::ReplyMode,
    pool::Pool,
    stored::Columns,
    tenancy::{self, Actor, TenantTx},
};

/// Seconds that a turn is its server's without a sign of life.
pub const LEASE_SECONDS: i32 = 20;

/// A turn about to run.
pub struct NewTurn<'a> {
    pub id: Uuid,
    pub campaign: Uuid,
    pub kind: &'static str,
    pub entity: Uuid,
    /// None for a session's turn.
    pub player: Option<Uuid>,
    pub action: &'a str,
    pub mode: ReplyMode,
    pub on_failure: OnFailure,
    /// The key or user it is of.
    pub key_id: Option<Uuid>,
    pub instance: i64,
    pub key: Option<&'a IdempotencyKey>,
    /// Where it tells what happens, if somebody hears it.
    pub live: Option<&'a Live>,
    /// The version of the conversation that the prompt holds, if it was read before the turn had its place.
    pub talk_version: Option<i64>,
    pub place: Place,
}

/// What a turn that is opened is to do with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Take it and run, if it is free.
    Free,
    /// Write that it waits for it.
    Queue,
    /// The same as `Free` for a turn that waits, under this id.
    Queued(Uuid),
}

impl Place {
    /// The id of the turn: its own if it waits, or a new one.
    #[must_use]
    pub fn turn(self) -> Uuid {
        if let Place::Queued(turn) = self { turn } else { Uuid::now_v7() }
    }

    fn status(self) -> &'static str {
        if self == Place::Queue { "queued" } else { "running" }
    }
}

/// Whether a client is told of a turn when it opens.
fn is_told(live: Option<&Live>, place: Place) -> bool {
    live.is_some() && !matches!(place, Place::Queued(_))
}

/// Opens the transaction in which a turn opens, which waits for the disk only if a client is told of it.
///
/// # Errors
/// `unavailable` when no connection is free in time.
pub async fn opening(pool: &Pool, actor: &Actor, live: Option<&Live>, place: Place) -> Result<TenantTx> {
    if is_told(live, place) { TenantTx::write(pool, actor).await } else { TenantTx::write_lazily(pool, actor).await }
}

/// What opening a turn led to.
pub enum Opened {
    /// It runs, or waits as it was to, under this id.
    Runs(Uuid),
    /// It ran before.
    Replay(Reply),
    /// The conversation went on while the prompt was assembled: roll back and begin again.
    Moved,
}

impl NewTurn<'_> {
    /// How the transaction that opens it is committed. A client that is told of its turn before it ends finds it again, even if
    /// PostgreSQL crashes in between; one that waits for the answer asks again. A turn that waits is on the disk already.
    fn synchronous_commit(&self) -> &'static str {
        if is_told(self.live, self.place) { "on" } else { "off" }
    }

    fn talk_head(&self) -> String {
        format!("talk:{}:{}", self.entity, self.player.unwrap_or_default())
    }

    /// What taking the place led to, by the conversation's version from then on.
    fn placed(&self, id: Uuid, row: &PgRow) -> Result<Opened> {
        let now = row.read::<i64>("talk")?;
        if self.place == Place::Queue || self.talk_version.is_none_or(|read| read == now) {
            Ok(Opened::Runs(id))
        } else {
            Ok(Opened::Moved)
        }
    }
}

fn lost() -> Error {
    Error::new(Code::Conflict, "The turn was cancelled or taken over.")
}

/// Saves what a turn told since the last time, for those who listen elsewhere or come back. One statement, none without news.
/// If it fails it is tried again with what comes next.
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
        Err(error) => tracing::warn!(turn_id = %turn, %error, "what a turn told could not be saved"),
    }
}

/// Whether someone asked for the turn to stop, perhaps through another replica.
///
/// # Errors
/// Those of the database.
pub async fn cancel_requested(pool: &Pool, tenant: Uuid, turn: Uuid) -> Result<bool> {
    let tx = TenantTx::read(pool, tenant).await?;
    let row = sqlx::query("SELECT cancel_requested FROM turn WHERE tenant_id = $1 AND id = $2")
        .bind(tenant)
        .bind(turn)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.map_or(Ok(false), |row| row.read("cancel_requested"))
}
