//! Memories: what NPCs and owners remember about characters, and where each memory came from.

use std::collections::HashMap;

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use entity::memory::{Holder, Source};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Frame, InCampaign, Tab,
    ask::AskPage,
    form::{self, Errors, Field, FormView, Group, Kind, Texts},
    history,
    list::moment,
    merge,
    options::{OptionView, OptionsPage},
    query::{Ways, as_asked, encoded, given},
    saving::{Saved, Saving},
    world_form::{CHANGED_SINCE, FormPage, form_id, once},
};
use crate::render_blocks;
use ai::prompt::search::{FoundMemory, find};
use base::{
    clock,
    error::{Code, Error, Result},
};
use db::tenancy::{self, TenantTx};
use edge::{
    auth::player,
    caller::Scope,
    http::{self, Answer, etag::Expected, paging::Page},
};
use world::{
    actors as people,
    memory::{
        MemoryView,
        change::{MoveInput, change, move_in},
        list::{MemoryFilter, page_of},
        recall::Memory,
        service,
        subject::Subject,
        whose::Whose,
    },
    revisions,
};

const TABLE: &str = "memory";

const SOURCES: &[(&str, &str)] = &[
    ("personal", "the NPC itself"),
    ("private", "the owner itself"),
    ("broadcast", "a broadcast"),
    ("editor", "a person"),
    ("import", "an import"),
];

const TEXT: Field =
    Field::new("/text", "What is remembered", Kind::Text { rows: 4 }).needed().hint("At most 2,000 characters.");
const HOLDER: Field =
    Field::new("/holder_id", "Who remembers", Kind::Line).needed().hint("The slug of an NPC or owner.");
const PLAYER: Field = Field::new("/player_id", "About whom", Kind::Line).needed().hint("The slug of a character.");
const GAME_TIME: Field = Field::new("/game_time", "When it happened in the world", Kind::Line)
    .hint("As you would say it, such as: second day of the autumn fair. At most 120 characters.");
const PINNED: Field = Field::new("/pinned", "Pinned", Kind::Tick).hint("It gets room in prompts first.");
const NEW: &[Group] = &[Group { title: "", is_folded: false, fields: &[HOLDER, PLAYER, TEXT, GAME_TIME, PINNED] }];
const WORDS: &[Group] = &[Group { title: "", is_folded: false, fields: &[TEXT, GAME_TIME, PINNED] }];
const PLACE: &[Group] = &[Group { title: "", is_folded: false, fields: &[HOLDER, PLAYER] }];

fn source_name(source: Source) -> &'static str {
    match source {
        Source::Personal => "the NPC itself",
        Source::Private => "the owner itself",
        Source::Broadcast => "a broadcast",
        Source::Editor => "a person",
        Source::Import => "an import",
    }
}

/// Names by id.
type Names = HashMap<Uuid, String>;

/// A memory on a page.
pub(super) struct Row {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) holder: String,
    pub(super) holder_path: String,
    pub(super) player: String,
    pub(super) player_path: String,
    pub(super) source: &'static str,
    pub(super) turn_path: Option<String>,
    pub(super) broadcast_path: Option<String>,
    pub(super) game_time: Option<String>,
    pub(super) is_pinned: bool,
    /// What it has in common with a text that was searched for.
    pub(super) shared: String,
    pub(super) changed: String,
}

/// The most memories of [`newest`].
const NEWEST_MAX: usize = 5;

/// The newest memories, of one NPC or owner if it is given. `filters` are those of the list, as a query that ends with `&`.
///
/// # Errors
/// Those of the database.
pub(super) async fn newest(at: &InCampaign, tx: &TenantTx, holder: Option<Uuid>, filters: &str) -> Result<Vec<Row>> {
    let page = Page::<MemoryFilter>::parse(&format!("{filters}sort=-created_at&limit={NEWEST_MAX}"))?;
    let found = page_of(tx, &at.caller, at.campaign.id.0, holder, &page).await?;
    let names = names_in(tx, &found.items.iter().collect::<Vec<_>>()).await?;
    Ok(found.items.iter().map(|memory| row(at, memory, &names)).collect())
}

/// The names of everyone that the memories mention.
async fn names_in(tx: &TenantTx, memories: &[&MemoryView]) -> Result<Names> {
    let ids: Vec<Uuid> = memories.iter().flat_map(|memory| [memory.holder.id, memory.player_id]).collect();
    people::called(tx, &ids).await
}

fn row(at: &InCampaign, memory: &MemoryView, names: &Names) -> Row {
    let (word, place) = match memory.holder.kind {
        Holder::Npc => ("NPC", "npcs"),
        Holder::Owner => ("owner", "owners"),
    };
    let named = |id: Uuid| names.get(&id).cloned().unwrap_or_else(|| id.to_string());
    Row {
        path: at.url(&format!("memories/{}", memory.id)),
        text: memory.text.clone(),
        holder: format!("{} ({word})", named(memory.holder.id)),
        holder_path: at.url(&format!("{place}/{}", memory.holder.id)),
        player: named(memory.player_id),
        player_path: at.url(&format!("characters/{}", memory.player_id)),
        source: source_name(memory.source),
        turn_path: memory.turn_id.map(|turn| at.url(&format!("turns/{turn}"))),
        broadcast_path: memory.broadcast_id.map(|_| at.url("memories/broadcasts")),
        game_time: memory.game_time.clone(),
        is_pinned: memory.pinned,
        shared: String::new(),
        changed: moment(memory.updated_at),
    }
}

#[derive(Template)]
#[template(path = "admin/memory-list.html", blocks = ["main", "rows"])]
struct ListPage {
    frame: Frame,
    path: String,
    q: String,
    holder: String,
    player: String,
    source: String,
    sort: String,
    rows: Vec<Row>,
    is_filtered: bool,
    /// Whether the rows are the best matches of a text among the memories of a holder.
    is_ranked: bool,
    ways: Ways,
}
render_blocks!(ListPage: as_main, "rows" => as_rows);

/// GET of the list.
///
/// # Errors
/// `bad_request` for invalid parameters.
pub async fn list(at: InCampaign) -> Result<HttpResponse> {
    let page = Page::<MemoryFilter>::parse(&as_asked(&at, "-created_at", &[("limit", "100")]))?;
    let tx = TenantTx::read_at_one_moment(&at.app.pool, at.caller.tenant_id()).await?;
    let asked = at.request.query_string();
    let [q, holder, player, source, sort] =
        ["q", "holder_id", "player_id", "source", "sort"].map(|name| given(asked, name));
    let is_narrowed = ["broadcast_id", "turn_id"].iter().any(|name| !given(asked, name).is_empty());
    let is_ranked = !q.trim().is_empty() && !holder.is_empty() && sort.is_empty() && !is_narrowed;
    let (rows, next) = if is_ranked {
        (ranked(&at, &tx, &q, (&holder, &player), &source).await?, None)
    } else {
        let found = page_of(&tx, &at.caller, at.campaign.id.0, None, &page).await?;
        let names = names_in(&tx, &found.items.iter().collect::<Vec<_>>()).await?;
        (found.items.iter().map(|memory| row(&at, memory, &names)).collect(), found.next_cursor)
    };
    at.show(&ListPage {
        frame: at.frame("Memories", Tab::Memories),
        path: at.url("memories"),
        is_filtered: [&q, &holder, &player, &source].iter().any(|text| !text.is_empty()),
        q,
        holder,
        player,
        source,
        sort,
        rows,
        is_ranked,
        ways: Ways::of(&at, next.as_deref()),
    })
}

/// The most memories of [`ranked`].
const RANKED_MAX: usize = 50;

/// The memories of a holder that have to do with a text, the best first. None if a name is unknown.
async fn ranked(
    at: &InCampaign,
    tx: &TenantTx,
    text: &str,
    (holder, player): (&str, &str),
    source: &str,
) -> Result<Vec<Row>> {
    let campaign = at.campaign.id.0;
    let names = (Some(holder), Some(player).filter(|name| !name.is_empty()));
    let Some(whose) = Whose::named(tx, &at.caller, campaign, names).await? else { return Ok(Vec::new()) };
    let wanted = (!source.is_empty()).then(|| Source::named(source));
    let is_wanted = move |memory: &Memory| wanted.is_none_or(|wanted| memory.source == wanted);
    let found = find((&at.app.prompts.corpora, tx, campaign), whose, text, RANKED_MAX, is_wanted).await?;
    let names = names_in(tx, &found.iter().map(|found| &found.memory).collect::<Vec<_>>()).await?;
    let row = |found: &FoundMemory| Row { shared: found.words.join(", "), ..row(at, &found.memory, &names) };
    Ok(found.iter().map(row).collect())
}

/// GET of everyone who can have memories or be remembered.
///
/// # Errors
/// Database errors.
pub async fn actors(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let list = at.url("memories");
    let option = |(slug, kind): (String, String)| {
        let asked = if kind == "character" { "player_id" } else { "holder_id" };
        OptionView { path: format!("{list}?{asked}={}", encoded(&slug)), label: kind, value: slug }
    };
    let options = people::all(&tx, at.campaign.id.0).await?.into_iter().map(option).collect();
    let frame = at.frame("Who remembers whom", Tab::Memories);
    at.show(&OptionsPage { frame, heading: "Who remembers whom", many: "Memories", list: list.clone(), options })
}

fn new_page(at: &InCampaign, form_id: String, texts: &Texts, errors: &Errors) -> FormPage {
    FormPage {
        frame: at.frame("New memory", Tab::Memories),
        heading: "New memory".to_owned(),
        action: at.url("memories"),
        back: at.url("memories"),
        many: "Memories".to_owned(),
        version: None,
        form_id: Some(form_id),
        delete_path: None,
        form: FormView::new(NEW, texts, errors, None, false),
        is_conflict: false,
        pending: Vec::new(),
        pending_path: String::new(),
        actors_path: Some(at.url("memories/actors")),
    }
}

/// GET of the form for a new memory; a holder or player in the query is filled in, and so is the campaign's game time.
///
/// # Errors
/// `internal`.
pub async fn new(at: InCampaign) -> Result<HttpResponse> {
    let query = at.request.query_string();
    let mut texts = Texts::from(["holder_id", "player_id"].map(|name| (name.to_owned(), given(query, name))));
    texts.insert(GAME_TIME.name(), service::game_time_now(at.campaign.game_time.as_deref().unwrap_or_default()));
    at.show(&new_page(&at, clock::id().to_string(), &texts, &Errors::default()))
}

/// POST of a new memory.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn create(at: InCampaign) -> Result<HttpResponse> {
    let texts = form::texts_sent(NEW, &at.form);
    let form_id = form_id(&at);
    let key = once(&at, &form_id, &texts);
    match http::write(&at.app, &at.caller, key.as_ref(), async |tx| create_memory(&at, tx).await).await {
        Ok(made) => {
            let list = at.url("memories");
            Ok(at.redirect(made.location().unwrap_or(&list), "The memory was created."))
        }
        Err(error) => at.show_again(&new_page(&at, form_id, &texts, &Errors::of(NEW, error)?)),
    }
}

async fn create_memory(at: &InCampaign, tx: &TenantTx) -> Result<Answer<()>> {
    let campaign = at.campaign.id.0;
    let text = service::text(at.form.text("text"), "/text")?;
    let game_time = service::game_time(Some(at.form.text("game_time")), "/game_time")?;
    let (kind, holder) = service::holder(tx, campaign, at.form.text("holder_id").trim()).await?.ok_or_else(|| {
        Error::invalid("/holder_id", "unknown_reference", "There is no such NPC or owner in this campaign.")
    })?;
    let player = player::id(tx, campaign, at.form.text("player_id").trim()).await?;
    at.app.limits.check_rows(tx, &at.caller, "memory").await?;
    let new = service::NewMemory {
        campaign,
        holder_type: if kind == "npc" { "npc" } else { "owner" },
        holder,
        player: Subject::chosen(player),
        text,
        game_time: service::GameTime::At(game_time.as_deref()),
        is_pinned: !at.form.text("pinned").is_empty(),
        source: "editor",
        author: at.caller.author(),
        turn: None,
    };
    let id = service::insert(tx, &new).await?;
    Ok(Answer::created(at.url(&format!("memories/{id}")), 1, ()))
}

#[derive(Template)]
#[template(path = "admin/memory.html", blocks = ["main"])]
struct MemoryPage {
    frame: Frame,
    list: String,
    row: Row,
    version: i64,
    words: FormView,
    place: FormView,
    may_write: bool,
    may_see_history: bool,
}
render_blocks!(MemoryPage: as_main);

fn id_of(at: &InCampaign) -> Result<Uuid> {
    at.path("x").parse().map_err(|_| Error::not_found("memory"))
}

async fn current(at: &InCampaign) -> Result<(MemoryView, Names)> {
    let tx = at.read().await?;
    let memory = service::find(&tx, at.campaign.id.0, id_of(at)?, None).await?;
    let names = names_in(&tx, &[&memory]).await?;
    Ok((memory, names))
}

/// The texts of a memory's two forms.
fn texts_of(memory: &MemoryView) -> Texts {
    let mut texts = form::texts_of(WORDS, &view_of(memory));
    texts.extend([
        ("holder_id".to_owned(), memory.holder.slug.clone().unwrap_or_else(|| memory.holder.id.to_string())),
        ("player_id".to_owned(), memory.player_slug.clone().unwrap_or_else(|| memory.player_id.to_string())),
    ]);
    texts
}

/// A memory as the form of its words reads it.
fn view_of(memory: &MemoryView) -> Value {
    json!({ "text": memory.text, "game_time": memory.game_time, "pinned": memory.pinned })
}

/// The page of a memory, with what its forms contain and what is wrong with them.
fn memory_page(
    at: &InCampaign,
    (memory, names): (&MemoryView, &Names),
    texts: &Texts,
    words: &Errors,
    place: &Errors,
) -> MemoryPage {
    let is_read_only = !at.may(Scope::Write);
    MemoryPage {
        frame: at.frame("Memory", Tab::Memories),
        list: at.url("memories"),
        row: row(at, memory, names),
        version: memory.version,
        words: FormView::new(WORDS, texts, words, None, is_read_only),
        place: FormView::new(PLACE, texts, place, None, is_read_only),
        may_write: !is_read_only,
        may_see_history: at.may(Scope::Gm),
    }
}

/// GET of a memory.
///
/// # Errors
/// `not_found`.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let (memory, names) = current(&at).await?;
    let none = Errors::default();
    at.show(&memory_page(&at, (&memory, &names), &texts_of(&memory), &none, &none))
}

/// The version that the form was loaded with.
fn expected(at: &InCampaign) -> Expected {
    Expected::version(at.form.version().unwrap_or(0))
}

/// The address of the memory that the request is about.
fn path_of(at: &InCampaign) -> String {
    at.url(&format!("memories/{}", at.path("x")))
}

/// POST of a corrected memory. If somebody else changed the memory first, the user sees both versions merged, and nothing is written.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn save(at: InCampaign) -> Result<HttpResponse> {
    let (memory, names) = current(&at).await?;
    let view = view_of(&memory);
    let mut saving = Saving::of(WORDS, &at.form)?;
    saving.take_theirs(&at.form, &view);
    let write = async |expected: Expected, patch: Value| {
        tenancy::write(&at.app.pool, at.caller.actor(), async |tx| {
            let memory = service::hold(tx, at.campaign.id.0, memory.id, &expected).await?;
            change(tx, &memory, patch.clone()).await
        })
        .await
    };
    match saving.over((memory.version, &view), Value::Null, write).await? {
        Saved::Done(_) => Ok(at.redirect(&path_of(&at), "The memory was saved.")),
        Saved::Wrong(errors) => {
            let mut texts = texts_of(&memory);
            texts.extend(saving.texts);
            at.show_again(&memory_page(&at, (&memory, &names), &texts, &errors, &Errors::default()))
        }
        Saved::Late => merge_page(&at, &saving).await,
    }
}

/// The page with both versions of a memory merged.
async fn merge_page(at: &InCampaign, saving: &Saving) -> Result<HttpResponse> {
    let (memory, _) = current(at).await?;
    let tx = at.read().await?;
    let base = revisions::columns_at_version(&tx, at.campaign.id.0, TABLE, memory.id, saving.version).await?;
    drop(tx);
    let of = merge::Of {
        tab: Tab::Memories,
        table: TABLE,
        id: memory.id,
        label: "a memory",
        path: path_of(at),
        version: memory.version,
        view: &view_of(&memory),
        groups: WORDS,
        base: base.map(|columns| form::texts_of(WORDS, &Value::Object(columns))),
    };
    merge::page_of(at, of, &saving.texts).await
}

/// POST of another holder or player.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn relocate(at: InCampaign) -> Result<HttpResponse> {
    let work = tenancy::write(&at.app.pool, at.caller.actor(), async |tx| {
        let memory = service::hold(tx, at.campaign.id.0, id_of(&at)?, &expected(&at)).await?;
        let now = texts_of(&memory);
        let changed = |name: &str| {
            let text = at.form.text(name).trim();
            (now.get(name).map(String::as_str) != Some(text)).then(|| text.to_owned())
        };
        let to = MoveInput { holder_id: changed("holder_id"), player_id: changed("player_id") };
        move_in(tx, &memory, &to).await.map(drop)
    });
    match work.await {
        Ok(()) => Ok(at.redirect(&path_of(&at), "The memory was moved.")),
        Err(error) => not_moved(&at, error).await,
    }
}

/// Shows the page again with the reason why the memory was not moved.
async fn not_moved(at: &InCampaign, error: Error) -> Result<HttpResponse> {
    let (memory, names) = current(at).await?;
    let mut texts = texts_of(&memory);
    texts.extend(form::texts_sent(PLACE, &at.form));
    let is_late = error.code == Code::PreconditionFailed;
    let errors = if is_late {
        let general = "Somebody changed this memory after you opened it. Check it again before you move it.";
        Errors { general: vec![general.to_owned()], ..Errors::default() }
    } else {
        Errors::of(PLACE, error)?
    };
    let page = memory_page(at, (&memory, &names), &texts, &Errors::default(), &errors);
    if is_late { at.show_with(StatusCode::CONFLICT, &page) } else { at.show_again(&page) }
}

async fn delete_page(at: &InCampaign, problem: Option<String>) -> Result<AskPage> {
    let (memory, names) = current(at).await?;
    let row = row(at, &memory, &names);
    Ok(AskPage {
        frame: at.frame("Delete a memory", Tab::Memories),
        question: "Delete this memory?".to_owned(),
        quoted: Some(row.text),
        then: format!("{} will forget this about {}.", row.holder, row.player),
        yes: "Delete",
        no: "Keep it",
        back: row.path,
        version: Some(memory.version),
        problem,
        repeat: None,
        forks: false,
        rows: Vec::new(),
        before: None,
    })
}

/// GET of the question whether to delete a memory.
///
/// # Errors
/// `not_found`.
pub async fn ask(at: InCampaign) -> Result<HttpResponse> {
    at.show(&delete_page(&at, None).await?)
}

/// POST that deletes a memory.
///
/// # Errors
/// `not_found`.
pub async fn delete(at: InCampaign) -> Result<HttpResponse> {
    let work = tenancy::write(&at.app.pool, at.caller.actor(), async |tx| {
        let memory = service::hold(tx, at.campaign.id.0, id_of(&at)?, &expected(&at)).await?;
        service::remove(tx, memory.id).await
    });
    match work.await {
        Ok(()) => Ok(at.redirect(&at.url("memories"), "The memory was deleted.")),
        Err(error) if error.code == Code::PreconditionFailed => {
            at.show_with(StatusCode::CONFLICT, &delete_page(&at, Some(CHANGED_SINCE.to_owned())).await?)
        }
        Err(error) => Err(error),
    }
}

/// GET of a memory's history.
///
/// # Errors
/// `not_found`, `gone`.
pub async fn history(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let memory = service::find(&tx, at.campaign.id.0, id_of(&at)?, None).await?;
    let (id, version, list) = (memory.id, memory.version, at.url("memories"));
    let label = "a memory";
    history::show_history(
        &at,
        tx,
        history::Of { tab: Tab::Memories, many: "Memories", list, table: TABLE, id, label, version },
    )
    .await
}

/// GET of the most recently deleted memories.
///
/// # Errors
/// Database errors.
pub async fn deleted(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let rows = revisions::deleted(&tx, at.campaign.id.0, (TABLE, "text"), history::DELETED_MAX).await?;
    drop(tx);
    history::show_deleted(&at, (Tab::Memories, "Memories", "memories"), rows)
}

/// POST that restores a memory to what it was after a revision, even if it was deleted.
///
/// # Errors
/// `not_found`, `gone`, `precondition_failed`, `conflict`, `quota_exceeded`.
pub async fn restore(at: InCampaign) -> Result<HttpResponse> {
    let seq = at.path("seq").parse().map_err(|_| Error::not_found("revision"))?;
    let (campaign, id) = (at.campaign.id.0, id_of(&at)?);
    let work = tenancy::write(&at.app.pool, at.caller.actor(), async |tx| {
        let is_there = match service::hold(tx, campaign, id, &expected(&at)).await {
            Ok(_) => true,
            Err(error) if error.code == Code::NotFound => false,
            Err(error) => return Err(error),
        };
        if !is_there {
            at.app.limits.check_rows(tx, &at.caller, TABLE).await?;
        }
        revisions::restore_memory(tx, campaign, id, seq, is_there).await
    });
    match work.await {
        Ok(()) => {}
        Err(error) if error.code == Code::Conflict => {
            let places = [("npcs", "NPCs"), ("owners", "Owners"), ("characters", "Characters")];
            let deleted = |(path, many)| (at.url(&format!("{path}/deleted")), format!("Deleted {many}"));
            return history::stuck(&at, Tab::Memories, error.detail.clone(), places.map(deleted).to_vec());
        }
        Err(error) => return Err(history::came_late(error)),
    }
    Ok(at.redirect(&path_of(&at), "The memory was restored."))
}
