//! Encounters: how fights stand, and what can be done now for whoever has the turn.

use actix_web::HttpResponse;
use askama::Template;
use rules::encounter::Status;
use uuid::Uuid;

use super::{Frame, InCampaign, Tab, list::ListPage};
use crate::{
    fight::{self, Fight},
    render_blocks,
};
use base::error::{Code, Error, Result};
use db::tenancy;
use edge::http::{
    paging::Page,
    resource::{self, Ref},
};
use world::encounters::{self, EncounterFilter, Encounters, service};

const ORDERS: &[(&str, &str)] = &[("-created_at", "newest first"), ("created_at", "oldest first")];
const COLUMNS: &[&str] = &["State", "Round", "Participants", "Start, UTC"];

/// The list, including ended encounters.
pub async fn list(at: InCampaign) -> Result<HttpResponse> {
    let query = super::query::as_asked(&at, "-created_at", &[("include_ended", "true")]);
    let page = Page::<EncounterFilter>::parse(&query)?;
    let tx = at.read().await?;
    let found = resource::find_page::<Encounters>(&tx, &at.caller, Some(at.campaign.id.0), &page).await?;
    let mut shown = ListPage::new(&at, "Encounters", Tab::Encounters, "encounters");
    shown.about = "Fights, present and past. On the page of one you act for whoever has the turn.";
    shown.example = "A fight appears here when a frontend or the game master begins one, such as against three goblins on the road.";
    (shown.columns, shown.orders) = (COLUMNS, ORDERS);
    for it in found.items {
        let name = if it.name.is_empty() { "A fight".to_owned() } else { it.name };
        let state = match it.outcome {
            Some(outcome) => format!("{}: {outcome}", it.status),
            None => it.status,
        };
        let cells =
            vec![state, it.round.to_string(), it.participant_count.to_string(), super::list::moment(it.created_at)];
        shown.add(&it.id.0.to_string(), name, cells);
    }
    shown.pages(&at, found.next_cursor.as_deref());
    at.show(&shown)
}

#[derive(Template)]
#[template(path = "admin/encounter.html", blocks = ["main"])]
struct EncounterPage {
    frame: Frame,
    /// The fight with its buttons, while it is open.
    fights: Vec<Fight>,
    /// The token of its form.
    token: String,
    back: String,
    name: String,
    status: &'static str,
    round: u32,
    fighters: Vec<Fighter>,
}
render_blocks!(EncounterPage: as_main);

struct Fighter {
    name: String,
    initiative: String,
    hp: String,
    armor_class: String,
    status: String,
    conditions: String,
    is_enemy: bool,
    has_turn: bool,
}

/// The present state of an encounter.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let fight = encounters::open::seen_by(&tx, at.campaign.id.0, at.path("x"), &at.caller).await?;
    let view = &fight.fight;
    let number = |number: Option<i32>| number.map(|number| number.to_string()).unwrap_or_default();
    let fighters = view.participants().into_iter().map(|p| Fighter {
        name: p.name.to_owned(),
        initiative: number(p.initiative),
        hp: p.whole.map(|p| format!("{} of {}", p.hp, p.max_hp)).unwrap_or_default(),
        armor_class: number(p.whole.and_then(|p| p.armor_class)),
        status: p.status.to_owned(),
        conditions: p.conditions.join(", "),
        is_enemy: p.is_enemy,
        has_turn: view.current() == Some(p.id),
    });
    let name = view.name().unwrap_or("A fight").to_owned();
    let frame = at.frame(&name, Tab::Encounters);
    let is_open = view.status() == Status::Active;
    at.show(&EncounterPage {
        token: frame.token(),
        frame,
        fights: is_open.then(|| Fight::of(&fight, &at.url("encounters"), false)).into_iter().collect(),
        back: at.url("encounters"),
        name,
        status: if is_open { "active" } else { "ended" },
        round: view.round(),
        fighters: fighters.collect(),
    })
}

/// POST that acts in a fight for whoever has the turn.
///
/// # Errors
/// `not_found`; `validation_failed` for what is no request.
pub async fn act(at: InCampaign) -> Result<HttpResponse> {
    let input = fight::request(at.form.text("action"))?;
    let campaign = Ref::Id(at.campaign.id.0);
    let id = Uuid::try_parse(at.path("x")).map_err(|_| Error::not_found("encounter"))?.to_string();
    let work = tenancy::write(&at.app.pool, at.caller.actor(), async |tx| {
        service::act_for(tx, &at.caller, (&campaign, &id), &input).await
    });
    let message = match work.await {
        Ok(told) => fight::why_nothing(&told)
            .or(told.told)
            .filter(|message| !message.is_empty())
            .unwrap_or_else(|| "Done.".to_owned()),
        // The fight has gone on meanwhile: the page shows how it stands.
        Err(error) if is_late(error.code) => {
            error.errors.first().map_or_else(|| error.detail.to_string(), |field| field.message.clone())
        }
        Err(error) => return Err(error),
    };
    Ok(at.redirect(&at.url(&format!("encounters/{id}")), &message))
}

/// Whether an action was refused because the fight is no longer as the page showed it.
const fn is_late(code: Code) -> bool {
    matches!(
        code,
        Code::NotYourTurn
            | Code::NoActionLeft
            | Code::NotDying
            | Code::EncounterAlreadyEnded
            | Code::Conflict
            | Code::ValidationFailed
    )
}
