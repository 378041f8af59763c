//! What every resolver takes beside its own arguments, and how a tool's call becomes a resolution.

use rules::{
    dice::Dice,
    resolve::{Circumstances, Context, OtherWeapon, Outcome, RuleError, impossible},
    sheet::Creature,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::values::{Within, Words};
use crate::{
    error::{Error, Result},
    rules::{
        cast::{Cast, Named, Who, named},
        service::{self, How},
    },
    tools::{ActorKind, ToolCx},
};

/// Place and moment of a roll.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ContextInput {
    /// An enemy of the target, able to act, is within 5 feet of it.
    ally_adjacent: bool,
    /// Somebody hostile, able to see and act, is within 5 feet of the attacker.
    hostile_adjacent: bool,
    /// The target does not see the attacker.
    attacker_unseen: bool,
    /// The attacker does not see the target.
    target_unseen: bool,
    /// What a frightened creature fears is in its sight; true unless given.
    fear_source_visible: Option<bool>,
    /// The bonus attack with the weapon in the other hand.
    off_hand: bool,
    /// What is in the other hand: a weapon's name, or whether there is one.
    #[schemars(with = "String", extend("type" = ["string", "boolean", "null"]))]
    other_weapon: Option<OtherWeapon>,
    /// Feet between attacker and target.
    distance_ft: Option<Within<0, 100_000>>,
    /// Names the turn, so that what works once a turn is used once.
    #[schemars(with = "String", extend("type" = ["string", "integer", "null"]))]
    #[serde(deserialize_with = "turn_key")]
    turn_key: Option<String>,
    /// The check needs sight.
    sight_needed: bool,
    /// The check needs hearing.
    hearing_needed: bool,
    /// The fight is under water.
    underwater: bool,
    /// The attacker rides.
    mounted: bool,
    /// A melee attack that drops its target knocks it out instead of killing it.
    knock_out: bool,
    /// Reactions the target takes, such as Uncanny Dodge.
    reactions: Vec<Words<100>>,
    /// Bonus of a paladin's aura that the roller of a saving throw stands in.
    aura_of_protection: Option<Within<0, 20>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TurnKey {
    Text(Words<100>),
    Number(i64),
}

fn turn_key<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<TurnKey>::deserialize(from)?.map(|key| match key {
        TurnKey::Text(text) => text.0,
        TurnKey::Number(number) => number.to_string(),
    }))
}

impl From<&ContextInput> for Context {
    fn from(input: &ContextInput) -> Self {
        Self {
            ally_adjacent: input.ally_adjacent,
            hostile_adjacent: input.hostile_adjacent,
            attacker_unseen: input.attacker_unseen,
            target_unseen: input.target_unseen,
            fear_source_visible: input.fear_source_visible.unwrap_or(true),
            off_hand: input.off_hand,
            other_weapon: input.other_weapon.clone(),
            distance_ft: input.distance_ft.map(|d| d.0),
            turn_key: input.turn_key.clone(),
            sight_needed: input.sight_needed,
            hearing_needed: input.hearing_needed,
            underwater: input.underwater,
            mounted: input.mounted,
            knock_out: input.knock_out,
            reactions: input.reactions.iter().map(|r| r.0.clone()).collect(),
            aura_of_protection: input.aura_of_protection.map(|a| a.0),
        }
    }
}

/// Declares a resolver's arguments: its own, and those that all resolvers share.
macro_rules! resolver_arguments {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident : $ty:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$field_meta])* $field: $ty,)*
            /// Advantage or disadvantage beside what the rules find themselves.
            #[serde(default, deserialize_with = "super::values::or_default")]
            #[schemars(with = "String", extend("enum" = ["none", "advantage", "disadvantage"]))]
            advantage: rules::resolve::Advantage,
            /// What stands in between.
            #[serde(default, deserialize_with = "super::values::or_default")]
            #[schemars(with = "String", extend("enum" = ["none", "half", "three_quarters", "total"]))]
            cover: rules::resolve::Cover,
            /// The encounter this happens in, if any.
            #[serde(default)]
            encounter_id: Option<String>,
            /// Place and moment.
            #[serde(default, deserialize_with = "super::values::or_default")]
            context: super::common::ContextInput,
            /// Only show what would come of it.
            #[serde(default, deserialize_with = "super::values::or_default")]
            preview: bool,
            /// Change hit points, too.
            #[serde(default, deserialize_with = "super::values::or_default")]
            apply: bool,
        }

        impl $name {
            /// This call, its circumstances checked.
            fn call<'a>(
                &self,
                cx: &'a crate::tools::ToolCx<'a>,
                tool: &'static str,
            ) -> crate::error::Result<super::common::Call<'a>> {
                if self.encounter_id.is_some() {
                    return Err(super::common::no_encounter());
                }
                let circumstances = rules::resolve::Circumstances {
                    advantage: self.advantage,
                    cover: self.cover,
                    context: (&self.context).into(),
                };
                Ok(super::common::Call {
                    circumstances,
                    preview: self.preview || cx.preview,
                    apply: self.apply || cx.apply,
                    tool,
                    cx,
                })
            }
        }
    };
}
pub(super) use resolver_arguments;

pub(super) fn no_encounter() -> Error {
    Error::invalid("/encounter_id", "unknown_reference", "There is no such encounter in this campaign.")
}

/// When a resolver changes hit points.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    /// Whenever it is no preview.
    Always,
    /// Only when the call asks for it.
    WhenAsked,
}

/// A tool's call as a resolution.
pub(super) struct Call<'a> {
    pub(super) circumstances: Circumstances,
    pub(super) preview: bool,
    pub(super) apply: bool,
    pub(super) tool: &'static str,
    pub(super) cx: &'a ToolCx<'a>,
}

impl Call<'_> {
    /// Who acts.
    ///
    /// # Errors
    /// `validation_failed` at `/actor` for who has no sheet.
    pub(super) fn actor(&self) -> Result<Who> {
        match self.cx.kind {
            ActorKind::Character => Ok(Who::Character(self.cx.entity)),
            ActorKind::Npc => Ok(Who::Npc(self.cx.entity)),
            ActorKind::Owner | ActorKind::Gm => Err(Error::invalid(
                "/actor",
                "required",
                format!("`{}` is called as a character or an NPC.", self.tool),
            )),
        }
    }

    /// Whom a name means; `self` is the actor.
    pub(super) async fn whom(&self, name: &str) -> Result<Named> {
        if name.eq_ignore_ascii_case("self")
            && let Ok(actor) = self.actor()
        {
            return Ok(Named::One(actor));
        }
        named(self.cx.tx, self.cx.campaign, name).await
    }

    fn how(&self, harm: Harm, spares_damage: bool) -> How<'_> {
        How {
            tx: self.cx.tx,
            campaign: self.cx.campaign,
            tool: self.tool,
            given: self.cx.dice,
            preview: self.preview,
            harm: harm == Harm::Always || self.apply,
            spares_damage,
        }
    }

    /// Says that it cannot be done.
    pub(super) fn impossible(&self, reason: &str) -> Result<Value> {
        self.told(&impossible(reason))
    }

    /// Answers an outcome that changes nothing.
    pub(super) fn told(&self, outcome: &Outcome) -> Result<Value> {
        service::plain(&self.how(Harm::Always, false), outcome)
    }

    /// Runs a resolver for the actor alone.
    pub(super) async fn alone(
        &self,
        harm: Harm,
        run: impl Fn(&Creature, &mut dyn Dice) -> Result<Outcome, RuleError>,
    ) -> Result<Value> {
        self.on(self.actor()?, harm, run).await
    }

    /// Runs a resolver for one creature alone.
    pub(super) async fn on(
        &self,
        who: Who,
        harm: Harm,
        run: impl Fn(&Creature, &mut dyn Dice) -> Result<Outcome, RuleError>,
    ) -> Result<Value> {
        self.among(&[who], harm, |cast, dice| Ok(run(cast.creature(who)?, dice))).await
    }

    /// Runs a resolver for a creature that is called something.
    pub(super) async fn on_called(
        &self,
        name: &str,
        harm: Harm,
        run: impl Fn(&Creature, &mut dyn Dice) -> Result<Outcome, RuleError>,
    ) -> Result<Value> {
        match self.whom(name).await? {
            Named::One(who) => self.on(who, harm, run).await,
            Named::Unclear(why) => self.impossible(&why),
        }
    }

    /// Runs a resolver for several.
    pub(super) async fn among(
        &self,
        who: &[Who],
        harm: Harm,
        run: impl Fn(&Cast, &mut dyn Dice) -> Result<Result<Outcome, RuleError>>,
    ) -> Result<Value> {
        let cast = Cast::read(self.cx.tx, self.cx.campaign, who, !self.preview).await?;
        service::resolve(&self.how(harm, harm == Harm::WhenAsked), cast, run).await
    }
}
