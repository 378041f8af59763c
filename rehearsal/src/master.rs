//! The tool calls of a game master's turn: rolls dice and posts a message on cue, and reads the chat if there is news.
//!
//! The cues are in the `<instruction>` of the turn's own message. What players wrote is ignored. To teach it another tool, add
//! a cue to `call`.

use serde_json::{Value, json};

use crate::scene;
use crate::schema::contains_word;

/// The beginning of the text that tells a session's AI to take its turn.
const TURN: &str = "Take your turn as ";
/// The maximum length of a message, in characters.
const POST_CHARS_MAX: usize = 400;
/// The formula to roll if none is given.
const FORMULA: &str = "1d20";
/// Words that are followed by the text to post.
const POST: &[&str] = &["post", "announce", "say"];

/// The tool call for this turn, if its message has a cue for an offered tool.
pub(crate) fn call(last_user: &str, offers: impl Fn(&str) -> bool) -> Option<(&'static str, Value)> {
    let (told, turn) = last_user.rsplit_once(TURN)?;
    let instruction = turn.split_once("<instruction>").and_then(|(_, rest)| rest.split_once("</instruction>"));
    let instruction = instruction.map_or("", |(inside, _)| inside).trim();
    let lower = instruction.to_lowercase();
    if contains_word(&lower, "roll") && offers("roll_dice") {
        let formula = lower.split_whitespace().find_map(formula).unwrap_or_else(|| FORMULA.to_owned());
        return Some(("roll_dice", json!({ "rolls": [{ "formula": formula }] })));
    }
    let posted = POST.iter().find(|word| contains_word(&lower, word)).filter(|_| offers("post_message"));
    if let Some(word) = posted {
        let after = lower.find(word).map_or(0, |at| at + word.len());
        let text = instruction.get(after..).unwrap_or_default().trim_start_matches([':', ' ', ',']);
        let text = scene::clean_line(text, POST_CHARS_MAX);
        let content = if text.is_empty() { "The game goes on.".to_owned() } else { text };
        return Some(("post_message", json!({ "content": content })));
    }
    let news = told.contains("\"NewMessages\"") && offers("get_message_history");
    news.then(|| ("get_message_history", json!({ "count": 15 })))
}

/// A word that is a dice formula.
pub(crate) fn formula(word: &str) -> Option<String> {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let legal = word.chars().all(|c| c.is_ascii_digit() || "dkhl+-".contains(c));
    let (count, faces) = word.split_once('d')?;
    let counted = count.chars().all(|c| c.is_ascii_digit()) && faces.starts_with(|c: char| c.is_ascii_digit());
    (legal && counted).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cue(instruction: &str) -> Option<(&'static str, Value)> {
        call(&format!("Take your turn as Game Master.\n<instruction>\n{instruction}\n</instruction>\n"), |_| true)
    }

    #[test]
    fn cues_call_tools() {
        assert_eq!(cue("Roll 2d6+3, please."), Some(("roll_dice", json!({ "rolls": [{ "formula": "2d6+3" }] }))));
        assert_eq!(cue("Roll for it"), Some(("roll_dice", json!({ "rolls": [{ "formula": "1d20" }] }))));
        assert_eq!(cue("Post: The bell rings."), Some(("post_message", json!({ "content": "The bell rings." }))));
        assert_eq!(cue("Describe the troll"), None);
        assert_eq!(call("I roll 1d20", |_| true), None);
        let news = "{ \"NewMessages\": 2 }\nTake your turn as Game Master.\n";
        assert_eq!(call(news, |_| true).map(|(tool, _)| tool), Some("get_message_history"));
        assert_eq!(call(news, |_| false), None);
    }
}
