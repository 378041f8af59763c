//! Memories: what NPCs and owners remember about characters, where each memory came from, and broadcasts as a whole.

use db::tenancy;
use edge::auth::player;
use std::collections::HashMap;

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use entity::memory::{Holder, Source};
use uuid::Uuid;

use super::{
    Frame, InCampaign, Tab,
    ask::AskPage,
    form::{self, Errors, Field, FormView, Group, Kind, Texts},
    history,
    list::moment,
    options::{OptionView, OptionsPage},
    query::{Ways, as_asked, encoded, given},
    world_form::{form_id, once},
};
use crate::shown;
use base::error::{Code, Error, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Scope,
    http::{self, Reply, etag::Expected, paging::Page},
};
use world::{
    actors as people,
    memory::{
        MemoryView,
        broadcasts::{self as told, BroadcastFilter, BroadcastView},
        list::{MemoryFilter, page_of},
        service::{self, MoveInput, move_in},
        subject::Subject,
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
const NEW: &[Group] = &[Group { title: "", is_folded: false, fields: &[HOLDER, PLAYER, TEXT] }];
const WORDS: &[Group] = &[Group { title: "", is_folded: false, fields: &[TEXT] }];
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
struct Row {
    path: String,
    text: String,
    holder: String,
    holder_path: String,
    player: String,
    player_path: String,
    source: &'static str,
    turn_path: Option<String>,
    broadcast_path: Option<String>,
    changed: String,
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
    ways: Ways,
}
shown!(ListPage: as_main, "rows" => as_rows);

/// GET of the list.
///
/// # Errors
/// `bad_request` for invalid parameters.
pub async fn list(at: InCampaign) -> Result<HttpResponse> {
    let page = Page::<MemoryFilter>::parse(&as_asked(&at, "-created_at", &[("limit", "100")]))?;
    let tx = at.read().await?;
    let found = page_of(&tx, &at.caller, at.campaign.id.0, None, &page).await?;
    let names = names_in(&tx, &found.items.iter().collect::<Vec<_>>()).await?;
    let asked = at.request.query_string();
    let [q, holder, player, source] = ["q", "holder_id", "player_id", "source"].map(|name| given(asked, name));
    at.show(&ListPage {
        frame: at.frame("Memories", Tab::Memories),
        path: at.url("memories"),
        is_filtered: [&q, &holder, &player, &source].iter().any(|text| !text.is_empty()),
        q,
        holder,
        player,
        source,
        sort: given(asked, "sort"),
        rows: found.items.iter().map(|memory| row(&at, memory, &names)).collect(),
        ways: Ways::of(&at, found.next_cursor.as_deref()),
    })
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

#[derive(Template)]
#[template(path = "admin/memory-new.html", blocks = ["main"])]
struct NewPage {
    frame: Frame,
    list: String,
    form_id: String,
    form: FormView,
}
shown!(NewPage: as_main);

fn new_page(at: &InCampaign, form_id: String, texts: &Texts, errors: &Errors) -> NewPage {
    NewPage {
        frame: at.frame("New memory", Tab::Memories),
        list: at.url("memories"),
        form_id,
        form: FormView::new(NEW, texts, errors, None, false),
    }
}

/// GET of the form for a new memory; a holder or player in the query is filled in.
///
/// # Errors
/// `internal`.
pub async fn new(at: InCampaign) -> Result<HttpResponse> {
    let query = at.request.query_string();
    let texts = ["holder_id", "player_id"].map(|name| (name.to_owned(), given(query, name)));
    at.show(&new_page(&at, Uuid::now_v7().to_string(), &Texts::from(texts), &Errors::default()))
}

/// POST of a new memory.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn create(at: InCampaign) -> Result<HttpResponse> {
    let texts = form::texts_sent(NEW, &at.form);
    let form_id = form_id(&at);
    let key = once(&at, &form_id, &texts);
    match http::write(&at.app, &at.caller, key.as_ref(), async |tx| made(&at, tx).await).await {
        Ok(reply) => Ok(at.done(&reply.location.unwrap_or_else(|| at.url("memories")), "The memory was created.")),
        Err(error) => at.show_again(&new_page(&at, form_id, &texts, &Errors::of(NEW, error)?)),
    }
}

async fn made(at: &InCampaign, tx: &TenantTx) -> Result<Reply> {
    let campaign = at.campaign.id.0;
    let text = service::text(at.form.text("text"), "/text")?;
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
        source: "editor",
        author: at.caller.author(),
        turn: None,
    };
    let id = service::insert(tx, &new).await?;
    Reply::created(at.url(&format!("memories/{id}")), 1, &id)
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
    is_conflict: bool,
}
shown!(MemoryPage: as_main);

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
    Texts::from([
        ("text".to_owned(), memory.text.clone()),
        ("holder_id".to_owned(), memory.holder.slug.clone().unwrap_or_else(|| memory.holder.id.to_string())),
        ("player_id".to_owned(), memory.player_slug.clone().unwrap_or_else(|| memory.player_id.to_string())),
    ])
}

fn memory_page(
    at: &InCampaign,
    (memory, names): (&MemoryView, &Names),
    texts: &Texts,
    errors: &Errors,
    is_conflict: bool,
) -> MemoryPage {
    let stored = texts_of(memory);
    let theirs = is_conflict.then_some(&stored);
    let (is_read_only, none) = (!at.may(Scope::Write), Errors::default());
    let is_at = |groups: &[Group]| {
        errors.fields.iter().any(|(name, _)| groups.iter().flat_map(|g| g.fields).any(|field| field.name() == *name))
    };
    let (words, place) = if is_at(PLACE) { (&none, errors) } else { (errors, &none) };
    MemoryPage {
        frame: at.frame("Memory", Tab::Memories),
        list: at.url("memories"),
        row: row(at, memory, names),
        version: memory.version,
        words: FormView::new(WORDS, texts, words, theirs, is_read_only),
        place: FormView::new(PLACE, texts, place, theirs, is_read_only),
        may_write: !is_read_only,
        may_see_history: at.may(Scope::Gm),
        is_conflict,
    }
}

/// GET of a memory.
///
/// # Errors
/// `not_found`.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let (memory, names) = current(&at).await?;
    at.show(&memory_page(&at, (&memory, &names), &texts_of(&memory), &Errors::default(), false))
}

/// The version that the form was loaded with.
fn expected(at: &InCampaign) -> Expected {
    Expected::version(at.form.version().unwrap_or(0))
}

/// Shows the page again with the errors of one of its forms.
async fn again(at: &InCampaign, groups: &'static [Group], error: Error) -> Result<HttpResponse> {
    let (memory, names) = current(at).await?;
    let mut texts = texts_of(&memory);
    texts.extend(form::texts_sent(groups, &at.form));
    if error.code == Code::PreconditionFailed {
        let page = memory_page(at, (&memory, &names), &texts, &Errors::default(), true);
        return at.show_with(StatusCode::CONFLICT, &page);
    }
    at.show_again(&memory_page(at, (&memory, &names), &texts, &Errors::of(groups, error)?, false))
}

/// POST of a corrected text.
///
/// # Errors
/// Errors that the form did not cause.
pub async fn save(at: InCampaign) -> Result<HttpResponse> {
    let work = async {
        let text = service::text(at.form.text("text"), "/text")?;
        tenancy::write(&at.app.pool, at.caller.actor(), async |tx| {
            let memory = service::hold(tx, at.campaign.id.0, id_of(&at)?, &expected(&at)).await?;
            service::rewrite(tx, memory.id, text).await
        })
        .await
    };
    match work.await {
        Ok(()) => Ok(at.done(&at.url(&format!("memories/{}", at.path("x"))), "The memory was saved.")),
        Err(error) => again(&at, WORDS, error).await,
    }
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
        Ok(()) => Ok(at.done(&at.url(&format!("memories/{}", at.path("x"))), "The memory was moved.")),
        Err(error) => again(&at, PLACE, error).await,
    }
}

/// GET of the question whether to delete a memory.
///
/// # Errors
/// `not_found`.
pub async fn ask(at: InCampaign) -> Result<HttpResponse> {
    let (memory, names) = current(&at).await?;
    let shown = row(&at, &memory, &names);
    at.show(&AskPage {
        frame: at.frame("Delete a memory", Tab::Memories),
        question: "Delete this memory?".to_owned(),
        quoted: Some(shown.text),
        then: format!("{} will forget this about {}.", shown.holder, shown.player),
        yes: "Delete",
        no: "Keep it",
        back: shown.path,
        version: Some(memory.version),
        problem: None,
        repeat: None,
        forks: false,
        rows: Vec::new(),
        before: None,
    })
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
        Ok(()) => Ok(at.done(&at.url("memories"), "The memory was deleted.")),
        Err(error) => again(&at, WORDS, error).await,
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
    history::shown_of(
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
    history::shown_deleted(&at, (Tab::Memories, "Memories", "memories"), rows)
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
        Err(error) => return Err(error),
    }
    Ok(at.done(&at.url(&format!("memories/{id}")), "The memory was restored."))
}

/// A broadcast on the page.
struct Broadcast {
    told: BroadcastView,
    owner: Option<String>,
    player: String,
    /// Who heard it: the memory's address, and the hearer's name.
    heard: Vec<(String, String)>,
    path: String,
    at: String,
    turn_path: Option<String>,
    more: i64,
}

#[derive(Template)]
#[template(path = "admin/broadcasts.html", blocks = ["main", "rows"])]
struct BroadcastsPage {
    frame: Frame,
    list: String,
    q: String,
    player: String,
    rows: Vec<Broadcast>,
    ways: Ways,
}
shown!(BroadcastsPage: as_main, "rows" => as_rows);

/// GET of the broadcasts, newest first.
///
/// # Errors
/// `bad_request` for invalid parameters.
pub async fn broadcasts(at: InCampaign) -> Result<HttpResponse> {
    let page = Page::<BroadcastFilter>::parse(&as_asked(&at, "-created_at", &[("limit", "50")]))?;
    let tx = at.read().await?;
    let found = told::page_of(&tx, &at.caller, at.campaign.id.0, &page).await?;
    let asked = at.request.query_string();
    let ids = found.items.iter().flat_map(|told| {
        let heard = told.audience.iter().map(|one| one.id);
        heard.chain([told.player_id]).chain(told.owner_id)
    });
    let names = people::called(&tx, &ids.collect::<Vec<_>>()).await?;
    let named = |id: Uuid, slug: &Option<String>| {
        names.get(&id).cloned().or_else(|| slug.clone()).unwrap_or_else(|| id.to_string())
    };
    let rows = found.items.into_iter().map(|told| Broadcast {
        owner: told.owner_id.map(|id| named(id, &told.owner_slug)),
        player: named(told.player_id, &told.player_slug),
        heard: told
            .audience
            .iter()
            .map(|one| (at.url(&format!("memories/{}", one.memory_id)), named(one.id, &one.slug)))
            .collect(),
        path: at.url(&format!("memories/broadcasts/{}/retract", told.id)),
        at: moment(told.created_at),
        turn_path: told.turn_id.map(|turn| at.url(&format!("turns/{turn}"))),
        more: told.audience_total - i64::try_from(told.audience.len()).unwrap_or(0),
        told,
    });
    at.show(&BroadcastsPage {
        frame: at.frame("Broadcasts", Tab::Memories),
        list: at.url("memories"),
        q: given(asked, "q"),
        player: given(asked, "player_id"),
        rows: rows.collect(),
        ways: Ways::of(&at, found.next_cursor.as_deref()),
    })
}

fn broadcast_of(at: &InCampaign) -> Result<Uuid> {
    at.path("x").parse().map_err(|_| Error::not_found("broadcast"))
}

/// GET of the question whether to retract a broadcast.
///
/// # Errors
/// `not_found`.
pub async fn ask_to_retract(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let (text, many) = service::broadcast_told(&tx, at.campaign.id.0, broadcast_of(&at)?).await?;
    at.show(&AskPage {
        frame: at.frame("Retract a broadcast", Tab::Memories),
        question: "Retract this broadcast?".to_owned(),
        quoted: Some(text),
        then: format!("This removes the memory from everyone who has it: {many}."),
        yes: "Retract",
        no: "Keep it",
        back: at.url("memories/broadcasts"),
        version: None,
        problem: None,
        repeat: None,
        forks: false,
        rows: Vec::new(),
        before: None,
    })
}

/// POST that retracts a broadcast and deletes every memory that it left.
///
/// # Errors
/// `not_found`.
pub async fn retract(at: InCampaign) -> Result<HttpResponse> {
    let broadcast = broadcast_of(&at)?;
    let retract = async |tx: &TenantTx| service::retract(tx, at.campaign.id.0, broadcast).await;
    let gone = tenancy::write(&at.app.pool, at.caller.actor(), retract).await?;
    Ok(at.done(&at.url("memories/broadcasts"), &format!("The broadcast was retracted. Memories removed: {gone}.")))
}
