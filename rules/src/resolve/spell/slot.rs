//! Chooses the slot for a spell.

use crate::{
    resolve::{error::Stop, outcome::Text},
    sheet::Creature,
};

/// A chosen slot.
pub(crate) struct Slot {
    /// The level at which the spell is cast.
    pub(crate) level: i32,
    /// The level of the slot to spend, if any.
    pub(crate) spends: Option<i32>,
    pub(crate) reasons: Vec<Text>,
}

/// Chooses the requested slot, or the lowest that the caster has. Fails if there is no such slot.
pub(crate) fn choose(actor: &Creature, spell: &str, level: i32, asked: Option<i32>) -> Result<Slot, Stop> {
    if level <= 0 {
        let reasons = asked.map(|_| Text::from("refused: slot_level, a cantrip takes no slot"));
        return Ok(Slot { level: 0, spends: None, reasons: reasons.into_iter().collect() });
    }
    if let Some(asked) = asked.filter(|asked| *asked < level || *asked > 9) {
        let reason = format!("{spell} is a spell of level {level}, so a slot of level {asked} is too low");
        return Err(Stop::Impossible(reason));
    }
    if actor.is_npc && actor.spell_slots.is_empty() {
        let reasons = vec!["this NPC's slots are not tracked".into()];
        return Ok(Slot { level: asked.unwrap_or(level), spends: None, reasons });
    }
    let chosen = asked.unwrap_or_else(|| lowest(actor, level));
    if actor.slots_left(chosen) <= 0 {
        return Err(Stop::Impossible(format!("{} has no slot of level {chosen} left for {spell}", actor.name)));
    }
    Ok(Slot { level: chosen, spends: Some(chosen), reasons: Vec::new() })
}

/// The spell's own level or, for a caster without slots of that level, such as a warlock, the next higher one.
fn lowest(actor: &Creature, level: i32) -> i32 {
    let has = |level: i32| actor.spell_slots.get(&level.to_string()).is_some_and(|s| s.max > 0 || s.remaining > 0);
    (level..=9).find(|l| has(*l)).unwrap_or(level)
}
