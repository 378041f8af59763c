//! `roll`: rolls the campaign's fair dice for everyone to see.

use entity::message::Type;
use rules::dice::Formula;
use schemars::JsonSchema;
use serde::Deserialize;

use super::spec::{AtOnce, CommandCx, CommandOutcome, CommandSpec};
use crate::tools;
use base::error::{Error, Result};
use world::{
    dice::rolls::{RollInput, RollReport},
    messages::service::{self as messages, RollFacts},
};

pub(super) struct Roll;

/// What to roll.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// One dice formula, such as 2d6+3, 1d20, 2d20kh or 4d6kh3, without other words.
    #[schemars(length(min = 1, max = 1000))]
    expr: String,
}

impl CommandSpec for Roll {
    const NAME: &'static str = "roll";
    const DESCRIPTION: &'static str = "Roll dice that the player names, such as 2d6+3.";
    const HINT: &'static str = "Say which dice to roll, such as 2d6+3 or 1d20.";
    type Arguments = Arguments;
    type Answer = RollReport;

    fn check(arguments: &Arguments) -> Result<()> {
        Formula::parse(&arguments.expr).map(drop).map_err(|e| unfit(&e.message))
    }
}

fn unfit(message: &str) -> Error {
    Error::invalid("/expr", "invalid_formula", message)
}

impl AtOnce for Roll {
    async fn run(cx: &CommandCx<'_>, Arguments { expr }: Arguments) -> Result<CommandOutcome<RollReport>> {
        let rolls = vec![RollInput { formula: expr.clone(), flavor: None }];
        let report = tools::roll_dice(&cx.as_character(), rolls).await?;
        let rolled = report.results.first();
        let Some((rolled, total)) = rolled.and_then(|rolled| Some((rolled, rolled.total.as_ref()?))) else {
            let why = rolled.and_then(|rolled| rolled.error.as_ref()).map(|error| error.message.as_str());
            return Err(unfit(why.unwrap_or("These dice cannot be rolled.")));
        };
        let facts = [RollFacts {
            formula: expr.clone(),
            total: total.clone(),
            flavor: String::new(),
            dice: serde_json::to_value(&rolled.dice).map_err(Error::internal)?,
            outcome: None,
        }];
        let mut told = cx.tell(Type::Roll, messages::roll_text(&facts));
        told.roll = Some(messages::roll_value(&facts));
        let message = format!("{} rolls {expr}: {total}", cx.name);
        Ok(CommandOutcome { messages: vec![told], ..CommandOutcome::public(cx, Type::Roll, report, message) })
    }
}
