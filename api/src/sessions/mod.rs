//! Sessions: a frontend at the table. What it reports becomes messages, a mirror of its fights and pieces of deltas; what its AI
//! is told before a turn is an overview once, and after that what changed.
//!
//! - [`http`] has the routes; turns of a session are in `turns::gm`; [`open`] says whose session is whose; what frontends send over
//!   their own connection comes through `bridge`.
//! - [`events`] takes in what a frontend reports; [`world_state`] and [`combat`] are the two documents it keeps up to date.
//! - [`delta`] is what changed, as a sum of pieces; [`changes`] computes it from the journal and the session's events;
//!   [`facts`] reads where a session stands, [`service`] what its frontend told; [`overview`] is the world before the first turn.
//!
//! A session never stores its cursor: it is that of its completed turns that stand, so a failed or undone turn has seen nothing.
//! To add a kind of event: a field of [`delta::Delta`] with its line in `add`, its type in `events::piece`, a row in
//! `docs/sessions.md`.

pub mod changes;
pub mod combat;
pub mod delta;
pub(crate) mod described;
pub mod events;
pub mod facts;
pub mod http;
pub mod input;
pub mod open;
pub mod overview;
pub mod service;
pub mod world_state;

use entity::{
    session::{self, Dice, Role},
    shapes::Extensions,
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::{
    characters,
    error::{Error, Result},
    http::{
        resource::{self, Place, Resource, Stamp, col},
        validate,
    },
    scenes,
};

/// What a client writes of a session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct SessionInput {
    /// The frontend's own name for itself, at most 64 characters; one session each.
    #[garde(custom(client_name))]
    #[schema(min_length = 1, max_length = 64)]
    pub client_id: String,
    /// What the AI is: it runs the game, helps its game master, or plays a character.
    #[serde(default)]
    #[schema(inline)]
    pub role: Role,
    /// Who rolls the AI's dice.
    #[serde(default)]
    #[schema(inline)]
    pub dice: Dice,
    /// The character the AI plays, by id or slug, if its role is `player`.
    #[serde(default)]
    pub player_id: Option<String>,
    /// The scene it plays in, by id or slug; what is said in the session is said there.
    #[serde(default)]
    pub scene_id: Option<String>,
    /// A frontend's channel instead: its scene, which is made if there is none.
    #[garde(custom(validate::opt_line))]
    #[serde(default)]
    pub channel: Option<String>,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[serde(default)]
    pub external_ref: Option<String>,
}

/// A frontend's name also stands before its messages' ids.
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

/// The kind.
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

    async fn whole(place: &Place<'_>, model: session::Model) -> Result<Value> {
        let view = http::SessionView::find(place, model).await?;
        serde_json::to_value(view).map_err(Error::internal)
    }

    async fn columns(place: &Place<'_>, input: SessionInput) -> Result<Map<String, Value>> {
        let mut columns = resource::plain_columns(&input)?;
        if let Some(player) = &input.player_id {
            let id = characters::service::player_id(place.tx, place.campaign, player).await?;
            columns.insert("player_id".to_owned(), json!(id));
        }
        let scene = scenes::service::named(place, input.scene_id.as_deref(), input.channel.as_deref()).await?;
        columns.remove("channel");
        columns.insert("scene_id".to_owned(), json!(scene));
        Ok(columns)
    }
}
