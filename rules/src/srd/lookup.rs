//! Matches a written name with known names: exactly, then in any case, then as a part.

/// The result of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// Exactly one match.
    One(T),
    /// Several equally good matches. Ask which is meant.
    Several(Vec<T>),
    /// No match.
    Nothing,
}

/// Whether two names are the same, apart from case and surrounding space.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    a.trim().eq_ignore_ascii_case(b.trim())
}

/// Looks up `wanted` among `items`: the exact name, then the name in any case, then the only item whose name contains
/// `wanted` or is contained in it. An empty `wanted` matches nothing.
pub fn find<'a, T>(items: &'a [T], name: impl Fn(&T) -> &str, wanted: &str) -> Found<&'a T> {
    let wanted = wanted.trim();
    if wanted.is_empty() {
        return Found::Nothing;
    }
    for tier in [exactly, same, partly] {
        let mut fitting = items.iter().filter(|item| tier(name(item), wanted));
        let Some(first) = fitting.next() else { continue };
        let rest = fitting.collect::<Vec<_>>();
        if rest.is_empty() {
            return Found::One(first);
        }
        return Found::Several(std::iter::once(first).chain(rest).collect());
    }
    Found::Nothing
}

fn exactly(name: &str, wanted: &str) -> bool {
    name == wanted
}

fn partly(name: &str, wanted: &str) -> bool {
    !name.is_empty() && (holds(name, wanted) || holds(wanted, name))
}

/// Whether `text` contains `part`, in any (ASCII) case. Does not allocate.
pub(crate) fn holds(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    part.is_empty() || text.windows(part.len()).any(|w| w.eq_ignore_ascii_case(part))
}
