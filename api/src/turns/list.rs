//! Turns in a few words each, newest first: for the editor's list, which loads no record.

use serde::Deserialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    auth::Caller,
    error::{Code, Error, Result},
    http::paging::{self, Items, Page, pattern},
    stored::{self, Columns},
    tenancy::TenantTx,
};

/// A turn, as a list names it.
pub struct Summary {
    pub id: Uuid,
    pub kind: String,
    pub status: String,
    /// The NPC or owner that answered, if it is still there.
    pub entity: Option<String>,
    /// The character that was answered, if it is still there.
    pub player: Option<String>,
    /// What was said or done, its beginning; empty for a caller who does not see secrets.
    pub action: String,
    pub created_at: OffsetDateTime,
    pub is_undone: bool,
    /// Its changes are being taken back.
    pub is_reverting: bool,
}

/// What the list is narrowed to.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SummaryFilter {
    pub kind: Option<String>,
    pub status: Option<String>,
}

/// Actions are told to those who see a turn's trace, and looked for by them: among them is what a session's AI was told.
///
/// # Errors
/// `forbidden`.
pub fn may_look_for(caller: &Caller, q: Option<&str>) -> Result<()> {
    match q {
        Some(_) if !caller.sees_secrets() => {
            Err(Error::new(Code::Forbidden, "Looking for the words of turns asks for the scope `gm`. Leave out `q`."))
        }
        _ => Ok(()),
    }
}

/// A page of a campaign's turns.
///
/// # Errors
/// `bad_request` for another order than that of creation, `forbidden` as for [`may_look_for`].
pub async fn summaries(
    tx: &TenantTx,
    caller: &Caller,
    campaign: Uuid,
    page: &Page<SummaryFilter>,
) -> Result<Items<Summary>> {
    may_look_for(caller, page.q.as_deref())?;
    if !page.by_creation()? {
        return Err(paging::bad("sort", "is `-created_at` here"));
    }
    let rows = sqlx::query(
        "SELECT t.id, t.kind, t.status, CASE WHEN $8 THEN left(t.action, 200) END AS action, t.created_at, t.undone_at IS NOT NULL AS is_undone, \
                t.revert_as IS NOT NULL AS is_reverting, \
                coalesce(n.name, o.name) AS entity, c.name AS player \
         FROM turn t LEFT JOIN npc n ON n.tenant_id = $1 AND n.id = t.entity_id \
         LEFT JOIN owner o ON o.tenant_id = $1 AND o.id = t.entity_id \
         LEFT JOIN character c ON c.tenant_id = $1 AND c.id = t.player_id \
         WHERE t.tenant_id = $1 AND t.campaign_id = $2 AND ($3::uuid IS NULL OR t.id < $3) \
           AND ($4::text IS NULL OR t.status = $4) AND ($5::text IS NULL OR t.kind = $5) \
           AND ($6::text IS NULL OR t.action ILIKE $6) ORDER BY t.id DESC LIMIT $7",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(page.after.as_ref().map(|after| after.id))
    .bind(&page.filter.status)
    .bind(&page.filter.kind)
    .bind(page.q.as_deref().map(pattern))
    .bind(i64::try_from(page.limit + 1).unwrap_or(201))
    .bind(caller.sees_secrets())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let summary = |row: &sqlx::postgres::PgRow| {
        Ok(Summary {
            id: row.read("id")?,
            kind: row.read("kind")?,
            status: row.read("status")?,
            entity: row.read("entity")?,
            player: row.read("player")?,
            action: row.read::<Option<String>>("action")?.unwrap_or_default(),
            created_at: row.read("created_at")?,
            is_undone: row.read("is_undone")?,
            is_reverting: row.read("is_reverting")?,
        })
    };
    Ok(page.finish(stored::each(&rows, summary), page.has_more(&rows), |turn| (turn.id, None)))
}
