//! The answer to a player about their text.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    Reason,
    gates::{Allowed, FailedPredicate, Refused},
};
use crate::{
    commands::Command,
    turns::{
        start::{TurnAnswer, TurnEnded},
        view::Visibility,
    },
};

/// The most characters of a model's refusal.
const REFUSAL_CHARS_MAX: usize = 200;
/// The most options for a player whose text is unclear.
const OPTIONS_MAX: usize = 3;

/// What happened to a player's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The command was carried out.
    Executed,
    /// The model was not sure. Nothing was done; `options` lists what the player may have meant.
    NeedsClarification,
    /// Nothing was done. `reason` says why.
    Rejected,
    /// The model took too long. Nothing was done.
    Timeout,
    /// The model cannot be reached, or a game master has paused it. Nothing was done.
    Unavailable,
    /// The request had `dry_run`. Nothing was done.
    Planned,
    /// The tenant only tries the planner out. Nothing was done.
    Shadow,
}

impl Outcome {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::NeedsClarification => "needs_clarification",
            Self::Rejected => "rejected",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Planned => "planned",
            Self::Shadow => "shadow",
        }
    }
}

/// A plan that passed every gate.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct PlanView {
    pub command: &'static str,
    #[schema(value_type = Object)]
    pub args: Value,
    /// 0 to 1, if the model gave one.
    pub confidence: Option<f64>,
}

/// Something that the player may have meant. To choose it, send `args` as the `arguments` of `POST …/commands/{command}`.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct OptionView {
    pub command: &'static str,
    #[schema(value_type = Object)]
    pub args: Value,
    /// The text for a button.
    pub label: String,
}

/// The answer of `POST …/act`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActView {
    #[schema(inline)]
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub reason: Option<Reason>,
    /// Missing unless the plan passed every gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_predicates: Vec<FailedPredicate>,
    /// The command's result. Only `executed` has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub result: Option<Value>,
    /// At most three. Only `needs_clarification` has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<OptionView>,
    /// Whether everyone may read it.
    #[schema(inline)]
    pub visibility: Visibility,
    /// A sentence for people.
    pub message: String,
    /// Whether the same text was planned within the last 30 seconds and its plan was used again.
    pub cached: bool,
    pub turn_id: Uuid,
}

impl TurnAnswer for ActView {
    fn ended(&self) -> Option<TurnEnded> {
        Some(TurnEnded::succeeded(self.turn_id))
    }
}

impl ActView {
    /// An outcome that changed nothing, visible only to the caller.
    #[must_use]
    pub fn quiet(turn: Uuid, outcome: Outcome, message: impl Into<String>, cached: bool) -> Self {
        Self {
            outcome,
            reason: None,
            plan: None,
            failed_predicates: Vec::new(),
            result: None,
            options: Vec::new(),
            visibility: Visibility::Ephemeral,
            message: message.into(),
            cached,
            turn_id: turn,
        }
    }

    /// A rejected plan. `said` is the model's own refusal, cleaned.
    #[must_use]
    pub fn rejected(
        turn: Uuid,
        refused: Refused,
        command: Option<&Command>,
        said: Option<String>,
        cached: bool,
    ) -> Self {
        let message = match refused.reason {
            Reason::Parse => "I could not turn that into a command. Try saying it differently.".to_owned(),
            Reason::Allowlist => "You cannot do that from here.".to_owned(),
            Reason::Predicate => refused.failed.iter().map(|f| f.message.as_ref()).collect::<Vec<_>>().join(" "),
            Reason::ArgValidation => command.map_or_else(
                || "I did not understand the details.".to_owned(),
                |command| format!("I did not understand the details. {}", command.hint),
            ),
            Reason::Unsupported => said.unwrap_or_else(|| "There is no command for that.".to_owned()),
            Reason::Timeout => "That took too long. Nothing was done.".to_owned(),
        };
        Self {
            reason: Some(refused.reason),
            failed_predicates: refused.failed,
            ..Self::quiet(turn, Outcome::Rejected, message, cached)
        }
    }

    /// The label for metrics and the log.
    #[must_use]
    pub fn decision(&self) -> &'static str {
        match (self.outcome, self.reason) {
            (Outcome::Rejected, Some(reason)) => reason.as_str(),
            (Outcome::Executed, Some(_)) => "fallback",
            (outcome, _) => outcome.as_str(),
        }
    }
}

/// A model's refusal as a player may read it: one line of plain text.
#[must_use]
pub fn refusal(args: &serde_json::Map<String, Value>) -> Option<String> {
    let text = args.get("message").and_then(Value::as_str)?;
    let is_plain = |c: &char| {
        !c.is_control() && !matches!(*c as u32, 0x200B..=0x200F | 0x202A..=0x202E | 0x2066..=0x2069 | 0xFEFF)
    };
    let spaced = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    let plain: String = spaced.filter(is_plain).take(4 * REFUSAL_CHARS_MAX).collect();
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = line.chars().take(REFUSAL_CHARS_MAX).collect();
    if cut.len() < line.len() {
        cut = cut.chars().take(REFUSAL_CHARS_MAX - 1).collect::<String>() + "…";
    }
    Some(cut).filter(|text| !text.is_empty())
}

/// What a player may have meant: the uncertain plan, doing it in the world, saying it out of character, or rolling a d20.
#[must_use]
pub fn options(allowed: Allowed, plan: &PlanView, text: &str) -> Vec<OptionView> {
    let words = || serde_json::json!({ "message": text });
    let mut options =
        vec![OptionView { command: plan.command, args: plan.args.clone(), label: label(plan.command, &plan.args) }];
    for (name, args) in [("do", words()), ("ooc", words()), ("roll", serde_json::json!({ "expr": "1d20" }))] {
        if let Some(command) = allowed.command(name).filter(|command| command.name != plan.command) {
            let label = label(command.name, &args);
            options.push(OptionView { command: command.name, args, label });
        }
    }
    options.truncate(OPTIONS_MAX);
    options
}

/// A button's label: the command in our own words, with a short value.
fn label(command: &str, args: &Value) -> String {
    let text =
        |name: &str| args.get(name).and_then(Value::as_str).map(|text| text.chars().take(60).collect::<String>());
    match command {
        "roll" => format!("Roll {}", text("expr").unwrap_or_default()),
        "check" => {
            let what = text("skill").or_else(|| text("ability")).unwrap_or_default();
            format!("Check {what}, DC {}", args.get("dc").unwrap_or(&Value::Null))
        }
        "sheet.create" => format!("Create the character {}", text("name").unwrap_or_default()),
        "sheet.show" => {
            text("name").map_or_else(|| "Show my sheet".to_owned(), |name| format!("Show the sheet of {name}"))
        }
        "do" => "Do it in the world".to_owned(),
        "ooc" => "Say it to the table".to_owned(),
        "move" => format!("Go to {}", text("location").unwrap_or_default()),
        "use_skill" => format!("Use {}", text("skill").unwrap_or_default()),
        "rest" => format!("Take a {} rest", text("type").unwrap_or_default()),
        "pray" => "Pray".to_owned(),
        other => other.to_owned(),
    }
}
