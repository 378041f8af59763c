//! A campaign's first page: what goes on in it, and what needs a person.

use actix_web::HttpResponse;
use askama::Template;

use super::{
    Frame, InCampaign, Tab, entity,
    in_the_way::{place_of, tables_with_pages},
    list::moment,
};
use crate::{fight::Fight, render_blocks};
use base::error::Result;
use edge::caller::Scope;
use world::{
    audit::{self, AuditEntry},
    messages::visible::VisibleMessage,
    overview::{self, Attention, Whereabouts},
    table,
};

/// How many changes are read, and how many of them are shown.
const CHANGES_READ: u16 = 40;
const CHANGES_MAX: usize = 6;
/// The most names that a place lists.
const NAMES_MAX: usize = 6;

#[derive(Template)]
#[template(path = "admin/home.html", blocks = ["main"])]
struct HomePage {
    frame: Frame,
    base: String,
    description: String,
    game_time: Option<String>,
    /// The first steps, unless all are done or the user could not do them.
    steps: Vec<Step>,
    counts: Vec<Count>,
    words: Vec<VisibleMessage>,
    fights: Vec<Fight>,
    /// Where the page follows what changes.
    news: Option<String>,
    /// The token of the fights' forms.
    token: String,
    places: Vec<Whereabouts>,
    /// Whether more people have a location than the page names.
    has_more_places: bool,
    /// None if the user may not see the journal.
    changes: Option<Vec<Change>>,
    /// None if the user could do nothing about it.
    attention: Option<Attention>,
}
render_blocks!(HomePage: as_main);

impl HomePage {
    fn location_path(&self, location: &str) -> String {
        format!("{}/{}", self.base, entity::location_path(location))
    }
}

/// A step of the first ten minutes.
struct Step {
    label: &'static str,
    why: &'static str,
    path: String,
    is_done: bool,
}

/// The four steps of a new campaign, in order.
fn steps(at: &InCampaign, counts: &[(&str, &str, i64)], was_played: bool) -> Vec<Step> {
    let has = |kind: &str| counts.iter().any(|(_, known, number)| *known == kind && *number > 0);
    let step = |label, why, path: &str, is_done| Step { label, why, path: at.url(path), is_done };
    let all = vec![
        step(
            "Bring a book or a card",
            "A lorebook, a character card or a campaign of another program becomes lore, NPCs and memories.",
            "exchange",
            has("lore") || has("memories"),
        ),
        step("Make somebody", "An NPC with a name and two sentences is enough to talk to.", "npcs/new", has("npcs")),
        step("Ask them in the prompt lab", "You see what the model reads, and what it answers.", "lab", has("turns")),
        step(
            "Invite a player",
            "A link opens the table in a browser. Done when a player or a program has had a turn.",
            "invite",
            was_played,
        ),
    ];
    if all.iter().all(|step| step.is_done) { Vec::new() } else { all }
}

struct Count {
    label: &'static str,
    /// The name of its icon, and of its page.
    kind: &'static str,
    path: String,
    number: String,
}

/// A row that was changed, and by whom.
struct Change {
    kind: String,
    /// The name of its icon; none if its kind has no page.
    place: Option<&'static str>,
    label: String,
    path: Option<String>,
    did: &'static str,
    by: String,
    at: String,
}

impl Change {
    fn of(at: &InCampaign, entry: AuditEntry) -> Self {
        let place = place_of(&entry.table);
        let is_there = entry.op != "delete";
        Self {
            kind: entry.table.replace('_', " "),
            place,
            path: place.filter(|_| is_there).map(|place| at.url(&format!("{place}/{}", entry.row))),
            label: if entry.label.is_empty() { "(no name)".to_owned() } else { entry.label },
            did: match entry.op.as_str() {
                "insert" => "created",
                "delete" => "deleted",
                _ => "changed",
            },
            by: match (entry.turn, entry.actor_name) {
                (Some(_), _) => "a turn".to_owned(),
                (None, Some(name)) if !name.is_empty() => name,
                _ => entry.origin,
            },
            at: moment(entry.at),
        }
    }
}

/// A number that was counted up to a limit.
fn counted(number: i64) -> String {
    if number > overview::COUNTED_MAX { format!("over {}", overview::COUNTED_MAX) } else { number.to_string() }
}

/// The newest changes of rows that have a page, one of each row.
async fn changes(at: &InCampaign, tx: &db::tenancy::TenantTx) -> Result<Vec<Change>> {
    let filter = audit::Filter { tables: tables_with_pages(), ..audit::Filter::default() };
    let found = audit::page(tx, at.campaign.id.0, &filter, CHANGES_READ).await?;
    let mut seen = std::collections::HashSet::new();
    let shown = found.entries.into_iter().filter(|entry| seen.insert(entry.row));
    Ok(shown.take(CHANGES_MAX).map(|entry| Change::of(at, entry)).collect())
}

/// The overview.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let (tx, campaign) = (at.read().await?, at.campaign.id.0);
    let news = at.news(&tx).await?;
    let counts = overview::counts(&tx, &at.caller, campaign).await?;
    let steps = match at.may(Scope::Write) && at.may(Scope::Gm) && at.may(Scope::Play) {
        true => steps(&at, &counts, overview::was_played(&tx, campaign).await?),
        false => Vec::new(),
    };
    let counts = counts.into_iter().map(|(label, kind, number)| Count {
        label,
        kind,
        path: at.url(kind),
        number: counted(number),
    });
    let sees_journal = at.may(Scope::Gm);
    let (places, has_more_places) = overview::places(&tx, campaign).await?;
    let frame = at.frame("Overview", Tab::Home);
    let root = at.url("encounters");
    let leads = sees_journal && at.may(Scope::Play);
    let fights = table::fights(&tx, at.campaign.id, &at.caller).await?;
    let shown = HomePage {
        news,
        token: frame.token(),
        frame,
        base: at.url(""),
        description: at.campaign.description.clone(),
        game_time: at.campaign.game_time.clone(),
        steps,
        counts: counts.collect(),
        words: overview::last_words(&tx, &at.caller, campaign).await?,
        fights: fights.iter().map(|fight| Fight::of(fight, &root, false).led(leads.then_some(fight))).collect(),
        places,
        has_more_places,
        changes: match sees_journal {
            true => Some(changes(&at, &tx).await?),
            false => None,
        },
        attention: match sees_journal {
            true => Some(overview::attention(&tx, campaign).await?),
            false => None,
        },
    };
    at.show(&shown)
}
