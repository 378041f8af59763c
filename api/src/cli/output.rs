//! What commands print. Printing may fail, because the reader has exited or the disk is full. It never panics.

use std::{
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::log;
use base::{
    error::{Code, Error, Problem},
    request_id::RequestId,
};

/// Whether any output could not be written.
static WAS_LOST: AtomicBool = AtomicBool::new(false);

/// Whether any output could not be written.
pub(super) fn was_lost() -> bool {
    WAS_LOST.load(Ordering::Relaxed)
}

/// Prints a line on standard output.
pub(super) fn print(line: impl Display) {
    if writeln!(io::stdout(), "{line}").is_err() {
        WAS_LOST.store(true, Ordering::Relaxed);
    }
}

/// Prints a line about what is wrong on standard error.
pub(super) fn complain(line: impl Display) {
    log::line(&format!("tavernkeep: {line}"));
}

/// Prints a result: JSON, or a text for people.
pub(super) fn say(json: bool, value: &serde_json::Value, text: &str) {
    if json { print(value) } else { print(text) }
}

/// Prints an error with its cause, which only operators may see. With `json` also the API's problem document.
pub(super) fn failed(json: bool, error: &Error, request: &RequestId) -> ExitCode {
    let cause = error.cause().map(ToString::to_string).unwrap_or_default();
    if json {
        say(json, &serde_json::json!(Problem::of(error, &request.to_string())), "");
    }
    // The detail of an internal error only hides the cause from clients.
    let detail = if error.code == Code::Internal && !cause.is_empty() { "" } else { error.detail.trim() };
    complain(format!("{detail} {cause}").trim());
    ExitCode::FAILURE
}
