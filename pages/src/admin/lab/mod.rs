//! The prompt lab shows what a model would read for somebody's request, and why each lore entry is in or out. The user
//! can also look at an unsaved edit ([`draft`]) or at a past turn ([`past`]), and ask the model without saving
//! anything.

mod draft;
mod past;
mod why;

use actix_web::HttpResponse;
use askama::Template;
use entity::{npc, owner};
use uuid::Uuid;

pub use draft::compare;

use self::{draft::Draft, past::Past, why::View};
use super::{Frame, InCampaign, Tab, query::given, submitted::Submitted};
use crate::shown;
use ai::{
    tools::remembers,
    turns::lab::{self, Question, Said, Subject},
};
use base::error::{Code, Error, Result};
use edge::{
    caller::Scope,
    http::{paging::Page, resource},
};
use entity::kind::EntityKind;
use world::{
    characters::{CharacterFilter, Characters},
    npcs::{NpcFilter, Npcs},
    owners::{OwnerFilter, Owners},
    sessions::{SessionFilter, Sessions},
};

const ACTION_CHARS_MAX: usize = 4000;
const FIND_CHARS_MAX: usize = 200;

/// A choice in a list: the value that is sent, and the label that people read.
type Choice = (String, String);

#[derive(Template)]
#[template(path = "admin/lab.html", blocks = ["main", "why"])]
struct LabPage {
    frame: Frame,
    path: String,
    lore_path: String,
    npcs: Vec<Choice>,
    owners: Vec<Choice>,
    sessions: Vec<Choice>,
    players: Vec<Choice>,
    /// The most recent turns.
    turns: Vec<Choice>,
    asked: Asked,
    may_play: bool,
    /// The page of the NPC or owner that is asked, if it has no tool to remember with.
    forgets: Option<String>,
    /// Where to create a character, if there is none.
    no_player: Option<String>,
    problem: Option<String>,
    view: Option<View>,
    past: Option<Past>,
    said: Option<Spoken>,
    draft: Option<Draft>,
}
shown!(LabPage: as_main, "why" => as_why);

/// What the user chose.
#[derive(Clone, Default)]
struct Asked {
    /// `npc:slug`, `owner:slug` or `session:id`.
    entity: String,
    player: String,
    action: String,
    /// The search text for lore entries.
    find: String,
    /// The id of a past turn.
    turn: String,
    /// The entry that is being edited.
    lore: String,
    /// The edit: the fields of its form.
    draft: Vec<(String, String)>,
}

struct Spoken {
    model: String,
    text: String,
    calls: Vec<(String, String)>,
    parse_error: Option<String>,
    tokens: u64,
    cost: Option<String>,
    seconds: String,
}

impl Asked {
    fn of_query(at: &InCampaign) -> Self {
        Self::of(|name| given(at.request.query_string(), name))
    }

    fn of_form(form: &Submitted) -> Self {
        Self::of(|name| form.text(name).to_owned())
    }

    fn of(text: impl Fn(&str) -> String) -> Self {
        Self {
            entity: text("entity"),
            player: text("player"),
            action: text("action"),
            find: text("find").trim().chars().take(FIND_CHARS_MAX).collect(),
            turn: text("turn"),
            lore: text("lore"),
            draft: Vec::new(),
        }
    }

    /// Whom the prompt is for.
    fn subject(&self) -> Result<Subject> {
        let whole = || Error::new(Code::ValidationFailed, "Choose who is asked.");
        let (kind, name) = self.entity.split_once(':').filter(|(_, name)| !name.is_empty()).ok_or_else(whole)?;
        if self.action.chars().count() > ACTION_CHARS_MAX {
            return Err(Error::new(
                Code::ValidationFailed,
                format!("An action may have at most {ACTION_CHARS_MAX} characters."),
            ));
        }
        let entity = |kind| {
            if self.player.is_empty() {
                return Err(Error::new(Code::ValidationFailed, "Choose the character who acts."));
            }
            Ok(Subject::Entity { kind, entity: name.to_owned(), player: self.player.clone() })
        };
        match kind {
            "npc" => entity(EntityKind::Npc),
            "owner" => entity(EntityKind::Owner),
            "session" => Uuid::try_parse(name).map(Subject::Session).map_err(|_| whole()),
            _ => Err(whole()),
        }
    }
}

/// The page with its lists. The first of each list is chosen by default.
async fn page_of(at: &InCampaign, mut asked: Asked) -> Result<LabPage> {
    let tx = at.read().await?;
    let campaign = Some(at.campaign.id.0);
    let by_name = "sort=name&limit=200";
    let npcs = resource::find_page::<Npcs>(&tx, &at.caller, campaign, &Page::<NpcFilter>::parse(by_name)?).await?;
    let owners =
        resource::find_page::<Owners>(&tx, &at.caller, campaign, &Page::<OwnerFilter>::parse(by_name)?).await?;
    let players =
        resource::find_page::<Characters>(&tx, &at.caller, campaign, &Page::<CharacterFilter>::parse(by_name)?).await?;
    let newest = Page::<SessionFilter>::parse("sort=-created_at&limit=50")?;
    let sessions = resource::find_page::<Sessions>(&tx, &at.caller, campaign, &newest).await?;
    let turns = past::turns(at, &tx).await?;
    let forgetful = forgetful(at, &npcs.items, &owners.items);
    let npcs: Vec<Choice> = npcs.items.into_iter().map(|n| (format!("npc:{}", n.slug), n.name)).collect();
    let owners: Vec<Choice> = owners.items.into_iter().map(|o| (format!("owner:{}", o.slug), o.name)).collect();
    let players: Vec<Choice> = players.items.into_iter().map(|c| (c.slug, c.name)).collect();
    let sessions: Vec<Choice> =
        sessions.items.into_iter().map(|s| (format!("session:{}", s.id.0), s.client_id.clone())).collect();
    if asked.entity.is_empty() {
        asked.entity =
            npcs.iter().chain(&owners).chain(&sessions).map(|(value, _)| value.clone()).next().unwrap_or_default();
    }
    if asked.player.is_empty() {
        asked.player = players.first().map(|(value, _)| value.clone()).unwrap_or_default();
    }
    Ok(LabPage {
        forgets: forgetful.into_iter().find(|(value, _)| *value == asked.entity).map(|(_, path)| path),
        no_player: players.is_empty().then(|| at.url("characters/new")),
        frame: at.frame("Prompt lab", Tab::PromptLab),
        path: at.url("lab"),
        lore_path: at.url("lore"),
        npcs,
        owners,
        sessions,
        players,
        turns,
        asked,
        may_play: at.may(Scope::Play),
        problem: None,
        view: None,
        past: None,
        said: None,
        draft: None,
    })
}

/// NPCs and owners without a tool to remember with, and their pages.
fn forgetful(at: &InCampaign, npcs: &[npc::Model], owners: &[owner::Model]) -> Vec<Choice> {
    let npcs = npcs.iter().filter(|n| !remembers(EntityKind::Npc, &n.available_tools.0));
    let owners = owners.iter().filter(|o| !remembers(EntityKind::Owner, &o.available_tools.0));
    let npcs = npcs.map(|n| (format!("npc:{}", n.slug), at.url(&format!("npcs/{}", n.id.0))));
    npcs.chain(owners.map(|o| (format!("owner:{}", o.slug), at.url(&format!("owners/{}", o.id.0))))).collect()
}

/// The text of an error that the user can correct; other errors are returned.
fn mendable(error: Error) -> Result<String> {
    if matches!(error.code.status(), 404 | 409 | 422 | 429 | 502 | 503 | 504) {
        let told: Vec<&str> = error.errors.iter().map(|e| e.message.as_str()).collect();
        return Ok(if told.is_empty() { error.detail.clone() } else { told.join(" ") });
    }
    Err(error)
}

fn question<'a>(at: &'a InCampaign, asked: &'a Asked, subject: &'a Subject) -> Question<'a> {
    Question {
        campaign: &at.campaign.slug,
        subject,
        action: &asked.action,
        mode: at.app.llm.reply_mode(&at.caller.tenant),
    }
}

/// GET of the prompt: `?entity=&player=&action=`, or `?turn=`. `&find=` filters its entries.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let mut asked = Asked::of_query(&at);
    if !asked.turn.is_empty() {
        let find = asked.find;
        asked = Asked { find, ..past::asked(&at, &asked.turn).await? };
    }
    let is_chosen = !asked.entity.is_empty();
    let mut page = page_of(&at, asked).await?;
    if is_chosen {
        look(&at, &mut page).await?;
    }
    at.show(&page)
}

async fn look(at: &InCampaign, page: &mut LabPage) -> Result<()> {
    let seen = match page.asked.subject() {
        Ok(subject) => lab::look(&at.app, &at.caller, &question(at, &page.asked, &subject)).await,
        Err(error) => Err(error),
    };
    match seen {
        Ok(preview) => {
            if !page.asked.turn.is_empty() {
                page.past = Some(past::beside(at, &page.asked.turn, &preview).await?);
            }
            page.view = Some(why::view(at, preview, &page.asked.action, &page.asked.find).await?);
        }
        Err(error) => page.problem = Some(mendable(error)?),
    }
    Ok(())
}

/// Asks the model and executes nothing.
pub async fn ask(at: InCampaign) -> Result<HttpResponse> {
    let mut page = page_of(&at, Asked::of_form(&at.form)).await?;
    look(&at, &mut page).await?;
    if page.problem.is_none() {
        let subject = page.asked.subject()?;
        match lab::rehearse(&at.app.turn(), &at.caller, &question(&at, &page.asked, &subject)).await {
            Ok(said) => page.said = Some(spoken(said)),
            Err(error) => page.problem = Some(mendable(error)?),
        }
    }
    if page.problem.is_some() { at.show_again(&page) } else { at.show(&page) }
}

fn spoken(said: Said) -> Spoken {
    Spoken {
        model: said.model,
        text: said.text,
        calls: said.calls,
        parse_error: said.parse_error,
        tokens: said.usage.prompt_tokens + said.usage.completion_tokens,
        cost: said.cost_micros.map(super::turn::cost),
        seconds: format!("{}.{:02}", said.milliseconds / 1000, said.milliseconds % 1000 / 10),
    }
}

/// Starts a real turn and redirects to its trace.
pub async fn take(at: InCampaign) -> Result<HttpResponse> {
    let asked = Asked::of_form(&at.form);
    let started = match asked.subject() {
        Ok(_) if asked.action.trim().is_empty() && !asked.entity.starts_with("session:") => {
            Err(Error::new(Code::ValidationFailed, "Write what the player does or says."))
        }
        Ok(subject) => lab::take(&at.app.turn(), &at.caller, &question(&at, &asked, &subject)).await,
        Err(error) => Err(error),
    };
    match started {
        Ok(turn) => Ok(at.done(&at.url(&format!("turns/{turn}")), "The turn has started.")),
        Err(error) => {
            let problem = mendable(error)?;
            let mut page = page_of(&at, asked).await?;
            look(&at, &mut page).await?;
            page.problem = Some(problem);
            at.show_again(&page)
        }
    }
}
