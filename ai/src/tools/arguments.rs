//! Tool arguments: their schema, how they are parsed, and those that several tools share.

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{plain::plain, spec::ToolCx};
use base::{
    error::{Error, FieldError, Result},
    json, text,
};
use edge::http::{
    misfit::{self, ERRORS_MAX},
    read,
};
use world::memory::{
    self,
    service::{GameTime, NewMemory},
    subject,
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
    /// The memory to write: about the player that the call may remember something about, at the campaign's present game time.
    pub(super) async fn checked<'a>(
        &'a self,
        cx: &ToolCx<'_>,
        holder_type: &'static str,
        source: &'static str,
    ) -> Result<NewMemory<'a>> {
        let text = memory::service::text(&self.memory_string, "/memory_string")?;
        let player = match subject::of_turn(cx.player, &self.player_id) {
            Some(player) => player,
            None => subject::named(cx.tx().await?, cx.campaign, cx.bound(), &self.player_id).await?,
        };
        Ok(NewMemory {
            campaign: cx.campaign,
            holder_type,
            holder: cx.entity,
            player,
            text,
            game_time: GameTime::Now,
            is_pinned: false,
            source,
            author: cx.key,
            turn: cx.turn,
        })
    }
}

/// A text of an argument without the spaces around it.
///
/// # Errors
/// `validation_failed` at `pointer` if nothing is left, or it is too long.
pub(super) fn text<'a>(given: &'a str, pointer: &str, chars_max: usize) -> Result<&'a str> {
    let text = given.trim();
    if text.is_empty() {
        return Err(Error::invalid(pointer, "invalid_value", "must not be blank"));
    }
    if text.chars().count() > chars_max {
        return Err(Error::invalid(pointer, "too_long", format!("must have at most {chars_max} characters")));
    }
    Ok(text)
}

/// How many of something a call wants, at most `max`; `usual` if it does not say.
///
/// # Errors
/// `validation_failed` at `/limit`.
pub(super) fn limit(given: Option<i64>, usual: i64, max: i64) -> Result<i64> {
    let limit = given.unwrap_or(usual);
    if (1..=max).contains(&limit) {
        return Ok(limit);
    }
    Err(Error::invalid("/limit", "invalid_value", format!("must be from 1 to {max}")))
}

/// One line of at most 200 characters.
///
/// # Errors
/// `validation_failed` at `pointer`.
pub(super) fn line<'a>(given: &'a str, pointer: &str) -> Result<&'a str> {
    line_of(given, pointer, 200)
}

/// One line.
///
/// # Errors
/// `validation_failed` at `pointer`.
pub(super) fn line_of<'a>(given: &'a str, pointer: &str, chars_max: usize) -> Result<&'a str> {
    let line = text(given, pointer, chars_max)?;
    if line.contains(text::ends_line) {
        return Err(Error::invalid(pointer, "invalid_text", "must be one line"));
    }
    Ok(line)
}

/// The schema of `T` in the form that all endpoints take: see [`plain`].
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    if let Value::Object(members) = &mut schema {
        members.remove("description");
        // Some endpoints require this even if there are no arguments.
        members.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// Parses arguments that have not been checked.
///
/// # Errors
/// `validation_failed` with a pointer to each argument that does not fit its type, and to the first missing argument.
pub(crate) fn read<T: DeserializeOwned>(mut given: Value) -> Result<T> {
    json::sound(&mut given, &mut String::new())?;
    let Value::Object(members) = &given else {
        return Err(Error::invalid("", "invalid_value", "Arguments must be an object."));
    };
    read::typed(given.clone()).map_err(|mut first| {
        let mut errors: Vec<FieldError> = members.iter().filter_map(|(name, value)| alone::<T>(name, value)).collect();
        errors.truncate(ERRORS_MAX);
        Error::validation(misfit::together(std::mem::take(&mut first.errors), errors))
    })
}

/// The error in one argument. The argument is parsed alone, because parsing stops at the first error.
fn alone<T: DeserializeOwned>(name: &str, value: &Value) -> Option<FieldError> {
    let error = read::typed::<T>(json!({ name: value })).err()?.errors.first()?.clone();
    let own = format!("/{}", json::escape(name));
    let is_own = error.pointer.strip_prefix(&own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_own.then_some(error)
}
