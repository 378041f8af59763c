//! `check`: an ability or skill check against a difficulty.

use entity::message::Type;
use rules::srd::Advantage;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::spec::{AtOnce, CommandCx, CommandOutcome, CommandSpec, call};
use crate::turns::rules::told::Told;
use base::error::{Error, Result};
use world::{
    encounters::stand::Stand,
    rules::{
        answers::ResolvedOutcome,
        values::{AbilityName, SkillName, Within, or_default},
    },
};

pub(super) struct Check;

/// What is tried.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// An ability: alone, or with a skill in place of the skill's own.
    #[serde(default)]
    ability: Option<AbilityName>,
    /// A skill.
    #[serde(default)]
    skill: Option<SkillName>,
    /// Difficulty: 5 very easy, 10 easy, 15 medium, 20 hard, 25 very hard, 30 nearly impossible; 15 if nothing is said of it.
    dc: Within<1, 40>,
    /// Whether the player said to have advantage or disadvantage.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "String", extend("enum" = ["none", "advantage", "disadvantage"]))]
    advantage: Advantage,
}

impl CommandSpec for Check {
    const NAME: &'static str = "check";
    const DESCRIPTION: &'static str =
        "Make a check of a skill or an ability that the player asks for by name, against a difficulty class.";
    const DECIDES: bool = true;
    const HINT: &'static str =
        "Name an ability or a skill and a difficulty class from 1 to 40, such as: stealth, DC 15.";
    type Arguments = Arguments;
    type Answer = ResolvedOutcome;

    fn check(arguments: &Arguments) -> Result<()> {
        if arguments.ability.is_none() && arguments.skill.is_none() {
            return Err(Error::invalid("/ability", "required", "Name an ability or a skill."));
        }
        Ok(())
    }
}

impl AtOnce for Check {
    async fn run(cx: &CommandCx<'_>, arguments: Arguments) -> Result<CommandOutcome<ResolvedOutcome>> {
        let Arguments { ability, skill, dc, advantage } = arguments;
        // Of a planned check, a model may have chosen the difficulty.
        let is_told = cx.said.is_none_or(|(_, words)| has_number(words, dc.0));
        checked(cx, skill, ability, Difficulty { dc: dc.0, is_told }, advantage).await
    }
}

/// Whether a text has a number.
fn has_number(text: &str, number: i32) -> bool {
    text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.parse() == Ok(number))
}

/// The difficulty of a check.
pub(super) struct Difficulty {
    pub dc: i32,
    /// Whether somebody said it, so that it is no secret in a fight.
    pub is_told: bool,
}

/// Makes a check with the tool for it, and writes the message for the table. If the character is in a fight, the check happens
/// there: in the character's turn, and it takes the action.
pub(super) async fn checked(
    cx: &CommandCx<'_>,
    skill: Option<SkillName>,
    ability: Option<AbilityName>,
    Difficulty { dc, is_told }: Difficulty,
    advantage: Advantage,
) -> Result<CommandOutcome<ResolvedOutcome>> {
    let mut arguments = Map::from_iter([("dc".to_owned(), json!(dc)), ("advantage".to_owned(), json!(advantage))]);
    if let Some(ability) = ability {
        arguments.insert("ability".to_owned(), json!(ability.0.name()));
    }
    let tool = match skill {
        Some(skill) => {
            arguments.insert("skill".to_owned(), json!(skill.0.name));
            "resolve_skill_check"
        }
        None => "resolve_ability_check",
    };
    let stand = Stand::of(cx.tx().await?, cx.campaign, cx.player).await?;
    if let Some(stand) = &stand {
        arguments.insert("encounter_id".to_owned(), json!(stand.fight.id));
    }
    let mut decided = cx.resolve(stand.as_ref(), tool, Value::Object(arguments.clone())).await?;
    if stand.is_some() && !is_told {
        arguments.remove("dc");
    }
    if let (true, Some(outcome)) = (is_told, &mut decided.outcome) {
        outcome.tell_difficulty(dc);
    }
    let told = Told::of(&decided, cx.name);
    let call = call(tool, Value::Object(arguments), serde_json::to_value(&decided).map_err(Error::internal)?);
    let message = told.sentence.clone();
    Ok(CommandOutcome {
        messages: vec![told.message(|kind, content| cx.tell(kind, content))],
        call: Some(call),
        ..CommandOutcome::public(cx, Type::Roll, decided, message)
    })
}
