//! The transaction of a batch of tool calls or of a command. It begins only when something needs it.
//!
//! Dice and messages need no transaction: dice are used before it begins. The end of the work writes the claim for the
//! dice and the messages in one round trip, together with everything else. Code that reads or writes the world calls
//! [`Work::tx`], which writes claim and messages first. So every call sees the effects of the calls before it.

use std::cell::{Cell, RefCell};

use sqlx::types::Json;
use tokio::sync::OnceCell;
use uuid::Uuid;

use base::error::Result;
use db::{
    pool::Pool,
    retry::{PAID, repeat},
    tenancy::{self, Actor, TenantTx},
};
use world::{
    dice::{
        ahead::{Ahead, Claim, settled},
        seeds::{self, Taking},
    },
    messages::service::{self as messages, NewMessage},
};

/// The lock on a turn during the commit of its work: the turn's id, and the server that must still own the turn.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    pub turn: Uuid,
    pub instance: i64,
}

enum Tx<'a> {
    /// Another transaction, which its owner commits.
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

/// The work of a batch or a command.
pub struct Work<'a> {
    tx: Tx<'a>,
    tenant: Uuid,
    campaign: Uuid,
    said: RefCell<Vec<NewMessage>>,
}

impl<'a> Work<'a> {
    /// Work within a transaction that has already begun.
    #[must_use]
    pub fn within(tx: &'a TenantTx, campaign: Uuid) -> Self {
        Self { tx: Tx::Given(tx), tenant: tx.tenant(), campaign, said: RefCell::default() }
    }

    /// Work in a transaction of its own. It locks a turn if it is part of one that others may cancel.
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

    /// The transaction, which begins now if it has not. That takes one round trip, and another one if there are messages.
    ///
    /// # Errors
    /// `conflict` if the turn is no longer this server's; database errors.
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
                Ok(()) => claim.bind_to(&tx),
                refused => settled(Some(claim), refused)?,
            }
        }
        messages::insert(&tx, self.campaign, &self.said.take()).await?;
        Ok(tx)
    }

    /// Whether the transaction could not begin. Then the failure is not the call's fault.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        matches!(&self.tx, Tx::Late(late) if late.failed.get())
    }

    /// The tenant whose rows the work sees.
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

    /// Adds messages. They are written with the rest.
    ///
    /// # Errors
    /// Database errors.
    pub async fn say(&self, messages: Vec<NewMessage>) -> Result<()> {
        match &self.tx {
            Tx::Late(late) if !late.begun.initialized() => self.said.borrow_mut().extend(messages),
            _ => drop(messages::insert(self.tx().await?, self.campaign, &messages).await?),
        }
        Ok(())
    }

    /// What still has to be written when the work ends, and the messages.
    #[must_use]
    pub fn into_rest(self) -> (Rest, Vec<NewMessage>) {
        let rest = match self.tx {
            Tx::Given(_) => Rest::default(),
            Tx::Late(late) => Rest { claim: late.ahead.claim(), begun: late.begun.into_inner() },
        };
        (rest, self.said.into_inner())
    }

    /// Commits the work. One round trip, or none if there is nothing to write, and one more after long work.
    ///
    /// # Errors
    /// `conflict` if the turn is no longer this server's; database errors.
    pub async fn commit(self) -> Result<()> {
        let Tx::Late(late) = &self.tx else { return Ok(()) };
        let (pool, actor, hold, campaign) = (late.pool, late.actor, late.hold, self.campaign);
        if hold.is_none() {
            self.tx().await?;
        }
        let (Rest { begun, claim }, said) = self.into_rest();
        let hold = match (begun, hold) {
            (Some(tx), hold) => {
                if let Some(hold) = hold {
                    tx.renew_held(hold.turn).await?;
                }
                return tx.commit_within(PAID).await;
            }
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

/// Whether the messages were written although the database's answer was lost. If there were only dice, the caller rolls
/// them again, because nobody has seen them.
async fn is_said(pool: &Pool, actor: &Actor, hold: Hold, said: &[NewMessage]) -> Result<bool> {
    // This waits for the turn's lock. By then, a write that was in progress has ended.
    let tx = TenantTx::hold_turn(pool, actor, hold.turn, hold.instance).await?;
    match said.first() {
        Some(first) => messages::is_there(&tx, first.id).await,
        None => Ok(false),
    }
}

/// The turn is locked first, because the rest of the statement waits for the function's row.
const WRITE: &str = "SELECT claim_dice($1, $7, $8, $9), write_messages($1, $5, $6) FROM turn_hold($1, $2, $3, $4)";

/// What is left of some work: its transaction if that has begun, or else the dice to claim.
#[derive(Default)]
pub struct Rest {
    pub begun: Option<TenantTx>,
    pub claim: Option<Claim>,
}
