//! The page of a scene.

use entity::{owner::Aspect, scene};

use super::{Company, Parts, Shown, counted, facts, lore, place_of};
use crate::admin::InCampaign;
use base::error::Result;
use db::tenancy::TenantTx;
use edge::http::resource::scope_key;
use world::{around, scenes::Scenes};

impl Shown for Scenes {
    async fn parts(at: &InCampaign, tx: &TenantTx, row: &scene::Model) -> Result<Parts> {
        let campaign = at.campaign.id.0;
        let location = row.location.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(&row.name);
        let there = around::at_place(tx, campaign, location).await?;
        let people = there.into_iter().filter(|resident| resident.kind != "scenes").collect();
        let watchers = around::watchers(tx, campaign, &[(Aspect::Location, location)]).await?;
        let key = scope_key(location);
        let tokens: Vec<String> =
            row.tokens.0.iter().map(|token| token.name.clone()).filter(|n| !n.is_empty()).collect();
        Ok(Parts {
            who: "Scene".to_owned(),
            place: place_of(at, Some(location)),
            tags: row.active.then(|| "in play".to_owned()).into_iter().collect(),
            description: Some(row.description.clone()),
            facts: facts(&[
                ("Channel", row.channel.clone()),
                ("Size", Some(format!("{} × {}", row.width, row.height))),
                ("Tokens", Some(tokens.join(", "))),
                ("Notes", counted(&row.notes.0)),
                ("Lights", counted(&row.light_sources.0)),
            ]),
            people: vec![Company::new("Who is here", people), Company::new("Watched by", watchers)],
            lore: Some(lore(at, tx, "Lore of this place", &[("zone", &key)]).await?),
            ..Parts::default()
        })
    }
}
