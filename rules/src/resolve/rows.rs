//! Damage dice: rows of a breakdown, first planned and then rolled.

use super::{Damage, DamagePart, DamageRow, DieShown, outcome::Text};
use crate::{
    dice::{Dice, OutOfDice},
    srd::{DamageDice, DicePool, format_pools, same},
};

/// Damage from one source, before rolling.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) label: Text,
    pub(crate) pools: Vec<DicePool>,
    pub(crate) flat: i32,
    /// Empty means no type.
    pub(crate) damage_type: Text,
    /// Dice that a critical hit does not double, because it added them itself.
    pub(crate) only_once: bool,
    /// Whether a 1 or 2 is rerolled once (Great Weapon Fighting).
    pub(crate) rerolls_low: bool,
}

impl Row {
    pub(crate) fn flat(label: impl Into<Text>, flat: i32, damage_type: Text) -> Self {
        Self { label: label.into(), flat, damage_type, ..Self::default() }
    }

    pub(crate) fn dice(label: impl Into<Text>, count: u32, faces: u32, damage_type: Text) -> Self {
        let pools = vec![DicePool { count, faces }];
        Self { label: label.into(), pools, damage_type, ..Self::default() }
    }

    pub(crate) fn of(label: impl Into<Text>, dice: DamageDice, damage_type: Text) -> Self {
        let damage_type = dice.damage_type.map_or(damage_type, Text::Borrowed);
        Self { label: label.into(), pools: dice.pools, flat: dice.flat, damage_type, ..Self::default() }
    }

    /// The sum that would be rolled, such as `1d8+3`; empty for none.
    pub(crate) fn sum(&self) -> String {
        let dice = format_pools(&self.pools);
        match self.flat {
            0 => dice,
            flat if dice.is_empty() => flat.to_string(),
            flat => format!("{dice}{flat:+}"),
        }
    }
}

/// Rolls rows in order. A critical hit doubles dice, but not constants.
pub(crate) fn roll(
    rows: &[Row],
    crit: bool,
    dice: &mut dyn Dice,
    shown: &mut Vec<DieShown>,
) -> Result<Damage, OutOfDice> {
    let mut breakdown = Vec::with_capacity(rows.len());
    for row in rows {
        breakdown.push(roll_row(row, crit && !row.only_once, dice, shown)?);
    }
    let total_damage = parts(&breakdown).iter().fold(0_i32, |sum, p| sum.saturating_add(p.amount));
    Ok(Damage { breakdown, total_damage, is_crit: crit, taken: None })
}

fn roll_row(row: &Row, double: bool, dice: &mut dyn Dice, shown: &mut Vec<DieShown>) -> Result<DamageRow, OutOfDice> {
    let mut pools = row.pools.clone();
    if double {
        pools.iter_mut().for_each(|p| p.count = p.count.saturating_mul(2));
    }
    let mut rolls = Vec::with_capacity(pools.iter().map(|p| p.count as usize).sum());
    let mut subtotal = row.flat;
    for pool in &pools {
        for _ in 0..pool.count {
            let mut value = dice.roll(pool.faces)?;
            let again = row.rerolls_low && value <= 2;
            show(shown, row, pool.faces, value, !again);
            if again {
                value = dice.roll(pool.faces)?;
                show(shown, row, pool.faces, value, true);
            }
            rolls.push(value);
            subtotal = subtotal.saturating_add(i32::try_from(value).unwrap_or(i32::MAX));
        }
    }
    Ok(DamageRow {
        label: row.label.to_string(),
        dice: format_pools(&pools),
        rolls,
        flat_bonus: row.flat,
        subtotal,
        damage_type: (!row.damage_type.is_empty()).then(|| row.damage_type.clone()),
    })
}

fn show(shown: &mut Vec<DieShown>, row: &Row, faces: u32, value: u32, kept: bool) {
    shown.push(DieShown { faces, value, kept, label: Some(row.label.clone()), by: None });
}

/// The damage by type, each at least 0.
pub(crate) fn parts(breakdown: &[DamageRow]) -> Vec<DamagePart> {
    let mut parts: Vec<DamagePart> = Vec::with_capacity(breakdown.len());
    for row in breakdown {
        let kind = row.damage_type.as_deref().unwrap_or_default();
        match parts.iter_mut().find(|p| same(&p.damage_type, kind)) {
            Some(part) => part.amount = part.amount.saturating_add(row.subtotal),
            None => parts.push(DamagePart { amount: row.subtotal, damage_type: kind.to_owned() }),
        }
    }
    parts.iter_mut().for_each(|p| p.amount = p.amount.max(0));
    parts
}
