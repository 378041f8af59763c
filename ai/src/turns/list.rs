//! Short descriptions of turns, newest first, for the editor's list. Does not load records.

use serde::Deserialize;
use sqlx::AssertSqlSafe;
use time::OffsetDateTime;
use uuid::Uuid;

use base::{
    error::{Code, Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::paging::{self, Items, Page, contains, pattern},
};

/// A turn in a list.
pub struct Summary {
    pub id: Uuid,
    /// Its place in the list.
    seq: i64,
    pub kind: String,
    pub status: String,
    /// The name of the NPC or owner that answered, if it still exists.
    pub entity: Option<String>,
    /// The name of the character, if it still exists.
    pub player: Option<String>,
    /// The beginning of the action. Empty for a caller who does not see secrets.
    pub action: String,
    pub created_at: OffsetDateTime,
    pub is_undone: bool,
    /// Whether its changes are being undone.
    pub is_reverting: bool,
}

/// The filters of the list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SummaryFilter {
    pub kind: Option<String>,
    pub status: Option<String>,
}

/// Only those who see a turn's trace may read and search actions, because the instructions to a session's AI are among them.
///
/// # Errors
/// `forbidden`.
pub fn may_look_for(caller: &Caller, q: Option<&str>) -> Result<()> {
    match q {
        Some(_) if !caller.sees_secrets() => {
            Err(Error::new(Code::Forbidden, "Searching turns requires the scope `gm`. Leave out `q`."))
        }
        _ => Ok(()),
    }
}

/// The columns of [`summaries`], in its order.
type Row = (Uuid, i64, String, String, Option<String>, OffsetDateTime, bool, bool, Option<String>, Option<String>);

/// A page of a campaign's turns.
///
/// # Errors
/// `bad_request` for an order other than that of creation, `forbidden` as for [`may_look_for`].
pub async fn summaries(
    tx: &TenantTx,
    caller: &Caller,
    campaign: Uuid,
    page: &Page<SummaryFilter>,
) -> Result<Items<Summary>> {
    may_look_for(caller, page.q.as_deref())?;
    if !page.by_creation()? {
        return Err(paging::bad("sort", "must be `-created_at` here"));
    }
    let sql = format!(
        "SELECT t.id, t.seq, t.kind, t.status, CASE WHEN $8 THEN left(t.action, 200) END AS action, t.created_at, t.undone_at IS NOT NULL AS is_undone, \
                t.revert_as IS NOT NULL AS is_reverting, \
                coalesce(n.name, o.name) AS entity, c.name AS player \
         FROM turn t LEFT JOIN npc n ON n.tenant_id = $1 AND n.id = t.entity_id \
         LEFT JOIN owner o ON o.tenant_id = $1 AND o.id = t.entity_id \
         LEFT JOIN character c ON c.tenant_id = $1 AND c.id = t.player_id \
         WHERE t.tenant_id = $1 AND t.campaign_id = $2 AND ($3::bigint IS NULL OR t.seq < $3) \
           AND ($4::text IS NULL OR t.status = $4) AND ($5::text IS NULL OR t.kind = $5) \
           AND {} ORDER BY t.seq DESC LIMIT $7",
        contains(6, &["t.action"])
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(page.after_number()?)
        .bind(&page.filter.status)
        .bind(&page.filter.kind)
        .bind(page.q.as_deref().map(pattern))
        .bind(i64::try_from(page.limit + 1).unwrap_or(201))
        .bind(caller.sees_secrets())
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let summary = |row: &sqlx::postgres::PgRow| {
        let (id, seq, kind, status, action, created_at, is_undone, is_reverting, entity, player) =
            row.read_all::<Row>()?;
        let action = action.unwrap_or_default();
        Ok(Summary { id, seq, kind, status, entity, player, action, created_at, is_undone, is_reverting })
    };
    Ok(page.finish(stored::each(&rows, summary), page.has_more(&rows), |turn| (turn.id, Some(turn.seq.to_string()))))
}
