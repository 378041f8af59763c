//! Tool arguments: their schema, how they are read, and those that several tools share.

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::ToolCx;
use crate::{
    error::{Error, Result},
    http::body,
    json,
    memory::{
        self,
        subject::{self, Subject},
    },
};

/// What a memory tool takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Memorize {
    /// The player the memory is about: the player attribute of the action.
    #[serde(alias = "entity_id")]
    player_id: String,
    /// What to remember, as one sentence that is clear on its own.
    #[schemars(length(min = 1, max = 2000))]
    memory_string: String,
}

impl Memorize {
    /// The player, about whom the call may remember, and the cleaned text.
    pub(super) async fn checked<'a>(&'a self, cx: &ToolCx<'_>) -> Result<(Subject, &'a str)> {
        let text = memory::service::text(&self.memory_string, "/memory_string")?;
        let player = match subject::of_turn(cx.player, &self.player_id) {
            Some(player) => player,
            None => subject::named(cx.tx().await?, cx.campaign, cx.bound(), &self.player_id).await?,
        };
        Ok((player, text))
    }
}

/// The schema of `T` as models expect it: an object without references or title.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(members) = &mut schema {
        members.remove("title");
        members.remove("description");
        // Some endpoints insist on it where there is nothing to give.
        members.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// Reads arguments that nobody has looked at yet.
pub(crate) fn read<T: DeserializeOwned>(given: Value) -> Result<T> {
    if !given.is_object() {
        return Err(Error::invalid("", "invalid_value", "Arguments are an object."));
    }
    json::sound(&given, &mut String::new())?;
    body::typed(given)
}
