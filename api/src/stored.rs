//! Reading what the database has kept. Stored data may be older than the code, or may have been written by somebody else.
//!
//! [`Columns::read`] takes the place of `sqlx::Row::get`, which panics on a value that it cannot read. What cannot be read is an
//! error that names the column, and in a list it costs its own row only ([`each`]). Nothing here may panic or leave out a row
//! without a word in the log and a count.

use serde::de::DeserializeOwned;
use sqlx::{ColumnIndex, Decode, Postgres, Row as _, Type, postgres::PgRow};

use crate::{
    error::{Error, Result},
    ops::metrics,
};

/// Columns of a row that was found.
pub trait Columns {
    /// A column's value.
    ///
    /// # Errors
    /// `internal` if there is no such column, or if what it holds is not a `T`.
    fn read<'r, T: Decode<'r, Postgres> + Type<Postgres>>(&'r self, column: impl ColumnIndex<PgRow>) -> Result<T>;

    /// A column of JSON, read as `T`.
    ///
    /// # Errors
    /// `internal` if there is no such column, or if what it holds is not a `T`.
    fn read_json<T: DeserializeOwned>(&self, column: &str) -> Result<T>;
}

impl Columns for PgRow {
    fn read<'r, T: Decode<'r, Postgres> + Type<Postgres>>(&'r self, column: impl ColumnIndex<PgRow>) -> Result<T> {
        self.try_get(column).map_err(Error::internal)
    }

    fn read_json<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        let sqlx::types::Json(value) = self.try_get(column).map_err(Error::internal)?;
        Ok(value)
    }
}

/// Reads each row of a list. A row that cannot be read is left out, logged and counted; the others are not lost with it.
pub fn each<'r, R, T>(rows: impl IntoIterator<Item = &'r R>, read: impl Fn(&'r R) -> Result<T>) -> Vec<T>
where
    R: 'r,
{
    rows.into_iter().filter_map(|row| readable(read(row))).collect()
}

/// What was read of one row among others; none if it cannot be read, which is logged and counted.
pub fn readable<T>(read: Result<T>) -> Option<T> {
    read.inspect_err(|error| {
        metrics::ROWS_UNREADABLE.inc();
        tracing::error!(%error, cause = ?error.cause(), "a stored row cannot be read and is left out of its list");
    })
    .ok()
}
