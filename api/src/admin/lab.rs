//! The prompt lab: for whom and for what, and then exactly what a model would be told, and why each lore entry is in or out. An edit
//! about to be saved can be looked at here, and the model asked, before anything is written.

use actix_web::HttpResponse;
use askama::Template;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Frame, InCampaign, Tab,
    form::{self, Errors},
    query::given,
    submitted::Submitted,
    world::World,
};
use crate::{
    auth::Scope,
    characters::{CharacterFilter, Characters},
    error::{Code, Error, Result},
    http::{paging::Page, resource},
    lore::{LoreEntries, overview},
    npcs::{NpcFilter, Npcs},
    owners::{OwnerFilter, Owners},
    prompt::{EntityKind, LoreDecision, lore::finds, preview::Preview},
    sessions::{SessionFilter, Sessions},
    shown,
    turns::lab::{self, Compared, Question, Said, Subject},
};

/// Entries of one list that are shown.
const ENTRIES_SHOWN: usize = 200;
const ACTION_CHARS_MAX: usize = 4000;

/// A choice of a list: what is sent, what is read.
type Choice = (String, String);

#[derive(Template)]
#[template(path = "admin/lab.html", blocks = ["main"])]
struct LabPage {
    frame: Frame,
    path: String,
    lore_path: String,
    npcs: Vec<Choice>,
    owners: Vec<Choice>,
    sessions: Vec<Choice>,
    players: Vec<Choice>,
    asked: Asked,
    may_play: bool,
    problem: Option<String>,
    view: Option<View>,
    said: Option<Spoken>,
    draft: Option<Draft>,
}
shown!(LabPage: as_main);

/// What was chosen.
#[derive(Clone, Default)]
struct Asked {
    /// `npc:slug`, `owner:slug` or `session:id`.
    entity: String,
    player: String,
    action: String,
    lore: String,
    /// The edit as JSON.
    draft: String,
}

struct View {
    cache: &'static str,
    total_tokens: u32,
    base_tokens: u32,
    sections: Vec<Part>,
    /// Those that are in first.
    lore: Vec<Entry>,
    inside: usize,
    woken: usize,
    outside: usize,
    messages: Vec<(String, String)>,
}

struct Entry {
    id: Uuid,
    title: String,
    is_in: bool,
    reason: String,
    /// Its keys, and whether the action holds them.
    keys: Vec<(String, bool)>,
    /// What is asked of its secondary keys, if it has any.
    further: String,
}

struct Part {
    name: String,
    tokens: u32,
    /// Of all tokens, in hundredths.
    percent: u32,
    text: String,
    cut: String,
}

struct Draft {
    title: String,
    before_tokens: u32,
    after_tokens: u32,
    /// Sections that change: their text before and after.
    changed: Vec<Changed>,
    /// The entry itself: in or out, before and after.
    was: String,
    is: String,
    stale: Vec<lab::Stale>,
}

struct Changed {
    name: String,
    before: String,
    after: String,
    before_tokens: u32,
    after_tokens: u32,
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
        let text = |name: &str| given(at.request.query_string(), name);
        Self {
            entity: text("entity"),
            player: text("player"),
            action: text("action"),
            lore: text("lore"),
            draft: String::new(),
        }
    }

    fn of_form(form: &Submitted) -> Self {
        let text = |name: &str| form.text(name).to_owned();
        Self {
            entity: text("entity"),
            player: text("player"),
            action: text("action"),
            lore: text("lore"),
            draft: text("draft"),
        }
    }

    /// Whose prompt it is.
    fn subject(&self) -> Result<Subject> {
        let whole = || Error::new(Code::ValidationFailed, "Choose who is asked.");
        let (kind, name) = self.entity.split_once(':').filter(|(_, name)| !name.is_empty()).ok_or_else(whole)?;
        if self.action.chars().count() > ACTION_CHARS_MAX {
            return Err(Error::new(
                Code::ValidationFailed,
                format!("An action has at most {ACTION_CHARS_MAX} characters."),
            ));
        }
        let entity = |kind| {
            if self.player.is_empty() {
                return Err(Error::new(Code::ValidationFailed, "Choose the player character who acts."));
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

/// The page with its lists; those who are chosen first are the first of them.
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
        frame: at.frame("Prompt lab", Tab::PromptLab),
        path: at.url("lab"),
        lore_path: at.url("lore"),
        npcs,
        owners,
        sessions,
        players,
        asked,
        may_play: at.may(Scope::Play),
        problem: None,
        view: None,
        said: None,
        draft: None,
    })
}

/// What went wrong, if it is something that the person can mend; all else goes on.
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

/// `?entity=&player=&action=`, or `?turn=`: the prompt.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let mut asked = Asked::of_query(&at);
    let turn = given(at.request.query_string(), "turn");
    if !turn.is_empty() {
        let turn = Uuid::try_parse(&turn).map_err(|_| Error::not_found("turn"))?;
        asked = of_turn(&at, turn).await?;
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
        Ok(preview) => page.view = Some(view(at, preview, &page.asked.action).await?),
        Err(error) => page.problem = Some(mendable(error)?),
    }
    Ok(())
}

/// What a past turn was about, in the words of the page's lists.
async fn of_turn(at: &InCampaign, turn: Uuid) -> Result<Asked> {
    let tx = at.read().await?;
    let Some((subject, action)) = lab::of_turn(&tx, at.campaign.id.0, turn).await? else {
        return Ok(Asked::default());
    };
    let campaign = resource::Ref::Id(at.campaign.id.0);
    let named = |id: &str| resource::Ref::parse(id);
    let mut asked = Asked { action, ..Asked::default() };
    match subject {
        Subject::Session(id) => asked.entity = format!("session:{id}"),
        Subject::Entity { kind, entity, player } => {
            asked.entity = match kind {
                EntityKind::Npc => {
                    let npc = resource::find::<Npcs>(&tx, &at.caller, Some(&campaign), &named(&entity)).await?;
                    format!("npc:{}", npc.slug)
                }
                EntityKind::Owner => {
                    let owner = resource::find::<Owners>(&tx, &at.caller, Some(&campaign), &named(&entity)).await?;
                    format!("owner:{}", owner.slug)
                }
            };
            asked.player = resource::find::<Characters>(&tx, &at.caller, Some(&campaign), &named(&player)).await?.slug;
        }
    }
    Ok(asked)
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

async fn view(at: &InCampaign, preview: Preview, action: &str) -> Result<View> {
    let total = preview.total_tokens.max(1);
    let inside = preview.lore.iter().filter(|entry| entry.included).count();
    let outside = preview.lore.len() - inside;
    let woken = preview.lore.iter().filter(|entry| entry.included && entry.reason.starts_with("keyword")).count();
    Ok(View {
        cache: preview.cache,
        total_tokens: preview.total_tokens,
        base_tokens: preview.base_tokens,
        lore: entries(at, preview.lore, action).await?,
        inside,
        woken,
        outside,
        sections: preview
            .sections
            .into_iter()
            .map(|s| Part {
                name: words(s.name),
                tokens: s.tokens,
                percent: s.tokens.saturating_mul(100) / total,
                text: s.text,
                cut: s.cut,
            })
            .collect(),
        messages: preview
            .messages
            .into_iter()
            .map(|m| (json!(m.role).as_str().unwrap_or_default().to_owned(), m.content))
            .collect(),
    })
}

/// Entries with what wakes them. What nearly came in is of more interest than what concerns somebody else.
async fn entries(at: &InCampaign, mut lore: Vec<LoreDecision>, action: &str) -> Result<Vec<Entry>> {
    lore.sort_by_key(|entry| (!entry.included, entry.reason.starts_with("scope") && !entry.included));
    let inside = lore.iter().filter(|entry| entry.included).count();
    lore.truncate(inside + ENTRIES_SHOWN);
    let ids: Vec<Uuid> = lore.iter().map(|entry| entry.id).collect();
    let mut waking = overview::waking(&at.read().await?, &ids).await?;
    let action = action.to_lowercase();
    let marked = |keys: Vec<String>| -> Vec<(String, bool)> {
        keys.into_iter()
            .map(|key| {
                let found = finds(&action, key.trim().to_lowercase().as_str());
                (key, found)
            })
            .collect()
    };
    Ok(lore
        .into_iter()
        .map(|entry| {
            let its = waking.remove(&entry.id);
            let (title, keys, further) = match its {
                None => (entry.slug.clone(), Vec::new(), String::new()),
                Some(its) => (its.title, its.keys, further(&its.logic, &its.secondary_keys)),
            };
            Entry { id: entry.id, title, is_in: entry.included, reason: entry.reason, keys: marked(keys), further }
        })
        .collect())
}

/// What is asked of secondary keys, in words.
fn further(logic: &str, keys: &[String]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let asked = match logic {
        "and_all" => "and all of",
        "not_any" => "but none of",
        "not_all" => "but not all of",
        _ => "and one of",
    };
    format!("{asked} {}", keys.join(", "))
}

/// Asks the model and executes nothing.
pub async fn ask(at: InCampaign) -> Result<HttpResponse> {
    let mut page = page_of(&at, Asked::of_form(&at.form)).await?;
    look(&at, &mut page).await?;
    if page.problem.is_none() {
        let subject = page.asked.subject()?;
        match lab::rehearse(&at.app, &at.caller, &question(&at, &page.asked, &subject)).await {
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

/// Takes the turn for real and goes to its trace.
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
        Ok(turn) => Ok(at.done(&at.url(&format!("turns/{turn}")), "The turn was taken.")),
        Err(error) => {
            let problem = mendable(error)?;
            let mut page = page_of(&at, asked).await?;
            look(&at, &mut page).await?;
            page.problem = Some(problem);
            at.show_again(&page)
        }
    }
}

/// An edit of a lore entry that is about to be saved, `?lore=` or the field `lore`, with the fields of the entry's form or, as
/// this page sends it again, as JSON: the prompt before and after.
pub async fn compare(at: InCampaign) -> Result<HttpResponse> {
    let mut asked = Asked::of_form(&at.form);
    if asked.lore.is_empty() {
        asked.lore = Asked::of_query(&at).lore;
    }
    if asked.draft.is_empty() {
        match changes_sent(&at, &asked.lore).await {
            Ok(draft) => asked.draft = draft,
            Err(error) => {
                let problem = mendable(error)?;
                let mut page = page_of(&at, asked).await?;
                page.problem = Some(problem);
                return at.show_again(&page);
            }
        }
    }
    let mut page = page_of(&at, asked).await?;
    let changes: Value = serde_json::from_str(&page.asked.draft)
        .map_err(|_| Error::new(Code::BadRequest, "This edit cannot be read."))?;
    let compared = match page.asked.subject() {
        Ok(subject) => {
            lab::compare(&at.app, &at.caller, &question(&at, &page.asked, &subject), &page.asked.lore, &changes).await
        }
        Err(error) => Err(error),
    };
    match compared {
        Ok(compared) => {
            let (draft, after) = draft(compared, &page.asked.lore);
            (page.draft, page.view) = (Some(draft), Some(view(&at, after, &page.asked.action).await?));
            at.show(&page)
        }
        Err(error) => {
            page.problem = Some(mendable(error)?);
            at.show_again(&page)
        }
    }
}

/// What the form of a lore entry changes of it, as its own page would save it.
async fn changes_sent(at: &InCampaign, lore: &str) -> Result<String> {
    let row = at.current::<LoreEntries>(&at.read().await?, lore).await?;
    let texts = form::texts_given(LoreEntries::GROUPS, &at.form);
    let wrong = form::too_long(LoreEntries::GROUPS, &texts);
    let changes = wrong.map_or_else(|| form::changes(LoreEntries::GROUPS, &texts, &row.view), Err);
    let told =
        |errors: Errors| errors.fields.into_iter().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>();
    changes.map(|patch| patch.to_string()).map_err(|errors| Error::new(Code::ValidationFailed, told(errors).join(" ")))
}

fn draft(compared: Compared, lore: &str) -> (Draft, Preview) {
    let state = |preview: &Preview| {
        let entry = preview.lore.iter().find(|e| e.slug == lore || e.id.to_string() == lore);
        entry.map_or_else(
            || "not looked at".to_owned(),
            |e| format!("{} ({})", if e.included { "in" } else { "out" }, e.reason),
        )
    };
    let mut changed = Vec::new();
    for after in &compared.after.sections {
        let before = compared.before.sections.iter().find(|s| s.name == after.name);
        if before.is_some_and(|before| before.text == after.text) {
            continue;
        }
        changed.push(Changed {
            name: words(after.name),
            before: before.map(|s| s.text.clone()).unwrap_or_default(),
            before_tokens: before.map_or(0, |s| s.tokens),
            after: after.text.clone(),
            after_tokens: after.tokens,
        });
    }
    let draft = Draft {
        title: compared.title,
        before_tokens: compared.before.total_tokens,
        after_tokens: compared.after.total_tokens,
        was: state(&compared.before),
        is: state(&compared.after),
        changed,
        stale: compared.stale,
    };
    (draft, compared.after)
}
