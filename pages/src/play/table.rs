//! What a player sees: messages and rolls, the character sheet, and the current fights.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use askama::Template;
use entity::{CampaignId, CharacterId, MessageId, character, session::Role};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    answer::{page_or_alert, rendered},
    visit::{Seating, Visitor, seated_at},
};
use crate::{
    emblem::Emblem,
    fight::Fight,
    model::{self, Model},
    sheet::Sheet,
    table::{
        again::AllAttempts,
        message::{self, Before, Foot, MESSAGES_SHOWN},
    },
};
use ai::{planner, state::Ai};
use base::error::{Code, Error, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        page::html,
        resource::{self, Ref, campaign_id},
    },
};
use rules::sheet::Creature;
use world::{
    campaigns::Campaigns,
    encounters::stand::Stand,
    fallen, journal,
    messages::{
        asking::answered,
        visible::{VisibleMessage, Which, visible_messages},
    },
    paused,
    playing::Reader,
    rules::sheet,
    table::{self, Person},
};

/// The most players that the panel names.
const PLAYERS_SHOWN: usize = 30;

/// A player at a table, with access to what they may see.
pub struct Seat {
    pub tx: TenantTx,
    pub caller: Caller,
    pub campaign: Uuid,
    pub player: Uuid,
}

impl Seat {
    /// Opens the table for a visitor.
    ///
    /// # Errors
    /// `not_found` for a campaign that is not theirs.
    pub async fn take(app: &Ai, visitor: &Visitor, campaign: &str) -> Result<Self> {
        let caller = visitor.caller.clone();
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        let campaign = campaign_id(&tx, &caller, &Ref::parse(campaign)).await?;
        Ok(Self { tx, caller, campaign, player: visitor.player })
    }

    /// The caller and the campaign. Ends the transaction, so that the next one does not wait for a second connection.
    #[must_use]
    pub fn leave(self) -> (Caller, Uuid) {
        (self.caller, self.campaign)
    }

    /// The messages that the player may see, oldest first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn messages(&self, which: Which<'_>) -> Result<Vec<VisibleMessage>> {
        let reader = Reader { role: Role::Player, player: Some(self.player) };
        visible_messages(&self.tx, self.campaign, Some(reader), which).await
    }

    /// The player's character.
    ///
    /// # Errors
    /// `not_found` if it is gone.
    pub async fn character(&self) -> Result<character::Model> {
        table::character(&self.tx, self.player).await
    }

    /// The player's character, if it can talk and act.
    ///
    /// # Errors
    /// `not_found` if it is gone; `dead`, `unconscious`.
    pub async fn actor(&self) -> Result<character::Model> {
        let who = self.character().await?;
        fallen::check(&self.tx, &who).await?;
        Ok(who)
    }

    /// The player's character as the rules see it now, and whether that is in a fight: a fight changes the character only when it
    /// is committed. One statement, and another one in a fight.
    ///
    /// # Errors
    /// Database errors.
    pub async fn creature(&self, who: &character::Model) -> Result<(Creature, bool)> {
        let stand = Stand::of(&self.tx, self.campaign, self.player).await?;
        let own = stand.as_ref().and_then(|stand| stand.fight.now.participant(stand.own()));
        Ok(match own {
            Some(own) => ((*own.creature).clone(), true),
            None => (sheet::of_character(who.clone()), false),
        })
    }

    /// The current fights, newest first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn fights(&self, link: &str) -> Result<Fights> {
        let fights = table::fights(&self.tx, CampaignId(self.campaign), &self.caller).await?;
        let root = format!("/play/{link}/fights");
        let fights = fights.iter().map(|fight| Fight::of(fight, &root, true).live()).collect();
        Ok(Fights { fights, token: String::new() })
    }
}

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
    plans: bool,
    /// What the composer begins with.
    text: String,
    /// Whether a phone begins with the fights.
    fights_first: bool,
}

/// The recipients that the player may write to.
#[derive(Template)]
#[template(path = "play/people.html")]
pub struct People<'a> {
    people: &'a [Person],
    /// Whether the player may write to the planner.
    plans: bool,
    /// Whether the character is in a fight. Then most texts say what it does.
    fights: bool,
    /// Whom the player chose by a link.
    chosen: Option<&'a str>,
}

impl People<'_> {
    fn is_chosen(&self, slug: &str) -> bool {
        match self.chosen {
            Some(chosen) => slug == chosen,
            None => !self.fights && self.people.first().is_some_and(|first| first.slug == slug),
        }
    }
}

/// Who is here, for the panel beside the words.
#[derive(Template)]
#[template(path = "play/here.html")]
pub struct Here<'a> {
    link: &'a str,
    people: &'a [Person],
    players: &'a [Person],
}

/// Whether the AI of the whole campaign is paused.
#[derive(Template)]
#[template(path = "play/paused.html")]
struct Paused {
    is_paused: bool,
}

/// Whom the player can write to and who answers, as the pieces of the page that show it.
pub struct Around {
    pub paused: String,
    pub people: String,
    pub here: String,
    plans: bool,
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

/// Current fights.
#[derive(Template)]
#[template(path = "fights.html")]
pub struct Fights {
    fights: Vec<Fight>,
    /// The form's token; empty where forms need none.
    token: String,
}

#[derive(Default, Deserialize)]
pub struct Wished {
    /// The slug of an NPC to write to.
    to: Option<String>,
    /// The slug of a character to whisper to.
    whisper: Option<String>,
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
    let Around { paused, people, here, plans } = around(app, &seat, link, wished.to.as_deref()).await?;
    let shown = Page {
        link,
        player: seat.player,
        model: model::of(app, &seat.caller.tenant, Some(&campaign)).await,
        campaign: campaign.name,
        seq,
        messages: message::with_older(&newest, (&table, &table), |message| done.foot(&table, message))?,
        vitals,
        sheet,
        fights: seat.fights(link).await?.render().map_err(Error::internal)?,
        name: who.name,
        paused,
        people,
        here,
        plans,
        fights_first: wished.view.as_deref() == Some("fights"),
        text: wished.whisper.as_ref().map(|slug| format!("/w {slug} ")).unwrap_or_default(),
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
        Ok(html(StatusCode::OK, message::with_older(&said, (&table, &table), |message| done.foot(&table, message))?))
    })
    .await
}

/// Whom the player can write to. `chosen` is the slug of the one to begin with. At most five statements.
///
/// # Errors
/// `not_found` if the character is gone.
pub async fn around(app: &Ai, seat: &Seat, link: &str, chosen: Option<&str>) -> Result<Around> {
    let company = table::company(&seat.tx, seat.campaign, seat.player).await?;
    let mut players = table::characters(&seat.tx, CampaignId(seat.campaign)).await?;
    players.retain(|person| person.id != seat.player);
    let plans = planner::request::is_on(app, &seat.caller).is_ok();
    let chosen = chosen.filter(|slug| company.npcs.iter().any(|person| person.slug == *slug));
    let people = People { people: &company.npcs, plans, fights: company.fights, chosen };
    let here = Here { link, people: &company.npcs, players: &players };
    let is_paused = paused::is_all(&seat.tx, CampaignId(seat.campaign)).await?;
    Ok(Around {
        paused: Paused { is_paused }.render().map_err(Error::internal)?,
        people: people.render().map_err(Error::internal)?,
        here: here.render().map_err(Error::internal)?,
        plans,
    })
}
