//! Armor class, and how armor affects its wearer.

use std::borrow::Cow;

use super::{Creature, Worn};
use crate::srd::{Ability, Armor, ArmorCategory, Class, SHIELD_BONUS, armor, holds, magic_prefix, same};

/// An armor class, and why it differs from the sheet's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmorClass {
    /// The number that an attack must reach.
    pub total: i32,
    /// A line for each effect that changed it.
    pub reasons: Vec<Cow<'static, str>>,
}

impl Creature {
    /// The SRD armor that it wears.
    #[must_use]
    pub fn worn_armor(&self) -> Option<&'static Armor> {
        self.armor.as_ref().filter(|a| !a.name.is_empty()).and_then(|a| armor(&a.name))
    }

    /// Whether it carries a shield.
    #[must_use]
    pub fn carries_shield(&self) -> bool {
        self.shield.as_ref().is_some_and(|s| !s.name.is_empty())
    }

    /// The current armor class: the sheet's, which includes armor, shield and Dexterity, changed by effects.
    ///
    /// The Defense style counts as included, unless the sheet's number is exactly that of armor and shield alone.
    #[must_use]
    pub fn armor_class_now(&self) -> ArmorClass {
        let mut ac = ArmorClass { total: self.armor_class, reasons: Vec::new() };
        if self.has_style("Defense") && self.armor_alone() == Some(self.armor_class) {
            ac.total = ac.total.saturating_add(1);
            ac.reasons.push("AC +1: Defense".into());
        }
        for rule in self.effect_rules() {
            if let Some(base) = rule.unarmored.filter(|_| self.worn_armor().is_none()) {
                let shield = if self.carries_shield() { SHIELD_BONUS } else { 0 };
                let with = self.modifier(Ability::Dexterity).saturating_add(base + shield);
                if with > self.armor_class {
                    ac.total = ac.total.saturating_add(with.saturating_sub(self.armor_class));
                    ac.reasons.push(Cow::Owned(format!("AC {with}: {}", rule.name)));
                }
            }
            if rule.armor_class != 0 {
                ac.total = ac.total.saturating_add(rule.armor_class);
                ac.reasons.push(Cow::Owned(format!("AC {:+}: {}", rule.armor_class, rule.name)));
            }
        }
        for rule in self.effect_rules() {
            if let Some(least) = rule.armor_class_min.filter(|least| *least > ac.total) {
                ac.total = least;
                ac.reasons.push(Cow::Owned(format!("AC {least}: {}", rule.name)));
            }
        }
        ac
    }

    /// The armor class from armor, shield and Dexterity alone (SRD 5.1, "Armor Class"). `None` if it has neither armor nor shield, or
    /// its armor is not in the SRD.
    #[must_use]
    pub fn armor_class_worn(&self) -> Option<i32> {
        let suit = self.worn_armor();
        let wears = self.armor.as_ref().is_some_and(|a| !a.name.is_empty());
        if suit.is_none() && (wears || !self.carries_shield()) {
            return None;
        }
        let (base, most) = suit.map_or((10, None), |suit| (suit.armor_class, suit.dexterity_max));
        let dexterity = self.modifier(Ability::Dexterity);
        let dexterity = most.map_or(dexterity, |max| if max == 0 { 0 } else { dexterity.min(max) });
        let magic = |worn: &Option<Worn>| worn.as_ref().map_or(0, |w| w.bonus.max(magic_prefix(&w.name).0));
        let shield = if self.carries_shield() { magic(&self.shield).saturating_add(SHIELD_BONUS) } else { 0 };
        Some(dexterity.saturating_add(base).saturating_add(magic(&self.armor)).saturating_add(shield))
    }

    /// [`Self::armor_class_worn`] for a creature with armor.
    fn armor_alone(&self) -> Option<i32> {
        self.worn_armor().and(self.armor_class_worn())
    }

    /// The armor or shield that it wears without proficiency (SRD 5.1, "Armor Proficiency").
    #[must_use]
    pub fn untrained_armor(&self) -> Option<&'static str> {
        if self.is_npc {
            return None;
        }
        if let (Some(worn), Some(suit)) = (&self.armor, self.worn_armor())
            && !worn.proficient.unwrap_or_else(|| self.trained_in(suit.category, suit.name))
        {
            return Some(suit.name);
        }
        let shield = self.shield.as_ref().filter(|s| !s.name.is_empty())?;
        (!shield.proficient.unwrap_or_else(|| self.trained_in_shields())).then_some("shield")
    }

    fn trained_in(&self, category: ArmorCategory, name: &str) -> bool {
        let word = match category {
            ArmorCategory::Light => "light armor",
            ArmorCategory::Medium => "medium armor",
            ArmorCategory::Heavy => "heavy armor",
        };
        let life = category == ArmorCategory::Heavy && self.class_level(Class::Cleric) > 0 && self.follows_life();
        let mut classes = Class::of_profession(&self.profession).peekable();
        classes.peek().is_none()
            || classes.any(|(class, _)| class.rule().armor.contains(&category))
            || life
            || self.listed_armor().any(|l| holds(l, word) || holds(l, "all armor") || same(l, name))
    }

    fn trained_in_shields(&self) -> bool {
        let mut classes = Class::of_profession(&self.profession).peekable();
        classes.peek().is_none()
            || classes.any(|(class, _)| class.rule().shields)
            || self.listed_armor().any(|l| holds(l, "shield"))
    }

    fn listed_armor(&self) -> impl Iterator<Item = &str> {
        self.armor_proficiencies.iter().chain(&self.weapon_proficiencies).map(String::as_str)
    }

    /// Whether it is a cleric of the Life domain, who is proficient with heavy armor.
    fn follows_life(&self) -> bool {
        self.features.iter().any(|f| {
            holds(&f.name, "life domain")
                || same(&f.name, "Disciple of Life")
                || f.chosen_option.as_deref().is_some_and(|c| holds(c, "life"))
        })
    }
}
