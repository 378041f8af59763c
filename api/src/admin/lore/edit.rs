//! One entry: its form with autosave, the preview beside it, what links to it. Who was slower than somebody else merges.

use std::collections::HashMap;

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use entity::lore as table;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::merge;
use crate::{
    actors,
    admin::{
        Frame, InCampaign, Tab,
        form::{self, Errors, FormView, Kind, Texts},
        markdown,
        world::{World, once},
    },
    auth::{Caller, Scope},
    clock,
    error::{Code, Error, Result},
    http::{
        self, Body, Reply,
        body::typed,
        etag::Expected,
        resource::{self, Place, Ref, Resource},
    },
    lore::{
        LoreEntries,
        links::{self, Backlink, MendInput},
        overview,
    },
    prompt::tokens,
    shown,
    tenancy::TenantTx,
};

/// Backlinks that are shown.
const BACKLINKS_MAX: i64 = 50;

/// An entry as it is stored, with slugs for those who know it.
pub struct Stored {
    pub entry: table::Model,
    pub view: Value,
}

/// An entry, and its view with slugs in place of ids.
pub async fn stored(at: &InCampaign, tx: &TenantTx, x: &str) -> Result<Stored> {
    let campaign = Ref::Id(at.campaign.id.0);
    let entry = resource::find::<LoreEntries>(tx, &at.caller, Some(&campaign), &Ref::parse(x)).await?;
    let known_by = actors::names(tx, &entry.known_by).await?;
    let mut view = resource::view::<LoreEntries>(entry.clone(), &at.caller)?;
    if let Some(members) = view.as_object_mut() {
        members.insert("known_by".to_owned(), json!(known_by));
    }
    Ok(Stored { entry, view })
}

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
    path: String,
    slug: String,
    version: i64,
    backlinks: Vec<Backlink>,
    backlinks_total: i64,
    /// Its former title, if entries link to that still.
    renamed: Option<(String, i64)>,
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
    let texts = form::texts_of(LoreEntries::GROUPS, &blank());
    at.show(&new_page(&at, uuid::Uuid::now_v7().to_string(), &texts, &Errors::default()))
}

/// What a form of a new entry begins with; what is left as it is here is not sent to the service.
fn blank() -> Value {
    json!({ "scope": "global", "enabled": true, "activation": "always", "logic": "and_any", "scan_depth": 2, "priority": 0 })
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
    let texts = form::texts_sent(LoreEntries::GROUPS, &at.form);
    let form_id: String = at.form.text("form_id").chars().take(64).collect();
    let patch = match form::changes(LoreEntries::GROUPS, &texts, &blank()) {
        Ok(patch) => form::without_nulls(patch),
        Err(errors) => return at.show_again(&new_page(&at, form_id, &texts, &errors)),
    };
    let mut whole = json!({ "scope": "global" });
    http::patch::merge(&mut whole, patch);
    let path = at.url("lore");
    let made = match typed(whole) {
        Ok(value) => {
            let body = Body { value, idempotency: Some(once(&at, &form_id, &texts)) };
            resource::create::<LoreEntries>(&at.app, &at.caller, Some(&at.campaign.id.0.to_string()), &path, body).await
        }
        Err(error) => Err(error),
    };
    match made {
        Ok(reply) => Ok(at.done(&reply.location.unwrap_or(path), "The entry was made.")),
        Err(error) => at.show_again(&new_page(&at, form_id, &texts, &Errors::of(LoreEntries::GROUPS, error)?)),
    }
}

/// GET of an entry.
///
/// # Errors
/// `not_found`.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let row = stored(&at, &tx, at.path("x")).await?;
    let texts = form::texts_of(LoreEntries::GROUPS, &row.view);
    let page = edit_page(&at, &tx, &row, &texts, &Errors::default()).await?;
    at.show(&page)
}

async fn edit_page(at: &InCampaign, tx: &TenantTx, row: &Stored, texts: &Texts, errors: &Errors) -> Result<EditPage> {
    let (entry, campaign) = (&row.entry, at.campaign.id.0);
    let path = format!("{}/{}", at.url("lore"), entry.id);
    let names = [entry.title.as_str(), entry.slug.as_str()];
    let (backlinks, backlinks_total) = links::backlinks(tx, &at.caller, campaign, &names, BACKLINKS_MAX).await?;
    let former = super::list::given(at.request.query_string(), "renamed");
    let renamed = match former.is_empty() || former == entry.title {
        true => None,
        false => Some(links::backlinks(tx, &at.caller, campaign, &[&former], 1).await?.1).filter(|n| *n > 0),
    };
    let content = texts.get("content").map(String::as_str).unwrap_or_default();
    Ok(EditPage {
        frame: at.frame(&entry.title, Tab::Lore),
        heading: entry.title.clone(),
        action: path.clone(),
        list: at.url("lore"),
        form: FormView::new(LoreEntries::GROUPS, texts, errors, None, !at.may(Scope::Write)),
        may_write: at.may(Scope::Write),
        may_see_history: at.may(Scope::Gm),
        tokens: tokens::count(content),
        preview: preview_of(at, tx, content).await?,
        form_id: None,
        known: Some(Known {
            path,
            slug: entry.slug.clone(),
            version: entry.version,
            backlinks,
            backlinks_total,
            renamed: renamed.map(|n| (former, n)),
        }),
    })
}

#[derive(Template)]
#[template(path = "admin/lore-saved.html", blocks = ["main"])]
struct SavedPiece {
    version: Option<i64>,
    at: String,
    problems: Vec<String>,
    is_conflict: bool,
}
shown!(SavedPiece: as_main);

/// POST of a changed entry, by a button or by the page itself while somebody writes. Who was slower than somebody else sees
/// both versions put together, and nothing is written.
///
/// # Errors
/// What is no fault of the form's.
pub async fn save(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let row = stored(&at, &tx, at.path("x")).await?;
    let mut texts = form::texts_sent(LoreEntries::GROUPS, &at.form);
    let Some(version) = at.form.version() else {
        return Err(Error::new(
            Code::BadRequest,
            "This form does not say what it was filled in from. Load the page again.",
        ));
    };
    let by_itself = at.form.has("autosave");
    if version != row.entry.version {
        return collision(&at, &tx, &row, &texts, version, by_itself).await;
    }
    merge::take_theirs(&at.form, &mut texts, &row.view);
    let patch = match form::changes(LoreEntries::GROUPS, &texts, &row.view) {
        Ok(patch) => patch,
        Err(errors) => return again(&at, &tx, &row, &texts, &errors, by_itself).await,
    };
    drop(tx);
    let saved = write(&at, &row, version, patch).await;
    match saved {
        Ok(now) if by_itself => {
            at.show(&SavedPiece { version: Some(now), at: clock_time(), problems: Vec::new(), is_conflict: false })
        }
        Ok(_) => {
            let mut path = format!("{}/{}", at.url("lore"), row.entry.id);
            let title = texts.get("title").map(|t| t.trim()).unwrap_or_default();
            if !links_same(title, &row.entry.title) {
                path = format!("{path}?renamed={}", super::list::encoded(&row.entry.title));
            }
            Ok(at.done(&path, "The entry was saved."))
        }
        Err(error) => {
            let tx = at.read().await?;
            if error.code == Code::PreconditionFailed {
                let row = stored(&at, &tx, at.path("x")).await?;
                return collision(&at, &tx, &row, &texts, version, by_itself).await;
            }
            let errors = Errors::of(LoreEntries::GROUPS, error)?;
            again(&at, &tx, &row, &texts, &errors, by_itself).await
        }
    }
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

/// Writes a patch over the version that was seen; returns the version there is now. What changes nothing writes nothing.
async fn write(at: &InCampaign, row: &Stored, version: i64, patch: Value) -> Result<i64> {
    if patch.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(version);
    }
    let (c, x) = (at.campaign.id.0.to_string(), row.entry.id.to_string());
    let expected = Expected::version(version);
    let reply = resource::change::<LoreEntries>(&at.app, &at.caller, &expected, Some(&c), &x, patch).await?;
    version_of(&reply)
}

fn version_of(reply: &Reply) -> Result<i64> {
    let row: Value = serde_json::from_slice(&reply.body).map_err(Error::internal)?;
    row.get("version").and_then(Value::as_i64).ok_or_else(|| Error::internal("a row without a version"))
}

async fn again(
    at: &InCampaign,
    tx: &TenantTx,
    row: &Stored,
    texts: &Texts,
    errors: &Errors,
    by_itself: bool,
) -> Result<HttpResponse> {
    if by_itself {
        let label = |name: &str| {
            let fields = LoreEntries::GROUPS.iter().flat_map(|g| g.fields);
            fields.into_iter().find(|f| f.name() == name).map_or("", |f| f.label)
        };
        let at_fields = errors.fields.iter().map(|(name, message)| format!("{}: {message}", label(name)));
        let problems = errors.general.iter().cloned().chain(at_fields).collect();
        return at.show_again(&SavedPiece { version: None, at: String::new(), problems, is_conflict: false });
    }
    at.show_again(&edit_page(at, tx, row, texts, errors).await?)
}

async fn collision(
    at: &InCampaign,
    tx: &TenantTx,
    row: &Stored,
    texts: &Texts,
    version: i64,
    by_itself: bool,
) -> Result<HttpResponse> {
    if by_itself {
        let piece = SavedPiece { version: None, at: String::new(), problems: Vec::new(), is_conflict: true };
        return at.show_with(StatusCode::CONFLICT, &piece);
    }
    let page = merge::page(at, tx, row, texts, version).await?;
    at.show_with(StatusCode::CONFLICT, &page)
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
    if text.chars().count() > crate::lore::CONTENT_CHARS_MAX {
        return Err(Error::new(Code::PayloadTooLarge, "An entry has at most 100,000 characters."));
    }
    let tx = at.read().await?;
    at.piece(&Preview { tokens: tokens::count(text), preview: preview_of(&at, &tx, text).await? })
}

/// POST that makes a copy.
///
/// # Errors
/// `not_found`, `quota_exceeded`.
pub async fn duplicate(at: InCampaign) -> Result<HttpResponse> {
    let tx = TenantTx::write(&at.app.pool, &at.caller.actor()).await?;
    at.app.limits.check_rows(&tx, &at.caller, LoreEntries::TABLE).await?;
    let place = Place { tx: &tx, campaign: at.campaign.id.0, caller: &at.caller };
    let copy = overview::copy(&place, at.path("x"), None).await?;
    tx.commit().await?;
    Ok(at.done(&format!("{}/{}", at.url("lore"), copy.id), "This is the copy."))
}

/// POST that makes links to a former title links to the present one.
///
/// # Errors
/// `not_found`.
pub async fn mend(at: InCampaign) -> Result<HttpResponse> {
    let tx = TenantTx::write(&at.app.pool, &at.caller.actor()).await?;
    let input = MendInput { from: at.form.text("from").to_owned(), dry_run: false };
    let report = links::mend_in(&tx, &at.caller, at.campaign.id.0, at.path("x"), &input).await?;
    tx.commit().await?;
    let path = match report.step_id {
        Some(step) => format!("{}/bulk/{step}", at.url("lore")),
        None => format!("{}/{}", at.url("lore"), at.path("x")),
    };
    Ok(at.done(&path, &format!("Links in {} entries were mended.", report.changed)))
}

/// Whether the caller may see what a merge shows of the journal.
#[must_use]
pub fn sees_journal(caller: &Caller) -> bool {
    caller.scopes.has(Scope::Gm)
}
