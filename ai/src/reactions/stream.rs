//! Sends a player's replies as server-sent events, as soon as the player can hear them.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use futures_util::{StreamExt, stream};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use uuid::Uuid;

use super::{news::News, replies::ReplyAnnounced};
use crate::state::Ai;
use actix_web::web::{Bytes, BytesMut};
use base::error::Result;
use edge::{caller::Caller, http::sse};

/// The longest duration of one stream. The client then reconnects.
const FOLLOWED_FOR: Duration = Duration::from_secs(600);
const COME_BACK_AFTER: Duration = Duration::from_secs(1);

struct Follower {
    app: web::Data<Ai>,
    caller: Caller,
    end: watch::Receiver<i64>,
    until: Instant,
    news: News,
}

/// Follows the replies of a player.
///
/// # Errors
/// `rate_limited` if the tenant has too many streams.
pub(super) fn follow(app: web::Data<Ai>, caller: Caller, campaign: Uuid, player: Uuid) -> Result<HttpResponse> {
    let end = app.feeds.watch((caller.tenant_id(), campaign))?;
    let until = Instant::now() + FOLLOWED_FOR;
    let follower = Follower { app, caller, end, until, news: News::of(campaign, Some(player)) };
    let events = stream::unfold(Some(follower), async |follower| {
        let mut follower = follower?;
        match follower.next().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(follower))),
            Ok(None) => Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None)),
            Err(error) => {
                tracing::info!(%error, "a stream of replies ended");
                Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None))
            }
        }
    });
    Ok(sse::answer(events.boxed_local()))
}

impl Follower {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if self.app.is_stopping() || Instant::now() >= self.until {
                return Ok(None);
            }
            // Marked as seen before the rows are read, so that a change during the read wakes this up again.
            self.end.borrow_and_update();
            let mut out = BytesMut::new();
            for reply in self.news.next(&self.app, &self.caller).await? {
                sse::event(&mut out, "reply", Some(&reply.id.to_string()), &ReplyAnnounced { reply })?;
            }
            if !out.is_empty() {
                return Ok(Some(out.freeze()));
            }
            match timeout(sse::HEARTBEAT, self.end.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ok(None),
                Err(_) => return Ok(Some(sse::heartbeat())),
            }
        }
    }
}
