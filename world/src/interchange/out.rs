//! Exports NPCs as cards, and converts rows to members of files.

use serde_json::Value;
use uuid::Uuid;

use super::{book::Members, card, names::Names};
use crate::{lore::LoreEntries, npcs::Npcs};
use base::error::{Error, Result};
use db::{pool::Pool, tenancy::TenantTx};
use edge::{
    caller::Caller,
    http::resource::{self, Place, Ref, Resource, campaign_id},
};

/// A row as members of its input, with slugs in place of ids.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn members<R: Resource>(model: R::Model, names: &Names) -> Result<Members> {
    let view = serde_json::to_value(R::View::from(model)).map_err(Error::internal)?;
    let Value::Object(mut members) = view else { return Err(Error::internal("a view is an object")) };
    members.retain(|name, _| !resource::READ_ONLY.contains(&name.as_str()) && !R::READ_ONLY.contains(&name.as_str()));
    // A user of this server does not exist elsewhere.
    members.remove("player_user");
    for name in ["owner_ids", "known_by"] {
        if let Some(Value::Array(ids)) = members.get_mut(name) {
            *ids = ids.iter().filter_map(|id| names.slug_of(id.as_str()?)).map(Value::from).collect();
        }
    }
    Ok(members)
}

/// Like [`members`], with the row's id. With it we recognise rows in files that we wrote.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn identified<R: Resource>(model: R::Model, names: &Names) -> Result<Members> {
    let id = R::stamp(&model).id;
    let mut members = members::<R>(model, names)?;
    members.insert("id".to_owned(), id.to_string().into());
    Ok(members)
}

/// The card of an NPC, and the file name.
///
/// # Errors
/// `not_found`.
pub async fn card(pool: &Pool, caller: &Caller, c: &str, x: &str) -> Result<(String, Value)> {
    let tx = TenantTx::read_at_one_moment(pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(c)).await?;
    let card = card_of(&Place { tx: &tx, campaign, caller }, &Ref::parse(x)).await?;
    let slug = card.pointer("/data/extensions/tavernkeep/slug").and_then(Value::as_str).unwrap_or("card").to_owned();
    Ok((slug, card))
}

async fn card_of(place: &Place<'_>, npc: &Ref) -> Result<Value> {
    let campaign = Ref::Id(place.campaign);
    let model = resource::find::<Npcs>(place.tx, place.caller, Some(&campaign), npc).await?;
    let (id, reference) = (model.id.0, model.external_ref.clone());
    let names = Names::load(place).await?;
    let npc = identified::<Npcs>(model, &names)?;
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

/// The secret lore that only this NPC knows: the book of its card, and what was added here.
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
    rows.into_iter().map(|model| identified::<LoreEntries>(model, names)).collect()
}
