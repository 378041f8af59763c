//! `roll_dice`: anyone rolls dice of the campaign's fair stream.

use entity::{character, message::Type, npc};
use rules::{dice::Formula, sheet::Creature};
use schemars::JsonSchema;
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use serde::Deserialize;
use serde_json::Value;

use super::{ANYONE, ActorKind, ToolCx, ToolSpec};
use crate::{
    dice::{
        rolls::{self, RollInput, RollReport},
        service::{Draw, Wish},
        sheet,
    },
    error::{Error, Result},
    http::resource::col,
    messages::service::{self as messages, NewMessage, RollFacts},
    sessions::service::Playing,
};

pub(super) struct RollDice;

/// What to roll.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The rolls, in order.
    #[schemars(length(min = 1, max = 20))]
    rolls: Vec<RollInput>,
}

impl ToolSpec for RollDice {
    const NAME: &'static str = "roll_dice";
    const DESCRIPTION: &'static str = "Roll one or more dice formulas in Foundry's language, such as 1d20 + 5, 2d20kh, 4d6kh3 or \
        1d20 + @abilities.dex.mod with a value of your own sheet. Results are final.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const INFORMS: bool = true;
    type Arguments = Arguments;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Value> {
        let rolls = arguments.rolls;
        rolls::check(&rolls)?;
        let asks = |roll: &RollInput| Formula::parse(&roll.formula).is_ok_and(|f| f.variables().next().is_some());
        let own = if rolls.iter().any(asks) { sheet_of(cx).await? } else { None };
        let value = |name: &str| own.as_ref().and_then(|own| sheet::value(own, name));
        let report = match cx.hand.filter(|hand| !hand.left().is_empty()) {
            Some(hand) => {
                let left = hand.left();
                let wish = Wish { given: Some(left), ..Wish::default() };
                let mut draw = Draw::of_rolls(cx.tx, Some(cx.campaign), &wish, rolls::number(&rolls)).await?;
                let report = rolls::some(&mut draw, &rolls, &value).await?;
                hand.take(left.len() - draw.unused().len());
                report
            }
            None => {
                let mut draw = cx.draw_rolls(rolls::number(&rolls)).await?;
                rolls::all(&mut draw, &rolls, &value).await?
            }
        };
        if let Some(session) = cx.session.filter(|_| !cx.preview) {
            say(cx, session, &report).await?;
        }
        serde_json::to_value(report).map_err(Error::internal)
    }
}

/// What is rolled in a session falls on its table: one message for everyone, or for the game master the AI helps.
async fn say(cx: &ToolCx<'_>, session: &Playing, report: &RollReport) -> Result<()> {
    let rolled = report.results.iter().filter_map(|r| {
        Some(RollFacts {
            formula: r.formula.clone(),
            total: r.total.clone()?,
            flavor: r.flavor.clone().unwrap_or_default(),
            dice: serde_json::to_value(&r.dice).ok()?,
        })
    });
    let rolled: Vec<_> = rolled.collect();
    if rolled.is_empty() {
        return Ok(());
    }
    let message = NewMessage {
        kind: Type::Roll,
        roll: Some(messages::roll_value(&rolled)),
        ..session.message(cx.turn, session.speaker(), messages::roll_text(&rolled))
    };
    messages::insert(cx.tx, cx.campaign, &[message]).await.map(drop)
}

/// The sheet of whoever calls; owners and the game master have none.
async fn sheet_of(cx: &ToolCx<'_>) -> Result<Option<Creature>> {
    let own = col("tenant_id").eq(cx.tx.tenant()).and(col("campaign_id").eq(cx.campaign)).and(col("id").eq(cx.entity));
    Ok(match cx.kind {
        ActorKind::Character => {
            character::Entity::find().filter(own).one(cx.tx).await?.as_ref().map(sheet::of_character)
        }
        ActorKind::Npc => npc::Entity::find().filter(own).one(cx.tx).await?.as_ref().map(sheet::of_npc),
        ActorKind::Owner | ActorKind::Gm => None,
    })
}
