//! Prompts as models get them: what is in, in which order, within which budgets, and that nobody's words leave their place.

mod budgets;
mod context;
pub mod fences;
mod history;
mod keywords;
mod scopes;
mod searches;
mod shape;

use serde_json::{Value, json};

use crate::support::World;

/// The text of a section.
fn section<'a>(prompt: &'a Value, name: &str) -> &'a str {
    sections(prompt).find(|s| s["name"] == name).unwrap()["text"].as_str().unwrap()
}

fn sections(prompt: &Value) -> impl Iterator<Item = &Value> {
    prompt["sections"].as_array().unwrap().iter()
}

/// What was cut of a section.
fn cut<'a>(prompt: &'a Value, name: &str) -> &'a str {
    sections(prompt).find(|s| s["name"] == name).unwrap()["cut"].as_str().unwrap_or_default()
}

/// Everything a model would read.
fn all(prompt: &Value) -> String {
    prompt["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect()
}

/// Slugs of the lore that is in.
fn included(prompt: &Value) -> Vec<&str> {
    let mut slugs: Vec<_> = prompt["lore"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|l| l["included"] == true)
        .map(|l| l["slug"].as_str().unwrap())
        .collect();
    slugs.sort_unstable();
    slugs
}

/// Why an entry is in or out.
fn reason<'a>(prompt: &'a Value, slug: &str) -> &'a str {
    let lore = prompt["lore"].as_array().unwrap();
    lore.iter().find(|l| l["slug"] == slug).unwrap()["reason"].as_str().unwrap()
}

/// A lore entry; `more` overrides.
async fn lore(world: &World<'_>, slug: &str, more: Value) {
    let mut entry = json!({ "slug": slug, "title": slug, "scope": "global", "content": format!("Canary of {slug}.") });
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.post("/lore", entry).await.expect(201);
}

/// Sets a campaign's prompt budgets.
async fn budgets(world: &World<'_>, budgets: Value) {
    world.patch("", json!({ "settings": { "prompt_budgets": budgets } })).await.expect(200);
}
