//! All ways to type a text, as a regular expression of PostgreSQL: for lists that are searched without an index.
//!
//! To fold every text of a long list would cost ten times what the search itself does. So the query is unfolded instead.

use std::collections::HashMap;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

use crate::fold::{UNSEEN, fold};

/// The most folded characters of a query that are looked for.
const CHARS_MAX: usize = 200;
/// The most characters that one stands for, such as `ﬃ` for `ffi`.
const LENGTH_MAX: usize = 3;

/// The most characters of which every way to put them together is tried.
const GROUP_MAX: usize = 6;

/// The other characters that a folded text stands for. Those of the ranges that are missing fold to themselves.
static VARIANTS: LazyLock<HashMap<String, Vec<char>>> = LazyLock::new(|| {
    let ranges = [
        'A'..='Z',
        '\u{80}'..='\u{33ff}',
        '\u{a000}'..='\u{abff}',
        '\u{f900}'..='\u{1ffff}',
        '\u{2f800}'..='\u{2fa1f}',
    ];
    let mut variants: HashMap<String, Vec<char>> = HashMap::new();
    for c in ranges.into_iter().flatten() {
        let typed = c.to_string();
        let folded = fold(&typed);
        if folded != typed && (1..=LENGTH_MAX).contains(&folded.chars().count()) {
            variants.entry(folded).or_default().push(c);
        }
    }
    variants
});

/// An expression for `~` that finds the texts which contain `text`, however both are typed. Of a very long text only the beginning is
/// looked for. It may find a letter also where a combining mark follows it.
#[must_use]
pub fn pattern(text: &str) -> String {
    let folded: Vec<char> = fold(text).chars().take(CHARS_MAX).collect();
    let mut pattern = String::new();
    let mut rest = folded.as_slice();
    while !rest.is_empty() {
        let (group, after) = rest.split_at(group_length(rest));
        write(group, &mut pattern);
        rest = after;
        if !rest.is_empty() {
            unseen(&mut pattern);
        }
    }
    pattern
}

/// How many characters at the beginning belong together, because others can stand for several of them at once.
fn group_length(folded: &[char]) -> usize {
    let (mut at, mut end) = (0, 1);
    while at < end && end < GROUP_MAX {
        let longest = together(&folded[at..]).map(|(length, _)| length).max().unwrap_or(1);
        end = end.max(at + longest);
        at += 1;
    }
    end.min(GROUP_MAX)
}

/// The characters that stand for several ones at the beginning, and for how many.
fn together(folded: &[char]) -> impl Iterator<Item = (usize, &'static [char])> {
    (2..=LENGTH_MAX.min(folded.len())).filter_map(|length| {
        let typed = VARIANTS.get(&folded[..length].iter().collect::<String>())?;
        Some((length, typed.as_slice()))
    })
}

/// Writes a group.
fn write(group: &[char], out: &mut String) {
    let Some((first, after)) = group.split_first() else { return };
    let go_on = |rest: &[char], out: &mut String| {
        if !rest.is_empty() {
            unseen(out);
            write(rest, out);
        }
    };
    let all: Vec<_> = together(group).collect();
    if !all.is_empty() {
        out.push_str("(?:");
    }
    one(*first, out);
    go_on(after, out);
    for (length, typed) in &all {
        out.push('|');
        class(typed, out);
        go_on(&group[*length..], out);
    }
    if !all.is_empty() {
        out.push(')');
    }
}

/// Writes one character: composed, or decomposed into another and a mark. Marks at different places of a letter have no order.
fn one(c: char, out: &mut String) {
    let mut typed = vec![c];
    typed.extend(VARIANTS.get(&c.to_string()).into_iter().flatten());
    let parts: Vec<char> = c.to_string().nfd().collect();
    if parts.len() == 1 {
        class(&typed, out);
        if c == 'i' {
            // The dot over it can be a mark.
            out.push_str("(?:");
            unseen(out);
            out.push_str("\u{307})?");
        }
        return;
    }
    out.push_str("(?:");
    class(&typed, out);
    for (at, mark) in parts.iter().enumerate().skip(1) {
        let others = parts.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, part)| *part);
        let rest: Vec<char> = others.nfc().collect();
        if rest.iter().copied().chain([*mark]).nfc().eq([c]) {
            out.push('|');
            rest.iter().for_each(|part| one(*part, out));
            unseen(out);
            out.push(*mark);
        }
    }
    out.push(')');
}

/// Writes that marks which nobody sees may stand here.
fn unseen(out: &mut String) {
    out.push('[');
    out.push_str(UNSEEN);
    out.push_str("]*");
}

/// Writes one of some characters.
fn class(typed: &[char], out: &mut String) {
    let is_one = typed.len() == 1;
    if !is_one {
        out.push('[');
    }
    for c in typed {
        if c.is_ascii() && !c.is_ascii_alphanumeric() {
            out.push('\\');
        }
        out.push(*c);
    }
    if !is_one {
        out.push(']');
    }
}
