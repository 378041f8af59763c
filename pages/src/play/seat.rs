//! A player at a table.

use askama::Template;
use entity::{CampaignId, character, session::Role};
use uuid::Uuid;

use super::visit::Visitor;
use crate::fight::Fight;
use ai::state::Ai;
use base::error::Result;
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::resource::{Ref, campaign_id},
};
use rules::sheet::Creature;
use world::{
    encounters::stand::Stand,
    fallen,
    messages::visible::{VisibleMessage, Which, visible_messages},
    playing::Reader,
    rules::sheet,
    table,
};

/// A player at a table, with access to what they may see.
pub(super) struct Seat {
    pub tx: TenantTx,
    pub caller: Caller,
    pub campaign: Uuid,
    pub player: Uuid,
}

impl Seat {
    /// Opens the table for a visitor.
    ///
    /// # Errors
    /// `not_found` for a campaign that is not theirs.
    pub async fn take(app: &Ai, visitor: &Visitor, campaign: &str) -> Result<Self> {
        let caller = visitor.caller.clone();
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        let campaign = campaign_id(&tx, &caller, &Ref::parse(campaign)).await?;
        Ok(Self { tx, caller, campaign, player: visitor.player })
    }

    /// The caller and the campaign. Ends the transaction, so that the next one does not wait for a second connection.
    #[must_use]
    pub fn leave(self) -> (Caller, Uuid) {
        (self.caller, self.campaign)
    }

    /// The messages that the player may see, oldest first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn messages(&self, which: Which<'_>) -> Result<Vec<VisibleMessage>> {
        visible_messages(&self.tx, self.campaign, Some(self.reader()), which).await
    }

    /// For whom messages are read.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader { role: Role::Player, player: Some(self.player) }
    }

    /// The player's character.
    ///
    /// # Errors
    /// `not_found` if it is gone.
    pub async fn character(&self) -> Result<character::Model> {
        table::character(&self.tx, self.player).await
    }

    /// The player's character, if it can talk and act.
    ///
    /// # Errors
    /// `not_found` if it is gone; `dead`, `unconscious`.
    pub async fn actor(&self) -> Result<character::Model> {
        let who = self.character().await?;
        fallen::check(&self.tx, &who).await?;
        Ok(who)
    }

    /// The player's character as the rules see it now, and whether that is in a fight: a fight changes the character only when it
    /// is committed. One statement, and another one in a fight.
    ///
    /// # Errors
    /// Database errors.
    pub async fn creature(&self, who: &character::Model) -> Result<(Creature, bool)> {
        let stand = Stand::of(&self.tx, self.campaign, self.player).await?;
        let own = stand.as_ref().and_then(|stand| stand.fight.now.participant(stand.own()));
        Ok(match own {
            Some(own) => ((*own.creature).clone(), true),
            None => (sheet::of_character(who.clone()), false),
        })
    }

    /// The current fights, newest first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn fights(&self, link: &str) -> Result<Fights> {
        let fights = table::fights(&self.tx, CampaignId(self.campaign), &self.caller).await?;
        let root = format!("/play/{link}/fights");
        let fights = fights.iter().map(|fight| Fight::of(fight, &root, true).live()).collect();
        Ok(Fights { fights, token: String::new() })
    }
}

/// Current fights.
#[derive(Template)]
#[template(path = "fights.html")]
pub(super) struct Fights {
    fights: Vec<Fight>,
    /// The form's token; empty where forms need none.
    token: String,
}

impl Fights {
    /// Whether it is the player's turn in one of them.
    pub(super) fn are_mine(&self) -> bool {
        self.fights.iter().any(|fight| fight.is_readers_turn)
    }
}
