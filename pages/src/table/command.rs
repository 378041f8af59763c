//! Commands at the beginning of what is written at the table, such as `/roll 1d20`.

/// The text after the first word, if that word is one of these commands. Upper and lower case are the same.
#[must_use]
pub(crate) fn rest<'t>(text: &'t str, commands: &[&str]) -> Option<&'t str> {
    commands.iter().find_map(|command| {
        let (head, rest) = text.split_at_checked(command.len())?;
        let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
        (head.eq_ignore_ascii_case(command) && ends).then(|| rest.trim())
    })
}
