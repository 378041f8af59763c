//! The scores of one NPC or owner for each player, and its reactions.

use actix_web::HttpResponse;
use askama::Template;
use serde_json::Value;

use super::{Named, OPEN_MAX, Row, number, query, some, until};
use crate::{
    admin::{
        Frame, InCampaign,
        list::moment,
        query::{Ways, given},
        world_row::{Current, World},
    },
    render_blocks,
};
use base::{clock, error::Result};
use edge::http::paging::Page;
use world::significance::{
    scores::Significance,
    standing::{
        self,
        ReactionStatus::{Dead, Running, Waiting},
        Standing, StandingFilter,
    },
};

/// The score of an entity for one player.
pub(super) struct Score {
    pub(super) player: Named,
    pub(super) score: String,
    pub(super) bar: Bar,
    pub(super) actions: i32,
    pub(super) cooldown: Option<String>,
    pub(super) due: Option<String>,
    pub(super) last: Option<Last>,
}

/// A bar that shows a part of a maximum.
pub struct Bar {
    pub value: f64,
    pub max: f64,
}

impl Bar {
    /// A bar that is full at `max`. With a maximum of 0 it is always full.
    #[must_use]
    pub fn new(value: f64, max: f64) -> Self {
        if max > 0.0 { Self { value: value.clamp(0.0, max), max } } else { Self { value: 1.0, max: 1.0 } }
    }
}

/// The last reaction to a player.
pub(super) struct Last {
    pub(super) state: &'static str,
    pub(super) when: String,
    pub(super) path: String,
}

/// An owner's influence.
struct Influence {
    current: String,
    max: String,
    regained: String,
    bar: Bar,
}

#[derive(Template)]
#[template(path = "admin/reactions-of.html", blocks = ["main"])]
struct EntityPage {
    frame: Frame,
    many: &'static str,
    list: String,
    path: String,
    name: String,
    queue: String,
    rehearsal: String,
    threshold: String,
    cooldown: u32,
    immediate: Option<String>,
    influence: Option<Influence>,
    scores: Vec<Score>,
    ways: Ways,
    last: Option<Row>,
    open: Vec<Row>,
}
render_blocks!(EntityPage: as_main);

impl Score {
    pub(super) fn new(at: &InCampaign, standing: &Standing) -> Self {
        let (now, threshold) = (clock::now(), standing.threshold.unwrap_or_default());
        Self {
            player: Named::player(at, &standing.player),
            score: number(standing.score),
            bar: Bar::new(standing.score, f64::from(threshold)),
            actions: standing.actions,
            cooldown: standing.cooldown_until.filter(|end| *end > now).map(|end| until(end, now)),
            due: standing.due_at.map(|due| until(due, now)),
            last: standing.last_reaction.as_ref().map(|last| Last {
                state: last.status.as_str(),
                when: moment(last.finished_at.unwrap_or(last.created_at)),
                path: at.url(&format!("turns/{}", last.turn_id)),
            }),
        }
    }
}

fn influence(row: &Current) -> Option<Influence> {
    let part = |name: &str| row.view.pointer(name).and_then(Value::as_f64);
    let (current, max) = (part("/influence/current")?, part("/influence/max")?);
    let rounded = (current * 10.0).floor() / 10.0;
    Some(Influence {
        current: number(rounded),
        max: number(max),
        regained: number(part("/influence/regen_per_hour")?),
        bar: Bar::new(current, max),
    })
}

/// GET of an entity's scores and reactions.
///
/// # Errors
/// `not_found`; `bad_request` for invalid parameters.
pub async fn page<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let row = at.current::<W>(&tx, at.path("x")).await?;
    let (campaign, id) = (at.campaign.id.0, row.id.to_string());
    let cursor = given(at.request.query_string(), "cursor");
    let of = [("entity_id", id.as_str())];
    let asked = query("-created_at", OPEN_MAX, &[of[0], ("cursor", &cursor)]);
    let standings = standing::standings(&tx, campaign, &Page::<StandingFilter>::parse(&asked)?).await?;
    let (newest, _) = some(&at, &tx, &query("-created_at", 1, &of), &[]).await?;
    let (open, _) = some(&at, &tx, &query("created_at", OPEN_MAX, &of), &[Dead, Waiting, Running]).await?;
    let settings = Significance::of(&at.campaign.settings.0);
    at.show(&EntityPage {
        frame: at.frame(&format!("Reactions of {}", row.label), W::TAB),
        many: W::MANY,
        list: at.url(W::PATH),
        path: at.url(&format!("{}/{id}", W::PATH)),
        queue: at.url(&format!("reactions?entity_id={id}")),
        rehearsal: at.url("rehearsal"),
        threshold: row.view.get("reaction_threshold").map(super::words::display_text).unwrap_or_default(),
        cooldown: settings.cooldown_seconds(),
        immediate: row.view.get("immediate_threshold").and_then(Value::as_f64).map(number),
        influence: influence(&row),
        scores: standings.items.iter().map(|standing| Score::new(&at, standing)).collect(),
        ways: Ways::of(&at, standings.next_cursor.as_deref()),
        last: newest.into_iter().next(),
        open,
        name: row.label,
    })
}
