//! The form in which texts are compared and searched: how people type them makes no difference.

use unicode_normalization::{
    UnicodeNormalization,
    char::{decompose_canonical, is_combining_mark},
};

/// Characters that are typed in several ways, and the plain one for them.
const PLAIN: [(&str, char); 3] = [
    ("\u{2018}\u{2019}\u{201b}\u{2bc}\u{2032}\u{b4}", '\''),
    ("\u{201c}\u{201d}\u{201e}\u{201f}\u{2033}\u{ab}\u{bb}", '"'),
    ("\u{2010}\u{2011}\u{2012}\u{2013}\u{2014}\u{2015}\u{2212}", '-'),
];

/// Hyphens that only show at the end of a line, joiners, marks of direction, variants of a form.
pub(crate) const UNSEEN: &str = "\u{ad}\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{2060}\u{feff}\u{fe00}\u{fe01}\u{fe02}\u{fe03}\u{fe04}\u{fe05}\
    \u{fe06}\u{fe07}\u{fe08}\u{fe09}\u{fe0a}\u{fe0b}\u{fe0c}\u{fe0d}\u{fe0e}\u{fe0f}";

/// A text without differences of case, of composition (Unicode's NFKC) and of typography: curly apostrophes and quotation marks are
/// straight, all dashes are hyphens, and marks that nobody sees are gone. `ß` is `ss`, a final sigma is a sigma, `İ` is `i`.
///
/// ASCII only changes its case. Folding twice changes nothing.
#[must_use]
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.chars().map(plain).filter(|c| !is_unseen(*c)).nfkc().map(plain).flat_map(char::to_lowercase) {
        match c {
            'ß' => folded.push_str("ss"),
            'ς' => folded.push('σ'),
            // The dot over a lower-case i is a part of it.
            '\u{307}' if folded.ends_with('i') => {}
            c if is_unseen(c) => {}
            c => folded.push(c),
        }
    }
    // Lower case can have another composition.
    folded.nfc().collect()
}

fn plain(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    PLAIN.into_iter().find(|(typed, _)| typed.contains(c)).map_or(c, |(_, plain)| plain)
}

fn is_unseen(c: char) -> bool {
    !c.is_ascii() && UNSEEN.contains(c)
}

/// An SQL expression for what [`fold`] makes of a column, for names. It is ten times as slow as comparing the column. How it changes
/// the case of rare letters depends on the database.
#[must_use]
pub fn sql(column: &str) -> String {
    let mut typed = String::new();
    let mut plain = String::new();
    for (all, one) in PLAIN {
        typed.push_str(all);
        plain.extend(all.chars().map(|_| one));
    }
    typed.push_str(UNSEEN);
    let plain = plain.replace('\'', "''");
    let typed = |text: &str| format!("translate({text}, '{typed}', '{plain}')");
    let lower = format!("lower({})", typed(&format!("normalize({}, NFKC)", typed(column))));
    format!(
        "CASE WHEN octet_length({column}) = length({column}) THEN lower({column}) \
         ELSE normalize(replace(replace(replace({lower}, 'ß', 'ss'), 'ς', 'σ'), 'i\u{307}', 'i'), NFC) END"
    )
}

/// Whether words occur in a text, and not as a part of longer ones. Both must be folded.
#[must_use]
pub fn occurs(text: &str, words: &str) -> bool {
    !words.is_empty() && text.match_indices(words).any(|(at, found)| is_word(text, at, at + found.len()))
}

/// Whether what stands at a place of a text is a word, and not a part of a longer one. Scripts without spaces have no such parts. In
/// Korean, particles follow a word without a space.
#[must_use]
pub fn is_word(text: &str, start: usize, end: usize) -> bool {
    let joined = |before: Option<char>, after: Option<char>| {
        [before, after].into_iter().all(|c| c.is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c)))
    };
    let (Some(before), Some(word), Some(after)) = (text.get(..start), text.get(start..end), text.get(end..)) else {
        return false;
    };
    let next = after.chars().next().filter(|c| !is_hangul(*c));
    !joined(before.chars().next_back(), word.chars().next()) && !joined(word.chars().next_back(), next)
}

/// A folded text without the marks on its Latin and Greek letters: `é` is `e`, `ø` is `o`. In other scripts a mark makes another letter.
#[must_use]
pub fn without_marks(folded: &str) -> String {
    let mut plain = String::with_capacity(folded.len());
    for c in folded.chars() {
        if is_combining_mark(c) && plain.chars().next_back().is_some_and(has_removable_marks) {
            continue;
        }
        let mut base = c;
        let mut is_first = true;
        if !c.is_ascii() {
            decompose_canonical(c, |part| {
                if is_first {
                    base = part;
                }
                is_first = false;
            });
        }
        match base {
            'ø' => plain.push('o'),
            'ł' => plain.push('l'),
            'đ' | 'ð' => plain.push('d'),
            'ħ' => plain.push('h'),
            'ı' => plain.push('i'),
            'æ' => plain.push_str("ae"),
            'œ' => plain.push_str("oe"),
            'þ' => plain.push_str("th"),
            base if has_removable_marks(base) => plain.push(base),
            _ => plain.push(c),
        }
    }
    plain
}

fn has_removable_marks(letter: char) -> bool {
    letter.is_ascii_alphabetic() || matches!(letter, 'α'..='ω')
}

/// Whether words can contain a character: letters, digits, and the marks that some scripts write after a letter.
#[must_use]
pub fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || (!c.is_ascii() && is_combining_mark(c))
}

/// Letters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Letters between which a word may begin or end without a space.
#[must_use]
pub fn is_dense(c: char) -> bool {
    is_unspaced(c) || is_hangul(c)
}

fn is_hangul(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7ff}')
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn folding_twice_changes_nothing() {
        // The characters between these fold to themselves.
        for c in ('\0'..='\u{33ff}').chain('\u{a000}'..='\u{abff}').chain('\u{f900}'..='\u{1ffff}') {
            for text in [c.to_string(), format!("a{c}i"), format!("{c}\u{307}")] {
                let folded = fold(&text);
                assert_eq!(fold(&folded), folded, "{text:?}");
            }
        }
    }
}
