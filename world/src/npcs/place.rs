//! Locations of NPCs and characters: as people read them, and compared, because they may be spelled in several ways.

use uuid::Uuid;

use base::error::Result;
use db::tenancy::TenantTx;
use edge::http::resource::scope_key;

/// The spellings of a location that NPCs use: `Old Crypt` and `old-crypt` are the same location. They are compared
/// here, not in SQL, so all locations are read first; an index contains them all. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn spellings(tx: &TenantTx, campaign: Uuid, place: &str) -> Result<Vec<String>> {
    let all = sqlx::query_scalar::<_, String>(
        "SELECT DISTINCT location FROM npc WHERE tenant_id = $1 AND campaign_id = $2 AND location IS NOT NULL",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(all.into_iter().filter(|location| is_same(location, place)).collect())
}

/// Whether two names mean the same location.
#[must_use]
pub fn is_same(a: &str, b: &str) -> bool {
    scope_key(a) == scope_key(b)
}

/// A location as people read it: a slug as words with capital first letters, anything else as it is written.
#[must_use]
pub fn location_name(location: &str) -> String {
    let is_slug = location.contains('_') || !location.contains(char::is_uppercase);
    if !is_slug {
        return location.to_owned();
    }
    let words = location.split(['_', '-', ' ']).filter(|word| !word.is_empty());
    words.map(capital).collect::<Vec<_>>().join(" ")
}

/// A text with a capital first letter.
#[must_use]
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
