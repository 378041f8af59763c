//! Live updates of a table: pieces of a page as server-sent events. Whose page it is decides which pieces.

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Bytes, BytesMut},
};
use askama::Template;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{COME_BACK_AFTER, message, notes::Alert};
use ai::state::Ai;
use base::error::{Code, Error, Result};
use db::{feeds::Feed, tenancy::TenantTx};
use edge::http::sse;
use entity::MessageId;
use world::table::{self, Changes};

/// The longest duration of one stream.
const FOLLOWED_FOR: Duration = Duration::from_secs(600);

/// The changes that a page has not seen: those after this `seq` of the journal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct From {
    after: i64,
}

impl From {
    /// The same, or later: what the reader of an interrupted stream has seen.
    pub(crate) fn or_later(self, request: &HttpRequest) -> i64 {
        sse::last_event_id(request).and_then(|id| id.parse().ok()).unwrap_or(self.after).max(0)
    }
}

/// Somebody whose page shows a table.
pub(crate) trait Onlooker: 'static {
    /// The table as it is now, in a transaction.
    type Seat;

    /// What is said when they can no longer be at the table.
    const OVER: &'static str;

    /// The tenant and the campaign.
    fn place(&self) -> Feed;

    /// Opens the table.
    ///
    /// # Errors
    /// `unauthenticated`, `not_found` if it is over.
    async fn take_seat(&self) -> Result<Self::Seat>;

    /// The transaction of an open table.
    fn tx(seat: &Self::Seat) -> &TenantTx;

    /// What changed, as pieces of the page with the names of their events.
    ///
    /// # Errors
    /// Database errors.
    async fn pieces(&mut self, seat: &Self::Seat, changes: &Changes) -> Result<Vec<(&'static str, String)>>;

    /// Whether the credential still holds, after something was looked at: a credential that is valid now was valid when what it saw was
    /// committed.
    ///
    /// # Errors
    /// Database errors.
    async fn may_stay(&self, seat: Self::Seat) -> Result<bool>;

    /// Does what is due after a look.
    ///
    /// # Errors
    /// Database errors.
    async fn looked(&mut self) -> Result<()> {
        Ok(())
    }

    /// Waits until they are shown out.
    async fn shown_out(&mut self) {
        std::future::pending().await
    }
}

/// Follows the table.
///
/// # Errors
/// `overloaded` if too many streams are open.
pub(crate) fn follow<O: Onlooker>(app: web::Data<Ai>, onlooker: O, after: i64) -> Result<HttpResponse> {
    let end = app.feeds.watch(onlooker.place())?;
    let until = Instant::now() + FOLLOWED_FOR;
    let following = Following { app, onlooker, after, end, until, set_aside: Vec::new() };
    let events = stream::unfold(Some(following), async |following| {
        let mut following = following?;
        match following.next().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(following))),
            Ok(None) => Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None)),
            Err(error) if is_over(&error) => Some((Ok(ended(O::OVER)), None)),
            Err(error) => {
                tracing::info!(%error, "a live stream of a table ended with an error");
                Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None))
            }
        }
    });
    Ok(sse::answer(events.boxed_local()))
}

/// Whether somebody can no longer be at the table: the visit or session, the campaign or the character is gone.
pub(crate) fn is_over(error: &Error) -> bool {
    matches!(error.code, Code::Unauthenticated | Code::NotFound)
}

/// A stream that says only that it is over, because its reader cannot show an error page and would come back.
pub(crate) fn over(message: &'static str) -> HttpResponse {
    sse::answer(stream::once(async move { Ok(ended(message)) }).boxed_local())
}

/// The end. The reader does not reconnect after this.
fn ended(message: &str) -> Bytes {
    let mut out = BytesMut::new();
    sse::html(&mut out, "over", None, &Alert { message }.render().unwrap_or_default());
    out.freeze()
}

/// A reader of a table's live stream.
struct Following<O> {
    app: web::Data<Ai>,
    onlooker: O,
    after: i64,
    end: watch::Receiver<i64>,
    until: Instant,
    /// Messages that the page keeps although they are set aside, because another attempt is to take their place.
    set_aside: Vec<MessageId>,
}

impl<O: Onlooker> Following<O> {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if self.app.is_stopping() || Instant::now() >= self.until {
                return Ok(None);
            }
            // Marked as seen before the rows are read, so that a later change wakes this up again.
            self.end.borrow_and_update();
            let seat = self.onlooker.take_seat().await?;
            let (bytes, has_more) = self.look(&seat).await?;
            if !self.onlooker.may_stay(seat).await? {
                return Ok(Some(self.end()));
            }
            self.onlooker.looked().await?;
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
            if has_more {
                continue;
            }
            tokio::select! {
                () = self.onlooker.shown_out() => return Ok(Some(self.end())),
                changed = timeout(sse::HEARTBEAT, self.end.changed()) => match changed {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Ok(None),
                    Err(_) => return Ok(Some(sse::heartbeat())),
                },
            }
        }
    }

    fn end(&mut self) -> Bytes {
        self.until = Instant::now();
        ended(O::OVER)
    }

    /// The changes since the last look, and whether there are more.
    async fn look(&mut self, seat: &O::Seat) -> Result<(Bytes, bool)> {
        let (_, campaign) = self.onlooker.place();
        // Read first, and sent last: what takes their place is among the changes.
        let gone = table::gone_for_good(O::tx(seat), &self.set_aside).await?;
        self.set_aside.retain(|message| !gone.contains(message));
        let mut pieces: Vec<_> = gone.into_iter().map(message::gone).collect();
        let mut has_more = false;
        if let Some(changes) = table::changes(O::tx(seat), campaign, self.after).await? {
            (self.after, has_more) = (changes.last, changes.has_more);
            let set_aside = changes.of("message", Some("delete")).filter(|change| change.is_set_aside);
            self.set_aside.extend(set_aside.map(|change| MessageId(change.row)));
            pieces.splice(..0, self.onlooker.pieces(seat, &changes).await?);
        }
        // Only the last piece has the id, because only readers of all pieces are up to date.
        let id = self.after.to_string();
        let mut out = BytesMut::new();
        let last = pieces.len().saturating_sub(1);
        for (n, (name, html)) in pieces.iter().enumerate() {
            sse::html(&mut out, name, Some(id.as_str()).filter(|_| n == last), html);
        }
        Ok((out.freeze(), has_more))
    }
}
