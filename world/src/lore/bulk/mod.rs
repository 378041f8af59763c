//! Bulk edits of lore: one set of changes for up to ten thousand entries, in one transaction. An edit can be previewed,
//! and undone as one step.
//!
//! [`changes`] changes an entry, [`replace`] finds and replaces text; this file reads, writes and reports. Either all
//! entries are changed or none: an entry that would break a rule rejects the whole edit.

pub mod changes;
pub mod http;
pub mod replace;

use std::{collections::HashSet, sync::Arc, time::Duration};

use entity::lore as table;
use garde::Validate;
use sea_orm::{
    ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, LockType},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use sqlx::AssertSqlSafe;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{LoreEntries, LoreFilter};
use crate::edits;
use base::{
    error::{Code, Error, FieldError, Result},
    hex::hex,
    stored::Columns,
};
use changes::{Changes, StoredEntry};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        resource::{self, Ref, Resource},
        validate,
    },
};
use replace::Replacer;

/// The largest number of entries in one edit.
pub const ENTRIES_MAX: usize = 10_000;
/// The largest number of entries that an answer lists.
const SHOWN_MAX: usize = 100;
/// The largest number of characters of a content that an answer shows.
const SHOWN_CHARS_MAX: usize = 400;
/// The largest amount of content that one edit searches, in bytes.
const CONTENT_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// The longest time for searching, over all entries.
const SEARCH_MAX: Duration = Duration::from_secs(3);
/// The number of entries that are read and written at a time.
const PORTION: usize = 250;
/// The name of these steps in the database.
pub const STEP: &str = "lore.bulk";

/// A bulk edit: the entries and the changes.
#[derive(Clone, Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct BulkInput {
    /// The entries by id or slug. Alternatively use `filter`.
    #[garde(inner(length(min = 1, max = 10_000)))]
    #[serde(default)]
    #[schema(max_items = 10000)]
    pub ids: Option<Vec<String>>,
    /// All entries that a list with these filters would show; `{}` means all entries.
    #[serde(default)]
    pub filter: Option<LoreFilter>,
    #[garde(dive)]
    pub changes: Changes,
    /// Whether only to report what would happen, without changing anything.
    #[serde(default)]
    pub dry_run: bool,
    /// The digest of an earlier report: the edit is rejected if the digest is different now. For callers that show a
    /// preview first.
    #[serde(skip)]
    pub previewed: Option<String>,
}

/// What the edit did, or would do.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct BulkReport {
    pub dry_run: bool,
    /// The id with which the edit can be undone; null if nothing changed.
    pub step_id: Option<Uuid>,
    /// The number of entries that were selected.
    pub matched: usize,
    pub changed: usize,
    pub deleted: usize,
    /// The tokens of all selected entries before the edit.
    pub tokens_before: i64,
    pub tokens_after: i64,
    /// The first hundred entries that change.
    pub entries: Vec<BulkEntry>,
    /// Why the edit would be rejected: each error points to the entry and the column, as `/slug/column`. Empty unless
    /// this is a dry run.
    pub errors: Vec<FieldError>,
    /// A hash of the changes and of the selected entries with their versions. It is equal only for the same edit of the
    /// same entries.
    #[serde(skip)]
    pub digest: String,
}

/// One changed entry. Long texts are shortened to the place where they begin to differ.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BulkEntry {
    pub id: Uuid,
    pub slug: String,
    pub title: String,
    /// The columns that change, before the edit.
    #[schema(value_type = Object)]
    pub before: Map<String, Value>,
    /// The columns that change, after the edit. Null if the entry is deleted.
    #[schema(value_type = Option<Object>)]
    pub after: Option<Map<String, Value>>,
}

/// Runs an edit in the caller's transaction. Takes one round trip for the ids, and two for every [`PORTION`] entries.
///
/// # Errors
/// `validation_failed` for an invalid edit or a rule that an entry would break, `precondition_failed` if the preview
/// was different. The caller must not commit then.
pub async fn run(tx: &TenantTx, caller: &Caller, campaign: Uuid, input: &BulkInput) -> Result<BulkReport> {
    validate::check(input)?;
    apply(tx, caller, campaign, input).await
}

/// Like [`run`], for an edit that the server itself wrote: its pattern may be longer.
///
/// # Errors
/// As for [`run`].
pub async fn apply(tx: &TenantTx, caller: &Caller, campaign: Uuid, input: &BulkInput) -> Result<BulkReport> {
    input.changes.check()?;
    edits::take_time(tx).await?;
    let found = select(tx, caller, campaign, input).await?;
    let digest = digest(&input.changes, &found)?;
    if input.previewed.as_ref().is_some_and(|previewed| *previewed != digest) {
        return Err(Error::new(
            Code::PreconditionFailed,
            "This edit, or one of its entries, has changed since the preview.",
        ));
    }
    let ids: Vec<Uuid> = found.into_iter().map(|(id, ..)| id).collect();
    let plan = plan(&input.changes)?;
    if input.changes.reads_content() {
        check_size(tx, &ids).await?;
    }
    let mut report = BulkReport { dry_run: input.dry_run, matched: ids.len(), digest, ..BulkReport::default() };
    for portion in ids.chunks(PORTION) {
        let entries = load(tx, portion, input.changes.reads_content()).await?;
        report.tokens_before += entries.iter().map(|e| i64::from(e.tokens)).sum::<i64>();
        if input.changes.delete {
            delete(tx, &entries, input.dry_run).await?;
            tell_deleted(&mut report, entries);
            continue;
        }
        let plan = plan.clone();
        let outcomes = actix_web::rt::task::spawn_blocking(move || change_all(&plan, entries)).await;
        let written = tell(&mut report, outcomes.map_err(Error::internal)?)?;
        if !input.dry_run && report.errors.is_empty() {
            write(tx, written, &input.changes.columns()).await?;
        }
    }
    if input.dry_run {
        return Ok(report);
    }
    if !report.errors.is_empty() {
        return Err(Error::validation(report.errors));
    }
    report.step_id = edits::record(tx, caller, campaign, STEP).await?;
    Ok(report)
}

/// The changes with the compiled pattern.
struct Plan {
    changes: Changes,
    replacer: Option<Replacer>,
}

fn plan(changes: &Changes) -> Result<Arc<Plan>> {
    let replacer = changes.replace.as_ref().map(|r| Replacer::new(r, SEARCH_MAX)).transpose()?;
    Ok(Arc::new(Plan { changes: changes.clone(), replacer }))
}

fn digest(changes: &Changes, found: &[(Uuid, String, i64)]) -> Result<String> {
    let mut sum = Sha256::new_with_prefix(serde_json::to_vec(changes).map_err(Error::internal)?);
    for (id, _, version) in found {
        sum.update(id.as_bytes());
        sum.update(version.to_be_bytes());
    }
    Ok(hex(&sum.finalize()))
}

/// The selected entries by id, slug and version. They are locked unless this is a dry run.
async fn select(tx: &TenantTx, caller: &Caller, campaign: Uuid, input: &BulkInput) -> Result<Vec<(Uuid, String, i64)>> {
    let none = LoreFilter::default();
    let (filter, names) = match (&input.filter, &input.ids) {
        (Some(filter), None) => (filter, None),
        (None, Some(names)) => (&none, Some(names)),
        _ => return Err(Error::invalid("/ids", "required", "Give either `ids` or `filter`.")),
    };
    let mut select = resource::selected::<LoreEntries>(caller, Some(campaign), filter.q.as_deref(), filter)?;
    if let Some(names) = names {
        let (ids, slugs): (Vec<_>, Vec<_>) = names.iter().map(|n| Ref::parse(n)).partition(|n| matches!(n, Ref::Id(_)));
        let ids = ids.into_iter().filter_map(|n| if let Ref::Id(id) = n { Some(id) } else { None });
        let slugs = slugs.into_iter().filter_map(|n| if let Ref::Slug(slug) = n { Some(slug) } else { None });
        select = select.filter(Expr::cust_with_values(
            "(id = ANY ($1) OR slug = ANY ($2))",
            [sea_orm::Value::from(ids.collect::<Vec<Uuid>>()), sea_orm::Value::from(slugs.collect::<Vec<String>>())],
        ));
    }
    let select = select
        .select_only()
        .columns([table::Column::Id, table::Column::Slug, table::Column::Version])
        .order_by_asc(table::Column::Id)
        .limit(ENTRIES_MAX as u64 + 1);
    let select = if input.dry_run { select } else { select.lock(LockType::NoKeyUpdate) };
    let found: Vec<(Uuid, String, i64)> = select.into_tuple().all(tx).await?;
    if found.len() > ENTRIES_MAX {
        return Err(Error::invalid(
            "/filter",
            "too_many",
            format!("An edit may have at most {ENTRIES_MAX} entries. Choose fewer."),
        ));
    }
    if let Some(names) = names {
        refuse_unknown(names, &found)?;
    }
    Ok(found)
}

fn refuse_unknown(names: &[String], found: &[(Uuid, String, i64)]) -> Result<()> {
    let ids: HashSet<Uuid> = found.iter().map(|(id, ..)| *id).collect();
    let slugs: HashSet<&str> = found.iter().map(|(_, slug, _)| slug.as_str()).collect();
    let unknown = names.iter().enumerate().filter(|(_, name)| match Ref::parse(name) {
        Ref::Id(id) => !ids.contains(&id),
        Ref::Slug(slug) => !slugs.contains(slug.as_str()),
    });
    let errors: Vec<_> = unknown
        .take(SHOWN_MAX)
        .map(|(i, _)| FieldError {
            pointer: format!("/ids/{i}"),
            code: "unknown_reference".into(),
            message: "There is no such lore entry in this campaign.".to_owned(),
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(Error::validation(errors)) }
}

async fn check_size(tx: &TenantTx, ids: &[Uuid]) -> Result<()> {
    let row = sqlx::query(
        "SELECT coalesce(sum(octet_length(content)), 0)::bigint AS n FROM lore WHERE tenant_id = $1 AND id = ANY ($2)",
    )
    .bind(tx.tenant())
    .bind(ids)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    if row.read::<i64>("n")? > CONTENT_BYTES_MAX {
        let megabytes = CONTENT_BYTES_MAX / 1024 / 1024;
        return Err(Error::new(
            Code::PayloadTooLarge,
            format!("These entries have more than {megabytes} MiB of text. Choose fewer."),
        ));
    }
    Ok(())
}

async fn load(tx: &TenantTx, ids: &[Uuid], with_content: bool) -> Result<Vec<StoredEntry>> {
    use table::Column;
    let content = if with_content { Expr::col(Column::Content) } else { Expr::cust("NULL::text") };
    let entries = table::Entity::find()
        .filter(Column::TenantId.eq(tx.tenant()))
        .filter(Expr::cust_with_values("id = ANY ($1)", [sea_orm::Value::from(ids.to_vec())]))
        .select_only()
        .columns([Column::Id, Column::Slug, Column::Title, Column::Scope, Column::AssociatedId, Column::AssociatedKey])
        .columns([Column::Tags, Column::Priority, Column::Enabled, Column::Secret, Column::AiLock, Column::Activation])
        .columns([Column::Keys, Column::SecondaryKeys, Column::Tokens])
        .expr_as(content, "content")
        .order_by_asc(Column::Id)
        .into_model::<StoredEntry>()
        .all(tx)
        .await?;
    Ok(entries)
}

async fn delete(tx: &TenantTx, entries: &[StoredEntry], dry_run: bool) -> Result<()> {
    if dry_run {
        return Ok(());
    }
    let ids: Vec<Uuid> = entries.iter().map(|e| e.id).collect();
    sqlx::query("DELETE FROM lore WHERE tenant_id = $1 AND id = ANY ($2)")
        .bind(tx.tenant())
        .bind(ids)
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}

fn tell_deleted(report: &mut BulkReport, entries: Vec<StoredEntry>) {
    report.deleted += entries.len();
    let left = SHOWN_MAX.saturating_sub(report.entries.len());
    report.entries.extend(entries.into_iter().take(left).map(|e| {
        let before = Map::from_iter([("title".to_owned(), Value::from(e.title.clone()))]);
        BulkEntry { id: e.id, slug: e.slug, title: e.title, before, after: None }
    }));
}

/// An entry before and after the edit, and what is wrong with it afterwards.
type Outcome = (StoredEntry, StoredEntry, Vec<FieldError>);

fn change_all(plan: &Plan, entries: Vec<StoredEntry>) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(entries.len());
    for before in entries {
        let mut after = before.clone();
        let wrong = plan.changes.apply(&mut after, plan.replacer.as_ref());
        let too_slow = wrong.iter().any(|e| e.code == changes::TOO_SLOW);
        outcomes.push((before, after, wrong));
        if too_slow {
            break;
        }
    }
    outcomes
}

/// Adds the outcomes to the report. Returns the rows to write.
fn tell(report: &mut BulkReport, outcomes: Vec<Outcome>) -> Result<Vec<Value>> {
    let mut written = Vec::new();
    for (before, after, wrong) in outcomes {
        if let Some(slow) = wrong.iter().find(|e| e.code == changes::TOO_SLOW) {
            return Err(Error::invalid("/changes/replace/find", changes::TOO_SLOW, slow.message.clone()));
        }
        for mut error in wrong {
            if report.errors.len() < SHOWN_MAX {
                error.pointer.insert_str(0, &format!("/{}", before.slug));
                report.errors.push(error);
            }
        }
        report.tokens_after += i64::from(after.tokens);
        let (old, mut new) = (resource::plain_columns(&before)?, resource::plain_columns(&after)?);
        let differs: Vec<&String> = new.keys().filter(|k| old.get(*k) != new.get(*k)).collect();
        if differs.is_empty() {
            continue;
        }
        report.changed += 1;
        if report.entries.len() < SHOWN_MAX {
            report.entries.push(bulk_entry(&before, &old, &new, &differs));
        }
        resource::fold_columns(&mut new, LoreEntries::FOLDED);
        written.push(Value::Object(new));
    }
    Ok(written)
}

fn bulk_entry(
    entry: &StoredEntry,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    differs: &[&String],
) -> BulkEntry {
    let (mut before, mut after) = (Map::new(), Map::new());
    for name in differs.iter().filter(|name| *name != &"associated_key") {
        let (Some(a), Some(b)) = (old.get(*name), new.get(*name)) else { continue };
        let (a, b) = match (a, b) {
            (Value::String(a), Value::String(b)) => {
                let (a, b) = excerpts(a, b);
                (a.into(), b.into())
            }
            _ => (a.clone(), b.clone()),
        };
        before.insert((*name).clone(), a);
        after.insert((*name).clone(), b);
    }
    BulkEntry { id: entry.id, slug: entry.slug.clone(), title: entry.title.clone(), before, after: Some(after) }
}

/// Excerpts of two texts around the place where they begin to differ.
fn excerpts(a: &str, b: &str) -> (String, String) {
    let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    let from = same.saturating_sub(SHOWN_CHARS_MAX / 4);
    let cut = |text: &str| {
        let mut rest = text.chars().skip(from);
        let mut out: String = if from > 0 { "…".to_owned() } else { String::new() };
        out.extend(rest.by_ref().take(SHOWN_CHARS_MAX));
        if rest.next().is_some() {
            out.push('…');
        }
        out
    };
    (cut(a), cut(b))
}

async fn write(tx: &TenantTx, rows: Vec<Value>, columns: &[&str]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let folded =
        columns.iter().filter(|c| LoreEntries::FOLDED.contains(c)).map(|c| format!("folded_{c} = r.folded_{c}"));
    let set: Vec<String> = columns.iter().map(|c| format!("{c} = r.{c}")).chain(folded).collect();
    let sql = format!(
        "UPDATE lore t SET {} FROM jsonb_populate_recordset(NULL::lore, $1) r WHERE t.tenant_id = $2 AND t.id = r.id",
        set.join(", ")
    );
    sqlx::query(AssertSqlSafe(sql))
        .bind(Value::Array(rows))
        .bind(tx.tenant())
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}
