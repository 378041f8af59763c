//! Writes and finds memories, for the API and the AI tools.

use edge::auth::player;
use serde::Deserialize;
use sqlx::AssertSqlSafe;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{MemoryView, TEXT_CHARS_MAX, subject::Subject};
use base::{
    error::{Error, Result},
    search,
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::http::etag::Expected;

/// A memory with the slugs of its holder and player.
pub const SELECT: &str = "SELECT m.*, c.slug AS player_slug, a.slug AS holder_slug FROM memory m \
    LEFT JOIN character c ON c.tenant_id = m.tenant_id AND c.id = m.subject_id \
    LEFT JOIN actor_slug a ON a.tenant_id = m.tenant_id AND a.actor_id = m.holder_id";

/// A memory to write.
pub struct NewMemory<'a> {
    pub campaign: Uuid,
    /// `npc` or `owner`.
    pub holder_type: &'static str,
    pub holder: Uuid,
    pub player: Subject,
    pub text: &'a str,
    /// `personal`, `private`, `editor` or `import`.
    pub source: &'static str,
    pub author: Option<Uuid>,
    pub turn: Option<Uuid>,
}

/// Checks a memory's text and removes the spaces around it.
///
/// # Errors
/// `validation_failed` at `pointer` if nothing is left or it is too long.
pub fn text<'a>(text: &'a str, pointer: &str) -> Result<&'a str> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::invalid(pointer, "invalid_value", "must not be blank"));
    }
    if text.chars().count() > TEXT_CHARS_MAX {
        return Err(Error::invalid(pointer, "too_long", format!("must have at most {TEXT_CHARS_MAX} characters")));
    }
    Ok(text)
}

/// Writes one memory. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn insert(tx: &TenantTx, new: &NewMemory<'_>) -> Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query(
        "INSERT INTO memory (tenant_id, id, campaign_id, holder_type, holder_id, subject_id, text, source, author, turn_id, \
                             folded_text) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(new.campaign)
    .bind(new.holder_type)
    .bind(new.holder)
    .bind(new.player.id())
    .bind(new.text)
    .bind(new.source)
    .bind(new.author)
    .bind(new.turn)
    .bind(search::stored(new.text))
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(id)
}

/// Writes what an owner tells one NPC. This is a broadcast to a single NPC, and can be retracted like any other. One
/// statement.
///
/// # Errors
/// Those of the database.
pub async fn insert_told(tx: &TenantTx, new: &NewMemory<'_>) -> Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query(
        "INSERT INTO memory (tenant_id, id, campaign_id, holder_type, holder_id, subject_id, text, source, broadcast_id, author, turn_id, \
                             folded_text) VALUES ($1, $2, $3, $4, $5, $6, $7, 'broadcast', uuid7(), $8, $9, $10)",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(new.campaign)
    .bind(new.holder_type)
    .bind(new.holder)
    .bind(new.player.id())
    .bind(new.text)
    .bind(new.author)
    .bind(new.turn)
    .bind(search::stored(new.text))
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(id)
}

/// Writes one memory for each NPC that depends on the owner now. Takes one statement, so either all are written or
/// none.
///
/// # Errors
/// Those of the database.
pub async fn broadcast(tx: &TenantTx, owner: Uuid, new: &NewMemory<'_>) -> Result<(Uuid, Vec<Uuid>)> {
    let id = Uuid::now_v7();
    let rows = sqlx::query(
        "INSERT INTO memory (tenant_id, id, campaign_id, holder_type, holder_id, subject_id, text, source, broadcast_id, \
                             author, turn_id, folded_text) \
         SELECT $1, uuid7(), $2, 'npc', o.npc_id, $4, $5, 'broadcast', $6, $7, $8, $9 \
         FROM npc_owner o WHERE o.tenant_id = $1 AND o.owner_id = $3 ORDER BY o.npc_id RETURNING holder_id",
    )
    .bind(tx.tenant())
    .bind(new.campaign)
    .bind(owner)
    .bind(new.player.id())
    .bind(new.text)
    .bind(id)
    .bind(new.author)
    .bind(new.turn)
    .bind(search::stored(new.text))
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok((id, rows.iter().map(|row| row.read("holder_id")).collect::<Result<_>>()?))
}

/// Counting memories stops here. A larger number would not matter to anybody.
pub const COUNTED_MAX: u64 = 1000;

/// How many memories an actor has or is the subject of, up to [`COUNTED_MAX`] and one. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn of_actor(tx: &TenantTx, actor: Uuid) -> Result<u64> {
    let row = sqlx::query(
        "SELECT count(*) AS n FROM ( \
             (SELECT FROM memory WHERE tenant_id = $1 AND holder_id = $2 LIMIT $3) UNION ALL \
             (SELECT FROM memory WHERE tenant_id = $1 AND subject_id = $2 AND holder_id <> $2 LIMIT $3) LIMIT $3) counted",
    )
    .bind(tx.tenant())
    .bind(actor)
    .bind(i64::try_from(COUNTED_MAX + 1).unwrap_or(i64::MAX))
    .fetch_one(&mut *tx.connection().await)
    .await?;
    Ok(row.read::<i64>("n")?.unsigned_abs())
}

/// How many NPCs a broadcast of this owner would reach. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn dependents(tx: &TenantTx, owner: Uuid) -> Result<u64> {
    let row = sqlx::query("SELECT count(*) AS n FROM npc_owner WHERE tenant_id = $1 AND owner_id = $2")
        .bind(tx.tenant())
        .bind(owner)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    Ok(row.read::<i64>("n")?.unsigned_abs())
}

/// Deletes every memory of a broadcast.
///
/// # Errors
/// `not_found` if it does not exist, or belongs to another campaign.
pub async fn retract(tx: &TenantTx, campaign: Uuid, broadcast: Uuid) -> Result<u64> {
    let done = sqlx::query("DELETE FROM memory WHERE tenant_id = $1 AND campaign_id = $2 AND broadcast_id = $3")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(broadcast)
        .execute(&mut *tx.connection().await)
        .await?;
    if done.rows_affected() == 0 { Err(Error::not_found("broadcast")) } else { Ok(done.rows_affected()) }
}

/// The text of a broadcast, and how many NPCs remember it.
///
/// # Errors
/// `not_found`.
pub async fn broadcast_told(tx: &TenantTx, campaign: Uuid, broadcast: Uuid) -> Result<(String, i64)> {
    let row = sqlx::query(
        "SELECT (array_agg(text ORDER BY version, id))[1] AS text, count(*) AS many FROM memory \
         WHERE tenant_id = $1 AND campaign_id = $2 AND broadcast_id = $3",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(broadcast)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    let text: Option<String> = row.read("text")?;
    Ok((text.ok_or_else(|| Error::not_found("broadcast"))?, row.read("many")?))
}

/// Finds a memory. With `player`, only if it is about that character.
///
/// # Errors
/// `not_found`.
pub async fn find(tx: &TenantTx, campaign: Uuid, id: Uuid, player: Option<Uuid>) -> Result<MemoryView> {
    let sql = format!(
        "{SELECT} WHERE m.tenant_id = $1 AND m.campaign_id = $2 AND m.id = $3 AND ($4::uuid IS NULL OR m.subject_id = $4)"
    );
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(id)
        .bind(player)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    MemoryView::of(&row.ok_or_else(|| Error::not_found("memory"))?)
}

/// Those of the given memories that still exist. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn existing(tx: &TenantTx, campaign: Uuid, ids: &[Uuid]) -> Result<Vec<Uuid>> {
    let rows = sqlx::query("SELECT id FROM memory WHERE tenant_id = $1 AND campaign_id = $2 AND id = ANY ($3)")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(ids)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    rows.iter().map(|row| row.read("id")).collect()
}

/// Locks a memory and checks its version. Takes two statements.
///
/// # Errors
/// `not_found`, `precondition_failed`.
pub async fn hold(tx: &TenantTx, campaign: Uuid, id: Uuid, expected: &Expected) -> Result<MemoryView> {
    sqlx::query("SELECT 1 FROM memory WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3 FOR NO KEY UPDATE")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(id)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    let view = find(tx, campaign, id, None).await?;
    expected.check(view.version)?;
    Ok(view)
}

/// Replaces the text of a memory that the transaction has locked. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn rewrite(tx: &TenantTx, id: Uuid, text: &str) -> Result<()> {
    sqlx::query("UPDATE memory SET text = $3, folded_text = $4 WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(id)
        .bind(text)
        .bind(search::stored(text))
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}

/// Deletes a memory that the transaction has locked. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn remove(tx: &TenantTx, id: Uuid) -> Result<()> {
    sqlx::query("DELETE FROM memory WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(id)
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}

/// Gives a memory another holder, another subject, or both. A copy of a broadcast becomes a memory of its own. Takes
/// one statement.
///
/// # Errors
/// Those of the database.
pub async fn relocate(tx: &TenantTx, id: Uuid, holder: Option<(&str, Uuid)>, player: Option<Uuid>) -> Result<()> {
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

/// The kind and id of an NPC or owner, by id or slug. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn holder(tx: &TenantTx, campaign: Uuid, name: &str) -> Result<Option<(String, Uuid)>> {
    let row = sqlx::query(
        "SELECT kind, actor_id FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 AND kind IN ('npc', 'owner') \
         AND (actor_id = $3 OR slug = $4)",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(Uuid::try_parse(name).ok())
    .bind(name)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map(|row| Ok((row.read("kind")?, row.read("actor_id")?))).transpose()
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
        Some(name) => Some(holder(tx, campaign, name).await?.ok_or_else(|| {
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
    find(tx, campaign, current.id, None).await
}
