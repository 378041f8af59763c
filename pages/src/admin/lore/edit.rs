//! One lore entry: its form with autosave, the preview beside it, and the entries that link to it. If somebody else
//! saved first, the two versions are merged.

use std::collections::HashMap;

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use entity::lore;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    admin::{
        Frame, InCampaign, Tab,
        form::{self, Errors, FormView, Kind, Texts},
        markdown, merge,
        query::{encoded, given},
        saving::{Saved, Saving},
        world_form::{form_id, once, save_row, whole},
        world_row::{Current, World},
    },
    render_blocks,
};
use base::{
    clock,
    error::{Code, Error, Result},
    tokens,
};
use db::tenancy::{self, TenantTx};
use edge::{
    caller::Scope,
    http::{
        self, Answer,
        read::typed,
        resource::{self, Place, Resource},
    },
};
use world::lore::{
    CONTENT_CHARS_MAX, LoreEntries,
    links::{self, Backlink, MendInput},
    overview,
};

/// The most backlinks that are shown.
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
    /// An id for the form, so that a form that is sent twice creates one entry.
    form_id: Option<String>,
    /// More about an entry that exists already.
    known: Option<ExistingEntry>,
}
render_blocks!(EditPage: as_main);

/// What only an existing entry has.
struct ExistingEntry {
    id: Uuid,
    path: String,
    slug: String,
    version: i64,
    backlinks: Vec<Backlink>,
    backlinks_total: i64,
    /// Its former title, and how many entries still link to that title.
    renamed: Option<(String, i64)>,
    /// Its title when the page was loaded. Autosave may have changed the title before somebody presses the button.
    was_label: String,
    /// Its version when the page was loaded. The prompt lab compares with it.
    opened: i64,
}

/// The HTML of a Markdown text, with its links.
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
/// Database errors.
pub async fn new(at: InCampaign) -> Result<HttpResponse> {
    let texts = form::texts_of(LoreEntries::GROUPS, &LoreEntries::blank());
    at.show(&new_page(&at, clock::id().to_string(), &texts, &Errors::default()))
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
/// Errors that the form did not cause.
pub async fn create(at: InCampaign) -> Result<HttpResponse> {
    let texts = settled(form::texts_sent(LoreEntries::GROUPS, &at.form));
    let (form_id, path) = (form_id(&at), at.url("lore"));
    let page_again = |errors: &Errors| at.show_again(&new_page(&at, form_id.clone(), &texts, errors));
    let value = match whole(LoreEntries::GROUPS, &texts, LoreEntries::blank()) {
        Ok(value) => value,
        Err(errors) => return page_again(&errors),
    };
    let made = async {
        let once = once(&at, &form_id, &texts);
        let sent = (&typed(value)?, once.as_ref());
        resource::create::<LoreEntries>(&at.app, &at.caller, Some(&at.campaign_id()), &path, sent).await
    };
    match made.await {
        Ok(made) => Ok(at.redirect(made.location().unwrap_or(&path), "The entry was created.")),
        Err(error) => page_again(&Errors::of(LoreEntries::GROUPS, error)?),
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
    // Text that is too long to save is neither counted nor shown.
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
        known: Some(ExistingEntry {
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

/// The outcome of a request to save, for the bar of the page.
#[derive(Template)]
#[template(path = "admin/lore-saved.html", blocks = ["main"])]
struct SavedPiece {
    outcome: Outcome,
    /// The path of the entry, or of the list if the entry was deleted.
    path: String,
}
render_blocks!(SavedPiece: as_main);

enum Outcome {
    Saved {
        row: Head,
        at: String,
        /// Set if a button was pressed: the former title and how many entries still link to it, if any do.
        renamed: Option<Option<(String, i64)>>,
    },
    Wrong(Vec<String>),
    Late,
    Gone,
}

/// The values of an entry that the page shows around the form.
struct Head {
    version: i64,
    title: String,
    slug: String,
}

/// POST of a changed entry, by a button or by autosave. If somebody else saved first, the user sees both versions
/// merged, and nothing is written. A request with the field `autosave` gets only the outcome, so that the page stays.
///
/// # Errors
/// Errors that the form did not cause.
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
    // Back from the lab to the form, with the unsaved edit.
    if !given(at.request.query_string(), "go_on").is_empty() && saving.version == row.version {
        let mut page = page_with_errors(&at, &row, &saving, &Errors::default()).await?;
        page.frame.message = Some("These changes are not saved yet.".to_owned());
        return at.show(&page);
    }
    match save_row::<LoreEntries>(&at, &row, &saving).await {
        Err(error) if error.code == Code::NotFound => gone(&at),
        outcome if at.form.has("autosave") => answer_autosave(&at, &row, outcome?).await,
        outcome => answer_form(&at, &row, &saving, outcome?).await,
    }
}

/// An entry about everything has no name, even if the field still contains one.
pub fn settled(mut texts: Texts) -> Texts {
    if texts.get("scope").is_some_and(|scope| scope == "global")
        && let Some(name) = texts.get_mut("associated_id")
    {
        name.clear();
    }
    texts
}

/// The page again, with the submitted texts.
async fn page_with_errors(at: &InCampaign, row: &Current, saving: &Saving, errors: &Errors) -> Result<EditPage> {
    let form = FormView::over(LoreEntries::GROUPS, &row.view, &saving.texts, errors, false);
    let content = saving.texts.get("content").map(String::as_str).unwrap_or_default();
    edit_page(at, &at.read().await?, row, form, content).await
}

/// The response to a form that a browser sent: a page.
async fn answer_form(
    at: &InCampaign,
    row: &Current,
    saving: &Saving,
    outcome: Saved<lore::Model>,
) -> Result<HttpResponse> {
    match outcome {
        Saved::Done(_) => {
            let mut path = format!("{}/{}", at.url("lore"), row.id);
            let title = saving.texts.get("title").map(|t| t.trim()).unwrap_or_default();
            let was = at.form.get("was_label").unwrap_or(&row.label);
            if !links_same(title, was) {
                path = format!("{path}?renamed={}", encoded(was));
            }
            Ok(at.redirect(&path, "The entry was saved."))
        }
        Saved::Wrong(errors) => at.show_again(&page_with_errors(at, row, saving, &errors).await?),
        Saved::Late => {
            let row = at.current::<LoreEntries>(&at.read().await?, at.path("x")).await?;
            merge::page::<LoreEntries>(at, &row, &saving.texts, saving.version).await
        }
    }
}

/// The response to autosave: a fragment of the page.
async fn answer_autosave(at: &InCampaign, row: &Current, outcome: Saved<lore::Model>) -> Result<HttpResponse> {
    let path = format!("{}/{}", at.url("lore"), row.id);
    let (status, outcome) = match outcome {
        Saved::Done(saved) => {
            let row = match saved {
                Some(lore::Model { version, title, slug, .. }) => Head { version, title, slug },
                None => Head { version: row.version, title: row.label.clone(), slug: row.text("slug").to_owned() },
            };
            // Users are not asked about links while they type the title.
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

/// The title that the page was loaded with, if it differs and entries still link to it.
async fn renamed(at: &InCampaign, row: &Head) -> Result<Option<(String, i64)>> {
    let was = at.form.text("was_label");
    if was.is_empty() || links_same(&row.title, was) {
        return Ok(None);
    }
    let tx = at.read().await?;
    let (_, total) = links::backlinks(&tx, &at.caller, at.campaign.id.0, &[was], 1).await?;
    Ok((total > 0).then(|| (was.to_owned(), total)))
}

/// Somebody deleted the entry meanwhile. The user can create it again from the submitted texts.
fn gone(at: &InCampaign) -> Result<HttpResponse> {
    if at.form.has("autosave") {
        return at.show_with(StatusCode::NOT_FOUND, &SavedPiece { outcome: Outcome::Gone, path: at.url("lore") });
    }
    let why = "Somebody deleted this entry meanwhile. Your text is below. Save it to create the entry again.";
    let errors = Errors { general: vec![why.to_owned()], ..Errors::default() };
    let texts = form::texts_sent(LoreEntries::GROUPS, &at.form);
    at.show_with(StatusCode::NOT_FOUND, &new_page(at, clock::id().to_string(), &texts, &errors))
}

/// The errors, in sentences that name their fields.
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

/// POST of a text that is being edited, for its preview and token count. Nothing is saved.
///
/// # Errors
/// `payload_too_large`.
pub async fn preview(at: InCampaign) -> Result<HttpResponse> {
    let text = at.form.text("content");
    if text.chars().nth(CONTENT_CHARS_MAX).is_some() {
        return Err(Error::new(
            Code::PayloadTooLarge,
            format!("An entry may have at most {CONTENT_CHARS_MAX} characters."),
        ));
    }
    let tx = at.read().await?;
    let tokens = tokens::count_apart(text.to_owned()).await?;
    at.piece(&Preview { tokens, preview: preview_of(&at, &tx, text).await? })
}

/// POST that creates a copy.
///
/// # Errors
/// `not_found`, `quota_exceeded`.
pub async fn duplicate(at: InCampaign) -> Result<HttpResponse> {
    let key = once(&at, &form_id(&at), &"");
    let made = http::write(&at.app, &at.caller, key.as_ref(), async |tx| {
        at.app.limits.check_rows(tx, &at.caller, LoreEntries::TABLE).await?;
        let place = Place { tx, campaign: at.campaign.id.0, caller: &at.caller };
        let copy = overview::copy(&place, at.path("x"), None).await?;
        Ok(Answer::created(format!("{}/{}", at.url("lore"), copy.id), copy.version, copy.id))
    });
    let list = at.url("lore");
    Ok(at.redirect(made.await?.location().unwrap_or(&list), "This is the copy."))
}

/// POST that changes links to a former title into links to the present one.
///
/// # Errors
/// `not_found`.
pub async fn mend(at: InCampaign) -> Result<HttpResponse> {
    let input = MendInput { from: at.form.text("from").to_owned(), dry_run: false };
    let mended = tenancy::write(&at.app.pool, at.caller.actor(), async |tx| {
        links::mend_in(tx, &at.caller, at.campaign.id.0, at.path("x"), &input).await
    });
    let report = mended.await?;
    let path = match report.step_id {
        Some(step) => format!("{}/bulk/{step}", at.url("lore")),
        None => format!("{}/{}", at.url("lore"), at.path("x")),
    };
    Ok(at.redirect(&path, &format!("Entries with updated links: {}.", report.changed)))
}
