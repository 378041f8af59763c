//! The rehearsal of actions: whom each would concern, and who would react. It asks no model and stores nothing.

use actix_web::HttpResponse;
use askama::Template;

use super::{
    Named,
    lines::{self, ERRORS_MAX, Line},
    number,
    of::Bar,
};
use crate::{
    admin::{Frame, InCampaign, Tab},
    render_blocks,
};
use base::error::{Code, FieldError, Result};
use edge::http::{paging::Page, resource};
use world::{
    characters::{CharacterFilter, Characters},
    significance::{
        rehearse::{self, Concerned, RehearsalInput, RehearsedAction},
        report::ActionReport,
        scores::Significance,
    },
};

#[derive(Template)]
#[template(path = "admin/rehearsal.html", blocks = ["main"])]
struct RehearsalPage {
    frame: Frame,
    path: String,
    queue: String,
    /// Where to create a character, if there is none.
    no_player: Option<String>,
    /// Characters: their slugs and names.
    players: Vec<(String, String)>,
    /// The types of actions and their scores.
    types: Vec<(String, String)>,
    cooldown: u32,
    player: String,
    actions: String,
    is_present: bool,
    problems: Vec<String>,
    result: Option<Vec<Played>>,
    /// Who reacts, and at which action.
    reacting: Vec<(String, usize)>,
}
render_blocks!(RehearsalPage: as_main);

/// An action of the result.
struct Played {
    nth: usize,
    line: String,
    score: String,
    concerned: Vec<Hit>,
}

/// What an action does to one entity.
struct Hit {
    entity: Named,
    why: &'static str,
    before: String,
    after: String,
    threshold: String,
    bar: Bar,
    reacts: bool,
    explanation: String,
}

impl Hit {
    fn new(at: &InCampaign, concerned: Concerned) -> Self {
        Self {
            entity: Named::entity(at, &concerned.entity),
            why: why(&concerned),
            before: number(concerned.before),
            after: number(concerned.after),
            threshold: concerned.threshold.map(|score| score.to_string()).unwrap_or_default(),
            bar: Bar::new(concerned.after, f64::from(concerned.threshold.unwrap_or_default())),
            reacts: concerned.reacts,
            explanation: concerned.explanation,
        }
    }
}

/// Why an action concerns an entity, in words.
fn why(concerned: &Concerned) -> &'static str {
    match (concerned.reason.as_str(), concerned.entity.kind.as_str()) {
        ("location", "npc") => "is at the location",
        ("location", _) => "watches over the location",
        ("race", _) => "watches over the character's race",
        ("profession", _) => "watches over the character's profession",
        ("faction", _) => "watches over the target's faction",
        _ => "is a target",
    }
}

/// The page with its lists. The first player is chosen by default.
async fn page_of(at: &InCampaign) -> Result<RehearsalPage> {
    let tx = at.read().await?;
    let by_name = Page::<CharacterFilter>::parse("sort=name&limit=200")?;
    let players = resource::find_page::<Characters>(&tx, &at.caller, Some(at.campaign.id.0), &by_name).await?;
    let players: Vec<_> = players.items.into_iter().map(|player| (player.slug, player.name)).collect();
    let settings = Significance::of(&at.campaign.settings.0);
    Ok(RehearsalPage {
        frame: at.frame("Rehearsal", Tab::Rehearsal),
        path: at.url("rehearsal"),
        queue: at.url("reactions"),
        no_player: players.is_empty().then(|| at.url("characters/new")),
        player: players.first().map(|(slug, _)| slug.clone()).unwrap_or_default(),
        players,
        types: settings.types().into_iter().map(|(name, score)| (name, number(score))).collect(),
        cooldown: settings.cooldown_seconds(),
        actions: String::new(),
        is_present: false,
        problems: Vec::new(),
        result: None,
        reacting: Vec::new(),
    })
}

/// GET of the form.
///
/// # Errors
/// Database errors.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    at.show(&page_of(&at).await?)
}

/// POST of actions. It changes nothing, so a form that is sent twice shows the same result.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn play(at: InCampaign) -> Result<HttpResponse> {
    let mut page = page_of(&at).await?;
    page.player = at.form.text("player").trim().to_owned();
    page.actions = at.form.text("actions").to_owned();
    page.is_present = at.form.has("from_present");
    if page.player.is_empty() {
        page.problems.push("Choose the character who acts.".to_owned());
        return at.show_again(&page);
    }
    let types = Significance::of(&at.campaign.settings.0).types();
    let lines = match lines::read(&page.actions, &page.player, &types) {
        Ok(lines) => lines,
        Err(problems) => {
            page.problems = problems;
            return at.show_again(&page);
        }
    };
    match rehearsed(&at, &lines, page.is_present).await {
        Ok(actions) => {
            fill(&at, &mut page, &lines, actions);
            at.show(&page)
        }
        Err(error) if error.code == Code::ValidationFailed => {
            page.problems = error.errors.iter().take(ERRORS_MAX).map(|error| problem_text(error, &lines)).collect();
            at.show_again(&page)
        }
        Err(error) => Err(error),
    }
}

async fn rehearsed(at: &InCampaign, lines: &[Line], from_present: bool) -> Result<Vec<RehearsedAction>> {
    let actions: Vec<ActionReport> = lines.iter().map(|line| line.report.clone()).collect();
    let campaign = at.campaign.id.0.to_string();
    let tx = at.read().await?;
    let input = RehearsalInput { actions, from_present };
    rehearse::rehearse(&tx, &at.caller, &campaign, &input).await.map(|rehearsal| rehearsal.actions)
}

/// Puts the result on the page.
fn fill(at: &InCampaign, page: &mut RehearsalPage, lines: &[Line], actions: Vec<RehearsedAction>) {
    let played = (1..).zip(lines).zip(actions).map(|((nth, line), action)| Played {
        nth,
        line: line.text.clone(),
        score: number(action.score),
        concerned: action.concerned.into_iter().map(|concerned| Hit::new(at, concerned)).collect(),
    });
    let played: Vec<Played> = played.collect();
    let reacts = |action: &Played| {
        let who = action.concerned.iter().filter(|hit| hit.reacts);
        who.map(|hit| (hit.entity.name.clone(), action.nth)).collect::<Vec<_>>()
    };
    page.reacting = played.iter().flat_map(reacts).collect();
    page.result = Some(played);
}

/// An error of the service, with the line that it is about.
fn problem_text(error: &FieldError, lines: &[Line]) -> String {
    let mut parts = error.pointer.split('/').skip(2);
    let line = parts.next().and_then(|nth| nth.parse::<usize>().ok()).and_then(|nth| lines.get(nth));
    let (Some(line), member) = (line, parts.next()) else { return error.message.clone() };
    let target = parts.next().and_then(|nth| nth.parse::<usize>().ok()).and_then(|nth| line.report.targets.get(nth));
    match (member, target) {
        (Some("targets"), Some(target)) => format!("Line {}, “{target}”: {}", line.number, error.message),
        (Some("text"), _) => format!("Line {}, the text: {}", line.number, error.message),
        (Some("location"), _) => format!("Line {}, the place: {}", line.number, error.message),
        _ => format!("Line {}: {}", line.number, error.message),
    }
}
