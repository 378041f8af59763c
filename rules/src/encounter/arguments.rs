//! Checks of single arguments, and their paths.

use super::refusal::Refusal;
use crate::srd::{CONDITIONS, condition};

/// Rejects a text with too many characters.
pub(super) fn text(argument: &str, value: &str, most: usize) -> Result<(), Refusal> {
    if value.chars().count() > most {
        return Err(Refusal::argument(argument, format!("must have at most {most} characters")));
    }
    Ok(())
}

/// The path of a field. When a single participant joins, the path is only the field's name.
pub(super) fn under(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}/{field}") }
}

/// The rules' condition with this name.
pub(super) fn find_condition(argument: &str, name: &str) -> Result<&'static str, Refusal> {
    condition(name).map(|rule| rule.name).ok_or_else(|| {
        let known = CONDITIONS.iter().map(|c| c.name).collect::<Vec<_>>().join(", ");
        Refusal::argument(argument, format!("\"{name}\" is not one of {known}"))
    })
}
