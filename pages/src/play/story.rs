//! The story so far, as far as a player may know it.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use entity::{CampaignId, Seq};

use super::{
    answer::rendered,
    seat::Seat,
    visit::{Seating, Visitor, no_visit, seated_at},
};
use crate::table::story::{Asked, Format, Source, Story, file};
use ai::state::Ai;
use base::error::{Error, Result};
use edge::http::resource::{self, Ref};
use world::{
    campaigns::Campaigns,
    messages::visible::{VisibleMessage, Which},
};

#[derive(Template)]
#[template(path = "play/story.html")]
struct StoryPage<'a> {
    link: &'a str,
    campaign: String,
    story: String,
}

/// Shows it.
pub async fn page(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<String>,
    asked: std::result::Result<web::Query<Asked>, actix_web::Error>,
) -> HttpResponse {
    seated_at(visitor, &request, async |visitor| {
        let asked = asked.map_err(|_| Error::not_found("page"))?.into_inner();
        let seat = Seat::take(&app, &visitor, &path).await?;
        let own = format!("/play/{path}/story");
        let story = Story::read(&seat.tx, CampaignId(seat.campaign), Some(seat.reader()), own, asked).await?;
        let story = story.render().map_err(Error::internal)?;
        let (campaign, _) = named(&seat).await?;
        rendered(&StoryPage { link: &path, campaign, story })
    })
    .await
}

/// The campaign's name and slug.
async fn named(seat: &Seat) -> Result<(String, String)> {
    let campaign = resource::find::<Campaigns>(&seat.tx, &seat.caller, None, &Ref::Id(seat.campaign)).await?;
    Ok((campaign.name, campaign.slug))
}

/// Downloads it as Markdown.
pub async fn markdown(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<String>,
) -> HttpResponse {
    downloaded(app, visitor, &request, path.into_inner(), Format::Markdown).await
}

/// Downloads it as HTML.
pub async fn html(app: web::Data<Ai>, visitor: Seating, request: HttpRequest, path: web::Path<String>) -> HttpResponse {
    downloaded(app, visitor, &request, path.into_inner(), Format::Html).await
}

async fn downloaded(
    app: web::Data<Ai>,
    visitor: Seating,
    request: &HttpRequest,
    link: String,
    format: Format,
) -> HttpResponse {
    seated_at(visitor, request, async |visitor| {
        let (campaign, slug) = named(&Seat::take(&app, &visitor, &link).await?).await?;
        Ok(file(format, (&slug, &campaign), Player { app, visitor, link }))
    })
    .await
}

/// A player who downloads the story.
struct Player {
    app: web::Data<Ai>,
    visitor: Visitor,
    link: String,
}

impl Source for Player {
    async fn lines(&self, after: Option<Seq>, count: i64) -> Result<Vec<VisibleMessage>> {
        let seat = Seat::take(&self.app, &self.visitor, &self.link).await?;
        let lines = seat.messages(Which::StoryAfter(after, count)).await?;
        // A visit that holds now held when the lines were read.
        if self.visitor.may_stay(&self.app, seat.tx).await? { Ok(lines) } else { Err(no_visit()) }
    }
}
