//! Rows written many at a time: those that are there are compared and changed where they differ, the others are made.
//!
//! Five hundred rows cost at most seven statements, however many of them name actors. What is there is locked before it is
//! compared, so that nothing that happens meanwhile is overwritten. Nothing is ever deleted by an import.

mod plan;
mod slugs;
mod stored;

use std::collections::HashSet;

use sea_orm::{EntityTrait, sea_query::ExprTrait};
use serde_json::{Map, Value, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use self::{
    plan::{Plan, Writer, known_actors},
    slugs::Slugs,
    stored::Stored,
};
use super::report::{Imported, Report};
use crate::{
    error::{Code, Error, Result},
    http::{
        budget,
        resource::{Place, Resource, col},
    },
    revisions,
};

/// Rows of one statement.
const CHUNK: usize = 500;

/// What tells a row of a file from others, so that it is found when the file comes again.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// The slug, which is the same here and in the file.
    BySlug(String),
    /// Where it came from: the id it had where it was written, if that was here, or the `external_ref` it is given when it is
    /// made. A slug that the file names is had if it is free; a row that has it and came from elsewhere is another.
    ByOrigin { id: Option<Uuid>, reference: String, slug: Option<String> },
}

/// How members of a row meet what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onto {
    /// In place of the member of the same name.
    Replace,
    /// The same, but clients' own keys that the row has stay beside those of the file.
    BesideExtensions,
    /// As a merge patch.
    Merge,
}

/// A row to be there.
#[derive(Debug)]
pub struct Row {
    /// Members of the kind's input; those that are absent stay what they are.
    pub members: Map<String, Value>,
    /// Members that it has if it is new and the file says nothing of them.
    pub at_first: Map<String, Value>,
    pub known: Known,
    pub onto: Onto,
    /// Columns that are no members of the input.
    pub beside: Map<String, Value>,
    /// Where it stands in the file.
    pub pointer: String,
}

impl Row {
    /// An empty one that stands there in the file.
    #[must_use]
    pub fn at(pointer: String) -> Self {
        Self {
            members: Map::new(),
            at_first: Map::new(),
            known: Known::BySlug(String::new()),
            onto: Onto::Replace,
            beside: Map::new(),
            pointer,
        }
    }

    /// What it is called, if it is new.
    #[must_use]
    pub fn label<R: Resource>(&self) -> &str {
        let label = self.members.get(R::LABEL).or_else(|| self.at_first.get(R::LABEL));
        label.and_then(Value::as_str).unwrap_or_default()
    }

    /// The slug that the file names.
    #[must_use]
    pub fn slug(&self) -> Option<&str> {
        match &self.known {
            Known::BySlug(slug) => Some(slug),
            Known::ByOrigin { slug, .. } => slug.as_deref(),
        }
    }
}

/// Writes rows of one kind and says what became of them. `raw` gives columns of a stored row as they are compared, where the
/// kind's view shows something else.
///
/// # Errors
/// `validation_failed` with the pointer of a row that does not fit, `slug_taken`.
pub async fn write<R: Resource>(
    place: &Place<'_>,
    rows: Vec<Row>,
    raw: impl Fn(&R::Model) -> Map<String, Value>,
    report: &mut Report,
) -> Result<Vec<Uuid>>
where
    R::Model: Clone,
{
    refuse_twins(&rows)?;
    let mut writer = Writer { place, slugs: Slugs::of(&rows), met: HashSet::new() };
    let mut ids = Vec::with_capacity(rows.len());
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let chunk: Vec<Row> = rows.by_ref().take(CHUNK).collect();
        let stored = Stored::look::<R>(place, &chunk).await?;
        let actors = known_actors::<R>(place, &chunk).await?;
        writer.slugs.look::<R>(place, &chunk, &stored).await?;
        let mut plans = Vec::with_capacity(chunk.len());
        for mut row in chunk {
            let pointer = std::mem::take(&mut row.pointer);
            let plan = writer.plan::<R>(row, &stored, &actors, &raw).await.map_err(|e| at(e, &pointer))?;
            match plan {
                Some(plan) => plans.push(plan),
                None => {
                    report.counts.unchanged += 1;
                    report
                        .warn(format!("{pointer}: it is here already, among what you may not see; it stays as it is."));
                }
            }
        }
        let changed: Vec<Uuid> = plans.iter().filter(|plan| plan.action == "updated").map(|plan| plan.id).collect();
        let edited = revisions::edited_since_import(place.tx, place.campaign, R::TABLE, &changed).await?;
        put::<R>(place, &plans).await?;
        for plan in plans {
            ids.push(plan.id);
            let Plan { id, slug, label, action, changes, .. } = plan;
            let edited_here = edited.contains(&id);
            report.note(Imported { kind: R::TABLE, slug, label, id: Some(id), action, changes, edited_here });
        }
    }
    Ok(ids)
}

fn refuse_twins(rows: &[Row]) -> Result<()> {
    let mut seen = HashSet::new();
    for row in rows {
        let name = match &row.known {
            Known::BySlug(slug) => slug,
            Known::ByOrigin { reference, .. } => reference,
        };
        if !seen.insert(name) {
            return Err(twice(&row.pointer));
        }
    }
    Ok(())
}

/// What differs, by name.
#[must_use]
pub fn changed_names(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    after.iter().filter(|(name, value)| before.get(*name) != Some(value)).map(|(name, _)| name.clone()).collect()
}

/// Two rows of a file that are one here.
#[must_use]
pub fn twice(pointer: &str) -> Error {
    Error::invalid(format!("{pointer}/slug"), "slug_taken", "Another row of the file is the same.")
}

/// The error with its pointers below where the row stands.
pub fn at(error: Error, pointer: &str) -> Error {
    let mut error = error.below(pointer);
    if error.errors.is_empty() && error.code.status() < 500 {
        error.detail = format!("{pointer}: {}", error.detail);
    }
    error
}

/// Writes what is planned: one statement for what is new, one for what changes.
async fn put<R: Resource>(place: &Place<'_>, plans: &[Plan]) -> Result<()> {
    let of = |action: &str| -> Vec<&Map<String, Value>> {
        plans.iter().filter(|p| p.action == action).map(|p| &p.columns).collect()
    };
    let list = |names: &[&String], prefix: &str| -> String {
        names.iter().map(|name| format!("{prefix}\"{name}\"")).collect::<Vec<_>>().join(", ")
    };
    let (new, changed) = (of("created"), of("updated"));
    if let Some(first) = new.first() {
        let names: Vec<&String> = first.keys().collect();
        let (into, from) = (list(&names, ""), list(&names, "r."));
        let sql = format!(
            "INSERT INTO {0} ({into}) SELECT {from} FROM jsonb_populate_recordset(NULL::\"{0}\", $1) r",
            R::TABLE
        );
        same_columns(&new, &names)?;
        sqlx::query(AssertSqlSafe(sql)).bind(json!(new)).execute(&mut *place.tx.connection().await).await?;
    }
    if let Some(first) = changed.first() {
        let names: Vec<&String> = first.keys().filter(|name| *name != "id").collect();
        let sql = format!(
            "UPDATE {0} t SET ({1}) = ROW ({2}) FROM jsonb_populate_recordset(NULL::\"{0}\", $1) r \
             WHERE t.tenant_id = $2 AND t.id = r.id",
            R::TABLE,
            list(&names, ""),
            list(&names, "r.")
        );
        same_columns(&changed, &names)?;
        sqlx::query(AssertSqlSafe(sql))
            .bind(json!(changed))
            .bind(place.tx.tenant())
            .execute(&mut *place.tx.connection().await)
            .await?;
    }
    Ok(())
}

/// The columns of one kind's rows are the same; where one row lacked a column it would be written as null.
fn same_columns(rows: &[&Map<String, Value>], names: &[&String]) -> Result<()> {
    if rows.iter().all(|row| names.iter().all(|name| row.contains_key(*name))) {
        return Ok(());
    }
    Err(Error::new(Code::Internal, "Rows of one kind have different columns."))
}

/// Rows of one kind after a slug, in the order of slugs, and whether there may be more.
///
/// # Errors
/// Those of the database.
pub async fn page<R: Resource>(place: &Place<'_>, after: &str, limit: u64) -> Result<(Vec<R::Model>, bool)> {
    use sea_orm::{QueryFilter, QueryOrder, QuerySelect};
    let select = R::Entity::find()
        .filter(col("tenant_id").eq(place.tx.tenant()))
        .filter(col("campaign_id").eq(place.campaign))
        .filter(col("slug").gt(after))
        .order_by(col("slug"), sea_orm::Order::Asc)
        .limit(limit);
    let (rows, is_cut) = budget::rows(place.tx, select).await?;
    let is_full = !rows.is_empty() && (is_cut || rows.len() as u64 == limit);
    Ok((rows, is_full))
}
