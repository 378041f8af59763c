//! A campaign's first page: its description and the numbers of its rows.

use actix_web::HttpResponse;
use askama::Template;

use super::{Frame, InCampaign, Tab};
use crate::render_blocks;
use base::error::Result;
use world::campaigns::overview;

#[derive(Template)]
#[template(path = "admin/home.html", blocks = ["main"])]
struct HomePage {
    frame: Frame,
    description: String,
    game_time: Option<String>,
    counts: Vec<Count>,
}
render_blocks!(HomePage: as_main);

struct Count {
    label: &'static str,
    path: String,
    number: String,
}

/// The overview.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let counts = overview::counts(&tx, &at.caller, at.campaign.id.0).await?;
    let counts = counts.into_iter().map(|(label, path, number)| Count {
        label,
        path: at.url(path),
        number: if number > overview::COUNTED_MAX {
            format!("over {}", overview::COUNTED_MAX)
        } else {
            number.to_string()
        },
    });
    at.show(&HomePage {
        frame: at.frame("Overview", Tab::Home),
        description: at.campaign.description.clone(),
        game_time: at.campaign.game_time.clone(),
        counts: counts.collect(),
    })
}
