//! Broadcasts: what an owner told all NPCs that depend on it, each as a whole.

use actix_web::HttpResponse;
use askama::Template;
use uuid::Uuid;

use super::{
    Frame, InCampaign, Tab,
    ask::AskPage,
    list::moment,
    query::{Ways, as_asked, given},
};
use crate::render_blocks;
use base::error::{Error, Result};
use db::tenancy::{self, TenantTx};
use edge::http::paging::Page;
use world::{
    actors,
    memory::{
        broadcasts::{self, BroadcastFilter, BroadcastView},
        service,
    },
};

/// A broadcast on the page.
struct Broadcast {
    view: BroadcastView,
    owner: Option<String>,
    player: String,
    /// Who heard it: the memory's address, and the hearer's name.
    heard: Vec<(String, String)>,
    path: String,
    at: String,
    turn_path: Option<String>,
    more: i64,
}

#[derive(Template)]
#[template(path = "admin/broadcasts.html", blocks = ["main", "rows"])]
struct BroadcastsPage {
    frame: Frame,
    list: String,
    q: String,
    player: String,
    rows: Vec<Broadcast>,
    ways: Ways,
}
render_blocks!(BroadcastsPage: as_main, "rows" => as_rows);

/// GET of the broadcasts, newest first.
///
/// # Errors
/// `bad_request` for invalid parameters.
pub async fn list(at: InCampaign) -> Result<HttpResponse> {
    let page = Page::<BroadcastFilter>::parse(&as_asked(&at, "-created_at", &[("limit", "50")]))?;
    let tx = at.read().await?;
    let found = broadcasts::page_of(&tx, &at.caller, at.campaign.id.0, &page).await?;
    let asked = at.request.query_string();
    let ids = found.items.iter().flat_map(|view| {
        let heard = view.audience.iter().map(|one| one.id);
        heard.chain([view.player_id]).chain(view.owner_id)
    });
    let names = actors::called(&tx, &ids.collect::<Vec<_>>()).await?;
    let named = |id: Uuid, slug: &Option<String>| {
        names.get(&id).cloned().or_else(|| slug.clone()).unwrap_or_else(|| id.to_string())
    };
    let rows = found.items.into_iter().map(|view| Broadcast {
        owner: view.owner_id.map(|id| named(id, &view.owner_slug)),
        player: named(view.player_id, &view.player_slug),
        heard: view
            .audience
            .iter()
            .map(|one| (at.url(&format!("memories/{}", one.memory_id)), named(one.id, &one.slug)))
            .collect(),
        path: at.url(&format!("memories/broadcasts/{}/retract", view.id)),
        at: moment(view.created_at),
        turn_path: view.turn_id.map(|turn| at.url(&format!("turns/{turn}"))),
        more: view.audience_total - i64::try_from(view.audience.len()).unwrap_or(0),
        view,
    });
    at.show(&BroadcastsPage {
        frame: at.frame("Broadcasts", Tab::Memories),
        list: at.url("memories"),
        q: given(asked, "q"),
        player: given(asked, "player_id"),
        rows: rows.collect(),
        ways: Ways::of(&at, found.next_cursor.as_deref()),
    })
}

fn broadcast_of(at: &InCampaign) -> Result<Uuid> {
    at.path("x").parse().map_err(|_| Error::not_found("broadcast"))
}

/// GET of the question whether to retract a broadcast.
///
/// # Errors
/// `not_found`.
pub async fn ask(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let (text, many) = service::broadcast_told(&tx, at.campaign.id.0, broadcast_of(&at)?).await?;
    at.show(&AskPage {
        frame: at.frame("Retract a broadcast", Tab::Memories),
        question: "Retract this broadcast?".to_owned(),
        quoted: Some(text),
        then: format!("This removes the memory from everyone who has it: {many}."),
        yes: "Retract",
        no: "Keep it",
        back: at.url("memories/broadcasts"),
        version: None,
        problem: None,
        repeat: None,
        forks: false,
        rows: Vec::new(),
        before: None,
    })
}

/// POST that retracts a broadcast and deletes every memory that it left.
///
/// # Errors
/// `not_found`.
pub async fn retract(at: InCampaign) -> Result<HttpResponse> {
    let broadcast = broadcast_of(&at)?;
    let retract = async |tx: &TenantTx| service::retract(tx, at.campaign.id.0, broadcast).await;
    let gone = tenancy::write(&at.app.pool, at.caller.actor(), retract).await?;
    Ok(at.redirect(&at.url("memories/broadcasts"), &format!("The broadcast was retracted. Memories removed: {gone}.")))
}
