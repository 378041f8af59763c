//! `check`: an ability or skill check against a difficulty.

use entity::message::Type;
use rules::srd::Advantage;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::spec::{AtOnce, CommandCx, CommandOutcome, CommandSpec, call};
use base::error::{Error, Result};
use world::{
    encounters::stand::Stand,
    messages::service::{self as messages, NewMessage, RollFacts},
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
    async fn run(cx: &CommandCx<'_>, arguments: Arguments) -> Result<CommandOutcome> {
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
) -> Result<CommandOutcome> {
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
    let mut arguments = Value::Object(arguments);
    let result = match &stand {
        Some(stand) => {
            let mut result = cx.tool_in(stand, tool, arguments.clone()).await?;
            if is_told && result.get("die_result").is_some() {
                result["dc_or_ac"] = json!(dc.to_string());
            }
            result
        }
        None => cx.tool(tool, arguments.clone()).await?,
    };
    if let (Some(_), false, Some(members)) = (&stand, is_told, arguments.as_object_mut()) {
        members.remove("dc");
    }
    let (message, told) = sentence_and_message(&result, cx.name, |kind, content| cx.tell(kind, content));
    let done = CommandOutcome::public(cx, Type::Roll, result, message);
    Ok(CommandOutcome { messages: vec![told], call: Some(call(tool, arguments, &done.result)), ..done })
}

/// The result as a sentence and as a message for the table, which is a roll if dice were rolled.
pub(super) fn sentence_and_message(
    outcome: &Value,
    name: &str,
    message: impl FnOnce(Type, String) -> NewMessage,
) -> (String, NewMessage) {
    let word = |member: &str| outcome.get(member).and_then(Value::as_str).unwrap_or_default();
    let rolled = outcome["die_result"].as_u64().is_some_and(|die| die > 0);
    let (total, flavor) = (outcome["total"].as_i64().unwrap_or_default(), word("check_type"));
    if !rolled {
        let sentence = format!("{name}: {}", if word("notes").is_empty() { word("outcome") } else { word("notes") });
        let told = message(Type::System, sentence.clone());
        return (sentence, told);
    }
    let against = match word("dc_or_ac") {
        "" => String::new(),
        difficulty => format!(" against {difficulty}"),
    };
    let sentence = format!("{name}: {flavor} {total}{against}: {}", word("outcome"));
    let facts = [RollFacts {
        formula: format!("1d20{}", word("total_modifier")),
        total: total.into(),
        flavor: flavor.to_owned(),
        dice: outcome.get("dice").cloned().unwrap_or(Value::Null),
    }];
    let told = NewMessage {
        roll: Some(messages::roll_value(&facts)),
        flavor: Some(flavor.to_owned()),
        ..message(Type::Roll, sentence.clone())
    };
    (sentence, told)
}
