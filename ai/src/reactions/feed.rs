//! `GET …/events`: the changes of a campaign, and what NPCs and owners say by themselves to the stream's reader.

use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Bytes, BytesMut},
};
use futures_util::{FutureExt, future::LocalBoxFuture};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::{news::News, replies::ReplyAnnounced};
use crate::state::Ai;
use base::error::{Code, Error, Problem, Result};
use edge::{
    caller::{Caller, Scope},
    http::{paging, sse},
    state::Edge,
};
use world::journal::{self, Beside};

/// Where a stream begins.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct FollowParams {
    /// The last change that the client has. By default the stream begins now. The header `Last-Event-ID` takes
    /// precedence.
    #[param(minimum = 0)]
    after: Option<i64>,
}

/// Follows the journal as server-sent events.
///
/// It shows the same changes as `GET …/changes`. Each event has the name `change`, the number of the change as `id`,
/// and the change as `data`. A stream ends after ten minutes; reconnect with `Last-Event-ID`.
///
/// A player's token, and a game master, also get what NPCs and owners say by themselves, as soon as it can be heard: an event with the name
/// `reply` and `{"reply": …}` as `data`, without an `id`. A new stream tells of all replies that wait.
#[utoipa::path(get, path = "/v1/campaigns/{c}/events",
    tag = "campaigns", operation_id = "follow_changes",
    params(("c" = String, Path, description = "Campaign id or slug"), FollowParams,
        ("Last-Event-ID" = Option<String>, Header, description = "The number of the last change that the client received")),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = "default", body = Problem)))]
pub async fn follow_changes(
    app: web::Data<Ai>,
    edge: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<HttpResponse> {
    let asked: FollowParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    let number = |id: &str| {
        let number = id.parse().ok().filter(|after: &i64| *after >= 0);
        number.ok_or_else(|| Error::new(Code::BadRequest, "`Last-Event-ID` must be the number of a change."))
    };
    let after = match sse::last_event_id(&request) {
        Some(id) => Some(number(id)?),
        None => asked.after,
    };
    if after.is_some_and(|after| after < 0) {
        return Err(paging::bad("after", "must be 0 or more"));
    }
    journal::follow(edge, caller.clone(), &path, after, Heard::by(app, caller)).await
}

/// The replies that the reader of a stream hears.
struct Heard {
    app: web::Data<Ai>,
    caller: Caller,
    news: Option<News>,
}

impl Heard {
    /// None if the reader hears no replies.
    fn by(app: web::Data<Ai>, caller: Caller) -> Option<Box<dyn Beside>> {
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
