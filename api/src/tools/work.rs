//! The transaction of a batch of tool calls or of a command, which begins when something needs it.
//!
//! Dice and what is said at the table need none: dice are taken at once, and what was said is written at the end, in one
//! round trip with everything else that an end writes. Whatever reads or writes the world comes by [`Work::tx`], which
//! first writes what was said so far, so that every call sees what those before it did.

use std::cell::{Cell, RefCell};

use serde_json::Value;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::{
    dice::seeds::Taking,
    error::{Error, Result},
    messages::service::{self as messages, NewMessage},
    pool::Pool,
    tenancy::{self, Actor, TenantTx},
};

/// A turn that is held while work for it is committed: its id, and the server it is to be.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    pub turn: Uuid,
    pub instance: i64,
}

enum Tx<'a> {
    /// Somebody else's, who commits it.
    Given(&'a TenantTx),
    Late(Late<'a>),
}

struct Late<'a> {
    pool: &'a Pool,
    actor: &'a Actor,
    hold: Option<Hold>,
    begun: OnceCell<TenantTx>,
    failed: Cell<bool>,
}

/// What a batch or a command does.
pub struct Work<'a> {
    tx: Tx<'a>,
    tenant: Uuid,
    campaign: Uuid,
    said: RefCell<Vec<NewMessage>>,
}

impl<'a> Work<'a> {
    /// Part of a transaction that has begun.
    #[must_use]
    pub fn within(tx: &'a TenantTx, campaign: Uuid) -> Self {
        Self { tx: Tx::Given(tx), tenant: tx.tenant(), campaign, said: RefCell::default() }
    }

    /// A transaction of its own, which holds a turn if it is part of one that others may cancel.
    #[must_use]
    pub fn new(pool: &'a Pool, actor: &'a Actor, campaign: Uuid, hold: Option<Hold>) -> Self {
        let late = Late { pool, actor, hold, begun: OnceCell::new(), failed: Cell::new(false) };
        Self { tx: Tx::Late(late), tenant: actor.tenant, campaign, said: RefCell::default() }
    }

    /// The transaction; it begins if it has not. One round trip then, and one more if something was said.
    ///
    /// # Errors
    /// `conflict` if the turn is no longer this server's; those of the database.
    pub async fn tx(&self) -> Result<&TenantTx> {
        match &self.tx {
            Tx::Given(tx) => Ok(tx),
            Tx::Late(late) => {
                let begun = late.begun.get_or_try_init(|| self.begin(late)).await;
                late.failed.set(begun.is_err());
                begun
            }
        }
    }

    async fn begin(&self, late: &Late<'_>) -> Result<TenantTx> {
        let tx = match late.hold {
            Some(Hold { turn, instance }) => TenantTx::hold_turn(late.pool, late.actor, turn, instance).await?,
            None => TenantTx::write(late.pool, late.actor).await?,
        };
        messages::insert(&tx, self.campaign, &self.said.take()).await?;
        Ok(tx)
    }

    /// Whether it could not begin: what failed then is no call's fault.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        matches!(&self.tx, Tx::Late(late) if late.failed.get())
    }

    /// Whose rows it sees.
    #[must_use]
    pub fn tenant(&self) -> Uuid {
        self.tenant
    }

    /// Where dice come from.
    #[must_use]
    pub fn dice(&self) -> Taking<'_> {
        match &self.tx {
            Tx::Given(tx) => Taking::Within(tx),
            Tx::Late(late) => match late.begun.get() {
                Some(tx) => Taking::Within(tx),
                None => Taking::Alone(late.pool, late.actor),
            },
        }
    }

    /// Says something at the table; it is written with the rest.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn say(&self, message: NewMessage) -> Result<()> {
        match &self.tx {
            Tx::Late(late) if !late.begun.initialized() => self.said.borrow_mut().push(message),
            _ => drop(messages::insert(self.tx().await?, self.campaign, &[message]).await?),
        }
        Ok(())
    }

    /// The transaction to be committed with what follows, if it has begun. What was said without one is the caller's to write.
    #[must_use]
    pub fn into_parts(self) -> (Option<TenantTx>, Vec<NewMessage>) {
        let begun = match self.tx {
            Tx::Given(_) => None,
            Tx::Late(late) => late.begun.into_inner(),
        };
        (begun, self.said.into_inner())
    }

    /// Commits it. One round trip, none if there is nothing to write.
    ///
    /// # Errors
    /// `conflict` if the turn is no longer this server's; those of the database.
    pub async fn commit(self) -> Result<()> {
        let Tx::Late(Late { pool, actor, hold, .. }) = &self.tx else { return Ok(()) };
        let (pool, actor, hold, campaign) = (*pool, *actor, *hold, self.campaign);
        let (begun, said) = self.into_parts();
        match (begun, hold) {
            (Some(tx), _) => tx.commit().await,
            (None, _) if said.is_empty() => Ok(()),
            (None, Some(Hold { turn, instance })) => {
                let said: Value = serde_json::to_value(said).map_err(Error::internal)?;
                // The turn is held first: the function's row is what the messages wait for.
                let statement = "SELECT write_messages($1, $5, $6) FROM turn_hold($1, $2, $3, $4)";
                tenancy::call(pool, actor, statement, |q| q.bind(turn).bind(instance).bind(campaign).bind(said))
                    .await
                    .map(drop)
            }
            (None, None) => {
                let tx = TenantTx::write(pool, actor).await?;
                messages::insert(&tx, campaign, &said).await?;
                tx.commit().await
            }
        }
    }
}
