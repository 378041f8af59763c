//! A small world to try: a harbour town with people, owners, lore, a scene and a fight. The demo begins with it, and the editor
//! offers it to a tenant that has nothing yet.

use entity::campaign;
use serde_json::{Value, json};

use crate::{
    campaigns::{CampaignInput, Campaigns, fork},
    encounters,
    interchange::{report::Report, seed},
    scenes::{SceneInput, Scenes},
};
use base::{
    clock,
    error::{Error, Result},
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        read,
        resource::{self, Place},
    },
    limits,
};

const DOCUMENT: &str = include_str!("port-town.json");

/// Writes the town as a new campaign and returns it. `slug` is its slug, which must be free; without one it gets a free slug made
/// of its name.
///
/// # Errors
/// `slug_taken`, limits of the tenant, and those of the database.
pub async fn write(tx: &TenantTx, caller: &Caller, slug: Option<&str>) -> Result<campaign::Model> {
    let place = Place { tx, campaign: clock::id(), caller };
    let document: Value = serde_json::from_str(DOCUMENT).map_err(Error::internal)?;
    let part = |name: &str| document.get(name).cloned().unwrap_or_default();
    let mut campaign = part("campaign");
    campaign["slug"] = slug.into();
    let campaign: CampaignInput = read::typed(campaign)?;
    let row = resource::insert::<Campaigns>(&place, campaign).await?;
    let entities = json!({
        "owners": part("owners"), "players": part("players"), "npcs": part("npcs"), "lore": part("lore"),
    });
    let entities = seed::of_value(entities)?;
    seed::import(&place, entities, &mut Report::new("seed", false)).await?;
    let scene: SceneInput = read::typed(part("scene"))?;
    resource::insert::<Scenes>(&place, scene).await?;
    let rows_max = caller.tenant.limits.rows_per_kind;
    encounters::service::create(
        tx,
        place.campaign,
        &read::typed(part("encounter"))?,
        rows_max,
        encounters::eyes::Eyes::Master,
    )
    .await?;
    limits::check_rows_kept(tx, rows_max, fork::TABLES).await?;
    Ok(row)
}
