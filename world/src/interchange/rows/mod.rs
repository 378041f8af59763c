//! Writes many rows at once. Existing rows are compared and changed if they differ; the others are created.
//!
//! Five hundred rows need at most seven statements, even if many of them name actors. Existing rows are locked before
//! they are compared, so that concurrent changes are not overwritten. An import never deletes anything.

mod plan;
mod row;
mod slugs;
mod stored;

pub use row::{Onto, Row, RowIdentity, changed_names, twice};

use std::collections::HashSet;

use entity::shapes::ToolRef;
use sea_orm::{EntityTrait, sea_query::ExprTrait};
use serde_json::{Map, Value, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use self::{
    plan::{Plan, Writer, look_up_actors},
    slugs::Slugs,
    stored::Stored,
};
use super::report::{Imported, Report};
use crate::{revisions, tools};
use base::error::{Code, Error, Result};
use edge::http::{
    budget,
    resource::{Place, Resource, col, fold_columns},
};

/// The number of rows in one statement.
const CHUNK: usize = 500;

/// Leaves out the tools of a row that do not exist, and reports them.
fn leave_out_tools<R: Resource>(row: &mut Row, pointer: &str, report: &mut Report) {
    let listed = row.members.get_mut("available_tools").filter(|_| R::LISTS_TOOLS);
    let Some(Value::Array(entries)) = listed else { return };
    let Ok(listed) = serde_json::from_value::<Vec<ToolRef>>(Value::Array(entries.clone())) else { return };
    let mut known = listed.iter().map(|tool| tools::is_known(tool.name()));
    entries.retain(|_| known.next().unwrap_or(true));
    for (n, name) in tools::unknown(&listed) {
        report.warn(format!("{pointer}/available_tools/{n}: there is no tool `{name}`. It was left out."));
    }
}

/// Writes rows of one kind and reports what happened to each. `raw` returns columns of a stored row that must be
/// compared but that the view shows differently.
///
/// # Errors
/// `validation_failed` with the pointer of the row that does not fit, `slug_taken`.
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
        let actors = look_up_actors::<R>(place, &chunk).await?;
        writer.slugs.look::<R>(place, &chunk, &stored).await?;
        let mut plans = Vec::with_capacity(chunk.len());
        for mut row in chunk {
            let pointer = std::mem::take(&mut row.pointer);
            leave_out_tools::<R>(&mut row, &pointer, report);
            let plan = writer.plan::<R>(row, &stored, &actors, &raw).await.map_err(|e| at(e, &pointer))?;
            match plan {
                Some(plan) => plans.push(plan),
                None => {
                    report.counts.unchanged += 1;
                    report.warn(format!(
                        "{pointer}: this row already exists, but you may not see it. It was not changed."
                    ));
                }
            }
        }
        let changed: Vec<Uuid> = plans.iter().filter(|plan| plan.action == "updated").map(|plan| plan.id).collect();
        let edited = revisions::edited_since_import(place.tx, place.campaign, R::TABLE, &changed).await?;
        for plan in &mut plans {
            fold_columns(&mut plan.columns, R::FOLDED);
        }
        put::<R>(place, &plans).await?;
        for plan in plans {
            ids.push(plan.id);
            let Plan { id, columns, slug, label, action, changes } = plan;
            if R::LISTS_TOOLS {
                report.in_force.note(&slug, stored.shown(id), &columns);
            }
            let edited_here = edited.contains(&id);
            report.note(Imported { kind: R::TABLE, slug, label, id: Some(id), action, changes, edited_here });
        }
    }
    Ok(ids)
}

fn refuse_twins(rows: &[Row]) -> Result<()> {
    let mut seen = HashSet::new();
    for row in rows {
        let name = match &row.identity {
            RowIdentity::BySlug(slug) => slug,
            RowIdentity::ByOrigin { reference, .. } => reference,
        };
        if !seen.insert(name) {
            return Err(twice(&row.pointer));
        }
    }
    Ok(())
}

/// Moves the pointers of an error to the row's position in the file.
pub fn at(error: Error, pointer: &str) -> Error {
    let mut error = error.below(pointer);
    if error.errors.is_empty() && error.code.status() < 500 {
        error.detail = format!("{pointer}: {}", error.detail);
    }
    error
}

/// Writes the plans: one statement for new rows, one for changed rows.
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

/// Checks that all rows have the same columns. A missing column would be written as null.
fn same_columns(rows: &[&Map<String, Value>], names: &[&String]) -> Result<()> {
    if rows.iter().all(|row| names.iter().all(|name| row.contains_key(*name))) {
        return Ok(());
    }
    Err(Error::new(Code::Internal, "Rows of one kind have different columns."))
}

/// The rows of one kind after a slug, in the order of slugs, and whether more may follow.
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
