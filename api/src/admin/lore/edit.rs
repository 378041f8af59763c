//! One entry: its form with autosave, the preview beside it, what links to it. Who was slower than somebody else merges.

use std::collections::HashMap;

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use serde::Deserialize;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    admin::{
        Frame, InCampaign, Tab,
        form::{self, Errors, FormView, Kind, Texts},
        markdown, merge,
        query::{encoded, given},
        saving::{Saved, Saving},
        world::{Current, World, form_id, once, whole, written},
    },
    auth::Scope,
    clock,
    error::{Code, Error, Result},
    http::{
        self, Body, Reply,
        body::typed,
        resource::{self, Place, Resource},
    },
    lore::{
        CONTENT_CHARS_MAX, LoreEntries,
        links::{self, Backlink, MendInput},
        overview,
    },
    prompt::tokens,
    shown,
    tenancy::TenantTx,
};

/// Backlinks that are shown.
const BACKLINKS_MAX: i64 = 50;

#[derive(Template)]
#[template(path = "admin/lore-edit.html", blocks = ["main"])]
struct EditPage {
    frame: Frame,
    heading: String,
    action: String,
    list: String,
    form: FormView,
    may_write: bool,
    may_see_history: bool,
    tokens: u32,
    preview: String,
    /// So that a form that is sent twice makes one entry.
    form_id: Option<String>,
    /// Of an entry that is there already.
    known: Option<Known>,
}
shown!(EditPage: as_main);

/// What only an entry that is there has.
struct Known {
    id: Uuid,
    path: String,
    slug: String,
    version: i64,
    backlinks: Vec<Backlink>,
    backlinks_total: i64,
    /// Its former title, if entries link to that still.
    renamed: Option<(String, i64)>,
    /// Its title when this page was loaded: it may be saved under another before somebody presses the button.
    was_label: String,
    /// Its version then, with which the prompt lab compares.
    opened: i64,
}

/// The Markdown of a text, with its links.
async fn preview_of(at: &InCampaign, tx: &TenantTx, text: &str) -> Result<String> {
    let links = links::resolve(tx, &at.caller, at.campaign.id.0, text).await?;
    let place = |kind: &str| match kind {
        "npc" => "npcs",
        "owner" => "owners",
        "character" => "characters",
        _ => "lore",
    };
    let paths: HashMap<String, String> = links
        .into_iter()
        .filter_map(|link| {
            let path = format!("{}/{}", at.url(place(link.kind.as_deref()?)), link.id?);
            Some((link.name, path))
        })
        .collect();
    Ok(markdown::render(text, &paths))
}

/// GET of an empty form.
///
/// # Errors
/// Those of the database.
pub async fn new(at: InCampaign) -> Result<HttpResponse> {
    let texts = form::texts_of(LoreEntries::GROUPS, &LoreEntries::blank());
    at.show(&new_page(&at, Uuid::now_v7().to_string(), &texts, &Errors::default()))
}

fn new_page(at: &InCampaign, form_id: String, texts: &Texts, errors: &Errors) -> EditPage {
    EditPage {
        frame: at.frame("New lore entry", Tab::Lore),
        heading: "New lore entry".to_owned(),
        action: at.url("lore"),
        list: at.url("lore"),
        form: FormView::new(LoreEntries::GROUPS, texts, errors, None, false),
        may_write: true,
        may_see_history: false,
        tokens: 0,
        preview: String::new(),
        form_id: Some(form_id),
        known: None,
    }
}

/// POST of a new entry.
///
/// # Errors
/// What is no fault of the form's.
pub async fn create(at: InCampaign) -> Result<HttpResponse> {
    let texts = settled(form::texts_sent(LoreEntries::GROUPS, &at.form));
    let (form_id, path) = (form_id(&at), at.url("lore"));
    let again = |errors: &Errors| at.show_again(&new_page(&at, form_id.clone(), &texts, errors));
    let value = match whole(LoreEntries::GROUPS, &texts, LoreEntries::blank()) {
        Ok(value) => value,
        Err(errors) => return again(&errors),
    };
    let made = async {
        let body = Body { value: typed(value)?, idempotency: once(&at, &form_id, &texts) };
        resource::create::<LoreEntries>(&at.app, &at.caller, Some(&at.campaign_id()), &path, body).await
    };
    match made.await {
        Ok(reply) => Ok(at.done(reply.location.as_deref().unwrap_or(&path), "The entry was made.")),
        Err(error) => again(&Errors::of(LoreEntries::GROUPS, error)?),
    }
}

/// GET of an entry.
///
/// # Errors
/// `not_found`.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let row = at.current::<LoreEntries>(&tx, at.path("x")).await?;
    let form = FormView::of_row(LoreEntries::GROUPS, &row.view, !at.may(Scope::Write));
    let page = edit_page(&at, &tx, &row, form, row.text("content")).await?;
    at.show(&page)
}

async fn edit_page(at: &InCampaign, tx: &TenantTx, row: &Current, form: FormView, content: &str) -> Result<EditPage> {
    let campaign = at.campaign.id.0;
    let path = format!("{}/{}", at.url("lore"), row.id);
    let names = [row.label.as_str(), row.text("slug")];
    let (backlinks, backlinks_total) = links::backlinks(tx, &at.caller, campaign, &names, BACKLINKS_MAX).await?;
    let former = given(at.request.query_string(), "renamed");
    let renamed = match former.is_empty() || former == row.label {
        true => None,
        false => Some(links::backlinks(tx, &at.caller, campaign, &[&former], 1).await?.1).filter(|n| *n > 0),
    };
    // What is too long to be kept is neither counted nor shown.
    let shown = if content.chars().nth(CONTENT_CHARS_MAX).is_some() { "" } else { content };
    Ok(EditPage {
        frame: at.frame(&row.label, Tab::Lore),
        heading: row.label.clone(),
        action: path.clone(),
        list: at.url("lore"),
        form,
        may_write: at.may(Scope::Write),
        may_see_history: at.may(Scope::Gm),
        tokens: tokens::count_apart(shown.to_owned()).await?,
        preview: preview_of(at, tx, shown).await?,
        form_id: None,
        known: Some(Known {
            id: row.id,
            path,
            slug: row.text("slug").to_owned(),
            version: row.version,
            backlinks,
            backlinks_total,
            renamed: renamed.map(|n| (former, n)),
            was_label: at.form.get("was_label").unwrap_or(&row.label).to_owned(),
            opened: at.form.text("opened").parse().unwrap_or(row.version),
        }),
    })
}

/// What came of a request to save, as the page's bar tells it.
#[derive(Template)]
#[template(path = "admin/lore-saved.html", blocks = ["main"])]
struct SavedPiece {
    outcome: Outcome,
    /// Of the entry; of the list if it is gone.
    path: String,
}
shown!(SavedPiece: as_main);

enum Outcome {
    Saved {
        row: Head,
        at: String,
        /// If a button was pressed: its former title and how many entries link to that still, if any do.
        renamed: Option<Option<(String, i64)>>,
    },
    Wrong(Vec<String>),
    Late,
    Gone,
}

/// What the page around the form shows of an entry.
#[derive(Deserialize)]
struct Head {
    version: i64,
    title: String,
    slug: String,
}

/// POST of a changed entry, by a button or by the page itself while somebody writes. Who was slower than somebody else sees
/// both versions put together, and nothing is written. The page itself, which says so by the field `autosave`, is told what
/// came of it and stays.
///
/// # Errors
/// What is no fault of the form's.
pub async fn save(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let row = at.current::<LoreEntries>(&tx, at.path("x")).await;
    drop(tx);
    let row = match row {
        Err(error) if error.code == Code::NotFound => return gone(&at),
        row => row?,
    };
    let mut saving = Saving::of(LoreEntries::GROUPS, &at.form)?;
    saving.take_theirs(&at.form, &row.view);
    saving.texts = settled(saving.texts);
    // From the lab back to the form, with what is not saved yet.
    if !given(at.request.query_string(), "go_on").is_empty() && saving.version == row.version {
        let mut page = again(&at, &row, &saving, &Errors::default()).await?;
        page.frame.message = Some("Nothing of this is saved yet.".to_owned());
        return at.show(&page);
    }
    match written::<LoreEntries>(&at, &row, &saving).await {
        Err(error) if error.code == Code::NotFound => gone(&at),
        outcome if at.form.has("autosave") => told(&at, &row, outcome?).await,
        outcome => shown(&at, &row, &saving, outcome?).await,
    }
}

/// What is about everything is about nothing by name, whatever stands in the field still.
pub fn settled(mut texts: Texts) -> Texts {
    if texts.get("scope").is_some_and(|scope| scope == "global")
        && let Some(name) = texts.get_mut("associated_id")
    {
        name.clear();
    }
    texts
}

/// The page again with what was written.
async fn again(at: &InCampaign, row: &Current, saving: &Saving, errors: &Errors) -> Result<EditPage> {
    let form = FormView::over(LoreEntries::GROUPS, &row.view, &saving.texts, errors, false);
    let content = saving.texts.get("content").map(String::as_str).unwrap_or_default();
    edit_page(at, &at.read().await?, row, form, content).await
}

/// What came of a form that a browser sent: a page.
async fn shown(at: &InCampaign, row: &Current, saving: &Saving, outcome: Saved<Reply>) -> Result<HttpResponse> {
    match outcome {
        Saved::Done(_) => {
            let mut path = format!("{}/{}", at.url("lore"), row.id);
            let title = saving.texts.get("title").map(|t| t.trim()).unwrap_or_default();
            let was = at.form.get("was_label").unwrap_or(&row.label);
            if !links_same(title, was) {
                path = format!("{path}?renamed={}", encoded(was));
            }
            Ok(at.done(&path, "The entry was saved."))
        }
        Saved::Wrong(errors) => at.show_again(&again(at, row, saving, &errors).await?),
        Saved::Late => {
            let row = at.current::<LoreEntries>(&at.read().await?, at.path("x")).await?;
            merge::page::<LoreEntries>(at, &row, &saving.texts, saving.version).await
        }
    }
}

/// What came of what the page sent by itself: a piece of it.
async fn told(at: &InCampaign, row: &Current, outcome: Saved<Reply>) -> Result<HttpResponse> {
    let path = format!("{}/{}", at.url("lore"), row.id);
    let (status, outcome) = match outcome {
        Saved::Done(reply) => {
            let head = match reply {
                Some(reply) => serde_json::from_slice(&reply.body),
                None => Head::deserialize(&row.view),
            };
            let row: Head = head.map_err(Error::internal)?;
            // Nobody is asked about links while they write the title.
            let renamed = match at.form.text("autosave") {
                "pressed" => Some(renamed(at, &row).await?),
                _ => None,
            };
            (StatusCode::OK, Outcome::Saved { row, at: clock_time(), renamed })
        }
        Saved::Wrong(errors) => (StatusCode::UNPROCESSABLE_ENTITY, Outcome::Wrong(problems(&errors))),
        Saved::Late => (StatusCode::CONFLICT, Outcome::Late),
    };
    at.show_with(status, &SavedPiece { outcome, path })
}

/// The title that the page was loaded with, if it was another and entries link to that still.
async fn renamed(at: &InCampaign, row: &Head) -> Result<Option<(String, i64)>> {
    let was = at.form.text("was_label");
    if was.is_empty() || links_same(&row.title, was) {
        return Ok(None);
    }
    let tx = at.read().await?;
    let (_, total) = links::backlinks(&tx, &at.caller, at.campaign.id.0, &[was], 1).await?;
    Ok((total > 0).then(|| (was.to_owned(), total)))
}

/// Somebody deleted the entry meanwhile: what was written can be made anew.
fn gone(at: &InCampaign) -> Result<HttpResponse> {
    if at.form.has("autosave") {
        return at.show_with(StatusCode::NOT_FOUND, &SavedPiece { outcome: Outcome::Gone, path: at.url("lore") });
    }
    let why = "Somebody deleted this entry meanwhile. What you wrote stands below: saved, it is made anew.";
    let errors = Errors { general: vec![why.to_owned()], ..Errors::default() };
    let texts = form::texts_sent(LoreEntries::GROUPS, &at.form);
    at.show_with(StatusCode::NOT_FOUND, &new_page(at, Uuid::now_v7().to_string(), &texts, &errors))
}

/// What is wrong, in sentences that name their fields.
fn problems(errors: &Errors) -> Vec<String> {
    let label = |name: &str| {
        let fields = LoreEntries::GROUPS.iter().flat_map(|group| group.fields);
        fields.into_iter().find(|field| field.name() == name).map_or("", |field| field.label)
    };
    let at_fields = errors.fields.iter().map(|(name, message)| format!("{}: {message}", label(name)));
    errors.general.iter().cloned().chain(at_fields).collect()
}

/// Whether links to one title are links to the other.
fn links_same(one: &str, other: &str) -> bool {
    let key = |title: &str| title.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    key(one) == key(other)
}

fn clock_time() -> String {
    let now: OffsetDateTime = clock::now();
    format!("{:02}:{:02}:{:02} UTC", now.hour(), now.minute(), now.second())
}

#[derive(Template)]
#[template(path = "admin/lore-preview.html")]
struct Preview {
    tokens: u32,
    preview: String,
}

/// POST of a text that is being written, for its preview and tokens. Nothing is kept.
///
/// # Errors
/// `payload_too_large`.
pub async fn preview(at: InCampaign) -> Result<HttpResponse> {
    let text = at.form.text("content");
    if text.chars().nth(CONTENT_CHARS_MAX).is_some() {
        return Err(Error::new(Code::PayloadTooLarge, format!("An entry has at most {CONTENT_CHARS_MAX} characters.")));
    }
    let tx = at.read().await?;
    let tokens = tokens::count_apart(text.to_owned()).await?;
    at.piece(&Preview { tokens, preview: preview_of(&at, &tx, text).await? })
}

/// POST that makes a copy.
///
/// # Errors
/// `not_found`, `quota_exceeded`.
pub async fn duplicate(at: InCampaign) -> Result<HttpResponse> {
    let key = once(&at, &form_id(&at), &"");
    let made = http::write(&at.app, &at.caller, key.as_ref(), async |tx| {
        at.app.limits.check_rows(tx, &at.caller, LoreEntries::TABLE).await?;
        let place = Place { tx, campaign: at.campaign.id.0, caller: &at.caller };
        let copy = overview::copy(&place, at.path("x"), None).await?;
        Reply::created(format!("{}/{}", at.url("lore"), copy.id), copy.version, &copy.id)
    });
    let list = at.url("lore");
    Ok(at.done(made.await?.location.as_deref().unwrap_or(&list), "This is the copy."))
}

/// POST that makes links to a former title links to the present one.
///
/// # Errors
/// `not_found`.
pub async fn mend(at: InCampaign) -> Result<HttpResponse> {
    let input = MendInput { from: at.form.text("from").to_owned(), dry_run: false };
    let mended = http::write(&at.app, &at.caller, None, async |tx| {
        Reply::ok(&links::mend_in(tx, &at.caller, at.campaign.id.0, at.path("x"), &input).await?)
    });
    let report: Value = serde_json::from_slice(&mended.await?.body).map_err(Error::internal)?;
    let path = match report.get("step_id").and_then(Value::as_str) {
        Some(step) => format!("{}/bulk/{step}", at.url("lore")),
        None => format!("{}/{}", at.url("lore"), at.path("x")),
    };
    let changed = report.get("changed").and_then(Value::as_u64).unwrap_or_default();
    Ok(at.done(&path, &format!("Links in {changed} entries were mended.")))
}
