//! The scores of one NPC or owner: how much each character's actions have mattered to it since its last reaction to that character.

use serde::Serialize;
use sqlx::AssertSqlSafe;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use base::{
    error::{Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::http::paging::{Items, NoFilter, Page};
use entity::kind::EntityKind;

/// How much a character's actions have mattered to an NPC or owner since its last reaction to that character.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EntityScore {
    #[serde(skip)]
    pub id: Uuid,
    pub player_id: Uuid,
    pub player_slug: String,
    /// The sum of the scores since the last reaction.
    pub score: f64,
    /// The number of actions since the last reaction.
    pub actions_waiting: i32,
    /// When the last action was reported. Null if it is too old to be kept.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required = true)]
    pub last_action_at: Option<OffsetDateTime>,
    /// When the last reaction was queued. Null if there was none, or if it is too old to be kept.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required = true)]
    pub last_reaction_at: Option<OffsetDateTime>,
    /// Until then, the entity does not react to this character again.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required = true)]
    pub cooldown_until: Option<OffsetDateTime>,
}

/// A page of an entity's scores. Two statements.
///
/// # Errors
/// `not_found` for the entity; `bad_request` for an order that the list does not support.
pub async fn scores_of(
    tx: &TenantTx,
    campaign: Uuid,
    (kind, name): (EntityKind, &str),
    page: &Page<NoFilter>,
) -> Result<Items<EntityScore>> {
    let descending = page.by_creation()?;
    let found = crate::actors::find(tx, campaign, &[kind.as_str()], name).await?;
    let entity = found.ok_or_else(|| Error::not_found(kind.as_str()))?;
    let (sign, order) = if descending { ("<", "DESC") } else { (">", "ASC") };
    let sql = format!(
        "SELECT s.id, s.player_id, p.slug AS player_slug, s.score::float8 AS score, s.actions AS actions_waiting, s.cooldown_until, \
           (SELECT a.created_at FROM action_concern a WHERE a.tenant_id = $1 AND a.entity_id = $3 AND a.player_id = s.player_id \
            ORDER BY a.action_id DESC LIMIT 1) AS last_action_at, \
           (SELECT r.created_at FROM reaction r WHERE r.tenant_id = $1 AND r.campaign_id = $2 AND r.entity_id = $3 AND r.player_id = s.player_id \
              AND r.kind = 'significance' ORDER BY r.id DESC LIMIT 1) AS last_reaction_at \
         FROM significance s JOIN character p ON p.tenant_id = $1 AND p.id = s.player_id \
         WHERE s.tenant_id = $1 AND s.campaign_id = $2 AND s.entity_id = $3 AND ($4::uuid IS NULL OR s.id {sign} $4) ORDER BY s.id {order} LIMIT $5"
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(entity)
        .bind(page.after.as_ref().map(|after| after.id))
        .bind(i64::try_from(page.limit + 1).unwrap_or(201))
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let scores = stored::each(&rows, |row| {
        Ok(EntityScore {
            id: row.read("id")?,
            player_id: row.read("player_id")?,
            player_slug: row.read("player_slug")?,
            score: row.read("score")?,
            actions_waiting: row.read("actions_waiting")?,
            last_action_at: row.read("last_action_at")?,
            last_reaction_at: row.read("last_reaction_at")?,
            cooldown_until: row.read("cooldown_until")?,
        })
    });
    Ok(page.finish(scores, page.has_more(&rows), |score| (score.id, None)))
}
