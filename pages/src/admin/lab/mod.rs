//! The prompt lab shows what a model would read for somebody's request, and why each lore entry is in or out. The user
//! can also look at an unsaved edit ([`draft`]) or at a past turn ([`past`]), and ask the model without saving
//! anything.

mod asked;
mod draft;
mod past;
mod why;

use actix_web::HttpResponse;
use askama::Template;
use entity::{npc, owner};
use url::form_urlencoded;

use self::{
    asked::{Asked, Choice},
    draft::Draft,
    past::Past,
    why::View,
};
use super::{Frame, InCampaign, Tab, query::given};
use crate::render_blocks;
use ai::{
    tools::remembers,
    turns::{
        clean::Removed,
        lab::{self, PromptSubject, Question, Side},
    },
};
use base::error::{Code, Error, Result};
use edge::{
    caller::Scope,
    http::{
        paging::{NoFilter, Page},
        resource,
    },
    model_profiles::service as profiles,
};
use entity::kind::EntityKind;
use world::{
    characters::{CharacterFilter, Characters},
    npcs::{NpcFilter, Npcs},
    owners::{OwnerFilter, Owners},
    sessions::{SessionFilter, Sessions},
};

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
    said: Vec<Spoken>,
    /// The tenant's model profiles, and whether each is asked.
    profiles: Vec<(String, bool)>,
    /// Where to read the request as JSON.
    request_path: String,
    draft: Option<Draft>,
}
render_blocks!(LabPage: as_main, "why" => as_why);

struct Spoken {
    /// The profile's slug; empty for the usual model.
    profile: String,
    problem: Option<String>,
    model: String,
    text: String,
    removed: Vec<Removed>,
    calls: Vec<(String, String)>,
    /// How the answer ended, if it is not complete.
    ending: &'static str,
    parse_error: Option<String>,
    tokens: String,
    cost: Option<String>,
    seconds: String,
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
    let known = profiles::list(&at.app, &tx, &Page::<NoFilter>::parse("limit=100")?).await?;
    let is_asked = |slug: &String| asked.profiles.contains(slug);
    let profiles = known.items.into_iter().map(|profile| (is_asked(&profile.slug), profile.slug));
    let profiles = profiles.map(|(is_asked, slug)| (slug, is_asked)).collect();
    if asked.entity.is_empty() {
        asked.entity =
            npcs.iter().chain(&owners).chain(&sessions).map(|(value, _)| value.clone()).next().unwrap_or_default();
    }
    if asked.player.is_empty() {
        asked.player = players.first().map(|(value, _)| value.clone()).unwrap_or_default();
    }
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("entity", &asked.entity), ("player", &asked.player), ("action", &asked.action)])
        .finish();
    let request_path = at.url(&format!("lab/request.json?{query}"));
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
        said: Vec::new(),
        profiles,
        request_path,
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

fn question<'a>(at: &'a InCampaign, asked: &'a Asked, subject: &'a PromptSubject) -> Question<'a> {
    Question { campaign: &at.campaign.slug, subject, action: &asked.action, mode: None }
}

/// GET of the prompt: `?entity=&player=&action=`, or `?turn=`. `&find=` filters its entries.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let mut asked = Asked::of_query(&at);
    if !asked.turn.is_empty() {
        let find = asked.find;
        asked = Asked { find, ..past::request_of_turn(&at, &asked.turn).await? };
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
        let asked = async {
            let trial = page.asked.trial()?;
            lab::rehearse(&at.app, &at.caller, &question(&at, &page.asked, &subject), &trial).await
        };
        match asked.await {
            Ok(sides) => page.said = sides.into_iter().map(spoken).collect(),
            Err(error) => page.problem = Some(mendable(error)?),
        }
    }
    if page.problem.is_some() { at.show_again(&page) } else { at.show(&page) }
}

/// Compares the prompt before and after an edit of a lore entry. POST of the entry's form, which comes from the entry's
/// page or from this page. `?lore=` or the field `lore` names the entry.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn compare(at: InCampaign) -> Result<HttpResponse> {
    let mut asked = Asked::of_form(&at.form);
    if asked.lore.is_empty() {
        asked.lore = given(at.request.query_string(), "lore");
    }
    asked.draft = draft::fields(&at);
    let mut page = page_of(&at, asked).await?;
    let compared = match (draft::changes(&at, &page.asked.lore).await, page.asked.subject()) {
        (Ok(changes), Ok(subject)) => {
            let edit =
                lab::Edit { lore: &page.asked.lore, changes: &changes, opened: at.form.text("opened").parse().ok() };
            lab::compare(&at.app, &at.caller, &question(&at, &page.asked, &subject), edit).await
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    match compared {
        Ok(compared) => {
            let (draft, after) = draft::of(compared, &page.asked.lore);
            page.draft = Some(draft);
            page.view = Some(why::view(&at, after, &page.asked.action, &page.asked.find).await?);
            at.show(&page)
        }
        Err(error) => {
            page.problem = Some(mendable(error)?);
            at.show_again(&page)
        }
    }
}

/// The request to the usual model as JSON, to be copied.
pub async fn request(at: InCampaign) -> Result<HttpResponse> {
    let asked = Asked::of_query(&at);
    let subject = asked.subject()?;
    let body = lab::request_body(&at.app, &at.caller, &question(&at, &asked, &subject), None).await?;
    Ok(HttpResponse::Ok().content_type("application/json").body(body))
}

fn spoken(side: Side) -> Spoken {
    let profile = side.profile.unwrap_or_default();
    match side.answer {
        Ok(said) => Spoken {
            profile,
            problem: None,
            model: said.model,
            text: said.text,
            removed: said.removed,
            calls: said.calls,
            ending: super::turn::how_it_ended(said.ending),
            parse_error: said.parse_error,
            tokens: format!(
                "{}{}",
                if said.usage.estimated { "about " } else { "" },
                said.usage.prompt_tokens + said.usage.completion_tokens
            ),
            cost: said.cost_micros.map(super::turn::cost),
            seconds: format!("{}.{:02}", said.milliseconds / 1000, said.milliseconds % 1000 / 10),
        },
        Err(why) => Spoken {
            profile,
            problem: Some(why),
            model: String::new(),
            text: String::new(),
            removed: Vec::new(),
            calls: Vec::new(),
            ending: "",
            parse_error: None,
            tokens: String::new(),
            cost: None,
            seconds: String::new(),
        },
    }
}

/// Starts a real turn and redirects to its trace.
pub async fn take(at: InCampaign) -> Result<HttpResponse> {
    let asked = Asked::of_form(&at.form);
    let started = match asked.subject() {
        Ok(_) if asked.action.trim().is_empty() && !asked.entity.starts_with("session:") => {
            Err(Error::new(Code::ValidationFailed, "Write what the player does or says."))
        }
        Ok(subject) => lab::take(&at.app, &at.caller, &question(&at, &asked, &subject)).await,
        Err(error) => Err(error),
    };
    match started {
        Ok(turn) => Ok(at.redirect(&at.url(&format!("turns/{turn}")), "The turn has started.")),
        Err(error) => {
            let problem = mendable(error)?;
            let mut page = page_of(&at, asked).await?;
            look(&at, &mut page).await?;
            page.problem = Some(problem);
            at.show_again(&page)
        }
    }
}
