//! The size of a page of a list. A page ends when its rows have [`PAGE_BYTES_MAX`] of JSON, and then gives a cursor. It
//! has at least one row.
//!
//! Every list takes its rows through [`within`], or through [`rows`] for the rows of one kind. The database leaves out
//! the rows that do not fit, so they are neither read nor sent.
//! [`Page::serialize_items`](super::paging::Page::serialize_items) counts once more when it writes the page, because a
//! string is longer in JSON than in the database.

use std::fmt::Write as _;

use sea_orm::{
    ColumnTrait, ColumnType, ConnectionTrait, DbBackend, EntityTrait, FromQueryResult, Iden, Iterable, QueryResult,
    QueryTrait, Select, Statement,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use sqlx::postgres::PgRow;

use super::bounds;
use base::{
    error::{Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;

/// The most JSON that a page's rows may have, in bytes. The row that exceeds it is still included.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The column with the number of rows before the page was cut.
const FOUND: &str = "page_rows_found";

/// The column with the upper bound of the bytes of all rows up to this one, and with it.
const BYTES: &str = "page_bytes";

/// No value is more than so many times as long as its compressed form. LZ4, the better of PostgreSQL's two methods, writes at least one
/// byte for 255.
const COMPRESSION_MAX: usize = 256;

/// How many rows are measured at a time. At most this many are measured beyond the end of a page.
const AT_ONCE: usize = 8;

/// Cuts the select `inner`, which has an order and a limit, after the row that fills a page. `columns` are those that
/// may be large.
///
/// PostgreSQL knows a column's size without reading it, except for JSON that is stored compressed. So rows are measured
/// a few at a time until there are enough, and only these are then added up row by row.
#[must_use]
pub fn within<'a>(inner: &str, columns: impl IntoIterator<Item = &'a str>) -> String {
    let mut size = "0".to_owned();
    for column in columns {
        let _ = write!(
            size,
            " + coalesce(CASE WHEN pg_column_compression(p.\"{column}\") IS NULL THEN pg_column_size(p.\"{column}\") \
             ELSE octet_length(p.\"{column}\"::text) END, 0)"
        );
    }
    format!(
        "WITH RECURSIVE page_q AS MATERIALIZED (SELECT q.*, row_number() OVER () AS page_row FROM ({inner}) q), \
             page_n (found) AS MATERIALIZED (SELECT count(*) FROM page_q), \
             page_walk (upto, bytes) AS (SELECT 0::bigint, 0::bigint UNION ALL \
                 SELECT w.upto + {AT_ONCE}, w.bytes + (SELECT coalesce(sum({size}), 0)::bigint FROM page_q p \
                     WHERE p.page_row > w.upto AND p.page_row <= w.upto + {AT_ONCE}) \
                 FROM page_walk w, page_n WHERE w.bytes < {PAGE_BYTES_MAX} AND w.upto < page_n.found) \
         SELECT r.*, page_n.found AS {FOUND} FROM page_n, (SELECT s.*, \
             coalesce(sum(s.page_row_bytes) OVER (ORDER BY s.page_row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS page_bytes \
             FROM (SELECT p.*, ({size})::bigint AS page_row_bytes FROM page_q p \
                   WHERE p.page_row <= (SELECT max(upto) FROM page_walk)) s) r \
         WHERE r.page_bytes < {PAGE_BYTES_MAX} ORDER BY r.page_row"
    )
}

/// Whether [`within`] left rows out.
#[must_use]
pub fn is_cut(rows: &[PgRow]) -> bool {
    let found = rows.first().and_then(|row| row.read::<i64>(FOUND).ok()).unwrap_or_default();
    usize::try_from(found).is_ok_and(|found| found > rows.len())
}

/// The rows of a kind's select that fit on a page, not yet converted, and whether rows were left out.
///
/// Most pages are so small that an upper bound of their size shows it. That costs a third less than measuring ([`within`]), which is
/// done only if the bound is too large.
///
/// # Errors
/// Those of the database.
pub async fn raw<E: EntityTrait>(db: &impl ConnectionTrait, select: Select<E>) -> Result<(Vec<QueryResult>, bool)> {
    let Statement { sql: inner, values, db_backend } = select.build(DbBackend::Postgres);
    let sql = bounded(&inner, E::Column::iter().filter_map(|column| upper_bound::<E>(&column)));
    let rows = db.query_all_raw(Statement { sql, values: values.clone(), db_backend }).await?;
    let bytes: i64 = rows.last().map_or(Ok(0), |row| row.try_get("", BYTES))?;
    if usize::try_from(bytes).is_ok_and(|bytes| bytes < PAGE_BYTES_MAX) {
        return Ok((rows, false));
    }
    let columns = E::Column::iter().filter(|column| upper_bound::<E>(column).is_some());
    let names: Vec<String> = columns.map(|column| Iden::unquoted(&column).to_owned()).collect();
    let sql = within(&inner, names.iter().map(String::as_str));
    let rows = db.query_all_raw(Statement { sql, values, db_backend }).await?;
    let found: i64 = rows.first().map_or(Ok(0), |row| row.try_get("", FOUND))?;
    let is_cut = usize::try_from(found).is_ok_and(|found| found > rows.len());
    Ok((rows, is_cut))
}

/// Cuts the select `inner` after the row with which the `upper_bounds` of the columns' sizes reach a page. Each row has the sum up to
/// and with itself. Reads no value to measure it. The rows keep their order, because a window without one takes them as they come.
fn bounded(inner: &str, upper_bounds: impl Iterator<Item = String>) -> String {
    let mut size = "0::bigint".to_owned();
    upper_bounds.for_each(|bound| {
        let _ = write!(size, " + {bound}");
    });
    format!(
        "SELECT * FROM (SELECT s.*, (sum(s.page_row_bytes) OVER (ROWS UNBOUNDED PRECEDING))::bigint AS {BYTES} \
             FROM (SELECT p.*, {size} AS page_row_bytes FROM ({inner}) p) s) r \
         WHERE r.{BYTES} - r.page_row_bytes < {PAGE_BYTES_MAX}"
    )
}

/// Like [`raw`], but converted: the rows that can be read, and whether rows were left out for any reason.
///
/// # Errors
/// Those of the database.
pub async fn rows<E: EntityTrait>(tx: &TenantTx, select: Select<E>) -> Result<(Vec<E::Model>, bool)>
where
    E::Model: FromQueryResult,
{
    let (rows, is_cut) = raw(tx, select).await?;
    let models = models::<E::Model>(&rows);
    let is_cut = is_cut || models.len() < rows.len();
    Ok((models, is_cut))
}

/// The rows that can be read.
pub fn models<M: FromQueryResult>(rows: &[QueryResult]) -> Vec<M> {
    stored::each(rows, |row| Ok(M::from_query_result(row, "")?))
}

/// An upper bound of the bytes of a column's value; `None` for a column that is never large. PostgreSQL knows the length of a text
/// without reading it. Of a compressed JSON value or array it knows only the length as stored.
fn upper_bound<E: EntityTrait>(column: &E::Column) -> Option<String> {
    use ColumnType::{Array, Json, JsonBinary, String, Text, VarBinary};
    let value = format!("p.\"{}\"", Iden::unquoted(column));
    match column.def().get_column_type() {
        String(_) | Text => Some(format!("coalesce(octet_length({value}), 0)")),
        Json | JsonBinary | Array(_) | VarBinary(_) => Some(format!(
            "coalesce(pg_column_size({value})::bigint * \
             CASE WHEN pg_column_compression({value}) IS NULL THEN 1 ELSE {COMPRESSION_MAX} END, 0)"
        )),
        _ => None,
    }
}

/// Cuts rows to one page. Returns whether some were cut off.
pub fn keep<T: Serialize>(rows: &mut Vec<T>) -> bool {
    let mut bytes = 0;
    let fits = rows.iter().take_while(|row| {
        let has_room = bytes < PAGE_BYTES_MAX;
        bytes += bounds::size(row);
        has_room
    });
    let (count, kept) = (rows.len(), fits.count());
    rows.truncate(kept);
    kept < count
}

/// Writes views as JSON until the page is full.
///
/// # Errors
/// `internal` if one cannot be written as JSON.
pub fn serialize_until_full<T: Serialize>(views: impl IntoIterator<Item = Result<T>>) -> Result<Vec<Box<RawValue>>> {
    let mut bytes = 0;
    let mut kept = Vec::new();
    for view in views {
        let row = to_raw_value(&view?).map_err(Error::internal)?;
        bytes += row.get().len();
        kept.push(row);
        if bytes >= PAGE_BYTES_MAX {
            break;
        }
    }
    Ok(kept)
}
