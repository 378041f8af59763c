//! Worlds in and out: documents, cards, lorebooks, and what is done with files that mean no good.

mod anything;
mod books;
mod cards;
mod documents;
mod drafts;
mod files;
mod fuzz;
mod hostile;
mod others;
mod reports;
mod seeds;

use reqwest::Method;
use serde_json::Value;

use crate::support::{Answer, Client};

/// Sends a file as it is.
async fn send(client: &Client<'_>, path: &str, media: &str, bytes: Vec<u8>) -> Answer {
    client.send(client.request(Method::POST, path).header("content-type", media).body(bytes)).await
}

/// Whether the report says this of a field.
fn says(report: &Value, path: &str, outcome: &str) -> bool {
    report["fields"].as_array().unwrap().iter().any(|f| f["path"] == path && f["outcome"] == outcome)
}
