//! `resolve_attack`: an attack with a weapon or a spell against one target.

use rules::{
    encounter::{Action, ActionKind},
    resolve::{AttackArgs, resolve_attack},
};

use super::common::{Harm, resolver_arguments};
use crate::tools::spec::{ANYONE, ActorKind, ToolCx, ToolSpec};
use base::error::Result;
use world::rules::values::{UpTo, Within, Words};
use world::rules::{
    answers::ResolvedOutcome,
    cast::{Named, Who},
};

resolver_arguments! {
    /// An attack.
    AttackArguments {
        /// Name of a weapon of the attacker, or of an attack of its stat block. May be left out with `spell_name`, or when
        /// there is only one.
        #[serde(default, deserialize_with = "world::rules::values::unless_blank")]
        weapon: Option<Words<200>>,
        /// Who is attacked: id, slug or name of a character or NPC; `self` for a spell on oneself.
        target: Words<200>,
        /// Further sources of damage to use, such as Sneak Attack or Divine Smite 2.
        #[serde(default, deserialize_with = "world::rules::values::or_default")]
        extra_damage_sources: UpTo<Words<100>, 0, 20>,
        /// Whether `weapon` names a spell.
        #[serde(default, deserialize_with = "world::rules::values::or_default")]
        is_spell_attack: bool,
        /// The spell to attack with.
        #[serde(default, deserialize_with = "world::rules::values::unless_blank")]
        spell_name: Option<Words<200>>,
        /// Level of the slot to cast or smite with; the lowest possible unless given.
        #[serde(default)]
        slot_level: Option<Within<1, 9>>,
        /// Whether a versatile weapon is held in two hands.
        #[serde(default, deserialize_with = "world::rules::values::or_default")]
        two_handed: bool,
    }
}

pub(in crate::tools) struct ResolveAttack;

impl ToolSpec for ResolveAttack {
    const NAME: &'static str = "resolve_attack";
    const DESCRIPTION: &'static str = "Resolve an attack with a weapon or a spell against one target.";
    const CALLERS: &'static [ActorKind] = ANYONE;
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = AttackArguments;
    type Answer = ResolvedOutcome;

    async fn run(cx: &ToolCx<'_>, arguments: AttackArguments) -> Result<Self::Answer> {
        let mut call = arguments.call(cx, Self::NAME).await?;
        call.actor()?;
        let target = match call.target(&arguments.target.0).await? {
            Named::One(target) => target,
            Named::Unclear(why) => return call.impossible(&why),
        };
        let actor = call.actor()?;
        let args = AttackArgs {
            weapon: arguments.weapon.map(|w| w.0),
            extra_damage_sources: arguments.extra_damage_sources.0.into_iter().map(|s| s.0).collect(),
            is_spell_attack: arguments.is_spell_attack,
            spell_name: arguments.spell_name.map(|s| s.0),
            slot_level: arguments.slot_level.map(|l| l.0),
            two_handed: arguments.two_handed,
        };
        if let (Some(fight), Who::Participant(actor), Who::Participant(target)) = (&call.fight, actor, target) {
            let id = |at: usize| fight.now.participants().get(at).map(|p| p.id.clone());
            let mut action = Action::new(ActionKind::Attack);
            (action.participant_id, action.target_id) = (id(actor), id(target));
            (action.attack, action.circumstances) = (args, call.circumstances.clone());
            return call.as_action(fight, &action).await;
        }
        let run = |cast: &world::rules::cast::Cast, dice: &mut dyn rules::dice::Dice| {
            Ok(resolve_attack(cast.creature(actor)?, cast.creature(target)?, &args, &call.circumstances, dice))
        };
        call.among(&[actor, target], Harm::WhenAsked, run).await
    }
}
