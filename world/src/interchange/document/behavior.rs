//! How owners make NPCs behave, in a campaign document.

use entity::shapes::NpcBehavior;
use garde::Validate;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::interchange::names::Names;
use base::error::{Error, Result};
use edge::http::validate;

/// A behavior of an NPC. It names the player by slug.
#[derive(Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct BehaviorDocument {
    #[garde(length(chars, min = 1, max = 500))]
    text: String,
    /// The player towards whom the NPC behaves so. Without it, it behaves so towards everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    player: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

impl BehaviorDocument {
    /// The behavior as a file tells it. None if it is towards a player who no longer exists.
    #[must_use]
    pub fn told(behavior: &NpcBehavior, names: &Names) -> Option<Self> {
        let slug = |id: Uuid| names.of(id).map(ToOwned::to_owned);
        let player = match behavior.player_id {
            Some(id) => Some(slug(id)?),
            None => None,
        };
        Some(Self { text: behavior.text.clone(), player, created_at: behavior.created_at })
    }

    /// The behavior as it is stored.
    ///
    /// # Errors
    /// `validation_failed` for a text that is too long, or a player whom the campaign does not have.
    pub fn known(self, names: &Names) -> Result<NpcBehavior> {
        validate::check(&self)?;
        let id = |slug: String| {
            let unknown =
                || Error::invalid("/player", "unknown_reference", "There is no such character in this campaign.");
            names.character(&slug).ok_or_else(unknown)
        };
        let player_id = self.player.map(id).transpose()?;
        Ok(NpcBehavior { text: self.text, player_id, created_at: self.created_at })
    }
}
