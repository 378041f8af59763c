//! What may be done with an action, a bonus action or a reaction (SRD 5.1, "Bonus Actions", "Reactions", "Casting Time").

use super::{Work, attack::is_spell};
use crate::{
    encounter::{Action, ActionKind, Cost, Participant, Refusal},
    sheet::KnownSpell,
    srd::{self, CastingTime, Found, find},
};

impl Work {
    /// The action with what its spell takes of a turn, where nothing is said of that and it is no action.
    pub(super) fn timed(&self, action: &Action) -> Option<Action> {
        if action.cost.is_some() || !attacks(action) {
            return None;
        }
        let actor = match &action.participant_id {
            Some(id) => self.state.participant(id)?,
            None => self.state.current()?,
        };
        let cost = match casting_time(actor, action)? {
            CastingTime::BonusAction => Cost::BonusAction,
            CastingTime::Reaction => Cost::Reaction,
            CastingTime::Action | CastingTime::Longer => return None,
        };
        Some(Action { cost: Some(cost), ..action.clone() })
    }

    /// Whether a reaction does it: an attack or a spell that was readied, or on who provoked it; a spell that is one.
    pub(super) fn may_react(&self, actor: &Participant, action: &Action) -> bool {
        if !attacks(action) {
            return false;
        }
        let target = action.target_id.as_deref().filter(|_| action.target_ids.is_empty());
        let provoked =
            target.is_some_and(|id| self.state.provoked().iter().any(|p| p.by == actor.id && p.target == id));
        provoked || actor.economy.readied || casting_time(actor, action) == Some(CastingTime::Reaction)
    }

    /// Refuses an attack with a bonus action without a second weapon, and a spell that is cast with something else.
    pub(super) fn check_cost(&self, actor: &Participant, action: &Action) -> Result<(), Refusal> {
        if action.overridden {
            return Ok(());
        }
        let wrong = |message| Err(Refusal::argument("cost", message));
        let time = casting_time(actor, action);
        match (time, action.cost.unwrap_or(Cost::Action)) {
            (None, Cost::BonusAction) if !action.circumstances.context.off_hand => {
                wrong("an attack takes a bonus action only with the other hand: `context.off_hand`")
            }
            (Some(CastingTime::Longer), _) => wrong("casting the spell takes longer than a turn"),
            (Some(CastingTime::Action), Cost::BonusAction) => wrong("the spell is not cast with a bonus action"),
            (Some(CastingTime::BonusAction), Cost::Action) => wrong("the spell is cast with a bonus action"),
            (Some(CastingTime::Reaction), Cost::Action | Cost::BonusAction) => {
                wrong("the spell is cast with a reaction")
            }
            _ => Ok(()),
        }
    }
}

fn attacks(action: &Action) -> bool {
    matches!(action.action, ActionKind::Attack | ActionKind::CastSpell)
}

/// How long the spell takes: by the caster's own sheet, else by the rules. None when no spell is cast.
fn casting_time(actor: &Participant, action: &Action) -> Option<CastingTime> {
    let asked = &action.attack;
    let wanted = asked.spell_name.as_deref().or(asked.weapon.as_deref()).filter(|_| is_spell(actor, action))?;
    let it = &actor.creature;
    let known = match find(&it.spells, KnownSpell::name, wanted) {
        Found::One(spell) => Some(spell),
        // Two of one name are one spell.
        Found::Several(spells) => spells.first().copied(),
        Found::Nothing => None,
    };
    Some(match (known, srd::spell(wanted)) {
        (Some(KnownSpell::Own(own)), _) => {
            own.casting_time.as_deref().map_or_else(|| CastingTime::of(&own.name), CastingTime::written)
        }
        (Some(KnownSpell::Name(name)), _) => CastingTime::of(name),
        (None, Found::One(rule)) if it.is_npc && it.spells.is_empty() => CastingTime::of(rule.name),
        (None, _) => CastingTime::of(wanted),
    })
}
