//! The effects of a turn: rows, counted before they are changed, so that a failed turn can be reverted in reasonable time.

use std::cell::Cell;

use uuid::Uuid;

use base::error::{Code, Error, Result};
use db::tenancy::TenantTx;

/// From this number of rows on, a call may take long.
pub(super) const MANY: u64 = 100;

/// How many rows a turn has changed, and how many it may change.
#[derive(Debug)]
pub struct Effects {
    rows_max: u64,
    /// Rows changed by committed calls.
    kept: Cell<u64>,
    /// Those, and the rows changed by the present batch.
    used: Cell<u64>,
}

impl Effects {
    /// The effects of a new turn.
    #[must_use]
    pub fn of(rows_max: u64) -> Self {
        Self { rows_max, kept: Cell::new(0), used: Cell::new(0) }
    }

    /// Counts rows before they are changed.
    ///
    /// # Errors
    /// `quota_exceeded` if the turn may not change that many. Then nothing is counted.
    pub fn take(&self, rows: u64) -> Result<()> {
        let used = self.used.get().saturating_add(rows);
        if used > self.rows_max {
            let detail = format!(
                "A turn may change at most {} rows. This one has changed {}, and the call would change {rows} more.",
                self.rows_max,
                self.used.get()
            );
            return Err(Error::new(Code::QuotaExceeded, detail));
        }
        self.used.set(used);
        Ok(())
    }

    /// Starts a batch, possibly again. Forgets the rows of uncommitted calls.
    pub fn begin(&self) {
        self.used.set(self.kept.get());
    }

    /// Keeps the count when a batch is committed.
    pub fn keep(&self) {
        self.kept.set(self.used.get());
    }
}

/// Extends the turn's lease for a batch that may take longer than a lease. The batch locks the turn's row, so other servers see
/// that it is still running; the longer lease becomes visible with its commit. One statement.
pub(super) async fn take_time(tx: &TenantTx, turn: Uuid) -> Result<()> {
    sqlx::query(
        "UPDATE turn SET lease_until = greatest(lease_until, now() + interval '5 minutes') WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(turn)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(())
}
