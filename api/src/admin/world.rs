//! List, form, conflict and deletion, the same for every kind of world row that has fields. The work is `http::resource`'s, so
//! that rules, versions and the journal are those of the API.
//!
//! A kind says what it is called, its fields and what its list shows ([`World`]), and has its lines in `PAGES`.

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    Editor, Frame, InCampaign, Tab,
    form::{self, Errors, FormView, Group, Kind, Texts},
    list::ListPage,
};
use crate::{
    error::{Code, Error, Result},
    http::{
        Body, Reply,
        body::typed,
        etag::Expected,
        idempotency::IdempotencyKey,
        paging::Page,
        resource::{self, Ref, Resource},
    },
    shown,
};

/// What the editor knows of a kind.
pub trait World: Resource {
    const TAB: Tab;
    /// `NPC`, `NPCs`, and the path's word.
    const ONE: &'static str;
    const MANY: &'static str;
    const PATH: &'static str;
    /// What it is for, under the list's title.
    const ABOUT: &'static str;
    const GROUPS: &'static [Group];
    /// The list's columns after the name.
    const COLUMNS: &'static [&'static str];

    /// What stands in the columns.
    fn cells(model: &Self::Model) -> Vec<String>;
}

#[derive(Template)]
#[template(path = "admin/world-form.html", blocks = ["main"])]
pub(super) struct FormPage {
    pub(super) frame: Frame,
    pub(super) heading: String,
    /// Where the form goes.
    pub(super) action: String,
    pub(super) back: String,
    pub(super) many: &'static str,
    pub(super) version: Option<i64>,
    /// So that a form that is sent twice makes one row.
    pub(super) form_id: Option<String>,
    pub(super) delete_path: Option<String>,
    pub(super) slug: Option<String>,
    pub(super) form: FormView,
    /// Somebody changed the row since.
    pub(super) is_conflict: bool,
}
shown!(FormPage: as_main);

#[derive(Template)]
#[template(path = "admin/world-delete.html", blocks = ["main"])]
pub(super) struct DeletePage {
    pub(super) frame: Frame,
    pub(super) one: &'static str,
    pub(super) label: String,
    pub(super) back: String,
    pub(super) version: i64,
    pub(super) problem: Option<String>,
    /// What has to be written to delete it.
    pub(super) repeat: Option<String>,
}
shown!(DeletePage: as_main);

/// A row as it is now: what people call it, its version, and its JSON.
struct Current {
    id: Uuid,
    label: String,
    version: i64,
    view: Value,
}

impl InCampaign {
    async fn current<W: World>(&self, x: &str) -> Result<Current> {
        let tx = self.read().await?;
        let campaign = Ref::Id(self.campaign.id.0);
        let model = resource::find::<W>(&tx, &self.caller, Some(&campaign), &Ref::parse(x)).await?;
        let stamp = W::stamp(&model);
        let (id, label, version) = (stamp.id, stamp.label.to_owned(), stamp.version);
        Ok(Current { id, label, version, view: resource::view::<W>(model, &self.caller)? })
    }

    fn campaign_id(&self) -> String {
        self.campaign.id.0.to_string()
    }

    fn may_write(&self) -> bool {
        self.may(crate::auth::Scope::Write)
    }
}

/// GET of the list: `q`, `sort`, `cursor` and the kind's filters, as the API takes them.
///
/// # Errors
/// `bad_request` for parameters that are none.
pub async fn list<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let page = Page::<W::Filter>::parse(&super::list::query(&at, "name", &[]))?;
    let tx = at.read().await?;
    let found = resource::find_page::<W>(&tx, &at.caller, Some(at.campaign.id.0), &page).await?;
    let mut shown = ListPage::new(&at, W::MANY, W::TAB, W::PATH);
    (shown.about, shown.columns) = (W::ABOUT, W::COLUMNS);
    shown.new = at.may_write().then(|| (at.url(&format!("{}/new", W::PATH)), format!("New {}", W::ONE)));
    for model in &found.items {
        let stamp = W::stamp(model);
        shown.add(&stamp.id.to_string(), stamp.label.to_owned(), W::cells(model));
    }
    shown.pages(&at, found.next_cursor, page.after.is_some());
    at.show(&shown)
}

fn new_page<W: World>(at: &InCampaign, form_id: String, texts: &Texts, errors: &Errors) -> FormPage {
    FormPage {
        frame: at.frame(&format!("New {}", W::ONE), W::TAB),
        heading: format!("New {}", W::ONE),
        action: at.url(W::PATH),
        back: at.url(W::PATH),
        many: W::MANY,
        version: None,
        form_id: Some(form_id),
        delete_path: None,
        slug: None,
        form: FormView::new(W::GROUPS, texts, errors, None, false),
        is_conflict: false,
    }
}

/// GET of the form for a new row.
///
/// # Errors
/// `internal`.
pub async fn new<W: World>(at: InCampaign) -> Result<HttpResponse> {
    at.show(&new_page::<W>(&at, Uuid::now_v7().to_string(), &Texts::new(), &Errors::default()))
}

/// POST of a new row.
///
/// # Errors
/// What is no fault of the form's.
pub async fn create<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let texts = form::texts_sent(W::GROUPS, &at.form);
    let form_id: String = at.form.text("form_id").chars().take(64).collect();
    let again = |errors: &Errors| at.show_again(&new_page::<W>(&at, form_id.clone(), &texts, errors));
    let value = match form::changes(W::GROUPS, &texts, &Value::Null) {
        Ok(value) => form::without_nulls(value),
        Err(errors) => return again(&errors),
    };
    let made = async {
        let idempotency = once(&at, &form_id, &texts);
        let body = Body { value: typed(value)?, idempotency: Some(idempotency) };
        resource::create::<W>(&at.app, &at.caller, Some(&at.campaign_id()), &at.url(W::PATH), body).await
    };
    match made.await {
        Ok(reply) => Ok(at.done(&row_path::<W>(&at, &reply)?, &format!("The {} was made.", W::ONE))),
        Err(error) => again(&Errors::of(W::GROUPS, error)?),
    }
}

/// A form that is sent twice as it is makes one row.
pub(super) fn once(at: &Editor, form_id: &str, texts: &Texts) -> IdempotencyKey {
    let fingerprint = Sha256::digest(format!("{texts:?}")).to_vec();
    let print: String = fingerprint.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let key = format!("{}:{form_id}:{print}", at.user.id);
    IdempotencyKey { key, route: format!("POST {}", at.request.path()), fingerprint }
}

fn row_path<W: World>(at: &InCampaign, reply: &Reply) -> Result<String> {
    let row: Value = serde_json::from_slice(&reply.body).map_err(Error::internal)?;
    let id = row.get("id").and_then(Value::as_str).unwrap_or_default();
    Ok(format!("{}/{id}", at.url(W::PATH)))
}

fn edit_page<W: World>(at: &InCampaign, row: &Current, form: FormView, is_conflict: bool) -> FormPage {
    let path = format!("{}/{}", at.url(W::PATH), row.id);
    FormPage {
        frame: at.frame(&row.label, W::TAB),
        heading: row.label.clone(),
        back: at.url(W::PATH),
        many: W::MANY,
        version: Some(row.version),
        form_id: None,
        delete_path: at.may_write().then(|| format!("{path}/delete")),
        slug: row.view.get("slug").and_then(Value::as_str).map(ToOwned::to_owned),
        action: path,
        form,
        is_conflict,
    }
}

/// GET of a row: its form, which only those who may write can send.
///
/// # Errors
/// `not_found`.
pub async fn edit<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let row = at.current::<W>(at.path("x")).await?;
    let texts = form::texts_of(W::GROUPS, &row.view);
    let form = FormView::new(W::GROUPS, &texts, &Errors::default(), None, !at.may_write());
    at.show(&edit_page::<W>(&at, &row, form, false))
}

/// POST of a changed row. Who was slower than somebody else sees both versions, and nothing is written.
///
/// # Errors
/// What is no fault of the form's.
pub async fn save<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let row = at.current::<W>(at.path("x")).await?;
    let texts = form::texts_sent(W::GROUPS, &at.form);
    let Some(version) = at.form.version() else {
        return Err(Error::new(
            Code::BadRequest,
            "This form does not say what it was filled in from. Load the page again.",
        ));
    };
    let again = |errors: &Errors, row: &Current| {
        let form = FormView::new(W::GROUPS, &texts, errors, None, false);
        at.show_again(&edit_page::<W>(&at, row, form, false))
    };
    if version != row.version {
        return conflict::<W>(&at, &texts, &row);
    }
    let patch = match form::changes(W::GROUPS, &texts, &row.view) {
        Ok(patch) => patch,
        Err(errors) => return again(&errors, &row),
    };
    let (c, x) = (at.campaign_id(), row.id.to_string());
    let saved = resource::change::<W>(&at.app, &at.caller, &Expected::version(version), Some(&c), &x, patch).await;
    match saved {
        Ok(_) => Ok(at.done(&format!("{}/{x}", at.url(W::PATH)), &format!("The {} was saved.", W::ONE))),
        Err(error) if error.code == Code::PreconditionFailed => {
            let row = at.current::<W>(&x).await?;
            conflict::<W>(&at, &texts, &row)
        }
        Err(error) => again(&Errors::of(W::GROUPS, error)?, &row),
    }
}

/// Both versions: what was written here in the fields, what is stored now beside those that differ.
fn conflict<W: World>(at: &InCampaign, texts: &Texts, row: &Current) -> Result<HttpResponse> {
    let stored = form::texts_of(W::GROUPS, &row.view);
    let form = FormView::new(W::GROUPS, texts, &Errors::default(), Some(&stored), false);
    at.show_with(StatusCode::CONFLICT, &edit_page::<W>(at, row, form, true))
}

fn delete_page<W: World>(at: &InCampaign, row: &Current, problem: Option<String>) -> DeletePage {
    DeletePage {
        frame: at.frame(&format!("Delete {}", row.label), W::TAB),
        one: W::ONE,
        label: row.label.clone(),
        back: format!("{}/{}", at.url(W::PATH), row.id),
        version: row.version,
        repeat: None,
        problem,
    }
}

/// GET of the question whether a row is to be deleted.
///
/// # Errors
/// `not_found`.
pub async fn ask<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let row = at.current::<W>(at.path("x")).await?;
    at.show(&delete_page::<W>(&at, &row, None))
}

/// POST that deletes a row.
///
/// # Errors
/// What is no fault of the form's.
pub async fn delete<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let row = at.current::<W>(at.path("x")).await?;
    let expected = Expected::version(at.form.version().unwrap_or(0));
    let (c, x) = (at.campaign_id(), row.id.to_string());
    match resource::remove::<W>(&at.app, &at.caller, &expected, Some(&c), &x).await {
        Ok(_) => Ok(at.done(&at.url(W::PATH), &format!("The {} {} was deleted.", W::ONE, row.label))),
        Err(error) if error.code == Code::PreconditionFailed => {
            let problem = "Somebody changed it since you looked. Look at it again before you delete it.".to_owned();
            at.show_with(StatusCode::CONFLICT, &delete_page::<W>(&at, &row, Some(problem)))
        }
        Err(error) if matches!(error.code, Code::Referenced | Code::Conflict) => {
            at.show_with(StatusCode::CONFLICT, &delete_page::<W>(&at, &row, Some(error.detail.clone())))
        }
        Err(error) => Err(error),
    }
}
