//! What a player sees: messages and rolls, the character sheet, and the current fights.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use askama::Template;
use entity::{CampaignId, CharacterId, MessageId, character};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    answer::{page_or_alert, rendered},
    around::{Around, around},
    seat::Seat,
    visit::{Seating, Visitor, seated_at},
};
use crate::{
    emblem::Emblem,
    model::{self, Model},
    sheet::Sheet,
    table::{
        again::AllAttempts,
        message::{self, Before, Foot, MESSAGES_SHOWN},
    },
};
use ai::state::Ai;
use base::error::{Code, Error, Result};
use edge::http::{
    page::html,
    resource::{self, Ref},
};
use world::{
    campaigns::Campaigns,
    journal,
    messages::{
        asking::answered,
        visible::{self, MISSED_MAX, Missed, VisibleMessage, Which},
    },
    player_links::service::pause,
};

/// With fewer messages, a table has only begun.
const BEGINNING: usize = 10;

#[derive(Template)]
#[template(path = "play/table.html")]
struct Page<'a> {
    link: &'a str,
    player: Uuid,
    campaign: String,
    model: Option<Model>,
    seq: i64,
    messages: String,
    vitals: String,
    sheet: String,
    fights: String,
    name: String,
    paused: String,
    people: String,
    here: String,
    location: String,
    /// Whether the location is described in full: at the beginning, but not in a fight.
    location_open: bool,
    missed: Option<Missed>,
    plans: bool,
    is_my_turn: bool,
    /// What the composer begins with.
    text: String,
    /// Whether a phone begins with the fights.
    fights_first: bool,
}

#[derive(Template)]
#[template(path = "play/enter.html")]
struct Door<'a> {
    link: &'a str,
}

/// What the player has done with messages.
#[derive(Default)]
pub struct Done {
    attempts: AllAttempts,
    /// The messages that asked for a roll and have it.
    rolled: Vec<MessageId>,
}

impl Done {
    /// What the player can do with a message at the table.
    #[must_use]
    pub fn foot<'a>(&'a self, table: &'a str, message: &'a VisibleMessage) -> Foot<'a> {
        let asked = message.asks.as_ref().filter(|_| !self.rolled.contains(&MessageId(message.id)));
        Foot { table, fields: "", attempts: self.attempts.of(message), asked, may_mend: false }
    }
}

impl Seat {
    /// What the player has done with these messages: the attempts at answers, and the rolls that were asked for. At most two statements,
    /// none without such messages.
    ///
    /// # Errors
    /// Database errors.
    pub async fn done(&self, messages: &[VisibleMessage]) -> Result<Done> {
        let asking: Vec<MessageId> = messages.iter().filter(|m| m.asks.is_some()).map(|m| MessageId(m.id)).collect();
        let rolled = answered(&self.tx, CharacterId(self.player), &asking).await?;
        Ok(Done { attempts: AllAttempts::read(&self.tx, Some(CharacterId(self.player)), messages).await?, rolled })
    }
}

/// The player's character.
#[derive(Template)]
#[template(path = "play/sheet.html")]
struct SheetView<'a> {
    who: &'a character::Model,
    emblem: Emblem,
    sheet: Sheet,
}

/// The hit points of the player's character.
#[derive(Template)]
#[template(path = "play/vitals.html")]
struct Vitals {
    hp: i32,
    max_hp: i32,
}

/// The sheet and the hit points of the player's character, as pieces of the page. At most two statements.
///
/// # Errors
/// Database errors.
pub async fn sheet_and_vitals(seat: &Seat, who: &character::Model, link: &str) -> Result<(String, String)> {
    let (creature, fights) = seat.creature(who).await?;
    let (hp, max_hp) = (creature.hp, creature.max_hp_now());
    let sheet = Sheet::of_creature(who, &creature).rolling_at(format!("/play/{link}/check"), !fights);
    let shown = SheetView { who, emblem: Emblem::of(&who.name), sheet };
    let rendered = |html: askama::Result<String>| html.map_err(Error::internal);
    Ok((rendered(shown.render())?, rendered(Vitals { hp, max_hp }.render())?))
}

#[derive(Default, Deserialize)]
pub struct Wished {
    /// The slug of an NPC to write to.
    to: Option<String>,
    /// The slug of a character to whisper to.
    whisper: Option<String>,
    /// What the composer begins with.
    text: Option<String>,
    /// Which view a phone begins with: `fights`, or else the talk.
    view: Option<String>,
}

/// The table, or the form to join it for people without a visit.
pub async fn page(
    app: web::Data<Ai>,
    request: HttpRequest,
    path: web::Path<String>,
    wished: std::result::Result<web::Query<Wished>, actix_web::Error>,
) -> HttpResponse {
    use actix_web::FromRequest as _;
    let wished = wished.map(web::Query::into_inner).unwrap_or_default();
    let page = match Visitor::extract(&request).await {
        Ok(visitor) => sat_down(&app, &visitor, &request, &path, &wished).await,
        Err(unseated) => Err(unseated.error),
    };
    match page {
        // No visit, or a visit to another table.
        Err(error) if matches!(error.code, Code::Unauthenticated | Code::NotFound) => {
            page_or_alert(&request, rendered(&Door { link: &path }))
        }
        page => page_or_alert(&request, page),
    }
}

async fn sat_down(
    app: &Ai,
    visitor: &Visitor,
    request: &HttpRequest,
    link: &str,
    wished: &Wished,
) -> Result<HttpResponse> {
    let seat = Seat::take(app, visitor, link).await?;
    // Read first: everything after this entry is sent live.
    let (seq, _) = journal::head(&seat.tx, seat.campaign).await?;
    let who = seat.character().await?;
    let newest = seat.messages(Which::Newest(MESSAGES_SHOWN)).await?;
    let done = seat.done(&newest).await?;
    let table = format!("/play/{link}");
    let campaign = resource::find::<Campaigns>(&seat.tx, &seat.caller, None, &Ref::Id(seat.campaign)).await?;
    let (sheet, vitals) = sheet_and_vitals(&seat, &who, link).await?;
    let Around { paused, people, here, location, plans, fights: is_in_fight } =
        around(app, &seat, link, wished.to.as_deref()).await?;
    let missed = missed(&seat).await?;
    let fights = seat.fights(link).await?;
    let shown = Page {
        link,
        player: seat.player,
        model: model::of(app, &seat.caller.tenant, Some(&campaign)).await,
        campaign: campaign.name,
        seq,
        messages: message::with_older(&newest, missed.as_ref(), (&table, &table), |message| {
            done.foot(&table, message)
        })?,
        vitals,
        sheet,
        is_my_turn: fights.are_mine(),
        fights: fights.render().map_err(Error::internal)?,
        name: who.name,
        paused,
        people,
        here,
        location,
        location_open: !is_in_fight && newest.len() < BEGINNING,
        missed,
        plans,
        fights_first: wished.view.as_deref() == Some("fights"),
        text: match &wished.whisper {
            Some(slug) => format!("/w {slug} "),
            None => wished.text.clone().unwrap_or_default(),
        },
    };
    let mut response = rendered(&shown)?;
    if let Some(cookie) = visitor.renewal(app, request)? {
        response.add_cookie(&cookie).map_err(Error::internal)?;
    }
    Ok(response)
}

/// The messages before those that the page shows, as a piece of it.
pub async fn older(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<String>,
    before: std::result::Result<web::Query<Before>, actix_web::Error>,
) -> HttpResponse {
    seated_at(visitor, &request, async |visitor| {
        let before = before.map_err(|_| Error::not_found("message"))?.into_inner();
        let seat = Seat::take(&app, &visitor, &path).await?;
        let said = seat.messages(before.which()).await?;
        let done = seat.done(&said).await?;
        let table = format!("/play/{path}");
        let missed = missed(&seat).await?;
        let lines =
            message::with_older(&said, missed.as_ref(), (&table, &table), |message| done.foot(&table, message))?;
        Ok(html(StatusCode::OK, lines))
    })
    .await
}

/// What was said while nobody was at the table with the player's link, for those who have just come back. One statement, and another one for
/// them.
async fn missed(seat: &Seat) -> Result<Option<Missed>> {
    let Some(pause) = pause(&seat.tx, &seat.caller).await? else { return Ok(None) };
    visible::missed(&seat.tx, CampaignId(seat.campaign), seat.reader(), pause).await
}
