//! Small text functions with linear cost: code fences, entities, and cleaning text for display and storage.

use base::text::cleaned;

/// Removes Markdown code fences around the whole text, including nested ones. A missing closing fence does not matter.
pub(super) fn without_fences(text: &str) -> &str {
    const NESTED_MAX: usize = 4;
    let mut inner = text.trim();
    for _ in 0..NESTED_MAX {
        let Some(rest) = inner.strip_prefix("```") else {
            break;
        };
        let rest = rest.trim_start_matches('`');
        let body = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+'));
        inner = body.trim_end().trim_end_matches('`').trim();
    }
    inner
}

/// Replaces the five predefined entities and numeric references, once. Leaves everything else as it is.
pub(super) fn decode_entities_into(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match entity(rest) {
            Some((decoded, length)) => {
                out.push(decoded);
                rest = &rest[length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
}

/// Like [`decode_entities_into`], for one string.
pub(super) fn decode_entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    decode_entities_into(&mut out, text);
    out
}

/// The character that a reference at the start of `text` stands for, and the reference's length in bytes.
fn entity(text: &str) -> Option<(char, usize)> {
    /// `&#x10FFFF;` with some leading zeros.
    const LENGTH_MAX: usize = 16;
    let end = text.bytes().take(LENGTH_MAX).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let decoded = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                    u32::from_str_radix(digits, 16).ok()?
                }
                None if number.bytes().all(|b| b.is_ascii_digit()) => number.parse().ok()?,
                _ => return None,
            };
            char::from_u32(code).filter(|c| !c.is_control() || matches!(c, '\n' | '\t' | '\r'))?
        }
    };
    Some((decoded, end + 1))
}

/// Makes the text fit to be stored ([`base::text`]), trims it, and cuts at a character boundary. The second value says whether the
/// text was cut.
pub(super) fn presentable(text: &str, bytes_max: usize) -> (String, bool) {
    let text = cleaned(text);
    let text = text.trim();
    let end = text.floor_char_boundary(bytes_max);
    (text.get(..end).unwrap_or_default().to_owned(), end < text.len())
}

/// Escapes line breaks and other control characters inside JSON strings, which models leave unescaped. `None` if nothing has to
/// change.
pub(super) fn with_escaped_controls(json: &str) -> Option<String> {
    if !json.bytes().any(|byte| byte < 0x20) {
        return None;
    }
    let mut out = String::with_capacity(json.len() + 64);
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        match c {
            '\n' if in_string => out.push_str("\\n"),
            '\t' if in_string => out.push_str("\\t"),
            c if in_string && u32::from(c) < 0x20 => {}
            c => out.push(c),
        }
        if !escaped && c == '"' {
            in_string = !in_string;
        }
        escaped = in_string && !escaped && c == '\\';
    }
    Some(out)
}
