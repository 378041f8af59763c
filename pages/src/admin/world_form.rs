//! List, form, conflict and deletion for every kind of world row. `http::resource` does the work, so rules, versions
//! and the journal are those of the API.
//!
//! A kind of row defines its names, its fields and its list ([`World`]), and has its lines in `PAGES`.

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    Editor, Frame, InCampaign,
    ask::AskPage,
    form::{self, Errors, FormView, Group, Kind, Texts},
    in_the_way::{self, InTheWay},
    list::ListPage,
    merge,
    saving::{Saved, Saving},
    world_row::{Current, World},
};
use crate::render_blocks;
use base::{
    clock,
    error::{Code, Result},
};
use edge::http::{etag::Expected, idempotency::IdempotencyKey, paging::Page, patch, read::typed, resource};
use entity::shapes::ToolRef;
use world::{guidance::draft, memory};

#[derive(Template)]
#[template(path = "admin/world-form.html", blocks = ["main"])]
pub(super) struct FormPage {
    pub(super) frame: Frame,
    pub(super) heading: String,
    /// The address that the form is sent to.
    pub(super) action: String,
    pub(super) back: String,
    /// What `back` leads to.
    pub(super) many: String,
    pub(super) version: Option<i64>,
    /// An id for the form, so that a form that is sent twice creates one row.
    pub(super) form_id: Option<String>,
    pub(super) delete_path: Option<String>,
    pub(super) form: FormView,
    /// Whether somebody changed the row since the form was loaded.
    pub(super) is_conflict: bool,
    /// Instructions that a file brought, by the label of their field. No model reads them until somebody accepts them.
    pub(super) pending: Vec<(&'static str, String)>,
    /// Where to send what the user decides about them.
    pub(super) pending_path: String,
    /// The address of the names that fields for actors suggest, if the form has such fields.
    pub(super) actors_path: Option<String>,
}
render_blocks!(FormPage: as_main);

/// The problem of a deletion whose row somebody else changed meanwhile.
pub(super) const CHANGED_SINCE: &str =
    "Somebody changed this after you opened it. Check it again before you delete it.";

/// GET of the list: `q`, `sort`, `cursor` and the kind's filters, as the API takes them.
///
/// # Errors
/// `bad_request` for invalid parameters.
pub async fn list<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let page = Page::<W::Filter>::parse(&super::query::as_asked(&at, "name", &[]))?;
    let tx = at.read().await?;
    let found = resource::find_page::<W>(&tx, &at.caller, Some(at.campaign.id.0), &page).await?;
    let mut shown = ListPage::new(&at, W::MANY, W::TAB, W::PATH);
    (shown.about, shown.example, shown.columns) = (W::ABOUT, W::EXAMPLE, W::COLUMNS);
    shown.new = at.may_write().then(|| (at.url(&format!("{}/new", W::PATH)), format!("New {}", W::ONE)));
    shown.deleted = at.may(edge::caller::Scope::Gm).then(|| at.url(&format!("{}/deleted", W::PATH)));
    for model in &found.items {
        let stamp = W::stamp(model);
        shown.add(&stamp.id.to_string(), stamp.label.to_owned(), W::cells(model));
    }
    shown.pages(&at, found.next_cursor.as_deref());
    at.show(&shown)
}

fn new_page<W: World>(at: &InCampaign, form_id: String, texts: &Texts, errors: &Errors) -> FormPage {
    FormPage {
        frame: at.frame(&format!("New {}", W::ONE), W::TAB),
        heading: format!("New {}", W::ONE),
        action: at.url(W::PATH),
        back: at.url(W::PATH),
        many: W::MANY.to_owned(),
        version: None,
        form_id: Some(form_id),
        delete_path: None,
        form: FormView::new(W::GROUPS, texts, errors, None, false),
        is_conflict: false,
        pending: Vec::new(),
        pending_path: String::new(),
        actors_path: None,
    }
}

/// GET of the form for a new row.
///
/// # Errors
/// `internal`.
pub async fn new<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let texts = form::texts_of(W::GROUPS, &W::blank());
    at.show(&new_page::<W>(&at, clock::id().to_string(), &texts, &Errors::default()))
}

/// POST of a new row.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn create<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let texts = form::texts_sent(W::GROUPS, &at.form);
    let (form_id, list) = (form_id(&at), at.url(W::PATH));
    let show_again = |errors: &Errors| at.show_again(&new_page::<W>(&at, form_id.clone(), &texts, errors));
    let value = match whole(W::GROUPS, &texts, W::blank()) {
        Ok(value) => value,
        Err(errors) => return show_again(&errors),
    };
    let made = async {
        let once = once(&at, &form_id, &texts);
        let sent = (&typed(value)?, once.as_ref());
        resource::create::<W>(&at.app, &at.caller, Some(&at.campaign_id()), &list, sent).await
    };
    match made.await {
        Ok(made) => Ok(at.redirect(made.location().unwrap_or(&list), &format!("The {} was created.", W::ONE))),
        Err(error) => show_again(&Errors::of(W::GROUPS, error)?),
    }
}

/// A new row: the submitted values over the initial ones.
pub(super) fn whole(groups: &'static [Group], texts: &Texts, blank: Value) -> std::result::Result<Value, Errors> {
    if let Some(errors) = form::too_long(groups, texts) {
        return Err(errors);
    }
    let mut whole = blank;
    let changes = form::changes(groups, texts, &whole)?;
    patch::merge(&mut whole, changes);
    Ok(whole)
}

/// The id of a form.
pub(super) fn form_id(at: &Editor) -> String {
    at.form.text("form_id").chars().take(64).collect()
}

/// An idempotency key, so that a form that is sent twice unchanged takes effect once. None without a form id.
pub(super) fn once(at: &Editor, form_id: &str, sent: &impl std::fmt::Debug) -> Option<IdempotencyKey> {
    if form_id.is_empty() {
        return None;
    }
    let fingerprint = Sha256::digest(format!("{sent:?}")).to_vec();
    let print: String = fingerprint.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let key = format!("{}:{form_id}:{print}", at.user.id);
    Some(IdempotencyKey { key, route: format!("POST {}", at.request.path()), fingerprint })
}

fn edit_page<W: World>(at: &InCampaign, row: &Current, form: FormView) -> FormPage {
    let path = format!("{}/{}", at.url(W::PATH), row.id);
    FormPage {
        frame: at.frame(&format!("Edit {}", row.label), W::TAB),
        heading: format!("Edit {}", row.label),
        back: path.clone(),
        many: row.label.clone(),
        version: Some(row.version),
        form_id: None,
        delete_path: None,
        action: path,
        form,
        is_conflict: false,
        pending: Vec::new(),
        pending_path: String::new(),
        actors_path: None,
    }
}

/// The draft of a row, by the label of its field.
pub(super) fn pending(row: &Value) -> Vec<(&'static str, String)> {
    let fields = [
        ("/instructions", "Instructions"),
        ("/post_history_instructions", "Instructions after the conversation"),
        ("/authors_note/text", "Author's note"),
        ("/available_tools", "Tools"),
        ("/reaction_threshold", "Reacts at a score of"),
        ("/immediate_threshold", "At once at a score of"),
    ];
    let depth = row.pointer("/pending_instructions/authors_note/depth").and_then(Value::as_u64);
    let text = |(at, label): (&str, _)| {
        let text = match row.pointer(&format!("/pending_instructions{at}"))? {
            Value::Null => return None,
            Value::String(text) => match depth.filter(|_| at == "/authors_note/text") {
                Some(0) => format!("{text}\n\n(after the player's words)"),
                Some(1) => format!("{text}\n\n(1 message before the end of the conversation)"),
                Some(depth) => format!("{text}\n\n({depth} messages before the end of the conversation)"),
                None => text.clone(),
            },
            Value::Array(tools) => tools.iter().map(tool).collect::<Vec<_>>().join("\n\n"),
            other => other.to_string(),
        };
        Some((label, text))
    };
    fields.into_iter().filter_map(text).collect()
}

/// A tool of a draft: its name, and what the draft says of it.
fn tool(entry: &Value) -> String {
    match serde_json::from_value::<ToolRef>(entry.clone()) {
        Ok(ToolRef::Name(name)) => name,
        Ok(ToolRef::Described(tool)) => {
            let alone = tool.exclusive.then(|| "It must be the only call in its reply.".to_owned());
            let parameters = tool.parameters.map(|parameters| format!("Parameters: {parameters:#}"));
            [Some(tool.name), tool.description, alone, parameters].into_iter().flatten().collect::<Vec<_>>().join("\n")
        }
        Err(_) => entry.to_string(),
    }
}

/// POST that accepts a row's draft or throws it away.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn decide<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let row = at.read_current::<W>(at.path("x")).await?;
    let path = format!("{}/{}", at.url(W::PATH), row.id);
    let (c, x) = (at.campaign_id(), row.id.to_string());
    let decided = decision(&at, &row.view, async |expected: Expected, patch: Value| {
        resource::change::<W>(&at.app, &at.caller, &expected, Some(&c), &x, patch).await
    });
    let notice = decided.await?;
    Ok(at.redirect(&path, &notice))
}

/// Accepts a draft or throws it away, if it is still the one that the user saw. Returns what to tell the user.
///
/// # Errors
/// Errors that the form did not cause.
pub(super) async fn decision<T>(
    at: &Editor,
    row: &Value,
    write: impl AsyncFnOnce(Expected, Value) -> Result<T>,
) -> Result<String> {
    let accepts = at.form.text("do") == "accept";
    let patch = row.as_object().and_then(if accepts { draft::accepted } else { draft::discarded });
    let Some(patch) = patch else { return Ok("There is no draft any more.".to_owned()) };
    let told = if accepts { "The draft was accepted." } else { "The draft was discarded." };
    match write(Expected::version(at.form.version().unwrap_or(0)), patch.into()).await {
        Ok(_) => Ok(told.to_owned()),
        Err(error) if error.code == Code::PreconditionFailed => {
            Ok("Somebody changed this meanwhile. Read the draft again before you accept it.".to_owned())
        }
        Err(error) if error.code == Code::ValidationFailed => {
            let why: Vec<&str> = error.errors.iter().map(|e| e.message.as_str()).collect();
            Ok(format!(
                "The draft cannot be accepted as it is: {}. Copy it into the form and correct it there.",
                why.join("; ")
            ))
        }
        Err(error) => Err(error),
    }
}

/// GET of a row's form.
///
/// # Errors
/// `not_found`.
pub async fn edit<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let row = at.read_current::<W>(at.path("x")).await?;
    let form = FormView::of_row(W::GROUPS, &row.view, false);
    at.show(&edit_page::<W>(&at, &row, form))
}

/// POST of a changed row. If somebody else changed the row first, the user sees both versions merged, and nothing is written.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn save<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let row = at.read_current::<W>(at.path("x")).await?;
    let mut saving = Saving::of(W::GROUPS, &at.form)?;
    saving.take_theirs(&at.form, &row.view);
    let path = format!("{}/{}", at.url(W::PATH), row.id);
    match save_row::<W>(&at, &row, &saving).await? {
        Saved::Done(_) => Ok(at.redirect(&path, &format!("The {} was saved.", W::ONE))),
        Saved::Wrong(errors) => {
            let form = FormView::over(W::GROUPS, &row.view, &saving.texts, &errors, false);
            at.show_again(&edit_page::<W>(&at, &row, form))
        }
        Saved::Late => {
            let row = at.read_current::<W>(at.path("x")).await?;
            merge::page::<W>(&at, &row, &saving.texts, saving.version).await
        }
    }
}

/// Writes the submitted form to its row.
pub(super) async fn save_row<W: World>(at: &InCampaign, row: &Current, saving: &Saving) -> Result<Saved<W::Model>> {
    let (c, x) = (at.campaign_id(), row.id.to_string());
    let write = async |expected: Expected, patch: Value| {
        resource::change::<W>(&at.app, &at.caller, &expected, Some(&c), &x, patch).await
    };
    saving.over((row.version, &row.view), Value::Null, write).await
}

/// What a deletion removes, in words.
fn then<W: World>(at: &InCampaign, memories: u64) -> String {
    let with = match memories {
        0 => String::new(),
        1 => ", together with the one memory that it has or that is about it".to_owned(),
        n if n > memory::service::COUNTED_MAX => {
            ", together with all memories that it has or that are about it".to_owned()
        }
        n => format!(", together with the {n} memories that it has or that are about it"),
    };
    let back = if at.may(edge::caller::Scope::Gm) { "It can" } else { "A game master can" };
    let be = if at.may(edge::caller::Scope::Gm) { " be restored" } else { " restore it" };
    let too = if memories > 0 { ", the memories too" } else { "" };
    format!("This deletes the {}{with}. {back}{be} from the list of deleted rows{too}.", W::ONE)
}

async fn delete_page<W: World>(
    at: &InCampaign,
    row: &Current,
    problem: Option<String>,
    rows: Vec<InTheWay>,
) -> Result<AskPage> {
    let memories = if W::IS_ACTOR { memory::service::of_actor(&at.read().await?, row.id).await? } else { 0 };
    Ok(AskPage {
        frame: at.frame(&format!("Delete {}", row.label), W::TAB),
        question: format!("Delete {}?", row.label),
        quoted: None,
        then: then::<W>(at, memories),
        rows,
        before: None,
        yes: "Delete",
        no: "Keep it",
        back: format!("{}/{}", at.url(W::PATH), row.id),
        version: Some(row.version),
        repeat: None,
        forks: false,
        problem,
    })
}

/// GET of the question whether to delete a row.
///
/// # Errors
/// `not_found`.
pub async fn ask<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let row = at.read_current::<W>(at.path("x")).await?;
    at.show(&delete_page::<W>(&at, &row, None, Vec::new()).await?)
}

/// POST that deletes a row.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn delete<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let row = at.read_current::<W>(at.path("x")).await?;
    let expected = Expected::version(at.form.version().unwrap_or(0));
    let (c, x) = (at.campaign_id(), row.id.to_string());
    match resource::remove::<W>(&at.app, &at.caller, &expected, Some(&c), &x).await {
        Ok(_) => Ok(at.redirect(&at.url(W::PATH), &format!("The {} {} was deleted.", W::ONE, row.label))),
        Err(error) if error.code == Code::PreconditionFailed => {
            let problem = Some(CHANGED_SINCE.to_owned());
            at.show_with(StatusCode::CONFLICT, &delete_page::<W>(&at, &row, problem, Vec::new()).await?)
        }
        Err(error) if matches!(error.code, Code::Referenced | Code::Conflict) => {
            let rows = in_the_way::of(&at, &error).await?;
            at.show_with(StatusCode::CONFLICT, &delete_page::<W>(&at, &row, Some(error.detail.clone()), rows).await?)
        }
        Err(error) => Err(error),
    }
}
