//! Sessions: a frontend at the table. Its reports become messages, a copy of its fights, and pieces of deltas. Its AI gets an
//! overview for its first turn and, after that, only what changed.
//!
//! - [`http`] has the routes. Turns of a session are in `turns::gm`. Reports over a frontend's own connection come through
//!   `bridge`.
//! - [`view`] is a session as clients see it. [`open`] decides which session belongs to which frontend.
//! - [`events`] stores a frontend's reports; [`world_state`] and [`combat`] are the two documents that a frontend keeps up to date.
//! - [`delta`] is what changed, as a sum of pieces; [`changes`] computes it from the journal and the session's events.
//! - [`facts`] reads the state of a session, [`service`] what its frontend reported; [`overview`] is the world before the first
//!   turn.
//!
//! A session never stores its cursor. It is computed from its completed turns that are still valid, so a failed or undone turn has
//! seen nothing. To add a type of event: a field of [`delta::Delta`] with its line in `add`, its type in `events::piece`, and a row
//! in `docs/sessions.md`.

pub mod changes;
pub mod combat;
pub mod delta;
pub mod described;
pub mod events;
pub mod facts;
pub mod http;
pub mod input;
pub mod open;
pub mod overview;
pub mod reported;
pub mod service;
pub mod view;
pub mod world_state;

use edge::auth::player;
use entity::{
    session::{self, Dice, Role},
    shapes::Extensions,
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::scenes;
use base::error::Result;
use edge::http::{
    resource::{self, Place, Resource, Stamp, col},
    validate,
};

/// A session, as clients write it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct SessionInput {
    /// The frontend's name for itself, at most 64 characters. Each name has one session.
    #[garde(custom(client_name))]
    #[schema(min_length = 1, max_length = 64)]
    pub client_id: String,
    /// The AI's role: it runs the game, helps the game master, or plays a character.
    #[serde(default)]
    #[schema(inline)]
    pub role: Role,
    /// Who rolls the AI's dice.
    #[serde(default)]
    #[schema(inline)]
    pub dice: Dice,
    /// The character that the AI plays, by id or slug, if its role is `player`.
    #[serde(default)]
    pub player_id: Option<String>,
    /// The scene in which the session plays, by id or slug. The session's messages are written there.
    #[serde(default)]
    pub scene_id: Option<String>,
    /// A frontend's channel, instead of `scene_id`. The scene of this channel is used, and created if it does not exist.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub channel: Option<String>,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub external_ref: Option<String>,
}

/// A frontend's name is also the prefix of its messages' ids.
fn client_name(value: &str, cx: &()) -> garde::Result {
    validate::line(value, cx)?;
    if value.chars().count() > 64 { Err(garde::Error::new("must have at most 64 characters")) } else { Ok(()) }
}

/// Filters of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct SessionFilter {
    client_id: Option<String>,
    #[param(inline)]
    role: Option<Role>,
}

/// The resource kind of sessions.
pub struct Sessions;

impl Resource for Sessions {
    const TABLE: &'static str = "session";
    const LABEL: &'static str = "client_id";
    const HAS_SLUG: bool = false;
    const READ_ONLY: &'static [&'static str] = &["state"];
    type Entity = session::Entity;
    type Model = session::Model;
    type View = session::Model;
    type Input = SessionInput;
    type Filter = SessionFilter;

    fn stamp(m: &session::Model) -> Stamp<'_> {
        Stamp { id: m.id.0, version: m.version, label: &m.client_id, updated_at: m.updated_at }
    }

    fn filter(
        select: sea_orm::Select<session::Entity>,
        filter: &SessionFilter,
    ) -> Result<sea_orm::Select<session::Entity>> {
        use sea_orm::{QueryFilter, QueryTrait, sea_query::ExprTrait};
        Ok(select
            .apply_if(filter.client_id.clone(), |s, v| s.filter(col("client_id").eq(v)))
            .apply_if(filter.role, |s, v| s.filter(col("role").eq(v))))
    }

    async fn columns(place: &Place<'_>, input: SessionInput) -> Result<Map<String, Value>> {
        let mut columns = resource::plain_columns(&input)?;
        if let Some(player) = &input.player_id {
            let id = player::id(place.tx, place.campaign, player).await?;
            columns.insert("player_id".to_owned(), json!(id));
        }
        let scene = scenes::service::named(place, input.scene_id.as_deref(), input.channel.as_deref()).await?;
        columns.remove("channel");
        columns.insert("scene_id".to_owned(), json!(scene));
        Ok(columns)
    }
}
