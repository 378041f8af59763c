//! The tools of an NPC or owner: a box for each known tool, and a JSON list for tools with their own descriptions or
//! that are not known yet. As a text this is the ticked names, one per line, followed by the list.

use serde_json::{Value, json};

use crate::admin::words;

use ai::tools::{self, Tool};
use entity::kind::EntityKind;

/// A box for a tool.
pub struct Tick {
    pub name: &'static str,
    pub description: &'static str,
    pub is_ticked: bool,
}

fn of(kind: EntityKind, name: &str) -> Option<&'static Tool> {
    tools::find(name).filter(|tool| tool.callers.contains(&kind.into()))
}

/// The text of a stored list. Names that have a box come first, in the order of the boxes.
pub fn text_of(kind: EntityKind, items: &[Value]) -> String {
    let has_box = |item: &Value| item.as_str().is_some_and(|name| of(kind, name).is_some_and(|tool| tool.name == name));
    let ticked = items.iter().filter(|item| has_box(item)).filter_map(Value::as_str);
    let others: Vec<&Value> = items.iter().filter(|item| !has_box(item)).collect();
    let others = if others.is_empty() { String::new() } else { pretty(&json!(others)) };
    text_sent(kind, &ticked.collect::<Vec<_>>(), &others)
}

/// The text of the ticked boxes and the list beside them.
pub fn text_sent(kind: EntityKind, ticked: &[&str], others: &str) -> String {
    let names = tools::REGISTRY.iter().filter(|tool| ticked.contains(&tool.name) && of(kind, tool.name).is_some());
    let mut lines: Vec<&str> = names.map(|tool| tool.name).collect();
    lines.extend(Some(others.trim()).filter(|others| !others.is_empty()));
    lines.join("\n")
}

/// The ticked names, and the list as it is written.
fn split(kind: EntityKind, text: &str) -> (Vec<&'static str>, &str) {
    let (mut ticked, mut rest) = (Vec::new(), text.trim());
    loop {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let Some(tool) = of(kind, line.trim()) else { return (ticked, rest) };
        ticked.push(tool.name);
        rest = after.trim_start();
    }
}

/// The list that a text stands for.
///
/// # Errors
/// A sentence for the person who wrote it.
pub fn value_of(kind: EntityKind, text: &str) -> Result<Value, String> {
    let (ticked, others) = split(kind, text);
    let mut all: Vec<Value> = ticked.into_iter().map(Value::from).collect();
    if !others.is_empty() {
        let others = words::json_of(others)?;
        let Value::Array(others) = others else { return Err("Write a list in brackets here.".to_owned()) };
        all.extend(others);
    }
    Ok(all.into())
}

/// A box for each tool that this kind of entity may call.
pub fn ticks(kind: EntityKind, text: &str) -> Vec<Tick> {
    let (ticked, _) = split(kind, text);
    let known = tools::REGISTRY.iter().filter(|tool| of(kind, tool.name).is_some());
    known
        .map(|tool| Tick { name: tool.name, description: tool.description, is_ticked: ticked.contains(&tool.name) })
        .collect()
}

/// The list beside the boxes.
pub fn others(kind: EntityKind, text: &str) -> String {
    split(kind, text).1.to_owned()
}

/// A note about these tools for the worldbuilder. The tools may be saved all the same.
pub fn note(kind: EntityKind, text: &str) -> Option<String> {
    let listed = serde_json::from_value::<Vec<entity::shapes::ToolRef>>(value_of(kind, text).ok()?).ok()?;
    let unknown: Vec<&str> = listed.iter().map(|tool| tool.name()).filter(|name| of(kind, name).is_none()).collect();
    let mut notes = Vec::new();
    if !unknown.is_empty() {
        let named = unknown.iter().take(5).map(|name| format!("“{name}”")).collect::<Vec<_>>().join(", ");
        notes.push(format!("It cannot call these tools, so no model is offered them: {named}."));
    }
    if !tools::remembers(kind, &listed) {
        notes.push("It has no tool to remember with, so it will forget what is said to it.".to_owned());
    }
    (!notes.is_empty()).then(|| notes.join(" "))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
