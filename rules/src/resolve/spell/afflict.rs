//! What a spell puts on its target.

use super::casting::Casting;
use crate::{
    resolve::{Outcome, StateChange, harm},
    sheet::{Condition, Creature},
    srd::{self, same},
};

/// Puts the spell's effect and condition on the target.
pub(super) fn afflict(actor: &Creature, target: &Creature, casting: &Casting, outcome: &mut Outcome) {
    if let Some(name) = &casting.effect {
        let rounds = same(name, "Guiding Bolt").then_some(1);
        outcome.effects.push(harm::effect_on(target, name, actor.key(), rounds));
    }
    let Some(name) = &casting.condition else { return };
    if target.is_immune_to_condition(name) {
        outcome.reasons.push(format!("{} cannot be {name}", target.name).into());
        return;
    }
    let condition = Condition { name: name.clone(), source: Some(actor.key().to_owned()), ..Condition::default() };
    outcome.effects.push(StateChange::AddCondition { creature: target.key().to_owned(), condition });
    // A creature that cannot act cannot concentrate.
    if let Some(on) = &target.concentration
        && srd::condition(name).is_some_and(|rule| rule.incapacitated || rule.implies.contains(&"incapacitated"))
    {
        let creature = target.key().to_owned();
        outcome.effects.push(StateChange::EndConcentration { creature, spell: on.spell.clone() });
    }
}
