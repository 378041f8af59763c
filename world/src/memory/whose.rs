//! Whose memories are meant, by the names in a request.

use edge::{auth::player, caller::Caller};
use uuid::Uuid;

use crate::actors;
use base::error::Result;
use db::tenancy::TenantTx;

/// Whose memories are meant, and about whom. None stands for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whose {
    pub holder: Option<Uuid>,
    pub player: Option<Uuid>,
}

impl Whose {
    /// Those of a holder about a player, by ids or slugs. A player's token means those about its own character. None if a name is unknown,
    /// or stands for somebody whose memories the caller may not read. Takes one statement for each name.
    ///
    /// # Errors
    /// Database errors.
    pub async fn named(
        tx: &TenantTx,
        caller: &Caller,
        campaign: Uuid,
        (holder, player): (Option<&str>, Option<&str>),
    ) -> Result<Option<Self>> {
        let mut whose = Self { holder: None, player: caller.player };
        if let Some(name) = holder {
            whose.holder = actors::find(tx, campaign, &["npc", "owner"], name).await?;
            if whose.holder.is_none() {
                return Ok(None);
            }
        }
        if let Some(name) = player {
            let named = player::find(tx, campaign, name).await?;
            if named.is_none() || caller.player.is_some_and(|own| named != Some(own)) {
                return Ok(None);
            }
            whose.player = named;
        }
        Ok(Some(whose))
    }
}
