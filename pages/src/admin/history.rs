//! The history of a row: each change, with the words that changed, and a way to restore it. The same for every kind.

use std::time::Instant;

use actix_web::{HttpResponse, http::StatusCode, web};
use askama::Template;
use serde_json::Value;
use uuid::Uuid;

use super::{
    Frame, InCampaign, Tab,
    diff::{Differ, Piece},
    list::moment,
    query::given,
    words,
    world_row::World,
};
use crate::render_blocks;
use base::error::{Code, Error, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Scope,
    http::{
        etag::Expected,
        resource::{self, Ref, Stamp},
    },
};
use world::revisions::{self, Deleted, Revision, RevisionParams};

/// The most deleted rows that are listed.
pub const DELETED_MAX: i64 = 100;
/// Revisions per page.
const ROWS: i64 = 20;

/// One change on the page.
struct Row {
    seq: i64,
    at: String,
    who: String,
    turn: Option<String>,
    what: &'static str,
    fields: Vec<(String, Vec<Piece>)>,
    is_present: bool,
}

#[derive(Template)]
#[template(path = "admin/history.html", blocks = ["main"])]
struct HistoryPage {
    frame: Frame,
    label: String,
    many: &'static str,
    list: String,
    path: String,
    version: i64,
    rows: Vec<Row>,
    next: Option<i64>,
    pruned: bool,
    may_write: bool,
}
render_blocks!(HistoryPage: as_main);

/// The row that the history is about.
pub struct Of<'a> {
    pub tab: Tab,
    pub many: &'static str,
    /// The list's path.
    pub list: String,
    pub table: &'static str,
    pub id: Uuid,
    pub label: &'a str,
    pub version: i64,
}

/// GET of a row's history.
///
/// # Errors
/// `not_found`, `gone`.
pub async fn page<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let campaign = Ref::Id(at.campaign.id.0);
    let row = resource::find::<W>(&tx, &at.caller, Some(&campaign), &Ref::parse(at.path("x"))).await?;
    let Stamp { id, label, version, .. } = W::stamp(&row);
    let of = Of { tab: W::TAB, many: W::MANY, list: at.url(W::PATH), table: W::TABLE, id, label, version };
    show_history(&at, tx, of).await
}

/// The history of any row.
///
/// # Errors
/// `gone`.
pub async fn show_history(at: &InCampaign, tx: TenantTx, of: Of<'_>) -> Result<HttpResponse> {
    let before = given(at.request.query_string(), "before").parse().ok();
    let found =
        revisions::page(&tx, at.campaign.id.0, of.table, of.id, &RevisionParams { limit: ROWS, before }).await?;
    drop(tx);
    let (pruned, next, turns) = (found.pruned, found.next_before, at.url("turns"));
    let is_first = before.is_none();
    // Comparing texts takes long, so it does not run on a thread that answers requests.
    let rows = web::block(move || {
        let differ = Differ::begun(Instant::now());
        let revisions = found.items.into_iter().enumerate();
        revisions.map(|(i, revision)| revision_row(&turns, revision, differ, is_first && i == 0)).collect()
    });
    at.show(&HistoryPage {
        frame: at.frame(&format!("History of {}", of.label), of.tab),
        label: of.label.to_owned(),
        many: of.many,
        path: format!("{}/{}", of.list, of.id),
        version: of.version,
        rows: rows.await.map_err(Error::internal)?,
        next,
        pruned,
        may_write: at.may(Scope::Write),
        list: of.list,
    })
}

#[derive(Template)]
#[template(path = "admin/deleted.html", blocks = ["main"])]
struct DeletedPage {
    frame: Frame,
    many: &'static str,
    list: String,
    rows: Vec<Deleted>,
    may_restore: bool,
}
render_blocks!(DeletedPage: as_main);

/// GET of the most recently deleted rows of a kind.
///
/// # Errors
/// Database errors.
pub async fn deleted<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let rows = revisions::deleted(&at.read().await?, at.campaign.id.0, (W::TABLE, W::LABEL), DELETED_MAX).await?;
    show_deleted(&at, (W::TAB, W::MANY, W::PATH), rows)
}

/// The same for any kind: its tab, its name, and the word in its path.
///
/// # Errors
/// `internal`.
pub fn show_deleted(
    at: &InCampaign,
    (tab, many, path): (Tab, &'static str, &str),
    rows: Vec<Deleted>,
) -> Result<HttpResponse> {
    let frame = at.frame(&format!("Deleted: {many}"), tab);
    at.show(&DeletedPage { frame, many, list: at.url(path), rows, may_restore: at.may(Scope::Write) })
}

fn revision_row(turns: &str, revision: Revision, differ: Differ, is_present: bool) -> Row {
    let name = revision.actor_name.unwrap_or_else(|| "Somebody".to_owned());
    let (who, what) = match (revision.op.as_str(), revision.origin.as_str()) {
        ("insert", "import") => (name, "imported it"),
        ("insert", "fork") => (name, "created it by forking"),
        ("insert", "turn") => ("The AI".to_owned(), "created it"),
        ("delete", "turn") => ("The AI".to_owned(), "deleted it"),
        (_, "turn") => ("The AI".to_owned(), "changed it"),
        (_, "system") => ("The server".to_owned(), "changed it"),
        (_, "revert") => (name, "reverted a change"),
        ("insert", _) => (name, "created it"),
        ("delete", _) => (name, "deleted it"),
        (_, "import") => (name, "changed it by importing"),
        _ => (name, "changed it"),
    };
    let text = |of: &Option<serde_json::Map<String, Value>>, name: &str| {
        of.as_ref().and_then(|members| members.get(name)).map(words::display_multiline).unwrap_or_default()
    };
    // A new or deleted row would list all of its content; the page only shows changes.
    let fields = match revision.op.as_str() {
        "update" => revision
            .changed
            .iter()
            .filter(|name| *name != "tokens")
            .map(|name| (label(name), differ.words(&text(&revision.before, name), &text(&revision.after, name))))
            .collect(),
        _ => Vec::new(),
    };
    Row {
        seq: revision.seq,
        at: moment(revision.at),
        who,
        turn: revision.turn_id.map(|turn| format!("{turns}/{turn}")),
        what,
        fields,
        is_present,
    }
}

/// A column's name for people to read.
fn label(column: &str) -> String {
    let text = column.replace('_', " ");
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Something cannot be done yet: the reason, and pages that help.
#[derive(Template)]
#[template(path = "admin/stuck.html", blocks = ["main"])]
struct StuckPage {
    frame: Frame,
    heading: &'static str,
    why: String,
    /// Addresses and their labels.
    ways: Vec<(String, String)>,
}
render_blocks!(StuckPage: as_main);

/// The page that tells why a row cannot be restored, and where to go next.
///
/// # Errors
/// `internal`.
pub fn stuck(at: &InCampaign, tab: Tab, why: String, ways: Vec<(String, String)>) -> Result<HttpResponse> {
    let heading = "It cannot be restored yet";
    at.show_with(StatusCode::CONFLICT, &StuckPage { frame: at.frame(heading, tab), heading, why, ways })
}

/// Tells which row now has the slug of the row to restore, and how to resolve that.
async fn slug_taken<W: World>(at: &InCampaign, id: &str, seq: i64) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let id = Uuid::try_parse(id).map_err(|_| Error::not_found(W::TABLE))?;
    let content = revisions::content(&tx, at.campaign.id.0, W::TABLE, id, seq).await?;
    let slug = content.get("slug").and_then(Value::as_str).unwrap_or_default();
    let campaign = Ref::Id(at.campaign.id.0);
    let mut ways = Vec::new();
    if let Ok(other) = resource::find::<W>(&tx, &at.caller, Some(&campaign), &Ref::parse(slug)).await {
        let Stamp { id, label, .. } = W::stamp(&other);
        ways.push((format!("{}/{id}", at.url(W::PATH)), label.to_owned()));
    }
    ways.push((at.url(W::PATH), format!("All {}", W::MANY)));
    let why =
        format!("Another row now has the slug {slug}. Give that row another slug or delete it, then restore this one.");
    stuck(at, W::TAB, why, ways)
}

/// POST that restores a row to what it was after a revision.
///
/// # Errors
/// `not_found`, `gone`, `precondition_failed`.
pub async fn restore<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let seq = at.path("seq").parse().map_err(|_| Error::not_found("revision"))?;
    let x = at.path("x").to_owned();
    // A deleted row has no version to compare.
    let expected = at.form.version().map_or_else(|| Expected::version(0), Expected::version);
    let c = at.campaign.id.0.to_string();
    match revisions::restore::<W>(&at.app, &at.caller, &expected, (&c, &x, seq), None).await {
        Ok(_) => Ok(at.redirect(&format!("{}/{x}", at.url(W::PATH)), "It was restored.")),
        Err(error) if error.code == Code::SlugTaken => slug_taken::<W>(&at, &x, seq).await,
        Err(error) => Err(came_late(error)),
    }
}

/// The error of a restore, with what to do if somebody changed the row meanwhile.
#[must_use]
pub fn came_late(error: Error) -> Error {
    if error.code != Code::PreconditionFailed {
        return error;
    }
    let detail = "Somebody changed this after you opened the history. Go back, reload the history, and try again.";
    Error::new(Code::PreconditionFailed, detail)
}
