//! Sums of dice as they stand in tables and on sheets: `2d6+3`, `1d8`, `1`, `1d6+1d4`, `ceil(level/2)d6`.
//!
//! This is not the formula engine of `crate::dice`: a damage expression is a plain sum, because its dice have to be
//! doubled, rerolled and counted by the rules.

use super::damage_type;

/// Most dice one expression may ask for.
pub const DICE_MAX: u32 = 200;
/// Most sides a die may have.
pub const FACES_MAX: u32 = 1_000;
/// The largest constant either way.
const FLAT_MAX: i64 = 1_000_000;

/// Dice of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DicePool {
    /// How many.
    pub count: u32,
    /// How many sides.
    pub faces: u32,
}

/// A sum of dice and a constant, perhaps with the damage type it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamageDice {
    /// The dice, in the order they are written and rolled.
    pub pools: Vec<DicePool>,
    /// The constant, which a critical hit does not double.
    pub flat: i32,
    /// The damage type written behind the sum (`1d6 necrotic`).
    pub damage_type: Option<&'static str>,
}

impl DamageDice {
    /// Reads a sum of dice and whole numbers.
    ///
    /// `None` when it is anything else, or asks for more than [`DICE_MAX`] dice or [`FACES_MAX`] sides.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::scaled(text, 0)
    }

    /// Like [`DamageDice::parse`], and `level`, `level/N`, `ceil(level/N)` and `floor(level/N)` (down) stand for numbers.
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

    /// How many dice there are altogether.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.pools.iter().fold(0, |n, p| n.saturating_add(p.count))
    }
}

/// A whole number, or one of the ways to say a number that grows with the level.
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

/// Dice as they are written: `4d6`, `1d8+1d6`, nothing when there are none.
pub(crate) fn written(pools: &[DicePool]) -> String {
    let mut text = String::new();
    for pool in pools.iter().filter(|p| p.count > 0) {
        if !text.is_empty() {
            text.push('+');
        }
        text.push_str(&format!("{}d{}", pool.count, pool.faces));
    }
    text
}
