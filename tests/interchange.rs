//! Worlds in and out: documents, cards, lorebooks, and what is done with files that mean no good.

mod books;
mod cards;
mod documents;
mod files;
mod hostile;

use reqwest::Method;
use serde_json::Value;

use crate::support::{Answer, Client};

/// Sends a file as it is.
async fn send(client: &Client<'_>, path: &str, media: &str, bytes: Vec<u8>) -> Answer {
    client.send(client.request(Method::POST, path).header("content-type", media).body(bytes)).await
}

/// What became of a field.
fn outcome<'a>(report: &'a Value, path: &str) -> &'a str {
    report["fields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["path"] == path)
        .map_or("", |f| f["outcome"].as_str().unwrap())
}
