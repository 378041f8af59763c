//! Decides who may read which parts of a turn: the action, the answer, the calls, and why it failed.
//!
//! All code that shows a turn (one, a list, a stream, an answer, the editor) asks [`Words::of`] and filters its output with
//! [`Words::narrow`] or [`Words::narrow_event`]; nothing else decides this. A game master reads everything. Everybody who reads the
//! campaign may read what a session's AI said at the table. Only the game master may read what it said as an assistant, its prompts
//! and its calls. A tool that looks something up returns secrets of its caller, so its results are only for the game master. So are an
//! NPC's calls of the rules, which tell the NPC's numbers.
//!
//! To add a member with text to a turn's view, add a line in `narrow`. Unknown tools' results are withheld.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::kind::TurnKind;
use crate::tools;
use base::error::{Code, Error, Result};
use edge::caller::{Caller, Scope};

/// In place of an error's message.
const WHY: &str = "Only the game master may read why it failed.";

/// The facts about a turn on which the decision depends.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// None for a kind that this server does not know.
    pub kind: Option<TurnKind>,
    /// The role of a session's AI: `gm`, `assistant`, or `player:` with the character's id.
    pub told_as: Option<&'a str>,
    pub status: &'a str,
    pub is_undone: bool,
    pub player: Option<Uuid>,
    /// Whether it is a reaction whose reply was not delivered to its player.
    pub is_unheard: bool,
}

/// The parts of a turn that somebody may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// Everything, including instruction, trace and prompt.
    pub all: bool,
    narrative: bool,
    /// The calls, and the results of calls that look nothing up.
    calls: bool,
    /// The arguments and results of calls of the rules. Of an NPC they tell its numbers.
    rules: bool,
    /// The error message.
    reason: bool,
    /// The sizes and hashes of the prompt's sections.
    sections: bool,
    /// A planner's answers to the player alone.
    asides: bool,
}

impl Words {
    const NONE: Self = Self {
        all: false,
        narrative: false,
        calls: false,
        rules: false,
        reason: false,
        sections: false,
        asides: false,
    };

    /// What this caller may read of this turn.
    #[must_use]
    pub fn of(caller: &Caller, turn: &About<'_>) -> Self {
        if caller.sees_secrets() {
            return Self {
                all: true,
                narrative: true,
                calls: true,
                rules: true,
                reason: true,
                sections: true,
                asides: true,
            };
        }
        match turn.kind {
            None => Self::NONE,
            Some(TurnKind::Gm) => Self { narrative: is_at_the_table(turn) && !caller.is_player(), ..Self::NONE },
            Some(TurnKind::Npc | TurnKind::Owner | TurnKind::Rules | TurnKind::Planner) => {
                let theirs = caller.player.is_some() && caller.player == turn.player;
                let plays = caller.player.is_none() && caller.scopes.has(Scope::Play);
                if caller.is_player() && (!theirs || turn.is_unheard) {
                    return Self::NONE;
                }
                Self {
                    all: false,
                    narrative: true,
                    calls: true,
                    rules: decides_as_player(turn.kind),
                    reason: true,
                    sections: !theirs,
                    asides: theirs || plays,
                }
            }
        }
    }

    /// What this caller may read of an answer to their own request. An answer without a turn has no such parts.
    #[must_use]
    pub fn of_answer(caller: &Caller, view: &Value) -> Self {
        let text = |name: &str| view.get(name).and_then(Value::as_str);
        let told_as = match text("role") {
            Some("player") => Some("player:"),
            role => role,
        };
        let about = About {
            kind: TurnKind::named(text("kind").unwrap_or("rules")),
            told_as,
            status: text("status").unwrap_or("succeeded"),
            is_undone: false,
            player: text("player_id").and_then(|id| Uuid::try_parse(id).ok()).or(caller.player),
            is_unheard: false,
        };
        Self::of(caller, &about)
    }

    /// What a listener who may follow a turn of this kind gets while it runs.
    #[must_use]
    pub fn of_listener(caller: &Caller, kind: Option<TurnKind>) -> Self {
        let all = caller.sees_secrets();
        Self { all, narrative: true, calls: true, rules: all || decides_as_player(kind), ..Self::NONE }
    }

    /// Removes from a turn's view what they may not read.
    pub fn narrow(self, view: &mut Value) {
        let Value::Object(members) = view else { return };
        if self.all {
            return;
        }
        members.remove("trace");
        members.remove("journal");
        if !self.narrative {
            members.insert("narrative".to_owned(), json!(""));
        }
        match members.get_mut("tool_calls").and_then(Value::as_array_mut) {
            Some(calls) if self.calls => {
                for call in calls.iter_mut().filter_map(Value::as_object_mut) {
                    let tool = call.get("name").and_then(Value::as_str).map(ToOwned::to_owned);
                    withhold(call, tool.as_deref(), self.rules);
                }
            }
            Some(calls) => calls.clear(),
            None => {}
        }
        if !self.calls {
            for told in ["mechanics", "narration", "parse_error", "dice_unused"] {
                members.remove(told);
            }
        }
        if !self.sections {
            members.remove("prompt");
            members.remove("revert_conflicts");
            members.remove("revert_conflicts_total");
            members.remove("reverting");
        }
        if !self.asides && members.get("planned").is_some_and(|planned| planned["visibility"] != "public") {
            members.remove("planned");
        }
        if !self.reason
            && let Some(Value::Object(error)) = members.get_mut("error")
        {
            error.insert("message".to_owned(), json!(WHY));
        }
    }

    /// The same for an event with a call of this tool, or with its result.
    pub fn narrow_event(self, event: &mut Value, tool: Option<&str>) {
        if !self.all
            && let Value::Object(members) = event
        {
            withhold(members, tool, self.rules);
        }
    }
}

/// Whether the rules answer a turn of this kind as they answer a player.
const fn decides_as_player(kind: Option<TurnKind>) -> bool {
    matches!(kind, Some(TurnKind::Rules | TurnKind::Planner))
}

/// Removes from a call what its readers may not know: the result of a tool that looks something up or is unknown, and everything
/// about a call of the rules unless they may read `rules`.
fn withhold(call: &mut Map<String, Value>, tool: Option<&str>, rules: bool) {
    let tool = tool.and_then(tools::find);
    if tool.is_none_or(|tool| tool.reads) {
        call.remove("result");
    }
    if !rules && tool.is_some_and(|tool| tool.of_rules) {
        call.remove("result");
        if let Some(arguments) = call.get_mut("arguments") {
            *arguments = Value::Null;
        }
        if let Some(Value::Object(error)) = call.get_mut("error") {
            error.insert("message".to_owned(), json!(WHY));
        }
    }
}

/// Whether the answer of a session's AI is among the messages that everyone reads.
fn is_at_the_table(turn: &About<'_>) -> bool {
    let openly = turn.told_as.is_some_and(|told_as| told_as == "gm" || told_as.starts_with("player:"));
    openly && matches!(turn.status, "succeeded" | "limit_reached") && !turn.is_undone
}

/// Checks that the caller may follow, and so may stop, a turn of this kind while it runs.
///
/// # Errors
/// `forbidden`.
pub fn may_hear(caller: &Caller, kind: &str) -> Result<()> {
    if kind != TurnKind::Gm.as_str() || caller.sees_secrets() {
        return Ok(());
    }
    Err(Error::new(
        Code::Forbidden,
        "A session's turn contains secrets. Following or stopping it needs the scope `gm`.",
    ))
}
