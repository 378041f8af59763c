//! Bulk edits of lore: choosing entries and changes, previewing them, and undoing them afterwards.

use db::tenancy;
use std::time::Instant;

use actix_web::{HttpResponse, http::StatusCode, web};
use askama::Template;
use entity::lore::{Activation, Scope as LoreScope};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{
    SCOPES,
    list::{Choice, filter_of},
};
use crate::{
    admin::{
        Frame, InCampaign, Tab,
        diff::{self, Differ, Piece},
        in_the_way::{self, InTheWay},
        list::moment,
        query::all_given,
        submitted::Submitted,
        words,
        world_form::{form_id, once},
    },
    render_blocks,
};
use base::error::{Code, Error, FieldError, Result};
use db::tenancy::{Origin, TenantTx};
use edge::{
    caller::Scope,
    http::{self, Answer},
};
use world::{
    edits::{self, Step},
    lore::{
        bulk::{
            self, BulkInput, BulkReport,
            changes::{Changes, PriorityChange, TagChange},
            replace::{Part, Replace},
        },
        links, overview,
    },
    revisions::{self, Touched},
};

/// The most edits that are listed.
const STEPS_MAX: i64 = 20;
/// The filters of the list.
const FILTERS: &[&str] = &["q", "scope", "state", "tag", "associated_id"];
/// The most entries of a step that are shown.
const TOUCHED_MAX: i64 = 100;

#[derive(Template)]
#[template(path = "admin/lore-bulk.html", blocks = ["main", "preview"])]
struct BulkPage {
    frame: Frame,
    list: String,
    path: String,
    /// Entries that were chosen one by one, or the filters of a list.
    ids: Vec<String>,
    filters: String,
    all: bool,
    count: i64,
    sent: Sent,
    scopes: Vec<Choice>,
    preview: Option<PreviewView>,
    /// The user wanted to run the edit, but it is no longer the edit that they previewed.
    is_other: bool,
    problems: Vec<String>,
    steps: Vec<StepView>,
}
render_blocks!(BulkPage: as_main, "preview" => as_preview);

/// The submitted form.
#[derive(Default)]
struct Sent(Submitted);

impl Sent {
    fn text(&self, name: &str) -> &str {
        self.0.text(name)
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.0.text(name) == value
    }

    fn has(&self, name: &str) -> bool {
        self.0.has(name)
    }

    /// Whether a part is chosen. The content is chosen by default.
    fn part(&self, value: &str) -> bool {
        let mut parts = self.0.all("in").peekable();
        if parts.peek().is_none() { value == "content" } else { parts.any(|part| part == value) }
    }
}

/// What the edit would do.
struct PreviewView {
    report: BulkReport,
    /// The rules that the edit would break, with the entries' titles.
    wrong: Vec<String>,
    entries: Vec<EntryView>,
    more: usize,
}

struct EntryView {
    path: String,
    title: String,
    is_deleted: bool,
    fields: Vec<(String, Vec<Piece>)>,
}

/// A finished edit.
struct StepView {
    id: Uuid,
    path: String,
    at: String,
    rows: i32,
    undone_at: Option<String>,
    /// A short text about what it changed in which entries.
    what: String,
    /// `changed`, `deleted` or `created again`.
    did: &'static str,
    seqs: (i64, i64),
}

fn step_view(at: &InCampaign, step: Step) -> StepView {
    StepView {
        what: in_words(&step),
        did: match step.op.as_deref() {
            Some("delete") => "deleted",
            Some("insert") => "created again",
            _ => "changed",
        },
        seqs: (step.first_seq, step.last_seq),
        path: format!("{}/bulk/{}", at.url("lore"), step.id),
        id: step.id,
        at: moment(step.at),
        rows: step.rows,
        undone_at: step.undone_at.map(moment),
    }
}

/// `tags, content of The mill, The well and 10 more`.
fn in_words(step: &Step) -> String {
    let columns: Vec<String> = step.columns.iter().map(|column| column.replace('_', " ")).collect();
    let what = if columns.is_empty() { "whole entries:".to_owned() } else { format!("{} of", columns.join(", ")) };
    let more = usize::try_from(step.rows).unwrap_or_default().saturating_sub(step.labels.len());
    let named = step.labels.join(", ");
    let undo = if step.is_undo { "Undid an edit: " } else { "" };
    if more > 0 { format!("{undo}{what} {named} and {more} more") } else { format!("{undo}{what} {named}") }
}

/// The entries that a form is about.
struct Chosen {
    ids: Vec<String>,
    filters: String,
    all: bool,
}

async fn bulk_page(at: &InCampaign, chosen: Chosen, sent: Sent) -> Result<BulkPage> {
    let tx = at.read().await?;
    let campaign = at.campaign.id.0;
    let count = if chosen.all {
        let filter = filter_of(&chosen.filters)?;
        overview::sum(&tx, &at.caller, campaign, filter.q.as_deref(), &filter).await?.count
    } else {
        i64::try_from(chosen.ids.len()).unwrap_or(i64::MAX)
    };
    let steps = edits::recent(&tx, campaign, bulk::STEP, None, STEPS_MAX).await?;
    let scope = sent.text("scope").to_owned();
    Ok(BulkPage {
        frame: at.frame("Edit many entries", Tab::Lore),
        list: at.url("lore"),
        path: at.url("lore/bulk"),
        ids: chosen.ids,
        filters: chosen.filters,
        all: chosen.all,
        count,
        sent,
        scopes: SCOPES.iter().map(|(value, label)| Choice { value, label, is_chosen: *value == scope }).collect(),
        preview: None,
        is_other: false,
        problems: Vec::new(),
        steps: steps.into_iter().map(|step| step_view(at, step)).collect(),
    })
}

/// GET of the form: for `ids`, or with `all` for the entries that the filters in the query find.
///
/// # Errors
/// `bad_request` for invalid filters.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let query = at.request.query_string();
    let all = all_given(query, "all").next().is_some();
    let kept = url::form_urlencoded::parse(query.as_bytes())
        .filter(|(name, value)| FILTERS.contains(&&**name) && !value.is_empty());
    let filters = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish();
    let ids = if all { Vec::new() } else { all_given(query, "ids").take(bulk::ENTRIES_MAX).collect() };
    let page = bulk_page(&at, Chosen { ids, filters, all }, Sent::default()).await?;
    at.show(&page)
}

/// The ids in a form. A field may contain one or more.
fn ids_of(form: &Submitted) -> Vec<String> {
    form.all("ids").flat_map(str::split_whitespace).map(ToOwned::to_owned).collect()
}

/// The form for the entries that were selected in the list, or for all that its filters find.
async fn chosen_in_list(at: &InCampaign) -> Result<HttpResponse> {
    let ids = ids_of(&at.form);
    if at.form.has("all") {
        let kept = at.form.fields().filter(|(name, value)| FILTERS.contains(name) && !value.is_empty());
        let filters = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish();
        return at.show(&bulk_page(at, Chosen { ids: Vec::new(), filters, all: true }, Sent::default()).await?);
    }
    if ids.len() > bulk::ENTRIES_MAX {
        let why = format!(
            "An edit may have at most {} selected entries. Find them with a filter and edit all.",
            bulk::ENTRIES_MAX
        );
        return Err(Error::new(Code::ValidationFailed, why));
    }
    at.show(&bulk_page(at, Chosen { ids, filters: String::new(), all: false }, Sent::default()).await?)
}

/// POST of the form: a preview, or the edit itself.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn run(at: InCampaign) -> Result<HttpResponse> {
    let form = &at.form;
    let all = form.has("all");
    let filters = form.text("filters").to_owned();
    let ids = ids_of(form);
    let is_run = form.text("do") == "run";
    // A request from the list with a selection. It has no changes yet.
    if !form.has("do") {
        return chosen_in_list(&at).await;
    }
    let changes = changes_of(form);
    let input = match changes {
        Ok(changes) => Ok(BulkInput {
            ids: (!all).then(|| ids.clone()),
            filter: all.then(|| filter_of(&filters)).transpose()?,
            changes,
            dry_run: !is_run,
            // An edit runs only after its preview.
            previewed: is_run.then(|| form.text("previewed").to_owned()),
        }),
        Err(error) => Err(error),
    };
    let report = match input {
        Ok(input) => edited(&at, &input).await,
        Err(error) => Err(error),
    };
    match report {
        Ok(Edited::Done(step, message)) => Ok(at.redirect(&format!("{}/{step}", at.url("lore/bulk")), &message)),
        Ok(Edited::Seen { report, is_other }) => {
            let mut page = bulk_page(&at, Chosen { ids, filters, all }, Sent(form.clone())).await?;
            if is_run && !is_other {
                page.problems.push("This edit changes none of these entries.".to_owned());
            }
            page.is_other = is_other;
            page.preview = Some(preview_view(&at, report));
            at.show(&page)
        }
        Err(error) if matches!(error.code, Code::ValidationFailed | Code::PayloadTooLarge) => {
            let mut page = bulk_page(&at, Chosen { ids, filters, all }, Sent(form.clone())).await?;
            page.problems = problems(&error);
            at.show_with(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
        Err(error) => Err(error),
    }
}

/// The answer of an edit that has run, as it is stored under the key of its form.
#[derive(Serialize, Deserialize)]
struct Ran {
    /// None if nothing changed.
    step: Option<Uuid>,
    changed: usize,
    deleted: usize,
}

/// The outcome of an edit: the step and a message, or a preview.
enum Edited {
    Done(Uuid, String),
    /// `is_other`: the edit should have run, but it is not the one that was previewed.
    Seen {
        report: BulkReport,
        is_other: bool,
    },
}

/// Runs an edit (once, even if the form is sent twice), or previews it. An edit that changes nothing, or that is not
/// what was previewed, is only previewed.
async fn edited(at: &InCampaign, input: &BulkInput) -> Result<Edited> {
    let campaign = at.campaign.id.0;
    let mut is_other = false;
    if !input.dry_run {
        let sent: Vec<_> = at.form.fields().collect();
        let key = once(at, &form_id(at), &sent);
        let run = http::write(&at.app, &at.caller, key.as_ref(), async |tx| {
            let report = bulk::run(tx, &at.caller, campaign, input).await?;
            let BulkReport { step_id: step, changed, deleted, .. } = report;
            Ok(Answer::ok(Ran { step, changed, deleted }))
        });
        match run.await {
            Ok(done) => match done.value()? {
                Ran { step: Some(step), changed, deleted: 0 } => {
                    return Ok(Edited::Done(step, format!("Entries changed: {changed}.")));
                }
                Ran { step: Some(step), deleted, .. } => {
                    return Ok(Edited::Done(step, format!("Entries deleted: {deleted}.")));
                }
                Ran { step: None, .. } => {}
            },
            Err(error) if error.code == Code::PreconditionFailed => is_other = true,
            Err(error) => return Err(error),
        }
    }
    let look = BulkInput { dry_run: true, previewed: None, ..input.clone() };
    let report = bulk::run(&at.read().await?, &at.caller, campaign, &look).await?;
    Ok(Edited::Seen { report, is_other })
}

fn problems(error: &Error) -> Vec<String> {
    if error.errors.is_empty() {
        return vec![error.detail.clone()];
    }
    let place = |pointer: &str| pointer.trim_start_matches('/').replace("changes/", "").replace('/', ", ");
    error.errors.iter().map(|e| format!("{}: {}", place(&e.pointer), in_form_words(&e.message))).collect()
}

/// The text of a rule with the form's names for its fields.
fn in_form_words(message: &str) -> String {
    message.replace("an associated_id", "a name").replace("no associated_id", "no name")
}

fn preview_view(at: &InCampaign, report: BulkReport) -> PreviewView {
    let list = at.url("lore");
    let text = |value: Option<&Value>| value.map(words::display_text).unwrap_or_default();
    let entries: Vec<EntryView> = report
        .entries
        .iter()
        .map(|entry| EntryView {
            path: format!("{list}/{}", entry.id),
            title: entry.title.clone(),
            is_deleted: entry.after.is_none(),
            fields: entry
                .after
                .iter()
                .flat_map(|after| after.iter())
                .filter(|(name, _)| *name != "tokens")
                .map(|(name, value)| {
                    (name.replace('_', " "), excerpt(&text(entry.before.get(name)), &text(Some(value))))
                })
                .collect(),
        })
        .collect();
    let more = (report.changed + report.deleted).saturating_sub(entries.len());
    let wrong = report.errors.iter().map(|error| wrong_in_words(&report, error)).collect();
    PreviewView { report, wrong, entries, more }
}

/// An error with the entry's title instead of a pointer such as `/the_mill/associated_id`.
fn wrong_in_words(report: &BulkReport, error: &FieldError) -> String {
    let (slug, column) = error.pointer.trim_start_matches('/').split_once('/').unwrap_or((&error.pointer, ""));
    let title = report.entries.iter().find(|entry| entry.slug == slug).map_or(slug, |entry| entry.title.as_str());
    let label = if column == "associated_id" { "which one".to_owned() } else { column.replace('_', " ") };
    format!("{title}, {label}: {}", in_form_words(&error.message))
}

/// The difference between two excerpts. If both were cut, differences at their ends are dropped.
fn excerpt(before: &str, after: &str) -> Vec<Piece> {
    let mut pieces = diff::words(before, after);
    if before.ends_with('…') && after.ends_with('…') {
        while pieces.len() > 1 && pieces.last().is_some_and(|piece| piece.is_gone() || piece.is_new()) {
            pieces.pop();
        }
    }
    pieces
}

/// The changes in the form. Fields that were left alone change nothing.
fn changes_of(form: &Submitted) -> Result<Changes> {
    let words = |name: &str| -> Vec<String> { words::of_lines(form.text(name)).map(ToOwned::to_owned).collect() };
    let yes_no = |name: &str| match form.text(name) {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    };
    let (add, remove) = (words("tags_add"), words("tags_remove"));
    let tags = match form.has("tags_replace") {
        true => Some(TagChange { set: Some(add), ..TagChange::default() }),
        false if add.is_empty() && remove.is_empty() => None,
        false => Some(TagChange { add, remove, set: None }),
    };
    let priority = match form.text("priority").trim() {
        "" => None,
        text => {
            let wrong = || Error::invalid("/changes/priority", "invalid_value", "Write a number.");
            let number = text.parse::<i32>().map_err(|_| wrong())?;
            Some(if form.text("priority_how") == "add" {
                PriorityChange::Add(number)
            } else {
                PriorityChange::Set(number)
            })
        }
    };
    let scope = match form.text("scope") {
        "" => None,
        word => Some(serde_json::from_value::<LoreScope>(word.into()).map_err(Error::internal)?),
    };
    let activation = match form.text("activation") {
        "always" => Some(Activation::Always),
        "keyword" => Some(Activation::Keyword),
        _ => None,
    };
    Ok(Changes {
        tags,
        scope,
        // An entry about everything has no name, even if the field still contains one.
        associated_id: Some(form.text("associated_id").trim().to_owned())
            .filter(|name| !name.is_empty() && scope != Some(LoreScope::Global)),
        priority,
        enabled: yes_no("enabled"),
        secret: yes_no("secret"),
        ai_lock: yes_no("ai_lock"),
        activation,
        replace: replace_of(form),
        delete: form.has("delete"),
    })
}

fn replace_of(form: &Submitted) -> Option<Replace> {
    let find = form.text("find");
    if find.is_empty() {
        return None;
    }
    let parts = form.all("in").filter_map(|part| match part {
        "title" => Some(Part::Title),
        "content" => Some(Part::Content),
        "keys" => Some(Part::Keys),
        _ => None,
    });
    Some(Replace {
        outside_code: false,
        find: find.to_owned(),
        with: form.text("with").to_owned(),
        parts: parts.collect(),
        regex: form.has("regex"),
        whole_word: form.has("whole_word"),
        ignore_case: form.has("ignore_case"),
    })
}

#[derive(Template)]
#[template(path = "admin/lore-step.html", blocks = ["main"])]
struct StepPage {
    frame: Frame,
    list: String,
    step: StepView,
    /// What the step changed, entry by entry.
    entries: Vec<EntryView>,
    more: usize,
    rows: Vec<InTheWay>,
    detail: String,
    /// Entries that the step renamed and that others still link to by their former titles.
    renamed: Vec<Renamed>,
}
render_blocks!(StepPage: as_main);

async fn step_page(at: &InCampaign) -> Result<StepPage> {
    let id: Uuid = at.path("x").parse().map_err(|_| Error::not_found("step"))?;
    let tx = at.read().await?;
    let step = edits::recent(&tx, at.campaign.id.0, bulk::STEP, Some(id), 1).await?.into_iter().next();
    let step = step_view(at, step.ok_or_else(|| Error::not_found("step"))?);
    let touched = revisions::of_stretch(&tx, at.campaign.id.0, step.seqs, TOUCHED_MAX).await?;
    let renamed = renamed(at, &tx, &step, &touched).await?;
    drop(tx);
    let (list, shown) = (at.url("lore"), touched.len());
    // Comparing texts takes long, so it does not run on a thread that answers requests.
    let entries = web::block(move || {
        let differ = Differ::begun(Instant::now());
        touched.into_iter().map(|touched| entry_touched(&list, touched, differ)).collect()
    });
    Ok(StepPage {
        frame: at.frame("Bulk edit", Tab::Lore),
        list: at.url("lore"),
        entries: entries.await.map_err(Error::internal)?,
        more: usize::try_from(step.rows).unwrap_or_default().saturating_sub(shown),
        step,
        rows: Vec::new(),
        detail: String::new(),
        renamed,
    })
}

/// An entry that an edit renamed.
struct Renamed {
    /// The address that updates its links.
    path: String,
    former: String,
    title: String,
    links: i64,
}

/// The renamed entries that others still link to by their former titles, unless the edit was undone. One statement.
async fn renamed(at: &InCampaign, tx: &TenantTx, step: &StepView, touched: &[Touched]) -> Result<Vec<Renamed>> {
    if step.undone_at.is_some() || !at.may(Scope::Write) {
        return Ok(Vec::new());
    }
    let text = |of: &Option<serde_json::Map<String, Value>>| Some(of.as_ref()?.get("title")?.as_str()?.to_owned());
    let titles = touched.iter().filter(|touched| touched.revision.op == "update");
    let titles: Vec<(Uuid, String, String)> = titles
        .filter_map(|t| Some((t.row, text(&t.revision.before)?, text(&t.revision.after)?)))
        .filter(|(_, former, title)| former != title)
        .collect();
    let formers: Vec<&str> = titles.iter().map(|(_, former, _)| former.as_str()).collect();
    let counts = links::counts(tx, &at.caller, at.campaign.id.0, &formers).await?;
    let with_links = titles.into_iter().zip(counts).filter(|(_, links)| *links > 0);
    let list = at.url("lore");
    let view = |((id, former, title), links)| Renamed { path: format!("{list}/{id}/mend"), former, title, links };
    Ok(with_links.map(view).collect())
}

/// An entry of a step, and what changed in it.
fn entry_touched(list: &str, touched: Touched, differ: Differ) -> EntryView {
    let revision = touched.revision;
    let text = |of: &Option<serde_json::Map<String, Value>>, name: &str| {
        of.as_ref().and_then(|members| members.get(name)).map(words::display_text).unwrap_or_default()
    };
    let fields = match revision.op.as_str() {
        "update" => revision
            .changed
            .iter()
            .filter(|name| *name != "tokens")
            .map(|name| {
                let (before, after) = (text(&revision.before, name), text(&revision.after, name));
                (name.replace('_', " "), differ.words(&before, &after))
            })
            .collect(),
        _ => Vec::new(),
    };
    EntryView {
        path: format!("{list}/{}", touched.row),
        title: touched.label,
        is_deleted: revision.op == "delete",
        fields,
    }
}

/// GET of a finished edit.
///
/// # Errors
/// `not_found`.
pub async fn step(at: InCampaign) -> Result<HttpResponse> {
    at.show(&step_page(&at).await?)
}

/// POST that undoes an edit. If somebody changed one of its entries since, the page shows which, and nothing is undone.
///
/// # Errors
/// `not_found`, `gone`, `conflict`.
pub async fn undo(at: InCampaign) -> Result<HttpResponse> {
    let mut page = step_page(&at).await?;
    let mut actor = at.caller.actor();
    actor.origin = Origin::Revert;
    let leaves_changed = at.form.has("rest");
    let step = (page.step.id, bulk::STEP);
    let undo = async |tx: &TenantTx| edits::undo_in(tx, &at.caller, at.campaign.id.0, step, leaves_changed).await;
    match tenancy::write(&at.app.pool, actor, undo).await {
        Ok(undone) => {
            let path = undone.undo_step_id.map_or_else(|| at.url("lore"), |id| format!("{}/{id}", at.url("lore/bulk")));
            let but = if leaves_changed { ", except for entries that were changed since" } else { "" };
            Ok(at.redirect(&path, &format!("The edit was undone{but}.")))
        }
        Err(error) if error.code == Code::UndoConflict => {
            page.detail = error.detail.clone();
            page.rows = in_the_way::of(&at, &error).await?;
            at.show_with(StatusCode::CONFLICT, &page)
        }
        Err(error) => Err(error),
    }
}
