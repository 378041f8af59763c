//! Downloads of many rows. They are sent piece by piece from a transaction that sees one moment. Each tenant can run
//! one at a time, and its time is limited, because it holds a database connection.

use std::time::{Duration, Instant};

use actix_web::web;
use futures_util::{Stream, stream};

use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// The longest time for a download. A client that stops reading for a minute loses the connection earlier.
const TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// A download that is written piece by piece.
pub trait Pieces {
    /// The next piece; none after the last.
    fn next(&mut self) -> impl Future<Output = Result<Option<String>>>;

    /// Ends the transaction.
    fn end(self) -> impl Future<Output = Result<()>>;
}

/// The pieces as a stream of bytes. Each is made when it is asked for.
pub fn stream(pieces: impl Pieces) -> impl Stream<Item = Result<web::Bytes>> {
    let until = Instant::now() + TIME_MAX;
    stream::unfold((Some(pieces), until), async |(pieces, until)| {
        let mut pieces = pieces?;
        let next = if Instant::now() > until {
            Err(Error::new(Code::Unavailable, "The download took too long."))
        } else {
            Box::pin(pieces.next()).await
        };
        match next {
            Ok(Some(text)) => Some((Ok(web::Bytes::from(text)), (Some(pieces), until))),
            Ok(None) => match pieces.end().await {
                Ok(()) => None,
                Err(error) => Some((Err(error), (None, until))),
            },
            Err(error) => {
                tracing::warn!(%error, "an export was aborted");
                Some((Err(error), (None, until)))
            }
        }
    })
}

/// Reserves the tenant's only place for a download until the transaction ends.
///
/// # Errors
/// `conflict` while another download is running.
pub async fn alone(tx: &TenantTx) -> Result<()> {
    let row = sqlx::query("SELECT pg_try_advisory_xact_lock(hashtextextended('export:' || $1, 0)) AS mine")
        .bind(tx.tenant().to_string())
        .fetch_one(&mut *tx.connection().await)
        .await?;
    if row.read::<bool>("mine")? {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, "Another export of this tenant is running. Try again when it has ended."))
}
