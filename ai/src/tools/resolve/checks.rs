//! Checks of one creature: `resolve_skill_check`, `resolve_ability_check`, `resolve_passive`, `roll_initiative`.

use rules::encounter::ActionKind;
use rules::resolve::{
    AbilityCheckArgs, CheckKind, SkillCheckArgs, passive, resolve_ability_check, resolve_skill_check, roll_initiative,
};

use super::common::{Harm, resolver_arguments};
use crate::tools::spec::{ANYONE, ActorKind, ToolCx, ToolSpec};
use base::error::Result;
use world::rules::answers::ResolvedOutcome;
use world::rules::values::{AbilityName, SkillName, Within};

resolver_arguments! {
    /// A skill check.
    SkillCheckArguments {
        /// The skill.
        skill: SkillName,
        /// Difficulty: 5 very easy, 10 easy, 15 medium, 20 hard, 25 very hard, 30 nearly impossible.
        dc: Within<0, 40>,
        /// Another ability than the skill's own.
        #[serde(default)]
        ability: Option<AbilityName>,
    }
}

resolver_arguments! {
    /// An ability check.
    AbilityCheckArguments {
        /// The ability.
        ability: AbilityName,
        /// Difficulty: 5 very easy, 10 easy, 15 medium, 20 hard, 25 very hard, 30 nearly impossible.
        dc: Within<0, 40>,
    }
}

resolver_arguments! {
    /// A passive check.
    PassiveArguments {
        /// The skill.
        skill: SkillName,
        /// Another ability than the skill's own.
        #[serde(default)]
        ability: Option<AbilityName>,
    }
}

resolver_arguments! {
    /// An initiative roll.
    InitiativeArguments {}
}

fn name(ability: Option<AbilityName>) -> Option<String> {
    ability.map(|a| a.0.name().to_owned())
}

pub(in crate::tools) struct ResolveSkillCheck;

impl ToolSpec for ResolveSkillCheck {
    const NAME: &'static str = "resolve_skill_check";
    const DESCRIPTION: &'static str = "Resolve a check of a skill against a difficulty.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = SkillCheckArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: SkillCheckArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        let args = SkillCheckArgs {
            skill: arguments.skill.0.name.to_owned(),
            dc: arguments.dc.0,
            ability: name(arguments.ability),
        };
        call.alone(Harm::Always, |actor, dice| resolve_skill_check(actor, &args, &call.circumstances, dice)).await
    }
}

pub(in crate::tools) struct ResolveAbilityCheck;

impl ToolSpec for ResolveAbilityCheck {
    const NAME: &'static str = "resolve_ability_check";
    const DESCRIPTION: &'static str =
        "Resolve a check of an ability alone against a difficulty; use a skill where one fits.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = AbilityCheckArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: AbilityCheckArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        let args = AbilityCheckArgs { ability: arguments.ability.0.name().to_owned(), dc: arguments.dc.0 };
        call.alone(Harm::Always, |actor, dice| resolve_ability_check(actor, &args, &call.circumstances, dice)).await
    }
}

pub(in crate::tools) struct ResolvePassive;

impl ToolSpec for ResolvePassive {
    const NAME: &'static str = "resolve_passive";
    const DESCRIPTION: &'static str = "Return the passive score of a skill: 10 plus all modifiers. Nothing is rolled.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = PassiveArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: PassiveArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        let kind = CheckKind { skill: Some(arguments.skill.0.name.to_owned()), ability: name(arguments.ability) };
        call.alone(Harm::Always, |actor, _| passive(actor, &kind, &call.circumstances)).await
    }
}

pub(in crate::tools) struct RollInitiative;

impl ToolSpec for RollInitiative {
    const NAME: &'static str = "roll_initiative";
    const DESCRIPTION: &'static str = "Roll initiative for the actor.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = InitiativeArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: InitiativeArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        if let Some(done) = call.own_action(ActionKind::RollInitiative).await? {
            return Ok(done);
        }
        call.alone(Harm::Always, |actor, dice| roll_initiative(actor, &call.circumstances, dice)).await
    }
}
