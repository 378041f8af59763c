//! The page of a location: a place that characters, NPCs, scenes, owners or lore name. It is no row, so there is nothing to edit.

use actix_web::HttpResponse;
use entity::owner::Aspect;

use super::{Company, EntityPage, Parts, lore_about};
use crate::admin::{InCampaign, Tab};
use base::error::{Error, Result};
use edge::http::resource::scope_key;
use world::{around, npcs::place::location_name};

/// GET of a location's page.
///
/// # Errors
/// `not_found` for a location that nothing names.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let key = scope_key(at.path("x"));
    let (tx, campaign) = (at.read().await?, at.campaign.id.0);
    let (spelled, mut there) = around::at_location(&tx, campaign, &key).await?;
    let watchers = around::watchers(&tx, campaign, &[(Aspect::Location, &key)]).await?;
    let lore = lore_about(&at, &tx, &key).await?;
    drop(tx);
    if there.is_empty() && watchers.is_empty() && lore.entries.is_empty() {
        return Err(Error::not_found("location"));
    }
    let scenes: Vec<_> = there.extract_if(.., |resident| resident.kind == "scenes").collect();
    let name = location_name(spelled.as_deref().unwrap_or(&key));
    at.show(&EntityPage {
        frame: at.frame(&name, Tab::Home),
        many: "Overview",
        back: at.url(""),
        base: at.url(""),
        name,
        slug: String::new(),
        path: String::new(),
        version: 0,
        pending: Vec::new(),
        has_history: false,
        may_erase: false,
        parts: Parts {
            who: "Location".to_owned(),
            people: vec![
                Company::new("Who is here", there),
                Company::new("Watched by", watchers),
                Company::new("Scenes", scenes),
            ],
            lore: Some(lore),
            ..Parts::default()
        },
    })
}
