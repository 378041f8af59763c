//! Scenes: places in play, with tokens, notes and lights. A scene may belong to a frontend's channel; [`service`] finds
//! the scene of a channel or creates it.

pub mod http;
pub mod service;

use entity::{
    scene,
    shapes::{Extensions, SceneToken},
};
use garde::Validate;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value, json};
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, SchemaType, Type},
    },
};

use base::error::Result;
use edge::http::{
    resource::{self, Place, Resource, Stamp, col},
    validate,
};

/// The members of a scene that a client can write.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct SceneInput {
    #[garde(custom(validate::opt_slug))]
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9_-]*$")]
    #[serde(default)]
    pub slug: Option<String>,
    #[garde(custom(validate::line))]
    #[schema(min_length = 1)]
    pub name: String,
    #[garde(length(chars, max = 20_000))]
    #[serde(default)]
    pub description: String,
    /// The location where the scene is, as lore with the scope `zone` names it. If there is none, the scene's name is
    /// used.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub location: Option<String>,
    #[serde(default)]
    pub active: bool,
    /// The frontend's channel that the scene belongs to. A channel has at most one scene in a campaign.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub channel: Option<String>,
    #[garde(range(min = 0, max = 1_000_000))]
    #[schema(minimum = 0, maximum = 1_000_000)]
    #[serde(default)]
    pub width: i32,
    #[garde(range(min = 0, max = 1_000_000))]
    #[schema(minimum = 0, maximum = 1_000_000)]
    #[serde(default)]
    pub height: i32,
    /// The size of a square, in the units of the scene's coordinates; or an object with the frontend's own members, in which `size` is
    /// that. `null` means `{}`.
    #[serde(default = "no_grid", deserialize_with = "grid")]
    #[schema(schema_with = grid_schema, required = false)]
    pub grid: Value,
    #[garde(length(max = 1000))]
    #[serde(default)]
    pub tokens: Vec<SceneToken>,
    #[garde(length(max = 1000))]
    #[serde(default)]
    pub notes: Vec<Value>,
    #[garde(length(max = 1000))]
    #[serde(default)]
    pub light_sources: Vec<Value>,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub external_ref: Option<String>,
}

fn no_grid() -> Value {
    json!({})
}

/// The largest size of a square.
const SQUARE_MAX: f64 = 1_000_000.0;

fn grid<'de, D: Deserializer<'de>>(grid: D) -> std::result::Result<Value, D::Error> {
    let grid = Option::deserialize(grid)?.unwrap_or_else(no_grid);
    let size = match &grid {
        Value::Object(members) => members.get("size").filter(|size| !size.is_null()),
        other => Some(other),
    };
    if size.is_none_or(|size| size.as_f64().is_some_and(|size| (0.0..=SQUARE_MAX).contains(&size))) {
        return Ok(grid);
    }
    Err(D::Error::custom("must be the size of a square, from 0 to 1000000, or an object whose `size` is that"))
}

fn grid_schema() -> RefOr<Schema> {
    let size = || ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0.0)).maximum(Some(SQUARE_MAX));
    let object = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("size", size().schema_type(SchemaType::from_iter([Type::Number, Type::Null])))
        .additional_properties(Some(AdditionalProperties::FreeForm(true)));
    OneOfBuilder::new()
        .item(size())
        .item(object)
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .description(Some(
            "The size of a square, in the units of the scene's coordinates; or an object with the frontend's own \
            members, in which `size` is that. `null` means `{}`.",
        ))
        .into()
}

/// Filters of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct SceneFilter {
    active: Option<bool>,
    channel: Option<String>,
}

/// Scenes as a resource.
pub struct Scenes;

impl Resource for Scenes {
    const TABLE: &'static str = "scene";
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] = &["notes", "extensions"];
    type Entity = scene::Entity;
    type Model = scene::Model;
    type View = scene::Model;
    type Input = SceneInput;
    type Filter = SceneFilter;

    fn stamp(m: &scene::Model) -> Stamp<'_> {
        Stamp { id: m.id.0, version: m.version, label: &m.name, updated_at: m.updated_at }
    }

    fn filter(select: sea_orm::Select<scene::Entity>, filter: &SceneFilter) -> Result<sea_orm::Select<scene::Entity>> {
        use sea_orm::{QueryFilter, QueryTrait, sea_query::ExprTrait};
        Ok(select
            .apply_if(filter.active, |s, v| s.filter(col("active").eq(v)))
            .apply_if(filter.channel.clone(), |s, v| s.filter(col("channel").eq(v))))
    }

    async fn columns(_: &Place<'_>, input: SceneInput) -> Result<Map<String, Value>> {
        resource::plain_columns(&input)
    }
}
