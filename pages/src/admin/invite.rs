//! Inviting a player: a link to the table for one character.

use actix_web::HttpResponse;
use askama::Template;

use super::{Frame, InCampaign, Tab, query::given};
use crate::render_blocks;
use base::error::{Code, Error, Result};
use edge::{
    auth::player_link,
    http::{
        paging::Page,
        resource::{self, Ref},
    },
};
use world::characters::{CharacterFilter, Characters};

#[derive(Template)]
#[template(path = "admin/invite.html", blocks = ["main"])]
struct InvitePage {
    frame: Frame,
    path: String,
    /// Where a character is made.
    new_path: String,
    /// The slugs and names of those who can be played.
    characters: Vec<(String, String)>,
    /// Whether there are others. Then a slug is written, not chosen.
    has_more: bool,
    chosen: String,
    /// Whom a link was made for, and the link.
    made: Option<(String, String)>,
    problem: Option<String>,
}
render_blocks!(InvitePage: as_main);

async fn shown(at: &InCampaign, made: Option<(String, String)>, problem: Option<String>) -> Result<InvitePage> {
    let tx = at.read().await?;
    let page = Page::<CharacterFilter>::parse("sort=name&limit=200")?;
    let found = resource::find_page::<Characters>(&tx, &at.caller, Some(at.campaign.id.0), &page).await?;
    let has_more = found.next_cursor.is_some();
    let chosen = match at.form.text("player") {
        "" => given(at.request.query_string(), "player"),
        sent => sent.to_owned(),
    };
    Ok(InvitePage {
        frame: at.frame("Invite a player", Tab::Invite),
        path: at.url("invite"),
        new_path: at.url("characters/new"),
        characters: found.items.into_iter().map(|character| (character.slug, character.name)).collect(),
        has_more,
        chosen,
        made,
        problem,
    })
}

/// The form.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    at.show(&shown(&at, None, None).await?)
}

/// Makes a link and shows it.
pub async fn make(at: InCampaign) -> Result<HttpResponse> {
    let made = async {
        let tx = at.read().await?;
        let named = Ref::parse(at.form.text("player"));
        let player = resource::find::<Characters>(&tx, &at.caller, Some(&Ref::Id(at.campaign.id.0)), &named).await?;
        drop(tx);
        let campaign = (at.campaign.slug.as_str(), at.campaign.id.0);
        let path = player_link::for_user(&at.app, &at.caller, campaign, player.id.0).await?;
        Ok::<_, Error>((player.name, at.whole_url(&path)))
    };
    match made.await {
        Ok(made) => at.show(&shown(&at, Some(made), None).await?),
        Err(error) if matches!(error.code, Code::NotFound | Code::Conflict) => {
            at.show_again(&shown(&at, None, Some(error.detail.clone())).await?)
        }
        Err(error) => Err(error),
    }
}
