//! The tools that an NPC or owner has. Its own list can give a tool another description, narrow its parameters, or make
//! it exclusive.

use entity::{kind::EntityKind, shapes::ToolRef};
use serde_json::{Value, json, value::RawValue};

use super::{Tool, as_meant, find, narrow::Narrowing};
use base::error::{Error, FieldError, Result};

/// A tool that somebody has.
pub struct Grant {
    pub tool: &'static Tool,
    own_words: Option<String>,
    /// Whether a call to this tool must be the only call in its reply.
    pub is_exclusive: bool,
    narrowing: Narrowing,
}

impl From<&'static Tool> for Grant {
    fn from(tool: &'static Tool) -> Self {
        Self { tool, own_words: None, is_exclusive: false, narrowing: Narrowing::default() }
    }
}

impl Grant {
    /// The tool as an entry of `available_tools` describes it.
    #[must_use]
    pub fn of(tool: &'static Tool, entry: &ToolRef) -> Self {
        Self {
            tool,
            own_words: entry.description().map(ToOwned::to_owned),
            is_exclusive: entry.is_exclusive(),
            narrowing: entry.parameters().map(|parameters| Narrowing::of(tool, parameters).0).unwrap_or_default(),
        }
    }

    /// The tool's description for models.
    #[must_use]
    pub fn description(&self) -> String {
        let words = self.own_words.as_deref().unwrap_or(self.tool.description).trim();
        if self.is_exclusive {
            format!("{words} Call it alone, with no other call in the same reply.")
        } else {
            words.to_owned()
        }
    }

    /// The JSON Schema of the tool's arguments, narrowed by the entry.
    #[must_use]
    pub fn schema(&self) -> Value {
        self.narrowing.schema(self.tool)
    }

    /// The definition in the format for models.
    #[must_use]
    pub fn definition(&self) -> Value {
        json!({ "type": "function", "function": {
            "name": self.tool.name, "description": self.description(), "parameters": self.schema(),
        }})
    }

    /// Reads a call's arguments as the model meant them, fills in their defaults, and checks that the entry allows them.
    ///
    /// # Errors
    /// `validation_failed` with a pointer to each argument that is not allowed.
    pub fn arguments(&self, mut given: Value) -> Result<Value> {
        as_meant(self.tool.schema(), &mut given);
        self.narrowing.apply(self.tool, given)
    }
}

/// The tools that an entity has, by name: tools that it lists, that exist, and that its kind of entity may call.
#[must_use]
pub fn granted(kind: EntityKind, listed: &[ToolRef]) -> Vec<Grant> {
    let mut granted: Vec<Grant> = listed
        .iter()
        .filter_map(|entry| find(entry.name()).map(|tool| (tool, entry)))
        .filter(|(tool, _)| tool.callers.contains(&kind.into()))
        .map(|(tool, entry)| Grant::of(tool, entry))
        .collect();
    granted.sort_by_key(|grant| grant.tool.name);
    granted.dedup_by_key(|grant| grant.tool.name);
    granted
}

/// The definitions of an entity's tools as one JSON array. None if it has no tools.
#[must_use]
pub fn definitions(kind: EntityKind, listed: &[ToolRef]) -> Option<Box<RawValue>> {
    let definitions: Vec<_> = granted(kind, listed).iter().map(Grant::definition).collect();
    if definitions.is_empty() { None } else { serde_json::value::to_raw_value(&definitions).ok() }
}

/// Checks a list of tools that somebody writes. Does not check entries that are already stored.
///
/// # Errors
/// `validation_failed` with a pointer to each unknown tool, and to each parameter that the tool does not have or that
/// the entry widens.
pub fn check(sent: &Value, stored: &Value) -> Result<()> {
    let Some(sent) = sent.as_array() else { return Ok(()) };
    let is_new = |entry: &Value| stored.as_array().is_none_or(|stored| !stored.contains(entry));
    let mut errors = Vec::new();
    for (n, entry) in sent.iter().enumerate().take(ENTRIES_MAX).filter(|(_, entry)| is_new(entry)) {
        let pointer = format!("/available_tools/{n}");
        let Some(name) = entry.as_str().or_else(|| entry.get("name")?.as_str()) else { continue };
        let Some(tool) = find(name) else {
            let message = "There is no tool with this name. `GET …/tools` lists them.".to_owned();
            errors.push(FieldError { pointer, code: "unknown_tool".into(), message });
            continue;
        };
        let parameters = entry.get("parameters").filter(|parameters| !parameters.is_null());
        let misfits = parameters.map(|parameters| Narrowing::of(tool, parameters).1).unwrap_or_default();
        errors.extend(
            misfits.into_iter().map(|e| FieldError { pointer: format!("{pointer}/parameters{}", e.pointer), ..e }),
        );
    }
    errors.truncate(ERRORS_MAX);
    if errors.is_empty() { Ok(()) } else { Err(Error::validation(errors)) }
}

/// The most entries of a list (checked before this function), and the most errors of an answer.
const ENTRIES_MAX: usize = 100;
const ERRORS_MAX: usize = 20;
