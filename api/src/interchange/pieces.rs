//! Downloads of many rows: a piece at a time out of a transaction that reads as of one moment. One of a tenant runs at a time,
//! and each has an end, since it holds a connection.

use std::time::{Duration, Instant};

use actix_web::web;
use futures_util::{Stream, stream};

use crate::{
    error::{Code, Error, Result},
    stored::Columns,
    tenancy::TenantTx,
};

/// How long a download may take; who stops asking for a minute loses the rest before that.
const TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// Something that is written piece by piece.
pub trait Pieces {
    /// The next piece; none after the last.
    fn next(&mut self) -> impl Future<Output = Result<Option<String>>>;

    /// Ends its transaction.
    fn end(self) -> impl Future<Output = Result<()>>;
}

/// The pieces as bytes that come as they are asked for.
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
                tracing::warn!(%error, "an export broke off");
                Some((Err(error), (None, until)))
            }
        }
    })
}

/// Takes the one place that a tenant's downloads have, until the transaction ends.
///
/// # Errors
/// `conflict` while another is being sent.
pub async fn alone(tx: &TenantTx) -> Result<()> {
    let row = sqlx::query("SELECT pg_try_advisory_xact_lock(hashtextextended('export:' || $1, 0)) AS mine")
        .bind(tx.tenant().to_string())
        .fetch_one(&mut *tx.connection().await)
        .await?;
    if row.read::<bool>("mine")? {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, "Another export of this tenant is being sent; try again when it has ended."))
}
