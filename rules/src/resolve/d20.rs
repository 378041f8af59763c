//! One d20 roll: advantage, modifiers, and the reasons for them.
//!
//! A roll has two steps, because all rolls' d20s come before any bonus die.

use super::{Automatic, DieShown, Modifier, StateChange, outcome::Text, summary};
use crate::srd::Advantage;
use crate::{
    dice::{Dice, OutOfDice},
    sheet::Creature,
};

/// A die that is added to or subtracted from a roll, such as that of Bless.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BonusDie {
    pub(crate) label: &'static str,
    /// The number of sides; negative if the die is subtracted.
    pub(crate) faces: i32,
}

/// A d20 roll, first prepared and then made.
#[derive(Clone, Debug, Default)]
pub(crate) struct D20Test {
    /// The key of the creature that rolls.
    pub(crate) by: String,
    advantages: u32,
    disadvantages: u32,
    pub(crate) modifiers: Vec<Modifier>,
    pub(crate) bonus_dice: Vec<BonusDie>,
    pub(crate) reasons: Vec<Text>,
    /// Whether a 1 is rerolled (halflings).
    pub(crate) lucky: bool,
    /// A lower d20 counts as this value (Reliable Talent).
    pub(crate) at_least: u32,
    pub(crate) automatic: Option<Automatic>,
    /// The changes for what the roll uses up.
    pub(crate) spent: Vec<StateChange>,
    pub(crate) shown: Vec<DieShown>,
    die: u32,
}

impl D20Test {
    /// A roll of this creature.
    pub(crate) fn by(creature: &Creature) -> Self {
        let lucky = creature.has_trait("halfling", "Halfling Lucky");
        Self { by: creature.key().to_owned(), lucky, ..Self::default() }
    }

    pub(crate) fn lean(&mut self, lean: Advantage, why: impl FnOnce() -> Text) {
        let word = match lean {
            Advantage::None => return,
            Advantage::Advantage => {
                self.advantages += 1;
                "advantage"
            }
            Advantage::Disadvantage => {
                self.disadvantages += 1;
                "disadvantage"
            }
        };
        self.reasons.push(format!("{word}: {}", why()).into());
    }

    pub(crate) fn disadvantage(&mut self, why: &'static str) {
        self.lean(Advantage::Disadvantage, || why.into());
    }

    pub(crate) fn advantage_for(&mut self, why: &'static str) {
        self.lean(Advantage::Advantage, || why.into());
    }

    /// The result of all sources: if there is both advantage and disadvantage, neither (SRD 5.1, "Advantage and
    /// Disadvantage").
    pub(crate) const fn advantage(&self) -> Advantage {
        match (self.advantages, self.disadvantages) {
            (1.., 0) => Advantage::Advantage,
            (0, 1..) => Advantage::Disadvantage,
            _ => Advantage::None,
        }
    }

    pub(crate) fn add(&mut self, label: impl Into<Text>, value: i32) {
        self.modifiers.push(Modifier { label: label.into(), value });
    }

    /// Makes the roll fail or succeed without dice. Failure takes precedence.
    pub(crate) fn settle(&mut self, how: Automatic, why: impl Into<Text>) {
        if self.automatic != Some(Automatic::Failure) {
            self.automatic = Some(how);
        }
        self.reasons.push(why.into());
    }

    /// First step: rolls the d20s.
    pub(crate) fn roll(&mut self, dice: &mut dyn Dice) -> Result<(), OutOfDice> {
        if self.automatic.is_some() {
            return Ok(());
        }
        let lean = self.advantage();
        let count = if lean == Advantage::None { 1 } else { 2 };
        let first = self.shown.len();
        for _ in 0..count {
            let value = dice.roll(20)?;
            self.shown.push(DieShown { faces: 20, value, kept: true, label: None, by: None });
        }
        if self.lucky
            && let Some(one) = self.shown[first..].iter_mut().find(|d| d.value == 1)
        {
            one.kept = false;
            let value = dice.roll(20)?;
            self.shown.push(DieShown { faces: 20, value, kept: true, label: Some("Lucky".into()), by: None });
            self.reasons.push("Lucky: a 1 was rolled again".into());
        }
        self.keep_one(first, lean);
        Ok(())
    }

    /// Keeps the die that counts.
    fn keep_one(&mut self, first: usize, lean: Advantage) {
        let live = || self.shown.iter().enumerate().skip(first).filter(|(_, d)| d.kept);
        let kept = match lean {
            Advantage::Disadvantage => live().min_by_key(|(_, d)| d.value),
            // Of equal dice the first one, not the last.
            _ => live().rev().max_by_key(|(_, d)| d.value),
        };
        let Some((kept, value)) = kept.map(|(at, d)| (at, d.value)) else { return };
        for (at, die) in self.shown.iter_mut().enumerate().skip(first) {
            die.kept = at == kept;
        }
        self.die = value;
        if value < self.at_least {
            self.die = self.at_least;
            self.reasons.push(format!("Reliable Talent: {value} counts as {}", self.at_least).into());
        }
    }

    /// Second step: rolls bonus dice.
    pub(crate) fn roll_bonus(&mut self, dice: &mut dyn Dice) -> Result<(), OutOfDice> {
        if self.automatic.is_some() {
            return Ok(());
        }
        for at in 0..self.bonus_dice.len() {
            let BonusDie { label, faces } = self.bonus_dice[at];
            let sides = faces.unsigned_abs().max(1);
            let value = dice.roll(sides)?;
            self.shown.push(DieShown { faces: sides, value, kept: true, label: Some(label.into()), by: None });
            let value = i32::try_from(value).unwrap_or(i32::MAX);
            self.add(label, if faces < 0 { -value } else { value });
        }
        Ok(())
    }

    /// The d20 that counts; 0 if none was rolled.
    pub(crate) const fn die(&self) -> u32 {
        self.die
    }

    /// The sum of the modifiers.
    pub(crate) fn modifier(&self) -> i32 {
        self.modifiers.iter().fold(0, |sum, m| sum.saturating_add(m.value))
    }

    /// The d20 plus modifiers; 0 if none was rolled.
    pub(crate) fn total(&self) -> i32 {
        if self.automatic.is_some() {
            return 0;
        }
        i32::try_from(self.die).unwrap_or(i32::MAX).saturating_add(self.modifier())
    }

    /// Whether the roll reaches a DC. Equal is enough.
    pub(crate) fn reaches(&self, dc: i32) -> bool {
        match self.automatic {
            Some(Automatic::Failure) => false,
            Some(Automatic::Success) => true,
            None => self.total() >= dc,
        }
    }

    pub(crate) fn components(&self) -> String {
        summary::components(&self.modifiers, self.modifier())
    }
}
