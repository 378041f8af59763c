//! Events of the world: lore entries that an owner writes about its own scope, tagged [`TAG`]. If an event happens
//! again, its entry is rewritten, unless a worldbuilder has locked the entry.

use entity::{
    lore::Scope,
    owner::{self, Aspect},
};
use serde_json::json;
use uuid::Uuid;

use super::{LoreEntries, LoreInput};
use base::{
    error::{Code, Error, Result},
    fold::fold,
    search,
    stored::Columns,
    tokens,
};
use db::tenancy::TenantTx;
use edge::http::{read, resource};

/// The tag of events.
pub const TAG: &str = "world-event";

/// An event as it is written.
#[derive(Debug)]
pub struct Written {
    pub lore: Uuid,
    pub slug: String,
    /// Whether the event happened before and its entry was rewritten.
    pub is_rewritten: bool,
}

/// The entry of the event with this title in the owner's scope, if there is one. Its row stays locked. One statement.
///
/// # Errors
/// `locked` if AI tools must not change it; database errors.
pub async fn before(tx: &TenantTx, owner: &owner::Model, title: &str) -> Result<Option<(Uuid, String)>> {
    let row = sqlx::query(
        "SELECT id, slug, ai_lock FROM lore WHERE tenant_id = $1 AND campaign_id = $2 AND scope = $3 AND associated_key = $4 \
         AND title_key(title, folded_title) = link_key($5) AND tags @> $6 ORDER BY ai_lock DESC, id LIMIT 1 FOR UPDATE",
    )
    .bind(tx.tenant())
    .bind(owner.campaign_id.0)
    .bind(scope(owner.monitored_aspect).1)
    .bind(&owner.associated_key)
    .bind(fold(title))
    .bind(json!([TAG]))
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let slug: String = row.read("slug")?;
    if row.read::<bool>("ai_lock")? {
        return Err(Error::new(Code::Locked, format!("The worldbuilder has locked the lore entry `{slug}`.")));
    }
    Ok(Some((row.read("id")?, slug)))
}

/// Writes an event: rewrites its earlier entry, or creates a new one. An entry that a worldbuilder has switched off stays off. At most
/// two statements.
///
/// # Errors
/// `slug_taken`; database errors.
pub async fn write(
    tx: &TenantTx,
    owner: &owner::Model,
    before: Option<(Uuid, String)>,
    title: &str,
    content: &str,
) -> Result<Written> {
    let tokens = i32::try_from(tokens::count_apart(content.to_owned()).await?).unwrap_or(i32::MAX);
    if let Some((id, slug)) = before {
        sqlx::query(
            "UPDATE lore SET content = $3, folded_content = $5, tokens = $4, activation = 'always' WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tx.tenant())
        .bind(id)
        .bind(content)
        .bind(tokens)
        .bind(search::stored(content))
        .execute(&mut *tx.connection().await)
        .await?;
        return Ok(Written { lore: id, slug, is_rewritten: true });
    }
    let slug = resource::free_slug_in::<LoreEntries>(tx, owner.campaign_id.0, title).await?;
    let input: LoreInput = read::typed(json!({
        "slug": slug, "title": title, "scope": scope(owner.monitored_aspect).0, "associated_id": owner.associated_id,
        "content": content, "tags": [TAG],
    }))?;
    let id = Uuid::now_v7();
    let mut columns = resource::plain_columns(&input)?;
    columns.insert("associated_key".to_owned(), owner.associated_key.as_str().into());
    columns.insert("tokens".to_owned(), tokens.into());
    resource::insert_columns::<LoreEntries>(tx, owner.campaign_id.0, id, columns).await?;
    Ok(Written { lore: id, slug, is_rewritten: false })
}

/// The lore scope that belongs to an aspect, and the scope's name.
fn scope(aspect: Aspect) -> (Scope, &'static str) {
    match aspect {
        Aspect::Location => (Scope::Zone, "zone"),
        Aspect::Race => (Scope::Race, "race"),
        Aspect::Profession => (Scope::Profession, "profession"),
        Aspect::Faction => (Scope::Faction, "faction"),
    }
}
