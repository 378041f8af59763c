//! Reads values from the database. Stored data may be older than the code, or may have been written by somebody else.
//!
//! [`Columns::read`] replaces `sqlx::Row::get`, which panics on a value that it cannot read. An unreadable value is an error
//! that names the column. In a list it costs only its own row ([`each`]). Code here must never panic, and must never leave out a
//! row without logging and counting it.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IntoDeserializer, value},
};
use serde_json::Value;
use sqlx::{ColumnIndex, Decode, FromRow, Postgres, Row as _, Type, postgres::PgRow};

use crate::error::{Error, Result};
use crate::metrics;

/// Access to the columns of a row.
pub trait Columns {
    /// A column's value.
    ///
    /// # Errors
    /// `internal` if there is no such column, or its value is not a `T`.
    fn read<'r, T: Decode<'r, Postgres> + Type<Postgres>>(&'r self, column: impl ColumnIndex<PgRow>) -> Result<T>;

    /// All columns as a tuple, in the order in which the statement names them.
    ///
    /// # Errors
    /// `internal` if a value is not of its type.
    fn read_all<'r, T: FromRow<'r, PgRow>>(&'r self) -> Result<T>;

    /// A JSON column, read as `T`.
    ///
    /// # Errors
    /// `internal` if there is no such column, or its value is not a `T`.
    fn read_json<T: DeserializeOwned>(&self, column: &str) -> Result<T>;

    /// A text column with the name of one of `T`'s variants.
    ///
    /// # Errors
    /// `internal` if there is no such column, or `T` has no such variant.
    fn read_name<T: DeserializeOwned>(&self, column: &str) -> Result<T>;
}

impl Columns for PgRow {
    fn read<'r, T: Decode<'r, Postgres> + Type<Postgres>>(&'r self, column: impl ColumnIndex<PgRow>) -> Result<T> {
        self.try_get(column).map_err(Error::internal)
    }

    fn read_all<'r, T: FromRow<'r, PgRow>>(&'r self) -> Result<T> {
        T::from_row(self).map_err(Error::internal)
    }

    fn read_json<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        let sqlx::types::Json(value) = self.try_get(column).map_err(Error::internal)?;
        Ok(value)
    }

    fn read_name<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        let name: &str = self.try_get(column).map_err(Error::internal)?;
        T::deserialize(name.into_deserializer()).map_err(|e: value::Error| Error::internal(e))
    }
}

/// Reads each row of a list. An unreadable row is left out, logged and counted; the others are kept.
pub fn each<'r, R, T>(rows: impl IntoIterator<Item = &'r R>, read: impl Fn(&'r R) -> Result<T>) -> Vec<T>
where
    R: 'r,
{
    rows.into_iter().filter_map(|row| readable(read(row))).collect()
}

/// Reads a list in a document item by item. An item that cannot be read is left out, logged and counted.
///
/// # Errors
/// If it is no list.
pub fn readable_items<'de, D: Deserializer<'de>, T: DeserializeOwned>(items: D) -> Result<Vec<T>, D::Error> {
    let items = Vec::<Value>::deserialize(items)?;
    Ok(items.into_iter().filter_map(part).collect())
}

/// Reads a member of a document. One that cannot be read is as if it were missing, logged and counted.
///
/// # Errors
/// Those of the document.
pub fn readable_or_default<'de, D, T>(member: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(part(Value::deserialize(member)?).unwrap_or_default())
}

fn part<T: DeserializeOwned>(value: Value) -> Option<T> {
    readable(T::deserialize(value).map_err(Error::internal))
}

/// The value of a row or of a part of it; `None` if it is unreadable, which is logged and counted.
pub fn readable<T>(read: Result<T>) -> Option<T> {
    read.inspect_err(|error| {
        metrics::ROWS_UNREADABLE.inc();
        tracing::error!(%error, cause = ?error.cause(), "a stored row, or a part of it, cannot be read and is left out");
    })
    .ok()
}
