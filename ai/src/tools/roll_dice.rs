//! `roll_dice`: rolls the campaign's fair dice. Anyone may call it.

use entity::{character, message::Type, npc, session};
use rules::{
    dice::{Formula, Meaning, Names},
    sheet::Creature,
};
use schemars::JsonSchema;
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    earlier::{Earlier, TableFirst},
    spec::{ANYONE, ActorKind, Asking, ToolCx, ToolSpec},
};
use crate::frontends::question::{Asked, Heard, Question};
use base::{
    clock,
    error::{Code, Error, Result},
    metrics,
};
use edge::http::resource::col;
use world::{
    dice::{
        reported,
        rolls::{self, RollInput, RollReport, Rolled},
        service::{Draw, Wish},
        sheet,
    },
    messages::service::{self as messages, NewMessage, RollFacts},
    playing::Playing,
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
    type Answer = RollReport;

    /// Asks the frontend if it rolls for the session, for the valid rolls. If a roll uses values of a sheet, the server rolls
    /// instead.
    fn asks(asking: &Asking<'_>, arguments: &Arguments) -> Option<Question> {
        let rolls = &arguments.rolls;
        let frontends = asking.session.dice == session::Dice::Frontend && !asking.has_dice;
        if !frontends || rolls::check(rolls).is_err() || rolls.iter().any(asks_for_values) {
            return None;
        }
        let rolls: Vec<_> = rollable(rolls).map(|r| json!({ "formula": r.formula, "flavor": r.flavor })).collect();
        (!rolls.is_empty()).then(|| Question { asked: Asked::ExecuteRoll, data: json!({ "rolls": rolls }) })
    }

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let rolls = arguments.rolls;
        rolls::check(&rolls)?;
        match cx.heard {
            Some(Heard::Told(told)) => {
                let report = reported(told, &rolls)?;
                return finish(cx, report).await;
            }
            Some(Heard::Failed(error)) => return Err(Error::new(error.code, error.detail.clone())),
            Some(Heard::Nobody { .. } | Heard::Idle) | None => {}
        }
        let own = if rolls.iter().any(asks_for_values) { sheet_of(cx).await? } else { None };
        let value = |name: &str| own.as_ref().and_then(|own| sheet::value(own, name)).map(Meaning::Number);
        let report = match cx.hand.filter(|hand| !hand.left().is_empty()) {
            Some(hand) => {
                let left = hand.left();
                let wish = Wish { given: Some(left), ..Wish::default() };
                let mut draw = Draw::of_rolls(cx.work.dice(), Some(cx.campaign), &wish, rolls::number(&rolls)).await?;
                let report = rolls::some(&mut draw, &rolls, &value).await?;
                hand.take(left.len() - draw.unused().len());
                report
            }
            None => match cx.earlier {
                Some(earlier) => again(cx, earlier, &rolls, &value).await?,
                None => rolls::roll(cx.work.dice(), Some(cx.campaign), &cx.wish(), &rolls, &value).await?,
            },
        };
        finish(cx, report).await
    }
}

/// Rolls as the tool does when something else than a model or a frontend calls it.
///
/// # Errors
/// Those of the tool.
pub(crate) async fn roll_dice(cx: &ToolCx<'_>, rolls: Vec<RollInput>) -> Result<RollReport> {
    RollDice::run(cx, Arguments { rolls }).await
}

/// Rolls one after the other: with the dice that lie on the table, as long as there are some, and then with new ones. A roll with new dice
/// alone can be verified.
async fn again(cx: &ToolCx<'_>, earlier: &Earlier, rolls: &[RollInput], value: &Names<'_>) -> Result<RollReport> {
    let mut results = Vec::with_capacity(rolls.len());
    let (mut source, mut first) = ("manual", None);
    for roll in rolls {
        let timestamp = Some(clock::now());
        let mut table = earlier.of_formula(&roll.formula);
        let rolled = match rolls::one(&mut table, roll, value) {
            Err(error) if error.code == Code::InvalidDice => {
                let draw = Draw::of_rolls(cx.work.dice(), Some(cx.campaign), &cx.wish(), 1).await?;
                let fair = draw.fair;
                let mut dice = TableFirst { table: earlier.of_formula(&roll.formula), rest: draw };
                let rolled = rolls::one(&mut dice, roll, value)?;
                table = dice.table;
                if table.used() == 0 {
                    (source, first) = ("server", first.or(fair));
                    rolled.of(fair)
                } else {
                    rolled
                }
            }
            rolled => rolled?,
        };
        // A roll that fails shows no die.
        if rolled.success {
            earlier.take(table);
        }
        results.push(Rolled { timestamp, ..rolled });
    }
    let (seed_id, counter) = (first.map(|fair| fair.seed_id), first.map(|fair| fair.counter));
    Ok(RollReport { count: results.len(), source, results, seed_id, counter })
}

fn asks_for_values(roll: &RollInput) -> bool {
    Formula::parse(&roll.formula).is_ok_and(|f| f.variables().next().is_some())
}

/// The rolls that the frontend is asked for.
fn rollable(rolls: &[RollInput]) -> impl Iterator<Item = &RollInput> {
    rolls.iter().filter(|roll| Formula::parse(&roll.formula).is_ok())
}

/// The frontend's rolls, together with the errors of those that nobody can roll.
fn reported(told: &Value, rolls: &[RollInput]) -> Result<RollReport> {
    let asked: Vec<_> = rollable(rolls).collect();
    let rolled = reported::read(told, &asked).map_err(|why| {
        metrics::BRIDGE_REQUESTS.with_label_values(&[Asked::ExecuteRoll.as_str(), "invalid"]).inc();
        Error::new(Code::FrontendFailed, format!("The frontend's dice do not fit: {why}."))
    })?;
    metrics::DICE_ROLLS.with_label_values(&["frontend"]).inc_by(asked.len() as u64);
    let mut rolled = rolled.into_iter();
    let mut results = Vec::with_capacity(rolls.len());
    for roll in rolls {
        results.push(match Formula::parse(&roll.formula) {
            Ok(_) => rolled.next().unwrap_or_default(),
            Err(error) => Rolled {
                formula: roll.formula.clone(),
                flavor: roll.flavor.clone(),
                error: Some(error.into()),
                ..Rolled::default()
            },
        });
    }
    Ok(RollReport { count: results.len(), source: "frontend", results, seed_id: None, counter: None })
}

async fn finish(cx: &ToolCx<'_>, report: RollReport) -> Result<RollReport> {
    if let Some(session) = cx.session.filter(|_| !cx.preview) {
        say(cx, session, &report).await?;
    }
    Ok(report)
}

/// Rolls of a session appear at its table as one message, for everyone or only for the game master whom the AI assists.
async fn say(cx: &ToolCx<'_>, session: &Playing, report: &RollReport) -> Result<()> {
    let rolled = report.results.iter().filter_map(|r| {
        Some(RollFacts {
            formula: r.formula.clone(),
            total: r.total.clone()?,
            flavor: r.flavor.clone().unwrap_or_default(),
            dice: serde_json::to_value(&r.dice).ok()?,
            outcome: None,
        })
    });
    let rolled: Vec<_> = rolled.collect();
    if rolled.is_empty() {
        return Ok(());
    }
    let mut message = NewMessage {
        kind: Type::Roll,
        roll: Some(messages::roll_value(&rolled)),
        ..NewMessage::of_session(session, cx.turn, session.speaker(), messages::roll_text(&rolled))
    };
    message.extensions.insert("dice".to_owned(), json!(report.source));
    cx.work.say(vec![message]).await
}

/// The caller's sheet. Owners and the game master have none.
async fn sheet_of(cx: &ToolCx<'_>) -> Result<Option<Creature>> {
    let own =
        col("tenant_id").eq(cx.work.tenant()).and(col("campaign_id").eq(cx.campaign)).and(col("id").eq(cx.entity));
    Ok(match cx.kind {
        ActorKind::Character => {
            character::Entity::find().filter(own).one(cx.tx().await?).await?.as_ref().map(sheet::of_character)
        }
        ActorKind::Npc => npc::Entity::find().filter(own).one(cx.tx().await?).await?.as_ref().map(sheet::of_npc),
        ActorKind::Owner | ActorKind::Gm => None,
    })
}
