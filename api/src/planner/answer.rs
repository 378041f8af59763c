//! What a player is told of a plan.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    Reason,
    gates::{Allowed, FailedPredicate, Refused},
};
use crate::commands::{Command, Visibility};

/// Characters of what a model says where it refuses.
const REFUSAL_CHARS_MAX: usize = 200;
/// Choices of a player whose words are unclear.
const OPTIONS_MAX: usize = 3;

/// What came of a player's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The command was given.
    Executed,
    /// The plan is unsure: nothing was done, and `options` are what may have been meant.
    NeedsClarification,
    /// Nothing was done; `reason` says why.
    Rejected,
    /// The model took too long; nothing was done.
    Timeout,
    /// The model cannot be reached; nothing was done.
    Unavailable,
    /// `dry_run`: nothing was done.
    Planned,
    /// The tenant only tries the planner out: nothing was done.
    Shadow,
}

impl Outcome {
    /// The name on the wire.
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
    /// 0 to 1, if the model said it.
    pub confidence: Option<f64>,
}

/// Something that may have been meant: to be given as `POST …/commands/{command}` with `args` as its `arguments`.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct OptionView {
    pub command: &'static str,
    #[schema(value_type = Object)]
    pub args: Value,
    /// For a button.
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
    /// None unless it passed every gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_predicates: Vec<FailedPredicate>,
    /// What the command answers; only of `executed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub result: Option<Value>,
    /// At most three; only of `needs_clarification`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<OptionView>,
    /// Whether everyone may read it.
    #[schema(inline)]
    pub visibility: Visibility,
    /// A sentence for people.
    pub message: String,
    /// Whether the plan was known from the same words within 30 seconds.
    pub cached: bool,
    pub turn_id: Uuid,
}

impl ActView {
    /// An outcome that did nothing, for whoever asked alone.
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

    /// A plan that is refused. `said` is what the model said of it, cleaned.
    #[must_use]
    pub fn rejected(
        turn: Uuid,
        refused: Refused,
        command: Option<&Command>,
        said: Option<String>,
        cached: bool,
    ) -> Self {
        let message = match refused.reason {
            Reason::Parse => "I could not make a command of that. Try to say it in other words.".to_owned(),
            Reason::Allowlist => "That is not something that can be done from here.".to_owned(),
            Reason::Predicate => refused.failed.iter().map(|f| f.message.as_ref()).collect::<Vec<_>>().join(" "),
            Reason::ArgValidation => command.map_or_else(
                || "I could not make out the details.".to_owned(),
                |command| format!("I could not make out the details. {}", command.hint),
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

    /// The word that metrics and the log count it by.
    #[must_use]
    pub fn decision(&self) -> &'static str {
        match (self.outcome, self.reason) {
            (Outcome::Rejected, Some(reason)) => reason.as_str(),
            (Outcome::Executed, Some(_)) => "fallback",
            (outcome, _) => outcome.as_str(),
        }
    }
}

/// What a model says where it refuses, as a player may read it: one line of plain text.
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

/// What a player may have meant: the unsure plan, the words as a deed, the words as a remark, a d20.
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

/// What a button says: the command in words of ours, and a short value of it.
fn label(command: &str, args: &Value) -> String {
    let text =
        |name: &str| args.get(name).and_then(Value::as_str).map(|text| text.chars().take(60).collect::<String>());
    match command {
        "roll" => format!("Roll {}", text("expr").unwrap_or_default()),
        "check" => {
            let what = text("skill").or_else(|| text("ability")).unwrap_or_default();
            format!("Check {what}, DC {}", args.get("dc").unwrap_or(&Value::Null))
        }
        "sheet.create" => format!("Make the character {}", text("name").unwrap_or_default()),
        "sheet.show" => {
            text("name").map_or_else(|| "Show my sheet".to_owned(), |name| format!("Show the sheet of {name}"))
        }
        "do" => "Do it in the world".to_owned(),
        "ooc" => "Say it to the table".to_owned(),
        "move" => format!("Go to {}", text("location").unwrap_or_default()),
        "use_skill" => format!("Use {}", text("skill").unwrap_or_default()),
        other => other.to_owned(),
    }
}
