//! Pausing the AI, for everybody or for one NPC.

use actix_web::HttpResponse;
use askama::Template;
use serde_json::json;

use super::answer::done;
use crate::admin::InCampaign;
use base::error::{Error, Result};
use db::tenancy;
use edge::http::resource::{self, Ref};
use world::{
    campaigns::Campaigns,
    npcs::Npcs,
    paused::{AI_PAUSED, AiPaused},
};

/// Whose AI is paused, with the button that changes it for everybody.
#[derive(Template)]
#[template(path = "admin/table-paused.html")]
pub(super) struct Paused<'a> {
    pub table: &'a str,
    pub token: &'a str,
    pub all: bool,
    /// The names of the NPCs and owners at whom it is paused.
    pub names: Vec<String>,
}

/// Pauses the AI, or lets it go on.
pub async fn pause(at: InCampaign) -> Result<HttpResponse> {
    done(&at, paused(&at).await)
}

async fn paused(at: &InCampaign) -> Result<()> {
    let pauses = match at.form.text("do") {
        "pause" => true,
        "resume" => false,
        _ => return Err(Error::invalid("/do", "invalid_value", "This form cannot be read. Reload the page.")),
    };
    let named = at.form.text("who");
    tenancy::write(&at.app.pool, at.caller.actor(), async |tx| {
        let current = resource::hold::<Campaigns>(tx, &at.caller, None, &Ref::Id(at.campaign.id.0)).await?;
        let mut now = AiPaused::of(&current.settings);
        if named.is_empty() {
            now.all = pauses;
        } else {
            let campaign = Ref::Id(at.campaign.id.0);
            let slug = named.strip_prefix("npcs/").unwrap_or_default();
            let npc = resource::find::<Npcs>(tx, &at.caller, Some(&campaign), &Ref::parse(slug)).await?;
            now.entities.retain(|known| *known != npc.slug && Ref::parse(known) != Ref::Id(npc.id.0));
            now.entities.extend(pauses.then_some(npc.slug));
        }
        let now = if now == AiPaused::default() { json!(null) } else { json!(now) };
        let changes = json!({ "settings": { AI_PAUSED: now } });
        resource::change_held::<Campaigns>(&at.app, &at.caller, tx, current, changes).await?;
        Ok(())
    })
    .await
}
