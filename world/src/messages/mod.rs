//! Messages: what was said and rolled in a campaign. New ones come last; a game master can correct or delete one. Whispers and blind rolls
//! are visible only to the people they are for.

pub mod asked;
pub mod asking;
pub mod correct;
pub mod event;
pub mod http;
pub mod prompt_text;
pub mod question;
pub mod service;
pub mod visible;

use crate::playing;
use edge::auth::player;
use entity::{
    message::{self, Author, Type},
    shapes::{Extensions, Speaker},
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::scenes;
use base::error::{Error, Result};
use edge::{
    caller::Caller,
    http::{
        paging::SortKey,
        resource::{self, Place, Ref, Resource, Stamp, col},
        validate,
    },
};

/// The members of a message that a client can write.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct MessageInput {
    #[serde(default)]
    pub session_id: Option<Uuid>,
    /// The scene, by id or slug. By default the scene of the session.
    #[serde(default)]
    pub scene_id: Option<String>,
    /// A frontend's channel, instead of a scene: its scene is used, and created if there is none.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub channel: Option<String>,
    #[serde(default, rename = "type")]
    #[schema(inline)]
    pub kind: Type,
    #[serde(default)]
    pub speaker: Speaker,
    #[garde(custom(validate::says_something), length(chars, max = 20_000))]
    #[schema(min_length = 1)]
    pub content: String,
    /// What it is: `ooc` for what is said out of character, `emote` for a deed without the name of who does it, and for a roll what it is for.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub flavor: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub roll: Option<Value>,
    #[serde(default)]
    #[schema(inline)]
    pub author: Author,
    /// The player character that it is about, by id or slug.
    #[serde(default)]
    pub player_id: Option<String>,
    /// The people who may read it: `gm`, or player characters by id or slug. Empty means everyone.
    #[garde(length(max = 50))]
    #[serde(default)]
    pub whisper_to: Vec<String>,
    /// Whether only the game master sees the result of the roll.
    #[serde(default)]
    pub blind: bool,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub external_ref: Option<String>,
}

/// A corrected message.
#[derive(Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct MessagePatch {
    #[garde(custom(validate::says_something), length(chars, max = 20_000))]
    #[schema(min_length = 1, max_length = 20_000)]
    pub content: String,
}

/// Filters of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct MessageFilter {
    /// Only messages about this player character, by id or slug.
    player_id: Option<String>,
    /// Only messages to or from this NPC or owner, by id or slug.
    entity_id: Option<String>,
    /// Only messages in this scene, by id or slug.
    scene_id: Option<String>,
    session_id: Option<Uuid>,
    turn_id: Option<Uuid>,
    #[serde(rename = "type")]
    #[param(inline)]
    kind: Option<Type>,
}

const BY_ACTORS_SLUG: &str = "SELECT a.actor_id FROM actor_slug a WHERE a.tenant_id = message.tenant_id AND a.campaign_id = message.campaign_id AND a.slug = $1";
const BY_SCENES_SLUG: &str = "SELECT s.id FROM scene s WHERE s.tenant_id = message.tenant_id AND s.campaign_id = message.campaign_id AND s.slug = $1";

/// Messages as a resource.
pub struct Messages;

impl Resource for Messages {
    const TABLE: &'static str = "message";
    const LABEL: &'static str = "content";
    const HAS_SLUG: bool = false;
    const IS_NUMBERED: bool = true;
    type Entity = message::Entity;
    type Model = message::Model;
    type View = message::Model;
    type Input = MessageInput;
    type Filter = MessageFilter;

    fn stamp(m: &message::Model) -> Stamp<'_> {
        Stamp { id: m.id.0, version: m.version, label: &m.content, updated_at: m.updated_at }
    }

    fn number(m: &message::Model, _: SortKey) -> Option<i64> {
        Some(m.seq.0)
    }

    fn restrict(select: sea_orm::Select<message::Entity>, caller: &Caller) -> sea_orm::Select<message::Entity> {
        use sea_orm::{QueryFilter, sea_query::Expr};
        if caller.sees_secrets() {
            return select;
        }
        // Without `gm`: messages for everyone, and messages to or from the token's player.
        let player = caller.player.unwrap_or_default();
        select.filter(Expr::cust_with_values(
            "((NOT blind AND (whisper_to = '[]' OR whisper_to @> to_jsonb($1::text))) OR (player_id = $2 AND NOT blind))",
            [sea_orm::Value::from(player.to_string()), sea_orm::Value::from(player)],
        ))
    }

    fn filter(
        select: sea_orm::Select<message::Entity>,
        filter: &MessageFilter,
    ) -> Result<sea_orm::Select<message::Entity>> {
        use sea_orm::{QueryFilter, QueryTrait, sea_query::ExprTrait};
        let is = |column, name: &str, by_slug| Ref::parse(name).is_in(column, by_slug);
        Ok(select
            .apply_if(filter.player_id.as_deref(), |s, v| s.filter(is("player_id", v, BY_ACTORS_SLUG)))
            .apply_if(filter.entity_id.as_deref(), |s, v| s.filter(is("entity_id", v, BY_ACTORS_SLUG)))
            .apply_if(filter.scene_id.as_deref(), |s, v| s.filter(is("scene_id", v, BY_SCENES_SLUG)))
            .apply_if(filter.session_id, |s, v| s.filter(col("session_id").eq(v)))
            .apply_if(filter.turn_id, |s, v| s.filter(col("turn_id").eq(v)))
            .apply_if(filter.kind, |s, v| s.filter(col("type").eq(v))))
    }

    async fn columns(place: &Place<'_>, input: MessageInput) -> Result<Map<String, Value>> {
        let session = match input.session_id {
            Some(session) => Some(playing::named(place.tx, place.campaign, session).await?),
            None => None,
        };
        let mut columns = resource::plain_columns(&input)?;
        columns.remove("channel");
        if let Some(player) = &input.player_id {
            let id = player::id(place.tx, place.campaign, player).await?;
            place.caller.may_act_as(id)?;
            columns.insert("player_id".to_owned(), json!(id));
        }
        let scene = scenes::service::named(place, input.scene_id.as_deref(), input.channel.as_deref()).await?;
        columns.insert("scene_id".to_owned(), json!(scene.or(session.and_then(|s| s.scene))));
        let mut whisper_to = Vec::with_capacity(input.whisper_to.len());
        for (i, name) in input.whisper_to.iter().enumerate() {
            whisper_to.push(match name.as_str() {
                "gm" => "gm".to_owned(),
                player => match player::find(place.tx, place.campaign, player).await? {
                    Some(id) => id.to_string(),
                    None => return Err(unknown(&format!("/whisper_to/{i}"), "character")),
                },
            });
        }
        columns.insert("whisper_to".to_owned(), json!(whisper_to));
        Ok(columns)
    }
}

fn unknown(pointer: &str, what: &str) -> Error {
    Error::invalid(pointer, "unknown_reference", format!("There is no such {what} in this campaign."))
}
