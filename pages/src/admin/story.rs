//! The story so far, as far as a user may know it: game masters read everything.

use actix_web::HttpResponse;
use askama::Template;
use entity::{CampaignId, Seq};

use super::{Frame, InCampaign, Tab, editor::Proof, query::given};
use crate::{
    render_blocks,
    table::story::{Asked, Format, Source, Story, file},
};
use base::error::{Code, Error, Result};
use world::{
    messages::visible::{VisibleMessage, Which, reader_of, visible_messages},
    playing::Reader,
};

#[derive(Template)]
#[template(path = "admin/story.html", blocks = ["main"])]
struct StoryPage {
    frame: Frame,
    story: String,
}
render_blocks!(StoryPage: as_main);

/// Shows it.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let query = at.request.query_string();
    let asked = Asked { q: given(query, "q"), before: given(query, "before"), after: given(query, "after") };
    let tx = at.read().await?;
    let story = Story::read(&tx, at.campaign.id, reader_of(&at.caller), at.url("story"), asked).await?;
    let story = story.render().map_err(Error::internal)?;
    at.show(&StoryPage { frame: at.frame("The story so far", Tab::Story), story })
}

/// Downloads it as Markdown.
pub async fn markdown(at: InCampaign) -> Result<HttpResponse> {
    downloaded(&at, Format::Markdown)
}

/// Downloads it as HTML.
pub async fn html(at: InCampaign) -> Result<HttpResponse> {
    downloaded(&at, Format::Html)
}

fn downloaded(at: &InCampaign, format: Format) -> Result<HttpResponse> {
    let source = User { proof: at.proof()?, campaign: at.campaign.id, reader: reader_of(&at.caller) };
    Ok(file(format, (&at.campaign.slug, &at.campaign.name), source))
}

/// A user who downloads the story.
struct User {
    proof: Proof,
    campaign: CampaignId,
    reader: Option<Reader>,
}

impl Source for User {
    async fn lines(&self, after: Option<Seq>, count: i64) -> Result<Vec<VisibleMessage>> {
        let tx = self.proof.read().await?;
        let lines = visible_messages(&tx, self.campaign.0, self.reader, Which::StoryAfter(after, count)).await?;
        drop(tx);
        // A session that holds now held when the lines were read.
        if self.proof.holds().await? { Ok(lines) } else { Err(Error::new(Code::Unauthenticated, "Sign in again.")) }
    }
}
