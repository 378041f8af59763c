//! The page of an NPC, an owner, a character, a scene or a location: who that is first, then what goes on around it. The form is behind Edit.
//!
//! A kind of row fills in its [`Parts`] ([`Shown`]), and has its lines in `PAGES`. What a part costs is known: two round trips at most
//! for each of them, and a limit on everything that a list shows.

mod character;
pub mod location;
mod npc;
mod owner;
mod scene;

use actix_web::HttpResponse;
use askama::Template;
use serde_json::Value;
use uuid::Uuid;

use super::{Frame, InCampaign, memories, query::encoded, world_form::pending, world_row::World};
use crate::{emblem::Emblem, render_blocks, sheet::Sheet};
use ai::tools;
use base::error::Result;
use db::tenancy::TenantTx;
use edge::{
    caller::Scope,
    http::resource::{self, Ref, scope_key},
};
use entity::{kind::EntityKind, shapes::ToolRef};
use world::{
    around::{self, Known, SHOWN_MAX},
    messages::visible::VisibleMessage,
    npcs::place::{capital, location_name},
    overview::Resident,
};

/// The most characters of a name in a list of facts.
const NAME_CHARS_MAX: usize = 80;

/// A kind of row that has a page.
pub trait Shown: World {
    /// What its page shows.
    fn parts(at: &InCampaign, tx: &TenantTx, row: &Self::Model) -> impl Future<Output = Result<Parts>>;
}

/// What a page shows besides the name. What is left empty is not shown.
#[derive(Default)]
pub struct Parts {
    /// `Human innkeeper`.
    who: String,
    /// Where: the address of the location's page, and its name.
    location: Option<(String, String)>,
    /// Mood and marks.
    tags: Vec<String>,
    /// None for what has none.
    description: Option<String>,
    /// Longer texts, folded, by label.
    texts: Vec<(&'static str, String)>,
    facts: Vec<(&'static str, String)>,
    sheet: Option<Sheet>,
    people: Vec<Company>,
    lore: Option<Lore>,
    /// What was said; none for what does not speak.
    words: Option<Vec<VisibleMessage>>,
    memories: Option<Memories>,
    /// The name and description of each tool; none for what has no tools.
    tools: Option<Vec<Tool>>,
    links: Vec<Link>,
}

/// Rows that belong to it, under a title.
struct Company {
    title: &'static str,
    people: Vec<Resident>,
    /// Whether there are others.
    has_more: bool,
}

impl Company {
    fn new(title: &'static str, mut people: Vec<Resident>) -> Self {
        let has_more = people.len() > SHOWN_MAX;
        people.truncate(SHOWN_MAX);
        Self { title, people, has_more }
    }
}

/// The lore that concerns it.
struct Lore {
    entries: Vec<Known>,
    has_more: bool,
    /// What the section is called.
    title: &'static str,
    /// The address of the form for a new entry.
    new: Option<String>,
    /// What is told if there is none.
    none: &'static str,
}

/// The newest memories.
struct Memories {
    title: &'static str,
    rows: Vec<memories::Row>,
    /// The list of all of them.
    all: String,
    new: Option<String>,
    example: &'static str,
}

/// A tool that it may call.
struct Tool {
    name: String,
    about: String,
}

/// A link below the name.
struct Link {
    label: &'static str,
    icon: &'static str,
    path: String,
}

#[derive(Template)]
#[template(path = "admin/entity.html", blocks = ["main"])]
struct EntityPage {
    frame: Frame,
    many: &'static str,
    back: String,
    base: String,
    name: String,
    slug: String,
    /// The page's own address; empty for what is no row.
    path: String,
    version: i64,
    /// Instructions that a file brought, by the label of their field.
    pending: Vec<(&'static str, String)>,
    has_history: bool,
    may_erase: bool,
    parts: Parts,
}
render_blocks!(EntityPage: as_main);

impl EntityPage {
    fn emblem(&self) -> Emblem {
        Emblem::of(&self.name)
    }

    fn has_text(&self) -> bool {
        self.parts.description.as_ref().is_some_and(|text| !text.trim().is_empty()) || !self.parts.texts.is_empty()
    }

    /// Whether there is nothing for a first column.
    fn is_alone(&self) -> bool {
        self.parts.description.is_none() && self.parts.words.is_none()
    }

    /// Where to send what the user decides about the draft.
    fn pending_path(&self) -> String {
        format!("{}/instructions", self.path)
    }
}

/// GET of a row's page.
///
/// # Errors
/// `not_found`.
pub async fn page<W: Shown>(at: InCampaign) -> Result<HttpResponse>
where
    W::Model: Clone,
{
    let tx = at.read().await?;
    let campaign = Ref::Id(at.campaign.id.0);
    let model = resource::find::<W>(&tx, &at.caller, Some(&campaign), &Ref::parse(at.path("x"))).await?;
    let mut parts = W::parts(&at, &tx, &model).await?;
    drop(tx);
    let stamp = W::stamp(&model);
    let (id, name, version) = (stamp.id, stamp.label.to_owned(), stamp.version);
    if W::REACTS && at.may(Scope::Gm) {
        let path = at.url(&format!("{}/{id}/reactions", W::PATH));
        parts.links.push(Link { label: "Scores and reactions", icon: "reactions", path });
    }
    let view = resource::view::<W>(model, &at.caller)?;
    let slug = view["slug"].as_str().unwrap_or_default().to_owned();
    at.show(&EntityPage {
        frame: at.frame(&name, W::TAB),
        many: W::MANY,
        back: at.url(W::PATH),
        base: at.url(""),
        path: at.url(&format!("{}/{id}", W::PATH)),
        name,
        slug,
        version,
        pending: pending(&view),
        has_history: at.may(Scope::Gm),
        may_erase: W::IS_ERASED && at.may(Scope::Gm) && at.may(Scope::Admin),
        parts,
    })
}

/// The words that there are, in one line with a capital first letter.
fn line(words: &[Option<&str>]) -> String {
    let there: Vec<&str> = words.iter().copied().flatten().map(str::trim).filter(|word| !word.is_empty()).collect();
    capital(&there.join(" "))
}

/// The address of a location's page, below the campaign's.
#[must_use]
pub fn location_path(location: &str) -> String {
    // A path has no plus signs for spaces.
    format!("locations/{}", encoded(&scope_key(location)).replace('+', "%20"))
}

/// A location as a link to its page; none without one.
fn location_link(at: &InCampaign, location: Option<&str>) -> Option<(String, String)> {
    let location = location.filter(|name| !name.trim().is_empty())?;
    Some((at.url(&location_path(location)), location_name(location)))
}

/// The texts that there are.
fn texts(texts: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let there = texts.iter().filter(|(_, text)| !text.trim().is_empty());
    there.map(|(label, text)| (*label, (*text).to_owned())).collect()
}

/// The facts that are known.
fn facts(facts: &[(&'static str, Option<String>)]) -> Vec<(&'static str, String)> {
    let known = facts.iter().filter_map(|(label, fact)| Some((*label, fact.clone()?)));
    known.filter(|(_, fact)| !fact.trim().is_empty()).collect()
}

/// The tools that a model is offered, and those that nobody has.
fn tools_of(listed: &[ToolRef]) -> Vec<Tool> {
    let tool = |tool: &ToolRef| {
        let known = tools::find(tool.name()).map_or("There is no tool with this name.", |known| known.description);
        Tool { name: tool.name().to_owned(), about: tool.description().unwrap_or(known).to_owned() }
    };
    listed.iter().take(SHOWN_MAX).map(tool).collect()
}

/// What an NPC or owner knows in particular: the lore of these scopes and subjects.
async fn known(at: &InCampaign, tx: &TenantTx, scopes: &[(&str, &str)]) -> Result<Lore> {
    let none = "Only the lore that everyone knows. Lore about the location, race, profession or faction appears here, such as: \
                “Innkeepers know who owes whom.”";
    lore(at, tx, ("Knows", none), scopes).await
}

/// The lore about a location, given as a slug.
async fn lore_about(at: &InCampaign, tx: &TenantTx, location: &str) -> Result<Lore> {
    let none =
        "None yet. Every NPC at a location knows the lore about it, such as: “The cellar floods at spring tide.”";
    lore(at, tx, ("Lore about this location", none), &[("zone", location)]).await
}

async fn lore(
    at: &InCampaign,
    tx: &TenantTx,
    (title, none): (&'static str, &'static str),
    scopes: &[(&str, &str)],
) -> Result<Lore> {
    let mut entries = around::lore(tx, &at.caller, at.campaign.id.0, scopes).await?;
    let has_more = entries.len() > SHOWN_MAX;
    entries.truncate(SHOWN_MAX);
    Ok(Lore { entries, has_more, title, none, new: at.may_write().then(|| at.url("lore/new")) })
}

/// Names with commas between them, as far as they are shown.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let shown = |name: &'a str| name.chars().take(NAME_CHARS_MAX).collect::<String>();
    Some(names.take(SHOWN_MAX).map(shown).collect::<Vec<_>>().join(", "))
}

/// The newest memories of an NPC or owner.
async fn remembers(at: &InCampaign, tx: &TenantTx, (holder, slug): (Uuid, &str)) -> Result<Memories> {
    Ok(Memories {
        title: "Remembers",
        rows: memories::newest(at, tx, Some(holder), "").await?,
        all: at.url(&format!("memories?holder_id={}", encoded(slug))),
        new: at.may_write().then(|| at.url(&format!("memories/new?holder_id={}", encoded(slug)))),
        example: "It remembers what its tools write down in conversations, and what you add, such as: “Alice paid her debt.”",
    })
}

/// What was said to and by an actor.
async fn last_words(at: &InCampaign, tx: &TenantTx, actor: Uuid) -> Result<Option<Vec<VisibleMessage>>> {
    around::last_words(tx, &at.caller, at.campaign.id.0, actor).await.map(Some)
}

/// The links of an NPC or owner to the lab and to its card.
fn ask_links(at: &InCampaign, kind: EntityKind, slug: &str) -> Vec<Link> {
    let mut links = Vec::new();
    if at.may(Scope::Gm) {
        let path = at.url(&format!("lab?entity={}:{}", kind.as_str(), encoded(slug)));
        links.push(Link { label: "Ask in the prompt lab", icon: "lab", path });
    }
    if kind == EntityKind::Npc {
        let path = at.url(&format!("exchange/card?npc={}&as=png", encoded(slug)));
        links.push(Link { label: "Character card", icon: "exchange", path });
    }
    links
}

/// A number, if it means something.
fn threshold(score: Option<i32>) -> Option<String> {
    score.filter(|score| *score != 0).map(|score| score.to_string())
}

/// How long a JSON list is, as a fact.
fn counted(items: &[Value]) -> Option<String> {
    (!items.is_empty()).then(|| items.len().to_string())
}
