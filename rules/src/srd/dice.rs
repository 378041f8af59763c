//! Sums of dice in tables and on sheets: `2d6+3`, `1d8`, `1`, `1d6+1d4`, `ceil(level/2)d6`.
//!
//! This is not the formula engine of `crate::dice`. A damage expression is a plain sum, because the rules must double,
//! reroll and count its dice.

use super::damage_type;

/// The most dice of one expression.
pub const DICE_MAX: u32 = 200;
/// The most sides of a die.
pub const FACES_MAX: u32 = 1_000;
/// The largest absolute value of a constant.
const FLAT_MAX: i64 = 1_000_000;

/// Dice of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DicePool {
    /// The number of dice.
    pub count: u32,
    /// The number of sides.
    pub faces: u32,
}

/// A sum of dice and a constant, with the damage type if the text names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamageDice {
    /// The dice in written order, which is also the order of rolling.
    pub pools: Vec<DicePool>,
    /// The constant, which a critical hit does not double.
    pub flat: i32,
    /// The damage type after the sum (`1d6 necrotic`).
    pub damage_type: Option<&'static str>,
}

impl DamageDice {
    /// Parses a sum of dice and whole numbers.
    ///
    /// `None` for anything else, or for more than [`DICE_MAX`] dice or [`FACES_MAX`] sides.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::scaled(text, 0)
    }

    /// Like [`DamageDice::parse`], but `level`, `level/N`, `ceil(level/N)` and `floor(level/N)` (rounded down) also stand
    /// for numbers.
    #[must_use]
    pub fn scaled(text: &str, level: i32) -> Option<Self> {
        let text = text.trim();
        let (sum, kind) = match text.rsplit_once(char::is_whitespace) {
            Some((sum, word)) if damage_type(word).is_some() => (sum, damage_type(word)),
            _ => (text, None),
        };
        let mut dice = Self { damage_type: kind, ..Self::default() };
        let mut rest = sum.trim();
        if rest.is_empty() {
            return None;
        }
        let mut sign = 1;
        if let Some(signed) = rest.strip_prefix(['+', '-']) {
            sign = if rest.starts_with('-') { -1 } else { 1 };
            rest = signed;
        }
        loop {
            let end = rest.find(['+', '-']).unwrap_or(rest.len());
            dice.add(rest[..end].trim(), sign, level)?;
            if end == rest.len() {
                return Some(dice);
            }
            sign = if rest[end..].starts_with('-') { -1 } else { 1 };
            rest = &rest[end + 1..];
        }
    }

    fn add(&mut self, term: &str, sign: i32, level: i32) -> Option<()> {
        let Some((count, faces)) = term.rsplit_once(['d', 'D']) else {
            let flat = i64::from(self.flat) + i64::from(sign) * number(term, level)?;
            self.flat = i32::try_from(flat.clamp(-FLAT_MAX, FLAT_MAX)).ok()?;
            return Some(());
        };
        let count = if count.trim().is_empty() { 1 } else { u32::try_from(number(count.trim(), level)?).ok()? };
        let faces = faces.trim().parse::<u32>().ok().filter(|f| (1..=FACES_MAX).contains(f))?;
        if sign < 0 || count.checked_add(self.count())? > DICE_MAX {
            return None;
        }
        self.pools.push(DicePool { count, faces });
        Some(())
    }

    /// The total number of dice.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.pools.iter().fold(0, |n, p| n.saturating_add(p.count))
    }
}

/// A whole number, or an expression that grows with the level.
fn number(text: &str, level: i32) -> Option<i64> {
    if let Ok(plain) = text.parse::<u32>() {
        return Some(i64::from(plain));
    }
    let level = i64::from(level.clamp(0, 100));
    let call = |name: &str| text.strip_prefix(name).and_then(|t| t.trim().strip_prefix('(')?.strip_suffix(')'));
    if let Some(inner) = call("ceil") {
        let by = divisor(inner)?;
        return Some((level + by - 1) / by);
    }
    let inner = call("floor").or_else(|| call("")).unwrap_or(text);
    Some(level / divisor(inner)?)
}

/// The `N` of `level/N`; 1 for `level` alone.
fn divisor(text: &str) -> Option<i64> {
    let rest = text.trim().strip_prefix("level")?.trim();
    if rest.is_empty() {
        return Some(1);
    }
    rest.strip_prefix('/')?.trim().parse::<i64>().ok().filter(|n| (1..=100).contains(n))
}

/// Writes dice as text, such as `4d6` or `1d8+1d6`; empty if there are none.
pub(crate) fn format_pools(pools: &[DicePool]) -> String {
    let mut text = String::new();
    for pool in pools.iter().filter(|p| p.count > 0) {
        if !text.is_empty() {
            text.push('+');
        }
        text.push_str(&format!("{}d{}", pool.count, pool.faces));
    }
    text
}
