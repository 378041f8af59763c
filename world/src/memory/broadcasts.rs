//! Broadcasts: each as a single item, with everyone who heard it.

use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::whose::Whose;
use base::{
    error::Result,
    search::Query,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        budget,
        paging::{Items, Page},
    },
};

/// The largest number of NPCs that are listed for a broadcast.
const AUDIENCE_MAX: i64 = 200;

/// An NPC that heard a broadcast, and its memory of it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Hearer {
    pub id: Uuid,
    pub slug: Option<String>,
    pub memory_id: Uuid,
}

/// A broadcast: an owner's message, which every NPC that depends on the owner remembers.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BroadcastView {
    /// The broadcast's id. `DELETE …/broadcasts/{id}` retracts it.
    pub id: Uuid,
    /// The place of its first memory in the order of writing.
    #[serde(skip)]
    pub seq: i64,
    /// The player character it is about.
    pub player_id: Uuid,
    pub player_slug: Option<String>,
    /// The text as it was first written.
    pub text: String,
    /// Whether somebody has edited an NPC's copy of the memory since.
    pub edited: bool,
    /// The owner whose turn sent it. Null if no turn sent it, or the turn's record has been deleted.
    pub owner_id: Option<Uuid>,
    pub owner_slug: Option<String>,
    /// The API key or user that wrote it, if a person did.
    pub author: Option<Uuid>,
    pub turn_id: Option<Uuid>,
    /// The first 200 NPCs that still have the memory.
    pub audience: Vec<Hearer>,
    pub audience_total: i64,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The filters of the list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct BroadcastFilter {
    /// Only broadcasts about this player character, by id or slug.
    pub player_id: Option<String>,
    pub turn_id: Option<Uuid>,
}

/// The position of a broadcast in the list.
pub(super) fn key(broadcast: &BroadcastView) -> (Uuid, Option<String>) {
    (broadcast.id, Some(broadcast.seq.to_string()))
}

/// A page of the list. Takes two statements, or three if a player is named.
///
/// # Errors
/// `bad_request` for any other order than by creation.
pub async fn page_of(
    tx: &TenantTx,
    caller: &Caller,
    campaign: Uuid,
    page: &Page<BroadcastFilter>,
) -> Result<Items<BroadcastView>> {
    let (sign, order) = if page.by_creation()? { ("<", "DESC") } else { (">", "ASC") };
    let names = (None, page.filter.player_id.as_deref());
    let Some(Whose { player, .. }) = Whose::named(tx, caller, campaign, names).await? else {
        return Ok(Items { items: Vec::new(), next_cursor: None });
    };
    let query = page.q.as_deref().map(Query::of);
    let after = page.after_number()?;
    // First the ids of the page, in the order of an index: those of memories that are the first of their broadcasts. Then the details. A
    // search is made once, before. If the first memory of the cursor's broadcast is deleted, the next one comes after the cursor.
    let sql = format!(
        "WITH found AS MATERIALIZED (SELECT e.broadcast_id FROM memory e \
             WHERE $6::text IS NOT NULL AND e.tenant_id = $1 AND e.broadcast_id IS NOT NULL \
               AND ($5::timestamptz IS NULL OR e.updated_at >= $5) \
               AND e.id IN (SELECT search_memory($2, $6, $9, $10, 10000))), \
         ids AS (SELECT m.broadcast_id AS id, m.seq FROM memory m \
             WHERE m.tenant_id = $1 AND m.campaign_id = $2 AND m.broadcast_id IS NOT NULL \
               AND ($3::uuid IS NULL OR m.subject_id = $3) AND ($4::uuid IS NULL OR m.turn_id = $4) \
               AND ($7::bigint IS NULL OR m.seq {sign} $7 AND m.broadcast_id <> $11::uuid) \
               AND NOT EXISTS (SELECT FROM memory e WHERE e.tenant_id = $1 AND e.broadcast_id = m.broadcast_id AND e.seq < m.seq) \
               AND ($6 IS NULL OR m.broadcast_id IN (SELECT broadcast_id FROM found)) \
               AND ($6 IS NOT NULL OR $5 IS NULL OR EXISTS (SELECT FROM memory e \
                   WHERE e.tenant_id = $1 AND e.broadcast_id = m.broadcast_id AND e.updated_at >= $5)) \
             ORDER BY m.seq {order} LIMIT $8) \
         SELECT i.id, i.seq, f.subject_id, c.slug AS player_slug, f.text, f.author, f.turn_id, f.created_at, \
                t.entity_id AS owner_id, o.slug AS owner_slug, h.total, h.edited, h.audience \
         FROM ids i \
         CROSS JOIN LATERAL (SELECT * FROM memory m WHERE m.tenant_id = $1 AND m.campaign_id = $2 AND m.broadcast_id = i.id \
             ORDER BY m.version, m.seq LIMIT 1) f \
         CROSS JOIN LATERAL (SELECT count(*) AS total, count(DISTINCT m.text) > 1 OR bool_or(m.version > 1) AS edited, \
             coalesce(jsonb_agg(jsonb_build_object('id', m.holder_id, 'slug', m.slug, 'memory_id', m.id) ORDER BY m.slug) \
                 FILTER (WHERE m.n <= {AUDIENCE_MAX}), '[]') AS audience \
             FROM (SELECT m.*, a.slug, row_number() OVER (ORDER BY a.slug) AS n FROM memory m \
                   LEFT JOIN actor_slug a ON a.tenant_id = m.tenant_id AND a.actor_id = m.holder_id \
                   WHERE m.tenant_id = $1 AND m.campaign_id = $2 AND m.broadcast_id = i.id) m) h \
         LEFT JOIN character c ON c.tenant_id = $1 AND c.id = f.subject_id \
         LEFT JOIN turn t ON t.tenant_id = $1 AND t.id = f.turn_id AND t.kind = 'owner' \
         LEFT JOIN actor_slug o ON o.tenant_id = $1 AND o.actor_id = t.entity_id \
         ORDER BY i.seq {order}"
    );
    let rows = sqlx::query(AssertSqlSafe(budget::within(&sql, ["text", "audience"])))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(player)
        .bind(page.filter.turn_id)
        .bind(page.updated_since)
        .bind(query.as_ref().map(|query| &query.words))
        .bind(after)
        .bind(i64::try_from(page.limit + 1).unwrap_or(201))
        .bind(query.as_ref().map(|query| &query.contains))
        .bind(query.as_ref().map(|query| &query.lacks))
        .bind(page.after.as_ref().map(|after| after.id))
        .fetch_all(&mut *tx.connection().await)
        .await?;
    Ok(page.finish(stored::each(&rows, view), page.has_more(&rows), key))
}

fn view(row: &PgRow) -> Result<BroadcastView> {
    Ok(BroadcastView {
        id: row.read("id")?,
        seq: row.read("seq")?,
        player_id: row.read("subject_id")?,
        player_slug: row.read("player_slug")?,
        text: row.read("text")?,
        edited: row.read::<Option<bool>>("edited")?.unwrap_or_default(),
        owner_id: row.read("owner_id")?,
        owner_slug: row.read("owner_slug")?,
        author: row.read("author")?,
        turn_id: row.read("turn_id")?,
        audience: serde_json::from_value(row.read("audience")?).unwrap_or_default(),
        audience_total: row.read("total")?,
        created_at: row.read("created_at")?,
    })
}
