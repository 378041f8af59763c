//! Commands at the beginning of what is written at the table, such as `/roll 1d20`. A text that begins with a slash and is no command is
//! refused, so that a mistyped whisper is not said aloud.

use super::dice::Readers;
use base::error::{Error, Result};

/// The most characters of a word that a refusal repeats.
const WORD_CHARS_SHOWN: usize = 30;

/// A text.
pub(crate) enum Written<'t> {
    /// It is said as it is.
    Words(&'t str),
    Command(Command<'t>),
}

/// What a command asks for.
pub(crate) enum Command<'t> {
    /// The name of who is meant, and the words.
    Whisper(&'t str),
    /// A formula, and what the roll is for.
    Roll {
        readers: Readers,
        formula: &'t str,
        what_for: &'t str,
    },
    /// What somebody does, without the name.
    Emote(&'t str),
    OutOfCharacter(&'t str),
    Help,
}

/// The commands of everybody: their names, what follows them, and what they do.
const COMMANDS: [Described; 7] = [
    (&["/w", "/whisper"], "NAME words", "whispers to that person"),
    (&["/r", "/roll"], "1d20+5 # what for", "everybody sees the roll"),
    (&["/gmroll", "/gmr"], "1d20+5", "only the game master and you see the roll"),
    (&["/blindroll"], "1d20+5", "only the game master sees the roll"),
    (&["/me"], "bows", "shows your name and the words"),
    (&["/ooc"], "words", "speaks out of character"),
    (&["/help"], "", "shows this"),
];

/// How a game master says as whom a text is said. It stands before other commands.
pub(crate) const AS: &[&str] = &["/as"];
/// The same, for the narrator.
pub(crate) const DESCRIBE: &[&str] = &["/desc"];

/// The commands of game masters.
const OF_MASTERS: [Described; 2] = [(AS, "NPC words", "the NPC says it"), (DESCRIBE, "words", "the narrator says it")];

type Described = (&'static [&'static str], &'static str, &'static str);

fn all(is_master: bool) -> impl Iterator<Item = &'static Described> {
    COMMANDS.iter().chain(OF_MASTERS.iter().filter(move |_| is_master))
}

/// Reads a text.
///
/// # Errors
/// `validation_failed` with what there is, if it begins with a slash and is no command.
pub(crate) fn parse(text: &str, is_master: bool) -> Result<Written<'_>> {
    if let Some(words) = text.strip_prefix('/').filter(|words| words.starts_with('/')) {
        return Ok(Written::Words(words));
    }
    if !text.starts_with('/') {
        return Ok(Written::Words(text));
    }
    let found = COMMANDS.iter().find_map(|(names, ..)| Some((*names.first()?, rest(text, names)?)));
    let command = match found {
        Some(("/w", rest)) => Command::Whisper(rest),
        Some(("/r", rest)) => rolling(Readers::Everybody, rest),
        Some(("/gmroll", rest)) => rolling(Readers::MasterToo, rest),
        Some(("/blindroll", rest)) => rolling(Readers::MasterAlone, rest),
        Some(("/me", rest)) => Command::Emote(words(rest)?),
        Some(("/ooc", rest)) => Command::OutOfCharacter(words(rest)?),
        Some(_) => Command::Help,
        None => {
            let word: String =
                text.split_whitespace().next().unwrap_or_default().chars().take(WORD_CHARS_SHOWN).collect();
            let there_are: Vec<&str> = all(is_master).filter_map(|(names, ..)| names.first().copied()).collect();
            return Err(refusal(format!(
                "There is no command {word}, and nothing was said. The commands are {}. To say a text that begins with a slash, write //.",
                there_are.join(", ")
            )));
        }
    };
    Ok(Written::Command(command))
}

fn rolling(readers: Readers, rest: &str) -> Command<'_> {
    let (formula, what_for) = rest.split_once('#').unwrap_or((rest, ""));
    Command::Roll { readers, formula: formula.trim(), what_for: what_for.trim() }
}

/// The words behind a command.
///
/// # Errors
/// `validation_failed` if there are none.
pub(crate) fn words(rest: &str) -> Result<&str> {
    if rest.is_empty() { Err(refusal("Write something after the command.".to_owned())) } else { Ok(rest) }
}

/// What can be written, in a line for each command.
pub(crate) fn help(is_master: bool) -> String {
    let mut lines = vec!["You can write:".to_owned()];
    lines.extend(all(is_master).map(|(names, follows, does)| {
        let space = if follows.is_empty() { "" } else { " " };
        format!("{}{space}{follows}: {does}", names.join(" or "))
    }));
    lines.push("//words: says /words".to_owned());
    lines.join("\n")
}

/// The text after the first word, if that word is one of these commands. Upper and lower case are the same.
#[must_use]
pub(crate) fn rest<'t>(text: &'t str, commands: &[&str]) -> Option<&'t str> {
    commands.iter().find_map(|command| {
        let (head, rest) = text.split_at_checked(command.len())?;
        let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
        (head.eq_ignore_ascii_case(command) && ends).then(|| rest.trim())
    })
}

/// Why a text is not said.
pub(crate) fn refusal(message: String) -> Error {
    Error::invalid("/text", "invalid_value", message)
}
