//! Rolls of several creatures: `resolve_contest`, `resolve_group_check`.

use rules::resolve::{CheckKind, ContestArgs, ContestPurpose, GroupCheckArgs, resolve_contest, resolve_group_check};
use schemars::JsonSchema;
use serde::Deserialize;

use super::common::{Harm, resolver_arguments};
use crate::tools::spec::{ANYONE, ActorKind, ToolCx, ToolSpec};
use base::error::{Error, Result};
use world::rules::values::{AbilityName, SkillName, UpTo, Within, Words};
use world::rules::{answers::ResolvedOutcome, cast::Named};

/// What somebody rolls: a skill, an ability, or a skill with another ability.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KindInput {
    /// The skill.
    #[serde(default)]
    skill: Option<SkillName>,
    /// The ability.
    #[serde(default)]
    ability: Option<AbilityName>,
}

fn kind(skill: Option<SkillName>, ability: Option<AbilityName>, pointer: &str) -> Result<CheckKind> {
    if skill.is_none() && ability.is_none() {
        return Err(Error::invalid(pointer, "required", "Name a skill or an ability."));
    }
    Ok(CheckKind { skill: skill.map(|s| s.0.name.to_owned()), ability: ability.map(|a| a.0.name().to_owned()) })
}

resolver_arguments! {
    /// A contest.
    ContestArguments {
        /// Whom the actor contends with: id, slug or name of a character or NPC.
        opponent: Words<200>,
        /// What the actor rolls; may be left out with a purpose.
        #[serde(default)]
        own: Option<KindInput>,
        /// What the opponent rolls; may be left out with a purpose.
        #[serde(default)]
        theirs: Option<KindInput>,
        /// The purpose, if winning changes something.
        #[serde(default)]
        #[schemars(with = "String", extend("enum" = ["grapple", "shove_prone", "shove_away", "escape"]))]
        purpose: Option<ContestPurpose>,
    }
}

pub(in crate::tools) struct ResolveContest;

impl ToolSpec for ResolveContest {
    const NAME: &'static str = "resolve_contest";
    const DESCRIPTION: &'static str = "Resolve a contest of two checks: the higher wins, a tie changes nothing.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = ContestArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: ContestArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        let actor = call.actor()?;
        let rolled = |input: Option<KindInput>, pointer| match input {
            None if arguments.purpose.is_some() => Ok(CheckKind::default()),
            input => input.map_or_else(|| kind(None, None, pointer), |k| kind(k.skill, k.ability, pointer)),
        };
        let args = ContestArgs {
            own: rolled(arguments.own, "/own")?,
            theirs: rolled(arguments.theirs, "/theirs")?,
            purpose: arguments.purpose,
        };
        let opponent = match call.whom(&arguments.opponent.0).await? {
            Named::One(opponent) if opponent == actor => return call.impossible("nobody contends with themselves"),
            Named::One(opponent) => opponent,
            Named::Unclear(why) => return call.impossible(&why),
        };
        let run = |cast: &world::rules::cast::Cast, dice: &mut dyn rules::dice::Dice| {
            Ok(resolve_contest(cast.creature(actor)?, cast.creature(opponent)?, &args, &call.circumstances, dice))
        };
        call.among(&[actor, opponent], Harm::Always, run).await
    }
}

resolver_arguments! {
    /// A group check.
    GroupCheckArguments {
        /// Who takes part: ids, slugs or names of characters and NPCs.
        participants: UpTo<Words<200>, 1, 50>,
        /// The skill everybody rolls.
        #[serde(default)]
        skill: Option<SkillName>,
        /// The ability everybody rolls.
        #[serde(default)]
        ability: Option<AbilityName>,
        /// Difficulty: 5 very easy, 10 easy, 15 medium, 20 hard, 25 very hard, 30 nearly impossible.
        dc: Within<0, 40>,
    }
}

pub(in crate::tools) struct ResolveGroupCheck;

impl ToolSpec for ResolveGroupCheck {
    const NAME: &'static str = "resolve_group_check";
    const DESCRIPTION: &'static str = "Resolve a group check: at least half of the group has to succeed.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = GroupCheckArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: GroupCheckArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        let args = GroupCheckArgs { kind: kind(arguments.skill, arguments.ability, "/skill")?, dc: arguments.dc.0 };
        let mut who = Vec::with_capacity(arguments.participants.0.len());
        let names: Vec<&str> = arguments.participants.0.iter().map(|name| name.0.as_str()).collect();
        for (name, found) in names.iter().zip(call.whom_all(&names).await?) {
            match found {
                Named::One(one) if !who.contains(&one) => who.push(one),
                Named::One(_) => return call.impossible(&format!("\"{name}\" takes part twice")),
                Named::Unclear(why) => return call.impossible(&why),
            }
        }
        let run = |cast: &world::rules::cast::Cast, dice: &mut dyn rules::dice::Dice| {
            let group = who.iter().map(|w| cast.creature(*w)).collect::<Result<Vec<_>>>()?;
            Ok(resolve_group_check(&group, &args, &call.circumstances, dice))
        };
        call.among(&who, Harm::Always, run).await
    }
}
