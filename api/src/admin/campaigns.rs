//! The tenant's campaigns.

use actix_web::HttpResponse;
use askama::Template;
use entity::campaign;

use super::{Editor, Frame, Tab, editor::campaign_url, see};
use crate::{
    campaigns::Campaigns,
    error::Result,
    http::{
        paging::{NoFilter, Page},
        resource,
    },
    shown,
};

#[derive(Template)]
#[template(path = "admin/campaigns.html", blocks = ["main", "rows"])]
struct CampaignsPage {
    frame: Frame,
    q: String,
    campaigns: Vec<Row>,
    next: Option<String>,
}
shown!(CampaignsPage: as_main, "rows" => as_rows);

struct Row {
    path: String,
    campaign: campaign::Model,
}

/// The way in.
pub async fn index(_: Editor) -> HttpResponse {
    see("/admin/campaigns")
}

/// The list.
pub async fn list(editor: Editor) -> Result<HttpResponse> {
    let page = Page::<NoFilter>::parse(editor.request.query_string())?;
    let tx = editor.read().await?;
    let found = resource::find_page::<Campaigns>(&tx, &editor.caller, None, &page).await?;
    let rows = found.items.into_iter().map(|campaign| Row { path: campaign_url(&campaign, ""), campaign });
    editor.show(&CampaignsPage {
        frame: editor.frame("Campaigns", Tab::Campaigns),
        q: page.q.clone().unwrap_or_default(),
        campaigns: rows.collect(),
        next: found.next_cursor,
    })
}
