//! Inviting a player: links to the table, each for one character.

use std::collections::HashMap;

use actix_web::{HttpResponse, http::header::ContentType};
use askama::Template;
use qrcode::{QrCode, render::svg};
use time::{Duration, OffsetDateTime};

use super::{
    Frame, InCampaign, Tab,
    ask::AskPage,
    list::moment,
    query::given,
    world_form::{form_id, once},
};
use crate::render_blocks;
use base::{
    clock,
    error::{Code, Error, Result},
};
use edge::http::{
    Written,
    etag::Expected,
    paging::{NoFilter, Page},
    resource::{self, Ref},
};
use world::{
    characters::{CharacterFilter, Characters},
    player_links::service::{Place, PlayerLink, PlayerLinkInput},
};

/// The days that a link can last, besides until it is revoked.
const DAYS: [(i64, &str); 4] = [(1, "for a day"), (7, "for a week"), (30, "for 30 days"), (365, "for a year")];
/// The least pixels of a side of a QR code.
const QR_PIXELS: u32 = 240;

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
    name: String,
    lasts: String,
    links: Vec<LinkRow>,
    next: Option<String>,
    /// The link that was just made.
    made: Option<LinkRow>,
    problem: Option<String>,
}
render_blocks!(InvitePage: as_main);

/// A link as it is listed.
struct LinkRow {
    link: PlayerLink,
    /// The character's name.
    player: String,
    /// When it ends.
    ends: String,
    is_over: bool,
    used: String,
}

impl LinkRow {
    fn of(link: PlayerLink, names: &HashMap<&str, &str>) -> Self {
        let is_over = link.expires_at.is_some_and(|at| at <= clock::now());
        let ends = match link.expires_at {
            None => "when it is revoked".to_owned(),
            Some(at) => format!("{} UTC", moment(at)),
        };
        let used = link.last_used_at.map_or_else(|| "never".to_owned(), moment);
        let player =
            names.get(link.player_slug.as_str()).map_or_else(|| link.player_slug.clone(), |name| (*name).to_owned());
        Self { player, ends, is_over, used, link }
    }
}

/// Works on the links of the page's campaign.
async fn with_links<T>(at: &InCampaign, work: impl AsyncFnOnce(Place<'_>) -> Result<T>) -> Result<T> {
    let (campaign, address) = (Ref::Id(at.campaign.id.0), at.app.address(&at.request));
    work(Place { app: &at.app, caller: &at.caller, campaign: &campaign, address: &address }).await
}

async fn shown(at: &InCampaign, made: Option<PlayerLink>, problem: Option<String>) -> Result<InvitePage> {
    let tx = at.read().await?;
    let page = Page::<CharacterFilter>::parse("sort=name&limit=200")?;
    let found = resource::find_page::<Characters>(&tx, &at.caller, Some(at.campaign.id.0), &page).await?;
    let cursor = given(at.request.query_string(), "cursor");
    let query = match cursor.as_str() {
        "" => "sort=-created_at&limit=50".to_owned(),
        cursor => format!("sort=-created_at&limit=50&cursor={cursor}"),
    };
    let page = Page::<NoFilter>::parse(&query)?;
    let links = with_links(at, async |place| place.list(&tx, &page).await).await?;
    let has_more = found.next_cursor.is_some();
    let chosen = match at.form.text("player") {
        "" => given(at.request.query_string(), "player"),
        sent => sent.to_owned(),
    };
    let characters: Vec<(String, String)> =
        found.items.into_iter().map(|character| (character.slug, character.name)).collect();
    let names = characters.iter().map(|(slug, name)| (slug.as_str(), name.as_str())).collect();
    let kept = |field: &str| if problem.is_some() { at.form.text(field).to_owned() } else { String::new() };
    Ok(InvitePage {
        frame: at.frame("Invite a player", Tab::Invite),
        path: at.url("invite"),
        new_path: at.url("characters/new"),
        has_more,
        chosen,
        name: kept("name"),
        lasts: kept("lasts"),
        links: links.items.into_iter().map(|link| LinkRow::of(link, &names)).collect(),
        next: links.next_cursor.map(|cursor| at.url(&format!("invite?cursor={cursor}"))),
        made: made.map(|link| LinkRow::of(link, &names)),
        characters,
        problem,
    })
}

/// The links, and the form for a new one.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    at.show(&shown(&at, None, None).await?)
}

fn wanted(at: &InCampaign) -> Result<PlayerLinkInput> {
    let lasts = at.form.text("lasts");
    let days = DAYS.iter().find(|(days, _)| days.to_string() == lasts).map(|(days, _)| *days);
    if days.is_none() && !lasts.is_empty() {
        return Err(Error::invalid("/expires_at", "invalid_value", "Choose how long the link lasts."));
    }
    let end = |days| -> OffsetDateTime { clock::later(clock::now(), Duration::days(days)) };
    Ok(PlayerLinkInput {
        player_id: at.form.text("player").trim().to_owned(),
        name: at.form.text("name").trim().to_owned(),
        expires_at: days.map(end),
    })
}

/// Makes a link and shows it.
pub async fn make(at: InCampaign) -> Result<HttpResponse> {
    let sent: Vec<_> = at.form.fields().collect();
    let once = once(&at, &form_id(&at), &sent);
    let made = async {
        let wanted = wanted(&at)?;
        with_links(&at, async |place| place.create(&wanted, once.as_ref()).await).await
    };
    match made.await.map(Written::fresh) {
        Ok(Some(link)) => at.show(&shown(&at, Some(link), None).await?),
        Ok(None) => Ok(at.redirect(&at.url("invite"), "The first click made the link. It is in the list.")),
        Err(error) if matches!(error.code, Code::NotFound | Code::Conflict | Code::ValidationFailed) => {
            let problem = error.errors.first().map_or_else(|| error.detail.clone(), |wrong| wrong.message.clone());
            at.show_again(&shown(&at, None, Some(problem)).await?)
        }
        Err(error) => Err(error),
    }
}

async fn link(at: &InCampaign) -> Result<PlayerLink> {
    let tx = at.read().await?;
    with_links(at, async |place| place.get(&tx, at.path("x")).await).await
}

/// A link's QR code, as a picture.
pub(super) async fn qr(at: InCampaign) -> Result<HttpResponse> {
    let url = link(&at).await?.url.ok_or_else(|| Error::not_found("QR code"))?;
    let code = QrCode::new(url).map_err(Error::internal)?;
    let picture = code.render::<svg::Color<'_>>().min_dimensions(QR_PIXELS, QR_PIXELS).build();
    Ok(HttpResponse::Ok().content_type(ContentType("image/svg+xml".parse().map_err(Error::internal)?)).body(picture))
}

/// Asks whether to revoke a link.
pub async fn ask(at: InCampaign) -> Result<HttpResponse> {
    let link = link(&at).await?;
    let row = LinkRow::of(link, &HashMap::new());
    at.show(&AskPage {
        frame: at.frame("Revoke a link", Tab::Invite),
        question: format!("Revoke the link for {}?", row.player),
        quoted: Some(row.link.name).filter(|name| !name.is_empty()),
        then: format!(
            "Whoever plays with it is shown out within seconds, and it opens the table no more. End: {}. Last used: {}.",
            row.ends, row.used
        ),
        yes: "Revoke",
        no: "Keep it",
        back: at.url("invite"),
        version: None,
        problem: None,
        repeat: None,
        forks: false,
        rows: Vec::new(),
        before: None,
    })
}

/// Revokes a link.
pub async fn revoke(at: InCampaign) -> Result<HttpResponse> {
    let revoked = with_links(&at, async |place| place.revoke(&Expected::any(), at.path("x")).await).await?;
    Ok(at.redirect(&at.url("invite"), &format!("The link for {} was revoked.", revoked.player_slug)))
}
