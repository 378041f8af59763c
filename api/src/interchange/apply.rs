//! Cards and books that were read, into a campaign; and out of it again.

use serde_json::{Value, json};
use sqlx::Row as _;
use uuid::Uuid;

use super::{
    book::{Book, Members, write::world_info_entry},
    card::{self, Card},
    names::Names,
    report::{Losses, Report},
    rows::{self, Row},
};
use crate::{
    error::{Error, Result},
    http::resource::{self, Place, Ref, Resource},
    lore::LoreEntries,
    npcs::Npcs,
};

/// Where a book's entries go.
pub struct Shelf {
    /// Tells this book from others; entries of a book that is read again are found by it.
    pub key: String,
    /// The book's name, as a tag.
    pub tag: String,
    /// The one NPC or owner, by id, that the book is for.
    pub known_by: Option<String>,
}

/// Makes or changes the NPC of a card, and the lore of its book.
///
/// # Errors
/// `validation_failed` for what has no place here.
pub async fn card(place: &Place<'_>, card: Card, mut losses: Losses, report: &mut Report) -> Result<()> {
    let mut npc = card.npc;
    let names = Names::load(place).await?;
    let owners: Vec<&String> = card.owners.iter().filter(|slug| names.owner(slug).is_some()).collect();
    for slug in card.owners.iter().filter(|slug| names.owner(slug).is_none()) {
        report.warn(format!("There is no owner `{slug}` here; the NPC is without it."));
    }
    if !card.owners.is_empty() {
        npc.insert("owner_ids".to_owned(), json!(owners));
    }
    // A card of ours is known by its slug, if that is an NPC's here or nobody's.
    let slug = npc.remove("slug").and_then(|s| s.as_str().map(ToOwned::to_owned));
    let slug = slug.filter(|slug| names.is_npc_or_free(slug));
    let reference = format!("card:{}", card.key);
    if slug.is_none() {
        npc.insert("external_ref".to_owned(), reference.into());
    }
    let row = Row { members: npc, slug, beside: Members::new(), adds_extensions: true, pointer: String::new() };
    let ids = rows::write::<Npcs>(place, vec![row], |_| Members::new(), report).await?;
    if let (Some(book), Some(id)) = (card.book, ids.first()) {
        losses.mapped("/data/character_book/entries/*", "lore", "secret entries that only this character knows");
        let tag = if book.name.is_empty() {
            format!("card {}", card.key.split(':').next().unwrap_or_default())
        } else {
            book.name.clone()
        };
        let shelf = Shelf { key: format!("card.{}", card.key.replace(':', ".")), tag, known_by: Some(id.to_string()) };
        // The NPC is somebody now.
        entries(place, book, &shelf, &Names::load(place).await?, report).await?;
    }
    report.take(losses);
    Ok(())
}

/// Makes or changes the lore of a book.
///
/// # Errors
/// `validation_failed` for what has no place here.
pub async fn book(place: &Place<'_>, book: Book, shelf: &Shelf, losses: Losses, report: &mut Report) -> Result<()> {
    let names = Names::load(place).await?;
    keep_about(place, &book, shelf).await?;
    entries(place, book, shelf, &names, report).await?;
    report.take(losses);
    Ok(())
}

async fn entries(place: &Place<'_>, book: Book, shelf: &Shelf, names: &Names, report: &mut Report) -> Result<()> {
    let mut rows = Vec::with_capacity(book.entries.len());
    for (number, entry) in book.entries.into_iter().enumerate() {
        let mut lore = entry.lore;
        let mut tags: Vec<Value> = lore.get("tags").and_then(Value::as_array).cloned().unwrap_or_default();
        if !shelf.tag.is_empty() && entry.slug.is_none() && !tags.contains(&json!(shelf.tag)) {
            tags.push(json!(shelf.tag));
        }
        lore.insert("tags".to_owned(), tags.into());
        let (known, unknown): (Vec<_>, Vec<_>) = entry.known_by.into_iter().partition(|slug| names.id(slug).is_some());
        for slug in unknown {
            report.warn(format!("/entries/{number}: there is no `{slug}` here who could know it."));
        }
        let mut known_by = known;
        if let Some(id) = &shelf.known_by
            && entry.slug.is_none()
        {
            lore.insert("secret".to_owned(), true.into());
            known_by.push(id.clone());
        }
        lore.insert("known_by".to_owned(), json!(known_by));
        if entry.slug.is_none() {
            lore.insert("external_ref".to_owned(), format!("lorebook:{}:{}", shelf.key, entry.key).into());
        }
        rows.push(Row {
            members: lore,
            slug: entry.slug,
            beside: Members::new(),
            adds_extensions: true,
            pointer: format!("/entries/{number}"),
        });
    }
    rows::write::<LoreEntries>(place, rows, |_| Members::new(), report).await?;
    Ok(())
}

/// What a book says of itself stays with the campaign, for its export.
async fn keep_about(place: &Place<'_>, book: &Book, shelf: &Shelf) -> Result<()> {
    let about = Value::Object(book.about.clone());
    if book.about.is_empty() || about.to_string().len() > 4096 {
        return Ok(());
    }
    sqlx::query(
        "UPDATE campaign SET extensions = jsonb_set(extensions || jsonb_build_object('lorebooks', \
             coalesce(extensions -> 'lorebooks', '{}')), ARRAY['lorebooks', $3], $4) \
         WHERE tenant_id = $1 AND id = $2 AND coalesce(extensions -> 'lorebooks' -> $3, 'null') <> $4 \
           AND octet_length(extensions::text) < 32768",
    )
    .bind(place.tx.tenant())
    .bind(place.campaign)
    .bind(&shelf.key)
    .bind(about)
    .execute(&mut *place.tx.connection().await)
    .await?;
    Ok(())
}

/// A row as members of its input, with slugs where it has ids.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn members<R: Resource>(model: R::Model, names: &Names) -> Result<Members> {
    let view = serde_json::to_value(R::View::from(model)).map_err(Error::internal)?;
    let Value::Object(mut members) = view else { return Err(Error::internal("a view is an object")) };
    members.retain(|name, _| !resource::READ_ONLY.contains(&name.as_str()) && !R::READ_ONLY.contains(&name.as_str()));
    // An account of this server is nobody elsewhere.
    members.remove("player_user");
    for name in ["owner_ids", "known_by"] {
        if let Some(Value::Array(ids)) = members.get_mut(name) {
            *ids = ids.iter().filter_map(|id| names.slug_of(id.as_str()?)).map(Value::from).collect();
        }
    }
    Ok(members)
}

/// The card of an NPC.
///
/// # Errors
/// `not_found`.
pub async fn card_of(place: &Place<'_>, npc: &Ref) -> Result<Value> {
    let campaign = Ref::Id(place.campaign);
    let model = resource::find::<Npcs>(place.tx, place.caller, Some(&campaign), npc).await?;
    let (id, reference) = (model.id.0, model.external_ref.clone());
    let names = Names::load(place).await?;
    let npc = members::<Npcs>(model, &names)?;
    let key = reference.as_deref().and_then(|r| r.strip_prefix("card:")).unwrap_or_default().replace(':', ".");
    let lore = if place.caller.sees_secrets() { book_of(place, id, &key, &names).await? } else { Vec::new() };
    let owners: Vec<String> = npc
        .get("owner_ids")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(ToOwned::to_owned)
        .collect();
    Ok(card::write(&npc, &owners, &lore))
}

/// Secret lore that an NPC alone knows: the book of its card, and what was added to it here.
async fn book_of(place: &Place<'_>, npc: Uuid, key: &str, names: &Names) -> Result<Vec<Members>> {
    use sea_orm::{
        EntityTrait, QueryFilter, QueryOrder, QuerySelect,
        sea_query::{Expr, ExprTrait},
    };
    let rows = entity::lore::Entity::find()
        .filter(resource::col("tenant_id").eq(place.tx.tenant()))
        .filter(resource::col("campaign_id").eq(place.campaign))
        .filter(Expr::cust_with_values(
            "secret AND ((cardinality(known_by) = 1 AND $1 = ANY (known_by)) OR starts_with(external_ref, $2))",
            [
                sea_orm::Value::from(npc),
                sea_orm::Value::from(if key.is_empty() { "\u{1}".to_owned() } else { format!("lorebook:card.{key}:") }),
            ],
        ))
        .order_by(resource::col("id"), sea_orm::Order::Asc)
        .limit(super::book::ENTRIES_MAX as u64)
        .all(place.tx)
        .await?;
    rows.into_iter().map(|model| members::<LoreEntries>(model, names)).collect()
}

/// The campaign's lore as SillyTavern's world info: all of it, or one book that was imported.
///
/// # Errors
/// `not_found` for a book that is not there.
pub async fn world_info(place: &Place<'_>, book: Option<&str>) -> Result<Value> {
    let names = Names::load(place).await?;
    let mut entries = Members::new();
    let mut after = String::new();
    let shelf = book.map(|book| format!("lorebook:{book}:"));
    loop {
        let page = rows::page::<LoreEntries>(place, &after, 500).await?;
        let Some(last) = page.last() else { break };
        after = last.slug.clone();
        for model in page {
            let is_seen = !model.secret || place.caller.sees_secrets();
            let is_wanted =
                shelf.as_ref().is_none_or(|shelf| model.external_ref.as_ref().is_some_and(|r| r.starts_with(shelf)));
            if !is_seen || !is_wanted || entries.len() >= super::book::ENTRIES_MAX {
                continue;
            }
            let number = entries.len();
            let lore = members::<LoreEntries>(model, &names)?;
            entries.insert(number.to_string(), world_info_entry(&lore, "", number).into());
        }
    }
    let mut file = match book {
        None => Members::new(),
        Some(_) if entries.is_empty() => return Err(Error::not_found("lorebook")),
        Some(book) => about(place, book).await?,
    };
    file.insert("entries".to_owned(), entries.into());
    Ok(file.into())
}

async fn about(place: &Place<'_>, book: &str) -> Result<Members> {
    let row =
        sqlx::query("SELECT extensions -> 'lorebooks' -> $3 AS about FROM campaign WHERE tenant_id = $1 AND id = $2")
            .bind(place.tx.tenant())
            .bind(place.campaign)
            .bind(book)
            .fetch_one(&mut *place.tx.connection().await)
            .await?;
    match row.get::<Option<Value>, _>("about") {
        Some(Value::Object(about)) => Ok(about),
        _ => Ok(Members::new()),
    }
}
