//! The end of a turn, written also if the database is away for a while: a model was paid for it.
//!
//! What ends a turn may be sent again at any time: it changes a turn that runs, and only that. If the answer to it was lost, the
//! turn's own record says whether it is there; what was rolled for it is rolled once, however often it is sent.

use uuid::Uuid;

use super::{
    NewTurn,
    end::{self, Ended, Failure, Said},
};
use crate::{
    dice::ahead::settled,
    error::Result,
    messages::service::NewMessage,
    pool::Pool,
    retry::{BRIEF, PAID, Tries, repeat},
    tenancy::Actor,
    tools::Rest,
};

/// Ends a turn that has two messages: a player's and its answer.
///
/// # Errors
/// `conflict` if the turn was cancelled or taken over meanwhile; `unavailable`.
pub async fn finish(pool: &Pool, actor: &Actor, new: &NewTurn<'_>, ended: &Ended<'_>, said: &Said<'_>) -> Result<()> {
    let ending = Ending { pool, actor, new, ended };
    ending.written(async || end::finish(pool, actor, new, ended, Some(said)).await).await
}

/// Ends a turn that says something else, or nothing; with what is left of the work that was done for it.
///
/// # Errors
/// `conflict` if the turn is no longer this server's. If the work has to be done anew, an error that passes
/// ([`crate::error::Error::is_transient`], [`crate::error::Error::is_outage`]).
pub async fn finish_saying(
    pool: &Pool,
    actor: &Actor,
    new: &NewTurn<'_>,
    ended: &Ended<'_>,
    messages: &[NewMessage],
    Rest { begun, claim }: Rest,
) -> Result<()> {
    let ending = Ending { pool, actor, new, ended };
    let Some(tx) = begun else {
        let claimed = claim.as_ref();
        let done = ending.written(async || end::finish_saying(pool, actor, new, ended, messages, claimed).await).await;
        return settled(claim, done);
    };
    match end::finish_in(tx, actor, new, ended, messages).await {
        Err(error) if error.in_doubt() => {
            if ending.is_there().await? {
                Ok(())
            } else {
                Err(error.settled())
            }
        }
        done => done,
    }
}

/// Ends a turn without success; see [`end::fail`]. If a model was paid, that is written, too, however long the database is away.
///
/// # Errors
/// Those of the database; the sweeper then does it later.
pub async fn fail(pool: &Pool, actor: &Actor, turn: Uuid, instance: i64, failure: &Failure<'_>) -> Result<bool> {
    let patience = if failure.usage.llm_calls > 0 { PAID } else { BRIEF };
    // A turn that has ended is left as it is, so a second time does no harm.
    repeat(patience, async || end::fail(pool, actor, turn, instance, failure).await.map_err(|e| e.settled())).await
}

struct Ending<'a> {
    pool: &'a Pool,
    actor: &'a Actor,
    new: &'a NewTurn<'a>,
    ended: &'a Ended<'a>,
}

impl Ending<'_> {
    /// Sends the end of the turn until it is there.
    async fn written(&self, send: impl AsyncFn() -> Result<()>) -> Result<()> {
        let mut tries = Tries::with(PAID);
        loop {
            let mut error = match send().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if error.in_doubt() {
                if self.is_there().await? {
                    return Ok(());
                }
                error = error.settled();
            }
            // Dice that another rolled meanwhile are not to be had by asking again.
            let is_rolled_by_another = error.sqlstate().is_some_and(|state| state == "40001");
            if is_rolled_by_another || !tries.again(&error).await {
                return Err(error);
            }
        }
    }

    /// Whether it is there, once there is a database to ask.
    async fn is_there(&self) -> Result<bool> {
        repeat(PAID, async || end::has_ended(self.pool, self.actor, self.new, self.ended).await).await
    }
}
