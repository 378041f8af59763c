//! The 18 skills and their abilities (SRD 5.1, "Using Ability Scores: Skills").

use serde::Serialize;
use utoipa::ToSchema;

use super::Ability;

/// A skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SrdSkill)]
pub struct Skill {
    /// The lower-case name, as in JSON.
    #[schema(value_type = String)]
    pub name: &'static str,
    /// Its ability, unless a check names another.
    pub ability: Ability,
}

const fn of(name: &'static str, ability: Ability) -> Skill {
    Skill { name, ability }
}

/// All skills, by name.
pub const SKILLS: [Skill; 18] = [
    of("acrobatics", Ability::Dexterity),
    of("animal handling", Ability::Wisdom),
    of("arcana", Ability::Intelligence),
    of("athletics", Ability::Strength),
    of("deception", Ability::Charisma),
    of("history", Ability::Intelligence),
    of("insight", Ability::Wisdom),
    of("intimidation", Ability::Charisma),
    of("investigation", Ability::Intelligence),
    of("medicine", Ability::Wisdom),
    of("nature", Ability::Intelligence),
    of("perception", Ability::Wisdom),
    of("performance", Ability::Charisma),
    of("persuasion", Ability::Charisma),
    of("religion", Ability::Intelligence),
    of("sleight of hand", Ability::Dexterity),
    of("stealth", Ability::Dexterity),
    of("survival", Ability::Wisdom),
];

/// The skill with this name, in any case, with spaces, hyphens or underscores between the words.
#[must_use]
pub fn skill(name: &str) -> Option<&'static Skill> {
    SKILLS.iter().find(|s| names_skill(name, s.name))
}

/// Whether `written` is the skill `name`.
pub(crate) fn names_skill(written: &str, name: &str) -> bool {
    let written = written.trim();
    written.len() == name.len()
        && written.bytes().zip(name.bytes()).all(|(w, n)| match w {
            b'_' | b'-' => n == b' ',
            _ => w.eq_ignore_ascii_case(&n),
        })
}

impl Skill {
    /// The name with a capital first letter.
    #[must_use]
    pub fn title(&self) -> String {
        let mut letters = self.name.chars();
        letters.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(letters).collect()
    }
}
