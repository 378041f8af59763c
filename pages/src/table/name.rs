//! Names at the beginning of what is written at the table: whole ones, or the beginning of a word that fits one person only.

use base::fold::fold;

/// The most colons and commas in a word at which a name may end.
const MARKS_TRIED: usize = 8;

/// Somebody who can be named.
pub(crate) struct Named<'a> {
    pub(crate) id: String,
    pub(crate) slug: &'a str,
    pub(crate) name: &'a str,
    /// Whether only the whole name counts. It goes before others with the same name.
    pub(crate) is_title: bool,
}

/// Why a name means nobody.
pub(crate) enum Misnamed<'a> {
    /// Nobody is called so.
    Nobody,
    /// Several people have this name. Their slugs.
    SameName(Vec<&'a str>),
    /// Several names begin with it.
    SameBeginning(Vec<&'a str>),
}

/// Who is named at the beginning of a text, by name, by slug, by the beginning of either or of a part of the name, and the text behind it. The name may be in
/// quotes and may be followed by a colon.
///
/// # Errors
/// Why it means nobody.
pub(crate) fn named<'a, 't>(people: &'a [Named<'a>], text: &'t str) -> Result<(&'a Named<'a>, &'t str), Misnamed<'a>> {
    let whole = people.iter().flat_map(|person| [(person, person.slug), (person, person.name)]);
    // The longest match wins: `Anna Maria` is not `Anna`. If a name and a slug have the same length, the name wins.
    let found = whole
        .filter_map(|(person, name)| Some((person, name, behind(text, name)?)))
        .max_by_key(|(person, name, _)| (name.len(), *name == person.name));
    if let Some((person, name, rest)) = found {
        let is_alike = |other: &&Named<'_>| other.name.len() == name.len() && behind(text, other.name).is_some();
        let alike: Vec<&Named<'_>> = people.iter().filter(is_alike).collect();
        return match alike.iter().find(|other| other.is_title) {
            Some(title) => Ok((title, rest)),
            None if alike.iter().all(|other| other.id == person.id) => Ok((person, rest)),
            None => Err(Misnamed::SameName(alike.iter().map(|other| other.slug).collect())),
        };
    }
    let (word, rest) = first_word(text);
    let beginning = fold(word);
    let whole =
        |person: &&Named<'_>| fold(person.name).starts_with(&beginning) || fold(person.slug).starts_with(&beginning);
    // `Stonehand` is Brakka Stonehand, if nobody's name begins with it.
    let part = |person: &&Named<'_>| fold(person.name).split_whitespace().any(|word| word.starts_with(&beginning));
    let candidates = || people.iter().filter(|person| !beginning.is_empty() && !person.is_title);
    let mut found: Vec<&Named<'_>> = candidates().filter(whole).collect();
    if found.is_empty() {
        found = candidates().filter(part).collect();
    }
    match found.as_slice() {
        [] => Err(Misnamed::Nobody),
        [person, others @ ..] if others.iter().all(|other| other.id == person.id) => Ok((person, rest)),
        several => Err(Misnamed::SameBeginning(several.iter().map(|person| person.name).collect())),
    }
}

/// The first word or what is in quotes, and the text behind it.
fn first_word(text: &str) -> (&str, &str) {
    if let Some((quoted, rest)) = text.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
        return (quoted.trim(), rest.trim_start_matches(':').trim());
    }
    let (word, rest) = text.split_once(|c: char| c.is_whitespace() || matches!(c, ':' | ',')).unwrap_or((text, ""));
    (word, rest.trim_start_matches([':', ',']).trim())
}

/// The text behind a name.
fn behind<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let wanted = fold(name);
    if let Some(quoted) = text.strip_prefix('"') {
        let (said, rest) = quoted.split_once('"')?;
        return (fold(said.trim()) == wanted).then(|| rest.trim_start_matches(':').trim());
    }
    // A name that is typed otherwise can have another length, but it has as many words.
    let mut was_space = true;
    let starts =
        text.char_indices().filter(|(_, c)| std::mem::replace(&mut was_space, c.is_whitespace()) && !was_space);
    let (begin, _) = { starts }.nth(name.split_whitespace().count().checked_sub(1)?)?;
    let last = text.get(begin..)?.split(char::is_whitespace).next()?;
    let marks = last.match_indices([':', ',']).map(|(at, _)| at).take(MARKS_TRIED).chain([last.len()]);
    let (_, rest) = marks.filter_map(|at| text.split_at_checked(begin + at)).find(|(head, _)| fold(head) == wanted)?;
    let ends = rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || matches!(c, ':' | ','));
    ends.then(|| rest.trim_start_matches([':', ',']).trim())
}
