//! The AI is paused, for a campaign or for some of its NPCs and owners: the campaign's setting `ai_paused`. Whom it concerns does not answer, unless a
//! user of the editor asks, and reactions and prayers wait. `all_ai_paused` and `ai_paused_alone` in `sql/world.sql` say the same, for statements that read the campaign anyway.

use std::fmt::Display;

use entity::{CampaignId, shapes::Extensions};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::caller::Caller;

/// The name of the setting.
pub const AI_PAUSED: &str = "ai_paused";
/// SQL for whether the AI of the whole campaign `c` is paused.
pub const ALL_PAUSED: &str = "all_ai_paused(c.settings)";

/// Whose AI is paused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AiPaused {
    /// Whether everybody's is.
    pub all: bool,
    /// NPCs and owners whose AI is paused, by id or slug.
    #[schema(max_items = 500)]
    pub entities: Vec<String>,
}

impl AiPaused {
    /// What a campaign's settings say; nobody, if the stored setting does not fit.
    #[must_use]
    pub fn of(settings: &Extensions) -> Self {
        let stored = settings.get(AI_PAUSED).cloned();
        stored.and_then(|stored| serde_json::from_value(stored).ok()).unwrap_or_default()
    }

    /// Whether it names this NPC or owner.
    #[must_use]
    pub fn names(&self, id: impl Display, slug: &str) -> bool {
        let id = id.to_string();
        self.entities.iter().any(|named| named == slug || named.eq_ignore_ascii_case(&id))
    }
}

/// The refusal of what somebody asked an AI for that is paused. `whose` is its name.
#[must_use]
pub fn refusal(whose: &str) -> Error {
    Error::new(Code::Paused, format!("{whose} does not answer for now: a game master has paused the AI."))
}

/// Whether a pause holds for a caller. A program acts for players, whatever its scopes are; a user of the editor is a game master.
#[must_use]
pub fn holds_for(caller: &Caller) -> bool {
    caller.user.is_none()
}

/// Whether the AI of a whole campaign is paused. One statement.
///
/// # Errors
/// Database errors.
pub async fn is_all(tx: &TenantTx, campaign: CampaignId) -> Result<bool> {
    let sql = format!("SELECT {ALL_PAUSED} FROM campaign c WHERE c.tenant_id = $1 AND c.id = $2");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign.0)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    Ok(row.map(|row| row.read_all::<(bool,)>()).transpose()?.is_some_and(|(is_all,)| is_all))
}

/// The names of the NPCs and owners whose AI is paused alone, at most 20. One statement.
///
/// # Errors
/// Database errors.
pub async fn names(tx: &TenantTx, campaign: CampaignId) -> Result<Vec<String>> {
    let rows = sqlx::query(
        "WITH p AS (SELECT ai_paused_alone(c.tenant_id, c.id, c.settings) AS entities FROM campaign c WHERE c.tenant_id = $1 AND c.id = $2) \
         SELECT n.name FROM p, npc n WHERE n.tenant_id = $1 AND n.id = ANY (p.entities) UNION ALL \
         SELECT o.name FROM p, owner o WHERE o.tenant_id = $1 AND o.id = ANY (p.entities) LIMIT 20",
    )
    .bind(tx.tenant())
    .bind(campaign.0)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(base::stored::each(&rows, |row| Ok(row.read_all::<(String,)>()?.0)))
}
