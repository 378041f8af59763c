//! Converts texts of cards and lorebooks: fills in macros, removes decorators, and turns keys into keywords that we can
//! find.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use base::{json, text::on_one_line};

/// The largest number of keys or tags in one entry.
const WORDS_MAX: usize = 100;
const LINE_CHARS_MAX: usize = 200;

/// The largest number of unknown macros that are reported for one text, and how far each is read to find its end.
const MACROS_NAMED_MAX: usize = 10;
const MACRO_CHARS_READ: usize = 200;

/// The longest macro name in bytes, up to its colon. We know no longer ones.
const MACRO_BYTES_MAX: usize = 40;

/// Fills in the macros of a text, up to `chars_max` characters: `{{char}}` becomes the character's name, `{{user}}`
/// becomes the player, and a choice becomes its first option. Unknown macros stay as they are. The inserted text is not
/// read for macros again, so a name cannot make a text grow without limit.
#[must_use]
pub fn plain(text: &str, character: &str, chars_max: usize) -> String {
    fill(text, chars_max, |name, value| match name {
        "char" => Some(character.to_owned().into()),
        "user" => Some("the player".into()),
        "random" | "pick" => choices(value).next().map(Into::into),
        _ => same_for_all(name, value),
    })
}

/// Replaces the macros of a text, up to `chars_max` characters. `meaning` gets a macro's name in lower case and the text
/// after its colon. A macro without a meaning stays as it is. The inserted text is not read for macros again.
#[must_use]
pub fn fill<'a>(
    text: &'a str,
    chars_max: usize,
    mut meaning: impl FnMut(&str, &'a str) -> Option<Cow<'a, str>>,
) -> String {
    let mut out = Out { text: String::new(), left: chars_max };
    let mut rest = text;
    // The position of the next `}}`, counted from the end; none if there is no more.
    let mut close = rest.find("}}").map(|at| rest.len() - at);
    while out.left > 0
        && let Some(at) = rest.find(['{', '<'])
    {
        let (before, here) = rest.split_at(at);
        out.push(before);
        if let Some((length, meant)) = tag_at(here).and_then(|(length, name)| Some((length, meaning(name, "")?))) {
            out.push(&meant);
            rest = here.get(length..).unwrap_or_default();
            continue;
        }
        if let Some(after) = here.strip_prefix("{{") {
            if close.is_some_and(|end| end > after.len()) {
                close = after.find("}}").map(|at| after.len() - at);
            }
            let inside = close.and_then(|end| after.get(..after.len() - end));
            let meant = inside.and_then(|inside| {
                let (name, value) = parts(inside)?;
                Some((inside, meaning(&name, value)?))
            });
            if let Some((inside, meant)) = meant {
                out.push(&meant);
                rest = after.get(inside.len() + 2..).unwrap_or_default();
                continue;
            }
        }
        let (first, after) = here.split_at(1);
        out.push(first);
        rest = after;
    }
    out.push(rest);
    out.text
}

/// Words in angle brackets from older cards, in any case, and the macros that they stand for.
const TAGS: [(&str, &str); 4] = [("<char>", "char"), ("<bot>", "char"), ("<user>", "user"), (SEPARATOR, SEPARATOR)];
/// Stands between the dialogues of an example. It is for programs, and no model reads it.
const SEPARATOR: &str = "<start>";

/// The tag that a text begins with: its length, and the macro that it stands for.
fn tag_at(text: &str) -> Option<(usize, &'static str)> {
    let is_here = |tag: &str| text.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag));
    TAGS.iter().find(|(tag, _)| is_here(tag)).map(|(tag, name)| (tag.len(), *name))
}

/// Whether a text may have macros.
#[must_use]
pub fn has_macros(text: &str) -> bool {
    text.contains("{{") || text.match_indices('<').any(|(at, _)| text.get(at..).and_then(tag_at).is_some())
}

/// The dialogues of an example, without those that are empty.
pub fn dialogues(example: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(example);
    let each = std::iter::from_fn(move || {
        let text = rest?;
        let is_separator = |at: &usize| text.get(*at..).and_then(tag_at).is_some_and(|(_, name)| name == SEPARATOR);
        let at = text.match_indices('<').map(|(at, _)| at).find(is_separator);
        rest = at.and_then(|at| text.get(at + SEPARATOR.len()..));
        text.get(..at.unwrap_or(text.len()))
    });
    each.map(str::trim).filter(|dialogue| !dialogue.is_empty())
}

/// A text that is being written, and how many more characters fit.
struct Out {
    text: String,
    left: usize,
}

impl Out {
    fn push(&mut self, text: &str) {
        let text = within(text, self.left);
        self.left -= text.chars().count();
        self.text.push_str(text);
    }
}

/// The names of macros that we do not know: the first few, each once.
#[must_use]
pub fn unknown_macros(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("{{") {
        rest = after;
        let Some((inside, _)) = within(after, MACRO_CHARS_READ).split_once("}}") else { continue };
        let inside = inside.rsplit("{{").next().unwrap_or_default();
        let name = inside.split(':').next().unwrap_or_default().trim();
        let is_name = !name.is_empty() && name.len() <= MACRO_BYTES_MAX && !name.contains(['{', '}', '\n']);
        let name = name.to_lowercase();
        let is_known = matches!(&*name, "char" | "user" | "random" | "pick")
            || name.starts_with("//")
            || same_for_all(&name, "").is_some();
        if is_name && !is_known && !names.contains(&name) && names.len() < MACROS_NAMED_MAX {
            names.push(name);
        }
    }
    names
}

/// The name of a macro, in lower case, and the text after its colon. None if it is none that we could know.
fn parts(inside: &str) -> Option<(Cow<'static, str>, &str)> {
    let head = inside.get(..inside.floor_char_boundary(MACRO_BYTES_MAX)).unwrap_or(inside);
    if head.trim_start().starts_with("//") {
        return Some(("comment".into(), ""));
    }
    let (name, value) = match head.split_once(':') {
        Some((name, _)) => (name, inside.get(name.len() + 1..).unwrap_or_default()),
        None if head.len() < inside.len() => return None,
        None => (head, ""),
    };
    Some((name.trim().to_lowercase().into(), value))
}

/// The meaning of macros that depend on nothing but their text.
#[must_use]
pub fn same_for_all<'a>(name: &str, value: &'a str) -> Option<Cow<'a, str>> {
    match name {
        "comment" | "hidden_key" | SEPARATOR => Some("".into()),
        "reverse" => Some(value.chars().rev().collect::<String>().into()),
        _ => None,
    }
}

/// The choices of a macro: `a, b`, where `\,` is a comma, or `:a::b` after a macro's colon.
pub fn choices(value: &str) -> impl Iterator<Item = String> {
    let (by_colons, by_commas) = match value.strip_prefix(':') {
        Some(choices) => (Some(choices.split("::")), None),
        None => (None, Some(at_commas(value))),
    };
    let plain = |choice: &str| choice.trim().replace("\\,", ",");
    by_colons.into_iter().flatten().chain(by_commas.into_iter().flatten()).map(plain)
}

/// Splits a text at its commas, except `\,`.
fn at_commas(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.match_indices(',').find(|(at, _)| !text.get(..*at).is_some_and(|b| b.ends_with('\\')));
        let Some((end, _)) = end else { return rest.take() };
        rest = text.get(end + 1..);
        text.get(..end)
    })
}

/// Splits the decorators off the first lines of an entry: `@@name value`. `@@@name` is a fallback for the line before
/// it. From such a group we use the first decorator that is `known`, or else the first. If a name occurs twice, the
/// first one counts, except that `additional_keys` add up (Character Card V3).
pub fn decorators(content: &str, known: impl Fn(&str, &str) -> bool) -> (Vec<(&str, &str)>, &str) {
    let mut found: Vec<(&str, &str)> = Vec::new();
    let mut rest = content;
    // Whether the last group already has a known decorator.
    let mut is_settled = true;
    while let Some(line) = rest.strip_prefix("@@") {
        let (line, after) = line.split_once('\n').unwrap_or((line, ""));
        rest = after;
        let is_fallback = line.starts_with('@');
        let line = line.trim_start_matches('@').trim();
        let (name, value) = line.split_once(char::is_whitespace).map_or((line, ""), |(n, value)| (n, value.trim()));
        let is_known = known(name, value);
        if is_fallback && !is_settled && is_known {
            found.pop();
        } else if is_fallback && !found.is_empty() {
            continue;
        }
        is_settled = is_known;
        if name == "additional_keys" || !found.iter().any(|(other, _)| *other == name) {
            found.push((name, value));
        }
    }
    (found, rest)
}

/// A name on one line, whose length is limited.
#[must_use]
pub fn line(text: &str) -> String {
    within(&on_one_line(text), LINE_CHARS_MAX).trim().to_owned()
}

/// Whether [`line()`] cuts off a part of this name.
#[must_use]
pub fn is_cut(text: &str) -> bool {
    text.trim().chars().nth(LINE_CHARS_MAX).is_some()
}

/// The first `chars_max` characters of a text.
#[must_use]
pub fn within(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// Keys, converted to keywords.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Keys {
    pub words: Vec<String>,
    /// How many regular expressions were replaced by the few words that they match.
    pub spelled_out: u32,
    /// How many regular expressions could not be replaced.
    pub unknown: u32,
    /// How many keys were beyond the limit.
    pub too_many: u32,
    /// How many keys were cut off.
    pub cut: u32,
}

/// Converts keys. `/…/flags` is a regular expression.
#[must_use]
pub fn keys<'a>(given: impl Iterator<Item = &'a str>) -> Keys {
    let mut keys = Keys::default();
    for key in given {
        let found = match expression(key) {
            None => {
                keys.cut += u32::from(is_cut(key));
                vec![line(key)]
            }
            Some(pattern) => match literals(pattern) {
                Some(words) => {
                    keys.spelled_out += 1;
                    words.iter().map(|w| line(w)).collect()
                }
                None => {
                    keys.unknown += 1;
                    Vec::new()
                }
            },
        };
        for word in found.into_iter().filter(|w| !w.is_empty()) {
            if keys.words.contains(&word) {
            } else if keys.words.len() < WORDS_MAX {
                keys.words.push(word);
            } else {
                keys.too_many += 1;
            }
        }
    }
    keys
}

/// The pattern of a key, if it is a regular expression.
fn expression(key: &str) -> Option<&str> {
    let (pattern, flags) = key.trim().strip_prefix('/')?.rsplit_once('/')?;
    (!pattern.is_empty() && flags.bytes().all(|f| b"gimsuy".contains(&f))).then_some(pattern)
}

/// All texts that a pattern matches, if there are only a few.
fn literals(pattern: &str) -> Option<Vec<String>> {
    use regex_syntax::hir::literal::Extractor;
    if pattern.len() > 1000 {
        return None;
    }
    let hir = regex_syntax::ParserBuilder::new().nest_limit(20).build().parse(pattern).ok()?;
    let found = Extractor::new().limit_class(4).limit_total(50).limit_literal_len(LINE_CHARS_MAX).extract(&hir);
    let exact = found.is_exact().then(|| found.literals())??;
    let words: Option<Vec<String>> = exact.iter().map(|l| String::from_utf8(l.as_bytes().to_vec()).ok()).collect();
    words.filter(|words| !words.is_empty() && words.iter().all(|w| !w.trim().is_empty()))
}

/// Removes the largest members until the rest has at most `bytes_max` bytes of JSON. Returns the names of those
/// removed.
pub fn lighten(members: &mut Map<String, Value>, bytes_max: usize) -> Vec<String> {
    let size = |value: &Value| serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len());
    let mut total: usize = members.iter().map(|(name, value)| name.len() + size(value) + 8).sum();
    let mut gone = Vec::new();
    while total > bytes_max {
        let largest = members.iter().max_by_key(|(_, value)| size(value)).map(|(name, _)| name.clone());
        let Some((name, value)) = largest.and_then(|name| members.remove_entry(&name)) else { break };
        total -= name.len() + size(&value) + 8;
        gone.push(name);
    }
    gone
}

/// A member as text; empty if it is not text.
#[must_use]
pub fn string<'a>(members: &'a Map<String, Value>, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A member as a list of texts. Some programs write a single text with commas instead.
#[must_use]
pub fn list<'a>(members: &'a Map<String, Value>, name: &str) -> Vec<&'a str> {
    match members.get(name) {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => split(text),
        _ => Vec::new(),
    }
}

/// Splits a text at its commas.
#[must_use]
pub fn split(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// True or false, also as 1 or 0, or in words.
#[must_use]
pub fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(is_on) => Some(*is_on),
        Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// A number, also as text.
#[must_use]
pub fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => {
            let text = text.trim();
            let whole = text.parse::<i64>().ok().map(Number::from);
            whole.or_else(|| Number::from_f64(text.parse().ok().filter(|n: &f64| n.abs() < json::NUMBER_MAX)?))
        }
        _ => None,
    }
}

/// Makes texts of numbers and of true and false, in members that are texts or lists of texts.
pub fn spell(members: &mut Map<String, Value>, names: &[&str]) {
    let spell = |value: &mut Value| {
        if matches!(value, Value::Number(_) | Value::Bool(_)) {
            *value = value.to_string().into();
        }
    };
    for name in names {
        match members.get_mut(*name) {
            Some(Value::Array(items)) => items.iter_mut().for_each(spell),
            Some(value) => spell(value),
            None => {}
        }
    }
}

/// A number, rounded to a whole number within limits.
#[must_use]
pub fn whole(value: &Value, from: i64, to: i64) -> Option<i64> {
    let value = number(value)?;
    let number = value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|n| n.is_finite())?.clamp(-1e9, 1e9);
        #[expect(clippy::cast_possible_truncation, reason = "it was clamped")]
        Some(number.round() as i64)
    })?;
    Some(number.clamp(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        plain(text, "Ann", 100)
    }

    #[test]
    fn macros_are_filled_in() {
        for (text, wanted) in [
            ("", ""),
            (
                "{{char}}, <bot> and <char> meet {{ USER }}, <user>, <USER>.",
                "Ann, Ann and Ann meet the player, the player, the player.",
            ),
            ("{{random: red , blue}} {{pick:one}} {{reverse:abc}}{{// {{char}} not shown}}", "red one cba not shown}}"),
            ("{{comment:x}}{{hidden_key:y}}{{//z}}", ""),
            ("{{unknown:{{char}}}} <b> { {{ {{char}} {{", "{{unknown:Ann}} <b> { {{ Ann {{"),
            ("no end {{char", "no end {{char"),
            ("äß{{char}}漢<bot>", "äßAnn漢Ann"),
            ("{{random::red::blue}} {{pick: one\\, two , three}} {{random:a\\,b}} {{random::}}", "red one, two a,b "),
        ] {
            assert_eq!(filled(text), wanted, "{text}");
        }
    }

    #[test]
    fn macros_that_we_do_not_know_are_named() {
        let text = "{{char}} {{Time}} {{roll:d6}} {{getvar::x}} {{time}} {{outer:{{roll:2}}}} {{}} {{ no end";
        assert_eq!(unknown_macros(text), ["time", "roll", "getvar"]);
        assert!(unknown_macros("{{user}}{{// x}}{{random:a,b}} { a } }}").is_empty());
        assert_eq!(unknown_macros(&"{{".repeat(300_000)), Vec::<String>::new());
    }

    #[test]
    fn what_is_put_in_is_not_read_again_and_there_is_an_end() {
        assert_eq!(plain("<char>{{char}}", "A<bot>{{char}}", 100), "A<bot>{{char}}A<bot>{{char}}");
        assert_eq!(plain("{{random:<bot>,b}}", "x", 100), "<bot>");
        let name = "<bot>".repeat(40);
        assert_eq!(plain(&"<char>".repeat(100_000), &name, 501).len(), 501);
        assert_eq!(plain(&"ü".repeat(600), "x", 501).chars().count(), 501);
        // None of these may be read more than once.
        for bomb in ["{{", "{{{{}}", "{{a:", "<", "{{}}{{", "{{//", "{{  "] {
            let text = bomb.repeat(300_000);
            assert!(plain(&text, "x", usize::MAX).len() <= text.len());
        }
    }

    #[test]
    fn fallbacks_and_the_order_of_decorators_are_those_of_the_cards() {
        let known = |name: &str, value: &str| {
            matches!(name, "activate" | "additional_keys") || name == "scan_depth" && value != "x"
        };
        for (text, wanted) in [
            ("@@odd 1\n@@@scan_depth 3\n@@@activate\ntext", vec![("scan_depth", "3")]),
            ("@@odd\n@@@older\n@@@activate\ntext", vec![("activate", "")]),
            ("@@scan_depth 2\n@@@activate\ntext", vec![("scan_depth", "2")]),
            ("@@scan_depth x\n@@@scan_depth 4\ntext", vec![("scan_depth", "4")]),
            ("@@scan_depth 2\n@@scan_depth 5\ntext", vec![("scan_depth", "2")]),
            (
                "@@additional_keys a\n@@additional_keys b\ntext",
                vec![("additional_keys", "a"), ("additional_keys", "b")],
            ),
            ("@@odd\n@@@stranger\ntext", vec![("odd", "")]),
        ] {
            assert_eq!(decorators(text, known), (wanted, "text"), "{text}");
        }
    }

    #[test]
    fn a_path_is_no_regular_expression() {
        for key in ["/usr/bin", "/a/x", "//", "a/b/i", "/"] {
            assert_eq!(keys([key].into_iter()), Keys { words: vec![key.to_owned()], ..Keys::default() });
        }
        let found = keys(["/a|b/", "/C[de]/i", "/.*/", "a"].into_iter());
        assert_eq!(
            (&*found.words, found.spelled_out, found.unknown),
            (&["a", "b", "Cd", "Ce"].map(String::from)[..], 2, 1)
        );
    }

    #[test]
    fn keys_beyond_a_limit_are_counted() {
        let long = "x".repeat(LINE_CHARS_MAX);
        let (cut, padded) = (format!("{long}y"), format!("{long}   "));
        let found = keys([&*long, &cut, &padded].into_iter());
        assert_eq!((found.words.len(), found.cut), (1, 1));
        let many: Vec<String> = (0..WORDS_MAX + 3).map(|n| format!("key {n}")).collect();
        let found = keys(many.iter().chain(&many[..5]).map(String::as_str));
        assert_eq!((found.words.len(), found.too_many), (WORDS_MAX, 3));
    }

    #[test]
    fn the_largest_members_go_until_the_rest_fits() {
        let members = |sizes: &[(&str, usize)]| -> Map<String, Value> {
            sizes.iter().map(|(name, size)| ((*name).to_owned(), "x".repeat(*size).into())).collect()
        };
        // Each takes the bytes of its text, and 11 for its name, its quotes and what is around it.
        let all = members(&[("a", 100), ("b", 300), ("c", 200)]);
        for (bytes_max, gone) in
            [(633, &[][..]), (632, &["b"]), (322, &["b"]), (321, &["b", "c"]), (0, &["b", "c", "a"])]
        {
            let mut rest = all.clone();
            assert_eq!(lighten(&mut rest, bytes_max), gone, "{bytes_max}");
            assert_eq!(rest.len(), 3 - gone.len());
        }
    }
}
