//! Counts what is in a campaign.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use base::error::Result;
use base::stored::Columns;
use db::tenancy::TenantTx;
use edge::caller::Caller;

/// Counting stops here. Nobody needs larger numbers exactly, and counting takes time.
pub const COUNTED_MAX: i64 = 10_000;

/// What is counted: the label, the path in the editor, the table.
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

/// How many rows of each kind the caller may see, up to [`COUNTED_MAX`] and one. Takes one round trip.
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
