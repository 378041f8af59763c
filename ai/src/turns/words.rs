//! Decides who may read which parts of a turn: the action, the answer, the calls, and why it failed.
//!
//! All code that shows a turn (one, a list, a stream, an answer, the editor) asks [`Words::of`] and lets the result narrow what it
//! shows; nothing else decides this. A game master reads everything. Everybody who reads the
//! campaign may read what a session's AI said at the table. Only the game master may read what it said as an assistant, its prompts
//! and its calls. A tool that looks something up returns secrets of its caller, so its results are only for the game master. So are an
//! NPC's calls of the rules, which tell the NPC's numbers.
//!
//! A new member of a turn does not compile before somebody has decided in `narrow` who reads it. Unknown tools' results are withheld.

use entity::session::Role;
use serde_json::Value;
use uuid::Uuid;

use super::{
    kind::TurnKind,
    record::TurnRecord,
    view::{CallError, ToolCall, TurnView, Visibility},
};
use crate::tools::{self, Tool};
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

    /// What this caller may read of the answer to their own request.
    #[must_use]
    pub fn of_answer(caller: &Caller, turn: &TurnView) -> Self {
        let told_as = turn.role.map(|role| match role {
            Role::Player => "player:",
            Role::Gm => "gm",
            Role::Assistant => "assistant",
        });
        let about = About {
            kind: Some(turn.kind),
            told_as,
            status: turn.status.as_str(),
            is_undone: false,
            player: turn.player_id.or(caller.player),
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

    /// Removes from a turn what they may not read. Each member is named: whoever adds one decides who reads it.
    pub fn narrow(self, turn: &mut TurnView) {
        let TurnView {
            narrative,
            tool_calls,
            narration,
            planned,
            mechanics,
            parse_error,
            dice_unused,
            prompt,
            // Everybody may read these who may read the turn.
            id: _,
            kind: _,
            trigger: _,
            status: _,
            campaign_id: _,
            entity_id: _,
            player_id: _,
            model: _,
            ending: _,
            role: _,
            context: _,
            usage: _,
            timings_ms: _,
            parent_turn_id: _,
            created_at: _,
        } = turn;
        if self.all {
            return;
        }
        if !self.narrative {
            narrative.clear();
        }
        if self.calls {
            for ToolCall { id: _, name, arguments, status: _, result, error } in tool_calls {
                let tool = tools::find(name);
                self.narrow_arguments(tool, arguments);
                self.narrow_result(tool, result, error.as_mut());
            }
        } else {
            tool_calls.clear();
            (*narration, *mechanics, *parse_error, *dice_unused) = (None, None, None, None);
        }
        if !self.sections {
            *prompt = None;
        }
        if !self.asides {
            planned.take_if(|planned| planned.visibility != Visibility::Public);
        }
    }

    /// The same for a stored turn.
    pub fn narrow_record(self, record: &mut TurnRecord) {
        let TurnRecord {
            turn,
            error,
            revert_conflicts,
            revert_conflicts_total,
            reverting,
            trace,
            journal,
            // Everybody may read these who may read the turn.
            reply_mode: _,
            on_failure: _,
            finished_at: _,
            undone_at: _,
            redacted_at: _,
            parent_turn_id: _,
            alternatives: _,
            chosen: _,
            edited_at: _,
        } = record;
        self.narrow(turn);
        if self.all {
            return;
        }
        (*trace, *journal) = (None, None);
        if !self.sections {
            (*revert_conflicts, *revert_conflicts_total, *reverting) = (None, None, None);
        }
        if let Some(reverting) = reverting {
            reverting.last_error = None;
        }
        if let Some(error) = error.as_mut().filter(|_| !self.reason) {
            WHY.clone_into(&mut error.message);
        }
    }

    /// Removes the arguments of a call of the rules from a call of this tool, unless they may be read.
    pub fn narrow_arguments(self, tool: Option<&Tool>, arguments: &mut Value) {
        if !self.all && !self.rules && tool.is_some_and(|tool| tool.of_rules) {
            *arguments = Value::Null;
        }
    }

    /// Removes from the result of this tool what may not be read: all of it if the tool looks something up or is unknown, and what
    /// the rules say unless that may be read.
    pub fn narrow_result(self, tool: Option<&Tool>, result: &mut Option<Value>, error: Option<&mut CallError>) {
        if self.all {
            return;
        }
        let tells_rules = !self.rules && tool.is_some_and(|tool| tool.of_rules);
        if tells_rules || tool.is_none_or(|tool| tool.reads) {
            *result = None;
        }
        if let Some(error) = error.filter(|_| tells_rules) {
            WHY.clone_into(&mut error.message);
        }
    }
}

/// Whether the rules answer a turn of this kind as they answer a player.
const fn decides_as_player(kind: Option<TurnKind>) -> bool {
    matches!(kind, Some(TurnKind::Rules | TurnKind::Planner))
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
