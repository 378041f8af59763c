//! Members of a reply that its endpoint wants back while the turn goes on: signatures of thoughts, and the thoughts themselves.
//!
//! Some endpoints reject the next request of a tool loop without them, and others reject a request that has them. So they go back
//! unchanged to the endpoint and model that sent them, and to no other. They are never shown, and never kept beyond the turn.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::ser::SerializeMap;
use serde_json::{Map, Value};

use super::endpoint::Endpoint;

/// Words in the names of such members: `reasoning_content`, `reasoning_details`, `thinking_blocks`, `thought_signature`,
/// `extra_content`, `provider_specific_fields`.
const WORDS: [&str; 6] = ["reasoning", "thinking", "thought", "signature", "extra_content", "provider_specific"];
/// The most members that are kept of one message or call.
const MEMBERS_MAX: usize = 16;

/// Which endpoint and model something came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Origin(u64);

impl Origin {
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        let mut hasher = DefaultHasher::new();
        (endpoint.base_url.as_str(), &endpoint.model).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The members of one message or call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Echo {
    /// Where a message came from. Its calls came from there as well.
    came_from: Option<Origin>,
    members: Map<String, Value>,
}

impl Echo {
    /// Whether there is nothing to send back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The members as JSON, to count them.
    #[must_use]
    pub fn to_json(&self) -> String {
        if self.is_empty() { String::new() } else { serde_json::to_string(&self.members).unwrap_or_default() }
    }

    /// The same, from an endpoint and model.
    pub(super) fn from(self, origin: Origin) -> Self {
        Self { came_from: Some(origin), ..self }
    }

    /// Whether a message came from an endpoint and model.
    pub(super) fn came_from(&self, origin: Origin) -> bool {
        self.came_from == Some(origin)
    }

    /// The names of the members.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Whether endpoints want a member of this name back, or an object of this JSON may have such a member.
    pub(super) fn wants(text: &str) -> bool {
        WORDS.iter().any(|word| text.contains(word))
    }

    /// Adds a member of a message or call, or of a piece of one. Pieces of text and of lists are joined.
    pub(super) fn add(&mut self, name: &str, value: Value) {
        if value.is_null() || (self.members.len() >= MEMBERS_MAX && !self.members.contains_key(name)) {
            return;
        }
        match (self.members.get_mut(name), value) {
            (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
            (Some(Value::Array(items)), Value::Array(more)) => more.into_iter().for_each(|item| join(items, item)),
            (Some(known), value) => *known = value,
            (None, value) => drop(self.members.insert(name.to_owned(), value)),
        }
    }

    /// Writes the members except those that the endpoint refuses.
    pub(super) fn write<M: SerializeMap>(&self, map: &mut M, refuses: impl Fn(&str) -> bool) -> Result<(), M::Error> {
        let mut taken = self.members.iter().filter(|(name, _)| !refuses(name));
        taken.try_for_each(|(name, value)| map.serialize_entry(name, value))
    }
}

/// Adds an item to a list that comes in pieces. A piece of the last item has the same `type` and `index`.
fn join(items: &mut Vec<Value>, item: Value) {
    let same = |last: &Value| {
        last.get("index").is_some_and(Value::is_u64)
            && ["index", "type"].iter().all(|key| last.get(key) == item.get(key))
    };
    let Some(last) = items.last_mut().filter(|last| same(last)) else { return items.push(item) };
    let (Value::Object(last), Value::Object(item)) = (last, item) else { return };
    for (name, value) in item {
        match (last.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(more)) if matches!(&*name, "text" | "summary" | "data") => {
                text.push_str(&more);
            }
            (_, Value::Null) => {}
            (_, value) => drop(last.insert(name, value)),
        }
    }
}
