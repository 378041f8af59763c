//! What may be done with a reaction or a bonus action (SRD 5.1, "Bonus Actions", "Reactions").

use super::Work;
use crate::{
    encounter::{Action, ActionKind, Cost, Participant, Refusal},
    sheet::KnownSpell,
    srd::same,
};

/// Spells cast with a bonus action (SRD 5.1, "Spell Descriptions").
const WITH_A_BONUS_ACTION: [&str; 14] = [
    "Branding Smite",
    "Divine Favor",
    "Divine Word",
    "Expeditious Retreat",
    "Flame Blade",
    "Healing Word",
    "Hunter's Mark",
    "Magic Weapon",
    "Mass Healing Word",
    "Misty Step",
    "Sanctuary",
    "Shield of Faith",
    "Shillelagh",
    "Spiritual Weapon",
];
/// Spells cast with a reaction (SRD 5.1, "Spell Descriptions").
const WITH_A_REACTION: [&str; 4] = ["Counterspell", "Feather Fall", "Hellish Rebuke", "Shield"];

impl Work {
    /// Whether a reaction does it: an attack or a spell that was readied, or on who provoked it; a spell that is one.
    pub(super) fn may_react(&self, actor: &Participant, action: &Action) -> bool {
        if !matches!(action.action, ActionKind::Attack | ActionKind::CastSpell) {
            return false;
        }
        let target = action.target_id.as_deref().filter(|_| action.target_ids.is_empty());
        let provoked =
            target.is_some_and(|id| self.state.provoked().iter().any(|p| p.by == actor.id && p.target == id));
        provoked || actor.economy.readied || takes(actor, action, &WITH_A_REACTION, "reaction")
    }

    /// Refuses an attack with a bonus action without a second weapon, and spells that take longer.
    pub(super) fn check_bonus(&self, actor: &Participant, action: &Action, spell: bool) -> Result<(), Refusal> {
        let off_hand = action.circumstances.context.off_hand;
        let usual = if off_hand && !spell { Cost::BonusAction } else { Cost::Action };
        if action.overridden || action.cost.unwrap_or(usual) != Cost::BonusAction {
            return Ok(());
        }
        if !spell {
            let message = "an attack takes a bonus action only with the other hand: `context.off_hand`";
            return if off_hand { Ok(()) } else { Err(Refusal::argument("cost", message)) };
        }
        if takes(actor, action, &WITH_A_BONUS_ACTION, "bonus") {
            return Ok(());
        }
        Err(Refusal::argument("cost", "the spell is not cast with a bonus action"))
    }
}

/// Whether the spell takes no more than that: by the rules, or by the casting time on the caster's own sheet.
fn takes(actor: &Participant, action: &Action, known: &[&str], time: &str) -> bool {
    let named = action.attack.spell_name.as_deref().or(action.attack.weapon.as_deref());
    let Some(name) = named.map(str::trim) else { return false };
    let own = actor.creature.spells.iter().find_map(|spell| match spell {
        KnownSpell::Own(own) if same(&own.name, name) => own.casting_time.as_deref(),
        _ => None,
    });
    match own {
        Some(own) => own.to_lowercase().contains(time),
        None => known.iter().any(|k| same(k, name)),
    }
}
