//! Answers that are tried again, go on, or give their place to another attempt, as the tables of players and game masters show them.

use std::collections::HashMap;

use actix_web::web;
use uuid::Uuid;

use super::reply::Pending;
use ai::{
    state::Ai,
    turns::again::{self, Following, Next},
};
use base::error::Result;
use db::tenancy::TenantTx;
use edge::caller::Caller;
use entity::{CampaignId, CharacterId, TurnId};
use world::messages::{service::answerer, visible::VisibleMessage};

/// The attempts at an answer, one of which is chosen.
pub(crate) struct Attempts {
    /// The one before and the one after the chosen attempt.
    pub(crate) before: Option<Uuid>,
    pub(crate) after: Option<Uuid>,
    /// Which one is chosen, from 1, and how many there are.
    pub(crate) number: usize,
    pub(crate) count: usize,
    /// Whether it is the last answer of its conversation. Only that one can be tried again.
    pub(crate) is_last: bool,
}

/// The attempts at answers, by the turn that is chosen.
#[derive(Default)]
pub(crate) struct AllAttempts(HashMap<Uuid, Attempts>);

impl AllAttempts {
    /// Those at the answers among these messages: to one player, or to all. One statement, or none without answers.
    ///
    /// # Errors
    /// Database errors.
    pub(crate) async fn read(tx: &TenantTx, player: Option<CharacterId>, messages: &[VisibleMessage]) -> Result<Self> {
        let turns: Vec<TurnId> =
            messages.iter().filter(|m| m.author == "ai").filter_map(|m| m.turn_id).map(TurnId).collect();
        if turns.is_empty() {
            return Ok(Self::default());
        }
        let all = again::attempts_at(tx, player, &turns).await?.into_iter().map(|found| {
            let at = found.all.iter().position(|id| *id == found.turn).unwrap_or(0);
            let near = |at: Option<usize>| at.and_then(|at| found.all.get(at)).copied();
            let (before, after) = (near(at.checked_sub(1)), near(Some(at + 1)));
            let count = found.all.len().max(1);
            (found.turn, Attempts { before, after, number: at + 1, count, is_last: found.is_last })
        });
        Ok(Self(all.collect()))
    }

    /// The attempts at the answer that a message holds.
    pub(crate) fn of(&self, message: &VisibleMessage) -> Option<&Attempts> {
        self.0.get(&message.turn_id?).filter(|_| message.author == "ai" && message.talk.is_some())
    }
}

/// Starts another attempt at an answer, or lets it go on. `table` is the path of the table that shows it.
///
/// # Errors
/// `conflict` with what stands in the way; why the turn did not begin.
pub(crate) async fn follow(
    app: &web::Data<Ai>,
    caller: &Caller,
    (campaign, table): (CampaignId, &str),
    turn: TurnId,
    next: Next,
) -> Result<Pending<'static>> {
    // Read first, because another attempt sets the answer aside.
    let npc = {
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        answerer(&tx, campaign, turn).await?.unwrap_or_default()
    };
    let turn = again::start(app, caller, Following { campaign: campaign.0.to_string(), turn: turn.0, next }).await?;
    Ok(Pending::of(table, TurnId(turn), npc))
}
