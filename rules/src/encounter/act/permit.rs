//! What may be done with an action, a bonus action or a reaction (SRD 5.1, "Bonus Actions", "Reactions", "Casting Time").

use super::{Work, attack::is_spell};
use crate::{
    encounter::{Action, ActionKind, Cast, Cost, Participant, Refusal},
    sheet::KnownSpell,
    srd::{self, CastingTime, Found, find},
};

impl Work {
    /// The action with what it takes of a turn, where nothing is said of that and it is no action: what its spell takes, or in
    /// somebody else's turn the reaction.
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

    /// Refuses a second spell in a turn in which one was cast with a bonus action, but for a cantrip that takes an action
    /// (SRD 5.1, "Casting Time").
    fn check_spells(&self, actor: &Participant, action: &Action) -> Result<(), Refusal> {
        let in_own_turn = self.state.current().is_some_and(|current| current.id == actor.id);
        let Some(casting) = casting(actor, action).filter(|_| in_own_turn) else { return Ok(()) };
        let quick = action.cost == Some(Cost::BonusAction);
        let short = casting.cantrip && casting.time == CastingTime::Action;
        let message = match (actor.economy.quick_spell, actor.economy.levelled_spell) {
            (true, _) if !short => {
                "has cast a spell with its bonus action: only a cantrip of one action may follow in this turn"
            }
            (_, true) if quick => {
                "has cast a spell that is no cantrip: none follows with the bonus action in this turn"
            }
            _ => return Ok(()),
        };
        Err(Refusal::used_up("spell", format!("{} {message}", actor.id)))
    }

    /// Refuses an attack with a bonus action without a second weapon, and a spell that is cast with something else or too many.
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
            _ => self.check_spells(actor, action),
        }
    }
}

fn attacks(action: &Action) -> bool {
    matches!(action.action, ActionKind::Attack | ActionKind::CastSpell)
}

/// How long the spell takes, and whether it is a cantrip.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Casting {
    time: CastingTime,
    cantrip: bool,
}

/// How the spell is cast: by the caster's own sheet, else by the rules. None when no spell is cast.
fn casting(actor: &Participant, action: &Action) -> Option<Casting> {
    let asked = &action.attack;
    let wanted = asked.spell_name.as_deref().or(asked.weapon.as_deref()).filter(|_| is_spell(actor, action))?;
    let it = &actor.creature;
    let known = match find(&it.spells, KnownSpell::name, wanted) {
        Found::One(spell) => Some(spell),
        // Two of one name are one spell.
        Found::Several(spells) => spells.first().copied(),
        Found::Nothing => None,
    };
    let ruled = |name: &str| match srd::spell(name) {
        Found::One(rule) => Casting { time: CastingTime::of(rule.name), cantrip: rule.level == 0 },
        _ => Casting { time: CastingTime::of(name), cantrip: false },
    };
    Some(match known {
        Some(KnownSpell::Own(own)) => Casting {
            time: own.casting_time.as_deref().map_or_else(|| CastingTime::of(&own.name), CastingTime::written),
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

/// What a spell leaves to be cast in the same turn.
pub(super) fn cast(actor: &Participant, action: &Action) -> Option<Cast> {
    let casting = casting(actor, action)?;
    match (action.cost.unwrap_or(Cost::Action), casting.cantrip) {
        (Cost::BonusAction, _) => Some(Cast::Quick),
        (_, true) => None,
        (_, false) => Some(Cast::Levelled),
    }
}
