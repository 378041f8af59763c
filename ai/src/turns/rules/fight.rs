//! Turns a model's proposal into a call for the encounter engine, while the character is in a fight.
//!
//! A proposal becomes a call of the same tools that frontends use, in this fight and as this character, so the engine decides about
//! initiative order, action economy, range and damage. The model chooses the action and its target. If the player's words may mean
//! several targets, nobody chooses. The answer has only what a player may see, whoever asked, because it is kept in the turn's
//! record. The tools leave out the rest.

use entity::message::Author;
use rules::encounter::Participant;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::told::Told;
use crate::tools::{self, Tool, arguments, encounters, spec::ToolCx};
use base::error::{Error, Result};
use world::{
    dice::service::DiceOrigin,
    encounters::{answers::ActionTold, stand::Stand},
    messages::service::NewMessage,
    rules::{
        answers::{OutcomeShown, ResolvedOutcome},
        values::{UpTo, Within, Words},
    },
};

/// The tool for actions in a fight.
pub(super) const TOOL: &str = "encounter_action";
/// The tool for attacks.
pub(super) const ATTACK: &str = "resolve_attack";

/// What is done with a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    EndTurn,
    Dash,
    Disengage,
    Dodge,
    Help,
    Hide,
    Ready,
    Search,
    UseObject,
    Improvise,
    Grapple,
    Shove,
    Escape,
    StandUp,
    Move,
    DeathSave,
    CastSpell,
    EndConcentration,
}

impl Kind {
    /// The encounter engine's name for the action.
    const fn name(self) -> &'static str {
        match self {
            Self::EndTurn => "advance_turn",
            Self::Dash => "dash",
            Self::Disengage => "disengage",
            Self::Dodge => "dodge",
            Self::Help => "help",
            Self::Hide => "hide",
            Self::Ready => "ready",
            Self::Search => "search",
            Self::UseObject => "use_object",
            Self::Improvise => "improvise",
            Self::Grapple => "grapple",
            Self::Shove => "shove",
            Self::Escape => "escape",
            Self::StandUp => "stand_up",
            Self::Move => "move",
            Self::DeathSave => "death_save",
            Self::CastSpell => "cast_spell",
            Self::EndConcentration => "end_concentration",
        }
    }
}

/// What is done in a fight beside attacks and checks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Deed {
    /// What is done; `end_turn` when the turn is over.
    action: Kind,
    /// Whom it is done to, or whom a move approaches: the first word of a line of the creatures.
    #[serde(default, deserialize_with = "world::rules::values::unless_blank")]
    target: Option<Words<100>>,
    /// Instead, the several targets of a spell.
    #[serde(default, deserialize_with = "world::rules::values::or_default")]
    targets: UpTo<Words<100>, 0, 50>,
    /// The spell of `cast_spell`.
    #[serde(default, deserialize_with = "world::rules::values::unless_blank")]
    spell_name: Option<Words<200>>,
    /// Level of the slot to cast with.
    #[serde(default)]
    slot_level: Option<Within<1, 9>>,
    /// Where to move, as a square of the grid; not needed with `target`.
    #[serde(default)]
    position: Option<Square>,
    /// How far to move, in feet, where there is no grid.
    #[serde(default)]
    feet: Option<Within<1, 1000>>,
    /// Whether a shove pushes away instead of over, or a move leads away from `target`.
    #[serde(default, deserialize_with = "world::rules::values::or_default")]
    away: bool,
}

/// A square of the grid.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Square {
    x: Within<0, 100>,
    y: Within<0, 100>,
}

/// The schema of the arguments of [`TOOL`] that the model may use.
pub(super) fn schema() -> Value {
    tools::arguments::schema::<Deed>()
}

/// What a proposal becomes.
pub(super) enum Settled {
    /// A call of the tool.
    Call(Value),
    /// The player must say whom they mean. Nothing is done.
    Unclear(String),
}

/// Turns a proposal into a call in this fight.
///
/// # Errors
/// `validation_failed` with pointers into the arguments, so that the model can try again.
pub(super) fn settle(stand: &Stand, words: &str, tool: &str, arguments: Value) -> Result<Settled> {
    let fight = stand.fight.id;
    if tool == TOOL {
        return acting(stand, words, arguments);
    }
    let mut arguments = match arguments {
        Value::Object(members) => members,
        other => return Ok(Settled::Call(other)),
    };
    if tool == ATTACK {
        for known in ["advantage", "cover"] {
            arguments.remove(known);
        }
        if let Some(Value::Object(context)) = arguments.get_mut("context") {
            context.retain(|name, _| name == "off_hand");
        }
        if let Some(Value::String(target)) = arguments.get("target") {
            match stand.meant(target, words) {
                Ok(target) => arguments.insert("target".to_owned(), json!(target.id)),
                Err(why) => return Ok(Settled::Unclear(why)),
            };
        }
    }
    if !tool.starts_with("mark_") {
        arguments.insert("encounter_id".to_owned(), json!(fight));
    }
    Ok(Settled::Call(Value::Object(arguments)))
}

fn acting(stand: &Stand, words: &str, arguments: Value) -> Result<Settled> {
    let deed: Deed = tools::arguments::read(arguments)?;
    let mut call = Map::from_iter([
        ("encounter_id".to_owned(), json!(stand.fight.id)),
        ("action".to_owned(), json!(deed.action.name())),
        ("participant_id".to_owned(), json!(stand.own())),
    ]);
    let meant = |name: &Words<100>| stand.meant(&name.0, words);
    // The actor's own concentration has no target.
    if let Some(target) = deed.target.as_ref().filter(|_| deed.action != Kind::EndConcentration) {
        match meant(target) {
            Ok(target) => call.insert("target_id".to_owned(), json!(target.id)),
            Err(why) => return Ok(Settled::Unclear(why)),
        };
    }
    if !deed.targets.0.is_empty() {
        // With several targets, each name must be clear by itself.
        let found: std::result::Result<Vec<&Participant>, String> =
            deed.targets.0.iter().map(|name| stand.meant(&name.0, "")).collect();
        match found {
            Ok(found) => {
                let ids: Vec<&str> = found.iter().map(|p| p.id.as_str()).collect();
                call.insert("target_ids".to_owned(), json!(ids))
            }
            Err(why) => return Ok(Settled::Unclear(why)),
        };
    }
    if let Some(spell) = deed.spell_name {
        call.insert("spell_name".to_owned(), json!(spell.0));
    }
    if let Some(level) = deed.slot_level {
        call.insert("slot_level".to_owned(), json!(level.0));
    }
    if let Some(Square { x, y }) = deed.position {
        call.insert("position".to_owned(), json!({ "x": x.0, "y": y.0 }));
    }
    if let Some(feet) = deed.feet {
        call.insert("amount".to_owned(), json!(feet.0));
    }
    if deed.away {
        call.insert("away".to_owned(), json!(true));
    }
    Ok(Settled::Call(Value::Object(call)))
}

/// The engine's objection to an action, for the player.
pub(super) fn engine_says(error: &Error) -> String {
    match error.errors.first() {
        Some(field) if field.pointer == "/target_id" => "Say whom it is done to.".to_owned(),
        Some(field) => format!("That cannot be done: {}.", field.message.trim_end_matches('.')),
        None => error.detail.clone(),
    }
}

/// Runs a tool as a character in its fight, and answers as a resolver does. What a check costs is paid first. An actor who cannot
/// act pays nothing and tries nothing: the outcome says why.
///
/// # Errors
/// `not_your_turn`, `no_action_left`; the tool's own errors.
pub(crate) async fn run(stand: &Stand, cx: &ToolCx<'_>, tool: &Tool, arguments: Value) -> Result<ResolvedOutcome> {
    if let Some(price) = price(stand, tool.name, &arguments) {
        let without_dice = ToolCx { dice: None, ..*cx };
        let paid = Box::pin(encounters::act(&without_dice, arguments::read(price)?)).await?;
        if let Some(why) = paid.outcomes.into_iter().next().filter(|outcome| outcome.why_impossible().is_some()) {
            return Ok(why.into());
        }
    }
    if tool.name != TOOL {
        return tool.resolve(cx, arguments).await;
    }
    let ActionTold { outcomes, preview, standing, told, dice, .. } =
        Box::pin(encounters::act(cx, arguments::read(arguments)?)).await?;
    let outcome = outcomes.into_iter().next().unwrap_or_else(|| OutcomeShown::nothing(true));
    // The outcome keeps its effects as an action's answer has them.
    Ok(ResolvedOutcome {
        preview,
        encounter_id: Some(stand.fight.id),
        round: Some(standing.round),
        told,
        dice: DiceOrigin { dice_unused: Vec::new(), ..dice },
        ..ResolvedOutcome::from(outcome)
    })
}

/// The action that a check costs: using a skill takes an action, and for some skills one with a name of its own.
fn price(stand: &Stand, tool: &str, arguments: &Value) -> Option<Value> {
    let skill = arguments["skill"].as_str().unwrap_or_default().to_lowercase();
    let action = match (tool, skill.as_str()) {
        ("resolve_skill_check", "stealth") => "hide",
        ("resolve_skill_check", "perception" | "investigation") => "search",
        ("resolve_skill_check" | "resolve_ability_check", _) => "improvise",
        _ => return None,
    };
    Some(json!({ "encounter_id": stand.fight.id, "action": action, "participant_id": stand.own() }))
}

/// A check or a save for the fight's log; `None` if its player sees no roll. Attacks and other actions write their own entries.
pub(super) fn roll_of(decided: &ResolvedOutcome, name: &str, player: Uuid, turn: Uuid) -> Option<NewMessage> {
    let told = Told::of(decided, name);
    let message = |kind, content| NewMessage {
        kind,
        player_id: Some(player),
        turn_id: Some(turn),
        ..NewMessage::chat(Author::Player, name, content)
    };
    told.roll.is_some().then(|| told.message(message))
}
