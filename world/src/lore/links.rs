//! `[[links]]` in lore: what they refer to, which entries link to an entry, and updating links after a rename.
//!
//! A link is written `[[name]]` or `[[name|words]]`; in a table of Markdown the bar is `\|`. The name is a title or slug of lore, or the
//! slug of a character, NPC or owner; how it is typed does not matter ([`base::fold`]). If nothing has the name, and it has a `#`, the
//! link is one to a part of the page whose name stands before it. `[[#part]]` is a part of the same page, and no link. A trigger
//! records who links to what (`lore_link`), so imports, forks and undos do not need to care.

use std::{
    collections::{BTreeSet, HashSet},
    sync::LazyLock,
};

use regex::Regex;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    LoreEntries,
    bulk::{
        self, BulkInput, BulkReport,
        changes::Changes,
        replace::{Part, Replace},
    },
};
use base::{
    error::Result,
    fold::fold,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        resource::{self, Ref},
        validate,
    },
};

/// The largest numbers of links and of linking entries in an answer.
const LINKS_MAX: usize = 500;
const BACKLINKS_MAX: i64 = 200;

/// A link in an entry's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Link {
    /// The name as written in the link.
    pub name: String,
    /// `lore`, `character`, `npc` or `owner`; null if nothing has this name.
    pub kind: Option<String>,
    pub id: Option<Uuid>,
    pub slug: Option<String>,
}

/// An entry that links to this one.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Backlink {
    pub id: Uuid,
    pub slug: String,
    pub title: String,
}

/// The links in both directions.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Links {
    /// The links in this entry, in the order of the text, each name once.
    pub links: Vec<Link>,
    /// The first 200 entries that link to this one, sorted by title.
    pub backlinks: Vec<Backlink>,
    pub backlinks_total: i64,
}

/// A link in a text: its position, its name, and the words that are shown for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    pub start: usize,
    pub end: usize,
    pub name: &'a str,
    pub words: &'a str,
}

/// The links in a text. The database function `link_keys` finds the same ones.
pub fn find(text: &str) -> impl Iterator<Item = Found<'_>> {
    // The pattern is a constant. If it were invalid, texts would have no links.
    static LINK: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\[\[([^\]\[|\n]{1,200})(?:\|([^\]\[|\n]{0,200}))?\]\]").ok());
    LINK.iter().flat_map(move |link| link.captures_iter(text)).filter_map(|c| {
        let (whole, name, words) = (c.get(0)?, c.get(1)?.as_str(), c.get(2).map(|words| words.as_str().trim()));
        let name = words.map_or(name, |_| name.strip_suffix('\\').unwrap_or(name)).trim();
        let words = words.filter(|words| !words.is_empty()).unwrap_or(name);
        (!name.is_empty() && !name.starts_with('#')).then_some(Found {
            start: whole.start(),
            end: whole.end(),
            name,
            words,
        })
    })
}

/// Names as the database compares them.
fn folded(names: &[impl AsRef<str>]) -> Vec<String> {
    names.iter().map(|name| fold(name.as_ref())).collect()
}

/// What the links of a text refer to, each name once. Takes one statement, or none for a text without links.
///
/// # Errors
/// Those of the database.
pub async fn resolve(tx: &TenantTx, caller: &Caller, campaign: Uuid, text: &str) -> Result<Vec<Link>> {
    let mut seen = HashSet::new();
    let names: Vec<String> =
        find(text).map(|f| f.name.to_owned()).filter(|name| seen.insert(name.clone())).take(LINKS_MAX).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(
        "SELECT n.nth, n.kind, n.id, coalesce(l.slug, a.slug) AS slug FROM linked_names($2, $3) n \
         LEFT JOIN lore l ON n.kind = 'lore' AND l.tenant_id = $1 AND l.id = n.id AND (NOT l.secret OR $4) \
         LEFT JOIN actor_slug a ON n.kind <> 'lore' AND a.tenant_id = $1 AND a.campaign_id = $2 AND a.actor_id = n.id",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(folded(&names))
    .bind(caller.sees_secrets())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut links: Vec<Link> = names.into_iter().map(|name| Link { name, kind: None, id: None, slug: None }).collect();
    for row in rows {
        let nth = usize::try_from(row.read::<i32>("nth")?).unwrap_or_default();
        if let (Some(link), Some(slug)) = (links.get_mut(nth.saturating_sub(1)), row.read::<Option<String>>("slug")?) {
            link.kind = row.read("kind")?;
            link.id = row.read("id")?;
            link.slug = Some(slug);
        }
    }
    Ok(links)
}

/// Entries that link to one of these names (titles or slugs), and their total number. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn backlinks(
    tx: &TenantTx,
    caller: &Caller,
    campaign: Uuid,
    names: &[&str],
    rows_max: i64,
) -> Result<(Vec<Backlink>, i64)> {
    let rows = sqlx::query(
        "SELECT l.id, l.slug, l.title, count(*) OVER () AS total FROM lore l \
         WHERE l.tenant_id = $1 AND l.campaign_id = $2 AND (NOT l.secret OR $4) AND l.id IN ( \
             SELECT linking_lore($2, n) FROM unnest($3::text[]) AS n) \
         ORDER BY l.title COLLATE natural_order, l.id LIMIT $5",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(folded(names))
    .bind(caller.sees_secrets())
    .bind(rows_max)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let total = rows.first().map_or(Ok(0), |row| row.read("total"))?;
    let item =
        |r: &sqlx::postgres::PgRow| Ok(Backlink { id: r.read("id")?, slug: r.read("slug")?, title: r.read("title")? });
    Ok((stored::each(&rows, item), total))
}

/// The links of an entry in both directions. Three statements.
///
/// # Errors
/// `not_found`.
pub(super) async fn of_entry(tx: &TenantTx, caller: &Caller, campaign: &Ref, x: &Ref) -> Result<Links> {
    let entry = resource::find::<LoreEntries>(tx, caller, Some(campaign), x).await?;
    let links = resolve(tx, caller, entry.campaign_id.0, &entry.content).await?;
    let (backlinks, backlinks_total) =
        backlinks(tx, caller, entry.campaign_id.0, &[&entry.title, &entry.slug], BACKLINKS_MAX).await?;
    Ok(Links { links, backlinks, backlinks_total })
}

/// How many entries link to each of these names, in order. Takes one statement, or none without names.
///
/// # Errors
/// Those of the database.
pub async fn counts(tx: &TenantTx, caller: &Caller, campaign: Uuid, names: &[&str]) -> Result<Vec<i64>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(
        "SELECT (SELECT count(*) FROM linking_lore($2, named.name) k (id) \
                 JOIN lore l ON l.tenant_id = $1 AND l.id = k.id AND (NOT l.secret OR $4)) AS n \
         FROM unnest($3::text[]) WITH ORDINALITY AS named (name, nth) ORDER BY named.nth",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(folded(names))
    .bind(caller.sees_secrets())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| row.read("n")).collect()
}

/// Which links to update.
#[derive(Clone, Debug, Deserialize, ToSchema, garde::Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct MendInput {
    /// The name that the links have now: the entry's former title or slug.
    #[garde(custom(validate::line))]
    #[schema(min_length = 1)]
    pub from: String,
    /// Whether only to report what would happen, without changing anything.
    #[serde(default)]
    pub dry_run: bool,
}

/// The name for links to an entry: its title, or its slug if the title contains a character that ends a name.
fn name_in_links<'a>(title: &'a str, slug: &'a str) -> &'a str {
    if title.contains(['[', ']', '|', '#']) { slug } else { title }
}

/// About how many different spellings of a name are updated at once.
const SPELLINGS_MAX: usize = 20;

/// How the links in these entries write the name of a page. One statement.
async fn spellings(tx: &TenantTx, entries: &[Uuid], page: &str) -> Result<BTreeSet<String>> {
    let rows = sqlx::query(
        "SELECT DISTINCT m[1] AS name FROM lore l, regexp_matches(l.content, '\\[\\[([^][|\\n]{1,200})', 'g') m \
         WHERE l.tenant_id = $1 AND l.id = ANY ($2)",
    )
    .bind(tx.tenant())
    .bind(entries)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let key = |name: &str| fold(name).split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = key(page);
    let mut spellings = BTreeSet::new();
    for row in &rows {
        let name = row.read::<&str>("name")?.trim_end_matches('\\');
        let page = name.split('#').next().unwrap_or_default();
        spellings
            .extend([name, page].into_iter().filter(|name| key(name) == wanted).map(|name| name.trim().to_owned()));
        if spellings.len() >= SPELLINGS_MAX {
            break;
        }
    }
    Ok(spellings)
}

/// Updates links that name an entry by a former title or slug.
///
/// # Errors
/// As for [`bulk::run`].
pub async fn mend_in(tx: &TenantTx, caller: &Caller, campaign: Uuid, x: &str, input: &MendInput) -> Result<BulkReport> {
    validate::check(input)?;
    let entry = resource::find::<LoreEntries>(tx, caller, Some(&Ref::Id(campaign)), &Ref::parse(x)).await?;
    let (linking, _) = backlinks(tx, caller, campaign, &[&input.from], bulk::ENTRIES_MAX as i64).await?;
    let ids: Vec<Uuid> = linking.iter().map(|l| l.id).collect();
    let spellings = spellings(tx, &ids, &input.from).await?;
    if spellings.is_empty() {
        return Ok(BulkReport { dry_run: input.dry_run, ..BulkReport::default() });
    }
    let names: Vec<String> = spellings.iter().map(|name| regex::escape(name)).collect();
    let replace = Replace {
        find: format!(r"\[\[\s*(?:{})\s*((?:#[^\]\[|\n]*)?(?:\\?\|[^\]\[|\n]*)?)\]\]", names.join("|")),
        with: format!("[[{}${{1}}]]", name_in_links(&entry.title, &entry.slug).replace('$', "$$")),
        parts: vec![Part::Content],
        regex: true,
        whole_word: false,
        ignore_case: true,
        outside_code: true,
    };
    let edit = BulkInput {
        ids: Some(ids.iter().map(Uuid::to_string).collect()),
        filter: None,
        changes: Changes { replace: Some(replace), ..Changes::default() },
        dry_run: input.dry_run,
        previewed: None,
    };
    bulk::apply(tx, caller, campaign, &edit).await
}
