//! Casting times of spells (SRD 5.1, "Casting Time" and "Spell Descriptions").

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{holds, same};

/// What casting a spell costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CastingTime {
    /// The action.
    Action,
    /// The bonus action.
    BonusAction,
    /// The reaction to something that the spell names.
    Reaction,
    /// Minutes or hours, so longer than a turn.
    Longer,
}

/// The SRD spells that take a bonus action or a reaction, and those in [`super::SPELLS`] that take longer.
pub const CASTING_TIMES: [(&str, CastingTime); 19] = [
    ("Branding Smite", CastingTime::BonusAction),
    ("Counterspell", CastingTime::Reaction),
    ("Divine Favor", CastingTime::BonusAction),
    ("Divine Word", CastingTime::BonusAction),
    ("Expeditious Retreat", CastingTime::BonusAction),
    ("Feather Fall", CastingTime::Reaction),
    ("Flame Blade", CastingTime::BonusAction),
    ("Healing Word", CastingTime::BonusAction),
    ("Hellish Rebuke", CastingTime::Reaction),
    ("Hunter's Mark", CastingTime::BonusAction),
    ("Magic Weapon", CastingTime::BonusAction),
    ("Mass Healing Word", CastingTime::BonusAction),
    ("Misty Step", CastingTime::BonusAction),
    ("Prayer of Healing", CastingTime::Longer),
    ("Sanctuary", CastingTime::BonusAction),
    ("Shield", CastingTime::Reaction),
    ("Shield of Faith", CastingTime::BonusAction),
    ("Shillelagh", CastingTime::BonusAction),
    ("Spiritual Weapon", CastingTime::BonusAction),
];

impl CastingTime {
    /// The casting time of the spell with this name; an action if it is not listed.
    #[must_use]
    pub fn of(spell: &str) -> Self {
        CASTING_TIMES.iter().find(|(name, _)| same(name, spell)).map_or(Self::Action, |(_, time)| *time)
    }

    /// Reads a casting time from a sheet, such as `1 bonus action` or `10 minutes`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mentions = |word| holds(text, word);
        match () {
            () if mentions("bonus") => Self::BonusAction,
            () if mentions("reaction") => Self::Reaction,
            () if mentions("minute") || mentions("hour") => Self::Longer,
            () => Self::Action,
        }
    }
}
