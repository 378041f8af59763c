//! What a participant may do with its action, bonus action or reaction (SRD 5.1, "Bonus Actions", "Reactions", "Casting
//! Time").

use super::{Work, attack::is_spell};
use crate::{
    encounter::{Action, ActionKind, Cast, Cost, Participant, Refusal},
    sheet::KnownSpell,
    srd::{self, CastingTime, Found, find},
};

impl Work {
    /// The action with its cost filled in, if the action does not name one and it is not an ordinary action: the cost of its
    /// spell, or the reaction outside of the actor's turn.
    pub(super) fn timed(&self, action: &Action) -> Option<Action> {
        if action.cost.is_some() || !attacks(action) {
            return None;
        }
        let actor = match &action.participant_id {
            Some(id) => self.state.participant(id)?,
            None => self.state.current()?,
        };
        let in_turn = self.state.current().is_some_and(|current| current.id == actor.id);
        let cost = match casting_time(actor, action) {
            Some(CastingTime::BonusAction) => Cost::BonusAction,
            Some(CastingTime::Reaction) => Cost::Reaction,
            Some(CastingTime::Longer) => return None,
            _ if in_turn || action.overridden || !self.may_react(actor, action) => return None,
            _ => Cost::Reaction,
        };
        Some(Action { cost: Some(cost), ..action.clone() })
    }

    /// Whether a reaction can do this: an attack or spell that was readied or provoked, or a spell with the casting
    /// time of a reaction.
    pub(super) fn may_react(&self, actor: &Participant, action: &Action) -> bool {
        if !attacks(action) {
            return false;
        }
        let target = action.target_id.as_deref().filter(|_| action.target_ids.is_empty());
        let provoked =
            target.is_some_and(|id| self.state.provoked().iter().any(|p| p.by == actor.id && p.target == id));
        provoked || actor.economy.readied || casting_time(actor, action) == Some(CastingTime::Reaction)
    }

    /// Rejects a second spell in a turn with a bonus-action spell, except a cantrip that takes an action (SRD 5.1,
    /// "Casting Time").
    fn check_spells(&self, actor: &Participant, action: &Action) -> Result<(), Refusal> {
        let in_own_turn = self.state.current().is_some_and(|current| current.id == actor.id);
        let Some(casting) = casting(actor, action).filter(|_| in_own_turn) else { return Ok(()) };
        let quick = action.cost == Some(Cost::BonusAction);
        let short = casting.cantrip && casting.time == CastingTime::Action;
        let message = match (actor.economy.quick_spell, actor.economy.levelled_spell) {
            (true, _) if !short => {
                "has cast a spell with its bonus action: in this turn it may only cast a cantrip that takes one action"
            }
            (_, true) if quick => {
                "has cast a spell that is not a cantrip: it may not cast one with the bonus action in this turn"
            }
            _ => return Ok(()),
        };
        Err(Refusal::used_up("spell", format!("{} {message}", actor.id)))
    }

    /// Rejects a bonus-action attack without a second weapon, and a spell with the wrong cost or one too many.
    pub(super) fn check_cost(&self, actor: &Participant, action: &Action) -> Result<(), Refusal> {
        if action.overridden {
            return Ok(());
        }
        let wrong = |message| Err(Refusal::argument("cost", message));
        let time = casting_time(actor, action);
        match (time, action.cost.unwrap_or(Cost::Action)) {
            (None, Cost::BonusAction) if !action.circumstances.context.off_hand => {
                wrong("only an attack with the other hand can take a bonus action: set `context.off_hand`")
            }
            (Some(CastingTime::Longer), _) => wrong("the spell takes longer than a turn to cast"),
            (Some(CastingTime::Action), Cost::BonusAction) => wrong("the spell cannot be cast with a bonus action"),
            (Some(CastingTime::BonusAction), Cost::Action) => wrong("the spell can only be cast with a bonus action"),
            (Some(CastingTime::Reaction), Cost::Action | Cost::BonusAction) => {
                wrong("the spell can only be cast with a reaction")
            }
            _ => self.check_spells(actor, action),
        }
    }
}

fn attacks(action: &Action) -> bool {
    matches!(action.action, ActionKind::Attack | ActionKind::CastSpell)
}

/// A spell's casting time, and whether it is a cantrip.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Casting {
    time: CastingTime,
    cantrip: bool,
}

/// How the spell is cast: by the caster's own sheet, otherwise by the rules. `None` if no spell is cast.
fn casting(actor: &Participant, action: &Action) -> Option<Casting> {
    let asked = &action.attack;
    let wanted = asked.spell_name.as_deref().or(asked.weapon.as_deref()).filter(|_| is_spell(actor, action))?;
    let it = &actor.creature;
    let known = match find(&it.spells, KnownSpell::name, wanted) {
        Found::One(spell) => Some(spell),
        // Two spells with the same name are the same spell.
        Found::Several(spells) => spells.first().copied(),
        Found::Nothing => None,
    };
    let ruled = |name: &str| match srd::spell(name) {
        Found::One(rule) => Casting { time: CastingTime::of(rule.name), cantrip: rule.level == 0 },
        _ => Casting { time: CastingTime::of(name), cantrip: false },
    };
    Some(match known {
        Some(KnownSpell::Own(own)) => Casting {
            time: own.casting_time.as_deref().map_or_else(|| CastingTime::of(&own.name), CastingTime::parse),
            cantrip: own.level == 0,
        },
        Some(KnownSpell::Name(name)) => ruled(name),
        None if it.is_npc && it.spells.is_empty() => ruled(wanted),
        None => Casting { time: CastingTime::of(wanted), cantrip: false },
    })
}

fn casting_time(actor: &Participant, action: &Action) -> Option<CastingTime> {
    casting(actor, action).map(|casting| casting.time)
}

/// How casting this spell limits other spells in the same turn.
pub(super) fn cast(actor: &Participant, action: &Action) -> Option<Cast> {
    let casting = casting(actor, action)?;
    match (action.cost.unwrap_or(Cost::Action), casting.cantrip) {
        (Cost::BonusAction, _) => Some(Cast::Quick),
        (_, true) => None,
        (_, false) => Some(Cast::Levelled),
    }
}
