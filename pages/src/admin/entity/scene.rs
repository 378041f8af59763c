//! The page of a scene.

use entity::{owner::Aspect, scene};

use super::{Company, Parts, Shown, counted, facts, listed, location_link, lore_about};
use crate::admin::InCampaign;
use base::error::Result;
use db::tenancy::TenantTx;
use edge::http::resource::scope_key;
use world::{around, scenes::Scenes};

impl Shown for Scenes {
    async fn parts(at: &InCampaign, tx: &TenantTx, row: &scene::Model) -> Result<Parts> {
        let campaign = at.campaign.id.0;
        let location = row.location.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(&row.name);
        let (_, there) = around::at_location(tx, campaign, location).await?;
        let people = there.into_iter().filter(|resident| resident.kind != "scenes").collect();
        let watchers = around::watchers(tx, campaign, &[(Aspect::Location, location)]).await?;
        let tokens = row.tokens.0.iter().map(|token| token.name.as_str()).filter(|name| !name.is_empty());
        Ok(Parts {
            who: "Scene".to_owned(),
            location: location_link(at, Some(location)),
            tags: row.active.then(|| "in play".to_owned()).into_iter().collect(),
            description: Some(row.description.clone()),
            facts: facts(&[
                ("Channel", row.channel.clone()),
                ("Size", Some(format!("{} × {}", row.width, row.height))),
                ("Tokens", listed(tokens)),
                ("Notes", counted(&row.notes.0)),
                ("Lights", counted(&row.light_sources.0)),
            ]),
            people: vec![Company::new("Who is here", people), Company::new("Watched by", watchers)],
            lore: Some(lore_about(at, tx, &scope_key(location)).await?),
            ..Parts::default()
        })
    }
}
