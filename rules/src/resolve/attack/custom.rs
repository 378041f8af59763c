//! Custom damage sources: features with a formula on the sheet.

use crate::{
    resolve::{outcome::Text, rows::Row},
    sheet::Creature,
    srd::DamageDice,
};

/// Splits a requested source into its name and the number after it.
pub(crate) fn split(source: &str) -> (&str, Option<i32>) {
    let source = source.trim();
    match source.rsplit_once(' ') {
        Some((name, number)) => match number.parse() {
            Ok(number) => (name.trim(), Some(number)),
            Err(_) => (source, None),
        },
        None => (source, None),
    }
}

/// The damage row for a feature's formula, or why there is none.
pub(crate) fn row(actor: &Creature, source: &str, damage_type: &Text) -> Result<Row, String> {
    let feature = actor.feature(source).or_else(|| actor.feature(split(source).0));
    let feature = feature.ok_or_else(|| format!("refused: {source}, it is not on the sheet"))?;
    let formula = feature.scaling_formula.as_deref().filter(|f| !f.trim().is_empty());
    let formula = formula.ok_or_else(|| format!("refused: {source}, it has no scaling_formula"))?;
    let dice = DamageDice::scaled(formula, actor.level)
        .ok_or_else(|| format!("refused: {source}, \"{formula}\" is not a sum of dice"))?;
    Ok(Row::of(feature.name.clone(), dice, damage_type.clone()))
}

/// The rows for all sources requested with a spell, where only custom sources apply.
pub(crate) fn custom_rows(
    actor: &Creature,
    sources: &[String],
    damage_type: &Text,
    reasons: &mut Vec<Text>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for source in sources {
        match row(actor, source, damage_type) {
            Ok(row) => rows.push(row),
            Err(why) => reasons.push(why.into()),
        }
    }
    rows
}
