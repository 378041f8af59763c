//! The list of lore: search, filters, orders, totals, and selecting entries for a bulk edit. It is as fast with ten
//! thousand entries as with ten.

use actix_web::HttpResponse;
use askama::Template;

use super::{SCOPES, scope_name};
use crate::{
    admin::{
        Frame, InCampaign, Tab,
        history::DELETED_MAX,
        options::{OptionView, OptionsPage},
        query::{PAST, Ways, encoded, given},
    },
    render_blocks,
};
use base::error::Result;
use edge::{
    caller::Scope,
    http::{
        paging::Page,
        resource::{self, Resource},
    },
};
use world::{
    lore::{
        LoreEntries, LoreFilter,
        overview::{self, Broken, Equals, Totals},
    },
    revisions::{self, Deleted},
};

/// The states that the list can filter by: the value, the label, and the API's filter that it stands for.
pub const STATES: &[(&str, &str, &str, &str)] = &[
    ("enabled", "Enabled", "enabled", "true"),
    ("disabled", "Not enabled", "enabled", "false"),
    ("secret", "Secret", "secret", "true"),
    ("open", "Not secret", "secret", "false"),
    ("locked", "Locked", "ai_lock", "true"),
    ("always", "Always active", "activation", "always"),
    ("keyword", "Activated by keywords", "activation", "keyword"),
];

const ORDERS: &[(&str, &str)] = &[
    ("", "by title"),
    ("-updated_at", "last changed first"),
    ("-created_at", "newest first"),
    ("-priority", "highest priority first"),
    ("-tokens", "longest first"),
    ("tokens", "shortest first"),
];
/// Entries per page.
const ROWS: &str = "100";
/// The most keywords of an entry that its row shows.
const KEYS_SHOWN: usize = 4;

/// A choice in a list box.
pub struct Choice {
    pub value: &'static str,
    pub label: &'static str,
    pub is_chosen: bool,
}

/// A row of the list.
struct Row {
    id: String,
    path: String,
    title: String,
    about: String,
    tags: Vec<String>,
    /// Its keywords, as far as there is room.
    keys: String,
    states: Vec<&'static str>,
    priority: i32,
    tokens: i32,
    changed: String,
}

#[derive(Template)]
#[template(path = "admin/lore-list.html", blocks = ["main", "rows"])]
struct ListPage {
    frame: Frame,
    path: String,
    /// The filters without order and cursor. A bulk edit of all found entries uses them.
    filters: String,
    is_filtered: bool,
    q: String,
    tag: String,
    associated_id: String,
    scopes: Vec<Choice>,
    states: Vec<Choice>,
    orders: Vec<Choice>,
    totals: Totals,
    rows: Vec<Row>,
    ways: Ways,
}
render_blocks!(ListPage: as_main, "rows" => as_rows);

/// The page's parameters for the API's list. A state becomes one of its filters.
fn as_the_api_takes_them(query: &str, with_order: bool) -> String {
    let mut out = url::form_urlencoded::Serializer::new(String::new());
    let mut has_sort = false;
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()).filter(|(_, value)| !value.is_empty()) {
        match &*name {
            "state" => {
                for (_, _, filter, is) in STATES.iter().filter(|(state, ..)| *state == value) {
                    out.append_pair(filter, is);
                }
            }
            "sort" | "cursor" if !with_order => {}
            PAST => {}
            _ => {
                has_sort |= name == "sort";
                out.append_pair(&name, &value);
            }
        }
    }
    if with_order {
        if !has_sort {
            out.append_pair("sort", "name");
        }
        out.append_pair("limit", ROWS);
    }
    out.finish()
}

/// The filters of a page's query.
///
/// # Errors
/// `bad_request`.
pub fn filter_of(query: &str) -> Result<LoreFilter> {
    let page = Page::<LoreFilter>::parse(&as_the_api_takes_them(query, false))?;
    Ok(LoreFilter { q: page.q, ..page.filter })
}

/// GET of the list.
///
/// # Errors
/// `bad_request` for invalid parameters.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let query = at.request.query_string();
    let page = Page::<LoreFilter>::parse(&as_the_api_takes_them(query, true))?;
    let tx = at.read().await?;
    let campaign = at.campaign.id.0;
    let found = resource::find_page::<LoreEntries>(&tx, &at.caller, Some(campaign), &page).await?;
    let totals = overview::sum(&tx, &at.caller, campaign, page.q.as_deref(), &page.filter).await?;
    drop(tx);
    let path = at.url("lore");
    let rows = found.items.into_iter().map(|entry| {
        let about = match &entry.associated_id {
            Some(name) => format!("{}: {name}", scope_name(entry.scope)),
            None => scope_name(entry.scope).to_owned(),
        };
        let states = [
            (!entry.enabled, "not enabled"),
            (entry.secret, "secret"),
            (entry.ai_lock, "locked"),
            (entry.activation == entity::lore::Activation::Keyword, "keywords"),
        ];
        Row {
            path: format!("{path}/{}", entry.id),
            id: entry.id.to_string(),
            title: entry.title,
            about,
            tags: entry.tags.0,
            keys: few(&entry.keys.0),
            states: states.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect(),
            priority: entry.priority,
            tokens: entry.tokens,
            changed: entry.updated_at.date().to_string(),
        }
    });
    let (scope, state, sort) = (given(query, "scope"), given(query, "state"), given(query, "sort"));
    let filters = filters_alone(query);
    at.show(&ListPage {
        frame: at.frame("Lore", Tab::Lore),
        is_filtered: !filters.is_empty(),
        filters,
        q: given(query, "q"),
        tag: given(query, "tag"),
        associated_id: given(query, "associated_id"),
        scopes: SCOPES.iter().map(|(value, label)| Choice { value, label, is_chosen: *value == scope }).collect(),
        states: STATES.iter().map(|(value, label, ..)| Choice { value, label, is_chosen: *value == state }).collect(),
        orders: ORDERS.iter().map(|(value, label)| Choice { value, label, is_chosen: *value == sort }).collect(),
        totals,
        rows: rows.collect(),
        ways: Ways::of(&at, found.next_cursor.as_deref()),
        path,
    })
}

/// The first keywords of an entry.
fn few(keys: &[String]) -> String {
    let more = if keys.len() > KEYS_SHOWN { ", …" } else { "" };
    let shown: Vec<&str> = keys.iter().take(KEYS_SHOWN).map(String::as_str).collect();
    format!("{}{more}", shown.join(", "))
}

fn filters_alone(query: &str) -> String {
    let kept = url::form_urlencoded::parse(query.as_bytes())
        .filter(|(name, value)| !value.is_empty() && !matches!(&**name, "sort" | "cursor" | PAST));
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish()
}

/// GET of the campaign's tags.
///
/// # Errors
/// Database errors.
pub async fn tags(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let tags = overview::tags(&tx, &at.caller, at.campaign.id.0).await?;
    let list = at.url("lore");
    let option = |(tag, n): (String, i64)| OptionView {
        path: format!("{list}?tag={}", encoded(&tag)),
        label: if n == 1 { "1 entry".to_owned() } else { format!("{n} entries") },
        value: tag,
    };
    let options = tags.into_iter().map(option).collect();
    let frame = at.frame("Tags", Tab::Lore);
    at.show(&OptionsPage { frame, heading: "Tags", many: "Lore", list: list.clone(), options })
}

/// GET of the names that lore can be about.
///
/// # Errors
/// Database errors.
pub async fn names(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let mut names = overview::names(&tx, &at.caller, at.campaign.id.0).await?;
    // If the form has chosen a kind, it gets only names of that kind.
    let wanted = given(at.request.query_string(), "scope");
    names.retain(|(scope, _)| wanted.is_empty() || *scope == wanted);
    let list = at.url("lore");
    let option = |(scope, name): (String, String)| OptionView {
        path: format!("{list}?scope={scope}&associated_id={}", encoded(&name)),
        label: scope,
        value: name,
    };
    let options = names.into_iter().map(option).collect();
    let frame = at.frame("What lore is about", Tab::Lore);
    at.show(&OptionsPage { frame, heading: "What lore is about", many: "Lore", list: list.clone(), options })
}

#[derive(Template)]
#[template(path = "admin/lore-tidy.html", blocks = ["main"])]
struct TidyPage {
    frame: Frame,
    path: String,
    equals: Vec<Equals>,
    broken: Vec<Broken>,
    deleted: Vec<Deleted>,
    may_restore: bool,
}
render_blocks!(TidyPage: as_main);

/// GET of duplicates, broken links and deleted entries.
///
/// # Errors
/// Database errors.
pub async fn tidy(at: InCampaign) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let campaign = at.campaign.id.0;
    let equals = overview::equals(&tx, &at.caller, campaign).await?;
    let may_restore = at.may(Scope::Gm) && at.may(Scope::Write);
    // Users who do not see secrets must not learn whether a name belongs to a secret.
    let broken = match at.may(Scope::Gm) {
        true => overview::broken_links(&tx, campaign).await?,
        false => Vec::new(),
    };
    let deleted = match at.may(Scope::Gm) {
        true => revisions::deleted(&tx, campaign, (LoreEntries::TABLE, LoreEntries::LABEL), DELETED_MAX).await?,
        false => Vec::new(),
    };
    at.show(&TidyPage {
        frame: at.frame("Tidy up", Tab::Lore),
        path: at.url("lore"),
        equals,
        broken,
        deleted,
        may_restore,
    })
}
