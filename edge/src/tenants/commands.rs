//! The names of the commands, which a tenant's settings may list.

/// Every command, in the order of the documentation. A test compares the list with the registry.
pub const NAMES: [&str; 10] =
    ["roll", "check", "sheet.create", "sheet.show", "do", "ooc", "move", "use_skill", "rest", "pray"];

/// Checks a list of command names.
///
/// # Errors
/// A sentence for the person who wrote the setting.
pub fn are_known(names: &[String]) -> garde::Result {
    match names.iter().find(|name| !NAMES.contains(&name.as_str())) {
        None if names.len() <= NAMES.len() => Ok(()),
        None => Err(garde::Error::new("must name each command once")),
        Some(_) => Err(garde::Error::new(format!("must name existing commands: {}", NAMES.join(", ")))),
    }
}
