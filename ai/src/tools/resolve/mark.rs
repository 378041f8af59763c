//! `mark_impossible` and `mark_no_check`: actions that the rules do not have to decide.

use rules::resolve::{impossible, no_check};

use super::common::resolver_arguments;
use crate::tools::spec::{ANYONE, ActorKind, ToolCx, ToolSpec};
use base::error::Result;
use world::rules::answers::ResolvedOutcome;
use world::rules::values::Words;

resolver_arguments! {
    /// Why nothing is rolled.
    MarkArguments {
        /// Why, in a sentence for the narrator.
        reason: Words<2000>,
    }
}

pub(in crate::tools) struct MarkImpossible;

impl ToolSpec for MarkImpossible {
    const NAME: &'static str = "mark_impossible";
    const DESCRIPTION: &'static str = "Declare the action impossible. Nothing is rolled.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = MarkArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: MarkArguments) -> Result<Self::Answer> {
        arguments.call(cx, Self::NAME).await?.answer_with(impossible(&arguments.reason.0))
    }
}

pub(in crate::tools) struct MarkNoCheck;

impl ToolSpec for MarkNoCheck {
    const NAME: &'static str = "mark_no_check";
    const DESCRIPTION: &'static str = "Declare that the action simply succeeds. Nothing is rolled.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = MarkArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: MarkArguments) -> Result<Self::Answer> {
        arguments.call(cx, Self::NAME).await?.answer_with(no_check(&arguments.reason.0))
    }
}
