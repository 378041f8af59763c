//! Reactions of NPCs and owners: the queue, the scores of one of them ([`of`]), and the rehearsal of actions
//! ([`rehearsal`], which reads [`lines`]). [`scores`] shows the scores of all.

mod lines;
pub mod of;
pub mod rehearsal;
pub mod scores;

use actix_web::HttpResponse;
use askama::Template;
use time::OffsetDateTime;
use url::form_urlencoded::Serializer;

use super::{
    Frame, InCampaign, Tab,
    list::moment,
    query::{Ways, as_asked, given},
    words,
};
use crate::render_blocks;
use base::error::{Code, Result};
use db::tenancy::{self, TenantTx};
use edge::http::paging::Page;
use world::significance::standing::{
    self, NamedEntity, NamedPlayer, ReactionFilter,
    ReactionStatus::{self, Cancelled, Dead, Done, Running, Waiting},
    ReactionView,
};

/// The states with their names in the filter.
const STATES: &[(ReactionStatus, &str)] = &[
    (Waiting, "waiting"),
    (Running, "running"),
    (Dead, "dead: failed too often"),
    (Done, "done"),
    (Cancelled, "cancelled"),
];
/// The most rows of a list above or beside the page's own list.
const OPEN_MAX: usize = 50;

/// A link to an NPC, an owner or a character.
pub struct Named {
    path: Option<String>,
    name: String,
}

impl Named {
    fn entity(at: &InCampaign, entity: &NamedEntity) -> Self {
        let place = if entity.kind == "npc" { "npcs" } else { "owners" };
        match &entity.name {
            Some(name) => Self { path: Some(at.url(&format!("{place}/{}", entity.id))), name: name.clone() },
            None => Self { path: None, name: format!("a deleted {}", words_of(&entity.kind)) },
        }
    }

    fn player(at: &InCampaign, player: &NamedPlayer) -> Self {
        Self { path: Some(at.url(&format!("characters/{}", player.id))), name: player.name.clone() }
    }
}

fn words_of(kind: &str) -> &'static str {
    if kind == "npc" { "NPC" } else { "owner" }
}

/// A score for people to read.
fn number(score: f64) -> String {
    ((score * 1000.0).round() / 1000.0).to_string()
}

/// A moment in the near past or future, as people say it.
fn until(at: OffsetDateTime, now: OffsetDateTime) -> String {
    match (at - now).whole_seconds() {
        ..1 => "now".to_owned(),
        seconds @ 1..120 => format!("in {seconds} s"),
        seconds @ 120..7200 => format!("in {} min", seconds / 60),
        _ => format!("{} UTC", moment(at)),
    }
}

/// A reaction in a list.
pub struct Row {
    entity: Named,
    player: Named,
    kind: &'static str,
    state: &'static str,
    score: String,
    actions: i32,
    tries: i32,
    problem: String,
    when: String,
    turn: String,
    end: Option<String>,
    retry: Option<String>,
}

impl Row {
    fn new(at: &InCampaign, reaction: &ReactionView) -> Self {
        let path = |verb: &str| Some(at.url(&format!("reactions/{}/{verb}", reaction.id)));
        let is = |states: &[ReactionStatus]| states.contains(&reaction.status);
        let when = reaction.finished_at.filter(|_| !is(&[Waiting, Running]));
        Self {
            entity: Named::entity(at, &reaction.entity),
            player: Named::player(at, &reaction.player),
            kind: if reaction.kind == "prayer" { "a prayer" } else { "actions" },
            state: reaction.status.as_str(),
            score: number(reaction.score),
            actions: reaction.actions,
            tries: reaction.tries,
            problem: reaction.error.as_ref().map(problem).unwrap_or_default(),
            when: when.map_or_else(|| until(reaction.due_at, base::clock::now()), moment),
            turn: at.url(&format!("turns/{}", reaction.turn_id)),
            end: path("end").filter(|_| is(&[Waiting, Running, Dead])),
            // One that gave its score back has nothing to answer.
            retry: path("retry").filter(|_| is(&[Dead]) || (is(&[Cancelled]) && reaction.actions > 0)),
        }
    }

    /// The class of the state's tag.
    fn class(&self) -> &'static str {
        match self.state {
            "dead" => "tag bad",
            "done" => "tag good",
            _ => "tag",
        }
    }
}

/// Why the last attempt failed.
fn problem(error: &serde_json::Value) -> String {
    match words::at(error, "/message") {
        message if message.is_empty() => words::at(error, "/code"),
        message => message,
    }
}

#[derive(Template)]
#[template(path = "admin/reactions.html", blocks = ["main", "rows"])]
struct ReactionsPage {
    frame: Frame,
    path: String,
    actors_path: String,
    rehearsal: String,
    scores: String,
    entity: String,
    player: String,
    state: String,
    is_filtered: bool,
    /// The dead, and those that wait or run; only on the first page without a chosen state.
    dead: Vec<Row>,
    open: Vec<Row>,
    is_cut: bool,
    rows: Vec<Row>,
    ways: Ways,
}
render_blocks!(ReactionsPage: as_main, "rows" => as_rows);

/// GET of the queue, the dead, and what ended. Filters are those of the API's list.
///
/// # Errors
/// `bad_request` for invalid parameters.
pub async fn list(at: InCampaign) -> Result<HttpResponse> {
    let asked = at.request.query_string();
    let [entity, player, state] = ["entity_id", "player_id", "status"].map(|name| given(asked, name));
    let page = Page::<ReactionFilter>::parse(&as_asked(&at, "-created_at", &[]))?;
    let tx = at.read().await?;
    let (mut dead, mut open, mut is_cut) = (Vec::new(), Vec::new(), false);
    if page.filter.status.is_none() && page.after.is_none() {
        let names = [("entity_id", entity.as_str()), ("player_id", &player)];
        (dead, is_cut) = some(&at, &tx, &query("-created_at", OPEN_MAX, &names), &[Dead]).await?;
        let (waiting, more) = some(&at, &tx, &query("created_at", OPEN_MAX, &names), &[Waiting, Running]).await?;
        (open, is_cut) = (waiting, is_cut || more);
    }
    let states = page.filter.status.map_or(vec![Done, Cancelled], |state| vec![state]);
    let found = standing::reactions_in(&tx, at.campaign.id.0, &page, &states).await?;
    at.show(&ReactionsPage {
        frame: at.frame("Reactions", Tab::Reactions),
        path: at.url("reactions"),
        actors_path: at.url("memories/actors"),
        rehearsal: at.url("rehearsal"),
        scores: at.url("scores"),
        is_filtered: [&entity, &player, &state].iter().any(|text| !text.is_empty()),
        entity,
        player,
        state,
        dead,
        open,
        is_cut,
        rows: found.items.iter().map(|reaction| Row::new(&at, reaction)).collect(),
        ways: Ways::of(&at, found.next_cursor.as_deref()),
    })
}

/// A query of a list. Empty values are left out.
fn query(sort: &str, limit: usize, more: &[(&str, &str)]) -> String {
    let mut out = Serializer::new(String::new());
    out.append_pair("sort", sort).append_pair("limit", &limit.to_string());
    out.extend_pairs(more.iter().filter(|(_, value)| !value.is_empty()));
    out.finish()
}

/// The first reactions in these states, and whether there are more.
async fn some(at: &InCampaign, tx: &TenantTx, query: &str, states: &[ReactionStatus]) -> Result<(Vec<Row>, bool)> {
    let page = Page::<ReactionFilter>::parse(query)?;
    let found = standing::reactions_in(tx, at.campaign.id.0, &page, states).await?;
    let rows = found.items.iter().map(|reaction| Row::new(at, reaction)).collect();
    Ok((rows, found.next_cursor.is_some()))
}

/// POST that ends a reaction that waits, runs or is dead.
///
/// # Errors
/// `not_found`.
pub async fn end(at: InCampaign) -> Result<HttpResponse> {
    changed(&at, false, "The reaction was ended.").await
}

/// POST that queues a dead or ended reaction again.
///
/// # Errors
/// `not_found`.
pub async fn retry(at: InCampaign) -> Result<HttpResponse> {
    changed(&at, true, "The reaction was queued again.").await
}

/// Changes the reaction and returns to the page with the form. If the reaction's state has changed meanwhile, that page
/// says so.
async fn changed(at: &InCampaign, is_retry: bool, done: &str) -> Result<HttpResponse> {
    let (campaign, id) = (at.campaign.id.0, standing::reaction_id(at.path("x"))?);
    let work = tenancy::write(&at.app.pool, at.caller.actor(), async |tx| match is_retry {
        true => standing::retry(tx, campaign, id).await,
        false => standing::end(tx, campaign, id).await,
    });
    let message = match work.await {
        Ok(reaction) => {
            if let Some(turn) = reaction.running() {
                at.app.running.cancel(turn);
            }
            done.to_owned()
        }
        Err(error) if matches!(error.code, Code::Conflict | Code::Gone) => error.detail.to_string(),
        Err(error) => return Err(error),
    };
    let mut back = at.url("reactions");
    if at.form.text("back") == "entity" {
        let entity = standing::reaction(&at.read().await?, campaign, id).await?.entity;
        let path = Named::entity(at, &entity).path;
        back = path.map_or(back, |path| format!("{path}/reactions"));
    }
    Ok(at.redirect(&back, &message))
}
