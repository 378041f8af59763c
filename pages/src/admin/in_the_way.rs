//! Rows that prevent an action, with their labels and links to their pages.

use uuid::Uuid;

use super::InCampaign;
use base::error::{Error, Result};
use world::revisions;

/// A row that prevents an action.
pub(super) struct InTheWay {
    /// The kind of row, such as `memory`.
    pub(super) kind: String,
    pub(super) label: String,
    pub(super) path: Option<String>,
    pub(super) why: String,
}

/// The rows that an error's pointers name (`/memory/id`), including deleted rows. One statement.
///
/// # Errors
/// Database errors.
pub(super) async fn of(at: &InCampaign, error: &Error) -> Result<Vec<InTheWay>> {
    let named = |pointer: &str| {
        let (table, id) = pointer.trim_start_matches('/').split_once('/')?;
        Some((table.to_owned(), Uuid::try_parse(id).ok()?))
    };
    let ids: Vec<Uuid> = error.errors.iter().filter_map(|e| Some(named(&e.pointer)?.1)).collect();
    let labels = revisions::labels(&at.read().await?, at.campaign.id.0, &ids).await?;
    Ok(error
        .errors
        .iter()
        .map(|e| {
            let (table, id) = named(&e.pointer).unwrap_or_else(|| (e.pointer.clone(), Uuid::nil()));
            let label = labels.get(&id).cloned().filter(|label| !label.is_empty());
            InTheWay {
                label: label.unwrap_or_else(|| table.replace('_', " ")),
                path: place_of(&table).map(|place| at.url(&format!("{place}/{id}"))),
                kind: table.replace('_', " "),
                why: e.message.clone(),
            }
        })
        .collect())
}

/// The tables whose rows have a page, and the editor's path for them, below their campaign.
const PLACES: [(&str, &str); 7] = [
    ("memory", "memories"),
    ("npc", "npcs"),
    ("owner", "owners"),
    ("character", "characters"),
    ("scene", "scenes"),
    ("lore", "lore"),
    ("encounter", "encounters"),
];

/// The tables whose rows have a page.
pub(super) fn tables_with_pages() -> Vec<&'static str> {
    PLACES.iter().map(|(table, _)| *table).collect()
}

/// The editor's path for rows of a table, below their campaign.
pub(super) fn place_of(table: &str) -> Option<&'static str> {
    PLACES.iter().find(|(known, _)| *known == table).map(|(_, place)| *place)
}
