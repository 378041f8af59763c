//! The scores of all NPCs and owners for all characters, newest first.

use actix_web::HttpResponse;
use askama::Template;

use super::{Named, of::Score};
use crate::{
    admin::{
        Frame, InCampaign, Tab,
        query::{Ways, as_asked},
    },
    render_blocks,
};
use base::error::Result;
use edge::http::paging::Page;
use world::significance::standing::{self, StandingFilter};

/// A score and the NPC or owner that has it.
struct Row {
    entity: Named,
    threshold: String,
    score: Score,
}

#[derive(Template)]
#[template(path = "admin/scores.html", blocks = ["main", "rows"])]
struct ScoresPage {
    frame: Frame,
    queue: String,
    owners: String,
    rows: Vec<Row>,
    ways: Ways,
}
render_blocks!(ScoresPage: as_main, "rows" => as_rows);

/// GET of the scores. Filters are those of the API's list.
///
/// # Errors
/// `bad_request` for invalid parameters.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let page = Page::<StandingFilter>::parse(&as_asked(&at, "-created_at", &[]))?;
    let tx = at.read().await?;
    let found = standing::standings(&tx, at.campaign.id.0, &page).await?;
    let row = |standing: &standing::Standing| Row {
        entity: Named::entity(&at, &standing.entity),
        threshold: standing.threshold.map_or("–".to_owned(), |threshold| threshold.to_string()),
        score: Score::new(&at, standing),
    };
    at.show(&ScoresPage {
        frame: at.frame("Scores", Tab::Reactions),
        queue: at.url("reactions"),
        owners: at.url("owners"),
        rows: found.items.iter().map(row).collect(),
        ways: Ways::of(&at, found.next_cursor.as_deref()),
    })
}
