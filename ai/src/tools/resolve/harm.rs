//! Damage and healing: `apply_damage`, `apply_healing`, `resolve_concentration`, `resolve_death_save`, `resolve_fall`.

use rules::encounter::ActionKind;
use rules::resolve::{
    DamageArgs, DamagePart, HealingArgs, apply_damage, apply_healing, resolve_concentration, resolve_death_save,
    resolve_fall,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::common::{Harm, resolver_arguments};
use crate::tools::spec::{ANYONE, ActorKind, ToolCx, ToolSpec};
use base::error::Result;
use world::rules::answers::ResolvedOutcome;
use world::rules::values::{DamageType, UpTo, Within, Words};

/// Damage of one type.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartInput {
    /// The amount.
    amount: Within<0, 100_000>,
    /// The damage type. Without one, nothing resists the damage.
    #[serde(default, rename = "type", alias = "damage_type")]
    kind: Option<DamageType>,
}

resolver_arguments! {
    /// The damage, and who takes it.
    DamageArguments {
        /// Who takes it: id, slug or name of a character or NPC.
        target: Words<200>,
        /// The damage by type.
        parts: UpTo<PartInput, 1, 20>,
        /// Subtracted before resistances.
        #[serde(default)]
        flat_reduction: Option<Within<0, 100_000>>,
        /// Whether the damage is magical. Some creatures resist only nonmagical damage.
        #[serde(default, deserialize_with = "world::rules::values::or_default")]
        magical: bool,
        /// Whether it comes from a silvered weapon, which some creatures do not resist.
        #[serde(default, deserialize_with = "world::rules::values::or_default")]
        silvered: bool,
        /// Whether it comes from a weapon of adamantine, which some creatures do not resist.
        #[serde(default, deserialize_with = "world::rules::values::or_default")]
        adamantine: bool,
        /// Whether it comes from a critical hit.
        #[serde(default, deserialize_with = "world::rules::values::or_default")]
        critical: bool,
    }
}

pub(in crate::tools) struct ApplyDamage;

impl ToolSpec for ApplyDamage {
    const NAME: &'static str = "apply_damage";
    const DESCRIPTION: &'static str =
        "Deal damage to a creature. Its reductions, resistances and temporary hit points count.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = DamageArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: DamageArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        let parts = arguments.parts.0.iter().map(|part| DamagePart {
            amount: part.amount.0,
            damage_type: part.kind.map(|k| k.0.to_owned()).unwrap_or_default(),
        });
        let args = DamageArgs {
            parts: parts.collect(),
            flat_reduction: arguments.flat_reduction.map_or(0, |f| f.0),
            magical: arguments.magical,
            silvered: arguments.silvered,
            adamantine: arguments.adamantine,
            critical: arguments.critical,
            knock_out: call.circumstances.context.knock_out,
            underwater: call.circumstances.context.underwater,
        };
        call.on_called(&arguments.target.0, Harm::Always, |target, _| apply_damage(target, &args)).await
    }
}

resolver_arguments! {
    /// Who is healed, by an amount or a formula.
    HealingArguments {
        /// Who is healed: id, slug or name of a character or NPC.
        target: Words<200>,
        /// Hit points to give back.
        #[serde(default)]
        amount: Option<Within<0, 100_000>>,
        /// A sum of dice and numbers, such as 2d4+2.
        #[serde(default, deserialize_with = "world::rules::values::unless_blank")]
        formula: Option<Words<100>>,
    }
}

pub(in crate::tools) struct ApplyHealing;

impl ToolSpec for ApplyHealing {
    const NAME: &'static str = "apply_healing";
    const DESCRIPTION: &'static str = "Give a creature hit points back, up to its maximum.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = HealingArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: HealingArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        let args = HealingArgs { amount: arguments.amount.map(|a| a.0), formula: arguments.formula.map(|f| f.0) };
        call.on_called(&arguments.target.0, Harm::Always, |target, dice| apply_healing(target, &args, dice)).await
    }
}

resolver_arguments! {
    /// The damage that tests the concentration.
    ConcentrationArguments {
        /// The damage of one source.
        damage: Within<0, 100_000>,
    }
}

pub(in crate::tools) struct ResolveConcentration;

impl ToolSpec for ResolveConcentration {
    const NAME: &'static str = "resolve_concentration";
    const DESCRIPTION: &'static str = "Resolve the saving throw by which the actor keeps concentrating after damage.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = ConcentrationArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: ConcentrationArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        let damage = arguments.damage.0;
        call.alone(Harm::Always, |actor, dice| resolve_concentration(actor, damage, &call.circumstances, dice)).await
    }
}

resolver_arguments! {
    /// A death saving throw.
    DeathSaveArguments {}
}

pub(in crate::tools) struct ResolveDeathSave;

impl ToolSpec for ResolveDeathSave {
    const NAME: &'static str = "resolve_death_save";
    const DESCRIPTION: &'static str = "Resolve a death saving throw of the actor, who is dying.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = DeathSaveArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: DeathSaveArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        if let Some(done) = call.own_action(ActionKind::DeathSave).await? {
            return Ok(done);
        }
        call.alone(Harm::Always, |actor, dice| resolve_death_save(actor, &call.circumstances, dice)).await
    }
}

resolver_arguments! {
    /// A fall.
    FallArguments {
        /// Height of the fall, in feet.
        distance_ft: Within<0, 100_000>,
    }
}

pub(in crate::tools) struct ResolveFall;

impl ToolSpec for ResolveFall {
    const NAME: &'static str = "resolve_fall";
    const DESCRIPTION: &'static str = "Resolve a fall of the actor.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = FallArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: FallArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        let distance = arguments.distance_ft.0;
        call.alone(Harm::Always, |actor, dice| resolve_fall(actor, distance, &call.circumstances, dice)).await
    }
}
