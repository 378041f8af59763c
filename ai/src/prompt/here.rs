//! Which creatures and items are here, so that lore about them enters a turn: the NPCs at the location of the player or
//! the entity, and what the two carry. Names are compared like the names of lore scopes.
//!
//! The server reads this only if the campaign has such lore. Two version heads cover it: `creatures` for what NPCs are
//! and where, `pack` for what somebody carries.

use std::collections::BTreeSet;

use serde_json::Value;
use uuid::Uuid;

use base::{error::Result, stored::Columns};
use db::tenancy::TenantTx;
use edge::http::resource::scope_key;

/// The most NPCs that a turn looks at.
const NPCS_MAX: i64 = 500;
/// The most locations of a campaign that a turn compares.
const PLACES_MAX: i64 = 10_000;
/// The most items of one inventory that a turn looks at.
const ITEMS_MAX: usize = 500;
/// The members of an item that say what it is.
const ITEM_NAMES: [&str; 9] = ["id", "item_id", "item", "slug", "name", "ID", "ItemID", "Item", "Name"];

/// The creatures and items that are here, by the keys that lore uses for them.
#[derive(Debug, Default)]
pub struct Here {
    pub creatures: BTreeSet<String>,
    pub items: BTreeSet<String>,
}

impl Here {
    /// Whether the subject of a lore entry with this scope is here.
    #[must_use]
    pub fn has(&self, scope: &str, key: &str) -> bool {
        match scope {
            "creature" => self.creatures.contains(key),
            "item" => self.items.contains(key),
            _ => false,
        }
    }
}

/// The keys of the creatures at these locations, without those of the entity that speaks. Two statements, or none
/// without a location.
///
/// # Errors
/// Database errors.
pub async fn creatures(tx: &TenantTx, campaign: Uuid, places: &[&str], speaker: Uuid) -> Result<BTreeSet<String>> {
    let wanted: BTreeSet<String> = places.iter().filter(|p| !p.trim().is_empty()).map(|p| scope_key(p)).collect();
    if wanted.is_empty() {
        return Ok(BTreeSet::new());
    }
    // A location may be spelled in several ways. The spellings are compared here, because SQL cannot make slugs.
    let spelled = sqlx::query_scalar::<_, String>(
        "SELECT DISTINCT location FROM npc WHERE tenant_id = $1 AND campaign_id = $2 AND location IS NOT NULL LIMIT $3",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(PLACES_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let spelled: Vec<String> = spelled.into_iter().filter(|place| wanted.contains(&scope_key(place))).collect();
    if spelled.is_empty() {
        return Ok(BTreeSet::new());
    }
    let rows = sqlx::query(
        "SELECT slug, name, race, stats ->> 'creature_type' AS creature_type FROM npc \
         WHERE tenant_id = $1 AND campaign_id = $2 AND location = ANY ($3) AND id <> $5 ORDER BY id LIMIT $4",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(spelled)
    .bind(NPCS_MAX)
    .bind(speaker)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut keys = BTreeSet::new();
    for row in &rows {
        keys.extend([scope_key(row.read("slug")?), scope_key(row.read("name")?)]);
        let more = [row.read::<Option<&str>>("race")?, row.read::<Option<&str>>("creature_type")?];
        keys.extend(more.into_iter().flatten().filter(|text| !text.trim().is_empty()).map(scope_key));
    }
    Ok(keys)
}

/// The keys of the items that a character or an entity carries. One statement.
///
/// # Errors
/// Database errors.
pub async fn items(tx: &TenantTx, player: Uuid, entity: Uuid) -> Result<BTreeSet<String>> {
    let rows = sqlx::query(
        "SELECT inventory FROM character WHERE tenant_id = $1 AND id = $2 \
         UNION ALL SELECT inventory FROM npc WHERE tenant_id = $1 AND id = $3",
    )
    .bind(tx.tenant())
    .bind(player)
    .bind(entity)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut keys = BTreeSet::new();
    for row in &rows {
        let inventory: Value = row.read("inventory")?;
        for item in inventory.as_array().into_iter().flatten().take(ITEMS_MAX) {
            let named = ITEM_NAMES.iter().filter_map(|name| item.get(name)?.as_str());
            keys.extend(named.chain(item.as_str()).filter(|text| !text.trim().is_empty()).map(scope_key));
        }
    }
    Ok(keys)
}
