//! Encounters: how fights stand, and what can be done now for whoever has the turn.

use actix_web::HttpResponse;
use askama::Template;
use serde_json::Value;
use uuid::Uuid;

use super::{Frame, InCampaign, Tab, list::ListPage, words};
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
    status: String,
    round: i64,
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
    let view = &fight.view;
    let current = &view["current_participant_id"];
    let fighters = view["participants"].as_array().into_iter().flatten().map(|p| Fighter {
        name: words::display_text(&p["name"]),
        initiative: words::display_text(&p["initiative"]),
        hp: match p.get("hp") {
            Some(hp) => format!("{} of {}", words::display_text(hp), words::display_text(&p["max_hp"])),
            None => String::new(),
        },
        armor_class: words::display_text(&p["armor_class"]),
        status: words::display_text(&p["status"]),
        conditions: p["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|c| c.as_str().or_else(|| c["name"].as_str()).unwrap_or_default())
            .collect::<Vec<_>>()
            .join(", "),
        is_enemy: p["is_enemy"] == Value::Bool(true),
        has_turn: !current.is_null() && &p["id"] == current,
    });
    let name = words::display_text(&view["name"]);
    let name = if name.is_empty() { "A fight".to_owned() } else { name };
    let frame = at.frame(&name, Tab::Encounters);
    let is_open = view["status"] == "active";
    at.show(&EncounterPage {
        token: frame.token(),
        frame,
        fights: is_open.then(|| Fight::of(&fight, &at.url("encounters"), false)).into_iter().collect(),
        back: at.url("encounters"),
        name,
        status: words::display_text(&view["status"]),
        round: view["round"].as_i64().unwrap_or(0),
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
            .or_else(|| told["told"].as_str().map(str::to_owned))
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
