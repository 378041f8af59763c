//! Actions as people write them, one per line: `talk innkeeper_bob, the_cat @ Market square: A room, please.`
//!
//! A line starts with a type. Targets separated by commas, `@` with a location, and `:` with a text may follow. Only
//! the type is required. The first `:` of a line begins its text, so a location cannot contain a `:` here.

use std::collections::BTreeMap;

use world::significance::{rehearse::ACTIONS_MAX, report::ActionReport, scores};

/// The most errors that a page shows at once.
pub const ERRORS_MAX: usize = 20;

/// An action and the line in which it was written.
#[derive(Debug)]
pub struct Line {
    /// Lines are counted from 1.
    pub number: usize,
    pub text: String,
    pub report: ActionReport,
}

/// Reads all lines. Empty lines are skipped.
///
/// # Errors
/// Sentences that name the lines.
pub fn read(text: &str, player: &str, types: &BTreeMap<String, f64>) -> Result<Vec<Line>, Vec<String>> {
    let (mut lines, mut errors) = (Vec::new(), Vec::new());
    for (number, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        if lines.len() + errors.len() == ACTIONS_MAX {
            errors.push(format!("Line {number}: a rehearsal has at most {ACTIONS_MAX} actions."));
            break;
        }
        match action(text, player, types) {
            Ok(report) => lines.push(Line { number, text: text.trim().to_owned(), report }),
            Err(why) => errors.push(format!("Line {number}: {why}")),
        }
    }
    if lines.is_empty() && errors.is_empty() {
        errors.push("Write at least one action.".to_owned());
    }
    errors.truncate(ERRORS_MAX);
    if errors.is_empty() { Ok(lines) } else { Err(errors) }
}

fn action(line: &str, player: &str, types: &BTreeMap<String, f64>) -> Result<ActionReport, String> {
    let (head, said) = line.split_once(':').map_or((line, None), |(head, said)| (head, Some(said)));
    let (who, place) = head.split_once('@').map_or((head, None), |(who, place)| (who, Some(place.trim())));
    if place == Some("") {
        return Err("write a location after “@”, or leave “@” out.".to_owned());
    }
    let who = who.trim();
    let (kind, rest) = who.split_once(char::is_whitespace).unwrap_or((who, ""));
    if kind.is_empty() {
        return Err("begin with the type of the action, such as “talk”.".to_owned());
    }
    check_type(kind, types)?;
    let text = said.map(str::trim).filter(|said| !said.is_empty()).map(ToOwned::to_owned);
    Ok(ActionReport {
        player_id: player.to_owned(),
        kind: kind.to_owned(),
        targets: targets(rest.trim())?,
        location: place.map(ToOwned::to_owned),
        text,
    })
}

fn check_type(kind: &str, types: &BTreeMap<String, f64>) -> Result<(), String> {
    if types.contains_key(kind) {
        return Ok(());
    }
    let shown: String = kind.chars().take(40).collect();
    let lower = kind.to_lowercase();
    if types.contains_key(&lower) {
        return Err(format!("write “{lower}” instead of “{shown}”."));
    }
    let why = if scores::is_type(kind) { "this campaign has no such type" } else { "this is not a type of action" };
    Err(format!("“{shown}”: {why}. The list of types is on this page."))
}

fn targets(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let each = text.split(',').map(|target| match target.trim() {
        "" => Err("a target is missing before or after a comma.".to_owned()),
        target if target.contains(char::is_whitespace) => {
            let shown: String = target.chars().take(80).collect();
            Err(format!("“{shown}” is not a slug. Separate targets with commas, and begin a text with “:”."))
        }
        target => Ok(target.to_owned()),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Result<Vec<Line>, Vec<String>> {
        let types = scores::DEFAULTS.iter().map(|(name, score)| ((*name).to_owned(), *score)).collect();
        read(text, "alice", &types)
    }

    #[test]
    fn a_line_has_a_type_targets_a_place_and_a_text() {
        let all = lines("\nlook\n talk bob, the_cat @ Market square : At 5:00, @home?\nsay:\n").unwrap();
        let [look, talk, say] = &all[..] else { panic!("{all:?}") };
        assert_eq!((look.number, look.report.kind.as_str()), (2, "look"));
        assert_eq!((talk.number, &talk.report.targets), (3, &vec!["bob".to_owned(), "the_cat".to_owned()]));
        assert_eq!(talk.report.location.as_deref(), Some("Market square"));
        assert_eq!(talk.report.text.as_deref(), Some("At 5:00, @home?"));
        assert_eq!((say.report.text.as_deref(), say.report.player_id.as_str()), (None, "alice"));
    }

    #[test]
    fn an_error_names_its_line() {
        for (text, says) in [
            ("look\ndance bob", "Line 2: “dance”: this campaign has no such type."),
            ("Talk bob", "Line 1: write “talk” instead of “Talk”."),
            ("look\n\n: hello", "Line 3: begin with the type"),
            ("talk bob,,cat", "Line 1: a target is missing"),
            ("talk old bob", "Line 1: “old bob” is not a slug."),
            ("move @ : away", "Line 1: write a location"),
            ("", "Write at least one action."),
        ] {
            let errors = lines(text).unwrap_err();
            assert!(errors[0].starts_with(says), "{text}: {errors:?}");
        }
        let many = "look\n".repeat(51);
        assert_eq!(lines(&many).unwrap_err(), ["Line 51: a rehearsal has at most 50 actions."]);
        assert_eq!(lines(&"?\n".repeat(99)).unwrap_err().len(), ERRORS_MAX);
    }
}
