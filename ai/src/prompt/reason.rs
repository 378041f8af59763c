//! Why a lore entry is in a prompt or not. Answers and stored turns contain it as text, which only [`LoreReason`] writes and reads.
//!
//! To add a reason, add a variant, its text in `Display`, and an example in the test; if the text has parts that vary, also a line in
//! `with_parts`.

use std::fmt::{Display, Formatter};

use entity::lore::Logic;
use serde::{Deserialize, Serialize};

use super::scope::LoreScope;

/// Why a lore entry is in a prompt or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum LoreReason {
    /// It is always active, and its scope concerns the reader.
    Scope(LoreScope),
    /// The same, but it was told in an earlier turn that is still in the history.
    ScopeEarlier(LoreScope),
    /// A keyword activated it this turn.
    Keyword(LoreScope),
    /// A keyword activated it in an earlier turn that is still in the history.
    KeywordEarlier,
    /// One of its keywords occurs, but something holds it back.
    HeldBack(HeldBack),
    /// None of its keywords occurs.
    NoKeyword,
    /// It is about a creature or an item that is here or is mentioned.
    Thing(Why, LoreScope),
    /// The same, but it was told in an earlier turn that is still in the history.
    ThingEarlier(Why, LoreScope),
    /// It is about a creature or an item that is not here and that nobody mentions.
    NotHere(LoreScope),
    /// It is secret, and the reader may not know it.
    Secret,
    /// It does not fit into what is left of the budget.
    OverBudget { tokens: u32, budget: u32 },
    /// It does not fit into the budget for keyword lore.
    OverKeywordBudget { budget: u32 },
    /// It was left out because the prompt is too large for the model's context.
    OverContext { context: u32 },
    /// So many entries of its scope come first that it was not considered.
    TooManyFirst,
    /// Its scope concerns nobody here.
    OtherScope(LoreScope),
    /// It is switched off.
    Disabled,
    /// The text of a reason that another version of the server wrote.
    Unknown(String),
}

/// Why lore about a creature or an item is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Here,
    SpokenOf,
}

impl Why {
    fn as_str(self) -> &'static str {
        match self {
            Why::Here => "here",
            Why::SpokenOf => "spoken of",
        }
    }
}

/// Why an entry is not activated, although one of its keys occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// The reader may not know it.
    Secret,
    /// The key occurs further back than the entry's scan depth.
    TooLongAgo { scan_depth: usize },
    /// The condition of its secondary keys is not met.
    SecondaryKeys(Logic),
}

const EARLIER: &str = ", told in an earlier turn that is still in the history";
const THIS_TURN: &str = "keyword: activated this turn, ";
const CONCERNS_NOBODY: &str = " does not concern this entity and player";
const NOT_HERE: &str = " is not here, and nobody speaks of it";
const OVER_CONTEXT: &str = "budget: it does not fit into the model's context of ";
const TOO_LONG_AGO: &str = "keyword: a key was met, but further back than scan_depth ";

impl Display for LoreReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scope(scope) => f.write_str(&scope.describe()),
            Self::ScopeEarlier(scope) => write!(f, "{}{EARLIER}", scope.describe()),
            Self::Keyword(scope) => write!(f, "{THIS_TURN}{}", scope.describe()),
            Self::KeywordEarlier => f.write_str("keyword: activated in an earlier turn that is still in the history"),
            Self::HeldBack(held_back) => held_back.fmt(f),
            Self::NoKeyword => f.write_str("keyword: none of its keys was met"),
            Self::Thing(why, scope) => write!(f, "{} is {}, {}", scope.scope, why.as_str(), scope.describe()),
            Self::ThingEarlier(why, scope) => {
                write!(f, "{} is {}, {}{EARLIER}", scope.scope, why.as_str(), scope.describe())
            }
            Self::NotHere(LoreScope { scope, key }) => write!(f, "scope: {scope} {key}{NOT_HERE}"),
            Self::Secret => f.write_str("secret: not in known_by"),
            Self::OverBudget { tokens, budget } => {
                write!(f, "budget: its {tokens} tokens do not fit into the rest of {budget}")
            }
            Self::OverKeywordBudget { budget } => {
                write!(f, "budget: keyword lore may use at most {budget} tokens per turn")
            }
            Self::OverContext { context } => write!(f, "{OVER_CONTEXT}{context} tokens"),
            Self::TooManyFirst => f.write_str("budget: too many entries of its scope come first"),
            Self::OtherScope(LoreScope { scope, key }) => write!(f, "scope: {scope} {key}{CONCERNS_NOBODY}"),
            Self::Disabled => f.write_str("disabled"),
            Self::Unknown(text) => f.write_str(text),
        }
    }
}

impl Display for HeldBack {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let why = match self {
            Self::Secret => return f.write_str("secret: a key was met, but it is not in known_by"),
            Self::TooLongAgo { scan_depth } => return write!(f, "{TOO_LONG_AGO}{scan_depth}"),
            Self::SecondaryKeys(Logic::AndAny) => "none of its secondary keys was",
            Self::SecondaryKeys(Logic::AndAll) => "not all of its secondary keys were",
            Self::SecondaryKeys(Logic::NotAny) => "so was one of its secondary keys",
            Self::SecondaryKeys(Logic::NotAll) => "so were all of its secondary keys",
        };
        write!(f, "keyword: a key was met, but {why}")
    }
}

impl From<LoreReason> for String {
    fn from(reason: LoreReason) -> Self {
        reason.to_string()
    }
}

impl From<String> for LoreReason {
    fn from(text: String) -> Self {
        let fixed = FIXED.iter().find(|reason| reason.to_string() == text).cloned();
        fixed.or_else(|| with_parts(&text)).unwrap_or(Self::Unknown(text))
    }
}

/// The reasons whose text is always the same.
const FIXED: &[LoreReason] = &[
    LoreReason::KeywordEarlier,
    LoreReason::HeldBack(HeldBack::Secret),
    LoreReason::HeldBack(HeldBack::SecondaryKeys(Logic::AndAny)),
    LoreReason::HeldBack(HeldBack::SecondaryKeys(Logic::AndAll)),
    LoreReason::HeldBack(HeldBack::SecondaryKeys(Logic::NotAny)),
    LoreReason::HeldBack(HeldBack::SecondaryKeys(Logic::NotAll)),
    LoreReason::NoKeyword,
    LoreReason::Secret,
    LoreReason::TooManyFirst,
    LoreReason::Disabled,
];

/// Reads the text of a reason that has parts.
fn with_parts(text: &str) -> Option<LoreReason> {
    if let Some(scope) = text.strip_prefix(THIS_TURN) {
        return described(scope).map(LoreReason::Keyword);
    }
    if let Some((why, scope)) = thing(text.strip_suffix(EARLIER).unwrap_or(text)) {
        return Some(if text.ends_with(EARLIER) {
            LoreReason::ThingEarlier(why, scope)
        } else {
            LoreReason::Thing(why, scope)
        });
    }
    if let Some(scope) = text.strip_prefix("scope: ").and_then(|rest| rest.strip_suffix(NOT_HERE)) {
        return named(scope).map(LoreReason::NotHere);
    }
    if let Some(scope) = text.strip_suffix(EARLIER) {
        return described(scope).map(LoreReason::ScopeEarlier);
    }
    if let Some(scope) = text.strip_prefix("scope: ").and_then(|rest| rest.strip_suffix(CONCERNS_NOBODY)) {
        return named(scope).map(LoreReason::OtherScope);
    }
    if let Some(scan_depth) = text.strip_prefix(TOO_LONG_AGO) {
        return Some(LoreReason::HeldBack(HeldBack::TooLongAgo { scan_depth: scan_depth.parse().ok()? }));
    }
    if let Some(rest) = text.strip_prefix("budget: keyword lore may use at most ") {
        return Some(LoreReason::OverKeywordBudget { budget: rest.strip_suffix(" tokens per turn")?.parse().ok()? });
    }
    if let Some(rest) = text.strip_prefix(OVER_CONTEXT) {
        return Some(LoreReason::OverContext { context: rest.strip_suffix(" tokens")?.parse().ok()? });
    }
    if let Some(rest) = text.strip_prefix("budget: its ") {
        let (tokens, budget) = rest.split_once(" tokens do not fit into the rest of ")?;
        return Some(LoreReason::OverBudget { tokens: tokens.parse().ok()?, budget: budget.parse().ok()? });
    }
    described(text).map(LoreReason::Scope)
}

/// Reads why lore about a creature or an item is active.
fn thing(text: &str) -> Option<(Why, LoreScope)> {
    let (what, scope) = text.split_once(", ")?;
    let why = [Why::Here, Why::SpokenOf].into_iter().find(|why| what.ends_with(&format!(" is {}", why.as_str())))?;
    Some((why, described(scope)?))
}

/// Reads what [`LoreScope::describe`] writes.
fn described(text: &str) -> Option<LoreScope> {
    if text == LoreScope::any().describe() {
        return Some(LoreScope::any());
    }
    named(text.strip_prefix("scope ")?)
}

/// Reads a scope's name and subject.
fn named(text: &str) -> Option<LoreScope> {
    let (scope, key) = text.split_once(' ').unwrap_or((text, ""));
    LoreScope::named(scope, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_read_as_it_was_written() {
        let harbour = || LoreScope::named("zone", "old_harbour").expect("a scope");
        let with_parts = [
            LoreReason::Scope(harbour()),
            LoreReason::Scope(LoreScope::global()),
            LoreReason::ScopeEarlier(harbour()),
            LoreReason::ScopeEarlier(LoreScope::global()),
            LoreReason::Keyword(harbour()),
            LoreReason::Keyword(LoreScope::any()),
            LoreReason::OtherScope(harbour()),
            LoreReason::HeldBack(HeldBack::TooLongAgo { scan_depth: 3 }),
            LoreReason::OverBudget { tokens: 12, budget: 400 },
            LoreReason::OverKeywordBudget { budget: 400 },
            LoreReason::OverContext { context: 4096 },
            LoreReason::Thing(Why::Here, LoreScope::named("creature", "reef_ogre").expect("a scope")),
            LoreReason::Thing(Why::SpokenOf, LoreScope::named("item", "lamp").expect("a scope")),
            LoreReason::ThingEarlier(Why::Here, LoreScope::named("item", "lamp").expect("a scope")),
            LoreReason::NotHere(LoreScope::named("item", "lamp").expect("a scope")),
            LoreReason::Unknown("the stars were wrong".to_owned()),
        ];
        for reason in FIXED.iter().chain(&with_parts) {
            assert_eq!(LoreReason::from(reason.to_string()), *reason, "{reason}");
        }
    }
}
