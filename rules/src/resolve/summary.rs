//! An outcome as text, in lines for a narrator.

use std::fmt::Write;

use super::{DamageRow, Modifier, Outcome};

/// A number with its sign.
pub(crate) fn signed(value: i32) -> String {
    let mut text = String::with_capacity(4);
    push_signed(&mut text, value);
    text
}

fn push_signed(text: &mut String, value: i32) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{value:+}");
}

/// Modifiers as text. Those that are not an ability, proficiency or a weapon's bonus are summed as `Effects`.
pub(crate) fn components(modifiers: &[Modifier], sum: i32) -> String {
    let mut text = String::with_capacity(48);
    let mut effects = 0_i32;
    let mut any = false;
    for modifier in modifiers {
        if !is_plain(&modifier.label) {
            any = true;
            effects = effects.saturating_add(modifier.value);
            continue;
        }
        push(&mut text, &modifier.label, modifier.value);
    }
    if any {
        push(&mut text, "Effects", effects);
    }
    if !text.is_empty() {
        text.push_str(" = ");
        push_signed(&mut text, sum);
    }
    text
}

fn push(text: &mut String, label: &str, value: i32) {
    if !text.is_empty() {
        text.push_str(", ");
    }
    text.push_str(label);
    text.push(' ');
    push_signed(text, value);
}

fn is_plain(label: &str) -> bool {
    const PLAIN: [&str; 12] =
        ["STR", "DEX", "CON", "INT", "WIS", "CHA", "NONE", "Prof", "Expertise", "Half Prof", "Bonus", "Effects"];
    PLAIN.contains(&label)
}

/// The seven lines, or only the check and the notes if nothing was rolled.
pub(crate) fn raw(outcome: &Outcome) -> String {
    if outcome.impossible || outcome.no_check {
        return format!("CHECK: {}\nNOTES: {}", outcome.check_type, outcome.notes);
    }
    let mut text = String::with_capacity(256);
    let result = if outcome.success { "SUCCESS" } else { "FAILURE" };
    let _ = write!(
        text,
        "CHECK: {}\nCOMPONENTS: {}\nROLL: {} + {} = {}\nDC/AC: {}\nRESULT: {result}\nDAMAGE: ",
        outcome.check_type,
        outcome.components,
        outcome.die_result,
        outcome.total_modifier,
        if outcome.die_result == 0 { 0 } else { outcome.total },
        outcome.dc_or_ac
    );
    match &outcome.damage {
        Some(damage) if !damage.breakdown.is_empty() => text.push_str(&rows_as_text(&damage.breakdown)),
        _ => text.push_str("N/A"),
    }
    text.push_str("\nNOTES: ");
    text.push_str(&outcome.notes);
    text
}

/// Damage as text: each source with its dice, its constant and its type.
pub(crate) fn rows_as_text<'a>(rows: impl IntoIterator<Item = &'a DamageRow>) -> String {
    let mut text = String::new();
    for (at, row) in rows.into_iter().enumerate() {
        if at > 0 {
            text.push_str("; ");
        }
        text.push_str(&row.label);
        text.push_str(": ");
        text.push_str(&row.dice);
        if row.flat_bonus != 0 || row.dice.is_empty() {
            push_signed(&mut text, row.flat_bonus);
        }
        if let Some(kind) = &row.damage_type {
            text.push(' ');
            text.push_str(kind);
        }
    }
    text
}
