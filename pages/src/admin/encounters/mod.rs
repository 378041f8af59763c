//! Encounters: fights from their beginning to the sheets. Whoever may play acts for whoever has the turn; a game master also decides
//! who takes part, changes hit points and conditions by a word, takes actions back, and ends the fight.

mod over;
mod recruits;
mod work;

use actix_web::HttpResponse;
use askama::Template;
use rules::{encounter::Status, srd::CONDITIONS};
use serde::Serialize;

pub use over::{commit, end};

use self::{
    over::OverView,
    recruits::{RecruitForm, sentences, wanted},
    work::{fields, goes_on, here, once_for_form, said, work},
};
use super::{
    Frame, InCampaign, Tab,
    answer::see,
    list::ListPage,
    query,
    table::answer::AT_TABLE,
    world_form::{form_id, once},
};
use crate::{
    fight::{self, Down, Fight},
    render_blocks,
};
use base::error::{Code, Error, Result};
use edge::{
    caller::Scope,
    http::{
        Answer,
        etag::Expected,
        paging::Page,
        resource::{self, Ref},
    },
};
use world::encounters::{
    EncounterFilter, Encounters,
    eyes::Eyes,
    input::{ActionInput, CreateInput, ParticipantInput},
    open,
    recruits::enlisted,
    rewind, roster,
    service::{self, Cx},
};

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
    shown.example = "A fight appears here when you begin one, or a frontend or an AI does, such as against three goblins on the road.";
    if is_master(&at) {
        shown.new = Some((at.url("encounters/new"), "New fight".to_owned()));
    }
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

/// Whether the user leads fights.
fn is_master(at: &InCampaign) -> bool {
    at.may(Scope::Gm) && at.may(Scope::Play)
}

#[derive(Template)]
#[template(path = "admin/encounter-new.html", blocks = ["main"])]
struct NewPage {
    frame: Frame,
    path: String,
    back: String,
    name: String,
    recruits: RecruitForm,
    /// Whether it leads back to the table.
    is_of_table: bool,
}
render_blocks!(NewPage: as_main);

async fn new_page(at: &InCampaign, problems: Vec<String>) -> Result<NewPage> {
    let tx = at.read().await?;
    let is_of_table = at.form.has(AT_TABLE) || query::given(at.request.query_string(), AT_TABLE) == "1";
    Ok(NewPage {
        frame: at.frame("New fight", Tab::Encounters),
        path: at.url("encounters/new"),
        back: at.url(if is_of_table { "table" } else { "encounters" }),
        is_of_table,
        name: at.form.text("name").to_owned(),
        recruits: RecruitForm::read(&tx, &at.campaign, &at.form, None, problems).await?,
    })
}

/// The form for a new fight.
pub async fn new(at: InCampaign) -> Result<HttpResponse> {
    at.show(&new_page(&at, Vec::new()).await?)
}

/// Whether an error is about what was written into a form.
fn is_of_form(error: &Error) -> bool {
    matches!(error.code, Code::ValidationFailed | Code::Conflict | Code::QuotaExceeded)
}

/// Begins a fight: rolls everybody's initiative.
pub async fn begin(at: InCampaign) -> Result<HttpResponse> {
    let sent: Vec<_> = at.form.fields().collect();
    let once = once(&at, &form_id(&at), &sent);
    let recruits = match wanted(&at.form) {
        Ok(recruits) => recruits,
        Err(error) => return at.show_again(&new_page(&at, sentences(&error, &[])).await?),
    };
    let tx = at.read().await?;
    let participants = match enlisted(&tx, &at.campaign, recruits, None).await {
        Ok(participants) => participants,
        Err(error) if is_of_form(&error) => {
            drop(tx);
            return at.show_again(&new_page(&at, sentences(&error, &[])).await?);
        }
        Err(error) => return Err(error),
    };
    drop(tx);
    let name = Some(at.form.text("name").trim().to_owned()).filter(|name| !name.is_empty());
    let input = CreateInput { name, participants, ..CreateInput::default() };
    let made = edge::http::write(&at.app, &at.caller, once.as_ref(), async |tx| {
        at.app.limits.check_rows(tx, &at.caller, "encounter").await?;
        let rows_max = at.caller.tenant.limits.rows_per_kind;
        let made = service::create(tx, at.campaign.id.0, &input, rows_max, Eyes::of(&at.caller)).await?;
        Ok(Answer::ok(made.id))
    })
    .await;
    match made {
        Ok(written) => Ok(match written.fresh() {
            Some(_) if at.form.has(AT_TABLE) => see(&at.url("table?view=fights")),
            Some(id) => at.redirect(&at.url(&format!("encounters/{id}")), "The fight begins."),
            None => at.redirect(&at.url("encounters"), "The first click began the fight. It is in the list."),
        }),
        Err(error) if is_of_form(&error) => {
            at.show_again(&new_page(&at, sentences(&error, &input.participants)).await?)
        }
        Err(error) => Err(error),
    }
}

#[derive(Template)]
#[template(path = "admin/encounter.html", blocks = ["main"])]
struct EncounterPage {
    frame: Frame,
    /// The fight with its buttons, while it is open.
    fights: Vec<Fight>,
    /// The token of its form.
    token: String,
    path: String,
    back: String,
    /// Where the page follows what changes, while the fight is open.
    news: Option<String>,
    /// Whether the game master goes on although a side is down.
    goes_on: bool,
    name: String,
    status: &'static str,
    round: u32,
    fighters: Vec<Fighter>,
    /// What was told of it last, newest first.
    told: Vec<String>,
    /// What a game master can do, while it is open.
    lead: Option<Lead>,
    /// What it did, if it has ended.
    over: Option<OverView>,
}
render_blocks!(EncounterPage: as_main);

struct Fighter {
    id: String,
    name: String,
    initiative: String,
    hp: String,
    armor_class: String,
    status: String,
    conditions: Vec<String>,
    is_enemy: bool,
    is_hidden: bool,
    has_turn: bool,
}

/// What a game master can do in an open fight.
struct Lead {
    /// The side that is down, unless the game master goes on.
    down: Option<Down>,
    version: i64,
    /// Whether there is an action to take back.
    has_acted: bool,
    recruits: RecruitForm,
}

impl Lead {
    /// The names of the conditions.
    fn conditions(&self) -> impl Iterator<Item = &'static str> {
        CONDITIONS.iter().map(|rule| rule.name)
    }
}

async fn shown(at: &InCampaign, problems: Vec<String>) -> Result<EncounterPage> {
    let tx = at.read().await?;
    let news = at.news(&tx).await?;
    let fight = open::seen_by(&tx, at.campaign.id.0, at.path("x"), &at.caller).await?;
    let view = &fight.fight;
    let number = |number: Option<i32>| number.map(|number| number.to_string()).unwrap_or_default();
    let fighters = view.participants().into_iter().map(|p| Fighter {
        id: p.id.to_owned(),
        name: p.name.to_owned(),
        initiative: number(p.initiative),
        hp: p.whole.map(|p| format!("{} of {}", p.hp, p.max_hp)).unwrap_or_default(),
        armor_class: number(p.whole.and_then(|p| p.armor_class)),
        status: p.status.to_owned(),
        conditions: p.conditions.iter().map(|name| (*name).to_owned()).collect(),
        is_enemy: p.is_enemy,
        is_hidden: fight.hidden.iter().any(|id| id == p.id),
        has_turn: view.current() == Some(p.id) && view.status() == Status::Active,
    });
    let fighters = fighters.collect();
    let name = view.name().unwrap_or("A fight").to_owned();
    let frame = at.frame(&name, Tab::Encounters);
    let is_open = view.status() == Status::Active;
    let leads = is_master(at).then_some(&fight);
    let mut panel = is_open.then(|| Fight::of(&fight, &at.url("encounters"), false).led(leads));
    let lead = match is_open && is_master(at) {
        false => None,
        true => {
            let goes_on = goes_on(at);
            let there: Vec<String> = view.participants().iter().filter_map(|p| p.whole?.character_id.clone()).collect();
            Some(Lead {
                down: panel.as_mut().filter(|_| !goes_on).and_then(|panel| panel.down.take()),
                version: fight.version,
                has_acted: fight.seq > 0,
                recruits: RecruitForm::read(&tx, &at.campaign, &at.form, Some(&there), problems).await?,
            })
        }
    };
    let over = match is_open {
        true => None,
        false => {
            let campaign = Ref::Id(at.campaign.id.0);
            Some(OverView::of(&Cx::of(&tx, &campaign, &at.caller), at.path("x"), is_master(at)).await?)
        }
    };
    Ok(EncounterPage {
        told: open::told(&tx, &fight, &at.caller).await?,
        token: fields(at, &frame.token()),
        frame,
        fights: panel.into_iter().collect(),
        path: at.url(&format!("encounters/{}", fight.id)),
        back: at.url("encounters"),
        news: news.filter(|_| is_open),
        goes_on: goes_on(at),
        name,
        status: if is_open { "active" } else { "ended" },
        round: view.round(),
        fighters,
        lead,
        over,
    })
}

/// The present state of an encounter.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    at.show(&shown(&at, Vec::new()).await?)
}

/// What a game master's word does to a participant.
#[derive(Serialize)]
struct Word<'a> {
    action: &'a str,
    target_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<&'a str>,
}

/// The request that a form makes: as a button has it, or made from the fields beside a participant.
fn asked(at: &InCampaign) -> Result<ActionInput> {
    match at.form.text("target_id") {
        "" => fight::request(at.form.text("action"), at.form.text("advantage")),
        target_id => asked_of(at, target_id),
    }
}

/// The request that the fields beside a participant make.
pub(super) fn asked_of(at: &InCampaign, target_id: &str) -> Result<ActionInput> {
    let form = &at.form;
    let amount = match form.text("amount").trim() {
        "" => None,
        text => {
            // An initiative may be negative.
            let number = text.parse().ok().filter(|number| *number >= 0 || form.text("do") == "roll_initiative");
            Some(number.ok_or_else(|| Error::invalid("/amount", "invalid_value", "Write a whole number, such as 7."))?)
        }
    };
    let word = match (form.get("remove"), form.text("do")) {
        (Some(condition), _) => {
            Word { action: "remove_condition", target_id, amount: None, condition: Some(condition) }
        }
        (None, "add_condition") => {
            Word { action: "add_condition", target_id, amount: None, condition: Some(form.text("condition")) }
        }
        (None, action @ ("damage" | "heal" | "temp_hp")) if amount.is_none() => {
            let what = action.replace("temp_hp", "temporary hit points");
            let message = format!("Write a number beside {what}.");
            return Err(Error::invalid("/amount", "invalid_value", message));
        }
        (None, action) => Word { action, target_id, amount, condition: None },
    };
    fight::request(&serde_json::to_string(&word).map_err(Error::internal)?, "")
}

/// Acts in a fight for whoever has the turn, or changes a participant by a game master's word.
///
/// # Errors
/// `not_found`; `validation_failed` for what is no request.
pub async fn act(at: InCampaign) -> Result<HttpResponse> {
    let input = match asked(&at) {
        Ok(input) => input,
        // A field beside a participant was left empty.
        Err(error) if at.form.has("target_id") => return said(&at, Err(error)),
        Err(error) => return Err(error),
    };
    let campaign = Ref::Id(at.campaign.id.0);
    work(&at, async |cx, id| {
        let told = service::act_for(cx.tx, &at.caller, (&campaign, id), &input).await?;
        match fight::why_nothing(&told) {
            Some(why) => Err(Error::new(Code::Conflict, why)),
            None => Ok(told.told),
        }
    })
    .await
}

/// Adds participants to an open fight, all of them or none.
pub async fn join(at: InCampaign) -> Result<HttpResponse> {
    let mut inputs = Vec::new();
    match joined(&at, &mut inputs).await {
        Ok(()) => Ok(at.redirect(&here(&at), "They are in the fight.")),
        Err(error) if error.code == Code::EncounterAlreadyEnded => said(&at, Err(error)),
        Err(error) if is_of_form(&error) => at.show_again(&shown(&at, sentences(&error, &inputs)).await?),
        Err(error) => Err(error),
    }
}

/// Joins those whom the form names, and says who they are.
async fn joined(at: &InCampaign, inputs: &mut Vec<ParticipantInput>) -> Result<()> {
    let recruits = wanted(&at.form)?;
    {
        let tx = at.read().await?;
        let fight = open::now(&tx, at.campaign.id.0, at.path("x"), &at.caller).await?;
        *inputs = enlisted(&tx, &at.campaign, recruits, Some(&fight)).await?;
    }
    once_for_form(at, async |cx, id| {
        roster::join_all(cx, id, inputs).await?;
        Ok(None)
    })
    .await?;
    Ok(())
}

/// Takes a participant out of the fight.
pub async fn remove(at: InCampaign) -> Result<HttpResponse> {
    work(&at, async |cx, id| {
        let who = at.form.text("participant");
        match roster::remove(cx, id, who, &Expected::any()).await {
            Err(error) if error.code == Code::NotFound => {
                Err(Error::new(Code::Conflict, "This participant has already left the fight."))
            }
            done => done.map(|()| None),
        }
    })
    .await
}

/// Takes the newest action back, if it is the one that the page showed.
pub async fn undo(at: InCampaign) -> Result<HttpResponse> {
    let version = at.form.version();
    work(&at, async |cx, id| {
        let no_version = || Error::invalid("/version", "invalid_value", "Reload the page and try again.");
        let expected = Expected::version(version.ok_or_else(no_version)?);
        rewind::undo(cx, id, &expected).await?;
        Ok(Some("The last action was undone.".to_owned()))
    })
    .await
}
