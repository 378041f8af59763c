//! How a name somebody wrote is matched with a name that is known: exactly, then without regard to case, then as a part.

/// What a name led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// Exactly one.
    One(T),
    /// More than one fits equally well: ask which is meant.
    Several(Vec<T>),
    /// None fits.
    Nothing,
}

/// Whether two names are the same but for case and surrounding space.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    a.trim().eq_ignore_ascii_case(b.trim())
}

/// Looks `wanted` up among `items`: the exact name, else the name in any case, else the one item whose name holds
/// `wanted` or is held by it. An empty `wanted` finds nothing.
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

/// Whether `text` holds `part`, in any (ASCII) case, without allocating.
pub(crate) fn holds(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    part.is_empty() || text.windows(part.len()).any(|w| w.eq_ignore_ascii_case(part))
}
