//! The answer of a turn, and its record: what clients see, and what is kept besides.

use serde_json::value::{RawValue, to_raw_value};

use super::view::{PromptView, Trace, TurnView};
use crate::tools::shorten::shorten;
use base::error::{Error, Result};

/// The most bytes of a turn's answer, and of its trace. Its record has no more than both.
const VIEW_BYTES_MAX: usize = 1024 * 1024;
const TRACE_BYTES_MAX: usize = 1024 * 1024;
/// About how many bytes the prompt's view has, and the names of the record's members.
const PROMPT_BYTES: usize = 4 * 1024;
const NAMES_BYTES: usize = 64;

/// The answer's body, and the record that contains it together with the trace. Players do not see the prompt, but the record has
/// it.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn body_and_record(view: &TurnView, hidden: Option<PromptView>, trace: &Trace<'_>) -> Result<(Vec<u8>, String)> {
    #[derive(serde::Serialize)]
    struct Record<'a> {
        view: &'a RawValue,
        /// The prompt, if the view has none because it is a player's.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt: Option<PromptView>,
        trace: &'a RawValue,
    }
    let body = whole_or_short(view)?;
    let raw = serde_json::from_str::<&RawValue>(&body).map_err(Error::internal)?;
    let mut told = to_raw_value(trace).map_err(Error::internal)?;
    if told.get().len() > TRACE_BYTES_MAX {
        let whole = serde_json::to_value(trace).map_err(Error::internal)?;
        told = to_raw_value(&shorten(whole, TRACE_BYTES_MAX)).map_err(Error::internal)?;
    }
    let hidden_bytes = hidden.as_ref().map_or(0, |_| PROMPT_BYTES);
    let mut record = Vec::with_capacity(body.len() + told.get().len() + hidden_bytes + NAMES_BYTES);
    serde_json::to_writer(&mut record, &Record { view: raw, prompt: hidden, trace: &told }).map_err(Error::internal)?;
    let record = String::from_utf8(record).map_err(Error::internal)?;
    Ok((body.into_bytes(), record))
}

/// The answer. If it is too large, its calls share the available room.
fn whole_or_short(view: &TurnView) -> Result<String> {
    let body = serde_json::to_string(view).map_err(Error::internal)?;
    if body.len() <= VIEW_BYTES_MAX || view.tool_calls.is_empty() {
        return Ok(body);
    }
    let mut view = view.clone();
    let share = VIEW_BYTES_MAX / 2 / (2 * view.tool_calls.len());
    for call in &mut view.tool_calls {
        call.arguments = shorten(call.arguments.take(), share);
        call.result = call.result.take().map(|result| shorten(result, share));
    }
    serde_json::to_string(&view).map_err(Error::internal)
}
