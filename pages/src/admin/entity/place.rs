//! The page of a place: a location that characters, NPCs, scenes, owners or lore name. It is no row, so there is nothing to edit.

use actix_web::HttpResponse;
use entity::owner::Aspect;

use super::{Company, EntityPage, Parts, lore};
use crate::admin::{InCampaign, Tab, words};
use base::error::{Error, Result};
use edge::http::resource::scope_key;
use world::around;

/// GET of a place's page.
///
/// # Errors
/// `not_found` for a place that nothing names.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let key = scope_key(at.path("x"));
    let (tx, campaign) = (at.read().await?, at.campaign.id.0);
    let mut there = around::at_place(&tx, campaign, &key).await?;
    let watchers = around::watchers(&tx, campaign, &[(Aspect::Location, &key)]).await?;
    let lore = lore(&at, &tx, "Lore of this place", &[("zone", &key)]).await?;
    drop(tx);
    if there.is_empty() && watchers.is_empty() && lore.entries.is_empty() {
        return Err(Error::not_found("place"));
    }
    let scenes: Vec<_> = there.extract_if(.., |resident| resident.kind == "scenes").collect();
    let name = words::place(&key);
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
            who: "Place".to_owned(),
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
