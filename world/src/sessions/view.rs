//! A session as clients see it.

use entity::session;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    facts::{CachedFacts, Facts, facts},
    service::Position,
};
use base::error::Result;
use edge::http::resource::Place;

/// How far a session has got.
#[derive(Debug, Serialize, ToSchema)]
pub struct State {
    /// Whether the session completed a turn. After the first, turns tell the AI only what changed, as long as its role stays the
    /// same.
    first_turn_complete: bool,
    /// The campaign's `seq` up to which completed turns have told the AI what happened.
    cursor_seq: Option<i64>,
    /// The same for the session's own events.
    cursor_event: Option<i64>,
}

/// A session and how far it has got.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionView {
    #[serde(flatten)]
    pub(super) session: session::Model,
    state: State,
}

impl SessionView {
    /// A session of a campaign and how far it has got. One statement.
    pub(super) async fn find(place: &Place<'_>, session: session::Model) -> Result<Self> {
        let facts = facts(place.tx, place.campaign, session.id.0, None, CachedFacts::default()).await?;
        Ok(Self::of(session, &facts))
    }

    fn of(session: session::Model, facts: &Facts) -> Self {
        let cursor: Option<Position> = facts.standing.cursor;
        let state = State {
            first_turn_complete: facts.has_played,
            cursor_seq: cursor.map(|c| c.seq),
            cursor_event: cursor.map(|c| c.event),
        };
        Self { session, state }
    }
}
