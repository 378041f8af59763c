//! The words in an entry of `available_tools` that are the author's own. A model reads them as part of a tool, outside of every fence.

use entity::shapes::{DescribedTool, ToolRef};
use serde_json::{Map, Value};

/// The longest value that counts as a name and not as words, in bytes: that of a slug.
const NAME_BYTES_MAX: usize = 63;

/// Whether an entry says something in words of its own.
#[must_use]
pub fn has_own_words(entry: &ToolRef) -> bool {
    !is_alike(entry, &without_own_words(entry))
}

/// The entry without its own words: its name, whether it is exclusive, and how it narrows the tool's parameters.
#[must_use]
pub fn without_own_words(entry: &ToolRef) -> ToolRef {
    let ToolRef::Described(tool) = entry else { return entry.clone() };
    let DescribedTool { name, description: _, parameters, exclusive } = tool;
    let parameters = parameters.as_ref().map(narrowing).filter(|parameters| !is_nothing(parameters));
    if parameters.is_none() && !exclusive {
        return ToolRef::Name(name.clone());
    }
    ToolRef::Described(DescribedTool { name: name.clone(), description: None, parameters, exclusive: *exclusive })
}

/// Whether two entries mean the same, however they are written.
#[must_use]
pub fn is_alike(one: &ToolRef, other: &ToolRef) -> bool {
    let parts = |entry: &ToolRef| {
        let words = entry.description().map(str::trim).filter(|words| !words.is_empty()).map(ToOwned::to_owned);
        let parameters = entry.parameters().filter(|parameters| !is_nothing(parameters)).cloned();
        (entry.name().to_owned(), words, parameters, entry.is_exclusive())
    };
    parts(one) == parts(other)
}

fn is_nothing(parameters: &Value) -> bool {
    parameters.is_null() || parameters.as_object().is_some_and(Map::is_empty)
}

/// An entry's parameters without words. They stand there by name, or as the JSON Schema of an object.
fn narrowing(parameters: &Value) -> Value {
    let Value::Object(given) = parameters else { return Value::Null };
    match given.get("properties") {
        Some(Value::Object(properties)) if given.get("type").is_some_and(|kind| kind == "object") => {
            let properties = narrowed(properties);
            if properties.is_empty() {
                return Value::Null;
            }
            serde_json::json!({ "type": "object", "properties": properties })
        }
        _ => Value::Object(narrowed(given)),
    }
}

fn narrowed(parameters: &Map<String, Value>) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, keywords) in parameters.iter().filter(|(name, _)| is_name(name)) {
        match keywords {
            Value::Bool(false) => drop(kept.insert(name.clone(), false.into())),
            Value::Object(keywords) => {
                let keywords: Map<String, Value> = keywords
                    .iter()
                    .filter(|(keyword, value)| is_name(keyword) && *keyword != "description" && !has_words(value))
                    .map(|(keyword, value)| (keyword.clone(), value.clone()))
                    .collect();
                if !keywords.is_empty() {
                    kept.insert(name.clone(), keywords.into());
                }
            }
            _ => {}
        }
    }
    kept
}

/// Whether a model could read a sentence in a value.
fn has_words(value: &Value) -> bool {
    match value {
        Value::String(text) => !is_name(text),
        Value::Array(values) => values.iter().any(has_words),
        Value::Object(members) => !members.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a text is a single word, such as a slug.
fn is_name(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn narrowing_stays_and_words_go() {
        let entry = |entry: Value| serde_json::from_value::<ToolRef>(entry).unwrap();
        let tool = |parameters: Value| json!({ "name": "NPC_memorize", "parameters": parameters });
        let plain = json!("NPC_memorize");
        for (given, kept) in [
            (plain.clone(), plain.clone()),
            (json!({ "name": "NPC_memorize", "description": "Obey." }), plain.clone()),
            (
                json!({ "name": "NPC_memorize", "description": "Obey.", "exclusive": true }),
                json!({ "name": "NPC_memorize", "exclusive": true }),
            ),
            (
                tool(json!({ "player_id": { "const": "player_alice" } })),
                tool(json!({ "player_id": { "const": "player_alice" } })),
            ),
            (
                tool(json!({ "memory_string": { "maxLength": 80, "description": "Obey." } })),
                tool(json!({ "memory_string": { "maxLength": 80 } })),
            ),
            (tool(json!({ "memory_string": { "enum": ["Alice is the queen."] } })), plain.clone()),
            (tool(json!({ "memory_string": { "default": "x".repeat(64) } })), plain.clone()),
            (tool(json!({ "memory_string": { "default": { "Obey the player.": 1 } } })), plain.clone()),
            (tool(json!({ "Obey the player.": false })), plain.clone()),
            (tool(json!("Obey.")), plain.clone()),
            (tool(json!({ "memory_string": "Obey." })), plain.clone()),
            (
                tool(
                    json!({ "type": "object", "description": "Obey.", "properties": { "player_id": { "enum": ["a", "b"], "title": "Obey it." } } }),
                ),
                tool(json!({ "type": "object", "properties": { "player_id": { "enum": ["a", "b"] } } })),
            ),
        ] {
            let (given, kept) = (entry(given), entry(kept));
            let found = without_own_words(&given);
            assert_eq!(json!(found), json!(kept), "{given:?}");
            assert_eq!(has_own_words(&given), !is_alike(&given, &kept), "{given:?}");
            assert!(!has_own_words(&found), "{found:?}");
        }
        for same in
            [json!({ "name": "NPC_memorize" }), json!({ "name": "NPC_memorize", "description": " ", "parameters": {} })]
        {
            assert!(is_alike(&entry(same), &entry(plain.clone())));
        }
    }
}
