//! What NPCs and owners say by themselves, beside the changes of a campaign in a stream.

use actix_web::web::{self, Bytes, BytesMut};
use futures_util::{FutureExt, future::LocalBoxFuture};
use uuid::Uuid;

use super::{news::News, replies::ReplyAnnounced};
use crate::state::Ai;
use base::error::Result;
use edge::{
    caller::{Caller, Scope},
    http::sse,
};
use world::journal::Beside;

/// The replies that the reader of a stream hears.
pub(super) struct Heard {
    app: web::Data<Ai>,
    caller: Caller,
    news: Option<News>,
}

impl Heard {
    /// None if the reader hears no replies.
    pub fn by(app: web::Data<Ai>, caller: Caller) -> Option<Box<dyn Beside>> {
        let hears = caller.player.is_some() || caller.scopes.has(Scope::Gm);
        hears.then(|| Box::new(Self { app, caller, news: None }) as Box<dyn Beside>)
    }
}

impl Beside for Heard {
    fn next(&mut self, campaign: Uuid) -> LocalBoxFuture<'_, Result<Bytes>> {
        let news = self.news.get_or_insert_with(|| News::of(campaign, self.caller.player));
        async {
            let mut out = BytesMut::new();
            for reply in news.next(&self.app, &self.caller).await? {
                sse::event(&mut out, "reply", None, &ReplyAnnounced { reply })?;
            }
            Ok(out.freeze())
        }
        .boxed_local()
    }
}
