//! `take_rest`: a short or long rest of the actor; `POST …/characters/{x}/rest` does the same.

use rules::resolve::{RestArgs, RestType, take_rest};

use super::common::{Harm, resolver_arguments};
use crate::tools::spec::{ANYONE, ActorKind, ToolCx, ToolSpec};
use base::error::Result;
use world::rules::answers::ResolvedOutcome;
use world::rules::values::{UpTo, Within};

resolver_arguments! {
    /// A rest.
    RestArguments {
        /// A short rest takes an hour, a long one eight.
        #[serde(rename = "type")]
        #[schemars(with = "String", extend("enum" = ["short", "long"]))]
        rest: RestType,
        /// Hit dice to spend in a short rest.
        #[serde(default)]
        hit_dice: Option<Within<0, 100>>,
        /// Levels of the spell slots that Arcane Recovery or Natural Recovery gives back in a short rest.
        #[serde(default, deserialize_with = "world::rules::values::or_default")]
        recover_slots: UpTo<Within<1, 9>, 0, 20>,
        /// Whether there is food and drink. Without them, a long rest does not reduce exhaustion. True unless given.
        #[serde(default)]
        food: Option<bool>,
    }
}

pub(in crate::tools) struct TakeRest;

impl ToolSpec for TakeRest {
    const NAME: &'static str = "take_rest";
    const DESCRIPTION: &'static str = "Let the actor take a short or a long rest.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = RestArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: RestArguments) -> Result<Self::Answer> {
        let call = arguments.call(cx, Self::NAME).await?;
        let args = RestArgs {
            rest: arguments.rest,
            hit_dice: arguments.hit_dice.map(|h| h.0),
            recover_slots: arguments.recover_slots.0.into_iter().map(|l| l.0).collect(),
            food: arguments.food.unwrap_or(true),
        };
        call.alone(Harm::Always, |actor, dice| take_rest(actor, &args, dice)).await
    }
}
