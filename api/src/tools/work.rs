//! The transaction of a batch of tool calls or of a command, which begins when something needs it.
//!
//! Dice and what is said at the table need none: dice are used ahead of it, and they are taken and what was said is written at the
//! end, in one round trip with everything else that an end writes. Whatever reads or writes the world comes by [`Work::tx`],
//! which first does that, so that every call sees what those before it did.

use std::cell::{Cell, RefCell};

use sqlx::types::Json;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::{
    dice::{
        ahead::{Ahead, Claim, settled},
        seeds::{self, Taking},
    },
    error::Result,
    messages::service::{self as messages, NewMessage},
    pool::Pool,
    retry::{PAID, repeat},
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
    Late(Box<Late<'a>>),
}

struct Late<'a> {
    ahead: Ahead<'a>,
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
        let late = Late {
            ahead: Ahead::new(pool, actor),
            pool,
            actor,
            hold,
            begun: OnceCell::new(),
            failed: Cell::new(false),
        };
        Self { tx: Tx::Late(Box::new(late)), tenant: actor.tenant, campaign, said: RefCell::default() }
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
        if let Some(claim) = late.ahead.claim() {
            match seeds::claim(&tx, &claim).await {
                Ok(()) => claim.taken_in(&tx),
                refused => settled(Some(claim), refused)?,
            }
        }
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
                None => Taking::Ahead(&late.ahead),
            },
        }
    }

    /// Says something at the table; it is written with the rest.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn say(&self, messages: Vec<NewMessage>) -> Result<()> {
        match &self.tx {
            Tx::Late(late) if !late.begun.initialized() => self.said.borrow_mut().extend(messages),
            _ => drop(messages::insert(self.tx().await?, self.campaign, &messages).await?),
        }
        Ok(())
    }

    /// What is left to be written by whoever ends it, and what was said.
    #[must_use]
    pub fn into_rest(self) -> (Rest, Vec<NewMessage>) {
        let rest = match self.tx {
            Tx::Given(_) => Rest::default(),
            Tx::Late(late) => Rest { claim: late.ahead.claim(), begun: late.begun.into_inner() },
        };
        (rest, self.said.into_inner())
    }

    /// Commits it. One round trip, none if there is nothing to write.
    ///
    /// # Errors
    /// `conflict` if the turn is no longer this server's; those of the database.
    pub async fn commit(self) -> Result<()> {
        let Tx::Late(late) = &self.tx else { return Ok(()) };
        let (pool, actor, hold, campaign) = (late.pool, late.actor, late.hold, self.campaign);
        if hold.is_none() {
            self.tx().await?;
        }
        let (Rest { begun, claim }, said) = self.into_rest();
        let hold = match (begun, hold) {
            (Some(tx), _) => return tx.commit_within(PAID).await,
            (None, Some(hold)) if claim.is_some() || !said.is_empty() => hold,
            _ => return Ok(()),
        };
        let written = tenancy::call(pool, actor, WRITE, |q| {
            seeds::bind_claim(q.bind(hold.turn).bind(hold.instance).bind(campaign).bind(Json(&said)), claim.as_ref())
        });
        let written = match written.await {
            Err(lost) if lost.in_doubt() => {
                if repeat(PAID, async || is_said(pool, actor, hold, &said).await).await? {
                    Ok(())
                } else {
                    Err(lost.settled())
                }
            }
            written => written.map(drop),
        };
        settled(claim, written)
    }
}

/// Whether words were written of which the answer was lost. Dice alone that were taken, perhaps, are rolled anew: nobody saw them.
async fn is_said(pool: &Pool, actor: &Actor, hold: Hold, said: &[NewMessage]) -> Result<bool> {
    // Waits for whoever holds the turn: what is about to be written is written then.
    let tx = TenantTx::hold_turn(pool, actor, hold.turn, hold.instance).await?;
    match said.first() {
        Some(first) => messages::is_there(&tx, first.id).await,
        None => Ok(false),
    }
}

/// The turn is held first: the function's row is what the rest waits for.
const WRITE: &str = "SELECT claim_dice($1, $7, $8, $9), write_messages($1, $5, $6) FROM turn_hold($1, $2, $3, $4)";

/// What is left of some work: its transaction if it has begun, else the dice that are to be taken.
#[derive(Default)]
pub struct Rest {
    pub begun: Option<TenantTx>,
    pub claim: Option<Claim>,
}
