//! The tools of an NPC or owner: a box for each that there is, and a list in JSON for those with words of their own or that are still
//! to come. As a text they are the ticked names, one a line, and below them the list.

use serde_json::{Value, json};

use crate::{
    json,
    prompt::EntityKind,
    tools::{self, Tool},
};

/// A box of a tool.
pub struct Tick {
    pub name: &'static str,
    pub description: &'static str,
    pub is_ticked: bool,
}

fn of(kind: EntityKind, name: &str) -> Option<&'static Tool> {
    tools::find(name).filter(|tool| tool.callers.contains(&kind.into()))
}

/// What a list reads as: names that have a box in the order of boxes, whatever order they were stored in.
pub fn text_of(kind: EntityKind, items: &[Value]) -> String {
    let has_box = |item: &Value| item.as_str().is_some_and(|name| of(kind, name).is_some_and(|tool| tool.name == name));
    let ticked = items.iter().filter(|item| has_box(item)).filter_map(Value::as_str);
    let others: Vec<&Value> = items.iter().filter(|item| !has_box(item)).collect();
    let others = if others.is_empty() { String::new() } else { pretty(&json!(others)) };
    text_sent(kind, &ticked.collect::<Vec<_>>(), &others)
}

/// The text of ticked boxes and a list beside them.
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

/// The list that a text means.
///
/// # Errors
/// A sentence for who wrote it.
pub fn value_of(kind: EntityKind, text: &str) -> Result<Value, String> {
    let (ticked, others) = split(kind, text);
    let mut all: Vec<Value> = ticked.into_iter().map(Value::from).collect();
    if !others.is_empty() {
        let others = json::parse(others).map_err(|e| format!("This is not JSON: {e}."))?;
        let Value::Array(others) = others else { return Err("Needed here: a list in brackets.".to_owned()) };
        all.extend(others);
    }
    Ok(all.into())
}

/// A box for each tool that such an entity may call.
pub fn ticks(kind: EntityKind, text: &str) -> Vec<Tick> {
    let (ticked, _) = split(kind, text);
    let known = tools::REGISTRY.iter().filter(|tool| of(kind, tool.name).is_some());
    known
        .map(|tool| Tick { name: tool.name, description: tool.description, is_ticked: ticked.contains(&tool.name) })
        .collect()
}

/// What stands in the list beside the boxes.
pub fn others(kind: EntityKind, text: &str) -> String {
    split(kind, text).1.to_owned()
}

/// What a worldbuilder should know of these tools, though they may be kept.
pub fn note(kind: EntityKind, text: &str) -> Option<String> {
    let listed = serde_json::from_value::<Vec<entity::shapes::ToolRef>>(value_of(kind, text).ok()?).ok()?;
    let unknown: Vec<&str> = listed.iter().map(|tool| tool.name()).filter(|name| of(kind, name).is_none()).collect();
    let mut notes = Vec::new();
    if !unknown.is_empty() {
        let named = unknown.iter().take(5).map(|name| format!("“{name}”")).collect::<Vec<_>>().join(", ");
        notes.push(format!("No tool here that it may call is named {named}: no model is offered that."));
    }
    if !tools::remembers(kind, &listed) {
        notes.push("It has no tool to remember with: what is said to it will be forgotten.".to_owned());
    }
    (!notes.is_empty()).then(|| notes.join(" "))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
