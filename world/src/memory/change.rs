//! Changes memories: their words, when they happened, whether they are pinned, and whose they are.

use edge::{
    auth::player,
    http::{bounds, patch, validate},
};
use entity::shapes::Extensions;
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{MemoryView, service};
use base::{
    error::{Error, Result},
    search,
};
use db::tenancy::TenantTx;

/// The members of a memory that can be changed.
#[derive(Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct MemoryChange {
    #[schema(min_length = 1, max_length = 2000)]
    text: String,
    /// When it happened in the world, such as `second day of the fair`. A blank text is null.
    #[serde(default)]
    #[schema(max_length = 120)]
    game_time: Option<String>,
    /// Whether it gets room in prompts first, up to a quarter of the budget.
    #[serde(default)]
    pinned: bool,
    #[serde(default)]
    #[schema(value_type = Object)]
    #[garde(custom(validate::extensions))]
    extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    external_ref: Option<String>,
}

/// The members of a memory that a merge patch cannot change.
const READ_ONLY: [&str; 12] = [
    "id",
    "campaign_id",
    "holder",
    "player_id",
    "player_slug",
    "source",
    "broadcast_id",
    "author",
    "turn_id",
    "version",
    "created_at",
    "updated_at",
];

/// Applies a merge patch to a memory that the transaction has locked. Takes two statements.
///
/// # Errors
/// `validation_failed`.
pub async fn change(tx: &TenantTx, current: &MemoryView, merge_patch: Value) -> Result<MemoryView> {
    let shown = serde_json::to_value(current).map_err(Error::internal)?;
    let change: MemoryChange = bounds::read(patch::apply(shown, merge_patch, &READ_ONLY)?)?;
    validate::check(&change)?;
    let text = service::text(&change.text, "/text")?;
    let game_time = service::game_time(change.game_time.as_deref(), "/game_time")?;
    sqlx::query(
        "UPDATE memory SET text = $3, folded_text = $4, game_time = $5, pinned = $6, extensions = $7, external_ref = $8 \
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(current.id)
    .bind(text)
    .bind(search::stored(text))
    .bind(game_time)
    .bind(change.pinned)
    .bind(json!(change.extensions))
    .bind(&change.external_ref)
    .execute(&mut *tx.connection().await)
    .await?;
    service::find(tx, current.campaign_id, current.id, None).await
}

/// Gives a memory another holder, another subject, or both. A copy of a broadcast becomes a memory of its own. Takes
/// one statement.
///
/// # Errors
/// Those of the database.
async fn relocate(tx: &TenantTx, id: Uuid, holder: Option<(&str, Uuid)>, player: Option<Uuid>) -> Result<()> {
    sqlx::query(
        "UPDATE memory SET holder_type = coalesce($3, holder_type), holder_id = coalesce($4, holder_id), \
             subject_id = coalesce($5, subject_id), broadcast_id = NULL, \
             source = CASE WHEN source = 'broadcast' OR coalesce($3, holder_type) <> holder_type THEN 'editor' ELSE source END \
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(holder.map(|(kind, _)| kind))
    .bind(holder.map(|(_, id)| id))
    .bind(player)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(())
}

/// The new holder and subject of a memory.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MoveInput {
    /// The NPC or owner that gets the memory, by id or slug.
    pub holder_id: Option<String>,
    /// The player character that the memory is about from then on, by id or slug.
    pub player_id: Option<String>,
}

/// Moves a memory that the transaction has locked.
///
/// # Errors
/// `validation_failed` for an unknown name, or if neither is given.
pub async fn move_in(tx: &TenantTx, current: &MemoryView, to: &MoveInput) -> Result<MemoryView> {
    let campaign = current.campaign_id;
    let holder = match &to.holder_id {
        None => None,
        Some(name) => Some(service::holder(tx, campaign, name).await?.ok_or_else(|| {
            Error::invalid("/holder_id", "unknown_reference", "There is no such NPC or owner in this campaign.")
        })?),
    };
    let player = match &to.player_id {
        None => None,
        Some(name) => Some(player::id(tx, campaign, name).await?),
    };
    if holder.is_none() && player.is_none() {
        return Err(Error::invalid("/holder_id", "required", "Give `holder_id`, `player_id` or both."));
    }
    relocate(tx, current.id, holder.as_ref().map(|(kind, id)| (kind.as_str(), *id)), player).await?;
    service::find(tx, campaign, current.id, None).await
}
