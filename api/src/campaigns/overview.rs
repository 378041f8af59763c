//! What is in a campaign, counted.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::stored::Columns;
use crate::{auth::Caller, error::Result, tenancy::TenantTx};

/// Nobody needs to know more exactly, and counting takes longer the more there is.
pub const COUNTED_MAX: i64 = 10_000;

/// What is counted: its name for people, the editor's path, the table.
const KINDS: [(&str, &str, &str); 8] = [
    ("Lore", "lore", "lore"),
    ("Memories", "memories", "memory"),
    ("NPCs", "npcs", "npc"),
    ("Owners", "owners", "owner"),
    ("Characters", "characters", "character"),
    ("Scenes", "scenes", "scene"),
    ("Encounters", "encounters", "encounter"),
    ("Turns", "turns", "turn"),
];

/// How many rows of each kind the caller may see, [`COUNTED_MAX`] and one at most. One round trip.
///
/// # Errors
/// Those of the database.
pub async fn counts(tx: &TenantTx, caller: &Caller, campaign: Uuid) -> Result<Vec<(&'static str, &'static str, i64)>> {
    let counts = KINDS.map(|(.., table)| {
        let and = if table == "lore" && !caller.sees_secrets() { "AND NOT secret" } else { "" };
        format!(
            "(SELECT count(*) FROM (SELECT 1 FROM {table} WHERE tenant_id = $1 AND campaign_id = $2 {and} \
              LIMIT {COUNTED_MAX} + 1) AS c)"
        )
    });
    let row = sqlx::query(AssertSqlSafe(format!("SELECT ARRAY[{}] AS counts", counts.join(", "))))
        .bind(tx.tenant())
        .bind(campaign)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    let counts: Vec<i64> = row.read("counts")?;
    Ok(KINDS.iter().zip(counts).map(|((label, path, _), n)| (*label, *path, n)).collect())
}
