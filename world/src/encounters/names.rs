//! What participants are called, and whom a name means. A name means the same everywhere.
//!
//! It must never name a hidden participant ([`Participant::hidden`]) to somebody who does not know of it.

use rules::{
    encounter::{Encounter, Participant},
    sheet::Life,
};

use base::fold::{fold, occurs};

/// The most names that a question lists.
const NAMED_MAX: usize = 12;

/// The participants that a name may mean, among those for which `knows` is true: by id, then by the record's id, slug or name in
/// any case, then by a part of the name or a longer text. If several match, dead ones are left out.
pub fn named<'a>(it: &'a Encounter, wanted: &str, knows: impl Fn(&Participant) -> bool) -> Vec<&'a Participant> {
    let candidates = || it.participants().iter().filter(|p| knows(p));
    let exact = wanted.trim();
    if let Some(one) = candidates().find(|p| p.id == exact) {
        return vec![one];
    }
    let is_record = |p: &&Participant| [&p.character_id, &p.npc_id].iter().any(|id| id.as_deref() == Some(exact));
    let wanted = plain(exact);
    let wanted = ["the ", "a ", "an "].iter().find_map(|word| wanted.strip_prefix(word)).unwrap_or(&wanted);
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<&Participant> = candidates().filter(is_record).collect();
    if found.is_empty() {
        found = candidates().filter(|p| names(p).iter().any(|name| name == wanted)).collect();
    }
    if found.is_empty() {
        found =
            candidates().filter(|p| names(p).iter().any(|name| occurs(name, wanted) || occurs(wanted, name))).collect();
    }
    let living: Vec<&Participant> = found.iter().filter(|p| p.life() != Life::Dead).copied().collect();
    if living.is_empty() { found } else { living }
}

/// Asks which of several participants is meant.
#[must_use]
pub fn choice(it: &Encounter, several: &[&Participant]) -> String {
    format!("Whom do you mean: {}?", listed(it, several, "or"))
}

pub(super) fn listed(it: &Encounter, who: &[&Participant], and: &str) -> String {
    let mut names: Vec<String> = who.iter().take(NAMED_MAX).map(|p| called(it, p)).collect();
    if who.len() > NAMED_MAX {
        names.push("others".to_owned());
    }
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {and} {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// A participant's name, with its id if another participant has the same name.
#[must_use]
pub fn called(it: &Encounter, who: &Participant) -> String {
    let name = who.creature.name.as_str();
    // Ignore hidden participants, because an added id would reveal that there is one with the same name.
    let mut others = it.participants().iter().filter(|p| p.id != who.id && (!p.hidden || who.hidden));
    let is_shared = others.any(|p| p.creature.name.eq_ignore_ascii_case(name));
    if is_shared && !name.eq_ignore_ascii_case(&who.id) { format!("{name} ({})", who.id) } else { name.to_owned() }
}

/// All names of a participant, normalized by [`plain`].
pub(super) fn names(who: &Participant) -> Vec<String> {
    let mut all: Vec<String> =
        [who.creature.name.as_str(), who.id.as_str(), who.creature.slug.as_str()].into_iter().map(plain).collect();
    all.retain(|name| !name.is_empty());
    all.dedup();
    all
}

/// Folded words, separated by single spaces.
pub(super) fn plain(text: &str) -> String {
    fold(text).split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
