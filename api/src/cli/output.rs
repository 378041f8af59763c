//! What commands print.

use std::process::ExitCode;

use base::{
    error::{Code, Error, Problem},
    request_id::RequestId,
};

/// Prints a result: JSON, or a text for people.
pub(super) fn say(json: bool, value: &serde_json::Value, text: &str) {
    if json {
        println!("{value}");
    } else {
        println!("{text}");
    }
}

/// Prints an error with its cause, which only operators may see. With `json` also the API's problem document.
pub(super) fn failed(json: bool, error: &Error, request: &RequestId) -> ExitCode {
    let cause = error.cause().map(ToString::to_string).unwrap_or_default();
    if json {
        say(json, &serde_json::json!(Problem::of(error, &request.to_string())), "");
    }
    // The detail of an internal error only hides the cause from clients.
    let detail = if error.code == Code::Internal && !cause.is_empty() { "" } else { error.detail.trim() };
    eprintln!("tavernkeep: {}", format!("{detail} {cause}").trim());
    ExitCode::FAILURE
}
