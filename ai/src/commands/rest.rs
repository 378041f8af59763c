//! `rest`: the character takes a short or a long rest. Nobody rests during a fight.

use entity::message::Type;
use rules::resolve::RestType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::spec::{AtOnce, CommandCx, CommandOutcome, CommandSpec, call};
use crate::turns::rules::told::Told;
use base::error::{Error, Result};
use world::rules::{answers::ResolvedOutcome, values::Within};

const TOOL: &str = "take_rest";

pub(super) struct Rest;

/// How long, and what it is used for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A short rest takes an hour, a long one eight.
    #[serde(rename = "type")]
    #[schemars(with = "String", extend("enum" = ["short", "long"]))]
    rest: RestType,
    /// Hit dice to spend in a short rest; none unless the player says how many.
    #[serde(default)]
    hit_dice: Option<Within<0, 100>>,
}

impl CommandSpec for Rest {
    const NAME: &'static str = "rest";
    const DESCRIPTION: &'static str = "Take a short rest of an hour, or a long one of eight, such as to sleep.";
    const PLANNED: bool = false;
    const DECIDES: bool = true;
    const HINT: &'static str = "Say how long: a short or a long rest.";
    type Arguments = Arguments;
    type Answer = ResolvedOutcome;
}

impl AtOnce for Rest {
    async fn run(
        cx: &CommandCx<'_>,
        Arguments { rest, hit_dice }: Arguments,
    ) -> Result<CommandOutcome<ResolvedOutcome>> {
        cx.outside_fights("rest", "").await?;
        let mut arguments = Map::from_iter([("type".to_owned(), json!(rest))]);
        if let Some(hit_dice) = hit_dice {
            arguments.insert("hit_dice".to_owned(), json!(hit_dice.0));
        }
        let arguments = Value::Object(arguments);
        let decided = cx.resolve(None, TOOL, arguments.clone()).await?;
        let message = match &decided.outcome {
            // It names who rests.
            Some(outcome) if outcome.why_impossible().is_none() => outcome.notes().to_owned(),
            _ => Told::of(&decided, cx.name).sentence,
        };
        let call = call(TOOL, arguments, serde_json::to_value(&decided).map_err(Error::internal)?);
        Ok(CommandOutcome { call: Some(call), ..CommandOutcome::public(cx, Type::System, decided, message) })
    }
}
