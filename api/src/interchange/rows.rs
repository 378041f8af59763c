//! Rows written many at a time: those that are there are compared and changed where they differ, the others are made.
//!
//! A thousand rows cost a few statements. Nothing is ever deleted by an import.

use std::collections::{HashMap, HashSet};

use sea_orm::{EntityTrait, FromQueryResult, Iden, Iterable, sea_query::ExprTrait};
use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::report::{Imported, Report};
use crate::{
    error::{Code, Error, Result},
    http::{
        body,
        resource::{self, Place, Resource, col},
        validate,
    },
};

/// Rows of one statement.
const CHUNK: usize = 500;
/// Names tried for a row whose slug is taken.
const NAMES_TRIED: usize = 12;

/// A row to be there.
#[derive(Debug)]
pub struct Row {
    /// Members of the kind's input; those that are absent stay what they are.
    pub members: Map<String, Value>,
    /// The slug it is known by here. Without one it is known by its `external_ref`.
    pub slug: Option<String>,
    /// Columns that are no members of the input.
    pub beside: Map<String, Value>,
    /// Whether clients' own keys that the row has stay beside those of the file.
    pub adds_extensions: bool,
    /// Where it stands in the file.
    pub pointer: String,
}

/// What a row was and is to be, as columns.
struct Plan {
    id: Uuid,
    columns: Map<String, Value>,
    action: &'static str,
    slug: String,
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
    let mut seen = HashSet::new();
    if let Some(twice) = rows.iter().find(|row| row.slug.as_ref().is_some_and(|slug| !seen.insert(slug.clone()))) {
        return Err(Error::invalid(
            format!("{}/slug", twice.pointer),
            "slug_taken",
            "Another row of the file has this slug.",
        ));
    }
    let mut ids = Vec::with_capacity(rows.len());
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let chunk: Vec<Row> = rows.by_ref().take(CHUNK).collect();
        let stored = stored::<R>(place, &chunk).await?;
        let mut slugs = Slugs::look::<R>(place, &chunk, &stored).await?;
        let mut plans = Vec::with_capacity(chunk.len());
        for row in chunk {
            let pointer = row.pointer.clone();
            let plan = plan::<R>(place, row, &stored, &raw, &mut slugs).await.map_err(|e| at(e, &pointer))?;
            plans.push(plan);
        }
        put::<R>(place, &plans).await?;
        for plan in plans {
            ids.push(plan.id);
            report.note(Imported { kind: R::TABLE, slug: plan.slug, id: Some(plan.id), action: plan.action });
        }
    }
    Ok(ids)
}

/// The error with its pointers below where the row stands.
pub fn at(mut error: Error, pointer: &str) -> Error {
    for field in &mut error.errors {
        field.pointer.insert_str(0, pointer);
    }
    if error.errors.is_empty() && error.code.status() < 500 {
        error.detail = format!("{pointer}: {}", error.detail);
    } else if let Some(first) = error.errors.first() {
        error.detail = format!("{}: {}", first.pointer, first.message);
    }
    error
}

/// Rows that are there, by slug and by reference.
struct Stored<M> {
    by_slug: HashMap<String, M>,
    by_ref: HashMap<String, M>,
}

async fn stored<R: Resource>(place: &Place<'_>, rows: &[Row]) -> Result<Stored<R::Model>>
where
    R::Model: Clone,
{
    let slugs: Vec<&str> = rows.iter().filter_map(|row| row.slug.as_deref()).collect();
    let refs: Vec<&str> =
        rows.iter().filter(|row| row.slug.is_none()).filter_map(|row| reference(&row.members)).collect();
    let names: Vec<String> =
        <R::Entity as EntityTrait>::Column::iter().map(|c| format!("t.\"{}\"", Iden::unquoted(&c))).collect();
    let names = names.join(", ");
    let from = format!("SELECT {names} FROM {} t WHERE t.tenant_id = $1 AND t.campaign_id = $2", R::TABLE);
    let sql = format!("{from} AND t.slug = ANY ($3) UNION ALL {from} AND t.external_ref = ANY ($4)");
    let found = sqlx::query(AssertSqlSafe(sql))
        .bind(place.tx.tenant())
        .bind(place.campaign)
        .bind(&slugs)
        .bind(&refs)
        .fetch_all(&mut *place.tx.connection().await)
        .await?;
    let mut stored = Stored { by_slug: HashMap::new(), by_ref: HashMap::new() };
    for row in found {
        let (slug, reference): (String, Option<String>) = (row.get("slug"), row.get("external_ref"));
        let model = R::Model::from_query_result(&row.into(), "")?;
        if let Some(reference) = reference {
            stored.by_ref.insert(reference, model.clone());
        }
        stored.by_slug.insert(slug, model);
    }
    Ok(stored)
}

fn reference(members: &Map<String, Value>) -> Option<&str> {
    members.get("external_ref").and_then(Value::as_str)
}

/// Slugs for rows that are known by something else.
struct Slugs(HashSet<String>);

impl Slugs {
    /// Asks once which of all names that may be tried are taken.
    async fn look<R: Resource>(place: &Place<'_>, rows: &[Row], stored: &Stored<R::Model>) -> Result<Self> {
        let is_new =
            |row: &&Row| row.slug.is_none() && reference(&row.members).is_none_or(|r| !stored.by_ref.contains_key(r));
        let candidates: Vec<String> =
            rows.iter().filter(is_new).flat_map(|row| Self::names::<R>(row).collect::<Vec<_>>()).collect();
        if candidates.is_empty() {
            return Ok(Self(HashSet::new()));
        }
        let table = if R::IS_ACTOR { "actor_slug" } else { R::TABLE };
        let sql = format!("SELECT slug FROM {table} WHERE tenant_id = $1 AND campaign_id = $2 AND slug = ANY ($3)");
        let taken = sqlx::query(AssertSqlSafe(sql))
            .bind(place.tx.tenant())
            .bind(place.campaign)
            .bind(&candidates)
            .fetch_all(&mut *place.tx.connection().await)
            .await?;
        Ok(Self(taken.iter().map(|row| row.get("slug")).collect()))
    }

    fn names<R: Resource>(row: &Row) -> impl Iterator<Item = String> {
        let label = row.members.get(R::LABEL).and_then(Value::as_str).unwrap_or_default();
        let base = resource::slug_of(label, "_").filter(|slug| Uuid::try_parse(slug).is_err());
        let base = base.unwrap_or_else(|| R::TABLE.to_owned());
        std::iter::once(base.clone()).chain((2..=NAMES_TRIED).map(move |n| format!("{base}_{n}")))
    }

    fn take<R: Resource>(&mut self, row: &Row) -> String {
        let free = Self::names::<R>(row).find(|name| !HashSet::contains(&self.0, name));
        let slug = free.unwrap_or_else(|| format!("{}_{}", R::TABLE, Uuid::now_v7().simple()));
        self.0.insert(slug.clone());
        slug
    }
}

async fn plan<R: Resource>(
    place: &Place<'_>,
    mut row: Row,
    stored: &Stored<R::Model>,
    raw: &impl Fn(&R::Model) -> Map<String, Value>,
    slugs: &mut Slugs,
) -> Result<Plan>
where
    R::Model: Clone,
{
    let found = match &row.slug {
        Some(slug) => stored.by_slug.get(slug),
        None => reference(&row.members).and_then(|r| stored.by_ref.get(r)),
    };
    let Some(model) = found else {
        let slug = row.slug.clone().unwrap_or_else(|| slugs.take::<R>(&row));
        row.members.insert("slug".to_owned(), slug.clone().into());
        let mut columns = columns::<R>(place, row.members).await?;
        columns.extend(row.beside);
        let id = Uuid::now_v7();
        columns.insert("id".to_owned(), json!(id));
        columns.insert("tenant_id".to_owned(), json!(place.tx.tenant()));
        columns.insert("campaign_id".to_owned(), json!(place.campaign));
        return Ok(Plan { id, columns, action: "created", slug });
    };
    let id = R::stamp(model).id;
    let shown = serde_json::to_value(R::View::from(model.clone())).map_err(Error::internal)?;
    let Value::Object(mut shown) = shown else { return Err(Error::internal("a view is an object")) };
    shown.retain(|name, _| !resource::READ_ONLY.contains(&name.as_str()) && !R::READ_ONLY.contains(&name.as_str()));
    let slug = shown.get("slug").and_then(Value::as_str).unwrap_or_default().to_owned();
    row.members.remove("slug");
    let mut before = columns::<R>(place, shown.clone()).await?;
    before.extend(raw(model));
    if row.adds_extensions
        && let Some(Value::Object(added)) = row.members.remove("extensions")
        && let Some(Value::Object(own)) = shown.get_mut("extensions")
    {
        own.extend(added);
    }
    shown.extend(row.members);
    let mut after = columns::<R>(place, shown).await?;
    let timed: Vec<String> = row.beside.keys().cloned().collect();
    after.extend(row.beside);
    // Moments that are columns of ours are set anew at each write; they are no difference unless the file names them.
    let differs = after
        .iter()
        .any(|(name, value)| (!name.ends_with("_at") || timed.contains(name)) && before.get(name) != Some(value));
    after.insert("id".to_owned(), json!(id));
    Ok(Plan { id, columns: after, action: if differs { "updated" } else { "unchanged" }, slug })
}

async fn columns<R: Resource>(place: &Place<'_>, members: Map<String, Value>) -> Result<Map<String, Value>> {
    let input: R::Input = body::typed(Value::Object(members))?;
    validate::check(&input)?;
    R::columns(place, input).await
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

/// Rows of one kind after a slug, in the order of slugs.
///
/// # Errors
/// Those of the database.
pub async fn page<R: Resource>(place: &Place<'_>, after: &str, limit: u64) -> Result<Vec<R::Model>> {
    use sea_orm::{QueryFilter, QueryOrder, QuerySelect};
    Ok(R::Entity::find()
        .filter(col("tenant_id").eq(place.tx.tenant()))
        .filter(col("campaign_id").eq(place.campaign))
        .filter(col("slug").gt(after))
        .order_by(col("slug"), sea_orm::Order::Asc)
        .limit(limit)
        .all(place.tx)
        .await?)
}
