//! `resolve_saving_throw`: a saving throw of the actor, optionally against damage.

use rules::{
    resolve::{SaveDamage, SavingThrowArgs, resolve_saving_throw},
    srd::OnSave,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::common::{Harm, resolver_arguments};
use crate::tools::spec::{ANYONE, ActorKind, ToolCx, ToolSpec};
use base::error::Result;
use world::rules::answers::ResolvedOutcome;
use world::rules::values::{AbilityName, DamageType, Within, Words};

/// Damage that a successful saving throw reduces.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaveDamageInput {
    /// A sum of dice and numbers, such as 8d6 or 2d6+3.
    dice: Words<100>,
    /// Damage type.
    #[serde(default, rename = "type", alias = "damage_type")]
    kind: Option<DamageType>,
    /// How much of it remains after a success; half unless given.
    #[serde(default = "half")]
    #[schemars(with = "String", extend("enum" = ["half", "none"]))]
    on_save: OnSave,
}

fn half() -> OnSave {
    OnSave::Half
}

resolver_arguments! {
    /// A saving throw.
    SavingThrowArguments {
        /// The ability.
        ability: AbilityName,
        /// Difficulty.
        dc: Within<0, 40>,
        /// What it is against, such as poison or dragon's breath.
        #[serde(default, deserialize_with = "world::rules::values::unless_blank")]
        source: Option<Words<200>>,
        /// The damage that depends on it.
        #[serde(default)]
        damage: Option<SaveDamageInput>,
    }
}

pub(in crate::tools) struct ResolveSavingThrow;

impl ToolSpec for ResolveSavingThrow {
    const NAME: &'static str = "resolve_saving_throw";
    const DESCRIPTION: &'static str = "Resolve a saving throw of the actor, and the damage that depends on it.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = SavingThrowArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: SavingThrowArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        let damage = arguments.damage.map(|d| SaveDamage {
            dice: d.dice.0,
            damage_type: d.kind.map(|k| k.0.to_owned()).unwrap_or_default(),
            on_save: d.on_save,
        });
        let args = SavingThrowArgs {
            ability: arguments.ability.0.name().to_owned(),
            dc: arguments.dc.0,
            source: arguments.source.map(|s| s.0),
            damage,
        };
        call.alone(Harm::WhenAsked, |actor, dice| resolve_saving_throw(actor, &args, &call.circumstances, dice)).await
    }
}
