//! Writes cards and lorebooks that were read into a campaign.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    book::{ABOUT_BYTES_MAX, Book, ENTRIES_MAX, Members},
    card::Card,
    names::Names,
    report::{Losses, Report},
    rows::{self, Onto, Row, RowIdentity},
};
use crate::{lore::LoreEntries, npcs::Npcs};
use base::{error::Result, stored::Columns};
use edge::http::resource::Place;

/// Where the entries of a book go.
pub struct Shelf {
    /// Identifies the book, so that its entries are found when it is imported again.
    pub key: String,
    /// The book's name, which is added as a tag.
    pub tag: String,
    /// The id of the NPC that knows the book, if it belongs to a card.
    pub known_by: Option<Uuid>,
}

/// Creates or changes the NPC of a card, and the lore of its book.
///
/// # Errors
/// `validation_failed` for values that cannot be stored.
pub async fn card(place: &Place<'_>, card: Card, mut losses: Losses, report: &mut Report) -> Result<()> {
    let mut npc = card.npc;
    let names = Names::load(place).await?;
    let owners: Vec<&String> = card.owners.iter().filter(|slug| names.owner(slug).is_some()).collect();
    for slug in card.owners.iter().filter(|slug| names.owner(slug).is_none()) {
        report.warn(format!("There is no owner `{slug}` here, so the NPC is imported without it."));
    }
    if !card.owners.is_empty() {
        npc.insert("owner_ids".to_owned(), json!(owners));
    }
    let slug = npc.remove("slug").and_then(|s| s.as_str().map(ToOwned::to_owned));
    let identity =
        RowIdentity::ByOrigin { id: card.id, reference: reference(card.id, || format!("card:{}", card.key)), slug };
    let row = Row {
        members: npc,
        at_first: card.at_first,
        identity,
        onto: Onto::BesideExtensions,
        is_strangers: true,
        ..Row::at(String::new())
    };
    let ids = rows::write::<Npcs>(place, vec![row], |_| Members::new(), report).await?;
    if let (Some(book), Some(id)) = (card.book, ids.first()) {
        losses.mapped("/data/character_book/entries/*", "lore", "secret lore entries that only this character knows");
        let tag = if book.name.is_empty() {
            format!("card {}", card.key.split(':').next().unwrap_or_default())
        } else {
            book.name.clone()
        };
        let key = format!("card.{}", card.key.replace(':', "."));
        let shelf = Shelf { key, tag, known_by: Some(*id) };
        entries(place, book, &shelf, &names, report).await?;
    }
    report.take(losses);
    Ok(())
}

/// Creates or changes the lore of a book.
///
/// # Errors
/// `validation_failed` for values that cannot be stored.
pub async fn book(place: &Place<'_>, book: Book, shelf: &Shelf, losses: Losses, report: &mut Report) -> Result<()> {
    let names = Names::load(place).await?;
    if !keep_about(place, &book, shelf).await? {
        report.warn("The book's own settings were not kept, because the campaign has no room for them.".to_owned());
    }
    entries(place, book, shelf, &names, report).await?;
    report.take(losses);
    Ok(())
}

async fn entries(place: &Place<'_>, book: Book, shelf: &Shelf, names: &Names, report: &mut Report) -> Result<()> {
    let mut rows = Vec::with_capacity(book.entries.len());
    let shelved = Shelved::look(place, &book, shelf).await?;
    for (number, entry) in book.entries.into_iter().enumerate() {
        let (mut lore, mut at_first) = (entry.lore, entry.at_first);
        let is_ours = entry.slug.is_some();
        tag(&shelf.tag, is_ours, &mut lore, &mut at_first);
        match (shelf.known_by, entry.known_by) {
            (Some(character), _) => keep_to(character, &mut lore, &mut at_first),
            (None, Some(slugs)) => know(&slugs, names, &format!("/entries/{number}"), &mut lore, report),
            (None, None) => {}
        }
        let own = || shelved.reference(format!("lorebook:{}:{}", shelf.key, entry.key), entry.uid.as_deref());
        let reference = reference(entry.id, own);
        rows.push(Row {
            members: lore,
            at_first,
            identity: RowIdentity::ByOrigin { id: entry.id, reference, slug: entry.slug },
            onto: Onto::BesideExtensions,
            ..Row::at(format!("/entries/{number}"))
        });
    }
    rows::write::<LoreEntries>(place, rows, |_| Members::new(), report).await?;
    Ok(())
}

/// Adds the book's name as a tag to new entries that were written by other programs.
fn tag(tag: &str, is_ours: bool, lore: &mut Members, at_first: &mut Members) {
    if tag.is_empty() || is_ours {
        return;
    }
    match lore.get_mut("tags") {
        Some(Value::Array(tags)) if !tags.contains(&json!(tag)) => tags.push(json!(tag)),
        Some(_) => {}
        None => {
            at_first.insert("tags".to_owned(), json!([tag]));
        }
    }
}

/// An entry of a card's book is what its character alone knows when it is new, whatever the card says: whoever wrote the card must not
/// speak to other characters. If it exists, it is known as before.
fn keep_to(character: Uuid, lore: &mut Members, at_first: &mut Members) {
    lore.remove("secret");
    at_first.insert("secret".to_owned(), true.into());
    at_first.insert("known_by".to_owned(), json!([character]));
}

/// Sets who knows an entry. If the file names people but none of them exist here, it says nothing about who knows the entry.
fn know(slugs: &[String], names: &Names, pointer: &str, lore: &mut Members, report: &mut Report) {
    let (here, absent): (Vec<&String>, Vec<&String>) = slugs.iter().partition(|slug| names.id(slug).is_some());
    for slug in absent {
        report.warn(format!("{pointer}: nobody named `{slug}` exists here, so they were left out of `known_by`."));
    }
    if slugs.is_empty() || !here.is_empty() {
        lore.insert("known_by".to_owned(), json!(here));
    }
}

/// The `external_ref` of a row that a file creates: the row's original id if we wrote the file, otherwise `theirs`.
fn reference(id: Option<Uuid>, theirs: impl FnOnce() -> String) -> String {
    id.map_or_else(theirs, |id| format!("tavernkeep:{id}"))
}

/// Keeps the book's own settings in the campaign for its export, unless a client has something else there. Returns
/// whether they are stored now, or there was nothing to keep.
async fn keep_about(place: &Place<'_>, book: &Book, shelf: &Shelf) -> Result<bool> {
    let about = Value::Object(book.about.clone());
    if book.about.is_empty() || about.to_string().len() > ABOUT_BYTES_MAX {
        return Ok(true);
    }
    sqlx::query(
        "UPDATE campaign SET extensions = jsonb_set(extensions || jsonb_build_object('lorebooks', \
             coalesce(extensions -> 'lorebooks', '{}')), ARRAY['lorebooks', $3], $4) \
         WHERE tenant_id = $1 AND id = $2 AND jsonb_typeof(coalesce(extensions -> 'lorebooks', '{}')) = 'object' \
           AND coalesce(extensions -> 'lorebooks' -> $3, 'null') <> $4 \
           AND octet_length(extensions::text) < 32768",
    )
    .bind(place.tx.tenant())
    .bind(place.campaign)
    .bind(&shelf.key)
    .bind(&about)
    .execute(&mut *place.tx.connection().await)
    .await?;
    let row = sqlx::query(
        "SELECT coalesce(extensions -> 'lorebooks' -> $3 = $4, false) AS kept FROM campaign WHERE tenant_id = $1 AND id = $2",
    )
    .bind(place.tx.tenant())
    .bind(place.campaign)
    .bind(&shelf.key)
    .bind(about)
    .fetch_one(&mut *place.tx.connection().await)
    .await?;
    row.read("kept")
}

/// The entries of a book that exist here, by `external_ref`. An entry whose title has changed is found by its number.
struct Shelved {
    references: HashSet<String>,
    /// The `external_ref` of the entry with a number, if exactly one with that number exists here and in the file.
    renamed: HashMap<String, String>,
}

impl Shelved {
    /// Reads them in one statement.
    async fn look(place: &Place<'_>, book: &Book, shelf: &Shelf) -> Result<Self> {
        let prefix = format!("lorebook:{}:", shelf.key);
        let rows = sqlx::query(
            "SELECT external_ref FROM lore WHERE tenant_id = $1 AND campaign_id = $2 AND starts_with(external_ref, $3) LIMIT $4",
        )
        .bind(place.tx.tenant())
        .bind(place.campaign)
        .bind(&prefix)
        .bind(2 * ENTRIES_MAX as i64)
        .fetch_all(&mut *place.tx.connection().await)
        .await?;
        let references: HashSet<String> = rows.iter().map(|row| row.read("external_ref")).collect::<Result<_>>()?;
        let met: HashSet<String> = book.entries.iter().map(|entry| format!("{prefix}{}", entry.key)).collect();
        let mut renamed: HashMap<String, Option<String>> = HashMap::new();
        for reference in references.iter().filter(|reference| !met.contains(*reference)) {
            let uid = reference.strip_prefix(&prefix).and_then(|key| Some(key.rsplit_once(':')?.0.to_owned()));
            let Some(uid) = uid else { continue };
            // If there are several, nobody can tell which one it was.
            renamed.entry(uid).and_modify(|one| *one = None).or_insert_with(|| Some(reference.clone()));
        }
        let mut in_file: HashMap<&str, u32> = HashMap::new();
        for uid in book.entries.iter().filter_map(|entry| entry.uid.as_deref()) {
            *in_file.entry(uid).or_default() += 1;
        }
        renamed.retain(|uid, _| in_file.get(uid.as_str()) == Some(&1));
        let renamed = renamed.into_iter().filter_map(|(uid, reference)| Some((uid, reference?))).collect();
        Ok(Self { references, renamed })
    }

    /// The `external_ref` by which an entry is found.
    fn reference(&self, own: String, uid: Option<&str>) -> String {
        match uid.and_then(|uid| self.renamed.get(uid)) {
            Some(renamed) if !self.references.contains(&own) => renamed.clone(),
            _ => own,
        }
    }
}
