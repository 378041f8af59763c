//! What a row was, change by change, with the words that changed; and how it becomes that again. The same for every kind.

use std::time::Instant;

use actix_web::{HttpResponse, web};
use askama::Template;
use serde_json::Value;

use super::{
    Frame, InCampaign,
    diff::{Differ, Piece},
    list::moment,
    query::given,
    words,
    world::World,
};
use crate::{
    error::{Code, Error, Result},
    http::{
        etag::Expected,
        resource::{self, Ref},
    },
    revisions::{self, Revision, RevisionParams},
    shown,
};

/// Revisions a page.
const ROWS: i64 = 20;

/// One change, as the page shows it.
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
shown!(HistoryPage: as_main);

/// GET of a row's history.
///
/// # Errors
/// `not_found`, `gone`.
pub async fn page<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let before = given(at.request.query_string(), "before").parse().ok();
    let tx = at.read().await?;
    let campaign = at.campaign.id.0;
    let row = resource::find::<W>(&tx, &at.caller, Some(&Ref::Id(campaign)), &Ref::parse(at.path("x"))).await?;
    let stamp = W::stamp(&row);
    let found = revisions::page(&tx, campaign, W::TABLE, stamp.id, &RevisionParams { limit: ROWS, before }).await?;
    let list = at.url(W::PATH);
    drop(tx);
    let (pruned, next, turns) = (found.pruned, found.next_before, at.url("turns"));
    let is_first = before.is_none();
    // Comparing texts takes long: not on a thread that answers requests.
    let rows = web::block(move || {
        let differ = Differ::begun(Instant::now());
        let revisions = found.items.into_iter().enumerate();
        revisions.map(|(i, revision)| shown_row(&turns, revision, differ, is_first && i == 0)).collect()
    });
    at.show(&HistoryPage {
        frame: at.frame(&format!("History of {}", stamp.label), W::TAB),
        label: stamp.label.to_owned(),
        many: W::MANY,
        path: format!("{list}/{}", stamp.id),
        version: stamp.version,
        rows: rows.await.map_err(Error::internal)?,
        next,
        pruned,
        may_write: at.may(crate::auth::Scope::Write),
        list,
    })
}

fn shown_row(turns: &str, revision: Revision, differ: Differ, is_present: bool) -> Row {
    let name = revision.actor_name.unwrap_or_else(|| "Somebody".to_owned());
    let (who, what) = match (revision.op.as_str(), revision.origin.as_str()) {
        ("insert", "import") => (name, "imported it"),
        ("insert", "fork") => (name, "made it, by a fork"),
        ("insert", "turn") => ("The AI".to_owned(), "made it"),
        ("delete", "turn") => ("The AI".to_owned(), "deleted it"),
        (_, "turn") => ("The AI".to_owned(), "changed it"),
        (_, "system") => ("The server".to_owned(), "changed it"),
        (_, "revert") => (name, "took a change back"),
        ("insert", _) => (name, "made it"),
        ("delete", _) => (name, "deleted it"),
        (_, "import") => (name, "changed it, by an import"),
        _ => (name, "changed it"),
    };
    let text = |of: &Option<serde_json::Map<String, Value>>, name: &str| {
        of.as_ref().and_then(|members| members.get(name)).map(words::shown_at_length).unwrap_or_default()
    };
    // What a row was made of is all of it; the page tells what changed.
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

/// A column's name as people read it.
fn label(column: &str) -> String {
    let text = column.replace('_', " ");
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// POST that makes a row what it was after a revision.
///
/// # Errors
/// `not_found`, `gone`, `precondition_failed`.
pub async fn restore<W: World>(at: InCampaign) -> Result<HttpResponse> {
    let seq = at.path("seq").parse().map_err(|_| Error::not_found("revision"))?;
    let x = at.path("x").to_owned();
    // A row that is gone has no version to be compared with.
    let expected = at.form.version().map_or_else(|| Expected::version(0), Expected::version);
    let c = at.campaign.id.0.to_string();
    match revisions::restore::<W>(&at.app, &at.caller, &expected, (&c, &x, seq), None).await {
        Ok(_) => Ok(at.done(&format!("{}/{x}", at.url(W::PATH)), "It is what it was.")),
        Err(error) if error.code == Code::PreconditionFailed => Err(Error::new(
            Code::PreconditionFailed,
            "Somebody changed it since you looked. Go back, load the history again, and look.",
        )),
        Err(error) => Err(error),
    }
}
