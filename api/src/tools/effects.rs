//! What a turn may change: rows, counted before they are written, so that what it did can be taken back in reasonable time.

use std::cell::Cell;

use uuid::Uuid;

use crate::{
    error::{Code, Error, Result},
    tenancy::TenantTx,
};

/// Rows of one call that take their time.
pub(super) const MANY: u64 = 100;

/// The rows that a turn has changed, and how many it may change.
#[derive(Debug)]
pub struct Effects {
    rows_max: u64,
    /// By calls that are committed.
    kept: Cell<u64>,
    /// By these and by the batch under way.
    used: Cell<u64>,
}

impl Effects {
    /// Of a turn that begins.
    #[must_use]
    pub fn of(rows_max: u64) -> Self {
        Self { rows_max, kept: Cell::new(0), used: Cell::new(0) }
    }

    /// Counts rows that are about to be changed.
    ///
    /// # Errors
    /// `quota_exceeded` if they are more than are left; nothing is counted then.
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

    /// A batch begins, perhaps again: nothing that was not committed counts.
    pub fn begin(&self) {
        self.used.set(self.kept.get());
    }

    /// A batch is committed.
    pub fn keep(&self) {
        self.kept.set(self.used.get());
    }
}

/// Has the turn's lease outlive a batch that may take longer than a lease: the batch holds the turn's row, which is how others see that it goes on,
/// and this is seen with its commit. One statement.
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
