//! Ends a turn even if the database is away for a while, because a model was paid for it.
//!
//! The statement that ends a turn may be sent again at any time: it only changes a turn that runs. If its answer was lost, the
//! turn's own record says whether it succeeded. Dice are claimed only once, however often it is sent.

use uuid::Uuid;

use super::{
    NewTurn,
    end::{self, Ended, Failure},
};
use crate::tools::Rest;
use base::error::Result;
use db::{
    pool::Pool,
    retry::{BRIEF, PAID, Tries, repeat},
    tenancy::Actor,
};
use world::{dice::ahead::settled, messages::service::NewMessage};

/// Ends a turn with its messages, if any, and with the rest of its work.
///
/// # Errors
/// `conflict` if the turn is no longer this server's. If the work has to be done again, a temporary error
/// ([`base::error::Error::is_transient`], [`base::error::Error::is_outage`]).
pub async fn finish(
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
        let done =
            ending.send_until_stored(async || end::finish(pool, actor, new, ended, messages, claimed).await).await;
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

/// Ends a turn without success; see [`end::fail`]. If a model was paid, keeps trying even if the database is away for long.
///
/// # Errors
/// Database errors. Then the sweeper does it later.
pub async fn fail(pool: &Pool, actor: &Actor, turn: Uuid, instance: i64, failure: &Failure<'_>) -> Result<bool> {
    let patience = if failure.calls.is_empty() { BRIEF } else { PAID };
    // A turn that has ended is not changed, so a second attempt does no harm.
    repeat(patience, async || end::fail(pool, actor, turn, instance, failure).await.map_err(|e| e.settled())).await
}

struct Ending<'a> {
    pool: &'a Pool,
    actor: &'a Actor,
    new: &'a NewTurn<'a>,
    ended: &'a Ended<'a>,
}

impl Ending<'_> {
    /// Sends the end of the turn until it is stored.
    async fn send_until_stored(&self, send: impl AsyncFn() -> Result<()>) -> Result<()> {
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
            // If somebody else rolled these dice meanwhile, trying again does not help.
            let is_rolled_by_another = error.sqlstate().is_some_and(|state| state == "40001");
            if is_rolled_by_another || !tries.wait_to_retry(&error).await {
                return Err(error);
            }
        }
    }

    /// Whether the end is stored, once the database can be asked.
    async fn is_there(&self) -> Result<bool> {
        repeat(PAID, async || end::has_ended(self.pool, self.actor, self.new, self.ended).await).await
    }
}
