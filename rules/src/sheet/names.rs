//! Looks up features, effects and conditions on a sheet by name.

use super::{Creature, Feature, Life};
use crate::srd::{ConditionRule, EffectRule, condition, effect, same};

impl Creature {
    /// The feature with this name, in any case.
    #[must_use]
    pub fn feature(&self, name: &str) -> Option<&Feature> {
        self.features.iter().find(|f| same(&f.name, name))
    }

    /// Whether it has the feature.
    #[must_use]
    pub fn has_feature(&self, name: &str) -> bool {
        self.feature(name).is_some()
    }

    /// Whether it has the fighting style: as a chosen option, as a feature with that name, or as `Fighting Style: …`.
    #[must_use]
    pub fn has_style(&self, style: &str) -> bool {
        self.features.iter().any(|f| {
            same(&f.name, style)
                || f.name.rsplit_once(':').is_some_and(|(_, name)| same(name, style))
                || (crate::srd::holds(&f.name, "fighting style")
                    && f.chosen_option.as_deref().is_some_and(|c| c.split(',').any(|one| same(one, style))))
        })
    }

    /// Whether its race is or contains this word (`half-orc`, `halfling`), or it has the racial feature.
    #[must_use]
    pub fn has_trait(&self, race: &str, feature: &str) -> bool {
        crate::srd::holds(&self.race, race) || self.has_feature(feature)
    }

    /// Whether an effect with this name is active.
    #[must_use]
    pub fn has_effect(&self, name: &str) -> bool {
        self.effects.iter().any(|e| same(&e.name, name)) || self.effect_rules().any(|e| same(e.name, name))
    }

    /// The active effects that change rolls. Each counts once, however often it is listed, because the same spell does
    /// not stack.
    pub fn effect_rules(&self) -> impl Iterator<Item = &'static EffectRule> + '_ {
        self.effects.iter().enumerate().filter_map(|(at, active)| {
            let rule = effect(&active.name)?;
            let earlier = self.effects[..at].iter().any(|e| effect(&e.name).is_some_and(|r| r.name == rule.name));
            (!earlier).then_some(rule)
        })
    }

    /// The active conditions, with those that they imply, each once with its source. A character at 0 hit points is
    /// unconscious.
    #[must_use]
    pub fn condition_rules(&self) -> Vec<(&'static ConditionRule, Option<&str>)> {
        let mut rules: Vec<(&'static ConditionRule, Option<&str>)> = Vec::new();
        let mut add = |rule: &'static ConditionRule, source| {
            if !rules.iter().any(|(known, _)| known.name == rule.name) {
                rules.push((rule, source));
            }
        };
        let dying = matches!(self.life(), Life::Dying | Life::Stable);
        let listed = self.conditions.iter().map(|c| (c.name.as_str(), c.source.as_deref()));
        for (name, source) in listed.chain(dying.then_some(("unconscious", None))) {
            let Some(rule) = condition(name) else { continue };
            add(rule, source);
            for implied in rule.implies.iter().filter_map(|name| condition(name)) {
                add(implied, source);
            }
        }
        rules
    }

    /// Whether the condition is active, directly or implied by another.
    #[must_use]
    pub fn has_condition(&self, name: &str) -> bool {
        self.condition_rules().iter().any(|(rule, _)| same(rule.name, name))
    }

    /// Whether it cannot take actions and reactions.
    #[must_use]
    pub fn is_incapacitated(&self) -> bool {
        self.condition_rules().iter().any(|(rule, _)| rule.incapacitated)
    }

    /// Whether it is immune to the condition.
    #[must_use]
    pub fn is_immune_to_condition(&self, name: &str) -> bool {
        self.condition_immunities.iter().any(|c| same(c, name))
    }

    /// The level of exhaustion, 0 to 6 (SRD 5.1, "Exhaustion").
    #[must_use]
    pub fn exhaustion(&self) -> i32 {
        let levels = self.conditions.iter().filter(|c| same(&c.name, "exhaustion")).map(|c| c.level.unwrap_or(1));
        levels.max().unwrap_or(0).clamp(0, 6)
    }
}
