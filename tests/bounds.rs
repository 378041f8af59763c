//! Nothing is unbounded: what clients send, what a turn keeps, what a page of a list answers.

mod pages;
mod schemas;
mod sent;
mod turns;

use serde_json::{Value, json};

/// An object of so many bytes of JSON.
fn free(bytes: usize) -> Value {
    json!({ "k": "x".repeat(bytes - r#"{"k":""}"#.len()) })
}

/// A list of so many bytes of JSON.
fn list(bytes: usize) -> Value {
    json!(["x".repeat(bytes - r#"[""]"#.len())])
}
