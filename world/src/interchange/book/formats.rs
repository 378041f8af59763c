//! The formats of lorebooks: how each is recognised, and how its entries are converted to SillyTavern's format.

use serde_json::{Value, json};

use super::{
    entry::Members,
    values::{self, Unused, told, told_off},
};
use crate::interchange::text::{self, line, list, split, string};
use base::error::{Error, Result};

/// A format of lorebooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    SillyTavern,
    /// The book of a character card, inside its card or separate.
    CharacterBook,
    Agnai,
    Risu,
    NovelAi,
    AiDungeon,
}

impl Format {
    const ALL: [Format; 6] =
        [Format::SillyTavern, Format::CharacterBook, Format::Agnai, Format::Risu, Format::NovelAi, Format::AiDungeon];

    /// The format's name in reports and in stored entries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Format::SillyTavern => "sillytavern",
            Format::CharacterBook => "character_book",
            Format::Agnai => "agnai",
            Format::Risu => "risu",
            Format::NovelAi => "novelai",
            Format::AiDungeon => "ai_dungeon",
        }
    }

    /// The format with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.as_str() == name)
    }

    /// The path of the entries, for reports.
    #[must_use]
    pub fn entries_at(self) -> &'static str {
        match self {
            Format::Risu => "/data/*",
            Format::AiDungeon => "/*",
            _ => "/entries/*",
        }
    }

    /// The name of a SillyTavern field in this format.
    #[must_use]
    pub fn name_of(self, field: &'static str) -> &'static str {
        let names: &[(&str, &'static str)] = match self {
            Format::SillyTavern => &[],
            Format::CharacterBook => &[
                ("key", "keys"),
                ("keysecondary", "secondary_keys"),
                ("order", "insertion_order"),
                ("disable", "enabled"),
                ("caseSensitive", "case_sensitive"),
                ("uid", "id"),
                ("scanDepth", "extensions/scan_depth"),
                ("matchWholeWords", "extensions/match_whole_words"),
                ("selectiveLogic", "extensions/selectiveLogic"),
            ],
            Format::Agnai => &[
                ("key", "keywords"),
                ("order", "weight"),
                ("disable", "enabled"),
                ("content", "entry"),
                ("comment", "name"),
            ],
            Format::Risu => &[
                ("keysecondary", "secondkey"),
                ("order", "insertorder"),
                ("constant", "alwaysActive"),
                ("probability", "activationPercent"),
            ],
            Format::NovelAi => &[
                ("key", "keys"),
                ("comment", "displayName"),
                ("content", "text"),
                ("order", "contextConfig/budgetPriority"),
                ("disable", "enabled"),
                ("constant", "forceActivation"),
            ],
            Format::AiDungeon => &[("key", "keys"), ("content", "value"), ("comment", "title")],
        };
        names.iter().find(|(ours, _)| *ours == field).map_or(field, |(_, theirs)| *theirs)
    }

    /// A title for people: the entry's title, or else a key, or else its number.
    #[must_use]
    pub fn title_of(self, source: &Members, number: usize) -> String {
        let word = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let texts = ["comment", "name"].map(|field| source.get(self.name_of(field)).map(word).unwrap_or_default());
        let key = source.get(self.name_of("key"));
        let key = key.and_then(|keys| keys.as_str().or_else(|| keys.get(0)?.as_str())).unwrap_or_default().to_owned();
        let given = texts.into_iter().chain([key]).map(|text| line(&text)).find(|text| !text.is_empty());
        given.unwrap_or_else(|| format!("entry {}", number + 1))
    }

    /// The fields of an entry that SillyTavern's format has too.
    fn shared_fields(self) -> &'static [&'static str] {
        match self {
            Format::SillyTavern | Format::CharacterBook => &[],
            Format::Agnai => &["name", "entry", "keywords", "weight", "enabled"],
            Format::Risu => &[
                "key",
                "secondkey",
                "comment",
                "content",
                "alwaysActive",
                "selective",
                "insertorder",
                "activationPercent",
            ],
            Format::NovelAi => &["id", "displayName", "text", "keys", "enabled", "forceActivation", "contextConfig"],
            Format::AiDungeon => &["keys", "value", "title", "id"],
        }
    }

    /// The settings of an entry for its place in the context. We support only its priority.
    #[must_use]
    pub fn context_beside(self, source: &Members) -> Vec<&str> {
        let usual = json!({
            "prefix": "", "suffix": "\n", "tokenBudget": 2048, "reservedTokens": 0, "budgetPriority": 400, "trimDirection": "trimBottom",
            "insertionType": "newline", "maximumTrimType": "sentence", "insertionPosition": -1,
        });
        let context = source.get("contextConfig").and_then(Value::as_object).filter(|_| self == Format::NovelAi);
        let beside = context
            .into_iter()
            .flatten()
            .filter(|(name, value)| *name != "budgetPriority" && usual.get(*name) != Some(*value));
        beside.map(|(name, _)| name.as_str()).collect()
    }

    /// The members of an entry that SillyTavern's format does not have.
    pub fn strangers(self, source: &Members) -> impl Iterator<Item = &str> {
        let known = self.shared_fields();
        let is_foreign = !known.is_empty();
        source.keys().map(String::as_str).filter(move |name| is_foreign && !known.contains(name))
    }

    /// Converts an entry to SillyTavern's format.
    #[must_use]
    pub fn to_world_info(self, source: &Members) -> Members {
        self.read(source).0
    }

    /// Converts an entry to SillyTavern's format, and says which of its values could not be used.
    #[must_use]
    pub fn read(self, source: &Members) -> (Members, Vec<Unused>) {
        let mut source = source.clone();
        text::spell(&mut source, TEXTS);
        let mut info = self.converted(&source);
        let mut unused = values::settle(&mut info);
        if source.get("use_regex").is_some_and(|value| !value.is_null() && text::flag(value).is_none()) {
            unused.push(("use_regex", values::NO_FLAG));
        }
        (info, unused)
    }

    fn converted(self, source: &Members) -> Members {
        match self {
            // Some programs write the entries of one format into the frame of another.
            Format::SillyTavern if CARDS_OWN.iter().any(|name| source.contains_key(*name)) => of_character_book(source),
            Format::SillyTavern => source.clone(),
            Format::CharacterBook => of_character_book(source),
            Format::Agnai => object(json!({
                "key": list(source, "keywords"), "content": string(source, "entry"), "comment": string(source, "name"),
                "order": source.get("weight"), "disable": told_off(source, "enabled"),
            })),
            Format::Risu => object(json!({
                "key": split(string(source, "key")), "keysecondary": split(string(source, "secondkey")),
                "comment": string(source, "comment"), "content": string(source, "content"),
                "constant": source.get("alwaysActive"), "selective": told(source, "selective").unwrap_or(false.into()),
                "order": source.get("insertorder"), "probability": source.get("activationPercent"),
            })),
            Format::NovelAi => object(json!({
                "uid": source.get("id"), "key": list(source, "keys"), "comment": string(source, "displayName"),
                "content": string(source, "text"), "constant": source.get("forceActivation"),
                "disable": told_off(source, "enabled"),
                "order": source.get("contextConfig").and_then(|c| c.get("budgetPriority")),
            })),
            Format::AiDungeon => object(json!({
                "uid": source.get("id"), "key": split(string(source, "keys")), "comment": string(source, "title"),
                "content": string(source, "value"),
            })),
        }
    }
}

/// The members of an object, without nulls.
fn object(value: Value) -> Members {
    match value {
        Value::Object(members) => members.into_iter().filter(|(_, v)| !v.is_null()).collect(),
        _ => Members::new(),
    }
}

/// Fields in the extensions of a card's entry, and their names in SillyTavern.
pub const EXTENSIONS: &[(&str, &str)] = &[
    ("position", "position"),
    ("exclude_recursion", "excludeRecursion"),
    ("prevent_recursion", "preventRecursion"),
    ("delay_until_recursion", "delayUntilRecursion"),
    ("display_index", "displayIndex"),
    ("probability", "probability"),
    ("useProbability", "useProbability"),
    ("depth", "depth"),
    ("selectiveLogic", "selectiveLogic"),
    ("outlet_name", "outletName"),
    ("group", "group"),
    ("group_override", "groupOverride"),
    ("group_weight", "groupWeight"),
    ("scan_depth", "scanDepth"),
    ("match_whole_words", "matchWholeWords"),
    ("use_group_scoring", "useGroupScoring"),
    ("case_sensitive", "caseSensitive"),
    ("automation_id", "automationId"),
    ("role", "role"),
    ("vectorized", "vectorized"),
    ("sticky", "sticky"),
    ("cooldown", "cooldown"),
    ("delay", "delay"),
    ("match_persona_description", "matchPersonaDescription"),
    ("match_character_description", "matchCharacterDescription"),
    ("match_character_personality", "matchCharacterPersonality"),
    ("match_character_depth_prompt", "matchCharacterDepthPrompt"),
    ("match_scenario", "matchScenario"),
    ("match_creator_notes", "matchCreatorNotes"),
    ("triggers", "triggers"),
    ("ignore_budget", "ignoreBudget"),
];

/// Members of entries that are texts or lists of texts, in any format.
const TEXTS: &[&str] = &[
    "key",
    "keys",
    "keysecondary",
    "secondary_keys",
    "secondkey",
    "keywords",
    "comment",
    "name",
    "displayName",
    "title",
    "content",
    "entry",
    "text",
    "value",
];

/// Members that only entries of a card's book have.
const CARDS_OWN: [&str; 4] = ["keys", "secondary_keys", "insertion_order", "enabled"];

/// Converts an entry of a card's book to SillyTavern's format. It may have members of both formats; those of cards count first, and
/// keys add up. Extensions that have no name there stay under `extensions`.
fn of_character_book(source: &Members) -> Members {
    let mut entry = Members::new();
    let mut foreign = Members::new();
    for (name, value) in source {
        let (name, is_own) = match name.as_str() {
            "insertion_order" => ("order", true),
            "case_sensitive" => ("caseSensitive", true),
            "id" => ("uid", true),
            "keys" | "key" | "secondary_keys" | "keysecondary" | "enabled" | "extensions" | "position" | "name"
            | "comment" | "use_regex" => continue,
            name => (name, false),
        };
        if is_own || !entry.contains_key(name) {
            entry.insert(name.to_owned(), value.clone());
        }
    }
    let both = |card, other| list(source, card).into_iter().chain(list(source, other));
    let is_regex = source.get("use_regex").and_then(text::flag) == Some(true);
    let written = |key: &str| if is_regex { as_expression(key) } else { key.to_owned() };
    entry.insert("key".to_owned(), both("keys", "key").map(written).collect());
    entry.insert("keysecondary".to_owned(), both("secondary_keys", "keysecondary").collect());
    let is_off = told_off(source, "enabled").or_else(|| told(source, "disable"));
    entry.insert("disable".to_owned(), is_off.unwrap_or(false.into()));
    // If `selective` is absent, it is false.
    entry.insert("selective".to_owned(), told(source, "selective").unwrap_or(false.into()));
    let title =
        Some(string(source, "comment")).filter(|t| !t.trim().is_empty()).unwrap_or_else(|| string(source, "name"));
    entry.insert("comment".to_owned(), title.into());
    let position = source.get("position").and_then(text::number);
    let position = position.unwrap_or_else(|| i32::from(string(source, "position") == "after_char").into());
    entry.insert("position".to_owned(), position.into());
    for (name, value) in source.get("extensions").and_then(Value::as_object).into_iter().flatten() {
        match EXTENSIONS.iter().find(|(theirs, _)| theirs == name) {
            Some((_, ours)) => entry.insert((*ours).to_owned(), value.clone()),
            None => foreign.insert(name.clone(), value.clone()),
        };
    }
    if !foreign.is_empty() {
        entry.insert("extensions".to_owned(), foreign.into());
    }
    entry
}

/// Converts a key of an entry that says its keys are regular expressions. Plain words stay as they are.
fn as_expression(key: &str) -> String {
    let is_plain = key.starts_with('/') || !key.contains(['|', '[', ']', '(', ')', '{', '}', '\\', '^', '$', '*', '+']);
    if is_plain { key.to_owned() } else { format!("/{key}/") }
}

/// Detects the format of a book, and splits it into its settings and its entries.
///
/// # Errors
/// `validation_failed` if it is not a lorebook.
pub fn sort(value: Value) -> Result<(Format, Members, Vec<Members>)> {
    let mut about = match value {
        Value::Array(ref items) if !items.is_empty() => {
            return Ok((Format::AiDungeon, Members::new(), objects(value, "")?));
        }
        Value::Object(members) => members,
        _ => return Err(no_book()),
    };
    if string(&about, "spec") == "lorebook_v3" {
        let Some(Value::Object(mut data)) = about.remove("data") else { return Err(no_book()) };
        let entries = objects(data.remove("entries").unwrap_or_default(), "/data/entries")?;
        return Ok((Format::CharacterBook, data, entries));
    }
    if string(&about, "type") == "risu" {
        let entries = objects(about.remove("data").unwrap_or_default(), "/data")?;
        return Ok((Format::Risu, about, entries));
    }
    let format = match about.get("entries") {
        Some(Value::Object(_)) => Format::SillyTavern,
        Some(Value::Array(_)) if about.contains_key("lorebookVersion") => Format::NovelAi,
        Some(Value::Array(_)) if string(&about, "kind") == "memory" => Format::Agnai,
        Some(Value::Array(items)) if items.iter().any(|e| e.get("keywords").is_some()) => Format::Agnai,
        Some(Value::Array(items)) if items.iter().any(|e| e.get("key").is_some()) => Format::SillyTavern,
        Some(Value::Array(_)) => Format::CharacterBook,
        _ => return Err(no_book()),
    };
    // This is a copy of the file that the entries were made from.
    about.remove("originalData");
    let entries = objects(about.remove("entries").unwrap_or_default(), "/entries")?;
    Ok((format, about, entries))
}

fn no_book() -> Error {
    Error::invalid(
        "",
        "invalid_file",
        "This is not a known lorebook. Known are a SillyTavern world info, a character_book, and books of Agnai, Risu, NovelAI and AI Dungeon.",
    )
}

/// Reads a list of objects, or an object with objects by number.
///
/// # Errors
/// `validation_failed` with a pointer to an entry that is not an object.
pub fn objects(value: Value, at: &str) -> Result<Vec<Members>> {
    let wrong = |at: String| Error::invalid(at, "invalid_value", "An entry must be an object.");
    let numbered: Vec<(String, Value)> = match value {
        Value::Array(items) => items.into_iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        Value::Object(members) => {
            let mut numbered: Vec<_> = members.into_iter().collect();
            numbered.sort_by_key(|(key, _)| (key.parse::<u64>().unwrap_or(u64::MAX), key.clone()));
            numbered
        }
        _ => return Err(Error::invalid(at, "invalid_value", "Entries must be a list.")),
    };
    numbered
        .into_iter()
        .map(|(number, value)| match value {
            Value::Object(members) => Ok(members),
            _ => Err(wrong(format!("{at}/{number}"))),
        })
        .collect()
}
